use super::*;
use crate::file::FileError;
use crate::{Advice as _, MachineSpec};

const HEAD: &str = "[profile]\nname = \"mine\"\n";

fn costs(text: &str) -> Costs {
    let profile = Profile::parse(text, "p.toml").unwrap_or_else(|error| panic!("{error}"));
    *profile.costs().expect("a profile of a file has costs")
}

fn error(text: &str) -> String {
    Profile::parse(text, "p.toml").unwrap_err().in_full()
}

#[test]
fn the_shipped_file_sets_every_span_of_time() {
    let text = include_str!("../../../../profiles/default-v0.toml");
    for (key, _) in Costs::TIMES {
        let line = format!("\n{key} = \"");
        assert_eq!(text.matches(&line).count(), 1, "{key}");
    }
    let costs = Profile::DefaultV0.costs().unwrap();
    assert_eq!((costs.switch, costs.instruction), (1_140_000, 400));
}

#[test]
fn a_measured_profile_has_the_switch_that_was_measured_and_all_else_in_proportion() {
    let usual = Profile::DefaultV0.costs().unwrap();
    let measured = Profile::measured(3480).unwrap();
    assert_eq!(measured.name(), "measured");
    let costs = measured.costs().unwrap();
    let times = [costs.switch, costs.wakeup, costs.tick, costs.instruction];
    let twice = [usual.switch, usual.wakeup, usual.tick, usual.instruction].map(|it| 2 * it);
    assert_eq!(times, twice);
    assert_eq!(costs.lock_wait, usual.lock_wait);
    for no_machine in [0, 99, 1_000_001, u64::MAX] {
        assert_eq!(Profile::measured(no_machine), None, "{no_machine}");
    }
}

#[test]
fn quantities_are_read_exactly_in_every_unit() {
    let costs = costs(&format!(
        "{HEAD}[costs]\nswitch = \"3.5us\"\nfork = \"1ms\"\n\
         instruction = \"0.75ns\"\ntick = \"7ps\"\n\
         [locks]\nwait = true\nrun_queue = \"machine\"\n\
         [caches]\ncore = \"256KiB\"\ncore_refill = \"0.8GB/s\"\nllc = \"2MiB\"\n\
         llc_refill = \"400MB/s\"\nfootprint = \"64 KiB\"\n"
    ));
    let want = Costs {
        switch: 3_500_000,
        fork: 1_000_000_000,
        instruction: 750,
        tick: 7,
        lock_wait: true,
        run_queue: RunQueueLock::Machine,
        core_cache_bytes: 256 << 10,
        core_refill_bytes_per_s: 800_000_000,
        llc_cache_bytes: 2 << 20,
        llc_refill_bytes_per_s: 400_000_000,
        footprint_bytes: 64 << 10,
        ..Costs::default()
    };
    assert_eq!(costs, want);
}

#[test]
fn a_file_may_begin_with_a_shipped_profile_times_a_factor() {
    let base = *Profile::DefaultV0.costs().unwrap();
    let head = format!("{HEAD}base = \"default-v0\"\n");
    assert_eq!(costs(&head), base);
    let slow = costs(&format!("{head}scale = 2.5\n[costs]\nkeep = \"1us\"\n"));
    assert_eq!(slow.switch, base.switch * 5 / 2);
    assert_eq!(slow.instruction, base.instruction * 5 / 2);
    assert_eq!(slow.keep, 1_000_000, "what the file says is not scaled");
    assert_eq!(
        costs(&format!("{HEAD}base = \"ideal\"\n")),
        Costs::default()
    );
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table of cases")]
fn mistakes_are_told_with_their_place() {
    let with = |rest: &str| error(&format!("{HEAD}{rest}"));
    let time = "a span of time with its unit (ps, ns, us, ms), as \"1.2us\"";
    for (found, want) in [
        (
            error("[profile]\n"),
            "p.toml:1:1: [profile] lacks `name`; expected a string".to_owned(),
        ),
        (
            error("[costs]\n"),
            "p.toml:1:1: the file lacks `profile`".to_owned(),
        ),
        (error("x = "), "p.toml:1:".to_owned()),
        (
            error("[profile]\nname = \"ideal\"\n"),
            "p.toml:2:9: `ideal` is taken; give it another name".to_owned(),
        ),
        (
            error("[profile]\nname = \"a b\"\n"),
            "p.toml:2:9: found \"a b\"; expected".to_owned(),
        ),
        (
            with("[costs]\nswich = \"1us\"\n"),
            "p.toml:4:1: unknown key `swich`; did you mean `switch`?".to_owned(),
        ),
        (
            with("[cost]\nswitch = \"1us\"\n"),
            "p.toml:3:2: unknown key `cost`; did you mean `costs`?".to_owned(),
        ),
        (
            with("[costs]\nswitch = 900\n"),
            format!("p.toml:4:10: found the number 900; expected {time}"),
        ),
        (
            with("[costs]\nswitch = \"900\"\n"),
            format!("p.toml:4:11: found \"900\"; expected {time}"),
        ),
        (
            with("[costs]\nswitch = \"0.0001ns\"\n"),
            format!("p.toml:4:11: found \"0.0001ns\"; expected {time}"),
        ),
        (
            with("[costs]\nswitch = \"-1ns\"\n"),
            format!("p.toml:4:11: found \"-1ns\"; expected {time}"),
        ),
        (
            with("[costs]\ninstruction = \"1ms\"\n"),
            "p.toml:4:15: `instruction` is the string \"1ms\"; expected 0 to 1us".to_owned(),
        ),
        (
            with("base = \"idle\"\n"),
            "p.toml:3:9: found \"idle\"; expected \"ideal\" or \"default-v0\"".to_owned(),
        ),
        (
            with("scale = 0\n"),
            "p.toml:3:9: found the number 0; expected a factor".to_owned(),
        ),
        (
            with("scale = 1.00001\n"),
            "p.toml:3:9: found the number 1.00001".to_owned(),
        ),
        (
            with("[locks]\nrun_queue = \"node\"\n"),
            "p.toml:4:13: found the string \"node\"; expected \"cpu\" or \"machine\"".to_owned(),
        ),
        (
            with("[caches]\ncore = \"1us\"\n"),
            "p.toml:4:9: found \"1us\"; expected a size".to_owned(),
        ),
        (
            with("[caches]\nllc_refill = \"99999GB/s\"\n"),
            "p.toml:4:14: `llc_refill` is the string \"99999GB/s\"; expected at most".to_owned(),
        ),
        (
            with("[background.rcu]\non = \"all\"\n"),
            "p.toml:4:6: found the string \"all\"; expected \"each\" (a thread".to_owned(),
        ),
        (
            with("[background.rcu]\non = \"any\"\ngap = \"1us\"\nrun = \"1us\"\n"),
            "p.toml:5:7: `gap` is the string \"1us\"; expected 10us to".to_owned(),
        ),
        (
            with("[background.rcu]\non = \"any\"\ngap = \"1ms\"\nrun = []\n"),
            "p.toml:6:7: the number of lengths is 0; expected 1 to 1000".to_owned(),
        ),
        (
            with("[background.\"a/b\"]\non = \"any\"\n"),
            "p.toml:3:13: found \"a/b\"; expected a name".to_owned(),
        ),
        (
            with("[background.rcu]\non = \"any\"\ngap = \"1ms\"\nrun = \"1us\"\nreal_time = 0\n"),
            "p.toml:7:13: found the number 0; expected a whole number, 1 to 99".to_owned(),
        ),
    ] {
        assert!(found.starts_with(&want), "{found}\n{want}");
    }
}

#[test]
fn a_recording_keeps_the_whole_of_an_own_profile_and_the_name_of_a_shipped_one() {
    let text = format!(
        "{HEAD}base = \"default-v0\"\n[caches]\ncore = \"1MiB\"\n[background.rcu]\n\
         on = \"each\"\ngap = \"4.5ms\"\nrun = [\"3us\", \"8us\"]\nreal_time = 1\n"
    );
    let background = Background {
        name: "rcu".to_owned(),
        each_cpu: true,
        cpu: None,
        gap_ns: 4_500_000,
        run_ns: vec![3_000, 8_000],
        real_time: Some(1),
        nice: 0,
    };
    let own = Profile::parse(&text, "p.toml").unwrap();
    assert_eq!(own.background(), [background]);
    for profile in [
        Profile::Ideal,
        Profile::DefaultV0,
        Profile::parse(&text, "p.toml").unwrap(),
    ] {
        let machine = MachineSpec {
            profile: profile.clone(),
            ..MachineSpec::default()
        };
        // JSON is what the crates above write; here any self-describing format will do.
        let written = toml::to_string(&machine).unwrap();
        let read: MachineSpec = toml::from_str(&written).unwrap();
        assert_eq!(read, machine, "{written}");
    }
}

#[test]
fn a_recording_with_background_threads_that_no_file_could_have_is_refused() {
    let text = "profile = { name = \"p\", costs_ps = {}, background = [{ name = \"b\", \
                each_cpu = true, gap_ns = 20000, run_ns = [7], nice = 0 }] }";
    assert!(toml::from_str::<Only>(text).is_ok());
    for (right, wrong) in [
        ("20000", "0"),
        ("[7]", "[]"),
        ("[7]", "[9000000000]"),
        ("nice = 0", "nice = 90"),
        ("nice = 0", "nice = 0, real_time = 100"),
        ("nice = 0", "nice = 0, cpu = 1"),
        ("true", "false, cpu = 1024"),
    ] {
        let error = toml::from_str::<Only>(&text.replace(right, wrong)).unwrap_err();
        assert!(error.to_string().contains("no profile can have"), "{error}");
    }
}

#[test]
fn a_background_thread_is_on_each_cpu_on_one_or_anywhere() {
    let read = |on: &str| {
        let text = format!("{HEAD}[background.b]\non = {on}\ngap = \"1ms\"\nrun = [\"3us\"]\n");
        let profile = Profile::parse(&text, "p.toml")?;
        let [one] = profile.background() else {
            panic!("{on}");
        };
        Ok::<_, FileError>((one.each_cpu, one.cpu))
    };
    assert_eq!(read("\"each\"").unwrap(), (true, None));
    assert_eq!(read("\"any\"").unwrap(), (false, None));
    assert_eq!(read("1023").unwrap(), (false, Some(1023)));
    for wrong in ["1024", "-1", "0x1", "\"1\"", "\"all\"", "1.0"] {
        let error = read(wrong).unwrap_err().in_full();
        assert!(
            error.contains("or the number of the CPU"),
            "{wrong}: {error}"
        );
    }
}

#[derive(Debug, Deserialize)]
struct Only {
    #[expect(dead_code, reason = "only whether it can be read is of interest")]
    profile: OwnProfile,
}

#[test]
fn a_cache_is_filled_with_what_the_task_uses_of_it() {
    assert_eq!(Costs::refill(256 << 10, 0, 1 << 20), 0);
    assert_eq!(Costs::refill(1 << 20, 1_000_000_000, 4_000), 4_000_000);
    assert_eq!(Costs::refill(1_000, 1_000_000_000, 4_000), 1_000_000);
}

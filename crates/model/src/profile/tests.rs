use super::*;
use crate::MachineSpec;

const HEAD: &str = "[profile]\nname = \"mine\"\n";

fn costs(text: &str) -> Costs {
    let profile = Profile::parse(text, "p.toml").unwrap_or_else(|error| panic!("{error}"));
    *profile.costs().expect("a profile of a file has costs")
}

fn error(text: &str) -> String {
    Profile::parse(text, "p.toml").unwrap_err().to_string()
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
    ] {
        assert!(found.starts_with(&want), "{found}\n{want}");
    }
}

#[test]
fn a_recording_keeps_the_whole_of_an_own_profile_and_the_name_of_a_shipped_one() {
    let text = format!("{HEAD}base = \"default-v0\"\n[caches]\ncore = \"1MiB\"\n");
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
fn a_cache_is_filled_with_what_the_task_uses_of_it() {
    assert_eq!(Costs::refill(256 << 10, 0, 1 << 20), 0);
    assert_eq!(Costs::refill(1 << 20, 1_000_000_000, 4_000), 4_000_000);
    assert_eq!(Costs::refill(1_000, 1_000_000_000, 4_000), 1_000_000);
}

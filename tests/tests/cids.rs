//! Policies in cid form: which numbers they are told, on which CPUs what they say takes place, and
//! what is refused.

use model::{EventKind, ExitKind, Kernel, Nanos, Op, Summary, What};
use runslice_tests::call::Call;
use runslice_tests::collect::Collector;
use runslice_tests::run::Run;
use runslice_tests::two_machines::Taker;

const fn ms(count: u64) -> Nanos {
    Nanos::from_millis(count)
}

/// Tasks that run and sleep, move by their own will and fork.
const LOAD: &str = "[task.t]\ncount = 6\n\
    do = \"loop(inf)[ run(2ms), sleep(1ms), setaffinity(self, {0-1}), run(1ms), \
    setaffinity(self, all), setnice(self, 5) ]\"\n\
    [task.parent]\ndo = \"loop(inf)[ fork(child), sleep(5ms) ]\"\n\
    [task.child]\ncount = 0\ndo = \"run(1ms)\"\n";

/// CPU 1 of 4 is gone when the policy comes, and returns; then CPU 2 goes.
const MOVING: &str = "[hotplug.a]\ncpu = 1\noffline = \"1ms\"\nonline = \"40ms\"\n\
    [hotplug.b]\ncpu = 2\noffline = \"60ms\"\nonline = \"80ms\"\n";

struct Asked<'a> {
    policy: &'a str,
    load: &'a str,
    set: &'a [(&'a str, &'a str)],
    attach_after: Nanos,
}

impl Asked<'_> {
    fn run(&self) -> (Taker, Summary) {
        let mut spec = Run {
            cpus: 4,
            until: ms(100),
            set: self.set,
            ..Run::new(self.policy, self.load)
        }
        .spec();
        spec.machine.kernel = Kernel::V7_3;
        spec.attach_after = self.attach_after;
        let mut taker = Taker::default();
        let summary = sim::run(&spec, &mut taker).unwrap_or_else(|error| panic!("{error}"));
        (taker, summary)
    }
}

fn run(policy: &str, set: &[(&str, &str)]) -> (Taker, Summary) {
    Asked {
        policy,
        load: LOAD,
        set,
        attach_after: Nanos::ZERO,
    }
    .run()
}

#[track_caller]
fn assert_prints(summary: &Summary, lines: &[&str]) {
    let mut printed = summary.printed.lines();
    for line in lines {
        assert!(
            printed.any(|it| it.ends_with(line)),
            "{line} in order:\n{}",
            summary.printed
        );
    }
}

#[test]
fn before_init_nobody_finds_numbers_and_then_all_do() {
    let (_, summary) = run("cid", &[]);
    assert_eq!(summary.exit.kind, ExitKind::Unreg, "{:?}", summary.exit);
    assert_prints(
        &summary,
        &[
            "init_cids: 4 cids, this -22",
            "core -1 online 0",
            "cid 0: cpu 0 core 0",
            "llc 0 node 0 shard 0",
            "online 1",
            "cid 3: cpu 3 core 3",
        ],
    );
}

#[test]
fn a_cpu_that_is_offline_has_the_last_number_and_keeps_it() {
    let load = format!("{MOVING}{LOAD}");
    let (taker, summary) = Asked {
        policy: "cid",
        load: &load,
        set: &[],
        attach_after: ms(10),
    }
    .run();
    assert_eq!(summary.exit.kind, ExitKind::Unreg, "{:?}", summary.exit);
    assert_prints(
        &summary,
        &[
            "cid 1: cpu 2 core 1",
            "cid 2: cpu 3 core 2",
            "cid 3: cpu 1 core -1",
            "llc -1 node -1 shard 3",
            "online 0",
            "online cid 3, 1",
            "offline cid 1, 0",
            "online cid 1, 1",
        ],
    );
    let on_it = |event: &&model::Event| event.kind == EventKind::Switch && event.cpu.0 == 1;
    assert!(taker.events.iter().any(|event| on_it(&event)));
}

#[test]
fn the_cores_of_a_cache_are_spread_over_shards_of_the_tables_size() {
    let (_, summary) = run("cid-fixed", &[]);
    assert_eq!(summary.exit.kind, ExitKind::Unreg, "{:?}", summary.exit);
    let told = summary.printed.lines();
    let told = told.filter_map(|line| line.split_once("shard "));
    let shards: Vec<_> = told.map(|(_, shard)| shard).collect();
    assert_eq!(shards, ["0", "0", "2", "2"]);
}

#[test]
fn what_is_said_of_a_cid_takes_place_on_its_cpu() {
    let pinned = "[task.t]\ndo = \"loop(inf)[ run(2ms), sleep(1ms) ]\"\n";
    for (set, cpu) in [
        (vec![("insert_on", "2")], 2),
        (vec![("insert_on", "2"), ("replaces", "1")], 1),
    ] {
        let (taker, summary) = Asked {
            policy: "cid",
            load: pinned,
            set: &set,
            attach_after: Nanos::ZERO,
        }
        .run();
        assert_eq!(summary.exit.kind, ExitKind::Unreg, "{:?}", summary.exit);
        let switches = taker
            .events
            .iter()
            .filter(|it| it.kind == EventKind::Switch);
        let elsewhere = switches.filter(|it| it.cpu.0 != cpu).count();
        assert_eq!(elsewhere, 0, "{set:?}");
    }
}

/// Threads of a core are neighbours as cids. Where their CPUs are no neighbours, too, who takes one
/// number for the other sends a task where it may not run.
#[test]
fn who_takes_a_cpu_for_a_cid_is_found_where_firmware_numbers_threads_in_halves() {
    let load = "[task.t]\ncpus = \"1\"\ndo = \"loop(inf)[ run(1ms), sleep(1ms) ]\"\n";
    let exit = |policy: &str, hardware: Option<&str>| {
        let mut spec = Run {
            cpus: 4,
            until: ms(100),
            ..Run::new(policy, load)
        }
        .spec();
        if let Some(name) = hardware {
            let hardware = model::Hardware::find(name).expect("it is there");
            spec.machine = spec.machine.with_hardware(hardware);
        }
        spec.machine.kernel = Kernel::V7_3;
        let summary = sim::run(&spec, &mut Taker::default());
        summary.unwrap_or_else(|error| panic!("{error}")).exit
    };
    let neighbours = exit("cid-confused", None);
    assert_eq!(neighbours.kind, ExitKind::Unreg, "{neighbours:?}");
    let halves = exit("cid-confused", Some("smt-2x2"));
    assert_eq!(halves.kind, ExitKind::Error, "{halves:?}");
    // CPU 1 has cid 2, and cid 1 is CPU 2.
    let words = "SCX_DSQ_LOCAL[_ON] target CPU 2 not allowed for t";
    assert!(halves.message.starts_with(words), "{halves:?}");
    // One that believes nothing finds all as it should be.
    let checked = exit("cid", Some("smt-2x2"));
    assert_eq!(checked.kind, ExitKind::Unreg, "{checked:?}");
}

/// The kernel's self test `peek_dsq` asks the same of its own queue.
#[test]
fn the_first_task_of_a_queue_is_seen_before_it_is_taken_and_no_other_queue_is_looked_at() {
    let load = "[task.t]\ncount = 6\ndo = \"loop(inf)[ run(2ms), sleep(1ms) ]\"\n";
    let run = |set: &[(&str, &str)]| {
        let (policy, attach_after) = ("cid-peeks", Nanos::ZERO);
        let asked = Asked {
            policy,
            load,
            set,
            attach_after,
        };
        asked.run().1
    };
    let summary = run(&[]);
    let lines: Vec<&str> = summary.printed.lines().collect();
    let pid = |line: &str, head: &str| line.rsplit_once(head).map(|it| it.1.to_owned());
    let mut seen = 0;
    for turn in lines.windows(3).filter(|turn| turn[1].ends_with("took")) {
        let (first, runs) = (pid(turn[0], "first "), pid(turn[2], "runs "));
        assert_eq!(first, runs, "{turn:?}");
        seen += usize::from(first.is_some());
    }
    assert!(seen >= 20, "{seen}: {lines:#?}");
    for (queue, message) in [
        ("57005", "peek on non-existent DSQ 0xdead"),
        (
            "9223372036854775809",
            "peek disallowed on builtin DSQ 0x8000000000000001",
        ),
    ] {
        let exit = run(&[("looks_at", queue)]).exit;
        assert_eq!((exit.kind, &*exit.message), (ExitKind::Error, message));
    }
}

#[test]
fn numbers_that_a_policy_gives_itself_hold_everywhere() {
    let (taker, summary) = run("cid", &[("replaces", "1")]);
    assert_eq!(summary.exit.kind, ExitKind::Unreg, "{:?}", summary.exit);
    assert_prints(&summary, &["cid 0: cpu 3 core -1", "cid 3: cpu 0 core -1"]);
    let used = |cpu| {
        taker
            .events
            .iter()
            .any(|it| it.kind == EventKind::Switch && it.cpu.0 == cpu)
    };
    assert!((0..4).all(used));
}

#[test]
fn wrong_numbers_end_the_policy_with_the_kernels_words() {
    for (set, message) in [
        (("replaces", "2"), "cid 0 assigned to multiple cpus"),
        (("replaces", "3"), "invalid cid 4"),
        (
            ("replaces", "4"),
            "scx_bpf_cid_override: shard_start not increasing at [1]",
        ),
        (("answer", "4"), "invalid cid 4"),
        (("insert_on", "7"), "invalid cid 7"),
    ] {
        let (_, summary) = run("cid", &[set]);
        assert_eq!(
            (summary.exit.kind, &*summary.exit.message),
            (ExitKind::Error, message)
        );
    }
}

#[test]
fn a_policy_in_cid_form_may_neither_speak_of_cpus_nor_write_slices() {
    for (set, what) in [
        (
            ("calls_cpu_only", "1"),
            "calling kernel function scx_bpf_task_cpu is not allowed",
        ),
        (("writes_slice", "1"), "scx_bpf_task_set_slice()"),
    ] {
        let exit = run("cid", &[set]).1.exit;
        let fault = exit.fault.unwrap_or_default();
        assert!(fault.contains(what), "{}: {fault}", exit.message);
    }
}

#[test]
fn a_policy_that_does_not_follow_cpus_ends_when_one_goes() {
    let load = format!("[hotplug.a]\ncpu = 3\noffline = \"20ms\"\n{LOAD}");
    let (_, summary) = Asked {
        policy: "cid-fixed",
        load: &load,
        set: &[],
        attach_after: Nanos::ZERO,
    }
    .run();
    assert_eq!(summary.exit.kind, ExitKind::UnregKern);
    assert_eq!(
        summary.exit.message,
        "cpu 3 going offline, exiting scheduler"
    );
}

#[test]
fn the_lesson_keeps_the_classes_on_their_cpus() {
    let load = "[task.urgent]\ncount = 2\nnice = -5\ndo = \"loop(inf)[ run(2ms), sleep(3ms) ]\"\n\
        [task.hog]\ncount = 4\ndo = \"run(inf)\"\n\
        [task.pinned]\ncpus = \"0\"\ndo = \"loop(inf)[ run(1ms), sleep(9ms) ]\"\n";
    for (policy_set, first) in [(vec![], 1), (vec![("urgent_percent", "50")], 2)] {
        let asked = Asked {
            policy: "partition",
            load,
            set: &policy_set,
            attach_after: Nanos::ZERO,
        };
        let (taker, summary) = asked.run();
        assert_eq!(summary.exit.kind, ExitKind::Unreg, "{:?}", summary.exit);
        let group = |task: model::TaskId| {
            let mut new = taker.events.iter();
            let new = new.find(|it| it.kind == EventKind::New && it.task == task);
            match new.map(model::Event::what) {
                Some(What::New { group, .. }) => group,
                other => panic!("{other:?}"),
            }
        };
        let runs = taker.events.iter();
        let runs = runs.filter(|it| it.kind == EventKind::Switch && it.task != model::TaskId::NONE);
        let mut seen = [0; 3];
        for switch in runs {
            let group = group(switch.task);
            seen[group as usize] += 1;
            let is_right = match group {
                1 => switch.cpu.0 >= first,
                _ => switch.cpu.0 < first,
            };
            assert!(is_right, "group {group} on CPU {}", switch.cpu.0);
        }
        assert!(seen.iter().all(|turns| *turns > 3), "{seen:?}");
    }
}

#[test]
fn nobody_complains_of_pointers_that_are_cast() {
    for policy in ["cid", "partition"] {
        let mut spec = Run::new(policy, LOAD).spec();
        spec.machine.kernel = Kernel::V7_3;
        let image = sim::image(&spec.policy, &spec.machine).expect("it links");
        assert!(image.has_arena());
        assert_eq!(image.uncast_accesses(), [], "{policy}");
    }
}

fn refusal(policy: &str, kernel: Kernel) -> String {
    let mut spec = Run::new(policy, LOAD).spec();
    spec.machine.kernel = kernel;
    let error = sim::check_policy(&spec.policy, &spec.machine).expect_err("a refusal");
    let mut text = error.to_string();
    let mut source = std::error::Error::source(&error);
    while let Some(error) = source {
        text += &format!(": {error}");
        source = error.source();
    }
    text
}

#[test]
fn kernels_refuse_a_policy_without_an_arena_and_one_that_they_are_too_old_for() {
    for (policy, kernel, what) in [
        (
            "cid-no-arena",
            Kernel::V7_3,
            "cid-form scheduler must use a BPF arena map",
        ),
        ("cid", Kernel::V7_1, "sched_ext_ops_cid"),
        ("cid", Kernel::V7_2, "init_cids"),
    ] {
        let said = refusal(policy, kernel);
        assert!(said.contains(what), "{policy} on {kernel:?}: {said}");
    }
}

/// What a 7.3.4 told a policy in cid form.
const RECORDED: &str = include_str!("../golden/traces/cid73.txt");

/// Tasks that go through what each section of the recording is about; `tvA` is its task.
const SCENARIOS: [(&str, &str); 6] = [
    (
        "fork",
        "[task.main]\ncpus = \"1\"\ndo = \"run(3ms), fork(tvA), run(inf)\"\n\
        [task.tvA]\ncount = 0\ncpus = \"0-1\"\ndo = \"run(1ms)\"\n",
    ),
    (
        "sleep",
        "[task.tvA]\ndo = \"run(1ms), sleep(2ms), run(1ms)\"\n\
        [task.tvB]\ncpus = \"1\"\ndo = \"sleep(1s)\"\n",
    ),
    ("turn", HOGS),
    (
        "move",
        "[cgroup.a]\n[task.tvA]\ncpus = \"1\"\ndo = \"run(inf)\"\n\
        [task.tvB]\ncpus = \"1\"\ndo = \"run(inf)\"\n\
        [task.main]\ncpus = \"0\"\ndo = \"sleep(25ms), cgroup_move(tvA, a), suspend\"\n",
    ),
    (
        "nice",
        "[task.tvA]\ncpus = \"1\"\ndo = \"run(inf)\"\n\
        [task.main]\ncpus = \"0\"\ndo = \"sleep(5ms), setnice(tvA, 5), suspend\"\n",
    ),
    (
        "affinity",
        "[task.tvA]\ndo = \"run(inf)\"\n\
        [task.main]\ncpus = \"1\"\ndo = \"sleep(5ms), setaffinity(tvA, {1}), suspend\"\n",
    ),
];

const HOGS: &str = "[task.tvA]\ncpus = \"1\"\ndo = \"run(inf)\"\n\
    [task.tvB]\ncpus = \"1\"\ndo = \"run(inf)\"\n";

/// A callback and its first word, as the recording has them.
fn as_recorded(call: &Call) -> (Op, Option<u64>) {
    let has_word = !matches!(
        call.op,
        Op::Running | Op::Enable | Op::Disable | Op::CgroupPrepMove | Op::CgroupMove
    );
    (call.op, has_word.then_some(call.a))
}

fn recorded_line(line: &str) -> (Op, Option<u64>) {
    let (name, word) = line.split_once(' ').map_or((line, None), |(name, word)| {
        let word = word
            .strip_prefix("0x")
            .map_or_else(|| word.parse(), |digits| u64::from_str_radix(digits, 16));
        (name, Some(word.expect("a number")))
    });
    (Op::named(name, true).expect("a callback"), word)
}

#[test]
fn tasks_go_through_what_a_kernel_recorded() {
    for (name, load) in SCENARIOS {
        let head = format!("-- {name}: ");
        let section = RECORDED.split_once(&head).expect("the section").1;
        let lines = section.lines().skip(1).take_while(|line| !line.is_empty());
        let wanted: Vec<_> = lines.map(recorded_line).collect();
        let mut spec = Run {
            cpus: 2,
            hz: 250,
            until: ms(200),
            ..Run::new("cid-records", load)
        }
        .spec();
        spec.machine.kernel = Kernel::V7_3;
        let mut collector = Collector::default();
        let summary = sim::run(&spec, &mut collector).unwrap();
        assert_eq!(
            summary.exit.kind,
            ExitKind::Unreg,
            "{name}: {:?}",
            summary.exit
        );
        let its = collector.calls.iter().filter(|call| {
            let other = matches!(call.op, Op::Dispatch | Op::UpdateIdle);
            call.task.name() == Some("tvA") && !other
        });
        let calls: Vec<_> = its.map(as_recorded).collect();
        let is_there = calls.windows(wanted.len()).any(|calls| calls == wanted);
        assert!(is_there, "{name}: {wanted:?}\nis not in\n{calls:#?}");
    }
}

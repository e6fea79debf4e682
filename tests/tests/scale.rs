//! What an event costs, in instructions of the processor and not in time, and what a task costs in
//! memory: neither may grow with tasks that sleep or CPUs that idle.
//!
//! Each figure comes from processes of their own: this test program, started again with one test
//! that does as the environment says. Counts are the difference between a longer and a shorter
//! run, so that loading, translating and creating tasks are no part of them.

use std::collections::BTreeMap;
use std::process::Command;
use std::{env, fs, thread};

use model::{Event, EventKind, EventMask, Header, Interleave, Nanos, Profile, SimTime, Sink};
use runslice_tests::run::Run;
use runslice_tests::speed::Case;
use runslice_tests::usage::memory;
use sim::Simulation;
use stats::Metrics;
use traces::JsonLines;
use workload::RunSpec;

/// Says to a child process what to do; see `child`.
const CHILD: &str = "RUNSLICE_SCALE_CHILD";

/// Instructions a switch that were recorded. `UPDATE_GOLDEN=1` writes them anew.
const RECORDED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/golden/instructions.txt");

/// The same for a tick of a machine where all takes time.
const RECORDED_TICKS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/golden/ticks.txt");

/// The same for a switch of runs that do more than others: see `mode`.
const RECORDED_MODES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/golden/modes.txt");

/// The policies whose switches are counted, and in the shorter of two runs about how many; of hogs
/// fewer, because slices are longer. To translate the shipped ones takes some seconds.
const COUNTED: [(&str, u64); 7] = [
    ("vtime", 40_000),
    ("fifo", 10_000),
    ("mlfq", 10_000),
    ("o1", 10_000),
    ("staircase", 10_000),
    ("elsc", 10_000),
    ("eevdf", 10_000),
];

/// How far a count may lie above the recorded one, per cent.
const MORE: u64 = 3;

/// How far below. Another compiler may move it; what was gained is to be recorded.
const LESS: u64 = 8;

/// Does not keep what it counts.
#[derive(Default)]
struct Counter(u64);

impl Sink for Counter {
    fn wants(&self) -> EventMask {
        EventMask::ALL
    }

    fn begin(&mut self, _: &Header) {}

    fn events(&mut self, events: &[Event]) {
        self.0 += events.len() as u64;
    }

    fn finish(&mut self, _: SimTime) {}
}

/// Four tasks that run and sleep, and `sleepers` that went to sleep at the start, for `ms`
/// simulated milliseconds; returns the number of events.
fn among_sleepers(cpus: u16, sleepers: u32, ms: u64) -> u64 {
    let workload = format!(
        "[task.busy]\ncount = 4\ndo = \"loop(inf)[ run(500us), sleep(300us) ]\"\n\
         [task.sleeper]\ncount = {sleepers}\ndo = \"sleep(1000s)\""
    );
    let run = Run {
        cpus,
        hz: 250,
        until: Nanos::from_millis(ms),
        ..Run::new("vtime", &workload)
    };
    let mut counter = Counter::default();
    let summary = run.feed(&mut counter);
    assert!(!summary.exit.kind.is_error(), "{:?}", summary.exit);
    counter.0
}

/// The runs by which speed is measured.
fn cases() -> BTreeMap<String, Case> {
    let cases = [
        Case::sleepers(1, 10),
        Case::sleepers(4, 100),
        Case::sleepers(64, 1_000),
        Case::hogs(4, 1_000),
    ];
    let named = cases.into_iter().map(|case| (case.to_string(), case));
    named.collect()
}

/// Not a test of its own: another process runs it, and it prints a number behind `result `.
#[test]
fn child() {
    let Ok(task) = env::var(CHILD) else { return };
    let words: Vec<&str> = task.split(',').collect();
    let number = |at: usize| -> u64 { words[at].parse().expect("a number") };
    let result = match words[0] {
        "sleepers" => among_sleepers(number(1) as u16, number(2) as u32, number(3)),
        "memory" => {
            among_sleepers(number(1) as u16, number(2) as u32, number(3));
            memory("VmHWM:")
        }
        "switches" => {
            let (policy, case) = (words[1], cases()[words[2]]);
            let end = case.time_for(number(3));
            let spec = match policy {
                "vtime" => case.spec(end),
                other => case.spec_under(other, end),
            };
            metrics_of(&spec).report().all.runs
        }
        "ticks" => ticks(words[1], number(2) as u16, number(3)),
        "mode" => mode(words[1], number(2)),
        "trace" => trace(number(1)),
        other => panic!("no task is called {other}"),
    };
    println!("\nresult {result}");
}

/// Eight hogs a CPU for `ms` simulated milliseconds, which are as many ticks of each CPU, on a
/// machine where all takes time; returns the number of ticks.
fn ticks(policy: &str, cpus: u16, ms: u64) -> u64 {
    let workload = format!("[task.hog]\ncount = {}\ndo = \"run(inf)\"", 8 * cpus);
    let run = Run {
        cpus,
        until: Nanos::from_millis(ms),
        ..Run::new(policy, &workload)
    };
    let mut spec = run.spec();
    spec.machine.profile = Profile::DefaultV0;
    metrics_of(&spec);
    ms * u64::from(cpus)
}

/// Runs with native code from the begin, so that no translation comes between the shorter and the
/// longer of two runs.
fn metrics_of(spec: &RunSpec) -> Metrics {
    let mut metrics = Metrics::new();
    make(Simulation::new(spec).with_sink(&mut metrics));
    metrics
}

fn make(run: Simulation<'_>) {
    let options = sim::Options {
        backend: bpf::Backend::Jit,
        ..sim::Options::default()
    };
    let summary = run.with_options(options).start().map(|it| it.summary);
    let summary = summary.expect("the run can be made");
    assert!(!summary.exit.kind.is_error(), "{:?}", summary.exit);
}

/// What runs may be asked to do beside.
const MODES: [&str; 6] = ["plain", "decisions", "costs", "timed", "stalls", "races"];

/// Hears of events, and counts switches.
struct Listener {
    wants: EventMask,
    switches: u64,
}

impl Sink for Listener {
    fn wants(&self) -> EventMask {
        self.wants.with(EventKind::Switch)
    }

    fn begin(&mut self, _: &Header) {}

    fn events(&mut self, events: &[Event]) {
        let switches = events.iter().filter(|it| it.kind == EventKind::Switch);
        self.switches += switches.count() as u64;
    }

    fn finish(&mut self, _: SimTime) {}
}

/// Switches of `mlfq` in a run that does what `name` says; about as many are asked for.
fn mode(name: &str, switches: u64) -> u64 {
    let case = Case::sleepers(4, 100);
    let mut spec = case.spec_under("mlfq", case.time_for(switches));
    let mut listener = Listener {
        wants: EventMask::NONE,
        switches: 0,
    };
    match name {
        "plain" => {}
        "decisions" => listener.wants = EventMask::ALL.union(EventMask::DECISIONS),
        "costs" => spec.machine.profile = Profile::DefaultV0,
        "timed" => {
            spec.machine.profile = Profile::DefaultV0;
            spec.machine.interleave = Some(Interleave::Timed);
        }
        "stalls" | "races" => {
            spec.machine.interleave = Some(Interleave::Seeded {
                seed: 1,
                every: 500,
                stall: Nanos::from_micros(20),
            });
        }
        other => panic!("no mode is called {other}"),
    }
    let run = Simulation::new(&spec).with_sink(&mut listener);
    make(if name == "races" {
        run.looking_for_races()
    } else {
        run
    });
    listener.switches
}

/// Writes a trace of so many events to nobody; returns the growth of memory behind the first
/// tenth, bytes.
fn trace(events: u64) -> u64 {
    struct Watched {
        lines: JsonLines<std::io::Sink>,
        seen: u64,
        tenth: u64,
        early: Option<u64>,
    }
    impl Sink for Watched {
        fn wants(&self) -> EventMask {
            EventMask::ALL
        }

        fn begin(&mut self, header: &Header) {
            self.lines.begin(header);
        }

        fn events(&mut self, events: &[Event]) {
            self.lines.events(events);
            self.seen += events.len() as u64;
            if self.seen >= self.tenth {
                self.early.get_or_insert_with(|| memory("VmHWM:"));
            }
        }

        fn finish(&mut self, end: SimTime) {
            self.lines.finish(end);
        }
    }
    let case = Case::sleepers(4, 100);
    let mut watched = Watched {
        lines: JsonLines::new(std::io::sink()),
        seen: 0,
        tenth: events / 10,
        early: None,
    };
    // There are at least six events for each switch to a task.
    let summary = sim::run(&case.spec(case.time_for(events / 6)), &mut watched);
    assert!(!summary.expect("the run can be made").exit.kind.is_error());
    let Watched { seen, early, .. } = watched;
    assert!(seen >= events, "only {seen} events");
    // The kernel sums it up from counters of each CPU: it may be some pages less later.
    memory("VmHWM:").saturating_sub(early.expect("a tenth of the events came"))
}

fn command(program: &str, task: &str) -> Command {
    let own = env::current_exe().expect("this test program");
    let mut command = Command::new(program);
    if program == "valgrind" {
        command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
        command.arg(&own);
    }
    command
        .args(["--exact", "child", "--nocapture", "--test-threads=1"])
        .env(CHILD, task);
    command
}

/// What follows `word` in a text.
fn number_behind(text: &str, word: &str) -> Option<u64> {
    let (_, rest) = text.split_once(word)?;
    rest.split_whitespace().next()?.parse().ok()
}

/// Runs `task` in a process of its own; returns what it printed.
fn result_of(task: &str) -> u64 {
    let own = env::current_exe().expect("this test program");
    let output = command(&own.to_string_lossy(), task).output();
    let output = output.expect("a child process");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{task}: {text}");
    number_behind(&text, "result ").unwrap_or_else(|| panic!("{task}: {text}"))
}

/// Runs `task` under valgrind; returns its result and the instructions that it took.
fn counted(task: &str) -> (u64, u64) {
    let output = command("valgrind", task).output();
    let output = output.expect("valgrind is not there: run `scripts/setup.sh long`");
    let (text, log) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success(), "{task}: {text}{log}");
    let count = number_behind(&log, "Collected :");
    let result = number_behind(&text, "result ");
    result
        .zip(count)
        .unwrap_or_else(|| panic!("{task}: {text}{log}"))
}

/// Instructions for each of what `task` counts, between a shorter and a longer run.
fn instructions_each(shorter: &str, longer: &str) -> u64 {
    let (few, start) = counted(shorter);
    let (many, end) = counted(longer);
    (end - start) / (many - few)
}

fn must_be_optimised() {
    if cfg!(debug_assertions) {
        panic!("counts of this build mean nothing: run with --release");
    }
}

#[test]
#[ignore = "takes minutes, valgrind and an optimised build: make test-long"]
fn an_event_costs_the_same_among_any_number_of_tasks_that_sleep_and_cpus_that_idle() {
    must_be_optimised();
    let each = |cpus: u16, sleepers: u32| {
        let task = |ms: u64| format!("sleepers,{cpus},{sleepers},{ms}");
        let cost = instructions_each(&task(2_000), &task(4_000));
        println!("{cpus} CPUs, {sleepers} sleeping tasks: {cost} instructions an event");
        cost
    };
    let few = each(4, 10);
    for (cpus, sleepers) in [
        (4, 1_000),
        (4, 99_000),
        (64, 10),
        (1_024, 10),
        (1_024, 99_000),
    ] {
        let cost = each(cpus, sleepers);
        assert!(cost * 10 <= few * 13, "{cost} instead of {few}");
    }
}

#[test]
#[ignore = "takes minutes, valgrind and an optimised build: make test-long"]
fn a_switch_takes_as_many_instructions_as_recorded() {
    must_be_optimised();
    let of_policy = |(policy, switches): (&str, u64)| {
        let count = |name: &String| {
            let task = |switches: u64| format!("switches,{policy},{name},{switches}");
            let count = instructions_each(&task(switches), &task(2 * switches));
            format!("{policy} {name}: {count}\n")
        };
        cases().keys().map(count).collect::<String>()
    };
    // Counts do not depend on what else runs.
    let found: String = thread::scope(|scope| {
        let counting = COUNTED.map(|counted| scope.spawn(move || of_policy(counted)));
        let found = counting.map(|thread| thread.join().expect("the counts of a policy"));
        found.concat()
    });
    compare_with_recorded(&found, RECORDED);
}

#[test]
#[ignore = "takes a minute, valgrind and an optimised build: make test-long"]
fn a_tick_takes_as_many_instructions_as_recorded() {
    must_be_optimised();
    let cases = [("mlfq", 1), ("o1", 1), ("mlfq", 4), ("o1", 4)];
    let counts = cases.map(|(policy, cpus)| {
        let task = |ms: u64| format!("ticks,{policy},{cpus},{ms}");
        let count = instructions_each(&task(1_000), &task(6_000));
        format!("{policy} {cpus}x{}: {count}\n", 8 * cpus)
    });
    compare_with_recorded(&counts.concat(), RECORDED_TICKS);
}

#[test]
#[ignore = "takes a minute, valgrind and an optimised build: make test-long"]
fn a_switch_of_each_mode_takes_as_many_instructions_as_recorded() {
    must_be_optimised();
    let counts = MODES.map(|name| {
        let task = |switches: u64| format!("mode,{name},{switches}");
        let count = instructions_each(&task(2_000), &task(4_000));
        format!("{name}: {count}\n")
    });
    compare_with_recorded(&counts.concat(), RECORDED_MODES);
}

/// Compares lines of a name and a count with those that were recorded in `file`.
fn compare_with_recorded(found: &str, file: &str) {
    print!("{found}");
    if env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(file, found).expect("the recorded counts can be written");
    }
    let recorded = fs::read_to_string(file).expect("recorded counts");
    let counts = |text: &str| -> Vec<(String, u64)> {
        let lines = text.lines().filter_map(|line| line.split_once(": "));
        lines
            .map(|(name, count)| (name.to_owned(), count.parse().expect("a count")))
            .collect()
    };
    let (found, recorded) = (counts(found), counts(&recorded));
    assert_eq!(found.len(), recorded.len(), "other cases than recorded");
    for ((name, now), (known, then)) in found.into_iter().zip(recorded) {
        assert_eq!(name, known, "other cases than recorded");
        assert!(
            now * 100 <= then * (100 + MORE) && now * 100 >= then * (100 - LESS),
            "{name}: {now} instructions each, recorded are {then}. If that is meant, record it: \
             UPDATE_GOLDEN=1"
        );
    }
}

#[test]
fn a_task_takes_at_most_two_kib() {
    // A kernel counts pages in batches for each CPU, so that two peaks are off by some hundred KiB,
    // which is some bytes a task. Each is at least what the process had.
    let least = |task: &str| (0..5).map(|_| result_of(task)).min().expect("five");
    let few = least("memory,4,1000,100");
    let many = least("memory,4,99000,100");
    let each = (many - few) / 98_000;
    println!("{each} bytes a task");
    assert!(each <= 2_048, "{each} bytes a task");
}

#[test]
#[ignore = "takes minutes: make test-long"]
fn a_trace_of_a_hundred_million_events_is_written_in_constant_memory() {
    must_be_optimised();
    let growth = result_of("trace,100000000");
    println!("{growth} bytes more after 10^8 events than after 10^7");
    assert!(growth <= 1 << 20, "{growth} bytes more");
}

//! Faulty policies, each with one fault: what `runslice explain` finds in their runs.

use std::fs;
use std::path::Path;

use model::{Event, EventKind, EventMask, Header, Nanos, SimTime, Sink, Text};
use runslice_tests::run::Run;
use sim::{Backend, Options};
use stats::why::{Act, Fault, Finding, Observer};
use stats::{JsonLines, Tee, TraceHash};

/// A policy of `policies/faulty-*.bpf.c`, a load that shows its fault, and what is to be found.
struct Case {
    policy: &'static str,
    cpus: u16,
    seconds: u64,
    workload: &'static str,
    fault: Fault,
    /// The task, or the group, that suffers.
    victim: &'static str,
}

const SHELLS: &str = "[task.shell]\ncount = 6\ndo = \"loop(inf)[ run(1ms), sleep(3ms) ]\"\n";
const HOGS: &str = "[task.hog]\ncount = 3\ndo = \"run(inf)\"\n";
const BOUND: &str = "[task.bound]\ncpus = \"0\"\ndo = \"loop(inf)[ run(1ms), sleep(3ms) ]\"\n\
    [task.shell]\ncount = 3\ndo = \"loop(inf)[ run(1ms), sleep(3ms) ]\"\n";

const CASES: &[Case] = &[
    case("drops", 2, SHELLS, Fault::Lost, "shell"),
    case("unread", 2, SHELLS, Fault::UnreadQueue, "shell"),
    case("stops", 2, SHELLS, Fault::UnreadQueue, "shell"),
    case("wrong-cpu", 2, BOUND, Fault::CpuNotAllowed, "bound"),
    case("cpu-99", 2, SHELLS, Fault::NoSuchCpu, "shell"),
    case("twice", 2, SHELLS, Fault::InsertedTwice, "shell"),
    case(
        "no-kick",
        2,
        "[task.shell]\ncpus = \"0\"\ndo = [\"setaffinity(shell, all), sleep(10ms), run(1s)\"]\n\
         [task.hog]\ncpus = \"0\"\ndo = \"run(inf)\"\n",
        Fault::ForgottenKick,
        "shell",
    ),
    case("endless-slice", 2, HOGS, Fault::CpuHeld, "hog"),
    case("endless-loop", 2, SHELLS, Fault::EndlessLoop, "shell"),
    case(
        "affinity",
        2,
        "[task.shell]\ncpus = \"0\"\n\
         do = [\"loop(5)[ run(7ms), setaffinity(moved, {0}), run(7ms), \
         setaffinity(moved, all) ]\", \
         \"run(inf)\"]\n[task.hog]\ncount = 3\ndo = \"run(inf)\"\n\
         [task.moved]\ndo = \"run(inf)\"\n",
        Fault::Lost,
        "moved",
    ),
    case(
        "hotplug",
        3,
        "[hotplug.h]\ncpu = 2\noffline = \"50ms\"\n\
         [task.shell]\ncount = 12\ndo = \"loop(inf)[ run(3ms), sleep(1ms) ]\"\n",
        Fault::UnreadQueue,
        "shell",
    ),
    case(
        "real-time",
        1,
        "[task.shell]\ncount = 3\ndo = \"loop(inf)[ run(3ms), sleep(1ms) ]\"\n\
         [task.rt]\npolicy = \"fifo:50\"\ndo = \"loop(inf)[ sleep(50ms), run(1ms) ]\"\n",
        Fault::Lost,
        "shell",
    ),
    case(
        "vtime-wrap",
        1,
        "[task.early]\ncount = 2\ndo = \"run(inf)\"\n\
         [task.late]\ndo = [\"sleep(1500ms), run(inf)\"]\n",
        Fault::PassedOver,
        "late",
    ),
    case(
        "stream",
        1,
        "[task.hog]\ndo = \"run(inf)\"\n\
         [task.short]\ncount = 3\nnice = -5\ndo = \"loop(inf)[ run(2ms), sleep(1ms) ]\"\n",
        Fault::PassedOver,
        "hog",
    ),
    case("dead-queue", 2, SHELLS, Fault::UnreadQueue, "shell"),
    case("other-cpu", 2, BOUND, Fault::UnreachableQueue, "bound"),
    case("freed", 1, HOGS, Fault::Lost, "hog"),
    case("timer", 2, SHELLS, Fault::UnreadQueue, "shell"),
    case(
        "weight",
        1,
        "[task.heavy]\ncount = 2\nnice = -5\ndo = \"run(inf)\"\n\
         [task.light]\ncount = 2\nnice = 5\ndo = \"run(inf)\"\n",
        Fault::UnfairShare,
        "heavy",
    ),
    case(
        "last",
        2,
        "[task.hog]\ndo = \"run(inf)\"\n",
        Fault::UnreadQueue,
        "hog",
    ),
];

/// Found while the verdicts were read for mistakes; they are not part of the twenty.
const MORE: &[Case] = &[
    case("renews", 1, HOGS, Fault::CpuHeld, "hog"),
    case("stays", 1, HOGS, Fault::CpuHeld, "hog"),
    case("tires", 2, SHELLS, Fault::UnreadQueue, "shell"),
    case("quits", 2, SHELLS, Fault::OwnError, "shell"),
];

const fn case(
    policy: &'static str,
    cpus: u16,
    workload: &'static str,
    fault: Fault,
    victim: &'static str,
) -> Case {
    Case {
        policy,
        cpus,
        seconds: 4,
        workload,
        fault,
        victim,
    }
}

/// The lines of the source that say "the fault", from 1.
fn marked(policy: &str) -> Vec<u32> {
    let name = format!("policies/faulty-{policy}.bpf.c");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    let text = fs::read_to_string(path).expect("the source is there");
    let lines = (1..).zip(text.lines());
    let marked = lines.filter(|(_, line)| line.contains("/* the fault */"));
    marked.map(|(number, _)| number).collect()
}

fn explain(case: &Case) -> Option<Finding> {
    let policy = format!("faulty-{}", case.policy);
    let run = Run {
        cpus: case.cpus,
        until: Nanos::from_secs(case.seconds),
        ..Run::new(&policy, case.workload)
    };
    let mut observer = Observer::new(0, None);
    let _summary = run.feed(&mut observer);
    observer.finding()
}

fn line(act: &Act) -> u32 {
    act.place.as_ref().map_or(0, |place| place.line)
}

/// What is wrong with what was found, or nothing.
fn differs(case: &Case) -> Result<(), String> {
    let finding = explain(case).ok_or("nothing was found")?;
    if finding.fault != case.fault {
        return Err(format!(
            "{}, wanted {}: {finding:?}",
            finding.fault.word(),
            case.fault.word()
        ));
    }
    let victim = finding.victim.as_ref().ok_or("no victim")?;
    let group = victim.name.split('.').next();
    if group != Some(case.victim) {
        return Err(format!(
            "the victim is {}, wanted {}",
            victim.name, case.victim
        ));
    }
    let culprit = finding.culprit.as_ref().ok_or("no culprit")?;
    match marked(case.policy).contains(&line(culprit)) {
        true => Ok(()),
        false => Err(format!(
            "the line is {}, wanted {:?}: {culprit:?}",
            line(culprit),
            marked(case.policy)
        )),
    }
}

#[test]
fn every_fault_is_named_with_its_victim_and_its_line() {
    let wrong = CASES.iter().chain(MORE).filter_map(|case| {
        let wrong = differs(case).err()?;
        Some(format!("{}: {wrong}", case.policy))
    });
    let wrong: Vec<_> = wrong.collect();
    assert!(
        wrong.is_empty(),
        "{} of {}:\n{}",
        wrong.len(),
        CASES.len() + MORE.len(),
        wrong.join("\n")
    );
}

/// A heavier task that may use one busy CPU only gets less than a light one with a CPU of its
/// own, and nothing is unfair about that.
#[test]
fn shares_are_compared_among_tasks_that_may_use_the_same_cpus() {
    let load = "[task.heavy]\nnice = -5\ncount = 2\ncpus = \"0\"\ndo = \"run(inf)\"\n\
        [task.light]\nnice = 5\ncpus = \"1\"\ndo = \"run(inf)\"\n";
    let run = Run {
        cpus: 2,
        until: Nanos::from_secs(4),
        ..Run::new("fifo", load)
    };
    let mut observer = Observer::new(0, None);
    let _summary = run.feed(&mut observer);
    assert_eq!(observer.finding(), None);
}

#[test]
fn a_policy_without_a_fault_is_not_accused() {
    let loads = [SHELLS, HOGS, BOUND];
    for (policy, load) in ["fifo", "mlfq"]
        .iter()
        .flat_map(|it| loads.map(|load| (*it, load)))
    {
        let run = Run {
            cpus: 2,
            until: Nanos::from_secs(4),
            ..Run::new(policy, load)
        };
        let mut observer = Observer::new(3, None);
        let _summary = run.feed(&mut observer);
        assert_eq!(observer.finding(), None, "{policy}: {load}");
        let worst = observer.worst();
        assert!(worst.len() == 3 && worst[0].span >= worst[2].span);
    }
}

/// All events and texts of a run.
#[derive(Default, PartialEq)]
struct All {
    events: Vec<Event>,
    texts: Vec<Text>,
}

impl Sink for All {
    fn wants(&self) -> EventMask {
        EventMask::ALL.union(EventMask::DECISIONS)
    }

    fn begin(&mut self, _: &Header) {}

    fn events(&mut self, events: &[Event]) {
        self.events.extend_from_slice(events);
    }

    fn text(&mut self, text: &Text) {
        self.texts.push(text.clone());
    }

    fn finish(&mut self, _: SimTime) {}
}

const MIXED: &str = "[task.shell]\ncount = 5\n\
    do = \"loop(inf)[ run(exp(1ms)), sleep(exp(2ms)) ]\"\n\
    [task.hog]\ncount = 3\ndo = \"run(inf)\"\n";

#[test]
fn decisions_do_not_depend_on_what_executes_the_policy() {
    for policy in [
        "fifo",
        "mlfq",
        "faulty-vtime-wrap",
        "faulty-dead-queue",
        "reenqueues",
    ] {
        let run = Run {
            cpus: 2,
            until: Nanos::from_millis(300),
            ..Run::new(policy, MIXED)
        };
        let on = |backend| {
            let mut all = All::default();
            let options = Options {
                backend,
                ..Options::default()
            };
            let summary = sim::run_with(&run.spec(), &mut all, options).expect("it runs");
            (all, summary)
        };
        let (interpreted, native) = (on(Backend::Interpreter), on(Backend::Jit));
        assert!(interpreted == native, "{policy}");
        let made = |kind| interpreted.0.events.iter().any(|event| event.kind == kind);
        assert!(made(EventKind::Insert), "{policy}");
    }
}

#[test]
fn a_run_is_the_same_whether_or_not_somebody_asks_for_decisions() {
    for policy in ["fifo", "mlfq", "faulty-stream"] {
        let run = Run {
            cpus: 2,
            until: Nanos::from_millis(300),
            ..Run::new(policy, MIXED)
        };
        let (mut alone, mut beside, mut all) = (TraceHash::new(), TraceHash::new(), All::default());
        let plain = run.feed(&mut alone);
        let asked = run.feed(&mut Tee::new(vec![&mut beside, &mut all]));
        assert_eq!(
            (alone.value(), alone.count()),
            (beside.value(), beside.count()),
            "{policy}"
        );
        assert_eq!(plain, asked, "{policy}");
    }
}

#[test]
fn a_file_with_decisions_says_what_the_run_said() {
    let case = CASES
        .iter()
        .find(|case| case.policy == "unread")
        .expect("it is there");
    let run = Run {
        cpus: case.cpus,
        until: Nanos::from_millis(500),
        ..Run::new("faulty-unread", case.workload)
    };
    let (mut observer, mut file) = (
        Observer::new(2, None),
        JsonLines::with_decisions(Vec::new()),
    );
    let _summary = run.feed(&mut Tee::new(vec![&mut observer, &mut file]));
    let bytes = file.close().expect("memory takes everything");
    let mut again = Observer::new(2, None);
    stats::replay(&*bytes, &mut again).expect("the file is whole");
    assert!(again.finding().is_some());
    assert_eq!(again.finding(), observer.finding());
    // Nothing can be said without decisions, and that is said.
    let (mut plain, mut blind) = (JsonLines::new(Vec::new()), Observer::new(2, None));
    let _summary = run.feed(&mut plain);
    let bytes = plain.close().expect("memory takes everything");
    stats::replay(&*bytes, &mut blind).expect("the file is whole");
    assert!(!blind.has_decisions());
    assert!(
        blind
            .finding()
            .is_none_or(|finding| finding.fault == Fault::Unknown)
    );
}

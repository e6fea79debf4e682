//! Faulty policies, each with one fault: what `runslice explain` finds in their runs.

use std::fs;
use std::path::Path;

use explain::why::{Act, Dumped, Fault, Finding, Observer, Right, Standing, explain_dumps};
use model::{Event, EventKind, EventMask, Header, Nanos, SimTime, Sink, Sliced, Text};
use runslice_tests::faulty::{
    BOUND, CASES, Case, HOGS, KEPT_ASIDE, LATER, MORE, SHELLS, WRONG_LINES, marked,
};
use runslice_tests::run::Run;
use sim::{Backend, Options, Simulation};
use traces::{JsonLines, Tee, TraceHash};

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
    let known = WRONG_LINES
        .iter()
        .any(|it| *it == (case.policy, line(culprit)));
    if marked(case.policy).contains(&line(culprit)) || known {
        Ok(())
    } else {
        Err(format!(
            "the line is {}, wanted {:?}: {culprit:?}",
            line(culprit),
            marked(case.policy)
        ))
    }
}

#[test]
fn every_fault_is_named_with_its_victim_and_its_line() {
    let all = || {
        let first = CASES.iter().chain(MORE);
        first.chain(KEPT_ASIDE).chain(LATER)
    };
    let wrong = all().filter_map(|case| {
        let wrong = differs(case).err()?;
        Some(format!("{}: {wrong}", case.policy))
    });
    let wrong: Vec<_> = wrong.collect();
    assert!(
        wrong.is_empty(),
        "{} of {}:\n{}",
        wrong.len(),
        all().count(),
        wrong.join("\n")
    );
}

/// Lacks what programs write into tasks, as the events of a real kernel do.
struct Unwritten(Observer);

impl Sink for Unwritten {
    fn wants(&self) -> EventMask {
        self.0.wants()
    }

    fn begin(&mut self, header: &Header) {
        self.0.begin(header);
    }

    fn events(&mut self, events: &[Event]) {
        let is_written = |event: &Event| {
            event.kind == EventKind::Slice && event.words().b >> 32 == Sliced::Set as u64
        };
        let rest: Vec<Event> = events
            .iter()
            .filter(|event| !is_written(event))
            .copied()
            .collect();
        self.0.events(&rest);
    }

    fn text(&mut self, text: &Text) {
        self.0.text(text);
    }

    fn finish(&mut self, end: SimTime) {
        self.0.finish(end);
    }
}

/// A real-time task interrupts whoever runs, so that no turn is long; and the recording does not
/// have the store that renews the slice. So it was in a VM of 7.2.
#[test]
fn who_holds_a_cpu_longer_than_its_slice_is_seen_without_the_store() {
    let load = format!(
        "{HOGS}[task.rt]\npolicy = \"fifo:50\"\ndo = \"loop(inf)[ sleep(100ms), run(1ms) ]\"\n"
    );
    let explain = |policy: &str| {
        let run = Run {
            cpus: 1,
            until: Nanos::from_secs(4),
            ..Run::new(policy, &load)
        };
        let mut observer = Unwritten(Observer::new(0, None));
        let _summary = run.feed(&mut observer);
        observer.0.finding()
    };
    let finding = explain("faulty-renews").expect("it starves two hogs");
    assert_eq!(finding.fault, Fault::CpuHeld);
    assert_eq!(explain("fifo"), None);
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

/// A heavy task that sleeps for longer than it runs cannot use what a light one does that never
/// sleeps, however fair the policy is. Two that never sleep are compared.
#[test]
fn shares_are_compared_among_tasks_that_never_sleep() {
    let load = |high: &str| {
        format!(
            "[task.shell]\ncount = 3\ndo = \"loop(inf)[ run(exp(1ms)), sleep(exp(4ms)) ]\"\n\
             [task.low]\nnice = 10\ncount = 2\n\
             do = \"loop(inf)[ run(exp(5ms)), sleep(exp(2ms)) ]\"\n\
             [task.high]\nnice = -5\ndo = \"{high}\"\n\
             [task.hog]\ncount = 2\ndo = \"run(inf)\"\n"
        )
    };
    let found = |policy: &str, high: &str| {
        let load = load(high);
        let run = Run {
            cpus: 2,
            until: Nanos::from_secs(5),
            ..Run::new(policy, &load)
        };
        let mut observer = Observer::new(0, None).with_right(Some(Right::Weight));
        let _summary = run.feed(&mut observer);
        observer.finding().map(|it| it.fault)
    };
    for policy in ["eevdf", "cfs", "fair", "stride"] {
        let sleeps = "loop(inf)[ run(exp(3ms)), sleep(exp(4ms)) ]";
        assert_eq!(found(policy, sleeps), None, "{policy}");
        assert_eq!(found(policy, "run(inf)"), None, "{policy}");
    }
    // A nap of a hundredth excuses nothing.
    for high in ["run(inf)", "loop(inf)[ run(100ms), sleep(1ms) ]"] {
        assert_eq!(found("faulty-weight", high), Some(Fault::UnfairShare));
    }
}

/// Until a crowd has had its first round, some have had a turn and others none.
#[test]
fn shares_that_differ_by_a_turn_are_no_fault() {
    let load = "[task.hog]\ncount = 200\nnice = 5\ndo = \"run(inf)\"\n\
        [task.shell]\ncount = 3\ndo = \"loop(inf)[ run(3ms), sleep(17ms) ]\"\n";
    let run = Run {
        until: Nanos::from_secs(4),
        ..Run::new("fifo", load)
    };
    let mut observer = Observer::new(0, None).with_right(Some(Right::Weight));
    let _summary = run.feed(&mut observer);
    assert_eq!(observer.finding(), None);
}

/// A real-time task takes the CPU of a task that has others, too: nobody is at fault, whatever
/// callbacks the policy has or lacks.
#[test]
fn a_wait_for_a_higher_class_is_told_by_what_ran_and_not_by_the_callbacks() {
    let load = "[task.hog]\ncount = 2\ndo = \"loop(inf)[ run(367us) ]\"\n\
        [task.rt]\ncpus = \"1\"\npolicy = \"rr:50\"\ndo = \"sleep(989912us), run(inf)\"\n";
    for policy in ["no-select-cpu", "fifo", "eevdf"] {
        let run = Run {
            cpus: 2,
            until: Nanos::from_secs(4),
            ..Run::new(policy, load)
        };
        let mut observer = Observer::new(0, None);
        let _summary = run.feed(&mut observer);
        let finding = observer.finding();
        let is_fine = finding
            .as_ref()
            .is_none_or(|it| it.fault == Fault::Outranked);
        assert!(is_fine, "{policy}: {finding:?}");
        assert!(!finding.is_some_and(|it| it.is_fault()), "{policy}");
    }
}

/// The holder of a lock waits behind tasks that weigh less than the one that wants the lock.
#[test]
fn a_lock_whose_holder_starves_behind_lighter_tasks_is_told() {
    let load = |(high, hogs): (i8, u32)| {
        format!(
            "[lock.door]\n[task.high]\nnice = {high}\n\
             do = \"loop(inf)[ sleep(20ms), lock(door), run(1ms), unlock(door) ]\"\n\
             [task.hog]\ncount = {hogs}\nstart = \"100ms\"\ndo = \"run(inf)\"\n\
             [task.low]\nnice = 10\n\
             do = \"loop(inf)[ lock(door), run(300ms), unlock(door), sleep(1ms) ]\"\n"
        )
    };
    let found = |drawn| {
        let load = load(drawn);
        let run = Run {
            until: Nanos::from_secs(6),
            ..Run::new("sound-rank", &load)
        };
        let mut observer = Observer::new(0, None).with_right(Some(Right::Rank));
        let summary = run.feed(&mut observer);
        observer.set_blocked(&summary.blocked);
        observer.finding()
    };
    // Beside a crowd the holder itself has a right to next to nothing: what counts is that of the
    // one that waits for it.
    for hogs in [2, 40] {
        let finding = found((-10, hogs)).expect("high sleeps for ever");
        assert_eq!(finding.fault, Fault::LockHeld, "{finding:?}");
        assert!(finding.is_fault(), "its rank is not kept: {finding:?}");
        assert_eq!(finding.victim.as_ref().map(|it| &*it.name), Some("high"));
        let lock = finding.verdict.lock.expect("it is named");
        assert!(
            lock.holder.starts_with("low[") && lock.name == "door",
            "{lock:?}"
        );
        assert!(lock.runs.starts_with("hog"), "{lock:?}");
    }
    assert_eq!(found((0, 2)), None, "nobody of less weight runs meanwhile");
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

/// The turn of another task between hides who had the CPU before.
#[test]
fn who_had_the_cpu_for_most_of_a_wait_is_named_with_the_line_that_gave_the_slice() {
    let load = "[task.hog]\ndo = \"run(inf)\"\n\
        [task.first]\ndo = \"loop(inf)[ sleep(10ms), run(2ms) ]\"\n\
        [task.second]\ndo = \"loop(inf)[ sleep(10ms), run(2ms) ]\"\n";
    let run = Run {
        set: &[("slice_ns", "500000000")],
        until: Nanos::from_secs(4),
        ..Run::new("fifo", load)
    };
    let mut observer = Observer::new(1, Some("second".to_owned()));
    let _summary = run.feed(&mut observer);
    let worst = observer.worst().remove(0);
    let (holder, span) = worst.finding.longest.expect("hog had it");
    assert_eq!(
        (holder.name.as_str(), holder.slice),
        ("hog", Some(500_000_000))
    );
    assert!(
        span.get() > worst.span.get() / 2 && span <= worst.span,
        "{span}"
    );
    let given = holder
        .given
        .and_then(|by| by.place)
        .expect("a line gave it");
    assert!(given.function.starts_with("fifo_"), "{given:?}");
}

/// Whoever comes behind a task that blocks between two ticks has a longer turn in each round.
#[test]
fn turns_that_end_at_ticks_make_no_share_unfair() {
    let load = "[task.light]\ncount = 7\nnice = 5\ndo = \"run(inf)\"\n\
        [task.heavy]\ncount = 8\ndo = \"run(inf)\"\n\
        [task.shell]\ncount = 5\ndo = \"loop(inf)[ run(5ms), sleep(7ms) ]\"\n";
    let run = Run {
        hz: 250,
        ..Run::new("fifo", load)
    };
    let mut observer = Observer::new(0, None);
    let _summary = run.feed(&mut observer);
    assert_eq!(observer.finding(), None);
}

/// Endless loops, and nothing else.
fn loops(count: u32) -> String {
    format!("[task.t]\ncount = {count}\ndo = \"run(inf)\"\n")
}

/// In a crowd, a round of turns lasts for seconds. Every policy here is sound: each task runs once
/// in a round.
#[test]
fn a_crowd_that_waits_for_its_turn_is_no_fault() {
    let crowds = [
        (1, 33, 20_000),
        (2, 90, 6_000),
        (2, 320, 1_500),
        (1, 200, 8_000),
    ];
    let policies = [
        "fifo",
        "o1",
        "mlfq",
        "staircase",
        "goodness",
        "elsc",
        "eevdf",
        "cfs",
    ];
    for (cpus, count, ms) in crowds {
        let load = loops(count);
        for policy in policies {
            let run = Run {
                cpus,
                until: Nanos::from_millis(ms),
                ..Run::new(policy, &load)
            };
            let mut observer = Observer::new(0, None);
            let _summary = run.feed(&mut observer);
            let found = observer.finding();
            assert_eq!(found, None, "{policy}: {count} loops on {cpus} CPUs");
        }
    }
}

/// The same crowd, with a task among it that never gets a turn. Its bound is a round, which grows
/// with the crowd.
#[test]
fn a_task_that_never_gets_a_turn_is_seen_in_a_crowd_too() {
    let case = CASES.iter().find(|case| case.policy == "vtime-wrap");
    let case = case.expect("it is there");
    let crowd = format!(
        "{}{}",
        case.workload,
        loops(8).replace("task.t]", "task.crowd]")
    );
    let run = Run {
        cpus: case.cpus,
        until: Nanos::from_secs(25),
        ..Run::new("faulty-vtime-wrap", &crowd)
    };
    let mut observer = Observer::new(0, None);
    let _summary = run.feed(&mut observer);
    let finding = observer.finding().expect("somebody starves");
    assert_eq!(finding.fault, Fault::PassedOver, "{finding:?}");
}

/// Dumps that kernels of Debian (6.18.15 and 7.2.12) printed in VMs of two CPUs when they ejected
/// these policies, which were attached with a timeout of 5 s: what is to be read out of them.
const DUMPS: &[(&str, Fault, &str, Standing, usize)] = &[
    (
        "6.18-unread",
        Fault::StuckInQueue,
        "runslice",
        Standing::Queue(1),
        5,
    ),
    (
        // Its message is about the watchdog, the work of an unbound kworker.
        "6.18-drops",
        Fault::Lost,
        "kworker/u8:1",
        Standing::Nowhere,
        9,
    ),
    (
        "6.18-endless-slice",
        Fault::CpuHeld,
        "kworker/u8:2",
        Standing::Queue(0),
        16,
    ),
    (
        "7.2-unread",
        Fault::StuckInQueue,
        "kworker/u8:0",
        Standing::Queue(1),
        5,
    ),
    ("7.2-drops", Fault::Lost, "runslice", Standing::Nowhere, 9),
];

fn dump(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("golden/dumps/{name}.dump"));
    fs::read_to_string(path).expect("the dump is there")
}

#[test]
fn dumps_of_real_kernels_tell_who_waits_and_where() {
    for (name, fault, victim, standing, waiting) in DUMPS {
        let mut dumps = explain_dumps(&dump(name)).expect(name);
        assert_eq!(dumps.each.len(), 1, "{name}");
        let Dumped {
            finding, missing, ..
        } = dumps.each.remove(0);
        let found = finding.victim.expect(name);
        assert_eq!(
            (
                finding.fault,
                found.name.as_str(),
                &found.standing,
                finding.waiting
            ),
            (*fault, *victim, standing, *waiting),
            "{name}"
        );
        assert!(
            found.waited >= Nanos::from_secs(2),
            "{name}: {}",
            found.waited
        );
        assert!(
            finding.message.is_some() && missing.len() == 3,
            "{name}: {missing:?}"
        );
    }
}

/// People mail what `journalctl` or `dmesg` shows, the last line first, or with Windows' line ends.
#[test]
fn a_dump_between_the_fronts_of_a_log_says_the_same() {
    for (name, ..) in DUMPS {
        let whole = dump(name);
        let plain = explain_dumps(&whole).expect(name);
        let with = |front: &str| {
            let lines = whole.lines().map(|line| format!("{front}{line}"));
            lines.collect::<Vec<_>>()
        };
        let journal = with("Jul 13 00:36:54 host bash[8799]: ");
        let reversed: Vec<_> = journal.iter().rev().cloned().collect();
        for lines in [
            with("[  812.345678] "),
            with("2025-07-13T00:36:54+0200 host scx[87]: "),
            with("kworker-12 [001] d..2. 812.345678: sched_ext_dump: "),
            journal,
            reversed,
        ] {
            assert_eq!(
                explain_dumps(&lines.join("\r\n")).as_ref(),
                Ok(&plain),
                "{name}"
            );
        }
    }
}

/// Whoever mails a dump cuts it anywhere, and its author may wish us ill.
#[test]
fn a_dump_that_is_cut_or_garbled_anywhere_is_read_in_part_or_refused() {
    for (name, ..) in DUMPS {
        let whole = dump(name);
        for end in 0..whole.len() {
            // The answer may be anything that a shorter dump says; it has to come.
            let _ = explain_dumps(&whole[..end]);
        }
        let marked = format!("{}\n\n~~~~ TRUNCATED ~~~~\n", &whole[..whole.len() / 2]);
        let dumps = explain_dumps(&marked).expect(name);
        let missing = &dumps.each[0].missing;
        assert!(
            missing.iter().any(|it| it.contains("was cut")),
            "{name}: {missing:?}"
        );
        for (from, to) in [
            ("[", "]"),
            ("dsq_id=", "dsq_id=0x"),
            ("-", "--"),
            ("CPU", "CPU 99999"),
        ] {
            let _ = explain_dumps(&whole.replace(from, to));
        }
    }
    assert!(explain_dumps("a log that has nothing to do with it\n").is_err());
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
            let summary = Simulation::new(&run.spec())
                .with_options(options)
                .with_sink(&mut all)
                .start()
                .expect("it runs")
                .summary;
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
    traces::replay(&*bytes, &mut again).expect("the file is whole");
    assert!(again.finding().is_some());
    assert_eq!(again.finding(), observer.finding());
    // Nothing can be said without decisions, and that is said.
    let (mut plain, mut blind) = (JsonLines::new(Vec::new()), Observer::new(2, None));
    let _summary = run.feed(&mut plain);
    let bytes = plain.close().expect("memory takes everything");
    traces::replay(&*bytes, &mut blind).expect("the file is whole");
    assert!(!blind.has_decisions());
    assert!(
        blind
            .finding()
            .is_none_or(|finding| finding.fault == Fault::Unknown)
    );
}

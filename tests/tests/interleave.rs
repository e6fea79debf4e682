//! CPUs that come in between while a policy's program runs on another one.

use std::num::NonZeroUsize;
use std::panic::catch_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};

use ask::Services;
use ask::explain::{Explain, ExplainOf};
use ask::hunt::{Hunt, Range};
use ask::orders::{Orders, TriedOrders};
use ask::races::{RaceReport, Races};
use ask::shrink::{Effort, shrink};
use ask::violation;
use bpf::SourceLine;
use explain::why::Fault;
use model::{ExitKind, Interleave, Kernel, Nanos, Profile, Stall, Summary};
use runslice_tests::run::Run;
use sim::{Interleaved, RaceClass, Simulation};
use traces::TraceHash;
use workload::RunSpec;

/// Eight tasks that sleep and wake for four CPUs.
const FOUR: &str = "[task.a]\ncount = 8\n\
    do = \"loop(inf)[ run(uniform(20us,200us)), sleep(uniform(20us,200us)) ]\"\n";
/// Senders, receivers and endless loops.
const PIPES: &str = "[chan.c]\nkind = \"unix\"\ncount = 8\nmsg = 100\n\
    [task.sender]\nkind = \"process\"\ncount = 8\n\
    do = \"loop(inf)[ for(i, 8)[ run(500ns), send(c[self]) ], sleep(uniform(1us,50us)) ]\"\n\
    [task.receiver]\nkind = \"process\"\ncount = 8\n\
    do = \"loop(inf)[ recv(c[self]), run(500ns) ]\"\n\
    [task.hog]\ncount = 3\ndo = \"run(inf)\"\n";
/// Children that live for some microseconds.
const FORKS: &str = "[task.parent]\ncount = 4\n\
    do = \"loop(inf)[ run(uniform(5us,40us)), fork(child) ]\"\n\
    [task.child]\ncount = 0\nkind = \"process\"\ndo = \"run(uniform(5us,50us))\"\n";
/// Tasks that are changed while they run and wait.
const CHANGES: &str = "[task.a]\ncount = 6\n\
    do = \"loop(inf)[ run(uniform(20us,200us)), setaffinity(self, {0-1}), run(30us), yield, \
    setnice(self, 5), sleep(uniform(20us,90us)), setaffinity(self, {0-3}), setnice(self, 0) ]\"\n\
    [task.rt]\npolicy = \"fifo:10\"\ncount = 2\n\
    do = \"loop(inf)[ run(10us), sleep(uniform(50us,300us)) ]\"\n";
/// Tasks whose affinity and nice value others change while they run and wait.
const OTHERS: &str = "[task.a]\ncount = 6\n\
    do = \"loop(inf)[ run(uniform(20us,200us)), setaffinity(b, {0-1}), run(30us), yield, \
    setnice(b, 5), sleep(uniform(20us,90us)), setaffinity(b, {1-3}), setnice(b, 0), \
    setaffinity(self, {2-3}), run(20us), setaffinity(self, {0-3}) ]\"\n\
    [task.b]\ncount = 6\n\
    do = \"loop(inf)[ run(uniform(10us,100us)), sleep(uniform(10us,90us)) ]\"\n\
    [task.rt]\npolicy = \"fifo:10\"\ncount = 2\n\
    do = \"loop(inf)[ run(10us), sleep(uniform(50us,300us)) ]\"\n";

fn spec(policy: &str, load: &str, millis: u64, interleave: Option<Interleave>) -> RunSpec {
    let mut spec = Run {
        cpus: 4,
        until: Nanos::from_millis(millis),
        ..Run::new(policy, load)
    }
    .spec();
    spec.machine.interleave = interleave;
    spec
}

fn seeded(seed: u64, every: u64) -> Option<Interleave> {
    let stall = Nanos::from_micros(20);
    Some(Interleave::Seeded { seed, every, stall })
}

/// What a run leaves: the hash of its events, the summary, and where CPUs came in between.
fn run(spec: &RunSpec) -> (u64, Summary, Interleaved) {
    let mut hash = TraceHash::new();
    let finished = Simulation::new(spec).with_sink(&mut hash).start();
    let finished = finished.unwrap_or_else(|error| panic!("{error}"));
    let interleaved = finished.interleaved.unwrap_or_default();
    (hash.value(), finished.summary, interleaved)
}

#[test]
fn without_a_stall_the_events_are_those_of_atomic_callbacks() {
    for (policy, load) in [
        ("fifo", FOUR),
        ("mlfq", PIPES),
        ("eevdf", FORKS),
        ("cfs", CHANGES),
    ] {
        let atomic = run(&spec(policy, load, 20, None));
        let stall_less = run(&spec(policy, load, 20, Some(Interleave::At(Vec::new()))));
        assert!(stall_less.2.points > 1000, "{policy}");
        assert_eq!(atomic.0, stall_less.0, "{policy}: other events");
        assert_eq!(atomic.1, stall_less.1, "{policy}: another summary");
    }
}

#[test]
fn an_update_that_is_lost_between_two_cpus_ejects_the_policy() {
    for every in [1000, 200, 50] {
        for seed in 0..4 {
            let (_, summary, _) = run(&spec("slab-open", FOUR, 1000, seeded(seed, every)));
            assert_eq!(
                summary.exit.kind,
                ExitKind::ErrorBpf,
                "seed {seed}, every {every}"
            );
            assert!(summary.exit.message.ends_with("was given to two"));
        }
    }
    let (_, atomic, _) = run(&spec("slab-open", FOUR, 1000, None));
    assert_eq!(atomic.exit.kind, ExitKind::Unreg);
}

#[test]
fn under_a_spin_lock_no_update_is_lost() {
    for every in [200, 20] {
        for seed in 0..4 {
            let (_, summary, found) = run(&spec("slab-locked", FOUR, 50, seeded(seed, every)));
            assert_eq!(summary.exit.kind, ExitKind::Unreg, "{:?}", summary.exit);
            assert!(found.stalls.len() > 10);
        }
    }
}

#[test]
fn a_lock_that_tells_of_deadlocks_is_waited_for() {
    for seed in 0..4 {
        let mut asked = spec("slab-resilient", FOUR, 50, seeded(seed, 50));
        asked.machine.kernel = Kernel::V7_3;
        let (_, summary, found) = run(&asked);
        assert_eq!(summary.exit.kind, ExitKind::Unreg, "{:?}", summary.exit);
        assert!(found.stalls.len() > 10);
    }
}

/// A CPU that was told of a deadlock lets go and takes the lock again, before the other one comes
/// to run that had waited for it: the circle is closed when that one looks again.
#[test]
fn a_deadlock_that_comes_about_while_a_cpu_waits_is_told() {
    let load = "[task.a]\ncount = 8\n\
        do = \"loop(20)[ run(uniform(20us,200us)), sleep(uniform(20us,200us)) ]\"\n";
    for seed in 0..4 {
        let mut asked = spec("locks-crossed", load, 1000, seeded(seed, 50));
        asked.machine.kernel = Kernel::V7_3;
        let (_, summary, found) = run(&asked);
        assert_eq!(summary.exit.kind, ExitKind::Unreg, "{:?}", summary.exit);
        assert!(found.stalls.len() > 10);
        let end = summary.end.as_nanos();
        assert!(end < 1_000_000_000, "seed {seed}: no task comes to its end");
    }
}

#[test]
fn the_same_request_gives_the_same_events_and_its_stalls_alone_give_them_again() {
    let asked = spec("slab-open", FOUR, 1000, seeded(3, 200));
    let [first, second] = [(); 2].map(|()| run(&asked));
    assert_eq!(first, second);
    let again = Interleave::At(first.2.stalls.clone());
    let again = run(&spec("slab-open", FOUR, 1000, Some(again)));
    assert_eq!(first, again);
}

#[test]
fn one_stall_is_enough() {
    let caught = (1..600).find(|&point| {
        let span = Nanos::from_micros(200);
        let at = Interleave::At(vec![Stall { point, span }]);
        let (_, summary, found) = run(&spec("slab-open", FOUR, 2, Some(at)));
        assert!(found.stalls.len() <= 1);
        summary.exit.kind == ExitKind::ErrorBpf
    });
    assert!(caught.is_some());
}

#[test]
fn code_that_takes_time_is_overtaken_without_any_stall() {
    let mut asked = spec("slab-open", PIPES, 500, Some(Interleave::Timed));
    asked.machine.profile = Profile::shipped("default-v0").expect("it is built in");
    let (_, summary, found) = run(&asked);
    assert!(found.stalls.is_empty());
    assert_eq!(summary.exit.kind, ExitKind::ErrorBpf, "{:?}", summary.exit);
}

fn hunt(policy: &str) -> Hunt {
    let mut range = Range::default();
    range.machine.interleave = seeded(1, 500);
    Hunt {
        policy: Run::new(policy, FOUR).spec().policy,
        seed: 1,
        properties: Vec::new(),
        range,
        against: None,
    }
}

#[test]
fn a_hunt_finds_the_race_and_leaves_one_or_two_stalls_of_it() {
    let services = Services::default();
    let open = hunt("slab-open");
    let mut trials = (0..20).map(|number| open.trial(&services, number).unwrap());
    let found = trials.find_map(|found| found).expect("a race");
    let effort = Effort {
        properties: &[],
        like: None,
        jobs: NonZeroUsize::MIN,
        is_late: &|| false,
        tried: &|_| (),
    };
    let small = shrink(&services, found, effort).unwrap();
    let Some(Interleave::At(stalls)) = &small.case.machine.interleave else {
        panic!("{:?}", small.case.machine.interleave);
    };
    assert!((1..=2).contains(&stalls.len()), "{stalls:?}");
    let again = small.case.spec(&services).unwrap();
    assert_eq!(run(&again).1.exit.kind, ExitKind::ErrorBpf);
    let locked = hunt("slab-locked");
    let mut trials = (0..5).map(|number| locked.trial(&services, number).unwrap());
    assert!(trials.all(|found| found.is_none()));
}

fn races(policy: &str, load: &str, accepted: &[&str]) -> RaceReport {
    let races = Races {
        spec: spec(policy, load, 30, None),
        accepted: accepted.iter().map(|name| (*name).to_owned()).collect(),
    };
    races.ask(&Services::default()).unwrap()
}

#[test]
fn a_lost_update_is_told_with_variable_and_lines_and_a_stall_shows_it() {
    let report = races("slab-open", FOUR, &[]);
    assert_eq!(report.variables.len(), 1, "{report:?}");
    let worst = report.variables[0].worst();
    assert_eq!(
        (worst.variable.as_str(), worst.class),
        ("slab.next", RaceClass::LostUpdate)
    );
    assert!(worst.by_order && worst.by_locks);
    let source = include_str!("../policies/slab.h");
    let line_of = |place: &Option<SourceLine>| {
        let line = place.as_ref().expect("the object has lines").line;
        source.lines().nth(line as usize - 1).unwrap()
    };
    assert!(line_of(&worst.reads).contains("element = "));
    for write in [&worst.writes, &worst.other] {
        assert!(line_of(write).contains("slab.next = element + 1"));
    }
    let shown = report.variables[0].shown.as_ref().expect("it is shown");
    let at = Interleave::At(vec![shown.stall]);
    let (_, summary, _) = run(&spec("slab-open", FOUR, 30, Some(at)));
    assert_eq!(Some(&summary.exit), shown.exit.as_ref());
    assert_eq!(summary.exit.kind, ExitKind::ErrorBpf);
}

#[test]
fn a_value_of_a_cpu_that_another_one_changes_is_told() {
    let report = races("totals", FOUR, &[]);
    let worst = report.variables[0].worst();
    assert_eq!(
        (worst.variable.as_str(), worst.class),
        ("totals[].inserts", RaceClass::LostUpdate)
    );
    assert!(report.variables[0].shown.is_some());
}

#[test]
fn what_a_lock_keeps_apart_and_what_is_accepted_is_not_told() {
    assert!(races("slab-locked", FOUR, &[]).variables.is_empty());
    let report = races("slab-open", FOUR, &["slab.next"]);
    assert!(report.variables.is_empty());
    assert_eq!(report.accepted, ["slab.next"]);
}

#[test]
fn to_look_for_races_changes_no_event() {
    for (policy, load) in [("o1", PIPES), ("cfs", CHANGES)] {
        let asked = spec(policy, load, 10, Some(Interleave::At(Vec::new())));
        let mut hash = TraceHash::new();
        let looks = Simulation::new(&asked).with_sink(&mut hash);
        looks.looking_for_races().start().unwrap();
        assert_eq!(hash.value(), run(&asked).0);
    }
}

#[test]
fn callbacks_are_called_under_the_locks_of_the_table() {
    for policy in ["probe", "fifo", "cfs", "o1"] {
        for load in [FOUR, PIPES, FORKS, CHANGES, OTHERS] {
            let asked = spec(policy, load, 10, seeded(5, 100));
            let run = Simulation::new(&asked).looking_for_races().start();
            let found = run.unwrap().interleaved.expect("CPUs come in between");
            assert_eq!(
                found.unlisted,
                Vec::<String>::new(),
                "{policy} under {load}"
            );
        }
    }
}

/// Newer kernels bind a task before they lock the run queue for the choice.
#[test]
fn a_task_that_forbids_its_migration_is_bound_under_its_locks() {
    let load = "[task.a]\ncount = 8\ndo = \"loop(inf)[ run(20us), migrate_disable, \
        run(uniform(20us,200us)), sleep(30us), migrate_enable ]\"\n";
    for kernel in [Kernel::V6_18, Kernel::V7_3] {
        let mut asked = spec("probe", load, 10, seeded(5, 100));
        asked.machine.kernel = kernel;
        let run = Simulation::new(&asked).looking_for_races().start();
        let found = run.unwrap().interleaved.expect("CPUs come in between");
        let mut unlisted = found.unlisted.iter();
        let bound = unlisted.find(|call| call.starts_with("`set_cpumask`"));
        assert_eq!(bound, None, "{kernel:?}");
    }
}

fn orders(policy: &str, load: &str, micros: u64) -> TriedOrders {
    let mut spec = spec(policy, load, 1, None);
    spec.duration = Some(Nanos::from_micros(micros));
    tried(spec, false)
}

fn tried(spec: RunSpec, pairs: bool) -> TriedOrders {
    let jobs = NonZeroUsize::MIN;
    let asked = Orders { spec, jobs, pairs };
    asked.ask(&Services::default(), &|| false).unwrap()
}

#[test]
fn an_order_that_takes_two_stalls_is_found_with_two() {
    let short = |policy| {
        let mut spec = spec(policy, FOUR, 1, None);
        spec.duration = Some(Nanos::from_micros(60));
        spec
    };
    let once = tried(short("slab-flag"), false);
    assert!(once.is_whole() && once.conflicts > 20 && once.pairs.is_none());
    assert!(once.faults.is_empty(), "{:?}", once.faults);
    let twice = tried(short("slab-flag"), true);
    let pairs = twice.pairs.expect("no order with one has a fault");
    assert!(pairs.tried > 0 && pairs.tried <= pairs.all && !pairs.is_over);
    let fault = twice.faults.first().expect("two CPUs pass the flag");
    assert_eq!(fault.stalls.len(), 2, "{fault:?}");
    let at = Interleave::At(fault.stalls.clone());
    let (_, summary, _) = run(&spec("slab-flag", FOUR, 1, Some(at)));
    assert_eq!(Some(&summary.exit.message), fault.finding.message.as_ref());
    // With a fault of one stall nobody asks for two.
    assert!(tried(short("slab-open"), true).pairs.is_none());
}

#[test]
fn every_order_with_one_stall_is_tried() {
    let open = orders("slab-open", FOUR, 300);
    assert!(open.is_whole());
    assert_eq!(open.tried, open.conflicts * TriedOrders::SPANS.len());
    assert!(open.conflicts as u64 <= open.accesses);
    let fault = &open.faults[0];
    let at = Interleave::At(fault.stalls.clone());
    let (_, summary, _) = run(&spec("slab-open", FOUR, 1, Some(at)));
    assert_eq!(Some(&summary.exit.message), fault.finding.message.as_ref());
    let locked = orders("slab-locked", FOUR, 300);
    assert!(locked.conflicts > 50);
    assert!(locked.faults.is_empty(), "{:?}", locked.faults);
}

/// An order is far shorter than a wait that is judged.
#[test]
fn an_order_that_loses_a_task_is_found_however_short_it_is() {
    let open = orders("places-open", FOUR, 300);
    assert!(open.undisturbed.is_none(), "{:?}", open.undisturbed);
    let fault = open.faults.first().expect("a task is lost");
    assert_eq!(fault.finding.fault, Fault::Lost, "{fault:?}");
    let victim = fault.finding.victim.as_ref().expect("who is lost");
    assert!(victim.since.expect("it waits").as_nanos() <= 300_000);
    // The run that is named shows it to everybody.
    let millis = fault.duration.get().div_ceil(1_000_000);
    let at = Interleave::At(fault.stalls.clone());
    let again = spec("places-open", FOUR, millis, Some(at));
    let found = violation::find(&Services::default(), &again, &[]).unwrap();
    assert_eq!(found.map(|it| it.fault), Some(Fault::Lost));
    // So is the race: who wrote the variable that a CPU had read and was about to write.
    let question = Explain {
        of: ExplainOf::Run(Box::new(again), sim::Options::default()),
        task: None,
        worst: None,
        right: None,
    };
    let races = question.ask(&Services::default()).unwrap().races;
    let tail = races.iter().find(|race| race.variable == "tail");
    let tail = tail.unwrap_or_else(|| panic!("{races:?}"));
    assert!(tail.writes.contains("(places_enqueue)"), "{tail:?}");
    assert!(
        tail.reads.is_some() && tail.other == tail.writes,
        "{tail:?}"
    );
    assert_ne!(tail.met.stopped, tail.met.wrote);
    let atomic = orders("places-atomic", FOUR, 300);
    assert!(atomic.is_whole() && atomic.conflicts > 20);
    assert!(atomic.faults.is_empty(), "{:?}", atomic.faults);
}

#[test]
fn sound_policies_starve_nobody_in_any_order() {
    for (policy, load) in [
        ("fifo", FOUR),
        ("sound-late", FOUR),
        ("sound-purse", CHANGES),
        ("mlfq", FORKS),
    ] {
        let tried = orders(policy, load, 100);
        let faults = (&tried.undisturbed, &tried.faults);
        assert!(
            faults.0.is_none() && faults.1.is_empty(),
            "{policy}: {faults:?}"
        );
    }
}

#[test]
fn what_goes_wrong_without_a_stall_is_said_first() {
    let tried = orders("faulty-drops", FOUR, 300);
    let fault = tried.undisturbed.expect("it drops every tenth task");
    assert!(fault.stalls.is_empty());
    assert_eq!(fault.finding.fault, Fault::Lost);
    assert_eq!(tried.tried, 0);
}

#[test]
fn orders_that_were_tried_before_the_time_was_over_are_kept() {
    let calls = AtomicUsize::new(0);
    let is_over = || calls.fetch_add(1, Ordering::Relaxed) >= 7;
    let asked = Orders {
        spec: spec("slab-locked", FOUR, 1, None),
        jobs: NonZeroUsize::MIN,
        pairs: false,
    };
    let tried = asked.ask(&Services::default(), &is_over).unwrap();
    assert_eq!((tried.tried, tried.is_whole()), (7, false));
    assert!(tried.reached > 0 && tried.reached < tried.accesses);
    let cancelled = Services {
        is_cancelled: Some(&|| true),
        ..Services::default()
    };
    assert_eq!(asked.ask(&cancelled, &|| false).unwrap().tried, 0);
}

#[test]
fn a_stall_behind_the_last_access_is_told() {
    let stall = |point| {
        let span = Nanos::from_micros(5);
        Some(Interleave::At(vec![Stall { point, span }]))
    };
    let notes = |point| run(&spec("fifo", FOUR, 1, stall(point))).1.notes;
    assert_eq!(notes(3), Vec::<String>::new());
    let told = notes(1_000_000);
    assert!(
        told[0].starts_with("no CPU stops before access 1000000,"),
        "{told:?}"
    );
}

/// Policies, loads and seeds that end in a panic of the simulator or in an ejection.
fn false_alarms(policies: &[&str], seeds: std::ops::Range<u64>) -> Vec<String> {
    let mut wrong = Vec::new();
    for &policy in policies {
        for (name, load) in [
            ("four", FOUR),
            ("pipes", PIPES),
            ("forks", FORKS),
            ("changes", CHANGES),
            ("others", OTHERS),
        ] {
            for seed in seeds.clone() {
                let every = [2000, 300, 40][seed as usize % 3];
                let asked = spec(policy, load, 15, seeded(seed, every));
                match catch_unwind(|| run(&asked)) {
                    Ok((_, summary, _)) if summary.exit.kind == ExitKind::Unreg => {}
                    Ok((_, summary, _)) => {
                        wrong.push(format!("{policy} {name} {seed}: {:?}", summary.exit));
                    }
                    Err(_) => wrong.push(format!("{policy} {name} {seed}: a panic")),
                }
            }
        }
    }
    wrong
}

#[test]
fn shipped_policies_are_sound_however_cpus_come_in_between() {
    let shipped: Vec<_> = policies::ALL.iter().map(|policy| policy.name).collect();
    assert_eq!(false_alarms(&shipped, 0..3), Vec::<String>::new());
}

/// The lottery looks at its queue twice: to draw, and for the winner.
#[test]
fn an_affinity_that_changes_inside_a_callback_ejects_no_lesson() {
    let lessons: Vec<_> = policies::LESSONS.iter().map(|policy| policy.name).collect();
    assert_eq!(false_alarms(&lessons, 0..2), Vec::<String>::new());
    for seed in 0..12 {
        let (_, summary, _) = run(&spec("lottery", OTHERS, 30, seeded(seed, 40)));
        assert_eq!(summary.exit.kind, ExitKind::Unreg, "{:?}", summary.exit);
    }
}

#[test]
#[ignore = "takes minutes: make test-long"]
fn shipped_policies_are_sound_for_a_hundred_seeds() {
    let shipped: Vec<_> = policies::ALL.iter().map(|policy| policy.name).collect();
    assert_eq!(false_alarms(&shipped, 0..100), Vec::<String>::new());
}

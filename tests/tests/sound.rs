//! Policies that let tasks wait for long by design, each within the bound that its source states:
//! nobody accuses them, whether they declare a right or not.

use ask::Services;
use ask::explain::{Explain, ExplainOf};
use ask::hunt::{Hunt, Range};
use ask::measure::Measure;
use ask::right;
use ask::runner::Runner;
use explain::why::{Finding, Observer, Right};
use model::{Nanos, PolicySpec};
use runslice_tests::run::Run;
use sim::Options;

const POLICIES: &[&str] = &[
    "sound-rank",
    "sound-order",
    "sound-shortest",
    "sound-deadline",
    "sound-late",
    "sound-compact",
    "sound-parts",
    "sound-corner",
    "sound-batch",
    "sound-budget",
    "sound-purse",
    "sound-to-the-end",
];

/// Overload at every rank, tasks that wake often beside ones that never sleep, few tasks, and a
/// crowd in front of tasks of less weight.
const LOADS: [&str; 5] = [
    "[task.high]\ncount = 3\nnice = -5\ndo = \"loop(inf)[ run(6ms), sleep(1ms) ]\"\n\
     [task.hog]\ncount = 3\ndo = \"run(inf)\"\n\
     [task.low]\ncount = 4\nnice = 10\ndo = \"run(inf)\"\n",
    "[task.shell]\ncount = 5\ndo = \"loop(inf)[ run(2ms), sleep(5ms) ]\"\n\
     [task.bound]\ncpus = \"0\"\ncount = 2\ndo = \"loop(inf)[ run(20ms), sleep(10ms) ]\"\n\
     [task.low]\ncount = 12\nnice = 5\ndo = \"run(inf)\"\n",
    "[task.low]\ncount = 6\nnice = 5\ndo = \"loop(inf)[ run(50ms), sleep(5ms) ]\"\n",
    "[task.crowd]\ncount = 60\ndo = \"run(inf)\"\n",
    "[task.low]\ncount = 7\nnice = 5\ndo = \"run(inf)\"\n\
     [task.hog]\ncount = 11\ndo = \"run(inf)\"\n",
];

fn run<'a>(policy: &'a str, load: &'a str, cpus: u16) -> Run<'a> {
    Run {
        cpus,
        until: Nanos::from_secs(6),
        ..Run::new(policy, load)
    }
}

/// What is found where the policy declares its own right, or none.
fn found(run: &Run<'_>, declares: bool) -> Option<Finding> {
    let spec = run.spec();
    let declared = right::declared(&spec.policy);
    assert!(declared.is_some(), "{} declares a right", run.policy);
    let mut observer = Observer::new(0, None).with_right(declared.filter(|_| declares));
    let _summary = run.feed(&mut observer);
    observer.finding()
}

#[test]
fn no_policy_that_is_sound_by_design_is_accused() {
    let mut accused = Vec::new();
    for policy in POLICIES {
        for (load, cpus) in LOADS.iter().flat_map(|load| [(load, 1), (load, 4)]) {
            let run = run(policy, load, cpus);
            if let Some(finding) = found(&run, true) {
                accused.push(format!("{policy}, {cpus} CPUs, {load}: {finding:?}"));
            }
            if let Some(finding) = found(&run, false).filter(Finding::is_fault) {
                accused.push(format!(
                    "{policy} undeclared, {cpus} CPUs, {load}: {finding:?}"
                ));
            }
        }
    }
    assert!(accused.is_empty(), "{}", accused.join("\n"));
}

/// The machine itself claims of none of them that somebody forgot a kick.
#[test]
fn no_note_of_a_run_claims_that_a_sound_policy_forgot_a_kick() {
    for policy in [
        "sound-compact",
        "sound-parts",
        "sound-budget",
        "sound-purse",
    ] {
        for load in LOADS {
            let summary = run(policy, load, 4).feed(&mut Observer::new(0, None));
            let notes = summary.notes.join("\n");
            assert!(!notes.contains("nobody kicks"), "{policy}: {notes}");
        }
    }
}

/// Trials in which a policy is accused: a real-time task has the only CPU that works, and the one
/// that idles served the queue while it was longer. A trial with that CPU would end the wait.
const ACCUSED: &[(&str, u64)] = &[("sound-compact", 19)];

fn policy(name: &str) -> PolicySpec {
    Run::new(name, LOADS[0]).spec().policy
}

#[test]
#[ignore = "takes minutes: make test-long"]
fn no_random_load_makes_a_sound_policy_look_faulty() {
    let services = Services::default();
    let mut accused = Vec::new();
    for name in POLICIES {
        let hunt = Hunt {
            policy: policy(name),
            seed: 1,
            properties: Vec::new(),
            range: Range::default(),
            against: None,
        };
        let known = |number: &u64| ACCUSED.contains(&(*name, *number));
        for number in (0..60).filter(|number| !known(number)) {
            let found = hunt.trial(&services, number).expect("the policy runs");
            accused
                .extend(found.map(|(_, finding)| format!("{name}, trial {number}: {finding:?}")));
        }
    }
    assert!(accused.is_empty(), "{}", accused.join("\n"));
}

/// A real-time task takes a CPU for good, another CPU goes offline, and tasks wait behind both. A
/// balancer that leaves the real-time task out of its count leaves them there; one that counts it
/// shares what is left, and no class above is its fault. And who keeps a CPU by design may have
/// filled its local queue before anybody waited.
#[test]
fn nobody_is_blamed_for_a_cpu_that_a_higher_class_or_the_design_has_taken() {
    let trials = [
        ("o1", 1),
        ("mlfq", 1),
        ("staircase5", 1),
        ("fcfs", 31),
        ("sjf", 31),
    ];
    for (name, number) in trials {
        let hunt = Hunt {
            policy: policy(name),
            seed: 1,
            properties: Vec::new(),
            range: Range::default(),
            against: None,
        };
        let found = hunt.trial(&Services::default(), number).expect("it runs");
        assert!(found.is_none(), "{name}: {:?}", found.map(|it| it.1));
    }
}

/// Under the source of o1 the best list goes first until the expired starve, which is a second for
/// each that is runnable: tasks that sleep on a lock keep their bonus for so long.
#[test]
fn the_starvation_limit_of_o1_breaks_no_share_that_it_promises() {
    let load = "[lock.l]\nhandoff = \"fifo\"\n[task.t]\ncount = 3\nnice = 1\n\
        do = \"loop(inf)[ lock(l), run(433us), unlock(l), sleep(325us) ]\"\n";
    let run = Run::new("o1", load);
    let mut observer = Observer::new(1, None);
    let _summary = run.feed(&mut observer);
    let longest = observer.longest_wait();
    assert!(longest > Nanos::from_secs(1), "{longest}");
    assert!(longest < Nanos::from_secs(4), "{longest}");
    assert_eq!(found(&run, true), None);
}

/// All counters are refilled when those who may run on one CPU have used theirs up. A hog of a
/// shorter quantum elsewhere so refills the task that has this CPU, which never runs out, and who
/// is bound to it waits for as long as the hog runs. Linux 2.4.0 has the same rule.
#[test]
fn recalculations_of_another_cpu_break_no_share_that_goodness_promises() {
    let policies: [(&str, &[(&str, &str)]); 3] = [
        ("goodness", &[]),
        ("goodness", &[("variant", "24")]),
        ("elsc", &[]),
    ];
    let hogs = [
        ("run(inf)", 6_000..=6_000),
        ("run(3s)", 3_000..=3_300),
        ("run(1ms)", 100..=600),
    ];
    for ((policy, set), (hog, expected)) in policies
        .iter()
        .flat_map(|policy| hogs.iter().map(move |hog| (policy, hog)))
    {
        let load = format!(
            "[task.bound]\ncount = 2\nnice = -5\ncpus = \"0\"\ndo = \"run(inf)\"\n\
             [task.hog]\ndo = \"{hog}\"\n"
        );
        let run = Run {
            set,
            ..run(policy, &load, 2)
        };
        let mut observer = Observer::new(1, None);
        let _summary = run.feed(&mut observer);
        let longest = observer.longest_wait().get() / 1_000_000;
        assert!(expected.contains(&longest), "{policy}, {hog}: {longest} ms");
        assert_eq!(found(&run, true), None, "{policy}, {hog}");
    }
}

/// Who waits for long beside an order that nobody promised is told, and nobody is at fault.
#[test]
fn a_share_is_a_fault_only_of_a_policy_that_declares_it() {
    let of = |right| {
        let run = run("sound-rank", LOADS[0], 1);
        let mut observer = Observer::new(0, None).with_right(right);
        let _summary = run.feed(&mut observer);
        observer.finding()
    };
    let undeclared = of(None).expect("the low rank starves");
    assert!(!undeclared.is_fault(), "{undeclared:?}");
    let share = undeclared
        .verdict
        .share
        .as_ref()
        .expect("it is one of shares");
    assert!(share.lag > share.bound && share.right.is_none());
    assert!(of(Some(Right::Weight)).is_some_and(|it| it.is_fault()));
    assert_eq!(of(Some(Right::Rank)), None);
}

/// `sim` takes its word from the judge, so that no run is called starved of which `explain` has
/// nothing to say.
#[test]
fn sim_calls_tasks_starved_only_where_explain_finds_a_fault() {
    let services = Services::default();
    let policies = [
        "sound-rank",
        "sound-to-the-end",
        "sound-late",
        "fifo",
        "mlfq",
        "faulty-stream",
        "faulty-unread",
        "faulty-drops",
    ];
    let (mut acquitted, mut starved) = (0, 0);
    for (policy, load) in policies.iter().flat_map(|it| LOADS.map(|load| (*it, load))) {
        let run = run(policy, load, 1);
        let spec = run.spec();
        let measured = Runner::new(&spec, &services).measure();
        let (outcome, _) = measured.unwrap_or_else(|error| panic!("{policy}: {error}"));
        let machine = run.feed(&mut Observer::new(0, None));
        let is_fault = found(&run, true).is_some_and(|it| it.is_fault());
        let is_starved = !outcome.summary.starved.is_empty();
        assert!(!is_starved || is_fault, "{policy}: {load}");
        let notes = outcome.summary.told().join("\n");
        assert_eq!(notes.contains("STARVED: "), is_starved, "{policy}: {notes}");
        starved += usize::from(is_starved);
        acquitted += usize::from(!is_starved && !machine.starved.is_empty());
    }
    assert!(acquitted > 0 && starved > 0, "{acquitted}, {starved}");
}

/// Measures are no faults: a search asks for them.
#[test]
fn what_is_measured_tells_a_partition_from_a_policy_that_uses_all_cpus() {
    let load = "[task.hog]\ncount = 6\nnice = 5\ndo = \"run(inf)\"\n";
    let measured = |policy: &str| {
        let mut observer = Observer::new(0, None).with_measures();
        let _summary = run(policy, load, 4).feed(&mut observer);
        assert!(observer.finding().is_none_or(|it| !it.is_fault()));
        observer.measured().expect("it was asked for")
    };
    let (corner, fifo) = (measured("sound-corner"), measured("fifo"));
    assert!(corner.idle_share() > 0.7, "{corner:?}");
    assert!(fifo.idle_share() < 0.01, "{fifo:?}");
    let idle: u64 = corner.idle.iter().map(|time| time.get()).sum();
    assert_eq!(corner.whole, Nanos::from_secs(24));
    assert!(idle <= corner.whole.get());
}

/// Without a kick each wakeup waits until some CPU is done, which is soon.
#[test]
fn many_short_waits_beside_idle_cpus_are_told_as_large() {
    let load = "[task.a]\ncount = 2\ndo = \"loop(inf)[ run(exp(1ms)), sleep(exp(4ms)) ]\"\n\
        [task.pair]\ncount = 6\ndo = \"loop(inf)[ run(exp(2ms)), sleep(exp(2ms)) ]\"\n";
    let large = |policy: &str| {
        let question = Explain {
            of: ExplainOf::Run(Box::new(run(policy, load, 4).spec()), Options::default()),
            task: None,
            worst: None,
            right: None,
        };
        question.ask(&Services::default()).expect("it runs").large
    };
    // It kicks nobody.
    assert!(large("faulty-weight").contains(&Measure::Idle));
    assert!(!large("fifo").contains(&Measure::Idle));
}

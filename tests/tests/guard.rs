//! The starvation guard: how long a task waits at most, under the loads that starve it without.
//!
//! Each test runs every policy of [`GUARDED`]; another policy with the guard needs one more line.

use std::sync::Arc;

use model::{ExitKind, Nanos, PolicySpec, Summary};
use runslice_tests::longest_wait::LongestWait;
use runslice_tests::policy;
use workload::{RunSpec, Workload};

/// A load that starves some.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Load {
    /// 300 hogs.
    Hogs,
    /// An endless stream of short tasks beside some hogs.
    Forks,
    /// Better tasks that sleep often and together need the whole CPU, and a hog.
    Sleepers,
}

use Load::{Forks, Hogs, Sleepers};

/// A policy with a guard.
struct Guarded {
    name: &'static str,
    /// What else is set on a kernel.
    knobs: &'static [(&'static str, &'static str)],
    /// The loads that it cannot stand without the guard.
    starving: &'static [Load],
}

const GUARDED: [Guarded; 8] = [
    Guarded::new("cfs", &[], &[]),
    // It lets nobody starve, but a hog at nice 19 waits 14.5 s for the sleepers without the guard.
    Guarded::new("eevdf", &[], &[]),
    Guarded::new("elsc", &[], &[Hogs]),
    Guarded::new("goodness", &[], &[Hogs]),
    Guarded::new("mlfq", &[], &[Forks, Sleepers]),
    Guarded::new("o1", &[], &[Hogs]),
    Guarded::new("staircase", &[], &[Forks, Sleepers]),
    Guarded::new("staircase5", &[("cpu_factor_max", "8")], &[Sleepers]),
];

impl Guarded {
    const fn new(
        name: &'static str,
        knobs: &'static [(&'static str, &'static str)],
        starving: &'static [Load],
    ) -> Self {
        Self {
            name,
            knobs,
            starving,
        }
    }
}

/// A third of the kernel's watchdog (30 s).
const GUARD_MS: u64 = 10_000;
/// The kernel's tick in these runs, 250 a second.
const TICK_MS: u64 = 4;

/// Tasks of the first load.
const HOGS: u64 = 300;
/// Tasks of the second: hogs, shells, and three children of each shell.
const FORKS: u64 = 20 + 2 + 6;
/// Tasks of the third: sleepers and a hog.
const SLEEPERS: u64 = 60 + 1;

impl Load {
    fn tables(self) -> String {
        match self {
            Hogs => format!("[task.hog]\ncount = {HOGS}\ndo = \"run(inf)\"\n"),
            // The shells are better, because some policies give forks no advantage.
            Forks => "\
                [task.hog]\ncount = 20\ndo = \"run(inf)\"\n\
                [task.shell]\ncount = 2\nnice = -10\nkind = \"process\"\n\
                do = \"loop(inf)[ run(100us), fork(short), fork(short), fork(short), \
                waitpid(all) ]\"\n\
                [task.short]\ncount = 0\nnice = -10\nkind = \"process\"\n\
                do = \"run(700us)\"\n"
                .to_owned(),
            Sleepers => "\
                [task.hog]\nnice = 19\ndo = \"run(inf)\"\n\
                [task.busy]\ncount = 60\nnice = -10\n\
                do = \"loop(inf)[ run(2ms), sleep(100ms) ]\"\n"
                .to_owned(),
        }
    }
}

/// A workload on `cpus` CPUs under `guarded` with these knobs and those that it has on a kernel:
/// what came of it, and the longest wait.
fn run(guarded: &Guarded, cpus: u16, set: &[(&str, u64)], text: &str) -> (Summary, Nanos) {
    let workload = Workload::parse(text, "guard").unwrap_or_else(|e| panic!("{e}\n{text}"));
    let mut machine = workload.machine.clone();
    machine.cpus = cpus;
    machine.hz = 250;
    let set = set.iter().map(|(knob, value)| (*knob, value.to_string()));
    let own = guarded.knobs.iter();
    let own = own.map(|(knob, value)| (*knob, (*value).to_owned()));
    let spec = RunSpec {
        policy: PolicySpec {
            name: guarded.name.to_owned(),
            object: policy::object(guarded.name).expect("a policy"),
            table: None,
            set: (set.chain(own))
                .map(|(knob, value)| (knob.to_owned(), value))
                .collect(),
            setup: Vec::new(),
            program: None,
            subs: Vec::new(),
        },
        seed: 1,
        tie_seed: None,
        attach_after: Nanos::ZERO,
        duration: None,
        machine,
        workload: Arc::new(workload),
    };
    let mut waits = LongestWait::default();
    let summary = sim::run(&spec, &mut waits).expect("a run");
    (summary, waits.longest.0)
}

/// One minute of `load` on one CPU.
fn minute(guarded: &Guarded, guard_ms: u64, load: Load) -> (Summary, Nanos) {
    let tables = load.tables();
    let text = format!("[workload]\nname = \"minute\"\nstop = \"duration:60s\"\n{tables}");
    run(guarded, 1, &[("guard_ms", guard_ms)], &text)
}

fn rescues(summary: &Summary) -> u64 {
    let counters = &summary.policy_counters;
    let found = counters.iter().find(|(name, _)| name == "guarded");
    found.expect("the counter").1
}

/// The limit, one look, and two turns of a tick for each task that may be over the limit too;
/// one tick more, because a task may come to wait just after one.
fn bound(tasks: u64) -> Nanos {
    let look = GUARD_MS / 8;
    let turns = TICK_MS * (2 * tasks + 1);
    Nanos::from_millis(GUARD_MS + look + turns)
}

#[test]
fn under_the_guard_no_task_waits_longer_than_the_bound() {
    for policy in &GUARDED {
        let name = policy.name;
        for (load, tasks) in [(Hogs, HOGS), (Forks, FORKS), (Sleepers, SLEEPERS)] {
            let (summary, longest) = minute(policy, GUARD_MS, load);
            assert_eq!(summary.exit.kind, ExitKind::Unreg, "{name}, {load:?}");
            assert!(longest <= bound(tasks), "{name}, {load:?}: {longest}");
            let needed = policy.starving.contains(&load) || (name, load) == ("eevdf", Sleepers);
            assert!(!needed || rescues(&summary) > 0, "{name}, {load:?}");
        }
    }
}

/// The loads are what they should be: without the guard a kernel ejects these policies.
#[test]
fn without_the_guard_these_loads_end_in_a_stall() {
    for policy in &GUARDED {
        let name = policy.name;
        for load in policy.starving {
            let (summary, longest) = minute(policy, 0, *load);
            let what = format!("{name}, {load:?}: {longest}");
            assert_eq!(summary.exit.kind, ExitKind::ErrorStall, "{what}");
            assert_eq!(rescues(&summary), 0, "{what}");
        }
    }
}

/// Five seconds of `cpus` CPUs with the guard, and with fast kernel threads or not.
fn five_seconds(guarded: &Guarded, cpus: u16, fast: u64, tables: &str) -> (Summary, Nanos) {
    let text = format!("[workload]\nname = \"five\"\nstop = \"duration:5s\"\n{tables}");
    let set = [("guard_ms", GUARD_MS), ("kthreads_fast", fast)];
    run(guarded, cpus, &set, &text)
}

/// What each task has run.
fn milliseconds(summary: &Summary) -> Vec<u64> {
    let tasks = summary.tasks.iter();
    tasks.map(|task| task.run.get() / 1_000_000).collect()
}

/// Two kernel threads of one CPU whose turns are longer than a slice: they share it, and leave it
/// to hogs while they sleep.
#[test]
fn kernel_threads_share_their_cpu_with_each_other_and_with_hogs() {
    for policy in &GUARDED {
        let (summary, _) = five_seconds(
            policy,
            1,
            1,
            "[task.worker]\ncount = 2\nkind = \"kernel\"\n\
             do = \"loop(inf)[ run(50ms), sleep(150ms) ]\"\n\
             [task.hog]\ncount = 3\ndo = \"run(inf)\"\n",
        );
        let name = policy.name;
        assert_eq!(summary.exit.kind, ExitKind::Unreg, "{name}");
        // A cycle is 50 ms of work, as much for the other, 150 ms of sleep and a hog's turn.
        let ran = milliseconds(&summary);
        assert!(ran[..2].iter().all(|ran| *ran > 500), "{name}: {ran:?}");
        assert!(ran[2..].iter().sum::<u64>() > 2000, "{name}: {ran:?}");
    }
}

/// A kernel puts tasks that must not migrate back onto their CPU without asking. Whoever then makes
/// the CPU choose again, because somebody better waits, lets two of them take it from each other
/// for ever.
#[test]
fn tasks_that_must_not_migrate_run_on_beside_hogs() {
    for policy in &GUARDED {
        let (summary, _) = five_seconds(
            policy,
            1,
            1,
            "[task.pinned]\ncount = 2\nmigration_disabled = true\ndo = \"run(inf)\"\n\
             [task.hog]\ncount = 3\ndo = \"run(inf)\"\n\
             [task.waker]\ndo = \"loop(inf)[ run(100us), sleep(5ms) ]\"\n",
        );
        let name = policy.name;
        assert_eq!(summary.exit.kind, ExitKind::Unreg, "{name}");
        let ran = milliseconds(&summary);
        assert!(ran[..2].iter().all(|ran| *ran > 500), "{name}: {ran:?}");
    }
}

/// A thread of RCU is bound to no CPU, and its turns add up to a grace period.
#[test]
fn a_thread_of_rcu_does_not_wait_behind_others() {
    for policy in &GUARDED {
        let waited = |fast: u64| {
            let (summary, _) = five_seconds(
                policy,
                2,
                fast,
                "[task.rcu_preempt]\nkind = \"kernel\"\n\
                 do = \"loop(inf)[ run(50us), sleep(3ms) ]\"\n\
                 [task.busy]\ncount = 30\ndo = \"loop(inf)[ run(2ms), sleep(10ms) ]\"\n",
            );
            let name = policy.name;
            assert_eq!(summary.exit.kind, ExitKind::Unreg, "{name}, {fast}");
            summary.tasks[0].wait.get() / 1_000_000
        };
        let (fast, slow) = (waited(1), waited(0));
        let name = policy.name;
        // Who wakes with a fresh slice preempts its equals under staircase; who slept does so under
        // cfs.
        let needed = !["cfs", "staircase"].contains(&name);
        assert!(
            fast < 10 && (slow > 100 || !needed),
            "{name}: {fast} ms, {slow} ms"
        );
    }
}

/// One that computes for long waits in its CPU's own queue meanwhile, which no policy sees.
#[test]
fn a_kernel_thread_that_computes_shares_its_cpu_with_a_lone_hog() {
    for policy in &GUARDED {
        let (summary, longest) = five_seconds(
            policy,
            1,
            1,
            "[task.worker]\nkind = \"kernel\"\ndo = \"run(inf)\"\n\
             [task.hog]\ndo = \"run(inf)\"\n",
        );
        let name = policy.name;
        assert_eq!(summary.exit.kind, ExitKind::Unreg, "{name}");
        let ran = milliseconds(&summary);
        // Staircase 5 leaves kernel threads on their best stair: there the hog waits for the guard.
        let bound = Nanos::from_millis(if name == "staircase5" { 5000 } else { 500 });
        assert!(
            ran[0] > 1000 && longest < bound,
            "{name}: {ran:?}, {longest}"
        );
    }
}

/// Two that compute keep their CPU's own queue full, so that the kernel asks the policy no more.
#[test]
fn kernel_threads_that_compute_for_good_leave_the_guard_its_turns() {
    for policy in &GUARDED {
        let text = "[workload]\nname = \"good\"\nstop = \"duration:40s\"\n\
                    [task.worker]\ncount = 2\nkind = \"kernel\"\ndo = \"run(inf)\"\n\
                    [task.hog]\ncount = 3\ndo = \"run(inf)\"\n";
        let set = [("guard_ms", GUARD_MS), ("kthreads_fast", 1)];
        let (summary, longest) = run(policy, 1, &set, text);
        let name = policy.name;
        assert_eq!(summary.exit.kind, ExitKind::Unreg, "{name}: {longest}");
        // Passed by for 100 ms, and the slices of 20 ms that the threads have by then.
        let late = bound(5).get() + Nanos::from_millis(100 + 3 * 20).get();
        assert!(longest.get() <= late, "{name}: {longest}");
    }
}

//! The policy `cfs` keeps the rules of Linux 5.10 that it names: a model at every decision of
//! random runs, and what follows from the rules by hand.

use model::ExitKind;
use runslice_tests::models::Replay;
use runslice_tests::models::cfs::Cfs;
use runslice_tests::models::eevdf::WEIGHTS;
use runslice_tests::models::observe::{hogs, observe, observe_at};
use runslice_tests::models::random::spec;
use runslice_tests::models::runs;
use runslice_tests::timeline::machine;

#[test]
fn every_decision_of_200_random_runs_is_the_models() {
    let mut decisions = 0;
    for seed in 0..200 {
        let spec = runs::one_cpu("cfs", Vec::new(), seed);
        let mut replay = Replay::new(Cfs::new());
        let summary = sim::run(&spec, &mut replay).expect("a run");
        assert_eq!(replay.differs, None, "seed {seed}");
        assert_eq!(summary.exit.message, "", "seed {seed}");
        decisions += replay.decisions;
    }
    assert!(decisions > 80_000, "only {decisions} decisions");
}

// ---- By hand: one CPU with 1000 ticks a second ----

#[test]
fn a_turn_ends_at_the_first_tick_after_its_part_of_the_period() {
    let two = hogs(&[("A", 0), ("B", 0)]);
    // 3 ms each, and a tick of exactly 3 ms is not after it.
    let seen = observe("cfs", 1, 16, &two);
    assert_eq!(seen.turns(4), "A120 0 4; B120 4 4; A120 8 4; B120 12 4");
    let seen = observe_at(250, "cfs", 1, 14, &two);
    assert_eq!(seen.turns(4), "A120 0 4; B120 4 4; A120 8 4; B120 12 2");
}

#[test]
fn more_tasks_than_fit_make_the_period_longer() {
    // 0.75 ms for each of nine; with 3 ms as the least turn, 3 ms for each of three.
    let nine = "[task.H]\ncount = 9\ndo = \"run(inf)\"\n";
    let seen = observe("cfs", 1, 9, nine);
    assert_eq!(seen.turns(3), "H120 0 1; H120 1 1; H120 2 1");
    let three = "[task.H]\ncount = 3\ndo = \"run(inf)\"\n";
    let seen = observe("cfs:min_granularity_ns=3000000", 1, 12, three);
    assert_eq!(seen.turns(3), "H120 0 4; H120 4 4; H120 8 4");
    // Three times 2 ms.
    let seen = observe("cfs", 1, 9, three);
    assert_eq!(seen.turns(3), "H120 0 3; H120 3 3; H120 6 3");
}

#[test]
fn times_grow_with_the_cpus_up_to_eight() {
    for (cpus, ms) in [(1, 4), (2, 7), (3, 7), (4, 10), (7, 10), (8, 13), (16, 13)] {
        let hogs = "[task.H]\ncount = 2\ncpus = \"0\"\ndo = \"run(inf)\"\n";
        let seen = observe("cfs:busy_ms=0", cpus, 80, hogs);
        let lengths: Vec<_> = seen.turns[..3]
            .iter()
            .map(|turn| turn.end.since(turn.start).get() / 1_000_000)
            .collect();
        assert_eq!(lengths, [ms; 3], "{cpus} CPUs");
    }
}

/// A hog, and a task that comes back at 25.5 after a long sleep.
const SLEEPER: &str = "[task.A]\ndo = \"run(inf)\"\n\
                       [task.S]\nstart = \"500us\"\ndo = \"run(1ms), sleep(20500us), run(inf)\"\n";

#[test]
fn who_slept_is_half_a_period_behind_and_takes_the_cpu() {
    let turns = |knobs: &str| observe(&format!("cfs{knobs}"), 1, 40, SLEEPER).turns(5);
    // 3 ms behind what the queue had at the tick before: 3.5 ms until they are even.
    assert_eq!(
        turns(""),
        "A120 0 4; S120 4 1; A120 5 20.5; S120 25.5 3.5; A120 29 4"
    );
    assert_eq!(
        turns(":gentle_sleepers=0"),
        "A120 0 4; S120 4 1; A120 5 20.5; S120 25.5 6.5; A120 32 4"
    );
    // It is 3.5 ms behind.
    let late = "A120 0 4; S120 4 1; A120 5 21; S120 26 4; A120 30 4";
    assert_eq!(turns(":wakeup_granularity_ns=3500000"), late);
    assert_eq!(turns(":wakeup_preemption=0"), late);
    assert!(turns(":wakeup_granularity_ns=3499999").contains("S120 25.5"));
}

#[test]
fn a_child_begins_one_turn_behind() {
    let tables = "[task.P]\ndo = \"run(4500us), fork(C), run(inf)\"\n\
                  [task.C]\ncount = 0\ndo = \"run(inf)\"\n";
    // The queue is at 4, and a turn of one of two is 3 ms: C begins at 7.
    let seen = observe("cfs", 1, 20, tables);
    assert_eq!(seen.turns(2), "P120 0 7; C120 7 4");
    let seen = observe("cfs:start_debit=0", 1, 20, tables);
    assert_eq!(seen.turns(2), "P120 0 5; C120 5 4");
}

#[test]
fn a_task_that_yields_lets_the_next_one_go_first_if_that_is_near() {
    let sleeper = |run: &str| {
        SLEEPER.replace("run(inf)\"\n\0", "").replace(
            "sleep(20500us), run(inf)",
            &format!("sleep(20500us), run({run}), yield, run(inf)"),
        )
    };
    // 2.5 ms behind it stays, 0.5 ms behind it goes.
    let seen = observe("cfs", 1, 40, &sleeper("1ms"));
    assert_eq!(
        seen.turns(5),
        "A120 0 4; S120 4 1; A120 5 20.5; S120 25.5 3.5; A120 29 4"
    );
    let seen = observe("cfs", 1, 40, &sleeper("3ms"));
    assert!(
        seen.turns(5).contains("S120 25.5 3; A120 28.5"),
        "{}",
        seen.turns(5)
    );
}

#[test]
fn idle_tasks_are_preempted_at_once_and_batch_tasks_do_not_preempt() {
    let tables = |first: &str, second: &str| {
        SLEEPER
            .replace("[task.A]\n", &format!("[task.A]\npolicy = \"{first}\"\n"))
            .replace("[task.S]\n", &format!("[task.S]\npolicy = \"{second}\"\n"))
    };
    let turns = |first, second| observe("cfs", 1, 40, &tables(first, second)).turns(5);
    assert!(turns("idle", "normal").starts_with("A120 0 0.5; S120 0.5 1; "));
    assert!(turns("normal", "batch").contains("; S120 26 "));
}

/// The published weights, within what a tick of 1 ms leaves.
#[test]
fn shares_are_those_of_the_weights() {
    for nice in [-20, -5, 5, 10, 19] {
        let seen = observe("cfs", 1, 120_000, &hogs(&[("A", 0), ("B", nice)]));
        let at = usize::try_from(nice + 20).expect("a nice value");
        let expected = f64::from(WEIGHTS[20]) / f64::from(WEIGHTS[at]);
        let ratio = seen.share("A", "B") / expected;
        assert!(
            (0.97..1.03).contains(&ratio),
            "nice {nice}: {ratio} of {expected}"
        );
    }
}

// ---- Several CPUs ----

#[test]
fn three_hogs_share_two_cpus() {
    let seen = observe("cfs", 2, 20_000, "[task.H]\ncount = 3\ndo = \"run(inf)\"\n");
    for hog in &seen.summary.tasks {
        let share = hog.run.as_secs_f64() / (40.0 / 3.0);
        // A CPU that pulls keeps what it got for a turn of up to 7 ms at least.
        assert!((0.85..1.15).contains(&share), "{share}");
    }
}

#[test]
fn work_spreads_over_the_cpus() {
    for cpus in [2, 4, 16] {
        let tables = format!(
            "[task.parent]\ndo = \"for(i, {})[ fork(hog) ]\"\n\
             [task.hog]\ncount = 0\ndo = \"run(inf)\"\n",
            2 * cpus
        );
        let seen = observe("cfs", cpus, 10_000, &tables);
        for hog in &seen.summary.tasks[1..] {
            let run = hog.run.as_secs_f64();
            assert!((run / 5.0 - 1.0).abs() < 0.1, "{cpus} CPUs: {run} s of 5");
        }
    }
}

// ---- The guard ----

#[test]
fn the_guard_keeps_the_lightest_within_the_watchdog() {
    let end = |guard_ms: u32| {
        let hogs = "stop = \"duration:60s\"\n[task.H]\nnice = -20\ncount = 20\n\
                    do = \"run(inf)\"\n[task.L]\nnice = 19\nstart = \"100ms\"\n\
                    do = \"run(1s), sleep(1ms), run(inf)\"";
        let spec = spec("cfs", &[("guard_ms", guard_ms)], machine(1, 250), hogs);
        let mut sink = runslice_tests::collect::Collector::default();
        sim::run(&spec, &mut sink).expect("a run").exit.kind
    };
    assert_eq!(end(0), ExitKind::ErrorStall);
    assert_eq!(end(10_000), ExitKind::Unreg);
}

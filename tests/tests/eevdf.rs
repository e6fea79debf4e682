//! The policy `eevdf` keeps the rules of Linux 6.18 that it names: a model at every decision of
//! random runs, and what follows from the rules by hand.

use std::fmt::Write as _;

use model::ExitKind;
use runslice_tests::models::Replay;
use runslice_tests::models::eevdf::{Eevdf, WEIGHTS};
use runslice_tests::models::observe::{hogs, observe, observe_at};
use runslice_tests::models::random::spec;
use runslice_tests::models::runs;
use runslice_tests::timeline::machine;

#[test]
fn every_decision_of_200_random_runs_is_the_models() {
    let mut decisions = 0;
    for seed in 0..200 {
        let spec = runs::one_cpu("eevdf", Vec::new(), seed);
        let mut replay = Replay::new(Eevdf::new());
        let summary = sim::run(&spec, &mut replay).expect("a run");
        assert_eq!(replay.differs, None, "seed {seed}");
        assert_eq!(summary.exit.message, "", "seed {seed}");
        decisions += replay.decisions;
    }
    assert!(decisions > 80_000, "only {decisions} decisions");
}

#[test]
fn with_delayed_dequeue_every_decision_is_that_of_a_model_with_it() {
    let (mut decisions, mut without) = (0, 0);
    for seed in 0..200 {
        let set = vec![("delay_dequeue".to_owned(), "1".to_owned())];
        let spec = runs::one_cpu("eevdf", set, seed);
        let mut replay = Replay::new(Eevdf::delaying());
        sim::run(&spec, &mut replay).expect("a run");
        assert_eq!(replay.differs, None, "seed {seed}");
        decisions += replay.decisions;
        let mut replay = Replay::new(Eevdf::new());
        sim::run(&spec, &mut replay).expect("a run");
        without += u32::from(replay.differs.is_some());
    }
    assert!(decisions > 80_000, "only {decisions} decisions");
    assert!(without > 20, "the knob changed only {without} runs");
}

// ---- By hand: one CPU with 1000 ticks a second, slices of 3 ms unless said ----

const THREE: &str = "eevdf:base_slice_ns=3000000";

#[test]
fn requests_end_at_ticks_and_equal_tasks_take_turns() {
    let two = hogs(&[("A", 0), ("B", 0)]);
    let seen = observe(THREE, 1, 10, &two);
    assert_eq!(seen.turns(4), "A120 0 3; B120 3 3; A120 6 3; B120 9 1");
    // 0.7 ms: one tick of 250 a second.
    let seen = observe_at(250, "eevdf", 1, 14, &two);
    assert_eq!(seen.turns(4), "A120 0 4; B120 4 4; A120 8 4; B120 12 2");
}

#[test]
fn slices_grow_with_the_cpus_up_to_eight() {
    for (cpus, ms) in [
        (1, 10),
        (2, 20),
        (3, 20),
        (4, 30),
        (7, 30),
        (8, 40),
        (16, 40),
    ] {
        let hogs = "[task.H]\ncount = 2\ncpus = \"0\"\ndo = \"run(inf)\"\n";
        let seen = observe("eevdf:base_slice_ns=10000000:busy_ms=0", cpus, 200, hogs);
        let lengths: Vec<_> = seen.turns[1..4]
            .iter()
            .map(|turn| turn.end.since(turn.start).get() / 1_000_000)
            .collect();
        assert_eq!(lengths, [ms; 3], "{cpus} CPUs");
    }
}

#[test]
fn a_running_task_is_safe_until_its_request_is_served_unless_it_is_ahead() {
    let tables = "[task.A]\ndo = \"run(inf)\"\n\
                  [task.S]\nstart = \"3500us\"\ndo = \"loop(inf)[ run(1ms), sleep(4ms) ]\"\n";
    // S wakes at 3.5 with the average, so A is not ahead. At 11 it leaves 2.75 ms behind and comes
    // back with that: then A is ahead.
    let seen = observe("eevdf:base_slice_ns=10000000", 1, 21, tables);
    assert_eq!(
        seen.turns(6),
        "A120 0 10; S120 10 1; A120 11 4; S120 15 1; A120 16 4; S120 20 1"
    );
}

#[test]
fn without_run_to_parity_a_task_that_is_ahead_is_safe_for_the_base_slice_only() {
    let tables = "[task.A]\ncpus = \"0\"\ndo = \"run(inf)\"\n\
                  [task.S]\ncpus = \"0\"\nstart = \"13500us\"\ndo = \"run(1ms), sleep(1s)\"\n";
    // Eight CPUs: the slice is 40 ms.
    let turns = |knob| {
        observe(
            &format!("eevdf:base_slice_ns=10000000:{knob}"),
            8,
            60,
            tables,
        )
    };
    assert_eq!(turns("run_to_parity=1").turns(2), "A120 0 40; S120 40 1");
    assert_eq!(turns("run_to_parity=0").turns(2), "A120 0 14; S120 14 1");
}

#[test]
fn idle_tasks_are_preempted_at_once_and_batch_tasks_do_not_preempt() {
    let tables = |first: &str, second: &str| {
        format!(
            "[task.A]\npolicy = \"{first}\"\ndo = \"run(inf)\"\n[task.S]\npolicy = \"{second}\"\n\
             start = \"3500us\"\ndo = \"loop(inf)[ run(1ms), sleep(4ms) ]\"\n"
        )
    };
    let policy = "eevdf:base_slice_ns=10000000";
    let turns = |first, second| observe(policy, 1, 25, &tables(first, second)).turns(4);
    assert_eq!(
        turns("idle", "normal"),
        "A120 0 3.5; S120 3.5 1; A120 4.5 4.5; S120 9 1"
    );
    // A batch task is behind at 15, too, but waits until the request from 10 on is served.
    assert_eq!(
        turns("normal", "batch"),
        "A120 0 10; S120 10 1; A120 11 10; S120 21 1"
    );
}

#[test]
fn a_child_begins_with_half_a_request() {
    let tables = "[task.P]\ndo = \"run(5ms), fork(C), run(inf)\"\n\
                  [task.C]\ncount = 0\ndo = \"run(inf)\"\n";
    let seen = observe(THREE, 1, 20, tables);
    // P ends its second request at 6; C's first one is 1.5 ms, the tick after that comes at 8.
    assert_eq!(seen.turns(4), "P120 0 6; C120 6 2; P120 8 3; C120 11 3");
}

#[test]
fn a_task_that_yields_while_it_is_not_ahead_gives_its_request_away() {
    let tables = "[task.A]\ndo = \"yield, run(inf)\"\n[task.B]\ndo = \"run(inf)\"\n";
    let seen = observe(THREE, 1, 12, tables);
    assert_eq!(seen.turns(4), "A120 0 0; B120 0 3; A120 3 3; B120 6 3");
    // After 1 ms it is ahead of B, keeps what is left and yields in vain but for the switch.
    let tables = tables.replace("yield", "run(1ms), yield");
    let seen = observe(THREE, 1, 9, &tables);
    assert_eq!(seen.turns(4), "A120 0 1; B120 1 3; A120 4 2; B120 6 3");
}

/// The published weights, within what a tick of 1 ms leaves.
#[test]
fn shares_are_those_of_the_weights() {
    for nice in [-20, -5, 5, 10, 19] {
        let seen = observe("eevdf", 1, 120_000, &hogs(&[("A", 0), ("B", nice)]));
        let at = usize::try_from(nice + 20).expect("a nice value");
        let expected = f64::from(WEIGHTS[20]) / f64::from(WEIGHTS[at]);
        let ratio = seen.share("A", "B") / expected;
        assert!(
            (0.97..1.03).contains(&ratio),
            "nice {nice}: {ratio} of {expected}"
        );
    }
}

/// The queue is walked from its earliest deadline on; who has that is seldom ahead of the average.
#[test]
fn the_search_for_an_eligible_task_is_short() {
    let mut tables = String::new();
    for nice in -20..20 {
        let name = nice + 20;
        let _ = writeln!(
            tables,
            "[task.h{name}]\nnice = {nice}\ndo = \"run(inf)\"\n[task.s{name}]\nnice = {nice}\n\
             do = \"loop(inf)[ run(exp(1ms)), sleep(exp(10ms)) ]\""
        );
    }
    let seen = observe_at(250, "eevdf", 1, 20_000, &tables);
    let (examined, choices) = (seen.counter("examined"), seen.counter("schedule"));
    assert!(choices > 3_000, "only {choices}");
    assert!(examined < 2 * choices, "{examined} for {choices}");
    assert_eq!(seen.counter("none_eligible"), 0);
}

// ---- Several CPUs ----

#[test]
fn three_hogs_share_two_cpus() {
    let seen = observe(
        "eevdf",
        2,
        20_000,
        "[task.H]\ncount = 3\ndo = \"run(inf)\"\n",
    );
    for hog in &seen.summary.tasks {
        let share = hog.run.as_secs_f64() / (40.0 / 3.0);
        assert!((0.9..1.1).contains(&share), "{share}");
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
        let seen = observe("eevdf", cpus, 10_000, &tables);
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
                    do = \"run(inf)\"\n[task.L]\nnice = 19\ndo = \"run(inf)\"";
        let spec = spec("eevdf", &[("guard_ms", guard_ms)], machine(1, 250), hogs);
        let mut sink = runslice_tests::collect::Collector::default();
        sim::run(&spec, &mut sink).expect("a run").exit.kind
    };
    assert_eq!(end(0), ExitKind::ErrorStall);
    assert_eq!(end(10_000), ExitKind::Unreg);
}

//! The policy `staircase5` does what the announcement says: its vectors, and a model at every
//! decision of random runs.

use runslice_tests::models::Replay;
use runslice_tests::models::observe::{Observed, SAMPLER, Turn, hogs, observe};
use runslice_tests::models::runs;
use runslice_tests::models::staircase5::Staircase5;

#[test]
fn every_decision_of_300_random_runs_is_the_models() {
    let mut decisions = 0;
    for seed in 0..300 {
        let spec = runs::one_cpu("staircase5", Vec::new(), seed);
        let mut replay = Replay::new(Staircase5::default());
        let summary = sim::run(&spec, &mut replay).expect("a run");
        assert_eq!(replay.differs, None, "seed {seed}");
        assert_eq!(summary.exit.message, "", "seed {seed}");
        decisions += replay.decisions;
    }
    assert!(decisions > 100_000, "only {decisions} decisions");
}

// ---- The vectors of the specification: one CPU, 1000 ticks a second, intervals of 10 ms ----

/// Every turn of a task: its stair and its length in milliseconds.
fn stays(seen: &Observed, task: &str) -> Vec<(u32, u64)> {
    let own = seen.turns.iter().filter(|turn| turn.task == task);
    let length = |turn: &Turn| turn.end.since(turn.start).get() / 1_000_000;
    own.map(|turn| (turn.prio, length(turn))).collect()
}

/// The first descents of a lone hog, as a sampler sees them.
fn diagram(nice: i32, descents: u32) {
    let top = 120 + nice as u32;
    let stairs = 140 - top;
    let mut expected = Vec::new();
    for level in 0..descents {
        expected.push((top + level, 10 * (u64::from(level) + 1)));
        expected.extend((top + level + 1..140).map(|stair| (stair, 10)));
    }
    let millis = u64::from(stairs * (descents + 1) * 10);
    let sampled = hogs(&[("A", nice)]) + SAMPLER;
    let seen = observe("staircase5", 1, millis, &sampled).reports("A");
    let begins: Vec<_> = seen
        .iter()
        .map(|report| (report.prio, report.time))
        .collect();
    let lengths = begins.windows(2).map(|pair| {
        let length = pair[1].1.since(pair[0].1).get() / 1_000_000;
        (pair[0].0, length)
    });
    let lengths: Vec<_> = lengths.take(expected.len() - 1).collect();
    // Samples are 5 ms apart, and the first one is late by half of that.
    assert_eq!(lengths[1..], expected[1..expected.len() - 1]);
    assert_eq!(lengths[0].0, top);
    assert!(lengths[0].1.abs_diff(10) <= 5);
}

#[test]
fn s1_a_hog_of_nice_0_descends_later_and_longer_each_time() {
    diagram(0, 4);
}

#[test]
fn i3_the_diagram_of_nice_10_has_ten_stairs() {
    diagram(10, 6);
}

#[test]
fn s2_sunk_hogs_share_by_the_number_of_their_stairs() {
    let seen = observe("staircase5", 1, 10_000, &hogs(&[("A", 0), ("B", 19)]));
    let (a, b) = (stays(&seen, "A"), stays(&seen, "B"));
    // 20 descents of 200 ms later both are on the last stair for good.
    assert_eq!(a[a.len() - 10..a.len() - 1], [(139, 200); 9]);
    assert_eq!(b[b.len() - 10..b.len() - 1], [(139, 10); 9]);
}

#[test]
fn s2_long_run_shares_are_20_to_1_and_2_to_1_and_40_to_1() {
    let share = |a: i32, b: i32| {
        observe("staircase5", 1, 600_000, &hogs(&[("A", a), ("B", b)])).share("A", "B")
    };
    for (a, b, expected) in [(0, 19, 20.0), (0, 10, 2.0), (-20, 0, 2.0), (-20, 19, 40.0)] {
        let share = share(a, b);
        assert!((share / expected - 1.0).abs() < 0.02, "{a} to {b}: {share}");
    }
}

#[test]
fn s3_nice_15_and_17_start_together() {
    let seen = observe("staircase5", 1, 400, &hogs(&[("A", 15), ("B", 17)]));
    // The vector, with the stays joined in which the same task goes on: A135 10 and A136 10;
    // B139 10 and B138 20; A139 10, A136 20, A137 10 and A138 10; A139 10, A137 30 and A138 10;
    // A139 10 and A138 40.
    assert_eq!(
        seen.turns(12),
        "A135 0 20; B137 20 10; A137 30 10; B138 40 10; A138 50 10; B139 60 30; A139 90 50; \
         B139 140 10; A139 150 50; B139 200 30; A139 230 50; B139 280 30"
    );
}

// ---- What the vectors leave out ----

#[test]
fn a_sleep_lifts_the_start_by_one_stair_and_a_run_below_a_tick_does_not() {
    let task = "[task.A]\ndo = \"run(610ms), sleep(50ms), run(100us), sleep(1ms), run(50ms)\"\n";
    let seen = observe("staircase5", 1, 1000, task).reports("A");
    let seen: Vec<_> = seen
        .iter()
        .map(|report| (report.prio, report.level))
        .collect();
    // Three descents, the fourth has begun; then the third's start, which the tiny run keeps.
    let last = [(139, 2), (123, 3), (122, 2), (123, 2), (124, 2), (125, 2)];
    assert_eq!(seen[seen.len() - last.len()..], last);
}

/// The announcement handles "the sub-jiffy case" specially, not saying how. A task that sleeps
/// just before each tick gains by neither reading, and stays on top if every sleep counts; a
/// pointer that works for 0.3 ms every 8 ms sinks as a hog does by the reading of patch 6.3 only.
#[test]
fn each_reading_of_the_sub_jiffy_case_is_a_knob() {
    let lowest = |policy: &str, run: u32, sleep: u32| {
        let work = format!("loop(inf)[ run({run}us), sleep({sleep}us) ]");
        let task = format!("[task.A]\ndo = \"{work}\"\n");
        let seen = observe(policy, 1, 7000, &task).reports("A");
        seen.iter().map(|report| report.prio).max()
    };
    for (policy, cheat, pointer) in [
        ("staircase5", 139, 139),
        ("staircase5:sub_jiffy=1", 139, 139),
        ("staircase5:sub_jiffy=2", 139, 120),
        ("staircase5:sub_jiffy=0", 120, 120),
    ] {
        assert_eq!(lowest(policy, 900, 100), Some(cheat), "{policy}");
        assert_eq!(lowest(policy, 300, 7700), Some(pointer), "{policy}");
    }
}

#[test]
fn an_interval_is_10_ms_for_each_cpu_and_a_knob_caps_it() {
    let pinned = "[task.A]\ncpus = \"0\"\ndo = \"run(inf)\"\n\
                  [task.B]\ncpus = \"0\"\ndo = \"run(inf)\"\n";
    let seen = observe("staircase5", 4, 200, pinned);
    assert_eq!(seen.turns(3), "A120 0 40; B120 40 40; A121 80 40");
    let seen = observe("staircase5:cpu_factor_max=2", 4, 200, pinned);
    assert_eq!(seen.turns(3), "A120 0 20; B120 20 20; A121 40 20");
}

#[test]
fn parent_and_child_share_what_is_left_of_the_interval() {
    let tables = "[task.P]\ndo = \"run(4ms), fork(C), run(inf)\"\n\
                  [task.C]\ncount = 0\ndo = \"run(inf)\"\n";
    let seen = observe("staircase5", 1, 100, tables);
    assert_eq!(seen.turns(4), "P120 0 7; C120 7 3; P121 10 10; C121 20 10");
}

#[test]
fn a_task_that_yields_goes_behind_its_equals_with_a_full_slice() {
    let tables = "[task.Y]\ndo = \"run(3ms), yield, run(inf)\"\n".to_owned() + &hogs(&[("B", 0)]);
    let seen = observe("staircase5", 1, 60, &tables);
    assert_eq!(seen.turns(4), "Y120 0 3; B120 3 10; Y120 13 10; B121 23 10");
}

#[test]
fn an_idle_task_counts_as_nice_19() {
    let tables =
        "[task.A]\npolicy = \"idle\"\ndo = \"run(inf)\"\n".to_owned() + &hogs(&[("B", 19)]);
    let seen = observe("staircase5", 1, 40, &tables);
    assert_eq!(seen.turns(3), "A139 0 10; B139 10 10; A139 20 10");
}

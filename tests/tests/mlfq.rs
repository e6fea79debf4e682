//! The shipped multi-level feedback queue does what its rules say, to the millisecond.
//!
//! Source of the rules and figures: Torrey, Coleman and Miller (2007); quantum of queue q is
//! 10 ms (q + 1), one CPU, HZ 1000.

use model::{Nanos, Op, SimTime};
use runslice_tests::collect::Collector;
use runslice_tests::run::Run;
use stats::Metrics;

const fn ms(count: u64) -> Nanos {
    Nanos::from_millis(count)
}

fn run(until_ms: u64, workload: &str) -> Collector {
    Run {
        until: ms(until_ms),
        ..Run::new("mlfq", workload)
    }
    .go()
    .0
}

/// Who ran from which millisecond on, and the end.
fn turns(collected: &Collector, end_ms: u64) -> Vec<(String, u64, u64)> {
    let end = SimTime::ZERO + ms(end_ms);
    let whole = |time: SimTime| {
        assert_eq!(time.as_nanos() % 1_000_000, 0, "a turn ends at {time}");
        time.as_nanos() / 1_000_000
    };
    // A turn that begins at the end is none.
    let turns = collected.turns(0, end).into_iter();
    let turns = turns.filter(|(_, from, to)| from < to);
    turns
        .map(|(name, from, to)| (name, whole(from), whole(to)))
        .collect()
}

fn expect_turns(workload: &str, want: &[(&str, u64, u64)]) {
    let end = want.last().expect("a turn").2;
    let got = turns(&run(end, workload), end);
    let got: Vec<(&str, u64, u64)> = got
        .iter()
        .map(|(name, from, to)| (&**name, *from, *to))
        .collect();
    assert_eq!(got, want);
}

/// The milliseconds at which the CPU asked for the next task while `name` was on it: its quantum
/// was used up, or it was preempted, or it went to sleep.
fn dispatches(collected: &Collector, name: &str) -> Vec<u64> {
    let calls = collected.calls.iter();
    let own = calls.filter(|call| call.op == Op::Dispatch && call.task.name() == Some(name));
    let mut times: Vec<u64> = own.map(|call| call.time.as_nanos() / 1_000_000).collect();
    times.dedup();
    times
}

/// The queue of `name` each time it got the CPU, as the policy last reported it.
fn queues(collected: &Collector, name: &str) -> Vec<u64> {
    let task = collected.task(name);
    let turns = collected
        .switches
        .iter()
        .filter(|switch| switch.task == task);
    let reported = |time| {
        let mut own = collected
            .reports
            .iter()
            .filter(|event| event.task == task && event.time <= time);
        own.next_back().expect("a report").a >> 32
    };
    turns.map(|switch| reported(switch.time)).collect()
}

// ---- M1 ----

#[test]
fn a_lone_hog_leaves_queue_q_at_5_times_q_plus_1_times_q_plus_2_ms() {
    let collected = run(2_350, "[task.H]\ndo = \"run(inf)\"");
    let mut want: Vec<u64> = (0..19).map(|q| 5 * (q + 1) * (q + 2)).collect();
    assert_eq!(want.last(), Some(&1_900));
    // At the bottom from then on, 200 ms at a time.
    want.extend([2_100, 2_300]);
    assert_eq!(dispatches(&collected, "H"), want);
    assert_eq!(turns(&collected, 2_350), [("H".to_owned(), 0, 2_350)]);
}

// ---- M2 ----

#[test]
fn an_interactive_task_preempts_a_hog_which_keeps_the_rest_of_its_quantum() {
    let workload = "[task.H]\ndo = \"run(inf)\"\n\
                    [task.I]\nstart = \"5ms\"\ndo = \"loop(inf)[ run(4ms), sleep(100ms) ]\"";
    expect_turns(
        workload,
        &[
            ("H", 0, 10),
            ("I", 10, 14),
            ("H", 14, 114),
            ("I", 114, 118),
            ("H", 118, 215),
        ],
    );
    let collected = run(215, workload);
    // 10 of 50 ms of queue 4 were used when I came: the rest ends at 158.
    let want = [10, 34, 64, 104, 114, 158];
    assert_eq!(dispatches(&collected, "H"), want);
    assert_eq!(queues(&collected, "I"), [0, 0]);
    assert_eq!(queues(&collected, "H"), [0, 1, 4]);
}

// ---- M3 ----

/// Queues at the first wakeups of a task that works so long at a time.
fn queues_of_bursts(first_ms: u64, burst_ms: u64) -> Vec<u64> {
    let workload =
        format!("[task.T]\ndo = \"run({first_ms}ms), loop(4)[ sleep(100ms), run({burst_ms}ms) ]\"");
    queues(&run(2_000, &workload), "T")
}

#[test]
fn a_task_moves_between_the_queues_that_its_bursts_reach() {
    // From the top 25 ms are 10 + 15 of 20: up again. From below they are 20 + 5 of 30.
    assert_eq!(queues_of_bursts(25, 25), [0, 0, 0, 0, 0]);
    assert_eq!(queues_of_bursts(55, 25), [0, 1, 1, 1, 1]);
    assert_eq!(queues_of_bursts(9, 9), [0, 0, 0, 0, 0]);
    // A burst that ends with its quantum counts as used up.
    assert_eq!(queues_of_bursts(10, 10), [0, 1, 0, 1, 0]);
    assert_eq!(queues_of_bursts(35, 35), [0, 1, 1, 1, 1]);
    // 150 ms lead to queue 5. From queue 4 100 ms are 50 + 50 of 60.
    assert_eq!(queues_of_bursts(160, 100), [0, 4, 4, 4, 4]);
}

#[test]
fn the_quanta_of_one_burst_are_those_of_the_queues_it_passes() {
    let workload = "[task.T]\ndo = \"run(55ms), loop(2)[ sleep(45ms), run(25ms) ]\"";
    let collected = run(1_000, workload);
    // 10, 20 and 25 of 30; then twice 20 of queue 1 and 5 of queue 2.
    assert_eq!(
        dispatches(&collected, "T"),
        [10, 30, 55, 120, 125, 190, 195]
    );
}

// ---- M4 ----

#[test]
fn a_child_gets_half_of_the_rest_but_no_more_than_the_best_quantum_and_runs_first() {
    // The parent is in queue 3 with 30 ms left at 70 ms: 15 for each, of which the child hands
    // back 5. The child sinks to the parent's queue, then the parent uses its 20 ms.
    expect_turns(
        "[task.P]\ndo = \"run(70ms), fork(C), run(100ms)\"\n[task.C]\ndo = \"run(100ms)\"",
        &[
            ("P", 0, 70),
            ("C", 70, 130),
            ("P", 130, 150),
            ("C", 150, 190),
            ("P", 190, 240),
        ],
    );
}

#[test]
fn a_parent_in_the_child_s_queue_goes_on() {
    // 6 ms left are 3 for each.
    expect_turns(
        "[task.P]\ndo = \"run(4ms), fork(C), run(100ms)\"\n[task.C]\ndo = \"run(100ms)\"",
        &[("P", 0, 7), ("C", 7, 10), ("P", 10, 30), ("C", 30, 50)],
    );
}

#[test]
fn a_parent_without_time_left_sinks_and_the_child_runs() {
    // 1 ms left: it is the child's.
    expect_turns(
        "[task.P]\ndo = \"run(9ms), fork(C), run(100ms)\"\n[task.C]\ndo = \"run(100ms)\"",
        &[("P", 0, 9), ("C", 9, 10), ("P", 10, 30), ("C", 30, 50)],
    );
}

// ---- M5 ----

#[test]
fn a_hog_that_becomes_interactive_rises_one_queue_a_sleep() {
    let workload = "[task.T]\ndo = \"run(2000ms), loop(22)[ sleep(10ms), run(1ms) ]\"";
    let mut want: Vec<u64> = vec![0];
    want.extend((0..19).rev());
    want.extend([0, 0, 0]);
    assert_eq!(queues(&run(3_000, workload), "T"), want);
}

#[test]
fn an_interactive_task_that_becomes_a_hog_sinks_one_queue_a_quantum() {
    // H keeps the CPU contested, so that every quantum's end is a change of turns.
    let workload = "[task.T]\ndo = \"loop(5)[ run(1ms), sleep(10ms) ], run(inf)\"\n\
                    [task.H]\nstart = \"54ms\"\ndo = \"run(inf)\"";
    let collected = run(6_000, workload);
    let got = queues(&collected, "T");
    assert_eq!(got[..5], [0; 5], "{got:?}");
    let sinks: Vec<u64> = (0..20).collect();
    assert_eq!(got[5..25], sinks, "{got:?}");
}

// ---- M6 ----

#[test]
fn two_hogs_share_every_queue_on_their_way_down() {
    let hogs = "[task.A]\ndo = \"run(inf)\"\n[task.B]\ndo = \"run(inf)\"";
    let mut want = Vec::new();
    let mut from = 0;
    for quantum in (1..=6).map(|q| 10 * q) {
        for name in ["A", "B"] {
            want.push((name, from, from + quantum));
            from += quantum;
        }
    }
    expect_turns(hogs, &want);
}

// ---- M7 ----

#[test]
fn a_compile_delays_a_shell_by_at_most_one_quantum_however_many_hogs_there_are() {
    for hogs in [1, 5, 20] {
        let workload = format!(
            "[task.hog]\ncount = {hogs}\ndo = \"run(inf)\"\n\
             [task.cc]\nstart = \"500ms\"\ndo = \"loop(inf)[ run(8ms), sleep(3ms) ]\"\n\
             [task.shell]\nstart = \"500ms\"\ndo = \"loop(inf)[ run(1ms), sleep(49ms) ]\""
        );
        let mut metrics = Metrics::new();
        let _ = Run {
            until: ms(5_000),
            ..Run::new("mlfq", &workload)
        }
        .feed(&mut metrics);
        let report = metrics.report();
        let shell = report
            .groups
            .iter()
            .find(|group| group.name == "shell")
            .expect("the shell");
        assert!(shell.wakeup.count > 80, "{shell:?}");
        assert!(
            shell.wakeup.max <= Some(ms(10)),
            "{hogs} hogs: {:?}",
            shell.wakeup
        );
        assert!(
            shell.wakeup.max > Some(Nanos::ZERO),
            "the compile never was in the way"
        );
    }
}

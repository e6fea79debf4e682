//! The shipped multi-level feedback queue does what its rules say, to the millisecond.
//!
//! Source of the rules and figures: Torrey, Coleman and Miller (2007); quantum of queue q is
//! 10 ms (q + 1), one CPU, HZ 1000.

use std::collections::BTreeMap;

use model::{Nanos, Op, SimTime};
use runslice_tests::collect::Collector;
use runslice_tests::models::mlfq::{Mlfq, Settings};
use runslice_tests::models::observe::observe;
use runslice_tests::models::{Replay, runs};
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
    .execute()
    .0
}

// ---- The model ----

fn settings(seed: u64) -> Settings {
    Settings {
        cumulative: seed % 4 == 1,
        nice_ranges: seed % 3 == 1,
        yield_expires: seed % 5 == 2,
        exit_returns: seed % 7 == 3,
        doubling: seed % 11 == 4,
    }
}

fn knobs(set: Settings) -> Vec<(String, String)> {
    let pair = |name: &str, value: u32| (name.to_owned(), value.to_string());
    vec![
        pair("cumulative", set.cumulative.into()),
        pair("nice_ranges", set.nice_ranges.into()),
        pair("yield_expires", set.yield_expires.into()),
        pair("exit_returns", set.exit_returns.into()),
        pair("factor_percent", if set.doubling { 200 } else { 0 }),
    ]
}

#[test]
fn every_decision_of_300_random_runs_is_the_models() {
    let mut decisions = 0;
    for seed in 0..300 {
        let set = settings(seed);
        let spec = runs::one_cpu("mlfq", knobs(set), seed);
        let mut replay = Replay::new(Mlfq::new(set));
        let summary = sim::run(&spec, &mut replay).expect("a run");
        assert_eq!(replay.differs, None, "seed {seed}, {set:?}");
        assert_eq!(summary.exit.message, "", "seed {seed}");
        decisions += replay.decisions;
    }
    assert!(decisions > 50_000, "only {decisions} decisions");
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
        own.next_back().expect("a report").words().a >> 32
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

/// Nobody displaces it, so that it begins to run once: each queue is seen all the same.
#[test]
fn a_hog_that_keeps_the_cpu_is_seen_in_every_queue() {
    let seen = observe("mlfq", 1, 2000, "[task.H]\ndo = \"run(inf)\"\n");
    let reports = seen.reports("H");
    let levels: Vec<_> = reports
        .iter()
        .map(|report| (report.time.as_nanos() / 1_000_000, u64::from(report.level)))
        .collect();
    let rule: Vec<_> = (0..20).map(|q| (5 * q * (q + 1), q)).collect();
    assert_eq!(levels, rule);
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

// ---- The paper's sentence on 25 ms of work (statement C6) ----

/// Queues at the wakeups of a task that works 25 ms at a time, and of one that sinks in between:
/// each pair is the queue of a wakeup and the worst one that the burst reached.
fn cycle(first_ms: u64, knobs: &[(&str, &str)]) -> Vec<(u64, u64)> {
    // The other task wakes every 5 ms, so that the policy reports the first anew each time.
    let workload = format!(
        "[task.T]\ndo = \"run({first_ms}ms), loop(6)[ sleep(100ms), run(25ms) ]\"\n\
         [task.other]\nstart = \"1ms\"\ndo = \"loop(inf)[ timer(5ms), run(1us) ]\""
    );
    let run = Run {
        until: ms(2_000),
        set: knobs,
        ..Run::new("mlfq", &workload)
    };
    let collected = run.execute().0;
    let task = collected.task("T");
    let own = collected.reports.iter().filter(|event| event.task == task);
    let mut bursts: Vec<(u64, u64)> = Vec::new();
    let mut last = SimTime::ZERO;
    for event in own {
        let level = event.words().a >> 32;
        if bursts.is_empty() || event.time.since(last) > ms(50) {
            bursts.push((level, level));
        }
        let burst = bursts.last_mut().expect("a burst");
        burst.1 = burst.1.max(level);
        last = event.time;
    }
    bursts
}

#[test]
fn c6_25_ms_of_work_move_between_the_second_and_third_queue_from_below() {
    // A compute phase of 55 ms before: down to the third queue.
    let from_below = cycle(55, &[]);
    assert_eq!(from_below[1..], [(1, 2); 6], "{from_below:?}");
}

#[test]
fn c6_from_the_top_the_default_rule_moves_between_the_first_and_second_queue() {
    // The paper says "second and third, regardless of how long it sleeps": the gap is one queue.
    let from_the_top = cycle(25, &[]);
    assert_eq!(from_the_top, [(0, 1); 7]);
}

#[test]
fn c6_with_cumulative_quanta_both_starts_move_between_the_second_and_third_queue() {
    let set = [("cumulative", "1")];
    let from_the_top = cycle(25, &set);
    let from_below = cycle(55, &set);
    println!("{from_the_top:?} {from_below:?}");
    assert_eq!(from_the_top[2..], [(1, 2); 5], "{from_the_top:?}");
    assert_eq!(from_below[5..], [(1, 2); 2], "{from_below:?}");
}

// ---- Options of the section on future work ----

#[test]
fn nice_levels_are_ranges_of_queues_only_if_asked_for() {
    let tasks = "[task.H]\ndo = \"run(inf)\"\n\
                 [task.A]\nnice = -10\ndo = \"run(inf)\"\n\
                 [task.B]\nnice = 10\ndo = \"run(inf)\"\n\
                 [task.C]\nnice = -20\nstart = \"20s\"\ndo = \"run(inf)\"";
    let seen = |set: &[(&str, &str)]| {
        let run = Run {
            until: ms(30_000),
            set,
            ..Run::new("mlfq", tasks)
        };
        let collected = run.execute().0;
        ["H", "A", "B", "C"].map(|name| {
            let queues = queues(&collected, name);
            let ends = |end: Option<&u64>| *end.expect("a turn");
            (ends(queues.iter().min()), ends(queues.iter().max()))
        })
    };
    let [h, a, b, c] = seen(&[]);
    assert_eq!([h, a, b, c], [(0, 19); 4]);
    // 19 queues below the first: nice -10 keeps the better half, 10 starts at 19 * 10 / 19; A
    // never leaves queue 9, so that B never runs, and H sinks to 10 and stays behind A.
    let [h, a, b, c] = seen(&[("nice_ranges", "1"), ("guard_ms", "5000")]);
    assert_eq!((a, c), ((0, 9), (0, 0)));
    assert!(h.1 <= 10, "{h:?}");
    assert!(b.0 >= 10, "{b:?}");
}

#[test]
fn quanta_are_linear_or_exponential_and_the_queues_as_many_as_asked_for() {
    let ends = |set: &[(&str, &str)], until: u64| {
        let run = Run {
            until: ms(until),
            set,
            ..Run::new("mlfq", "[task.H]\ndo = \"run(inf)\"")
        };
        dispatches(&run.execute().0, "H")
    };
    // 10, 20, 40, 80, 80 ...
    let doubling = [("factor_percent", "200"), ("queues", "4")];
    assert_eq!(ends(&doubling, 400), [10, 30, 70, 150, 230, 310, 390]);
    // 5, 7, 9, 9 ...
    let short = [
        ("base_ns", "5000000"),
        ("step_ns", "2000000"),
        ("queues", "3"),
    ];
    assert_eq!(ends(&short, 45), [5, 12, 21, 30, 39]);
    // Two queues down at a time: 10, 30, 50, 70, 90 ms.
    assert_eq!(ends(&[("down", "2")], 260), [10, 40, 90, 160, 250]);
}

// ---- Rule 11: the balancer of Linux 2.6.3 ----

#[test]
fn cpus_pull_until_each_has_its_share_and_a_pulled_task_keeps_its_queue() {
    let tables = "[task.parent]\ndo = \"for(i, 8)[ fork(hog) ]\"\n\
                  [task.hog]\ncount = 0\ndo = \"run(inf)\"\n";
    let (collected, summary) = Run {
        until: ms(20_000),
        cpus: 4,
        ..Run::new("mlfq", tables)
    }
    .execute();
    let hogs = &summary.tasks[1..];
    assert_eq!(hogs.len(), 8);
    for (hog, times) in hogs.iter().enumerate() {
        let run = times.run.as_secs_f64();
        assert!((9.0..=11.0).contains(&run), "hog {hog}: {run}");
        let levels = collected.reports.iter();
        let levels = levels.filter(|event| event.task.index() == hog + 1);
        let levels: Vec<u64> = levels.map(|event| event.words().a >> 32).collect();
        assert!(levels.is_sorted(), "hog {hog}: {levels:?}");
        assert_eq!(levels.last(), Some(&19), "hog {hog}: {levels:?}");
    }
    // Six of eight have to leave the CPU of their parent; more is unrest.
    let counters = &summary.policy_counters;
    let pulled = counters.iter().find(|(name, _)| name == "pulled");
    let pulled = pulled.expect("the counter").1;
    assert!((6..=12).contains(&pulled), "{pulled} pulled");
}

/// 2.6.3: a synchronous waker takes its task along; today's kernel says so of sockets, too.
#[test]
fn a_synchronous_waker_takes_its_task_along() {
    let tables = "[chan.c]\nkind = \"pipe\"\n\
                  [task.left]\ncpus = \"0\"\n\
                  do = \"sleep(20ms), loop(4)[ send(c), sleep(60ms) ]\"\n\
                  [task.right]\ncpus = \"1\"\n\
                  do = \"sleep(50ms), loop(4)[ send(c), sleep(60ms) ]\"\n\
                  [task.B]\ndo = \"loop(inf)[ recv(c), run(100us) ]\"\n\
                  [task.G]\ncpus = \"0\"\ndo = \"run(inf)\"\n\
                  [task.H]\ncpus = \"1\"\ndo = \"run(inf)\"\n";
    let cpus = |policy: &str| {
        let seen = observe(policy, 2, 270, tables);
        let own = seen.turns.iter().filter(|turn| turn.task == "B");
        let ran = own.filter(|turn| turn.end > turn.start);
        ran.map(|turn| turn.cpu.0).collect::<Vec<_>>()
    };
    assert_eq!(cpus("mlfq"), [0, 1, 0, 1, 0, 1, 0, 1]);
    let stays = cpus("mlfq:sync_wakeups=0");
    assert!(stays == [stays[0]; 8], "{stays:?}");
}

/// And keeps the CPU until it sleeps, although its task is in a better queue.
#[test]
fn a_synchronous_waker_is_not_preempted() {
    let tables = "[chan.c]\nkind = \"pipe\"\n\
                  [task.A]\ncpus = \"0\"\ndo = \"run(190ms), send(c), run(5ms), sleep(1s)\"\n\
                  [task.B]\ndo = \"recv(c), run(1ms)\"\n\
                  [task.H]\ncpus = \"1\"\ndo = \"run(inf)\"\n";
    let begins = |policy: &str| {
        let seen = observe(policy, 2, 300, tables);
        let own = seen.turns.iter().filter(|turn| turn.task == "B");
        let last = own.max_by_key(|turn| turn.start).expect("it runs");
        last.start.as_nanos() / 1_000_000
    };
    assert_eq!(begins("mlfq"), 195);
    assert_eq!(begins("mlfq:sync_wakeups=0"), 190);
}

// ---- The guard ----

/// A storm of short forks, pairs that ping each other, hogs and tasks that may use one CPU only,
/// on two CPUs: queue 0 is never empty.
const STORM: &str = "[task.forker]\ncount = 4\ndo = \"loop(inf)[ fork(child), waitpid(any) ]\"\n\
    [task.child]\ncount = 0\ndo = \"run(uniform(500us, 7ms))\"\n\
    [task.short]\ncount = 4\ndo = \"loop(inf)[ run(1ms), sleep(1ms) ]\"\n\
    [task.left]\ncount = 2\ncpus = \"0\"\ndo = \"loop(inf)[ run(2ms), sleep(1ms) ]\"\n\
    [task.hog]\ncount = 6\ndo = \"run(inf)\"\n\
    [task.bound]\ncount = 3\ncpus = \"1\"\ndo = \"run(inf)\"\n\
    [task.sinks]\ncount = 2\ndo = \"loop(inf)[ run(25ms), sleep(5ms) ]\"\n\
    [task.mover]\ncount = 2\ndo = \"loop(inf)[ run(30ms), setaffinity(self, {0}), run(30ms), \
    setaffinity(self, {1}) ]\"";

/// The longest wait of every group of tasks, finished or not.
fn longest_waits(hz: u32, set: &[(&str, &str)], seconds: u64) -> Vec<(String, Nanos)> {
    let mut metrics = Metrics::new();
    let summary = Run {
        until: Nanos::from_secs(seconds),
        cpus: 2,
        hz,
        set,
        ..Run::new("mlfq", STORM)
    }
    .feed(&mut metrics);
    assert_eq!(summary.exit.message, "");
    let groups = metrics.report().groups.into_iter();
    let longest = |group: &stats::GroupReport| {
        let ends = [group.wakeup.max, group.preempt.max, group.start.max];
        let waits = ends.into_iter().chain([group.waiting_at_end_max]);
        waits.flatten().max().unwrap_or(Nanos::ZERO)
    };
    groups
        .map(|group| (group.name.clone(), longest(&group)))
        .collect()
}

#[test]
fn without_the_guard_a_storm_starves_all_that_sank() {
    let waits = longest_waits(250, &[], 12);
    for name in ["hog", "bound", "mover"] {
        let (_, wait) = waits.iter().find(|(own, _)| own == name).expect("a group");
        assert!(*wait > Nanos::from_secs(8), "{waits:?}");
    }
}

#[test]
fn the_guard_bounds_every_wait_in_every_queue_and_under_every_affinity() {
    for hz in [100, 250, 1000] {
        for guard_ms in [500, 2_000] {
            let text = guard_ms.to_string();
            let waits = longest_waits(hz, &[("guard_ms", &text)], 20);
            // The limit, an eighth until the next look, and two turns, each up to the next tick,
            // for each of the 13 that may wait with it.
            let tick = Nanos::from_secs(1).get() / u64::from(hz);
            let bound = guard_ms * 1_000_000 * 9 / 8 + 13 * 2 * 2 * tick;
            for (name, wait) in waits {
                assert!(
                    wait.get() <= bound,
                    "{name} waits {wait} of {bound} ns, HZ {hz}"
                );
            }
        }
    }
}

/// Of a task that the guard lets run, the next wakeup in queue 0 took the CPU once: it came no
/// further, and on a kernel neither did whoever waited for what it held.
#[test]
fn a_starved_task_gets_a_whole_turn_however_many_wakeups_there_are() {
    let end = SimTime::ZERO + Nanos::from_secs(20);
    let (collected, _) = Run {
        until: Nanos::from_secs(20),
        cpus: 2,
        hz: 250,
        set: &[("guard_ms", "500")],
        ..Run::new("mlfq", STORM)
    }
    .execute();
    let mut rescues = 0;
    for cpu in 0..2 {
        let mut left = BTreeMap::new();
        for (name, from, to) in collected.turns(cpu, end) {
            let last = left.insert(name.clone(), to);
            let starved = last.is_some_and(|last| from.since(last) >= ms(500));
            if starved && name.starts_with("bound") && to < end {
                rescues += 1;
                assert!(
                    to.since(from) >= ms(1),
                    "{name} at {from} for {}",
                    to.since(from)
                );
            }
        }
    }
    assert!(rescues >= 30, "only {rescues} rescues");
}

/// A CPU that no longer serves its queue, here because of a real-time task and on a kernel because
/// it is being taken away, keeps those that may run elsewhere for the guard's look at most.
#[test]
fn the_guard_takes_tasks_from_a_cpu_that_serves_its_queue_no_more() {
    let tables = "[task.hog]\ncpus = \"1\"\ndo = \"run(inf)\"\n\
        [task.stays]\ncount = 2\ncpus = \"0\"\n\
        do = \"run(20ms), setaffinity(self, all), run(inf)\"\n\
        [task.rt]\ncpus = \"0\"\npolicy = \"fifo:50\"\nstart = \"100ms\"\ndo = \"run(6s)\"";
    // One of two is on the CPU when the real-time task comes, and the other one in the queue.
    let ran = |guard_ms: &str| {
        let mut metrics = Metrics::new();
        let _ = Run {
            until: ms(6_000),
            cpus: 2,
            // Nothing else moves tasks.
            set: &[("guard_ms", guard_ms), ("busy_ns", "0")],
            ..Run::new("mlfq", tables)
        }
        .feed(&mut metrics);
        let groups = metrics.report().groups;
        let stays = groups.iter().find(|group| group.name == "stays");
        stays.expect("the group").times.run
    };
    let (alone, guarded) = (ran("0"), ran("2000"));
    assert!(alone <= ms(100), "they do not wait at all: {alone}");
    assert!(
        guarded > ms(1_000),
        "both wait for the real-time task: {guarded}"
    );
}

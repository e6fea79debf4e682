//! The policy `staircase` does what its documents say: their vectors, and a model at every decision
//! of random runs.

use model::Nanos;
use runslice_tests::models::Replay;
use runslice_tests::models::observe::{Report, SAMPLER, Turn, hogs, observe, observe_at};
use runslice_tests::models::runs;
use runslice_tests::models::staircase::{Settings, Staircase};

fn settings(seed: u64) -> Settings {
    Settings {
        interactive: seed % 4 != 1,
        compute: seed % 4 == 2,
        resume_7g: seed.is_multiple_of(3),
        preempt_equal: !seed.is_multiple_of(5),
    }
}

fn knobs(set: Settings) -> Vec<(String, String)> {
    let pair = |name: &str, value: u32| (name.to_owned(), value.to_string());
    vec![
        pair("interactive", set.interactive.into()),
        pair("compute", set.compute.into()),
        pair("resume", if set.resume_7g { 7 } else { 10 }),
        pair("preempt_equal", set.preempt_equal.into()),
    ]
}

#[test]
fn every_decision_of_300_random_runs_is_the_models() {
    let mut decisions = 0;
    for seed in 0..300 {
        let set = settings(seed);
        let spec = runs::one_cpu("staircase", knobs(set), seed);
        let mut replay = Replay::new(Staircase::new(set));
        let summary = sim::run(&spec, &mut replay).expect("a run");
        assert_eq!(replay.differs, None, "seed {seed}, {set:?}");
        assert_eq!(summary.exit.message, "", "seed {seed}");
        decisions += replay.decisions;
    }
    assert!(decisions > 100_000, "only {decisions} decisions");
}

// ---- The vectors of the specification: one CPU, 1000 ticks a second, intervals of 10 ms ----

/// Stairs and how long the task stayed on each, in milliseconds, as a sampler saw it that comes
/// every 5 ms: for each its priority and the length.
fn stairs(policy: &str, nice: i32, burst: u32, count: usize) -> Vec<(u32, u64)> {
    let tables = format!(
        "[task.A]\nnice = {nice}\ndo = \"loop({burst})[ run(1ms), sleep(20ms) ], run(inf)\"\n\
         {SAMPLER}"
    );
    let seen = observe(policy, 1, 3000, &tables).reports("A");
    let begin = seen
        .iter()
        .position(|report| report.level == burst)
        .expect("the burst is reached");
    let pairs = seen[begin..].windows(2).take(count);
    let length = |pair: &[Report]| pair[1].time.since(pair[0].time).get() / 1_000_000;
    pairs.map(|pair| (pair[0].prio, length(pair))).collect()
}

/// A descent: `first` on the top stair, the others 10 ms each. Samples are 5 ms apart, and the
/// first one is late by up to that.
fn assert_descent(stairs: &[(u32, u64)], top: u32, bottom: u32, first: u64) {
    let prios: Vec<u32> = stairs.iter().map(|(prio, _)| *prio).collect();
    assert_eq!(prios, (top..=bottom).collect::<Vec<_>>());
    assert!(first.abs_diff(stairs[0].1) <= 5, "{stairs:?}");
    assert!(
        stairs[1..].iter().all(|(_, length)| *length == 10),
        "{stairs:?}"
    );
}

#[test]
fn b1_burst_lengthens_the_first_stair_and_shortens_the_descent() {
    assert_descent(&stairs("staircase", 0, 0, 20), 120, 139, 10);
    assert_descent(&stairs("staircase", 0, 1, 19), 120, 138, 20);
    assert_descent(&stairs("staircase", 0, 2, 18), 120, 137, 30);
    assert_descent(&stairs("staircase", 0, 5, 15), 120, 134, 60);
    assert_descent(&stairs("staircase", 10, 1, 9), 130, 138, 20);
}

/// With burst 19 the whole slice of 200 ms is spent on the top; then a burst is lost.
#[test]
fn b1_full_burst_never_leaves_the_top() {
    let stairs = stairs("staircase", 0, 19, 1);
    assert_eq!(stairs[0].0, 120);
    assert!(stairs[0].1.abs_diff(200) <= 5, "{stairs:?}");
}

#[test]
fn b2_two_hogs_of_nice_0_and_10_descend_in_turns() {
    let seen = observe("staircase", 1, 700, &hogs(&[("A", 0), ("B", 10)]));
    // A keeps the CPU down to stair 129; then they take turns. At 280 B is alone above 139, uses
    // up its slice and goes down again from 130; at 380 A has its turn on 139, begins anew and is
    // back on 139 at 580.
    assert_eq!(
        seen.turns(22),
        "A120 0 100; B130 100 10; A130 110 10; B131 120 10; A131 130 10; B132 140 10; \
         A132 150 10; B133 160 10; A133 170 10; B134 180 10; A134 190 10; B135 200 10; \
         A135 210 10; B136 220 10; A136 230 10; B137 240 10; A137 250 10; B138 260 10; \
         A138 270 10; B139 280 100; A139 380 200; B139 580 100"
    );
}

#[test]
fn b2_long_run_shares_follow_the_slices() {
    let share = |a: i32, b: i32| {
        observe("staircase", 1, 120_000, &hogs(&[("A", a), ("B", b)])).share("A", "B")
    };
    for (a, b, expected) in [
        (0, 10, 2.0),
        (0, 19, 20.0),
        (-20, 0, 2.0),
        (-20, 19, 40.0),
        (5, 5, 1.0),
    ] {
        let share = share(a, b);
        assert!((share / expected - 1.0).abs() < 0.01, "{a} to {b}: {share}");
    }
}

#[test]
fn b3_an_interactive_task_gains_a_burst_at_each_wakeup_and_stays_on_top() {
    let task = "[task.A]\ndo = \"loop(inf)[ run(4ms), sleep(46ms) ]\"\n";
    let seen = observe("staircase", 1, 2000, task).reports("A");
    let seen: Vec<_> = seen
        .iter()
        .map(|report| (report.prio, report.level))
        .collect();
    assert_eq!(seen, (0..=19).map(|burst| (120, burst)).collect::<Vec<_>>());
}

/// A sleeper gains a burst, who waited for a disk does not.
#[test]
fn b3_a_wait_for_a_disk_earns_no_burst() {
    for policy in ["staircase", "staircase:resume=7"] {
        let bursts = |waits: &str| {
            let tables = format!(
                "[disk.D]\nbase = \"46ms\"\n[task.A]\ndo = \"loop(inf)[ run(4ms), {waits} ]\"\n"
            );
            let seen = observe(policy, 1, 2000, &tables).reports("A");
            seen.iter().map(|report| report.level).max()
        };
        assert_eq!(bursts("sleep(46ms)"), Some(19), "{policy}");
        assert_eq!(bursts("read(D, 4KiB)"), Some(0), "{policy}");
    }
}

/// 100 runs of 0.4 ms are the four intervals on the top stair, 25 more are one interval each. A
/// wakeup after 500 runs finds the slice used up.
#[test]
fn b4_runs_below_a_jiffy_continue_the_slice() {
    let task = "[task.A]\ndo = \"loop(3)[ run(4ms), sleep(20ms) ], \
                loop(inf)[ run(400us), sleep(2ms) ]\"\n";
    let seen = observe("staircase:resume=7", 1, 72 + 3630, task).reports("A");
    let begin = seen
        .iter()
        .position(|report| report.level == 3)
        .expect("burst 3");
    let runs = |report: &Report| (report.time.as_nanos() - 72_000_000) / 2_400_000;
    let seen: Vec<_> = seen[begin..]
        .iter()
        .map(|report| (report.prio, report.level, runs(report)))
        .collect();
    let descent = |burst: u32, after: u64| {
        let first = 100 - 25 * (3 - u64::from(burst));
        let stairs = 19 - burst;
        let stair = move |at: u32| (120 + at, burst, after + first + 25 * u64::from(at - 1));
        std::iter::once((120, burst, after)).chain((1..=stairs).map(stair))
    };
    let expected: Vec<_> = descent(3, 0)
        .chain(descent(2, 500))
        .chain(descent(1, 1000))
        .chain([(120, 0, 1500)])
        .collect();
    assert_eq!(seen, expected);
    assert_eq!(expected[16], (136, 3, 475));
}

#[test]
fn b5_without_interactive_a_wakeup_starts_on_top_and_25_ms_end_two_stairs_below() {
    let tables = format!("[task.A]\ndo = \"loop(3)[ run(25ms), sleep(75ms) ]\"\n{SAMPLER}");
    let seen = observe("staircase:interactive=0", 1, 300, &tables).reports("A");
    let seen: Vec<_> = seen.iter().map(|report| report.prio).collect();
    assert_eq!(seen, [120, 121, 122, 120, 121, 122, 120, 121, 122]);
}

#[test]
fn b5_with_compute_intervals_are_100_ms_and_a_better_task_waits_10_ms() {
    let seen = observe("staircase:compute=1", 1, 400, &hogs(&[("A", 0), ("B", 0)]));
    assert_eq!(seen.turns(3), "A120 0 100; B120 100 100; A121 200 100");

    let better = "[task.S]\nnice = -5\nstart = \"3ms\"\ndo = \"run(5ms)\"\n";
    let tables = hogs(&[("A", 0)]) + better;
    let seen = observe("staircase:compute=1", 1, 100, &tables);
    assert_eq!(seen.turns(2), "A120 0 10; S115 10 5");
    let seen = observe("staircase", 1, 100, &tables);
    assert_eq!(seen.turns(2), "A120 0 3; S115 3 5");
}

/// Compute: 20 intervals of 100 ms are the slice of nice 0.
#[test]
fn b5_with_compute_the_slice_of_nice_0_is_two_seconds() {
    let seen = observe("staircase:compute=1", 1, 6000, &hogs(&[("A", 0), ("B", 0)]));
    let a: Vec<_> = seen.turns.iter().filter(|turn| turn.task == "A").collect();
    let prios: Vec<_> = a.iter().map(|turn| turn.prio).collect();
    assert_eq!(prios[..20], (120..140).collect::<Vec<_>>());
    // From 3900 ms on A has a new slice, and is above B until it is back on the last stair.
    assert_eq!(seen.turns(39).rsplit("; ").next(), Some("A139 3800 2000"));
}

#[test]
fn b6_a_fresh_slice_preempts_on_the_same_stair_unless_told_not_to() {
    let late = "[task.S]\ndo = \"sleep(5ms), run(2ms)\"\n";
    let tables = late.to_owned() + &hogs(&[("A", 0)]);
    let seen = observe("staircase", 1, 50, &tables);
    assert_eq!(seen.turns(4), "S120 0 0; A120 0 5; S120 5 2; A120 7 43");
    let seen = observe("staircase:preempt_equal=0", 1, 50, &tables);
    assert_eq!(seen.turns(4), "S120 0 0; A120 0 10; S120 10 2; A121 12 38");
}

/// While a real-time task has the CPU, the task that it displaced counts as running.
#[test]
fn b6_a_fresh_slice_preempts_although_a_real_time_task_wakes_it() {
    let tables = |kind: &str| {
        format!(
            "[chan.c]\nkind = \"{kind}\"\n[task.S]\ndo = \"recv(c), run(2ms)\"\n\
             [task.R]\npolicy = \"fifo:1\"\ndo = \"sleep(5ms), send(c), run(1ms)\"\n"
        ) + &hogs(&[("A", 0)])
    };
    // Through a queue the wakeup is a plain one, through a pipe a synchronous one.
    for kind in ["queue", "pipe"] {
        let turns = |policy: &str| {
            let seen = observe(policy, 1, 50, &tables(kind));
            let late = |turn: &&Turn| turn.start.as_nanos() >= 6_000_000;
            let after: Vec<_> = seen.turns.iter().filter(late).collect();
            let ran = after.iter().filter(|turn| turn.end > turn.start);
            ran.map(|turn| turn.task.clone())
                .take(2)
                .collect::<Vec<_>>()
        };
        assert_eq!(turns("staircase"), ["S", "A"], "{kind}");
        assert_eq!(turns("staircase:preempt_equal=0"), ["A", "S"], "{kind}");
        // As before, a better one comes first: it starts on its own stair, A has sunk.
        assert_eq!(turns("staircase:rr_ns=4000000")[0], "S", "{kind}");
    }
}

/// So does the task that was chosen in the place of one whose interval had ended by then.
#[test]
fn b6_a_fresh_slice_preempts_the_chosen_task_too() {
    let tables = "[chan.c]\nkind = \"queue\"\n[task.S]\ndo = \"recv(c), run(2ms)\"\n\
                  [task.R]\npolicy = \"fifo:1\"\ndo = \"sleep(11ms), send(c), run(1ms)\"\n"
        .to_owned()
        + &hogs(&[("A", 0), ("B", 0)]);
    // The interval ends at 10 ms and the tick is at 12 ms: B is chosen as the real-time task comes.
    let next = |policy: &str| {
        let seen = observe_at(250, policy, 1, 50, &tables);
        let late = |turn: &&Turn| turn.start.as_nanos() >= 12_000_000 && turn.end > turn.start;
        let turns = seen.turns.iter().filter(late);
        turns.map(|it| it.task.clone()).take(2).collect::<Vec<_>>()
    };
    assert_eq!(next("staircase"), ["S", "B"]);
    assert_eq!(next("staircase:preempt_equal=0"), ["B", "S"]);
}

// ---- What the vectors leave out ----

/// The class has no stairs: 10 times the slice of a normal task, and only what others leave.
#[test]
fn batch_tasks_run_behind_everybody_in_turns_of_two_seconds() {
    let tables = "[task.A]\npolicy = \"idle\"\ndo = \"run(inf)\"\n\
                  [task.B]\npolicy = \"idle\"\ndo = \"run(inf)\"\n\
                  [task.N]\nstart = \"500ms\"\ndo = \"run(300ms)\"\n";
    let seen = observe("staircase", 1, 5000, tables);
    assert_eq!(
        seen.turns(4),
        "A140 0 500; N120 500 300; A140 800 1500; B140 2300 2000"
    );
}

#[test]
fn a_task_that_yields_waits_on_the_last_stair_and_returns_to_its_own() {
    let tables = "[task.Y]\nnice = 0\ndo = \"run(3ms), yield, run(100ms)\"\n".to_owned()
        + "[task.B]\nnice = 10\ndo = \"run(15ms)\"\n";
    let seen = observe("staircase", 1, 100, &tables);
    assert_eq!(seen.turns(3), "Y120 0 3; B130 3 15; Y120 18 82");
    assert_eq!(seen.counter("yields"), 1);
    assert_eq!(seen.counter("yields_alone"), 0);
}

/// Where its task ran, a synchronous waker keeps the CPU until it sleeps, though on a worse stair.
#[test]
fn a_synchronous_waker_is_not_preempted_unless_a_knob_says_so() {
    let begins = |policy: &str| {
        let on = |cpu: u32| {
            let tables = format!(
                "[chan.c]\nkind = \"pipe\"\n[task.A]\ncpus = \"{cpu}\"\n\
                 do = \"run(195ms), send(c), run(3ms), sleep(1s)\"\n\
                 [task.B]\ndo = \"recv(c), run(1ms)\"\n\
                 [task.H]\ncpus = \"{}\"\ndo = \"run(inf)\"\n",
                1 - cpu
            );
            let seen = observe(policy, 2, 300, &tables);
            let own = seen.turns.iter().filter(|turn| turn.task == "B");
            let last = own.max_by_key(|turn| turn.start).expect("it runs");
            last.start.as_nanos() / 1_000_000
        };
        let mut both = [on(0), on(1)];
        both.sort_unstable();
        both
    };
    assert_eq!(begins("staircase"), [195, 198]);
    assert_eq!(begins("staircase:sync_wakeups=0"), [195, 195]);
}

/// The resume rules differ: 30 ms of work and 20 ms of sleep earn burst under 7.G only.
#[test]
fn a_task_that_runs_more_than_it_sleeps_gains_burst_under_7g_only() {
    let task = "[task.A]\ndo = \"loop(inf)[ run(30ms), sleep(20ms) ]\"\n";
    let most = |policy: &str| {
        let seen = observe(policy, 1, 1000, task).reports("A");
        seen.iter().map(|report| report.level).max()
    };
    assert_eq!(most("staircase:resume=7"), Some(19));
    assert_eq!(most("staircase:resume=10"), Some(0));
}

#[test]
fn the_guard_lets_a_starved_task_run_and_without_it_the_task_starves() {
    let tables = "[task.busy]\ncount = 12\nnice = -10\n\
                  do = \"loop(inf)[ run(2100us), sleep(18ms) ]\"\n"
        .to_owned()
        + &hogs(&[("H", 19)]);
    let starved = observe("staircase", 1, 5000, &tables).run_ms("H");
    assert!(starved < 5.0, "{starved}");
    let guarded = observe("staircase:guard_ms=1000", 1, 5000, &tables);
    assert!(guarded.counter("guarded") > 0);
    // Nobody preempts it before the next tick, though somebody better wakes all the time.
    let turn =
        |turn: &&Turn| turn.task == "H" && turn.end.since(turn.start) >= Nanos::from_millis(1);
    let first = guarded.turns.iter().find(turn).expect("a rescue");
    assert!((1000..1250).contains(&(first.start.as_nanos() / 1_000_000)));
}

/// Eight hogs start on one CPU of four: two on each in the end, none moved without need.
#[test]
fn idle_cpus_pull_until_every_cpu_has_its_share() {
    let tables = "[task.parent]\ndo = \"for(i, 8)[ fork(hog) ]\"\n\
                  [task.hog]\ncount = 0\ndo = \"run(inf)\"\n";
    let seen = observe("staircase", 4, 20_000, tables);
    let hogs = &seen.summary.tasks[1..];
    assert_eq!(hogs.len(), 8);
    for hog in hogs {
        let run = hog.run.as_secs_f64();
        assert!((9.5..=10.5).contains(&run), "{run}");
    }
    // Three idle CPUs and the busy balance can have no more to do than to move six.
    assert!(
        (6..=9).contains(&seen.counter("pulled")),
        "{}",
        seen.counter("pulled")
    );
}

/// 10 ms are no multiple of a tick of 4 ms: what an interval overruns is missing from the next.
#[test]
fn intervals_average_10_ms_on_a_tick_of_4_ms() {
    let seen = observe_at(250, "staircase", 1, 4000, &hogs(&[("A", 19), ("B", 19)]));
    let own = seen.turns.iter().filter(|turn| turn.task == "A").take(100);
    let lengths: Vec<_> = own.map(|turn| turn.end.since(turn.start).get()).collect();
    assert_eq!(lengths.len(), 100);
    let mean = lengths.iter().sum::<u64>() / 100;
    assert!(mean.abs_diff(10_000_000) <= 100_000, "{mean} ns");
    assert!(
        lengths
            .iter()
            .all(|length| [8_000_000, 12_000_000].contains(length))
    );
}

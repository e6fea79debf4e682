//! The policy `o1` does what its specification says: the vectors, and a model at every decision of
//! random runs.

use model::Nanos;
use runslice_tests::models::Replay;
use runslice_tests::models::o1::O1;
use runslice_tests::models::observe::{Report, hogs, observe, observe_at};
use runslice_tests::models::{random, runs};
use runslice_tests::timeline::machine;
use traces::TraceHash;

/// Nanoseconds of a jiffy.
const J: u64 = 1_000_000;

#[test]
fn every_decision_of_300_random_runs_is_the_models() {
    let mut decisions = 0;
    for seed in 0..300u64 {
        let version = if seed.is_multiple_of(2) { 3 } else { 10 };
        let set = vec![("version".to_owned(), version.to_string())];
        let spec = runs::one_cpu("o1", set, seed);
        let mut replay = Replay::new(O1::new(version == 10));
        let summary = sim::run(&spec, &mut replay).expect("a run");
        assert_eq!(replay.differs, None, "seed {seed}");
        assert_eq!(summary.exit.message, "", "seed {seed}");
        decisions += replay.decisions;
    }
    assert!(decisions > 100_000, "only {decisions} decisions");
}

// ---- The vectors of the specification: one CPU, 1000 ticks a second, 2.6.3 unless said ----

#[test]
fn v1_hogs_of_nice_0_0_and_10_run_102_102_and_53_ms() {
    let seen = observe("o1", 1, 600, &hogs(&[("A", 0), ("B", 0), ("N", 10)]));
    assert_eq!(
        seen.turns(6),
        "A125 0 102; B125 102 102; N135 204 53; A125 257 102; B125 359 102; N135 461 53"
    );
    let seen = observe("o1", 1, 600, &hogs(&[("A", 0), ("N", 19)]));
    assert_eq!(seen.turns(3), "A125 0 102; N139 102 10; A125 112 102");
}

#[test]
fn v1_the_slices_of_2_6_10_run_from_800_to_5_ms() {
    let tables = hogs(&[("A", -20), ("B", 0), ("N", 19)]);
    let seen = observe("o1:version=10", 1, 2000, &tables);
    assert_eq!(seen.turns(3), "A105 0 800; B125 800 100; N139 900 5");
}

#[test]
fn the_slices_are_those_of_the_table() {
    let slices = |v2_6_10: bool, nices: &[i64]| -> Vec<i64> {
        let model = O1::new(v2_6_10);
        nices.iter().map(|nice| model.slice(120 + nice)).collect()
    };
    let nices = [-20, -19, -18, -15, -10, -5, -1, 0, 1, 5, 10, 15, 18, 19];
    let table = [
        200, 195, 190, 175, 151, 126, 107, 102, 97, 78, 53, 29, 14, 10,
    ];
    assert_eq!(slices(false, &nices), table);
    assert_eq!(slices(true, &[-20, 0, 19]), [800, 100, 5]);
}

#[test]
fn v2_a_lone_hog_expires_and_exchanges_the_arrays_each_time() {
    let seen = observe("o1", 1, 1030, &hogs(&[("A", 0)]));
    let prios: Vec<_> = seen.reports("A").iter().map(|report| report.prio).collect();
    assert_eq!(prios, [125]);
    assert_eq!(seen.counter("expired"), 10);
    assert_eq!(seen.counter("array_switches"), 10);
    assert_eq!(seen.counter("stayed_active"), 0);
}

/// Figure 2 of the paper. The hog stays active, and unseen by N, until its fourth slice has ended;
/// then N shows the end of every slice.
#[test]
fn v3_a_full_bonus_is_used_up_in_eleven_slices() {
    let tables = "[task.A]\ndo = \"loop(40)[ sleep(10ms) ], run(inf)\"\n\
                  [task.N]\nnice = 19\nstart = \"405ms\"\ndo = \"run(inf)\"\n";
    let seen = observe("o1", 1, 2500, tables);
    let hog = seen.turns.iter().filter(|turn| turn.task == "A");
    let hog: Vec<_> = hog
        .filter(|turn| turn.start.as_nanos() >= 400_000_000)
        .collect();
    assert_eq!(hog[0].prio, 115);
    assert_eq!(hog[0].end.since(hog[0].start), Nanos::from_millis(4 * 102));
    let prios: Vec<_> = hog[1..9].iter().map(|turn| turn.prio).collect();
    assert_eq!(prios, [119, 119, 120, 121, 122, 123, 124, 125]);
}

/// The same with more than 100 interactive credits: a run costs a bonus-th of itself. The hog stays
/// active for 24 slices, and the 25th is its first to end in the expired array.
#[test]
fn v3_with_credit_a_full_bonus_lasts_for_47_slices() {
    let tables = "[task.A]\ndo = \"loop(150)[ sleep(10ms) ], run(inf)\"\n\
                  [task.N]\nnice = 19\nstart = \"4000ms\"\ndo = \"run(inf)\"\n";
    let seen = observe("o1", 1, 7500, tables);
    let hog = seen.turns.iter().filter(|turn| turn.task == "A");
    let hog: Vec<_> = hog
        .filter(|turn| turn.start.as_nanos() >= 1_500_000_000)
        .collect();
    assert_eq!(hog[0].prio, 115);
    assert_eq!(hog[0].end.since(hog[0].start), Nanos::from_millis(25 * 102));
    let prios: Vec<_> = hog[1..24].iter().map(|turn| turn.prio).collect();
    let slices = [
        (119, 7),
        (120, 5),
        (121, 4),
        (122, 3),
        (123, 2),
        (124, 1),
        (125, 1),
    ];
    let want = slices.map(|(prio, times)| vec![prio; times]).concat();
    assert_eq!(prios, want);
}

/// Figure 4 of the paper: each of 28 sleeps of 10 ms counts less than the one before.
#[test]
fn v4_sleeps_of_10_ms_lift_a_hog_to_the_full_bonus() {
    let task = "[task.A]\ndo = \"loop(30)[ sleep(10ms) ]\"\n";
    let seen = observe("o1", 1, 310, task).reports("A");
    let prios = |report: &Report| (report.time.as_nanos() / 10_000_000, report.prio);
    let mut changes: Vec<_> = seen.iter().map(prios).collect();
    changes.dedup_by_key(|(_, prio)| *prio);
    assert_eq!(
        changes,
        [
            (0, 125),
            (2, 124),
            (3, 123),
            (4, 122),
            (5, 121),
            (7, 120),
            (9, 119),
            (11, 118),
            (14, 117),
            (19, 116),
            (28, 115)
        ]
    );
    let labelled = seen.iter().find(|report| report.flags & 1 == 1);
    assert_eq!(labelled.map(|report| prios(report).0), Some(11));
}

/// How a task that works `work` ms and sleeps `sleep` ms is labelled when it begins to run, once it
/// has settled.
fn labels(work: u64, sleep: u64) -> (bool, bool) {
    let task = format!("[task.A]\ndo = \"loop(inf)[ run({work}ms), sleep({sleep}ms) ]\"\n");
    let seen = observe("o1", 1, 60_000, &task);
    let reports = seen.reports("A");
    let begins = seen.turns.iter().filter(|turn| turn.task == "A");
    let settled = begins.filter(|turn| turn.start.as_nanos() > 30_000_000_000);
    let labels = settled.map(|turn| {
        let before = reports.partition_point(|report| report.time <= turn.start);
        reports[before - 1].flags & 1 == 1
    });
    let labels: Vec<_> = labels.collect();
    (labels.contains(&true), labels.contains(&false))
}

#[test]
fn v5_sleeping_a_quarter_of_the_work_makes_interactive() {
    assert_eq!(labels(100, 15), (false, true));
    assert_eq!(labels(100, 23), (true, true));
    assert_eq!(labels(100, 25), (true, false));
    assert_eq!(labels(60, 16), (true, false));
}

#[test]
fn v6_a_long_sleep_makes_just_interactive() {
    let task = "[task.A]\ndo = \"sleep(900ms), run(10ms)\"\n";
    let seen = observe("o1", 1, 1000, task).reports("A");
    let last = seen.last().expect("it ran");
    // 918 of 1020: bonus 9.
    assert_eq!((last.prio, last.level, last.flags), (116, 9, 1));
}

/// After a disk wait the bonus ends where an interactive task begins, whatever the sleep was worth.
#[test]
fn v6_a_wait_for_a_disk_makes_just_interactive_and_no_more() {
    let task = "[disk.D]\nbase = \"900ms\"\n[task.A]\ndo = \"read(D, 4KiB), run(10ms)\"\n";
    let seen = observe("o1", 1, 1000, task).reports("A");
    let last = seen.last().expect("it ran");
    // 815 of 1020: bonus 7.
    assert_eq!((last.prio, last.level, last.flags), (118, 7, 1));
}

/// The O(1) scheduler "without the disk-I/O special case" of the paper's Table VII.
#[test]
fn without_the_special_case_a_wait_for_a_disk_is_a_sleep_like_any_other() {
    let asleep = observe(
        "o1",
        1,
        1000,
        "[task.A]\ndo = \"sleep(300ms), run(10ms)\"\n",
    );
    let disk = "[disk.D]\nbase = \"300ms\"\n[task.A]\ndo = \"read(D, 4KiB), run(10ms)\"\n";
    let special = observe("o1", 1, 1000, disk);
    let plain = observe("o1:disk_case=0", 1, 1000, disk);
    let standing = |seen: &runslice_tests::models::observe::Observed| {
        let reports = seen.reports("A");
        let last = reports.last().expect("it ran");
        (last.prio, last.level)
    };
    assert_eq!(standing(&plain), standing(&asleep));
    assert_ne!(standing(&special), standing(&asleep));
}

#[test]
fn v7_full_bonus_preempts_a_hog_at_once_and_not_from_nice_19() {
    let wakes = |nice: i32| {
        format!(
            "[task.I]\nnice = {nice}\ndo = \"loop(40)[ sleep(10ms) ], sleep(20ms), run(1ms)\"\n\
             [task.H]\nstart = \"402ms\"\ndo = \"run(inf)\"\n"
        )
    };
    let late = |nice: i32| {
        let seen = observe("o1", 1, 600, &wakes(nice));
        let turns = seen
            .turns
            .iter()
            .filter(|turn| turn.start.as_nanos() > 401_000_000);
        let turns = turns.map(|turn| (turn.task.clone(), turn.prio, turn.start.as_nanos() / J));
        turns.take(2).collect::<Vec<_>>()
    };
    let turn = |task: &str, prio: u32, at: u64| (task.to_owned(), prio, at);
    assert_eq!(late(0), [turn("H", 125, 402), turn("I", 115, 420)]);
    assert_eq!(late(19), [turn("H", 125, 402), turn("I", 134, 504)]);
}

#[test]
fn v8_fork_halves_the_slice_and_a_parent_with_one_jiffy_expires() {
    let tables = |run: u64| {
        format!(
            "[task.P]\ndo = \"run({run}ms), fork(C), run(inf)\"\n\
             [task.C]\ncount = 0\ndo = \"run(inf)\"\n"
        )
    };
    let seen = observe("o1", 1, 300, &tables(1));
    assert_eq!(seen.turns(3), "P125 0 1; C125 1 51; P125 52 50");
    let seen = observe("o1", 1, 400, &tables(101));
    assert_eq!(
        seen.turns(4),
        "P125 0 101; C125 101 1; P125 102 102; C125 204 102"
    );
}

/// Loads 4, 1, 0 and 2, of which CPU 2 may take those of CPU 0.
#[test]
fn v9_an_idle_cpu_pulls_one_task_and_a_busy_one_half_the_difference() {
    let tables = "[task.P]\ncpus = \"0\"\ndo = \"for(i, 4)[ fork(H) ]\"\n\
                  [task.H]\ncount = 0\ncpus = \"0,2\"\ndo = \"run(inf)\"\n\
                  [task.B]\ncpus = \"1\"\ndo = \"run(inf)\"\n\
                  [task.D]\ncount = 2\ncpus = \"3\"\ndo = \"run(inf)\"\n";
    assert_eq!(observe("o1", 4, 190, tables).counter("pulled"), 1);
    // 1 against 3 is a difference of 2 and more than a quarter: one more, and then there is peace.
    assert_eq!(observe("o1", 4, 5000, tables).counter("pulled"), 2);
}

/// A difference of 1 is a quarter of 4, but less than a quarter of 5.
#[test]
fn v9_a_busy_cpu_leaves_differences_below_a_quarter_alone() {
    let loads = |others: u32| {
        format!(
            "[task.S]\ncount = {others}\ncpus = \"0\"\ndo = \"run(inf)\"\n\
             [task.T]\ncount = {others}\ncpus = \"1\"\ndo = \"run(inf)\"\n\
             [task.P]\ncpus = \"0\"\ndo = \"fork(M)\"\n\
             [task.M]\ncount = 0\ncpus = \"0,1\"\ndo = \"run(inf)\"\n"
        )
    };
    assert!(observe("o1", 2, 5000, &loads(3)).counter("pulled") > 0);
    assert_eq!(observe("o1", 2, 5000, &loads(4)).counter("pulled"), 0);
}

/// With ticks of 10 ms an idle CPU is called at the busy one's tick; by its own clock it finds the
/// task at the next millisecond.
#[test]
fn v9_an_idle_cpu_with_a_clock_pulls_within_a_millisecond() {
    // It wakes at 2.5 ms, behind a better one that is bound to its CPU.
    let tables = "[task.W]\ncpus = \"0\"\n\
                  do = \"run(500us), setaffinity(self, all), sleep(2ms), run(inf)\"\n\
                  [task.B]\ncpus = \"0\"\nnice = -20\nstart = \"1ms\"\ndo = \"run(inf)\"\n";
    let pulled_at = |policy: &str| {
        let seen = observe_at(100, policy, 2, 90, tables);
        assert_eq!(seen.counter("pulled"), 1, "{policy}");
        let turn = seen.turns.iter().find(|turn| turn.cpu.0 == 1);
        turn.expect("a turn on CPU 1").start.as_nanos()
    };
    assert!(pulled_at("o1") > 3 * J);
    assert_eq!(pulled_at("o1:idle_ns=1000000"), 3 * J);
    assert_eq!(pulled_at("o1:idle_ns=5000000"), 5 * J);
}

/// Three idle CPUs beside a hog that nobody may take: a look of each at every millisecond, at every
/// fifth of those of the other node a second one, at the hog's CPU, where two others wait.
#[test]
fn an_idle_cpu_looks_once_a_millisecond_and_every_five_at_other_nodes() {
    let alone = "[task.H]\ncpus = \"0\"\ndo = \"run(inf)\"\n";
    let looks = |policy: &str, tables: &str| {
        let seen = observe(policy, 4, 1000, tables);
        assert_eq!(seen.counter("pulled"), 0, "{policy}");
        let [own, others] = ["lb_idle", "lb_node"].map(|name| seen.counter(name));
        let all = own + others;
        [all, all - seen.counter("lb_not_found"), others]
    };
    // One look more each, as the policy comes.
    let [without, ..] = looks("o1:busy_ns=0", alone);
    assert!(without <= 4, "{without}");
    let [all, found, _] = looks("o1:busy_ns=0:idle_ns=1000000", alone);
    assert!((2997..=3004).contains(&all) && found == 0, "{all}, {found}");
    let three = alone.to_owned() + "count = 3\n";
    let [all, found, others] = looks("o1:busy_ns=0:idle_ns=1000000:node_cpus=2", &three);
    // CPU 1 sees the waiting ones at each look, the two of the other node at every fifth.
    assert!((1396..=1404).contains(&found), "{found}");
    assert!((3396..=3408).contains(&all), "{all}");
    assert!((396..=404).contains(&others), "{others}");
    let [all, ..] = looks("o1:busy_ns=0:idle_ns=4000000", alone);
    assert!((747..=754).contains(&all), "{all}");
}

#[test]
fn one_cpu_has_no_clock_for_idle_cpus_and_a_clock_keeps_no_finished_run_going() {
    let hog = "[task.H]\ndo = \"run(3ms), sleep(5ms)\"\n";
    let seen = observe("o1:idle_ns=1000000", 1, 100, hog);
    // The look as the policy comes and that after the task's sleep.
    assert!(seen.counter("lb_idle") <= 2);
    let text = "[chan.c]\nkind = \"queue\"\n[task.a]\ndo = \"run(1ms), recv(c)\"\n";
    for idle_ns in [0, 1_000_000] {
        let spec = random::spec("o1", &[("idle_ns", idle_ns)], machine(2, 1000), text);
        let summary = sim::run(&spec, &mut TraceHash::new()).expect("a run");
        let notes = summary.notes.join("; ");
        assert!(notes.contains("nobody will bring"), "{notes}");
    }
}

// ---- What the vectors leave out ----

#[test]
fn a_task_that_yields_goes_to_the_expired_array() {
    let tables =
        "[task.Y]\ndo = \"run(3ms), yield, run(inf)\"\n".to_owned() + &hogs(&[("B", 0), ("N", 19)]);
    let seen = observe("o1", 1, 300, &tables);
    // What is left of its slice waits for the exchange of the arrays.
    assert_eq!(
        seen.turns(4),
        "Y125 0 3; B125 3 102; N139 105 10; Y125 115 99"
    );
    assert_eq!(seen.counter("yields_expired_empty"), 1);
    assert_eq!(seen.counter("yields_active_empty"), 0);
}

/// 1020 ms for each of three tasks, and one jiffy: then interactive ones expire as well.
#[test]
fn interactive_tasks_expire_when_the_expired_starve() {
    let tables = "[task.I]\ncount = 2\ndo = \"loop(inf)[ run(70ms), sleep(30ms) ]\"\n".to_owned()
        + &hogs(&[("H", 0)]);
    let seen = observe("o1", 1, 60_000, &tables);
    assert!(seen.run_ms("H") > 1000.0, "{}", seen.run_ms("H"));
    assert!(seen.counter("stayed_active") > 0);
}

#[test]
fn idle_cpus_pull_until_every_cpu_has_its_share() {
    for cpus in [2, 4, 16] {
        let tables = format!(
            "[task.parent]\ndo = \"for(i, {})[ fork(hog) ]\"\n\
             [task.hog]\ncount = 0\ndo = \"run(inf)\"\n",
            2 * cpus
        );
        let seen = observe("o1", cpus, 30_000, &tables);
        for hog in &seen.summary.tasks[1..] {
            let run = hog.run.as_secs_f64();
            assert!((run / 15.0 - 1.0).abs() < 0.1, "{cpus} CPUs: {run} s of 15");
        }
    }
}

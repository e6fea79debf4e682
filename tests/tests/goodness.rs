//! The policy `goodness` keeps the rules of Linux 2.3.99 and 2.4.0.
//!
//! The expected values of vectors were computed by hand from the rules. Times are in ticks of
//! 10 ms from the moment at which a driver wakes the tasks.

use model::{SimTime, TaskId};
use runslice_tests::models::Replay;
use runslice_tests::models::counters::{Kernel, Tasks, Variant, quantum, recalculated};
use runslice_tests::models::goodness::Goodness;
use runslice_tests::models::random::{run, spec, tasks};
use runslice_tests::models::ticked::Ticked;
use runslice_tests::timeline::{Levels, Told, driven, machine};

const UP_99: Kernel = Kernel {
    variant: Variant::V99,
    smp: false,
};
const UP_24: Kernel = Kernel {
    variant: Variant::V24,
    smp: false,
};

#[test]
fn every_choice_is_that_of_the_model() {
    let mut choices = 0;
    for seed in 0..240 {
        let variant = [Variant::V99, Variant::V24][seed as usize % 2];
        let smp = seed / 2 % 2 == 1;
        let hz = [100, 250, 1000][seed as usize / 4 % 3];
        let number = if variant == Variant::V99 { 99 } else { 24 };
        let set = [("variant", number), ("smp", u32::from(smp))];
        let spec = spec("goodness", &set, machine(1, hz), &tasks(seed));
        let mut replay = Replay::new(Ticked::new(Goodness::new(Kernel { variant, smp })));
        let summary = run(&spec, &mut replay);
        let what = format!(
            "seed {seed}, {variant:?}, smp {smp}, HZ {hz}\n{}",
            tasks(seed)
        );
        assert_eq!(replay.differs, None, "{what}");
        let counter = |name: &str| {
            let found = summary.policy_counters.iter().find(|(own, _)| own == name);
            found.expect("a counter").1
        };
        assert_eq!(counter("schedules"), replay.decisions, "{what}");
        let recalculations = u64::from(replay.model.model.tasks.recalculations);
        assert_eq!(counter("recalculations"), recalculations, "{what}");
        choices += replay.decisions;
    }
    assert!(choices > 20_000, "only {choices} choices");
}

#[test]
fn v1_hogs_run_their_priority_out_and_begin_anew_together() {
    let tasks = "[task.A]\ndo = \"suspend, run(inf)\"\n[task.B]\ndo = \"suspend, run(inf)\"\n\
                 [task.C]\nnice = 10\ndo = \"suspend, run(inf)\"";
    let told = Told::of(
        "goodness",
        &[],
        machine(1, 100),
        &driven(1200, "A B C", tasks),
    );
    assert_eq!(
        told.turns(0, 10, 1100),
        "0 B, 20 A, 40 C, 50 B, 70 A, 90 C, 100 B"
    );
    assert_eq!(told.counted("recalculations"), 2);
}

#[test]
fn v2_a_task_with_the_same_address_space_wins_a_tie() {
    // A and C are threads of one process.
    let tasks = "[task.T]\ncount = 2\ndo = \"suspend, run(inf)\"\n\
                 [task.B]\ndo = \"suspend, run(inf)\"";
    let workload = driven(1300, "T[0] B T[1]", tasks);
    let told = Told::of("goodness", &[], machine(1, 100), &workload);
    // The turn of A goes on after the recalculation at 120.
    assert_eq!(
        told.turns(0, 10, 1290),
        "0 T.1, 20 T.0, 40 B, 80 T.1, 100 T.0"
    );
    assert_eq!(told.counted("recalculations"), 2);
}

#[test]
fn v3_a_sleeper_gathers_up_to_twice_its_quantum() {
    let after = |quantum: i32, times: usize| {
        let next = |counter: &i32| Some(recalculated(*counter, quantum));
        let counters = std::iter::successors(Some(quantum), next);
        counters.take(times).collect::<Vec<_>>()
    };
    assert_eq!(after(20, 7), [20, 30, 35, 37, 38, 39, 39]);
    assert_eq!(after(6, 6), [6, 9, 10, 11, 11, 11]);
    // The sleeper wakes once between two recalculations, for a moment without a tick.
    for (variant, epoch, expected) in [
        (99, 200, vec![20, 30, 35, 37, 38, 39]),
        (24, 60, vec![6, 9, 10, 11]),
    ] {
        let workload = format!(
            "stop = \"duration:{}ms\"\n[task.sleeper]\n\
             do = \"sleep({}ms), loop(inf)[ run(1us), timer({epoch}ms) ]\"\n\
             [task.hog]\ndo = \"run(inf)\"",
            epoch * 8,
            epoch * 3 / 4 + 2,
        );
        let spec = spec(
            "goodness",
            &[("variant", variant)],
            machine(1, 100),
            &workload,
        );
        let mut sink = Levels::of(TaskId(0));
        run(&spec, &mut sink);
        // Equal reports in a row are one event.
        sink.levels.dedup();
        assert_eq!(sink.levels, expected, "variant {variant}");
    }
}

/// Two tasks in different address spaces; who gets the CPU when the second wakes beside the first?
fn preempts(kernel: Kernel, running: i32, waking: i32) -> bool {
    let (a, b) = (TaskId(0), TaskId(1));
    let mut tasks = Tasks::new(kernel);
    tasks.born(a, 0, 1, None);
    tasks.born(b, 0, 2, None);
    tasks.get_mut(a).counter = running;
    tasks.get_mut(b).counter = waking;
    tasks.preempts(b, a)
}

#[test]
fn v4_a_woken_task_preempts_if_it_is_better() {
    assert!(preempts(UP_99, 5, 39));
    assert!(!preempts(UP_99, 20, 20));
    assert!(!preempts(UP_99, 20, 21));
    assert!(preempts(UP_99, 20, 22));
    assert!(!preempts(UP_24, 20, 22));
    assert!(preempts(UP_24, 20, 23));
}

/// When a task of the nice level wakes beside a hog that has just begun, does it run at once?
fn wakes_into_the_cpu(variant: u32, nice: i32) -> bool {
    let tasks = format!(
        "[task.hog]\ndo = \"suspend, run(inf)\"\n\
         [task.W]\nnice = {nice}\ndo = \"sleep(11ms), run(1ms)\""
    );
    let told = Told::of(
        "goodness",
        &[("variant", variant)],
        machine(1, 100),
        &driven(500, "hog", &tasks),
    );
    let turns = told.collected.turns(0, told.summary.end);
    let first = turns
        .iter()
        .find(|(name, from, to)| name == "W" && from != to);
    first.is_some_and(|(_, from, _)| from.as_nanos() == 11_000_000)
}

#[test]
fn v4_in_the_policy() {
    // 2.3.99: 20 + 20 + 1 against 2 * (20 - nice): a gain of 1 suffices.
    assert!(!wakes_into_the_cpu(99, 0));
    assert!(wakes_into_the_cpu(99, -1));
    // 2.4.0: 6 + 20 + 1 against 6 + 20 - nice: a gain of 1 does not.
    assert!(!wakes_into_the_cpu(24, -1));
    assert!(!wakes_into_the_cpu(24, -2));
    assert!(wakes_into_the_cpu(24, -3));
}

#[test]
fn v5_a_cpu_prefers_who_ran_on_it_last() {
    // X is worth 42 anywhere and stands in front; Y is worth 38, and 15 more on its CPU 0.
    let workload = "stop = \"duration:300ms\"\n\
                    [task.X]\nnice = -1\ncpus = \"1\"\ndo = \"suspend, run(inf)\"\n\
                    [task.Y]\nnice = 1\ncpus = \"0\"\ndo = \"suspend, run(inf)\"\n\
                    [task.left]\nnice = -20\ncpus = \"0\"\ndo = \"run(50ms), suspend\"\n\
                    [task.right]\nnice = -20\ncpus = \"1\"\ndo = \"run(50ms), suspend\"\n\
                    [task.driver]\npolicy = \"fifo:50\"\ncpus = \"0\"\n\
           do = \"sleep(10ms), setaffinity(X, all), setaffinity(Y, all), resume(Y), resume(X)\"\n";
    // Both hogs end at 50 ms: CPU 0 chooses first.
    let told = Told::of("goodness", &[], machine(2, 100), workload);
    assert_eq!(told.turns(0, 50, 200), "0 Y");
    assert_eq!(told.turns(1, 50, 200), "0 X");
    let without = Told::of("goodness", &[("smp", 0)], machine(2, 100), workload);
    assert_eq!(without.turns(0, 50, 200), "0 X");
}

/// A task alone on a machine yields when it has 7 of 20 ticks left.
fn yields_alone(set: &[(&str, u32)], cpus: u16, stop_ms: u32) -> Told {
    let tasks =
        format!("stop = \"duration:{stop_ms}ms\"\n[task.T]\ndo = \"run(135ms), yield, run(inf)\"");
    Told::of("goodness", set, machine(cpus, 100), &tasks)
}

#[test]
fn v6_a_lone_yielder_makes_an_smp_kernel_recalculate() {
    // 7 / 2 + 20 = 23 ticks from 130 ms on.
    for cpus in [1, 2] {
        let at_yield = yields_alone(&[("smp", 1)], cpus, 355);
        assert_eq!(at_yield.counted("recalculations"), 1);
        assert_eq!(at_yield.counted("yields_in_vain"), 1);
        let later = yields_alone(&[("smp", 1)], cpus, 365);
        assert_eq!(later.counted("recalculations"), 2);
    }
    // The kernel for one CPU meets the task a second time.
    assert_eq!(
        yields_alone(&[("smp", 0)], 1, 195).counted("recalculations"),
        0
    );
    assert_eq!(
        yields_alone(&[("smp", 0)], 1, 205).counted("recalculations"),
        1
    );
    // 2.4.0 returns at once; 6 ticks a quantum.
    let ignored = yields_alone(&[("smp", 1), ("variant", 24)], 1, 185);
    assert_eq!(ignored.counted("yields_ignored"), 1);
    assert_eq!(ignored.counted("recalculations"), 3);
    assert_eq!(ignored.counted("schedules"), 2 + 3);
}

/// The part of V7 that is left to sched_ext: real-time tasks do not meet the policy at all.
#[test]
fn v7_real_time_tasks_run_before_any_other() {
    let tasks = "[task.R]\npolicy = \"rr:4\"\ndo = \"suspend, run(30ms)\"\n\
                 [task.F]\npolicy = \"fifo:5\"\ndo = \"suspend, run(20ms)\"\n\
                 [task.O]\nnice = -20\ndo = \"suspend, run(inf)\"";
    let workload = driven(200, "O R F", tasks);
    let workload = workload.replace("[task.driver]", "[task.driver]\npolicy = \"fifo:50\"");
    let told = Told::of("goodness", &[], machine(1, 100), &workload);
    assert_eq!(told.turns(0, 10, 200), "0 F, 2 R, 5 O");
}

#[test]
fn quanta_of_2_4_are_those_of_its_table() {
    let nices = [-20, -15, -10, -5, 0, 5, 10, 15, 19];
    let at_100 = [11, 9, 8, 7, 6, 4, 3, 2, 1];
    let at_1000 = [81, 71, 61, 51, 41, 31, 21, 11, 3];
    assert_eq!(nices.map(|nice| quantum(Variant::V24, nice)), at_100);
    for (hz, quanta) in [(100, at_100), (1000, at_1000)] {
        for (nice, quantum) in nices.into_iter().zip(quanta) {
            let us = 1_000_000 / hz * u32::try_from(quantum).expect("positive");
            // A hog alone recalculates once a quantum.
            let workload = format!(
                "stop = \"duration:{}us\"\n[task.T]\nnice = {nice}\ndo = \"run(inf)\"",
                us * 5 + us / 2
            );
            let set = [("variant", 24), ("hz", hz)];
            let told = Told::of("goodness", &set, machine(1, hz), &workload);
            assert_eq!(told.counted("recalculations"), 5, "HZ {hz}, nice {nice}");
        }
    }
}

#[test]
fn nice_0_gets_twenty_times_the_share_of_nice_19() {
    let workload = "stop = \"duration:21s\"\n[task.N]\ndo = \"run(inf)\"\n\
                    [task.L]\nnice = 19\ndo = \"run(inf)\"";
    let told = Told::of("goodness", &[], machine(1, 100), workload);
    let run = |at: usize| told.summary.tasks[at].run.get() / 1_000_000;
    assert_eq!((run(0), run(1)), (20_000, 1_000));
}

#[test]
fn a_turn_lasts_as_many_ticks_of_the_source_whatever_the_machine_ticks() {
    // Three hogs with 20 ticks each, 200 ms.
    let workload = "stop = \"duration:60s\"\n[task.H]\ncount = 3\nkind = \"process\"\n\
                    do = \"run(inf)\"";
    for hz in [100, 250, 300, 1000] {
        let told = Told::of("goodness", &[], machine(1, hz), workload);
        let turns = told.collected.turns(0, told.summary.end);
        let span = |(_, from, to): &(String, SimTime, SimTime)| to.since(*from).get();
        let (first, mean) = (&turns[1..], 200_000_000_u64);
        let total: u64 = first[..first.len() - 1].iter().map(span).sum();
        let average = total / (first.len() as u64 - 1);
        // Whoever used up the last counter goes on after the recalculation: of three turns two
        // are one here.
        let ratio = average * 1000 / mean;
        assert!(
            (1485..=1515).contains(&ratio),
            "HZ {hz}: {ratio} per mille of 200 ms"
        );
        let runs = told.summary.tasks.iter().map(|task| task.run.get());
        assert!(
            runs.clone()
                .all(|run| run.abs_diff(20_000_000_000) <= 200_000_000),
            "HZ {hz}"
        );
    }
}

/// CPU on which a task runs that wakes when its last CPU is taken and the others idle.
fn wakes_on(variant: u32) -> Vec<u16> {
    // W runs on CPU 1, a stronger hog takes it from there, and CPUs 0, 2 and 3 are idle; of these
    // 2 idles longest, since something short has run on the others meanwhile.
    let tasks = "stop = \"duration:100ms\"\n\
                 [task.W]\ncpus = \"1\"\ndo = \"run(1ms), suspend, run(5ms)\"\n\
                 [task.hog]\nnice = -20\ncpus = \"1\"\nstart = \"5ms\"\ndo = \"run(inf)\"\n\
                 [task.two]\ncpus = \"2\"\nstart = \"10ms\"\ndo = \"run(1ms)\"\n\
                 [task.zero]\ncpus = \"0\"\nstart = \"20ms\"\ndo = \"run(1ms)\"\n\
                 [task.three]\ncpus = \"3\"\nstart = \"30ms\"\ndo = \"run(1ms)\"\n\
                 [irq.I]\nonce = true\nstart = \"50ms\"\nresume = \"W\"\n\
                 [task.free]\ncpus = \"0\"\nstart = \"35ms\"\ndo = \"setaffinity(W, all)\"\n";
    let told = Told::of("goodness", &[("variant", variant)], machine(4, 100), tasks);
    let on = |cpu: u16| {
        let turns = told.collected.turns(cpu, told.summary.end);
        turns
            .iter()
            .any(|(name, from, _)| name == "W" && from.as_nanos() == 50_000_000)
    };
    (0..4).filter(|cpu| on(*cpu)).collect()
}

#[test]
fn a_woken_task_goes_to_the_highest_or_the_longest_idle_cpu() {
    assert_eq!(wakes_on(99), [3]);
    assert_eq!(wakes_on(24), [2]);
}

#[test]
fn a_choice_looks_at_every_task_that_waits() {
    for hogs in [10, 100, 1000] {
        let workload =
            format!("stop = \"duration:20s\"\n[task.H]\ncount = {hogs}\ndo = \"run(inf)\"");
        let told = Told::of(
            "goodness",
            &[("guard_ms", 30000)],
            machine(1, 100),
            &workload,
        );
        // The last choices; those of the first moment see the queue grow.
        let (choices, examined) = (told.counted("schedules"), told.counted("examined"));
        assert!(choices >= 99, "{choices} choices");
        let mean = examined / choices;
        let expected = hogs * 4 / 10..=hogs * 2;
        assert!(expected.contains(&mean), "{hogs} hogs: {mean} a choice");
    }
}

/// How a minute with 300 hogs on one CPU ends.
fn three_hundred_hogs(guard_ms: u32) -> (model::ExitKind, u64) {
    let workload = "stop = \"duration:60s\"\n[task.H]\ncount = 300\ndo = \"run(inf)\"";
    let spec = spec(
        "goodness",
        &[("guard_ms", guard_ms)],
        machine(1, 250),
        workload,
    );
    let mut sink = runslice_tests::collect::Collector::default();
    let summary = sim::run(&spec, &mut sink).expect("a run");
    let guarded = summary
        .policy_counters
        .iter()
        .find(|(name, _)| name == "guarded");
    (summary.exit.kind, guarded.expect("the counter").1)
}

#[test]
fn the_guard_keeps_hundreds_of_hogs_within_the_watchdog() {
    assert_eq!(three_hundred_hogs(0), (model::ExitKind::ErrorStall, 0));
    let (kind, guarded) = three_hundred_hogs(10_000);
    assert_eq!(kind, model::ExitKind::Unreg);
    assert!(guarded >= 300, "{guarded} rescued");
}

#[test]
fn a_limited_search_still_lets_everybody_run() {
    let workload = "stop = \"duration:20s\"\n[task.H]\ncount = 30\ndo = \"run(inf)\"";
    let told = Told::of("goodness", &[("scan_max", 8)], machine(1, 100), workload);
    assert!(told.counted("examined") <= 8 * (told.counted("schedules") + 10));
    let runs: Vec<_> = told
        .summary
        .tasks
        .iter()
        .map(|task| task.run.get())
        .collect();
    let (least, most) = (runs.iter().min().unwrap(), runs.iter().max().unwrap());
    assert!(most - least <= 400_000_000, "{least} to {most}");
}

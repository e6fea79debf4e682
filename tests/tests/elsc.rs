//! The policy `elsc` keeps the rules of ELSC.

//!
//! The expected values of vectors were computed by hand from the rules. Times are in ticks of
//! 10 ms from the moment at which a driver wakes the tasks.

use std::collections::BTreeMap;

use model::TaskId;
use runslice_tests::models::Replay;
use runslice_tests::models::beside::Beside;
use runslice_tests::models::beside::Reason::{
    self, BeforeLowerLists, EarlyEnd, NoRecalculation, OneList, PutFirst, PutLast, YielderYields,
};
use runslice_tests::models::elsc::{Elsc, list_of};
use runslice_tests::models::random::{run, spec, tasks};
use runslice_tests::models::ticked::Ticked;
use runslice_tests::timeline::{Levels, Told, driven, machine};

#[test]
fn every_choice_is_that_of_the_model() {
    let mut choices = 0;
    for seed in 0..240 {
        let smp = seed % 2 == 1;
        let hz = [100, 250, 1000][seed as usize / 2 % 3];
        let set = [("smp", u32::from(smp))];
        let spec = spec("elsc", &set, machine(1, hz), &tasks(seed));
        let mut replay = Replay::new(Ticked::new(Elsc::new(smp)));
        let summary = run(&spec, &mut replay);
        let what = format!("seed {seed}, smp {smp}, HZ {hz}\n{}", tasks(seed));
        assert_eq!(replay.differs, None, "{what}");
        let counter = |name: &str| {
            let found = summary.policy_counters.iter().find(|(own, _)| own == name);
            found.expect("a counter").1
        };
        assert_eq!(counter("schedules"), replay.decisions, "{what}");
        let recalculations = u64::from(replay.model.model.tasks.recalculations);
        assert_eq!(counter("recalculations"), recalculations, "{what}");
        assert_eq!(
            counter("examined"),
            u64::from(replay.model.model.examined),
            "{what}"
        );
        choices += replay.decisions;
    }
    assert!(choices > 20_000, "only {choices} choices");
}

#[test]
fn every_difference_to_goodness_has_one_of_the_known_reasons() {
    let mut differences: [BTreeMap<Reason, u32>; 2] = Default::default();
    let mut choices = 0;
    for seed in 0..240 {
        let smp = seed % 2;
        let spec = spec(
            "elsc",
            &[("smp", smp)],
            machine(1, 100),
            &tasks(seed.into()),
        );
        let mut replay = Replay::new(Ticked::new(Beside::new(smp == 1)));
        run(&spec, &mut replay);
        let what = format!("seed {seed}\n{}", tasks(seed.into()));
        assert_eq!(replay.differs, None, "{what}");
        let beside = &replay.model.model;
        assert_eq!(beside.unexplained, [""; 0], "{what}");
        choices += beside.choices;
        for (reason, times) in &beside.differences {
            *differences[smp as usize].entry(*reason).or_default() += times;
        }
    }
    let reasons = |smp: usize| differences[smp].keys().copied().collect::<Vec<_>>();
    let up = [OneList, EarlyEnd, YielderYields, PutFirst, PutLast];
    assert_eq!(reasons(0), up);
    // On the kernel for several CPUs a yielder is worth nothing and gets no second look.
    let smp = [
        OneList,
        EarlyEnd,
        NoRecalculation,
        BeforeLowerLists,
        PutFirst,
        PutLast,
    ];
    assert_eq!(reasons(1), smp);
    let different: u32 = differences.iter().flat_map(BTreeMap::values).sum();
    assert!(different * 2 < choices, "{different} of {choices} differ");
}

#[test]
fn the_index_of_a_list_follows_from_counter_and_priority() {
    assert_eq!(list_of(20, 20), 10);
    assert_eq!(list_of(39, 20), 14);
    assert_eq!(list_of(1, 20), 5);
    assert_eq!(list_of(10, 10), 5);
    assert_eq!(list_of(1, 1), 0);
    assert_eq!(list_of(0, 20), 10);
    assert_eq!(list_of(0, 1), 0);
    // V8: it would be 20.
    assert_eq!(list_of(53, 27), 19);
}

#[test]
fn v1_hogs_take_turns_as_under_goodness_and_two_are_looked_at() {
    let tasks = "[task.A]\ndo = \"suspend, run(inf)\"\n[task.B]\ndo = \"suspend, run(inf)\"\n\
                 [task.C]\nnice = 10\ndo = \"suspend, run(inf)\"";
    let turns = "0 B, 20 A, 40 C, 50 B, 70 A, 90 C, 100 B";
    let told = |ms: u32| {
        let workload = driven(ms, "A B C", tasks);
        Told::of("elsc", &[], machine(1, 100), &workload)
    };
    assert_eq!(told(1200).turns(0, 10, 1100), turns);
    // At 20, A is looked at, and B behind it, which has no ticks left.
    let (before, after) = (told(205), told(215));
    assert_eq!(after.counted("schedules") - before.counted("schedules"), 1);
    assert_eq!(after.counted("examined") - before.counted("examined"), 2);
}

/// Who runs on CPU 0 when it has to choose between X, which stands in front and ran on CPU 1, and
/// Y, which ran on CPU 0?
fn chosen_on_cpu_0(policy: &str, x: i32, y: i32) -> String {
    let workload = format!(
        "stop = \"duration:300ms\"\n\
         [task.X]\nnice = {x}\ncpus = \"1\"\ndo = \"suspend, run(inf)\"\n\
         [task.Y]\nnice = {y}\ncpus = \"0\"\ndo = \"suspend, run(inf)\"\n\
         [task.left]\nnice = -20\ncpus = \"0\"\ndo = \"run(50ms), suspend\"\n\
         [task.right]\nnice = -20\ncpus = \"1\"\ndo = \"run(50ms), suspend\"\n\
         [task.driver]\npolicy = \"fifo:50\"\ncpus = \"0\"\n\
         do = \"sleep(10ms), setaffinity(X, all), setaffinity(Y, all), resume(Y), resume(X)\"\n"
    );
    Told::of(policy, &[], machine(2, 100), &workload).turns(0, 50, 200)
}

#[test]
fn v2_a_task_of_a_lower_list_is_passed_over_although_its_bonus_would_lift_it() {
    // X is worth 42 in list 10; Y is worth 38 and 15 more, in list 9.
    assert_eq!(chosen_on_cpu_0("goodness", -1, 1), "0 Y");
    assert_eq!(chosen_on_cpu_0("elsc", -1, 1), "0 X");
}

#[test]
fn v3_within_a_list_the_bonus_counts() {
    // 40 and 40 + 15, both in list 10.
    assert_eq!(chosen_on_cpu_0("goodness", 0, 0), "0 Y");
    assert_eq!(chosen_on_cpu_0("elsc", 0, 0), "0 Y");
}

#[test]
fn v4_the_search_ends_after_five_tasks() {
    // Eight equals, of which the seventh shares the driver's address space.
    let workload = "stop = \"duration:190ms\"\n\
        [task.P]\nkind = \"process\"\ncount = 7\ndo = \"suspend, run(inf)\"\n\
        [task.T]\ncount = 2\ndo = \"if(self)[ suspend, run(inf) ] else [ sleep(10ms), \
        resume(P[0]), resume(T[1]), for(i, 6)[ resume(P[i + 1]) ] ]\"\n";
    for (policy, first) in [("goodness", "0 T.1"), ("elsc", "0 P.6")] {
        let told = Told::of(policy, &[], machine(1, 100), workload);
        assert_eq!(told.turns(0, 10, 200), first, "{policy}");
        let before = Told::of(
            policy,
            &[],
            machine(1, 100),
            &workload.replace("190ms", "9ms"),
        );
        let examined = told.counted("examined") - before.counted("examined");
        // The driver, when it woke; then all eight, or five of them.
        assert_eq!(
            examined,
            if policy == "elsc" { 1 + 5 } else { 1 + 8 },
            "{policy}"
        );
    }
}

#[test]
fn v5_a_lone_yielder_runs_again_without_a_recalculation() {
    let recalculations = |policy, cpus, smp, ms| {
        let tasks =
            format!("stop = \"duration:{ms}ms\"\n[task.T]\ndo = \"run(135ms), yield, run(inf)\"");
        let told = Told::of(policy, &[("smp", smp)], machine(cpus, 100), &tasks);
        assert_eq!(told.counted("yields_in_vain"), 1);
        told.counted("recalculations")
    };
    for (cpus, smp) in [(1, 0), (1, 1), (2, 1)] {
        // 7 ticks are left, as before.
        assert_eq!(recalculations("elsc", cpus, smp, 195), 0);
        assert_eq!(recalculations("elsc", cpus, smp, 205), 1);
    }
    assert_eq!(recalculations("goodness", 2, 1, 195), 1);
}

#[test]
fn v6_a_yielder_gives_way_within_its_list() {
    let tasks = "[task.U]\ndo = \"suspend, run(inf)\"\n\
                 [task.T]\ndo = \"suspend, run(5ms), yield, run(inf)\"";
    for smp in [0, 1] {
        let workload = driven(300, "U T", tasks);
        let told = Told::of("elsc", &[("smp", smp)], machine(1, 1000), &workload);
        let turns = told.collected.turns(0, told.summary.end);
        let longer = turns.iter().filter(|(_, from, to)| from != to);
        let names: Vec<_> = longer.map(|(name, ..)| name.as_str()).collect();
        assert_eq!(names[..2], ["T", "U"], "smp {smp}");
        assert_eq!(told.counted("yields"), 1);
        assert_eq!(told.counted("yields_in_vain"), 0);
    }
}

#[test]
fn v8_the_highest_list_takes_all_that_would_lie_above() {
    // Priority 27: 27, 40, 47, 50, 52, 53. (27 + 27) / 4 is 13; 80 / 4 would be 20.
    let workload = "stop = \"duration:1400ms\"\n\
                    [task.sleeper]\nnice = -7\n\
                    do = \"sleep(152ms), loop(inf)[ run(1us), timer(200ms) ]\"\n\
                    [task.hog]\ndo = \"run(inf)\"";
    let spec = spec("elsc", &[], machine(1, 100), workload);
    let mut sink = Levels::of(TaskId(0));
    run(&spec, &mut sink);
    sink.levels.dedup();
    assert_eq!(sink.levels, [13, 16, 18, 19]);
}

#[test]
fn the_cost_of_a_choice_does_not_grow_with_the_number_of_tasks() {
    let cost = |hogs: u32| {
        let told = |seconds: u32| {
            let workload = format!(
                "stop = \"duration:{seconds}s\"\n[task.H]\nkind = \"process\"\n\
                 count = {hogs}\ndo = \"run(inf)\""
            );
            Told::of("elsc", &[], machine(1, 100), &workload)
        };
        // What happens at the begin is in both.
        let (short, long) = (told(1), told(21));
        let more = |name| long.counted(name) - short.counted(name);
        let choices = more("schedules");
        let instructions = long.summary.instructions - short.summary.instructions;
        (more("examined") * 10 / choices, instructions / choices)
    };
    let (examined, instructions) = cost(10);
    for hogs in [100, 1000] {
        let (more, longer) = cost(hogs);
        assert!(
            more <= 50 && examined <= 50,
            "{hogs} hogs: {more} tenths of a task"
        );
        let ratio = longer * 100 / instructions;
        assert!(
            (90..=110).contains(&ratio),
            "{hogs} hogs: {longer}, with 10: {instructions}"
        );
    }
}

#[test]
fn nice_0_gets_twenty_times_the_share_of_nice_19() {
    let workload = "stop = \"duration:21s\"\n[task.N]\ndo = \"run(inf)\"\n\
                    [task.L]\nnice = 19\ndo = \"run(inf)\"";
    let told = Told::of("elsc", &[], machine(1, 100), workload);
    let run = |at: usize| told.summary.tasks[at].run.get() / 1_000_000;
    assert_eq!((run(0), run(1)), (20_000, 1_000));
}

#[test]
fn the_guard_keeps_hundreds_of_hogs_within_the_watchdog() {
    let minute = |guard_ms: u32| {
        let workload = "stop = \"duration:60s\"\n[task.H]\ncount = 300\ndo = \"run(inf)\"";
        let spec = spec("elsc", &[("guard_ms", guard_ms)], machine(1, 250), workload);
        let mut sink = runslice_tests::collect::Collector::default();
        sim::run(&spec, &mut sink).expect("a run").exit.kind
    };
    assert_eq!(minute(0), model::ExitKind::ErrorStall);
    assert_eq!(minute(10_000), model::ExitKind::Unreg);
}

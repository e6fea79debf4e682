//! Scheduling domains move tasks as the source's formulas say, computed by hand. 1000 ticks a
//! second; loads are in 128ths of a task.

use runslice_tests::timeline::{Told, machine};

/// A run for `ms` milliseconds on `cpus` CPUs.
fn told(policy: &str, set: &[(&str, u32)], (cpus, ms): (u16, u64), tasks: &str) -> Told {
    let tables = format!("stop = \"duration:{ms}ms\"\n{tasks}");
    Told::of(policy, set, machine(cpus, 1000), &tables)
}

/// `count` hogs that begin on CPU 0 at once and may go anywhere.
fn hogs(count: usize) -> String {
    format!(
        "[barrier.b]\nparties = {count}\n[task.h]\ncount = {count}\ncpus = \"0\"\n\
         do = \"setaffinity(self, all), barrier(b), run(inf)\"\n"
    )
}

/// CPU time of each task in whole milliseconds.
fn run_ms(told: &Told) -> Vec<u64> {
    let tasks = told.summary.tasks.iter();
    tasks.map(|task| task.run.get() / 1_000_000).collect()
}

/// At the first tick all have woken 1 ms ago and are hot (2.5 ms); after that failure they are not.
#[test]
fn idle_cpus_pull_one_hog_each_at_the_second_tick() {
    let told = told("o1:domains=1", &[], (4, 100), &hogs(4));
    assert_eq!(run_ms(&told), [98, 98, 98, 100]);
    assert_eq!((told.counted("lb_failed"), told.counted("pulled")), (3, 3));
}

/// 64, 128, then every 256 ms, at multiples of 64 that CPU n counts from 250 n ms on: nine looks
/// of each in two seconds.
#[test]
fn busy_cpus_in_balance_look_ever_more_seldom() {
    let bound: String = (0..4)
        .map(|cpu| format!("[task.h{cpu}]\ncpus = \"{cpu}\"\ndo = \"run(inf)\"\n"))
        .collect();
    let told = told("o1:domains=1", &[], (4, 2000), &bound);
    assert_eq!((told.counted("lb_busy"), told.counted("lb_idle")), (36, 0));
    assert_eq!(told.counted("pulled"), 0);
}

/// 384 against 256, average 320: 64 are no task, and one more there would use no more of either.
/// The balancer of 2.6.3 moves the odd one to and fro.
#[test]
fn three_against_two_stay() {
    for policy in ["o1:domains=1", "staircase5:domains=1"] {
        let told = told(policy, &[], (2, 3000), &hogs(5));
        assert_eq!(told.counted("pulled"), 2, "{policy}");
    }
    let without = told("o1", &[], (2, 3000), &hogs(5));
    assert!(without.counted("pulled") > 5);
}

/// CPU 1 gets one from its own node; CPU 2 one over the border, and CPU 3 none.
#[test]
fn nodes_pull_from_each_other_at_ticks() {
    let told = told("o1:domains=1", &[("node_cpus", 2)], (4, 300), &hogs(3));
    assert_eq!(
        (told.counted("pulled"), told.counted("pulled_node")),
        (2, 1)
    );
    assert_eq!(run_ms(&told), [297, 298, 300]);
}

/// Two tasks that run on one core, and an idle core that finds none to pull: after four failures it
/// gets one of them, which loses no time.
#[test]
fn a_task_that_runs_is_pushed_from_a_busy_core_to_an_idle_one() {
    let begin = |name: &str, cpu: u16| {
        format!("[task.{name}]\ncpus = \"{cpu}\"\ndo = \"setaffinity(self, all), run(inf)\"\n")
    };
    let tasks = begin("a", 0) + &begin("b", 1);
    for policy in ["o1:domains=1", "staircase5:domains=1"] {
        let told = told(policy, &[("smt_cpus", 2)], (4, 300), &tasks);
        assert_eq!(told.counted("pushed"), 1, "{policy}");
        assert_eq!(run_ms(&told), [300, 300], "{policy}");
        let turns = |cpu| told.collected.turns(cpu, told.summary.end).len();
        assert_eq!(turns(2) + turns(3), 1, "{policy}");
    }
}

/// How often a task that slept on CPU 1, beside a hog or alone, is drawn to its waker's CPU 0.
fn drawn(hog: bool, slept: &str) -> u64 {
    let hog = if hog {
        "[task.hog]\ncpus = \"1\"\ndo = \"run(inf)\"\n"
    } else {
        ""
    };
    let tasks = format!(
        "[task.sleeper]\ncpus = \"1\"\ndo = \"setaffinity(self, all), suspend, run(100us)\"\n{hog}\
         [task.waker]\ncpus = \"0\"\ndo = \"run({slept}), resume(sleeper), run(inf)\"\n"
    );
    told("o1:domains=1", &[], (2, 200), &tasks).counted("woken_here")
}

#[test]
fn a_waker_draws_who_is_no_longer_hot_but_not_from_an_idle_cpu() {
    assert_eq!(drawn(true, "10ms"), 1, "2.5 ms have passed");
    assert_eq!(
        drawn(true, "1500us"),
        0,
        "hot, and 137 % of 128 are more than 127"
    );
    assert_eq!(drawn(false, "10ms"), 0, "its own CPU is idle");
}

/// Siblings: whoever wakes takes the idle CPU of its core at once.
#[test]
fn a_woken_task_takes_an_idle_cpu_of_its_core() {
    let tasks = "[task.sleeper]\ncpus = \"1\"\n\
                 do = \"setaffinity(self, all), sleep(10ms), run(5ms)\"\n\
                 [task.hog]\ncpus = \"1\"\ndo = \"run(inf)\"\n";
    let begins = |smt_cpus| {
        let told = told("o1:domains=1", &[("smt_cpus", smt_cpus)], (2, 200), tasks);
        let turns = told.collected.turns(0, told.summary.end);
        let mut own = turns.iter().filter(|(name, ..)| name == "sleeper");
        (
            own.next().map(|turn| turn.1.as_nanos()),
            told.counted("pulled"),
        )
    };
    assert_eq!(begins(2), (Some(10_000_000), 0));
    let (pulled_at, pulled) = begins(1);
    assert!(pulled_at > Some(10_000_000), "{pulled_at:?}");
    assert_eq!(
        pulled, 1,
        "without siblings it waits until an idle CPU looks"
    );
}

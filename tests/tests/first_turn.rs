//! A task without history beside a hog: how long it waits for its first turn under the schedulers
//! that know sleep by its traces only, computed by hand.
//!
//! Workloads begin with all tasks at once and none with a history, so these waits are the longest
//! of short runs: 200 ms under `goodness` and `elsc`, 102 ms under `o1`.

use runslice_tests::timeline::{Told, machine};

/// Wakeup latency of the group `N`, which wakes once at `wakes_us`, in microseconds.
fn wait(policy: &str, set: &[(&str, u32)], wakes_us: u64) -> u64 {
    let tables = format!(
        "stop = \"duration:400ms\"\n[task.H]\nkind = \"process\"\ndo = \"run(inf)\"\n\
         [task.N]\nkind = \"process\"\nstart = \"{wakes_us}us\"\ndo = \"run(1ms)\"\n"
    );
    let told = Told::of(policy, set, machine(1, 1000), &tables);
    let turns = told.collected.turns(0, told.summary.end);
    let first = turns
        .iter()
        .find(|(name, from, to)| name == "N" && from != to);
    first.expect("it runs").1.as_nanos() / 1000 - wakes_us
}

/// 20 ticks of 10 ms each, and priority 20. The hog is worth 20 + 20 less its ticks, and 1 for its
/// own address space; the other is worth 40.
#[test]
fn two_4_gives_way_when_the_hog_has_lost_two_ticks() {
    for policy in ["goodness", "elsc"] {
        let up = [("smp", 0)];
        // 41 against 40, 40 against 40: the hog keeps the CPU until its counter is used up.
        assert_eq!(wait(policy, &up, 5_000), 195_000, "{policy}");
        assert_eq!(wait(policy, &up, 15_000), 185_000, "{policy}");
        // 39 against 40.
        assert_eq!(wait(policy, &up, 25_000), 0, "{policy}");
    }
}

/// Nobody has slept, so both have priority 125, and only a better one preempts: the wait is what is
/// left of the slice of 102 ms.
#[test]
fn two_6_waits_for_the_end_of_the_slice() {
    assert_eq!(wait("o1", &[], 1_000), 101_000);
    assert_eq!(wait("o1", &[], 25_000), 77_000);
}

/// Below the first tick of 10 ms no counter changes, so the two versions, whose goodness differs
/// in what a counter begins with, choose alike; behind it they do not.
#[test]
fn the_versions_of_2_4_choose_alike_before_the_first_tick_and_not_behind_it() {
    let run = |variant: u32, ms: u32| {
        let tables = format!(
            "stop = \"duration:{ms}ms\"\n[task.H]\nkind = \"process\"\ncount = 2\n\
             do = \"run(inf)\"\n[task.S]\nkind = \"process\"\n\
             do = \"loop(inf)[ run(300us), sleep(700us) ]\"\n"
        );
        let told = Told::of(
            "goodness",
            &[("variant", variant)],
            machine(1, 1000),
            &tables,
        );
        told.collected.turns(0, told.summary.end)
    };
    assert_eq!(run(99, 9), run(24, 9));
    assert_ne!(run(99, 200), run(24, 200));
}

/// Unix sockets of today flag their wakeups as synchronous, and 2.6.3 did not; taken as the source
/// takes pipes, every message moves its receiver.
#[test]
fn a_flagged_wakeup_moves_the_receiver_unless_told_otherwise() {
    let moved = |sync: u32| {
        let tables = "stop = \"duration:200ms\"\n[chan.c]\nkind = \"unix\"\nmsg = 100\n\
                      [task.S]\nkind = \"process\"\ncpus = \"0\"\n\
                      do = \"loop(inf)[ run(300us), send(c), sleep(700us) ]\"\n\
                      [task.H]\nkind = \"process\"\ncount = 2\ndo = \"run(inf)\"\n\
                      [task.R]\nkind = \"process\"\ndo = \"loop(inf)[ recv(c), run(300us) ]\"\n";
        let told = Told::of("o1", &[("sync_wakeups", sync)], machine(2, 1000), tables);
        told.counted("picked_elsewhere")
    };
    assert!(moved(1) > 2 * moved(0), "{} and {}", moved(1), moved(0));
}

//! Shares of CPU hogs by nice level: 20:1 is printed in a document, the others follow from the
//! rules by hand.

use runslice_tests::models::observe::{hogs, observe_at};

/// CPU times of hogs with these nice values, in milliseconds, over whole turns of all.
fn times(policy: &str, hz: u32, ms: u64, nices: &[i32]) -> Vec<u64> {
    let names = ["A", "B", "C"];
    let tasks: Vec<_> = names.into_iter().zip(nices.iter().copied()).collect();
    let seen = observe_at(hz, policy, 1, ms, &hogs(&tasks));
    let run = tasks
        .iter()
        .map(|(name, _)| seen.run_ms(name).round() as u64);
    run.collect()
}

/// A priority of 40, 20, 10 or 1 is so many ticks of 10 ms a turn.
#[test]
fn counters_of_2_3_share_by_priority() {
    for policy in ["goodness", "elsc"] {
        assert_eq!(
            times(policy, 100, 21_000, &[0, 19]),
            [20_000, 1_000],
            "{policy}"
        );
        assert_eq!(
            times(policy, 100, 30_000, &[0, 10]),
            [20_000, 10_000],
            "{policy}"
        );
        assert_eq!(
            times(policy, 100, 41_000, &[-20, 19]),
            [40_000, 1_000],
            "{policy}"
        );
    }
}

/// 11, 6 and 1 ticks; 3 at nice 10.
#[test]
fn counters_of_2_4_share_by_the_table_of_quanta() {
    let policy = "goodness:variant=24";
    assert_eq!(
        times(policy, 100, 18_000, &[-20, 0, 19]),
        [11_000, 6_000, 1_000]
    );
    assert_eq!(times(policy, 100, 9_000, &[0, 10]), [6_000, 3_000]);
}

/// Slices of 102, 53 and 10 ms in 2.6.3, of 100, 50 and 5 ms in 2.6.10.
#[test]
fn slices_of_2_6_share_as_they_are_long() {
    assert_eq!(
        times("o1", 1000, 16_500, &[0, 10, 19]),
        [10_200, 5_300, 1_000]
    );
    assert_eq!(
        times("o1:version=10", 1000, 15_500, &[0, 10, 19]),
        [10_000, 5_000, 500]
    );
}

/// The paper's scheduler knows no nice level.
#[test]
fn mlfq_shares_evenly_whatever_the_nice_level() {
    // From the bottom on in turns of 200 ms; three hogs reach it after 5.7 s.
    let [a, b, c] = times("mlfq", 1000, 60_000, &[-20, 0, 19])[..] else {
        panic!("three hogs");
    };
    assert!(a.abs_diff(b) <= 400 && b.abs_diff(c) <= 400, "{a} {b} {c}");
}

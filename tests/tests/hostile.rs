//! Damaged and malicious objects end as an error or as an exit, never as a crash, and never take
//! more memory than they may.

use std::collections::BTreeMap;

use runslice_tests::hostile::{Breaker, Fate};
use sim::Backend;

/// Runs damaged objects; gives how many met each fate.
fn break_objects(seeds: std::ops::Range<u64>, backend: Backend) -> BTreeMap<Fate, u64> {
    let breaker = Breaker::new();
    let mut fates = BTreeMap::new();
    for seed in seeds {
        let (fate, _) = breaker.run(seed, backend);
        *fates.entry(fate).or_default() += 1;
    }
    assert!(resident_peak() < 2 << 30, "{} bytes", resident_peak());
    fates
}

/// The most memory that this process ever had, bytes.
fn resident_peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let number = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
    1024 * number.expect("a kernel that tells the peak")
}

#[test]
fn damaged_objects_end_as_errors_or_exits() {
    let fates = break_objects(0..1500, Backend::Interpreter);
    println!("{fates:?}");
    for fate in [Fate::Refused, Fate::Ejected, Fate::Ran] {
        let count = fates.get(&fate).copied().unwrap_or(0);
        assert!(count > 40, "{fate:?}: {fates:?}");
    }
}

#[test]
fn damaged_objects_behave_alike_on_both_back_ends() {
    let breaker = Breaker::new();
    for seed in 0..150 {
        let interpreted = breaker.run(seed, Backend::Interpreter);
        assert_eq!(interpreted, breaker.run(seed, Backend::Jit), "seed {seed}");
    }
}

#[test]
#[ignore = "takes minutes: make test-long"]
fn a_hundred_thousand_damaged_objects_end_as_errors_or_exits() {
    println!("{:?}", break_objects(0..100_000, Backend::Interpreter));
}

#[test]
#[ignore = "takes a minute: make test-long"]
fn two_thousand_damaged_objects_behave_alike_on_both_back_ends() {
    let breaker = Breaker::new();
    for seed in 150..2_150 {
        let interpreted = breaker.run(seed, Backend::Interpreter);
        assert_eq!(interpreted, breaker.run(seed, Backend::Jit), "seed {seed}");
    }
}

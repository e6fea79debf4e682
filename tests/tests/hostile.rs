//! Damaged and malicious objects end as an error or as an exit, never as a crash, and never take
//! more memory than they may.

use std::collections::BTreeMap;
use std::ops::Range;

use runslice_tests::hostile::{Breaker, Fate};
use runslice_tests::usage::memory;
use sim::Backend;

/// What the process may take at most while it runs damaged objects: the caps of one instance, 256
/// MiB of maps and as many of arena pages for each of the tests that run at a time, and itself.
const MOST_RESIDENT: u64 = 2 << 30;

/// Runs damaged objects; gives how many met each fate, and prints it.
fn break_objects(seeds: Range<u64>, backend: Backend) -> BTreeMap<Fate, u64> {
    let count = seeds.end - seeds.start;
    let breaker = Breaker::new();
    let mut fates = BTreeMap::new();
    for seed in seeds {
        let (fate, _) = breaker.run(seed, backend);
        *fates.entry(fate).or_default() += 1;
    }
    let peak = memory("VmHWM:");
    println!(
        "{count} damaged objects on {backend:?}: {fates:?}, at most {} MiB",
        peak >> 20
    );
    assert_eq!(fates.values().sum::<u64>(), count);
    assert!(peak < MOST_RESIDENT, "{peak} bytes");
    fates
}

#[test]
fn damaged_objects_end_as_errors_or_exits() {
    let fates = break_objects(0..1500, Backend::Interpreter);
    for fate in [Fate::Refused, Fate::Ejected, Fate::Ran] {
        let count = fates.get(&fate).copied().unwrap_or(0);
        assert!(count > 40, "{fate:?}: {fates:?}");
    }
}

/// Runs damaged objects on both back ends; gives how many met each fate on both, and prints it.
fn break_on_both(seeds: Range<u64>) {
    let breaker = Breaker::new();
    let (count, mut fates) = (seeds.end - seeds.start, BTreeMap::<Fate, u64>::new());
    for seed in seeds {
        let interpreted = breaker.run(seed, Backend::Interpreter);
        assert_eq!(interpreted, breaker.run(seed, Backend::Jit), "seed {seed}");
        *fates.entry(interpreted.0).or_default() += 1;
    }
    println!("{count} damaged objects alike on both back ends: {fates:?}");
    assert_eq!(fates.values().sum::<u64>(), count);
    assert!(
        memory("VmHWM:") < MOST_RESIDENT,
        "{} bytes",
        memory("VmHWM:")
    );
}

#[test]
fn damaged_objects_behave_alike_on_both_back_ends() {
    break_on_both(0..150);
}

#[test]
#[ignore = "takes minutes: make test-long"]
fn a_hundred_thousand_damaged_objects_end_as_errors_or_exits() {
    break_objects(0..100_000, Backend::Interpreter);
}

#[test]
#[ignore = "takes a minute: make test-long"]
fn two_thousand_damaged_objects_behave_alike_on_both_back_ends() {
    break_on_both(150..2_150);
}

//! The seeds of many runs, made of one.

use crate::Rng;

/// Keeps these streams apart from those that a run draws from.
const STREAM_RUNS: u64 = 3 << 62;

/// The seed of run number `run`, from 0. The first has `seed` itself, so that it is the run that a
/// single one would be; the others are below 2^53, so that every reader of JSON takes them whole.
#[must_use]
pub fn of_run(seed: u64, run: u64) -> u64 {
    match run {
        0 => seed,
        _ => Rng::new(seed, STREAM_RUNS + run).next_u64() >> 11,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_run_is_the_single_one_and_neighbouring_seeds_share_no_run() {
        assert_eq!(of_run(7, 0), 7);
        let mut all: Vec<u64> = (1..3)
            .flat_map(|seed| (0..500).map(move |run| of_run(seed, run)))
            .collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 1000);
        assert!(all.iter().all(|seed| *seed < 1 << 53));
    }
}

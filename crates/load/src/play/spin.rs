//! Bursts of CPU time: work that takes as long as was asked for, however often it is interrupted.

use std::hint::black_box;

use super::sys;

/// Below this a burst is counted in turns only: reading the clock would be a good part of it.
const SHORT: u64 = 20_000;
/// Between two looks at the clock.
const PIECE: u64 = 1_000_000;
/// Turns of one measurement.
const SAMPLE: u64 = 50_000;

/// How fast this machine spins.
#[derive(Clone, Copy, Debug)]
pub struct Spin {
    /// Turns in 1024 ns, at least 1.
    turns: u64,
}

impl Spin {
    /// Measures: the fastest of several samples, because whatever disturbs makes them slower.
    #[must_use]
    pub fn calibrate() -> Self {
        let sample = |_| {
            let begin = sys::cpu_time();
            turn(SAMPLE);
            sys::cpu_time().saturating_sub(begin).max(1)
        };
        let fastest = (0..9).map(sample).min().unwrap_or(1);
        Self {
            turns: (SAMPLE * 1024 / fastest).max(1),
        }
    }

    /// Uses `ns` of CPU time.
    pub fn burn(self, ns: u64) {
        if ns <= SHORT {
            return self.count(ns);
        }
        let end = sys::cpu_time() + ns;
        loop {
            let left = end.saturating_sub(sys::cpu_time());
            if left <= SHORT / 4 {
                return self.count(left);
            }
            // A little less than what is left: the rest is measured again.
            self.count((left - left / 16).min(PIECE));
        }
    }

    fn count(self, ns: u64) {
        turn(ns * self.turns / 1024);
    }
}

#[inline(never)]
fn turn(turns: u64) {
    for number in 0..turns {
        black_box(number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_never_ends_before_its_time() {
        let spin = Spin::calibrate();
        for ns in [SHORT + 1, 300_000, 5_000_000] {
            let begin = sys::cpu_time();
            spin.burn(ns);
            let used = sys::cpu_time() - begin;
            assert!(used + SHORT / 4 >= ns, "{used} of {ns}");
        }
        spin.burn(0);
    }
}

//! Bursts of CPU time: work that takes as long as was asked for, however often it is interrupted.
//!
//! A turn has the processor's `pause`. A QEMU that emulates all CPUs of a guest in one thread goes
//! from one to the next at a `pause`; without it, a busy CPU would keep the others still until
//! QEMU's own time is up, and a burst of 1.3 ms would take 1.7 ms.

use std::hint::{black_box, spin_loop};

use super::sys;

/// Counted in turns without a look at the clock at most, in nanoseconds. Of a shorter burst,
/// reading the clock would be a good part.
const PIECE: u64 = 20_000;
/// Turns of one measurement: some hundred microseconds.
const SAMPLE: u64 = 5_000;
/// Binary digits of the time that [`Spin::turns`] is for.
const UNIT_BITS: u32 = 20;

/// How fast this machine spins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spin {
    /// Turns in 2^20 ns (about a millisecond), at least 1.
    turns: u64,
}

impl Spin {
    /// Measures: the fastest of several samples, because whatever disturbs makes them slower.
    #[must_use]
    pub fn calibrate() -> Self {
        Self::measured(sys::cpu_time, turn)
    }

    fn measured(mut cpu_time: impl FnMut() -> u64, mut turn: impl FnMut(u64)) -> Self {
        let sample = |_| {
            let begin = cpu_time();
            turn(SAMPLE);
            cpu_time().saturating_sub(begin).max(1)
        };
        let fastest = (0..9).map(sample).min().unwrap_or(1);
        Self {
            turns: ((SAMPLE << UNIT_BITS) / fastest).max(1),
        }
    }

    /// Uses `ns` of CPU time.
    pub fn burn(self, ns: u64) {
        self.burn_by(ns, sys::cpu_time, turn);
    }

    fn burn_by(self, ns: u64, mut cpu_time: impl FnMut() -> u64, mut turn: impl FnMut(u64)) {
        if ns <= PIECE {
            return turn(self.turns_in(ns));
        }
        let end = cpu_time() + ns;
        loop {
            let left = end.saturating_sub(cpu_time());
            if left <= PIECE / 4 {
                return turn(self.turns_in(left));
            }
            // A little less than what is left: the rest is measured again.
            turn(self.turns_in((left - left / 16).min(PIECE)));
        }
    }

    /// Turns that take `ns`, at most [`PIECE`].
    fn turns_in(self, ns: u64) -> u64 {
        (ns * self.turns) >> UNIT_BITS
    }
}

#[inline(never)]
fn turn(turns: u64) {
    for number in 0..turns {
        black_box(number);
        spin_loop();
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use super::*;

    /// A machine on which a turn takes `turn_ns` and nothing else takes time.
    struct Counted {
        turn_ns: u64,
        now: Cell<u64>,
        pieces: RefCell<Vec<u64>>,
    }

    impl Counted {
        fn new(turn_ns: u64) -> Self {
            Self {
                turn_ns,
                now: Cell::new(1_000),
                pieces: RefCell::default(),
            }
        }

        fn cpu_time(&self) -> impl Fn() -> u64 {
            || self.now.get()
        }

        fn turn(&self) -> impl Fn(u64) {
            |turns| {
                self.now.set(self.now.get() + turns * self.turn_ns);
                self.pieces.borrow_mut().push(turns * self.turn_ns);
            }
        }

        /// CPU time that `spin` uses when `ns` are asked for, and the longest piece of it.
        fn burnt(&self, spin: Spin, ns: u64) -> (u64, u64) {
            let begin = self.now.get();
            self.pieces.borrow_mut().clear();
            spin.burn_by(ns, self.cpu_time(), self.turn());
            let longest = self.pieces.borrow().iter().copied().max();
            (self.now.get() - begin, longest.unwrap_or(0))
        }
    }

    #[test]
    fn a_burst_takes_its_time_to_a_turn_and_looks_at_the_clock_each_20_us() {
        for turn_ns in [1, 40, 700] {
            let machine = Counted::new(turn_ns);
            let spin = Spin::measured(machine.cpu_time(), machine.turn());
            for ns in [0, 10_000, PIECE, PIECE + 1, 300_000, 5_000_000] {
                let (used, longest) = machine.burnt(spin, ns);
                assert!(used <= ns, "{used} of {ns}, {turn_ns} a turn");
                // What is rounded down: a turn, and a millionth for the unit.
                assert!(used + 2 * turn_ns > ns, "{used} of {ns}, {turn_ns} a turn");
                assert!(
                    longest <= 20_000,
                    "{longest} without a look, {turn_ns} a turn"
                );
            }
        }
    }

    #[test]
    fn a_machine_that_is_slower_than_measured_is_looked_at_and_not_overrun() {
        let fast = Counted::new(40);
        let spin = Spin::measured(fast.cpu_time(), fast.turn());
        let slow = Counted::new(60);
        let (used, _) = slow.burnt(spin, 1_000_000);
        // One piece is too long by half at most, and that is less than half a piece.
        assert!((999_900..=1_000_000 + PIECE / 2).contains(&used), "{used}");
    }
}

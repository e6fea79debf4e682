//! Bursts of CPU time: work that takes as long as was asked for, however often it is interrupted.
//!
//! Now and then a turn has the processor's `pause`. A QEMU that emulates all CPUs of a guest in one
//! thread goes from one to the next at a `pause`; without it, a busy CPU would keep the others
//! still until QEMU's own time is up, and a burst of 1.3 ms would take 1.7 ms. But going to the
//! next CPU takes QEMU as long as 100 turns, so with a `pause` in each it would do little else.
//!
//! A burst does not ask for its CPU time all the time. The kernel brings the thread's account up to
//! date for that, and the fair class then sees at once when a request is served, which it sees
//! at a tick of a program that only computes (`task_sched_runtime()` in kernel/sched/core.c,
//! `update_curr()` in fair.c, Linux 6.18). So the clock says what is used as long as the
//! thread keeps its CPU, and its CPU time is read behind each switch.

use std::hint::{black_box, spin_loop};

use live::record::clock;

use super::sys;

/// Counted in turns without a look at the clock at most, in nanoseconds.
const PIECE: u64 = 20_000;
/// Counted in turns alone: of so short a burst, reading the clocks would be a good part.
const SHORT: u64 = PIECE / 4;
/// So many times slower than it was measured a turn may be. The CPUs of a counting VM take turns on
/// one clock: while others compute, too, a turn takes as many times as long.
const SLOWER: u64 = 64;
/// The shortest burst that looks at all clocks, nanoseconds.
pub const REHEARSAL: u64 = SHORT + 1;
/// Turns of one measurement: some ten to a hundred microseconds.
const SAMPLE: u64 = 20_000;
/// Turns from one `pause` to the next, some 400 instructions: fewer than most calls of the kernel
/// have, in which a CPU does not let the others go on either.
pub const PAUSE_EVERY: u64 = 64;
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
        self.burn_by(ns, Watch::new(System), turn);
    }

    fn burn_by(self, ns: u64, mut watch: Watch<impl Clocks>, mut turn: impl FnMut(u64)) {
        if ns <= SHORT {
            return turn(self.turns_in(ns));
        }
        let mut used = watch.cpu_time();
        let end = used + ns;
        let mut pace = self;
        // How fast it is now is not known yet.
        let mut piece = (ns / 4).min(PIECE);
        loop {
            let turns = pace.turns_in(piece);
            turn(turns);
            let before = std::mem::replace(&mut used, watch.cpu_time());
            pace = self.as_seen(turns, used - before);
            let left = end.saturating_sub(used);
            if left <= SHORT {
                return turn(pace.turns_in(left));
            }
            // A little less than what is left: the rest is measured again.
            piece = (left - left / 16).min(PIECE);
        }
    }

    /// The pace at which `turns` took `ns`: at most what was measured.
    fn as_seen(self, turns: u64, ns: u64) -> Self {
        let least = (self.turns / SLOWER).max(1);
        let seen = (turns << UNIT_BITS).checked_div(ns).unwrap_or(self.turns);
        Self {
            turns: seen.clamp(least, self.turns),
        }
    }

    /// Turns that take `ns`, at most [`PIECE`].
    fn turns_in(self, ns: u64) -> u64 {
        (ns * self.turns) >> UNIT_BITS
    }
}

/// What a thread can learn of its time.
trait Clocks {
    /// The clock, in nanoseconds.
    fn now(&self) -> u64;
    /// The thread's CPU time, in nanoseconds.
    fn cpu_time(&self) -> u64;
    /// How often it has left its CPU.
    fn switches(&self) -> u64;
}

/// Those of the kernel.
struct System;

impl Clocks for System {
    fn now(&self) -> u64 {
        clock()
    }

    fn cpu_time(&self) -> u64 {
        sys::cpu_time()
    }

    fn switches(&self) -> u64 {
        sys::switches()
    }
}

/// Tells a thread's CPU time, and asks the kernel for it only when the thread has been off its CPU.
struct Watch<C> {
    clocks: C,
    /// When the account was read: number of switches, clock, CPU time.
    read: Option<[u64; 3]>,
}

impl<C: Clocks> Watch<C> {
    const fn new(clocks: C) -> Self {
        Self { clocks, read: None }
    }

    fn cpu_time(&mut self) -> u64 {
        // The clock before the switches: who leaves its CPU between the two is asked again.
        let now = self.clocks.now();
        if let Some([switches, then, used]) = self.read
            && self.clocks.switches() == switches
        {
            return used + now.saturating_sub(then);
        }
        loop {
            let switches = self.clocks.switches();
            let used = self.clocks.cpu_time();
            let now = self.clocks.now();
            // All three are of one stay on the CPU.
            if self.clocks.switches() == switches {
                self.read = Some([switches, now, used]);
                return used;
            }
        }
    }
}

#[inline(never)]
fn turn(turns: u64) {
    for number in 0..turns {
        black_box(number);
        if number % PAUSE_EVERY == 0 {
            spin_loop();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use super::*;

    /// A machine on which a turn takes `turn_ns` and nothing else takes time.
    struct Counted {
        turn_ns: u64,
        /// CPU time of the thread.
        now: Cell<u64>,
        pieces: RefCell<Vec<u64>>,
        /// After so many pieces others have the CPU for 5 ms; 0: never.
        pieces_a_stay: usize,
        away: Cell<u64>,
        switches: Cell<u64>,
        /// How often the account was read.
        asked: Cell<u64>,
    }

    impl Clocks for &Counted {
        fn now(&self) -> u64 {
            self.now.get() + self.away.get()
        }

        fn cpu_time(&self) -> u64 {
            self.asked.set(self.asked.get() + 1);
            self.now.get()
        }

        fn switches(&self) -> u64 {
            self.switches.get()
        }
    }

    impl Counted {
        fn new(turn_ns: u64) -> Self {
            Self {
                turn_ns,
                now: Cell::new(1_000),
                pieces: RefCell::default(),
                pieces_a_stay: 0,
                away: Cell::new(0),
                switches: Cell::new(7),
                asked: Cell::new(0),
            }
        }

        fn cpu_time(&self) -> impl Fn() -> u64 {
            || self.now.get()
        }

        fn turn(&self) -> impl Fn(u64) {
            |turns| {
                self.now.set(self.now.get() + turns * self.turn_ns);
                let mut pieces = self.pieces.borrow_mut();
                pieces.push(turns * self.turn_ns);
                if self.pieces_a_stay > 0 && pieces.len().is_multiple_of(self.pieces_a_stay) {
                    self.away.set(self.away.get() + 5_000_000);
                    self.switches.set(self.switches.get() + 1);
                }
            }
        }

        /// CPU time that `spin` uses when `ns` are asked for, and the longest piece of it.
        fn burnt(&self, spin: Spin, ns: u64) -> (u64, u64) {
            let begin = self.now.get();
            self.pieces.borrow_mut().clear();
            spin.burn_by(ns, Watch::new(self), self.turn());
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
    fn a_burst_asks_for_its_cpu_time_once_a_stay_on_the_cpu_and_not_while_it_computes() {
        for (pieces_a_stay, stays) in [(0, 1), (100, 3), (40, 7), (1, 250)] {
            let machine = Counted {
                pieces_a_stay,
                ..Counted::new(40)
            };
            let spin = Spin::measured(|| machine.now.get(), machine.turn());
            machine.pieces.borrow_mut().clear();
            let (used, _) = machine.burnt(spin, 5_000_000);
            assert!((4_999_900..=5_000_000).contains(&used), "{used}");
            let asked = machine.asked.get();
            assert!(
                (1..=stays + 15).contains(&asked),
                "{asked} times in {stays} stays"
            );
            assert!(pieces_a_stay != 0 || asked == 1, "{asked} times in one");
        }
    }

    #[test]
    fn a_machine_that_is_slower_than_measured_is_looked_at_and_not_overrun() {
        let fast = Counted::new(40);
        let spin = Spin::measured(fast.cpu_time(), fast.turn());
        let slow = Counted::new(60);
        let (used, _) = slow.burnt(spin, 1_000_000);
        assert!((999_900..=1_000_000).contains(&used), "{used}");
    }

    /// On two busy CPUs of a counting VM a burst of 142 us took 171 us.
    #[test]
    fn a_burst_takes_no_longer_while_up_to_three_other_cpus_take_turns_with_its_own() {
        let alone = Counted::new(2);
        let spin = Spin::measured(alone.cpu_time(), alone.turn());
        for cpus in [2, 3, 4] {
            let busy = Counted::new(2 * cpus);
            for ns in [SHORT + 1, 12_000, PIECE, 37_000, 142_000, 1_000_000] {
                let (used, _) = busy.burnt(spin, ns);
                assert!(used <= ns, "{used} of {ns}, {cpus} CPUs");
                assert!(used + 4 * cpus > ns, "{used} of {ns}, {cpus} CPUs");
            }
        }
    }
}

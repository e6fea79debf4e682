//! What time it is for programs.
//!
//! A run begins at time 0, and so do its events. For the policy the machine had been up for an
//! hour by then: one that takes a small time for "never" would else take the first moments of a
//! run for it.

use model::SimTime;

use crate::flags::UPTIME_NS;
use crate::machine::Machine;

impl Machine {
    /// `CLOCK_MONOTONIC`, `CLOCK_BOOTTIME` and `scx_bpf_now()`, nanoseconds: the machine never
    /// slept.
    #[inline]
    pub(crate) const fn clock_ns(&self) -> u64 {
        self.clock_ns
    }

    /// It is `now`.
    #[inline]
    pub(crate) fn set_time(&mut self, now: SimTime) {
        self.now = now;
        // Kept, because every callback is given it.
        self.clock_ns = now.as_nanos().saturating_add(UPTIME_NS);
    }

    /// How long after the begin of the run the clocks say `clock_ns`; 0 if it was before.
    pub(crate) fn since_begin(clock_ns: u64) -> u64 {
        clock_ns.saturating_sub(UPTIME_NS)
    }

    /// `jiffies_64`.
    pub(crate) fn jiffies(&self) -> u64 {
        self.watchdog.jiffies(self.now)
    }
}

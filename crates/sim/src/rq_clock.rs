//! The clocks of run queues, as programs read them from `struct rq`.
//!
//! They go on when the kernel updates them: at ticks, when another task becomes the current one,
//! and when the run queue is locked for a callback. Between these they stand still, also while
//! their CPU idles.
//!
//! Source: `update_rq_clock_task()` and `update_rq_clock_pelt()`, kernel 6.18. `lost_idle_time`
//! stays zero: fair and real-time tasks that keep a CPU busy for 300 ms and more add to it, tasks
//! of sched_ext never.

use crate::flags::UPTIME_NS;

/// The clocks of a run queue, nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RqClock {
    /// `clock`: time.
    pub wall: u64,
    /// `clock_task`: without the time of interrupts.
    pub task: u64,
    /// `clock_pelt`: slower where the CPU is; that of tasks while it idles.
    pub pelt: u64,
    /// Whether the idle task has been the current one since the last update.
    pub idles: bool,
}

impl RqClock {
    /// Of a CPU that has idled since the begin.
    pub const fn new() -> Self {
        Self {
            wall: UPTIME_NS,
            task: UPTIME_NS,
            pelt: UPTIME_NS,
            idles: true,
        }
    }

    /// The time is `wall` and `task`; the CPU has worked at `scales`, its capacity and its share of
    /// its highest frequency, in 1/1024.
    pub fn advance(&mut self, wall: u64, task: u64, scales: [u64; 2]) {
        let passed = task.saturating_sub(self.task);
        self.wall = self.wall.max(wall);
        self.task += passed;
        if self.idles {
            self.pelt = self.task;
        } else {
            let scaled = |span: u64, scale: u64| (u128::from(span) * u128::from(scale)) >> 10;
            let [capacity, frequency] = scales;
            self.pelt += scaled(scaled(passed, capacity) as u64, frequency) as u64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_of_work_is_slower_on_a_small_cpu_and_catches_up_while_it_idles() {
        let mut clock = RqClock::new();
        let at = |ms: u64| UPTIME_NS + ms * 1_000_000;
        clock.advance(at(10), at(10), [512, 1024]);
        assert_eq!((clock.task, clock.pelt), (at(10), at(10)));
        clock.idles = false;
        clock.advance(at(20), at(18), [512, 512]);
        assert_eq!(
            (clock.wall, clock.task, clock.pelt),
            (at(20), at(18), at(12))
        );
        clock.advance(at(20), at(17), [512, 512]);
        assert_eq!(clock.task, at(18), "it never goes back");
        clock.idles = true;
        clock.advance(at(30), at(28), [512, 512]);
        assert_eq!(clock.pelt, at(28));
    }
}

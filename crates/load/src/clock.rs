//! Interrupts whoever runs, right behind each tick.
//!
//! A policy says where a task stands when the task begins to run. One that is alone begins to run
//! once, and goes on when its slice has ended: nobody would see where it is then. Slices end at
//! ticks, so an instant of something else behind each tick shows every change as it comes.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use model::CpuId;
use workload::{CpuSet, SchedPolicy};

use crate::play::sys;
use live::record;

/// How far behind the tick, in nanoseconds: the tick's own work comes first.
const BEHIND: u64 = 50_000;
/// Above the priority of recorders and of those who end a load.
const PRIORITY: u8 = 2;

/// Threads that do so, one a CPU, as long as the value lives.
#[derive(Debug)]
pub struct Clock {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<io::Result<()>>>,
}

impl Clock {
    /// Begins, on every CPU that is online. It takes root.
    pub fn start() -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let tick = sys::tick();
        let begin = |cpu| {
            let stop = Arc::clone(&stop);
            thread::spawn(move || beat(cpu, tick, &stop))
        };
        let threads = (0..record::cpus()).map(|cpu| begin(CpuId(cpu))).collect();
        Self { stop, threads }
    }

    /// Ends.
    ///
    /// # Errors
    /// When a thread could not have its CPU or its priority.
    pub fn stop(mut self) -> io::Result<()> {
        self.stop.store(true, Ordering::Relaxed);
        let ends = self.threads.drain(..).map(|thread| match thread.join() {
            Ok(end) => end,
            // A broken invariant of ours goes on as it would without threads.
            Err(panic) => std::panic::resume_unwind(panic),
        });
        ends.collect()
    }
}

impl Drop for Clock {
    fn drop(&mut self) {
        // Whoever did not ask how it ended gets no answer; the threads see it at their next tick.
        self.stop.store(true, Ordering::Relaxed);
    }
}

fn beat(cpu: CpuId, tick: u64, stop: &AtomicBool) -> io::Result<()> {
    sys::set_affinity(0, &CpuSet::single(cpu))?;
    sys::set_policy(0, SchedPolicy::Fifo(PRIORITY))?;
    sys::no_timer_slack();
    while !stop.load(Ordering::Relaxed) {
        sys::sleep_until(next(record::clock(), tick));
    }
    Ok(())
}

/// The next moment behind a tick; those are at multiples of their length (`tick_init_jiffy_update`,
/// kernel/time/tick-sched.c, 6.18).
fn next(now: u64, tick: u64) -> u64 {
    (now.saturating_sub(BEHIND) / tick + 1) * tick + BEHIND
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_moment_is_behind_a_tick_that_is_to_come() {
        let tick = 4_000_000;
        assert_eq!(next(0, tick), tick + BEHIND);
        assert_eq!(next(tick, tick), tick + BEHIND);
        assert_eq!(next(tick + BEHIND, tick), 2 * tick + BEHIND);
        assert_eq!(next(2 * tick - 1, tick), 2 * tick + BEHIND);
    }

    #[test]
    fn this_kernel_has_a_tick() {
        // 100 to 1000 Hz.
        assert!(
            (1_000_000..=10_000_000).contains(&sys::tick()),
            "{}",
            sys::tick()
        );
    }
}

//! How long to leave a buffer alone that others fill, and who empties it.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use libbpf_rs::{MapHandle, RingBufferBuilder};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The least time from one look to the next.
const LEAST: Duration = Duration::from_millis(5);
/// The most: an ejected policy is noticed that much later. A buffer of 400,000 records takes 8
/// million a second for so long.
const MOST: Duration = Duration::from_millis(50);

/// The pauses between looks at a buffer.
///
/// Each look takes a CPU from the tasks that are measured: with one every 5 ms the recorder and the
/// player of a workload took 400 turns a second, more than all of the kernel's own threads. So a
/// buffer that fills slowly is looked at rarely.
#[derive(Clone, Debug)]
pub struct Pace {
    /// Records for which there is room.
    room: u64,
    pause: Duration,
}

impl Pace {
    /// For a buffer of `room` records. It begins with short pauses.
    #[must_use]
    pub fn new(room: u64) -> Self {
        Self { room, pause: LEAST }
    }

    /// How long to wait after a look that found so many records: until an eighth of the buffer is
    /// full at the same rate, at most twice as long as before, and 5 to 50 ms.
    pub fn after(&mut self, found: u64) -> Duration {
        let eighth = u128::from(self.room / 8) * self.pause.as_nanos() / u128::from(found.max(1));
        let eighth = Duration::from_nanos(u64::try_from(eighth).unwrap_or(u64::MAX));
        self.pause = eighth.min(self.pause * 2).clamp(LEAST, MOST);
        self.pause
    }
}

/// Gives each record of the ring buffer `map`, which has room for `room`, to `keep` until `stop` is
/// set; then those that are there.
///
/// # Errors
/// When the ring buffer cannot be read.
pub fn drain(
    map: &MapHandle,
    room: u64,
    stop: &AtomicBool,
    mut keep: impl FnMut(&[u8]),
) -> Result<(), libbpf_rs::Error> {
    be_urgent();
    let came = Cell::new(0);
    let mut builder = RingBufferBuilder::new();
    builder.add(map, |bytes: &[u8]| {
        came.set(came.get() + 1);
        keep(bytes);
        0
    })?;
    let ring = builder.build()?;
    let mut pace = Pace::new(room);
    loop {
        let is_last = stop.load(Ordering::Relaxed);
        ring.consume()?;
        if is_last {
            return Ok(());
        }
        thread::sleep(pace.after(came.take()));
    }
}

/// Lets the calling thread run before every task of a policy, so that it keeps up however badly
/// that policy treats it. Without the right to it, it stays as it is.
pub fn be_urgent() {
    let parameter = libc::sched_param { sched_priority: 1 };
    // SAFETY: 0 is the calling thread; the pointer is to a live value.
    #[expect(unsafe_code, reason = "no safe wrapper without another dependency")]
    unsafe {
        let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
        libc::sched_setscheduler(0, policy, &raw const parameter);
    }
}

/// Keeps the calling thread and those that it starts on one CPU, until it is dropped.
#[derive(Debug)]
pub struct Bound {
    /// Where it was allowed to be.
    were: CpuSet,
}

impl Bound {
    /// To the first CPU that the thread may use; `None` where the system refuses, and then it goes
    /// where it likes.
    #[must_use]
    pub fn to_first_cpu() -> Option<Self> {
        let were = sched_getaffinity(None).ok()?;
        let first = (0..CpuSet::MAX_CPU).find(|cpu| were.is_set(*cpu))?;
        let mut only = CpuSet::new();
        only.set(first);
        sched_setaffinity(None, &only).ok()?;
        Some(Self { were })
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        // Who cannot have its CPUs back keeps one, and goes on.
        let _ = sched_setaffinity(None, &self.were);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_bound_with_those_that_it_starts_and_has_its_cpus_back() {
        let number = || (sched_getaffinity(None).unwrap()).count();
        let before = number();
        let bound = Bound::to_first_cpu().unwrap();
        assert_eq!((number(), thread::spawn(number).join().unwrap()), (1, 1));
        drop(bound);
        assert_eq!(number(), before);
    }

    #[test]
    fn a_buffer_that_stays_empty_is_looked_at_ever_more_rarely() {
        let mut pace = Pace::new(400_000);
        let pauses: Vec<u128> = (0..6).map(|_| pace.after(0).as_millis()).collect();
        assert_eq!(pauses, [10, 20, 40, 50, 50, 50]);
    }

    #[test]
    fn a_burst_is_followed_at_once_and_never_fills_more_than_half_before_it_is_seen() {
        let mut pace = Pace::new(400_000);
        for _ in 0..6 {
            pace.after(10);
        }
        // 4 million a second, all at once: half of the buffer within the longest pause.
        let found = 4_000_000 * 50 / 1_000;
        assert!(found <= 400_000 / 2);
        let pause = pace.after(found);
        assert_eq!(pause.as_micros(), 12_500);
        // At that rate an eighth is filled until the next look, and it stays so.
        assert_eq!(pace.after(50_000).as_micros(), 12_500);
        // More than the shortest pause can take is looked at as often as can be.
        assert_eq!(pace.after(u64::MAX), LEAST);
    }
}

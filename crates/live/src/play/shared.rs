//! Memory that all tasks of a played workload share, and the futexes in it.

use std::ops::Range;
use std::ptr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use crate::Error;

/// How much is needed: handed out range by range before the memory exists.
#[derive(Debug, Default)]
pub struct Plan {
    words: usize,
    longs: usize,
}

impl Plan {
    /// `count` words of 32 bits.
    pub fn words(&mut self, count: usize) -> Range<usize> {
        self.words += count;
        self.words - count..self.words
    }

    /// `count` words of 64 bits.
    pub fn longs(&mut self, count: usize) -> Range<usize> {
        self.longs += count;
        self.longs - count..self.longs
    }

    /// The memory, all zero. It lives as long as the process and those that it forks.
    ///
    /// # Errors
    /// When the system does not give so much.
    pub fn build(&self) -> Result<Shared, Error> {
        let bytes = self.longs * size_of::<AtomicU64>() + self.words * size_of::<AtomicU32>();
        // SAFETY: a new anonymous mapping touches no other memory; the result is checked.
        #[expect(unsafe_code, reason = "memory that survives a fork as shared")]
        let start = unsafe {
            libc::mmap(
                ptr::null_mut(),
                bytes.max(1),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(Error::file("shared memory")(std::io::Error::last_os_error()));
        }
        // SAFETY: the mapping has room for both slices, starts at a page, is never unmapped, and is
        // only ever seen as atomics, for which all-zero bytes are valid.
        #[expect(unsafe_code, reason = "the one place that gives the mapping its type")]
        let (longs, words) = unsafe {
            let longs = std::slice::from_raw_parts(start.cast::<AtomicU64>(), self.longs);
            let words = start
                .cast::<AtomicU64>()
                .add(self.longs)
                .cast::<AtomicU32>();
            (longs, std::slice::from_raw_parts(words, self.words))
        };
        Ok(Shared { words, longs })
    }
}

/// The memory.
#[derive(Clone, Copy, Debug)]
pub struct Shared {
    /// Words of 32 bits: futexes and counts.
    pub words: &'static [AtomicU32],
    /// Words of 64 bits: times and sums.
    pub longs: &'static [AtomicU64],
}

/// Sleeps while `word` is `value`, at most for `limit`. May return early.
pub fn wait(word: &AtomicU32, value: u32, limit: Option<Duration>) {
    wait_bits(word, value, limit, u32::MAX);
}

/// As [`wait`], woken only by those who name one of `bits`.
pub fn wait_bits(word: &AtomicU32, value: u32, limit: Option<Duration>, bits: u32) {
    let until = limit.map(|limit| crate::record::clock() + nanos(limit));
    let until = until.map(timespec);
    let until = until.as_ref().map_or(ptr::null(), ptr::from_ref);
    // SAFETY: the word is alive for the call, `until` is null or points to a live value. All that
    // the call can return (woken, value changed, time over, interrupted) means the same here.
    #[expect(unsafe_code, reason = "the system call has no wrapper")]
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAIT_BITSET,
            value,
            until,
            ptr::null::<u32>(),
            bits,
        );
    }
}

/// Wakes at most `count` of those who wait for `word`.
pub fn wake(word: &AtomicU32, count: i32) {
    wake_bits(word, count, u32::MAX);
}

/// As [`wake`], of those who named one of `bits`.
pub fn wake_bits(word: &AtomicU32, count: i32, bits: u32) {
    // SAFETY: the word is alive for the call, which takes no other pointer.
    #[expect(unsafe_code, reason = "the system call has no wrapper")]
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAKE_BITSET,
            count,
            ptr::null::<libc::timespec>(),
            ptr::null::<u32>(),
            bits,
        );
    }
}

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX / 2)
}

/// A point of `CLOCK_MONOTONIC` as the system takes it.
pub fn timespec(ns: u64) -> libc::timespec {
    let seconds = ns / 1_000_000_000;
    libc::timespec {
        tv_sec: libc::time_t::try_from(seconds).unwrap_or(libc::time_t::MAX),
        tv_nsec: libc::c_long::try_from(ns % 1_000_000_000).expect("below a second"),
    }
}

/// A mutex as most programs have it: whoever comes first gets it. One word.
///
/// 0 free, 1 held, 2 held and somebody may wait.
///
/// Source: Drepper (2011), "Futexes Are Tricky", mutex 3.
pub fn lock_barge(word: &AtomicU32) {
    if word
        .compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed)
        .is_ok()
    {
        return;
    }
    while word.swap(2, Ordering::Acquire) != 0 {
        wait(word, 2, None);
    }
}

/// Frees what [`lock_barge`] took, and wakes one who waits.
pub fn unlock_barge(word: &AtomicU32) {
    if word.swap(0, Ordering::Release) == 2 {
        wake(word, 1);
    }
}

/// A mutex that is handed over in the order of arrival. Two words: the next ticket and the one
/// that is served.
pub fn lock_fifo(next: &AtomicU32, served: &AtomicU32) {
    let ticket = next.fetch_add(1, Ordering::Relaxed);
    loop {
        let now = served.load(Ordering::Acquire);
        if now == ticket {
            return;
        }
        wait_bits(served, now, None, 1 << (ticket % 32));
    }
}

/// Hands the mutex of [`lock_fifo`] to whoever has the next ticket.
pub fn unlock_fifo(served: &AtomicU32) {
    let next = served.fetch_add(1, Ordering::Release).wrapping_add(1);
    wake_bits(served, i32::MAX, 1 << (next % 32));
}

/// Waits until `parties` have come. Two words: who has come, and how often it has opened.
pub fn barrier(come: &AtomicU32, opened: &AtomicU32, parties: u32) {
    let generation = opened.load(Ordering::Acquire);
    if come.fetch_add(1, Ordering::AcqRel) + 1 >= parties {
        come.store(0, Ordering::Relaxed);
        opened.fetch_add(1, Ordering::Release);
        wake(opened, i32::MAX);
        return;
    }
    while opened.load(Ordering::Acquire) == generation {
        wait(opened, generation, None);
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    const TASKS: u32 = 4;
    const TURNS: u32 = 2_000;

    /// Threads add to an unguarded sum under a lock; returns how much got lost.
    fn lost(lock: impl Fn(&Shared) + Sync, unlock: impl Fn(&Shared) + Sync) -> u32 {
        let mut plan = Plan::default();
        plan.words(4);
        let shared = plan.build().unwrap();
        thread::scope(|scope| {
            for _ in 0..TASKS {
                scope.spawn(|| {
                    for _ in 0..TURNS {
                        lock(&shared);
                        let seen = shared.words[3].load(Ordering::Relaxed);
                        thread::yield_now();
                        shared.words[3].store(seen + 1, Ordering::Relaxed);
                        unlock(&shared);
                    }
                });
            }
        });
        TASKS * TURNS - shared.words[3].load(Ordering::Relaxed)
    }

    #[test]
    fn both_locks_exclude() {
        let barge = lost(|s| lock_barge(&s.words[0]), |s| unlock_barge(&s.words[0]));
        let fifo = lost(
            |s| lock_fifo(&s.words[0], &s.words[1]),
            |s| unlock_fifo(&s.words[1]),
        );
        assert_eq!((barge, fifo), (0, 0));
    }

    #[test]
    fn a_barrier_opens_for_all_and_closes_again() {
        let mut plan = Plan::default();
        plan.words(3);
        let shared = plan.build().unwrap();
        thread::scope(|scope| {
            for _ in 0..TASKS {
                scope.spawn(|| {
                    for round in 0..100 {
                        shared.words[2].fetch_add(1, Ordering::SeqCst);
                        barrier(&shared.words[0], &shared.words[1], TASKS);
                        let come = shared.words[2].load(Ordering::SeqCst);
                        assert!(come >= (round + 1) * TASKS, "{come} in round {round}");
                    }
                });
            }
        });
    }

    #[test]
    fn ranges_do_not_overlap_and_hold_what_was_asked_for() {
        let mut plan = Plan::default();
        assert_eq!((plan.words(3), plan.words(2)), (0..3, 3..5));
        assert_eq!((plan.longs(1), plan.longs(7)), (0..1, 1..8));
        let shared = plan.build().unwrap();
        assert_eq!((shared.words.len(), shared.longs.len()), (5, 8));
        shared.longs[7].store(u64::MAX, Ordering::Relaxed);
        assert_eq!(shared.words[0].load(Ordering::Relaxed), 0);
    }
}

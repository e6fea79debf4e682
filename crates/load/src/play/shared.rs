//! Memory that all tasks of a played workload share, and the futexes in it.

use std::num::NonZeroU32;
use std::ops::Range;
use std::ptr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};
use rustix::thread::futex;
use rustix::time::Timespec;

use crate::Error;

/// Those who wait and wake are in different processes, so the kernel looks for the memory's page
/// and not for its address in one of them.
const BETWEEN_PROCESSES: futex::Flags = futex::Flags::empty();

/// How much is needed: handed out range by range before the memory exists.
#[derive(Debug, Default)]
pub struct MemoryPlan {
    words: usize,
    longs: usize,
}

impl MemoryPlan {
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
            mmap_anonymous(
                ptr::null_mut(),
                bytes.max(1),
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED | MapFlags::NORESERVE,
            )
        };
        let start = start.map_err(|error| Error::doing("map shared memory")(error.into()))?;
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

/// Waits until the word changes or somebody wakes one of `bits`.
pub fn wait_bits(word: &AtomicU32, value: u32, limit: Option<Duration>, bits: u32) {
    let until = limit.map(|limit| live::record::clock() + nanos(limit));
    let until = until.map(timespec);
    let Some(bits) = NonZeroU32::new(bits) else {
        return;
    };
    // All that the call can return (woken, value changed, time over, interrupted) means the same
    // here.
    let _ = futex::wait_bitset(word, BETWEEN_PROCESSES, value, until.as_ref(), bits);
}

/// Wakes at most `count` of those who wait for `word`.
pub fn wake(word: &AtomicU32, count: i32) {
    wake_bits(word, count, u32::MAX);
}

/// Wakes at most `count` tasks that wait for one of `bits`.
pub fn wake_bits(word: &AtomicU32, count: i32, bits: u32) {
    let (Some(bits), Ok(count)) = (NonZeroU32::new(bits), u32::try_from(count)) else {
        return;
    };
    let _ = futex::wake_bitset(word, BETWEEN_PROCESSES, count, bits);
}

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX / 2)
}

/// A point of `CLOCK_MONOTONIC` as the system takes it.
pub fn timespec(ns: u64) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(ns / 1_000_000_000).unwrap_or(i64::MAX),
        tv_nsec: (ns % 1_000_000_000).cast_signed(),
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

/// Whether `word`, which only grows, has passed `ticket`.
fn is_behind(word: &AtomicU32, ticket: u32) -> bool {
    let ahead = word.load(Ordering::Acquire).wrapping_sub(ticket);
    ahead.cast_signed() > 0
}

/// Waits until `word` has passed `ticket`. Whoever moves it names the bit of the ticket.
pub fn wait_for_turn(word: &AtomicU32, ticket: u32) {
    while !is_behind(word, ticket) {
        let seen = word.load(Ordering::Acquire);
        if seen.wrapping_sub(ticket).cast_signed() <= 0 {
            wait_bits(word, seen, None, bit(ticket));
        }
    }
}

const fn bit(ticket: u32) -> u32 {
    1 << (ticket % 32)
}

/// Takes a token of a semaphore, in the order of arrival. Two words: the next ticket, and how many
/// tokens there have been.
pub fn take_token(next: &AtomicU32, given: &AtomicU32) {
    wait_for_turn(given, begin_to_wait(next));
}

/// Gives a token to whoever has waited longest, or will come next.
pub fn give_token(given: &AtomicU32) {
    let ticket = given.fetch_add(1, Ordering::Release);
    wake_bits(given, i32::MAX, bit(ticket));
}

/// A place in the line for a signal; the lock is given back behind this.
pub fn begin_to_wait(next: &AtomicU32) -> u32 {
    next.fetch_add(1, Ordering::AcqRel)
}

/// Wakes whoever has waited longest for a signal, or all. Two words as of a semaphore.
pub fn signal(next: &AtomicU32, served: &AtomicU32, all: bool) {
    let move_on = |now: u32| {
        let last = next.load(Ordering::Acquire);
        let waiting = last.wrapping_sub(now);
        if waiting == 0 {
            None
        } else if all {
            Some(last)
        } else {
            Some(now.wrapping_add(1))
        }
    };
    let moved = served.fetch_update(Ordering::AcqRel, Ordering::Acquire, move_on);
    if let Ok(ticket) = moved {
        wake_bits(served, i32::MAX, if all { u32::MAX } else { bit(ticket) });
    }
}

/// A read-write lock that is handed over in the order of arrival. Three words: the next ticket,
/// whose turn it is to read, and whose to write.
///
/// Source: Mellor-Crummey and Scott (1991), "Scalable Reader-Writer Synchronization for
/// Shared-Memory Multiprocessors", the fair lock, with tickets in place of a queue.
pub fn lock_to_read(words: &[AtomicU32]) {
    let ticket = words[0].fetch_add(1, Ordering::Relaxed);
    wait_for(&words[1], ticket);
    // The next one may read, too.
    next_turn(&words[1]);
}

/// Takes it alone.
pub fn lock_to_write(words: &[AtomicU32]) {
    let ticket = words[0].fetch_add(1, Ordering::Relaxed);
    wait_for(&words[2], ticket);
}

/// Gives back what [`lock_to_read`] took.
pub fn unlock_read(words: &[AtomicU32]) {
    next_turn(&words[2]);
}

/// Gives back what [`lock_to_write`] took.
pub fn unlock_written(words: &[AtomicU32]) {
    next_turn(&words[1]);
    next_turn(&words[2]);
}

/// Waits until `word` is `ticket`.
fn wait_for(word: &AtomicU32, ticket: u32) {
    loop {
        let now = word.load(Ordering::Acquire);
        if now == ticket {
            return;
        }
        wait_bits(word, now, None, bit(ticket));
    }
}

fn next_turn(word: &AtomicU32) {
    let next = word.fetch_add(1, Ordering::AcqRel).wrapping_add(1);
    wake_bits(word, i32::MAX, bit(next));
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
        let mut plan = MemoryPlan::default();
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
    fn a_lock_to_write_excludes_writers_and_readers() {
        let lost = lost(
            |s| lock_to_write(&s.words[..3]),
            |s| unlock_written(&s.words[..3]),
        );
        assert_eq!(lost, 0);
        let mut plan = MemoryPlan::default();
        plan.words(5);
        let shared = plan.build().unwrap();
        thread::scope(|scope| {
            for reader in 0..TASKS {
                let shared = &shared;
                scope.spawn(move || {
                    for _ in 0..TURNS {
                        if reader == 0 {
                            lock_to_write(&shared.words[..3]);
                            shared.words[3].store(1, Ordering::Relaxed);
                            thread::yield_now();
                            shared.words[3].store(0, Ordering::Relaxed);
                            unlock_written(&shared.words[..3]);
                        } else {
                            lock_to_read(&shared.words[..3]);
                            let seen = shared.words[3].load(Ordering::Relaxed);
                            shared.words[4].fetch_add(seen, Ordering::Relaxed);
                            unlock_read(&shared.words[..3]);
                        }
                    }
                });
            }
        });
        assert_eq!(
            shared.words[4].load(Ordering::Relaxed),
            0,
            "a reader saw a writer"
        );
    }

    #[test]
    fn readers_are_in_together() {
        let mut plan = MemoryPlan::default();
        plan.words(5);
        let shared = plan.build().unwrap();
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    lock_to_read(&shared.words[..3]);
                    // It opens only when both are inside.
                    barrier(&shared.words[3], &shared.words[4], 2);
                    unlock_read(&shared.words[..3]);
                });
            }
        });
        lock_to_write(&shared.words[..3]);
        assert_eq!(shared.words[4].load(Ordering::Relaxed), 1);
    }

    #[test]
    fn tokens_are_kept_and_none_is_given_twice() {
        let mut plan = MemoryPlan::default();
        plan.words(3);
        let shared = plan.build().unwrap();
        // Two tokens: never more than two are inside.
        shared.words[1].store(2, Ordering::Relaxed);
        thread::scope(|scope| {
            for _ in 0..TASKS {
                scope.spawn(|| {
                    for _ in 0..TURNS {
                        take_token(&shared.words[0], &shared.words[1]);
                        let inside = shared.words[2].fetch_add(1, Ordering::SeqCst);
                        assert!(inside < 2, "{inside} were inside");
                        shared.words[2].fetch_sub(1, Ordering::SeqCst);
                        give_token(&shared.words[1]);
                    }
                });
            }
        });
        let left =
            shared.words[1].load(Ordering::Relaxed) - shared.words[0].load(Ordering::Relaxed);
        assert_eq!(left, 2);
    }

    #[test]
    fn a_signal_wakes_the_first_and_is_lost_when_nobody_waits() {
        let mut plan = MemoryPlan::default();
        plan.words(3);
        let shared = plan.build().unwrap();
        let [next, served, woken] = shared.words else {
            panic!("three words")
        };
        signal(next, served, false);
        signal(next, served, true);
        assert_eq!(served.load(Ordering::Relaxed), 0, "nobody waited");
        let tickets = [(); 3].map(|()| begin_to_wait(next));
        signal(next, served, false);
        wait_for_turn(served, tickets[0]);
        thread::scope(|scope| {
            for ticket in &tickets[1..] {
                scope.spawn(move || {
                    wait_for_turn(served, *ticket);
                    woken.fetch_add(1, Ordering::SeqCst);
                });
            }
            assert_eq!(woken.load(Ordering::SeqCst), 0);
            signal(next, served, true);
        });
        assert_eq!(woken.load(Ordering::SeqCst), 2);
    }

    #[test]
    fn a_barrier_opens_for_all_and_closes_again() {
        let mut plan = MemoryPlan::default();
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
        let mut plan = MemoryPlan::default();
        assert_eq!((plan.words(3), plan.words(2)), (0..3, 3..5));
        assert_eq!((plan.longs(1), plan.longs(7)), (0..1, 1..8));
        let shared = plan.build().unwrap();
        assert_eq!((shared.words.len(), shared.longs.len()), (5, 8));
        shared.longs[7].store(u64::MAX, Ordering::Relaxed);
        assert_eq!(shared.words[0].load(Ordering::Relaxed), 0);
    }
}

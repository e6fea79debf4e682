//! A queue within one process: a lock, a condition variable, and when each message was sent.

use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use workload::{Capacity, Channel};

use super::shared::{self, MemoryPlan, Shared};
use super::state::Failure;

/// Messages that a queue may hold, "unbounded" or not.
pub const QUEUE_MAX: u64 = 1 << 16;

/// Words: lock, messages, readers and writers that wait, two sequences. Longs: the next message to
/// take, the times of the messages.
#[derive(Debug)]
pub struct PlayQueue {
    words: Range<usize>,
    longs: Range<usize>,
    room: u64,
}

impl PlayQueue {
    /// Plans its places in shared memory.
    pub fn plan(plan: &mut MemoryPlan, channel: &Channel) -> Self {
        let room = match channel.capacity {
            Capacity::Messages(room) => room.clamp(1, QUEUE_MAX),
            Capacity::Bytes(bytes) => (bytes / channel.msg.max(1)).clamp(1, QUEUE_MAX),
            Capacity::Kernel | Capacity::Unbounded => u64::MAX,
        };
        let length = usize::try_from(room.min(QUEUE_MAX)).expect("at most 65,536");
        Self {
            words: plan.words(6),
            longs: plan.longs(1 + length),
            room,
        }
    }

    fn words(&self, shared: Shared) -> &'static [AtomicU32] {
        &shared.words[self.words.clone()]
    }

    /// Messages that are in it.
    pub fn length(&self, shared: Shared) -> u32 {
        self.words(shared)[1].load(Ordering::Relaxed)
    }

    /// The place of a message, counted from the first that was ever sent.
    fn slot(&self, shared: Shared, number: u64) -> &'static AtomicU64 {
        let longs = &shared.longs[self.longs.clone()][1..];
        &longs[usize::try_from(number % longs.len() as u64).expect("below a length")]
    }

    /// When the messages that are in it were sent. Nobody uses it any more.
    pub fn left(&self, shared: Shared) -> Vec<u64> {
        let first = shared.longs[self.longs.start].load(Ordering::Relaxed);
        let count = u64::from(self.length(shared)).min(QUEUE_MAX);
        let slots = (0..count).map(|at| self.slot(shared, first.wrapping_add(at)));
        slots.map(|slot| slot.load(Ordering::Relaxed)).collect()
    }

    /// Puts a message in it that was sent then. Without `block` it is lost when there is no room.
    ///
    /// # Errors
    /// When more messages are in it than a play allows.
    pub fn send(&self, shared: Shared, sent: u64, block: bool) -> Result<(), (Failure, i64)> {
        let [lock, length, readers, writers, come, room] = self.words(shared) else {
            unreachable!("a queue has six words")
        };
        shared::lock_barge(lock);
        while u64::from(length.load(Ordering::Relaxed)) >= self.room {
            if !block {
                shared::unlock_barge(lock);
                return Ok(());
            }
            sleep_on(lock, writers, room);
        }
        let count = length.load(Ordering::Relaxed);
        if u64::from(count) >= QUEUE_MAX {
            shared::unlock_barge(lock);
            return Err((Failure::QueueFull, 0));
        }
        let first = shared.longs[self.longs.start].load(Ordering::Relaxed);
        self.slot(shared, first + u64::from(count))
            .store(sent, Ordering::Relaxed);
        length.store(count + 1, Ordering::Relaxed);
        signal(lock, readers, come);
        Ok(())
    }

    /// Takes the oldest message out, and gives when it was sent.
    pub fn recv(&self, shared: Shared) -> u64 {
        let [lock, length, readers, writers, come, room] = self.words(shared) else {
            unreachable!("a queue has six words")
        };
        shared::lock_barge(lock);
        while length.load(Ordering::Relaxed) == 0 {
            sleep_on(lock, readers, come);
        }
        let first = &shared.longs[self.longs.start];
        let number = first.load(Ordering::Relaxed);
        let sent = self.slot(shared, number).load(Ordering::Relaxed);
        first.store(number + 1, Ordering::Relaxed);
        length.fetch_sub(1, Ordering::Relaxed);
        signal(lock, writers, room);
        sent
    }
}

/// Waits for `sequence` to move without the lock, and takes it again.
fn sleep_on(lock: &AtomicU32, waiting: &AtomicU32, sequence: &AtomicU32) {
    let seen = sequence.load(Ordering::Relaxed);
    waiting.fetch_add(1, Ordering::Relaxed);
    shared::unlock_barge(lock);
    shared::wait(sequence, seen, None);
    shared::lock_barge(lock);
    waiting.fetch_sub(1, Ordering::Relaxed);
}

/// Gives the lock back and wakes one who waits for `sequence`.
fn signal(lock: &AtomicU32, waiting: &AtomicU32, sequence: &AtomicU32) {
    let somebody = waiting.load(Ordering::Relaxed) > 0;
    if somebody {
        sequence.fetch_add(1, Ordering::Relaxed);
    }
    shared::unlock_barge(lock);
    if somebody {
        shared::wake(sequence, 1);
    }
}

//! What played tasks say: a ring in shared memory that all of them write and the player reads.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use super::shared::{MemoryPlan, Shared};
use live::record::{Raw, RecordKind};

/// Marks that the ring holds; the player empties it as `Pace` says.
pub const ENTRIES: u64 = 1 << 17;
/// Words of an entry: number, time, pid and `a`, `b` and kind, `c`.
const WORDS: u64 = 5;

/// A queue for many writers and one reader that never waits.
///
/// An entry's number says whose turn it is: `n` lets the writer of mark `n` in, `n + 1` the reader.
///
/// Source: Vyukov (2010), "Bounded MPMC queue".
#[derive(Clone, Debug)]
pub struct Marks {
    shared: Shared,
    entries: Range<usize>,
    /// The next mark to write, and how many found no room.
    heads: Range<usize>,
}

/// Where the ring will be.
#[derive(Debug)]
pub struct RingPlace {
    entries: Range<usize>,
    heads: Range<usize>,
}

impl RingPlace {
    /// Asks for the ring's memory.
    pub fn plan(plan: &mut MemoryPlan) -> Self {
        let length = usize::try_from(ENTRIES * WORDS).expect("a ring fits the address space");
        Self {
            entries: plan.longs(length),
            heads: plan.longs(2),
        }
    }
}

impl Marks {
    /// The empty ring.
    pub fn new(shared: Shared, place: RingPlace) -> Self {
        let RingPlace { entries, heads } = place;
        let marks = Self {
            shared,
            entries,
            heads,
        };
        for number in 0..ENTRIES {
            marks.entry(number)[0].store(number, Ordering::Relaxed);
        }
        marks
    }

    fn entry(&self, number: u64) -> &[AtomicU64] {
        let at = usize::try_from(number % ENTRIES * WORDS).expect("inside the ring");
        let words = usize::try_from(WORDS).expect("five");
        &self.shared.longs[self.entries.clone()][at..at + words]
    }

    fn heads(&self) -> &[AtomicU64] {
        &self.shared.longs[self.heads.clone()]
    }

    /// Writes a mark, or counts it as lost when the ring is full. `raw` is of the kind
    /// [`RecordKind::Born`] or [`RecordKind::Mark`].
    pub fn push(&self, raw: &Raw) {
        let mut number = self.heads()[0].load(Ordering::Relaxed);
        loop {
            let entry = self.entry(number);
            let turn = entry[0].load(Ordering::Acquire);
            if turn < number {
                self.heads()[1].fetch_add(1, Ordering::Relaxed);
                return;
            }
            if turn > number {
                number = self.heads()[0].load(Ordering::Relaxed);
                continue;
            }
            let next = number + 1;
            let taken = self.heads()[0].compare_exchange_weak(
                number,
                next,
                Ordering::Relaxed,
                Ordering::Relaxed,
            );
            match taken {
                Err(now) => number = now,
                Ok(_) => {
                    let words = [
                        raw.time,
                        u64::from(raw.pid) | u64::from(raw.a) << 32,
                        u64::from(raw.b) | u64::from(raw.kind == RecordKind::Born) << 32,
                        raw.c,
                    ];
                    for (to, word) in entry[1..].iter().zip(words) {
                        to.store(word, Ordering::Relaxed);
                    }
                    entry[0].store(next, Ordering::Release);
                    return;
                }
            }
        }
    }

    /// Takes all marks from number `next` on; returns the number of the one after.
    pub fn drain(&self, mut next: u64, to: &mut Vec<Raw>) -> u64 {
        loop {
            let entry = self.entry(next);
            if entry[0].load(Ordering::Acquire) != next + 1 {
                return next;
            }
            let [time, who, what, c] = [1, 2, 3, 4].map(|word| entry[word].load(Ordering::Relaxed));
            entry[0].store(next + ENTRIES, Ordering::Release);
            let low = |word: u64| u32::try_from(word & 0xffff_ffff).expect("32 bits");
            to.push(Raw {
                time,
                pid: low(who),
                cpu: 0,
                kind: match what >> 32 {
                    0 => RecordKind::Mark,
                    _ => RecordKind::Born,
                },
                flags: 0,
                c,
                a: low(who >> 32),
                b: low(what),
            });
            next += 1;
        }
    }

    /// How many marks found no room.
    pub fn lost(&self) -> u64 {
        self.heads()[1].load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    fn mark(pid: u32, c: u64) -> Raw {
        Raw {
            time: c + 1,
            pid,
            cpu: 0,
            kind: if c == 0 {
                RecordKind::Born
            } else {
                RecordKind::Mark
            },
            flags: 0,
            c,
            a: pid + 7,
            b: pid + 9,
        }
    }

    fn ring() -> Marks {
        let mut plan = MemoryPlan::default();
        let place = RingPlace::plan(&mut plan);
        Marks::new(plan.build().unwrap(), place)
    }

    #[test]
    fn what_many_write_at_once_arrives_whole_and_in_each_ones_order() {
        const EACH: u64 = 60_000;
        let marks = ring();
        let mut got = Vec::new();
        thread::scope(|scope| {
            let writers: Vec<_> = (0..3)
                .map(|pid| {
                    let marks = &marks;
                    scope.spawn(move || (0..EACH).for_each(|c| marks.push(&mark(pid, c))))
                })
                .collect();
            let mut next = 0;
            while !writers.iter().all(thread::ScopedJoinHandle::is_finished) {
                next = marks.drain(next, &mut got);
            }
            marks.drain(next, &mut got);
        });
        assert_eq!(got.len() as u64 + marks.lost(), 3 * EACH);
        for pid in 0..3 {
            let own: Vec<_> = got.iter().filter(|raw| raw.pid == pid).collect();
            assert!(own.windows(2).all(|two| two[0].c < two[1].c));
            assert!(own.iter().all(|raw| **raw == mark(pid, raw.c)));
        }
    }

    #[test]
    fn a_full_ring_counts_what_it_loses() {
        let marks = ring();
        (0..ENTRIES + 5).for_each(|c| marks.push(&mark(1, c)));
        assert_eq!(marks.lost(), 5);
        let mut got = Vec::new();
        assert_eq!(marks.drain(0, &mut got), ENTRIES);
        marks.push(&mark(1, 9));
        assert_eq!(marks.drain(ENTRIES, &mut got), ENTRIES + 1);
    }
}

//! Tasks in the order of their keys: what a vtime-ordered queue holds.
//!
//! A list of chunks, each a sorted array, so that a short queue is one array and a long one costs
//! a search over the chunks. Emptied chunks are kept: a queue that is filled and emptied over and
//! over allocates nothing.

use std::collections::VecDeque;
use std::num::NonZero;

use model::TaskId;

/// Where a vtime-ordered task stands: distance from the queue's base, then order of entry, which
/// counts from 1.
pub type QueueKey = (i64, NonZero<u64>);

/// Entries of a chunk at most.
const FULL: usize = 64;
/// A chunk that shrinks below this is put together with its neighbour if both fill half a chunk.
const THIN: usize = FULL / 4;
/// Emptied chunks that are kept.
const SPARE: usize = 4;

type Chunk = Vec<(QueueKey, TaskId)>;

/// Tasks by key. No two keys are equal.
#[derive(Clone, Debug, Default)]
pub struct Sorted {
    /// The first chunk: of a short queue the only one, so it is found without a search. Empty only
    /// if there is no task.
    first: Chunk,
    /// Those behind it, none of them empty.
    others: VecDeque<Chunk>,
    spare: Vec<Chunk>,
    len: u32,
}

impl Sorted {
    /// An empty one.
    pub const fn new() -> Self {
        Self {
            first: Chunk::new(),
            others: VecDeque::new(),
            spare: Vec::new(),
            len: 0,
        }
    }

    /// How many tasks there are.
    #[inline]
    pub const fn len(&self) -> u32 {
        self.len
    }

    /// Whether there is none.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The task with the least key.
    #[inline]
    pub fn first(&self) -> Option<TaskId> {
        let (_, task) = self.first.first()?;
        Some(*task)
    }

    /// The task with the greatest key.
    pub fn last(&self) -> Option<TaskId> {
        let (_, task) = self.others.back().unwrap_or(&self.first).last()?;
        Some(*task)
    }

    /// The task behind `key`, which may be gone.
    pub fn after(&self, key: QueueKey) -> Option<TaskId> {
        let chunk = self.chunk_of(key);
        let entries = self.chunk(chunk)?;
        let at = entries.partition_point(|(own, _)| *own <= key);
        let next = || self.chunk(chunk + 1)?.first();
        entries.get(at).or_else(next).map(|(_, task)| *task)
    }

    /// The task before `key`, which may be gone.
    pub fn before(&self, key: QueueKey) -> Option<TaskId> {
        let chunk = self.chunk_of(key);
        let entries = self.chunk(chunk)?;
        let at = entries.partition_point(|(own, _)| *own < key);
        let found = match at.checked_sub(1) {
            Some(at) => entries.get(at),
            None => self.chunk(chunk.checked_sub(1)?)?.last(),
        };
        found.map(|(_, task)| *task)
    }

    /// Adds a task.
    #[inline]
    pub fn insert(&mut self, key: QueueKey, task: TaskId) {
        self.len += 1;
        if !self.others.is_empty() || self.first.len() == FULL {
            return self.insert_among(key, task);
        }
        match self.first.last() {
            Some((last, _)) if *last > key => {
                let at = self.first.partition_point(|(own, _)| *own < key);
                self.first.insert(at, (key, task));
            }
            // Most tasks that come are put at the end.
            _ => self.first.push((key, task)),
        }
    }

    /// As [`Sorted::insert`], into one of several chunks or into a full one.
    #[inline(never)]
    fn insert_among(&mut self, key: QueueKey, task: TaskId) {
        let mut chunk = self.chunk_of(key);
        let entries = self.chunk_mut(chunk);
        let mut at = entries.partition_point(|(own, _)| *own < key);
        if entries.len() == FULL {
            (chunk, at) = self.split(chunk, at);
        }
        self.chunk_mut(chunk).insert(at, (key, task));
    }

    /// Takes the task with `key` out, if there is one.
    #[inline]
    pub fn remove(&mut self, key: QueueKey) -> Option<TaskId> {
        match self.first[..] {
            // The only one.
            [(own, task)] if own == key && self.others.is_empty() => {
                self.first.clear();
                self.len = 0;
                Some(task)
            }
            _ => self.remove_among(key),
        }
    }

    /// As [`Sorted::remove`], with several tasks.
    #[inline(never)]
    fn remove_among(&mut self, key: QueueKey) -> Option<TaskId> {
        let chunk = self.chunk_of(key);
        let entries = self.chunk_mut(chunk);
        let at = match entries.first() {
            Some((first, _)) if *first == key => 0,
            _ => entries.binary_search_by_key(&key, |(own, _)| *own).ok()?,
        };
        let (_, task) = entries.remove(at);
        let is_thin = entries.len() < THIN;
        self.len -= 1;
        if is_thin && !self.others.is_empty() {
            self.thin_out(chunk);
        }
        Some(task)
    }

    /// The chunk number `at`, the first one being 0.
    #[inline]
    fn chunk(&self, at: usize) -> Option<&Chunk> {
        match at.checked_sub(1) {
            None => Some(&self.first),
            Some(at) => self.others.get(at),
        }
    }

    /// As [`Sorted::chunk`], of one that there is.
    #[inline]
    fn chunk_mut(&mut self, at: usize) -> &mut Chunk {
        match at.checked_sub(1) {
            None => &mut self.first,
            Some(at) => &mut self.others[at],
        }
    }

    /// The first chunk that ends at `key` or behind it, or the last one.
    #[inline(always)]
    fn chunk_of(&self, key: QueueKey) -> usize {
        if self.others.is_empty() || ends_at_or_behind(&self.first, key) {
            return 0;
        }
        self.chunk_behind_first(key)
    }

    #[inline(never)]
    fn chunk_behind_first(&self, key: QueueKey) -> usize {
        let last = self.others.len();
        // Most tasks that come are put near the end.
        match last.checked_sub(2) {
            Some(before) if ends_at_or_behind(&self.others[before], key) => {
                let others = &self.others;
                1 + others.partition_point(|chunk| !ends_at_or_behind(chunk, key))
            }
            _ => last,
        }
    }

    fn empty_chunk(&mut self) -> Chunk {
        self.spare
            .pop()
            .unwrap_or_else(|| Chunk::with_capacity(FULL))
    }

    /// Makes room for an entry at `at` of a full chunk, and says where it is to go.
    #[inline(never)]
    fn split(&mut self, chunk: usize, at: usize) -> (usize, usize) {
        let is_end = at == FULL && chunk == self.others.len();
        // A queue that grows at its end leaves full chunks behind.
        let keep = if is_end { FULL } else { FULL / 2 };
        let mut behind = self.empty_chunk();
        behind.extend(self.chunk_mut(chunk).drain(keep..));
        self.others.insert(chunk, behind);
        if at < keep || at == keep && !is_end {
            (chunk, at)
        } else {
            (chunk + 1, at - keep)
        }
    }

    /// A chunk of several has become small: puts it together with a neighbour, or takes it out.
    #[inline(never)]
    fn thin_out(&mut self, chunk: usize) {
        let small = self.chunk_mut(chunk).len();
        let fits = |other: usize| {
            let other = self.chunk(other).map(Vec::len);
            other.is_some_and(|other| other + small <= FULL / 2)
        };
        if small > 0 && fits(chunk + 1) {
            self.join(chunk);
        } else if small > 0 && chunk > 0 && fits(chunk - 1) {
            self.join(chunk - 1);
        } else if small == 0 {
            self.drop_chunk(chunk);
        }
    }

    /// Puts the chunk behind `chunk` to its end.
    fn join(&mut self, chunk: usize) {
        let mut behind = std::mem::take(self.chunk_mut(chunk + 1));
        self.chunk_mut(chunk).append(&mut behind);
        *self.chunk_mut(chunk + 1) = behind;
        self.drop_chunk(chunk + 1);
    }

    /// Takes an empty chunk out that is not the only one.
    fn drop_chunk(&mut self, chunk: usize) {
        let empty = match chunk.checked_sub(1) {
            None => (self.others.pop_front()).map(|next| std::mem::replace(&mut self.first, next)),
            Some(at) => self.others.remove(at),
        };
        if let Some(empty) = empty
            && self.spare.len() < SPARE
        {
            self.spare.push(empty);
        }
    }
}

fn ends_at_or_behind(chunk: &Chunk, key: QueueKey) -> bool {
    chunk.last().is_some_and(|(last, _)| *last >= key)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use model::Rng;

    use super::*;

    /// Against the standard library's map: short queues and long ones, growing at the end, at
    /// random places, shrinking from the front and anywhere.
    fn key(place: i64, earlier: u64) -> QueueKey {
        (place, NonZero::<u64>::MIN.saturating_add(earlier))
    }

    #[test]
    fn it_behaves_as_a_sorted_map() {
        for seed in 0..24 {
            let mut rng = Rng::new(seed, 3);
            let mut sorted = Sorted::new();
            let mut model: BTreeMap<QueueKey, TaskId> = BTreeMap::new();
            let most = [3, 70, 300, 2_000][(seed % 4) as usize];
            let mut end = 0;
            let mut grows = true;
            for number in 0..6_000 {
                grows = match model.len() {
                    0 => true,
                    len if len >= most => false,
                    _ => grows,
                };
                let comes = rng.below(4) < if grows { 3 } else { 1 };
                if comes {
                    end += rng.below(3) as i64;
                    let place = match rng.below(3) {
                        0 => rng.below(1_000) as i64 - 500,
                        _ => end,
                    };
                    let (key, task) = (key(place, number), TaskId(number as u32));
                    sorted.insert(key, task);
                    model.insert(key, task);
                } else {
                    let nth = match rng.below(2) {
                        0 => 0,
                        _ => rng.below(model.len().max(1) as u64) as usize,
                    };
                    let key = model.keys().nth(nth).copied();
                    let key = key.unwrap_or(self::key(7, u64::MAX - 1));
                    assert_eq!(sorted.remove(key), model.remove(&key));
                    assert_eq!(sorted.remove(key), None);
                }
                agree(&sorted, &model, &mut rng);
            }
        }
    }

    fn agree(sorted: &Sorted, model: &BTreeMap<QueueKey, TaskId>, rng: &mut Rng) {
        assert_eq!(sorted.len() as usize, model.len());
        assert_eq!(sorted.first(), model.values().next().copied());
        assert_eq!(sorted.last(), model.values().next_back().copied());
        let key = key(rng.below(1_200) as i64 - 600, rng.below(6_000));
        let behind = (std::ops::Bound::Excluded(key), std::ops::Bound::Unbounded);
        let after = model.range(behind).next().map(|(_, task)| *task);
        assert_eq!(sorted.after(key), after);
        let before = model.range(..key).next_back().map(|(_, task)| *task);
        assert_eq!(sorted.before(key), before);
    }

    #[test]
    fn a_queue_that_is_emptied_keeps_what_it_needs_to_be_filled_again() {
        let mut sorted = Sorted::new();
        for round in 0..3 {
            for at in 0..FULL as i64 {
                sorted.insert(key(at, round), TaskId(at as u32));
            }
            for at in 0..FULL as i64 {
                assert_eq!(sorted.remove(key(at, round)), Some(TaskId(at as u32)));
            }
            assert_eq!((sorted.others.len(), sorted.spare.len()), (0, 0));
            assert!(sorted.first.capacity() >= FULL, "it keeps its memory");
        }
    }
}

//! The queues of a scheduler, by the numbers that it gave them.

use std::cell::Cell;
use std::collections::HashMap;

use super::DsqIndex;

/// No queue.
const NONE: DsqIndex = DsqIndex(u32::MAX);
/// Numbers from here on are not in the table of small ones, which has four bytes for each.
const LARGE: u64 = 4_096;
/// Queues with large numbers that are found without a search.
const FOUND: usize = 64;

/// The queues of one scheduler. Those with small numbers are looked up in a table: most policies
/// number their queues by CPU or have few, and one that looks for the CPU with the least to do asks
/// for the length of each.
#[derive(Clone)]
pub(super) struct Names {
    /// By number, up to the greatest small one; [`NONE`] for no queue.
    small: Vec<DsqIndex>,
    /// Never walked: its order differs from process to process.
    large: HashMap<u64, DsqIndex, bpf::Keyed>,
    /// Those with large numbers that were looked for, by the last bits of their numbers.
    found: [Cell<(u64, DsqIndex)>; FOUND],
}

impl Names {
    pub(super) fn new() -> Self {
        Self {
            small: Vec::new(),
            large: HashMap::default(),
            found: std::array::from_fn(|_| Cell::new((0, NONE))),
        }
    }

    /// The queue with this number.
    #[inline(always)]
    pub(super) fn find(&self, id: u64) -> Option<DsqIndex> {
        // A table is never so long that a number could be cut off.
        match usize::try_from(id).ok().and_then(|at| self.small.get(at)) {
            Some(&dsq) if dsq != NONE => Some(dsq),
            _ => self.find_large(id),
        }
    }

    #[inline(never)]
    fn find_large(&self, id: u64) -> Option<DsqIndex> {
        let place = &self.found[id as usize % FOUND];
        let (found, dsq) = place.get();
        if found == id && dsq != NONE {
            return Some(dsq);
        }
        let dsq = *self.large.get(&id)?;
        place.set((id, dsq));
        Some(dsq)
    }

    /// The queue has this number from now on, which no other one has.
    pub(super) fn add(&mut self, id: u64, dsq: DsqIndex) {
        if id >= LARGE {
            self.large.insert(id, dsq);
            return;
        }
        let at = id as usize;
        if self.small.len() <= at {
            self.small.resize(at + 1, NONE);
        }
        self.small[at] = dsq;
    }

    /// No queue has this number any more.
    pub(super) fn remove(&mut self, id: u64) {
        if id >= LARGE {
            self.large.remove(&id);
            self.found[id as usize % FOUND].set((0, NONE));
        } else if let Some(dsq) = self.small.get_mut(id as usize) {
            *dsq = NONE;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_is_found_by_its_number_alone_and_until_it_is_gone() {
        let mut names = Names::new();
        // The last two share a place among those that were found, and their last 32 bits.
        let ids = [0, 7, LARGE - 1, LARGE, 7 << 32, 8 << 32 | 7, 9 << 32 | 7];
        for (number, &id) in ids.iter().enumerate() {
            assert_eq!(names.find(id), None, "{id}");
            names.add(id, DsqIndex(number as u32));
        }
        for _ in 0..2 {
            for (number, &id) in ids.iter().enumerate() {
                assert_eq!(names.find(id), Some(DsqIndex(number as u32)), "{id}");
            }
        }
        assert_eq!(names.find(1 << 32), None, "its last 32 bits are 0");
        assert_eq!(names.find(u64::MAX), None);
        for (number, &id) in ids.iter().enumerate() {
            names.remove(id);
            assert_eq!(names.find(id), None, "{id}");
            let next = ids.get(number + 1);
            assert!(next.is_none_or(|&next| names.find(next).is_some()));
        }
    }
}

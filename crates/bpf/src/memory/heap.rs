//! Blocks of one half of the region.

use std::collections::BTreeMap;

/// Allocations are aligned to this much at least.
pub(super) const GRAIN: u64 = 16;

/// Bytes handed out in order and reused by size. Offsets, not addresses.
#[derive(Clone, Debug)]
pub(super) struct Heap {
    pub(super) start: u64,
    pub(super) next: u64,
    pub(super) limit: u64,
    /// A native store of up to 8 bytes that begins at most so many bytes behind the start ends
    /// before `next`. Never shrinks.
    pub(super) open: u64,
    /// Freed blocks by rounded size, last freed first: the same sequence of calls always gives
    /// the same addresses.
    free: BTreeMap<u64, Vec<u64>>,
}

impl Heap {
    pub(super) const fn new(start: u64, limit: u64) -> Self {
        Self {
            start,
            next: start,
            limit,
            open: 0,
            free: BTreeMap::new(),
        }
    }

    /// The block and whether it was in use before; `None` when the heap's limit or `most` would be
    /// exceeded.
    pub(super) fn alloc(&mut self, size: u64, align: u64, most: u64) -> Option<(u64, bool)> {
        assert!(
            align.is_power_of_two(),
            "alignment {align} is no power of two"
        );
        let class = Self::class(size)?;
        let freed = self.free.get_mut(&class);
        if let Some(at) = freed.and_then(|blocks| blocks.pop_if(|at| *at % align == 0)) {
            return Some((at, true));
        }
        let at = self.next.checked_next_multiple_of(align.max(GRAIN))?;
        let end = at.checked_add(class)?;
        if end - self.start > self.limit.min(most) {
            return None;
        }
        self.next = end;
        self.open = self.used().saturating_sub(8);
        Some((at, false))
    }

    pub(super) fn release(&mut self, at: u64, size: u64) {
        let class = Self::class(size).expect("a block that was allocated has a size class");
        assert!(
            self.start <= at && at + class <= self.next,
            "block {at:#x} was never allocated"
        );
        self.free.entry(class).or_default().push(at);
    }

    pub(super) fn class(size: u64) -> Option<u64> {
        size.max(1).checked_next_multiple_of(GRAIN)
    }

    /// Bytes between the start and the highest block ever handed out.
    pub(super) const fn used(&self) -> u64 {
        self.next - self.start
    }

    pub(super) const fn holds(&self, at: u64, len: u64) -> bool {
        at >= self.start && at - self.start <= self.used() && len <= self.next - at
    }
}

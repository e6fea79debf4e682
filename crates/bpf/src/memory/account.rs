//! What a program makes this process take, in all.

use model::Advice;

/// An allocation would exceed a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{wanted} bytes more would exceed the limit of {limit} bytes")]
pub struct OutOfMemory {
    /// Bytes asked for.
    pub wanted: u64,
    /// Bytes that there may be in all.
    pub limit: u64,
}

impl Advice for OutOfMemory {
    fn advice(&self) -> Option<String> {
        None
    }
}

/// What this machine keeps for itself about each block that a program allocates, bytes: an entry
/// of a table, a bucket, a place in a list.
const OWN_BYTES: u64 = 64;

/// Counts what is not in the writable heap or the arena, which count themselves. The most that
/// there was at a time counts: what was given back stays with the process.
#[derive(Clone, Debug)]
pub(super) struct Account {
    /// Bytes that all together may take.
    pub(super) limit: u64,
    /// Blocks of the writable heap, and the most that there were.
    blocks: u64,
    blocks_most: u64,
    /// Bytes that are held for the program elsewhere, and the most that there were.
    held: u64,
    held_most: u64,
}

impl Account {
    pub(super) const fn new(limit: u64) -> Self {
        Self {
            limit,
            blocks: 0,
            blocks_most: 0,
            held: 0,
            held_most: 0,
        }
    }

    /// What counts here, once there are so many blocks and bytes more at a time.
    fn taken(&self, blocks: u64, bytes: u64) -> u64 {
        let blocks = self.blocks_most.max(self.blocks.saturating_add(blocks));
        let held = self.held_most.max(self.held.saturating_add(bytes));
        blocks.saturating_mul(OWN_BYTES).saturating_add(held)
    }

    /// What is left for heap and arena when there are so many blocks more.
    pub(super) fn left(&self, blocks: u64) -> u64 {
        self.limit.saturating_sub(self.taken(blocks, 0))
    }

    pub(super) fn add_block(&mut self) {
        self.blocks += 1;
        self.blocks_most = self.blocks_most.max(self.blocks);
    }

    pub(super) const fn remove_block(&mut self) {
        self.blocks = self.blocks.saturating_sub(1);
    }

    /// Holds `bytes` bytes, next to `others` in heap and arena. False if that is too much.
    pub(super) fn hold(&mut self, bytes: u64, others: u64) -> bool {
        let bytes = bytes.saturating_add(OWN_BYTES);
        if self.taken(0, bytes).saturating_add(others) > self.limit {
            return false;
        }
        self.held += bytes;
        self.held_most = self.held_most.max(self.held);
        true
    }

    pub(super) const fn release(&mut self, bytes: u64) {
        self.held = self.held.saturating_sub(bytes.saturating_add(OWN_BYTES));
    }
}

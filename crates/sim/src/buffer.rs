//! The dispatch buffer: what `ops.dispatch` asks for and is carried out when it has ended.

use model::{Cause, TaskId};

use crate::task::Carried;

/// One entry of the dispatch buffer: what `ops.dispatch` asked for and is checked when the buffer
/// is flushed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Buffered {
    pub task: TaskId,
    /// The task's enqueue number when it was inserted; `None` if the policy did not own it.
    pub qseq: Option<u64>,
    pub dsq_id: u64,
    pub flags: u64,
    pub carried: Carried,
    /// Cause of the insert, if anybody listens.
    pub cause: Cause,
}

/// The dispatch buffer of a CPU that asks for work (`struct scx_dsp_ctx`).
#[derive(Clone, Debug, Default)]
pub(crate) struct Buffer {
    entries: Vec<Buffered>,
    /// Tasks that moved to the local queue since the last call of `ops.dispatch` began.
    moved: u32,
}

impl Buffer {
    /// Inserts that wait for the flush.
    #[inline]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether an insert of `id` waits for the flush.
    pub fn has(&self, id: TaskId) -> bool {
        self.entries.iter().any(|entry| entry.task == id)
    }

    /// Adds an insert, if there are fewer than `most`; whether there were.
    #[inline]
    pub fn push(&mut self, entry: Buffered, most: u32) -> bool {
        let has_room = self.entries.len() < most as usize;
        if has_room {
            self.entries.push(entry);
        }
        has_room
    }

    /// Takes the last insert back; whether there was one.
    pub fn cancel(&mut self) -> bool {
        self.entries.pop().is_some()
    }

    /// `ops.dispatch` is about to be called.
    #[inline]
    pub fn begin(&mut self) {
        self.moved = 0;
    }

    /// So many tasks have moved.
    #[inline]
    pub fn count_moved(&mut self, tasks: u32) {
        self.moved += tasks;
    }

    /// Whether a task has moved since [`Buffer::begin`].
    #[inline]
    pub const fn has_moved(&self) -> bool {
        self.moved > 0
    }

    /// Takes all inserts, to carry them out.
    pub fn take(&mut self) -> Vec<Buffered> {
        std::mem::take(&mut self.entries)
    }

    /// Gives back the memory of what was taken, which is empty now.
    pub fn give_back(&mut self, entries: Vec<Buffered>) {
        self.entries = entries;
    }
}

//! What a CPU that looks for work has had, and what it gets.

use model::TaskId;

/// What the policy's class has to run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fetched {
    /// Nothing.
    Nothing,
    /// The first task of the local queue.
    Local(TaskId),
    /// The previous task, which stays (`SCX_RQ_BAL_KEEP`).
    Kept(TaskId),
}

/// A task of the policy's class that has had the CPU.
#[derive(Clone, Copy)]
pub(crate) struct Prev {
    /// [`TaskId::NONE`]: it was none of the policy's.
    pub id: TaskId,
    /// Of its mirror.
    pub address: u64,
    /// Whether it could go on.
    pub queued: bool,
}

impl Prev {
    /// It was none of the policy's.
    pub const NONE: Self = Self {
        id: TaskId::NONE,
        address: 0,
        queued: false,
    };

    /// As callbacks are about it.
    #[inline(always)]
    pub fn subject(self) -> Option<TaskId> {
        (self.id != TaskId::NONE).then_some(self.id)
    }
}

//! What a task could have instead of its CPU. [`crate::fit`] says when that is looked at.

/// What the task of a CPU could have instead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fit {
    /// Since when nothing is booked, nanoseconds.
    pub since: u64,
    pub better: Better,
}

/// The idle places that the task may use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Better {
    /// A CPU with noticeably more capacity.
    pub bigger: bool,
    /// A CPU of the smallest capacity, while its own has more.
    pub smallest: bool,
    /// A whole core, while the other thread of its own executes, too.
    pub core: bool,
}

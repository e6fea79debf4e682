//! Where one task is in its work.

use std::collections::VecDeque;

use model::{SimTime, TaskId};
use workload::{Command, Stepper};

use super::Action;

/// What a task that is off the CPU waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Waits {
    /// For nothing, or for a point in time.
    #[default]
    Nothing,
    /// For a message in an instance of a channel.
    Message { of: usize, index: usize },
    /// For room in an instance of a channel.
    Room { of: usize, index: usize },
    /// For an instance of a lock.
    Lock { of: usize, index: usize },
    /// For a token of an instance of a semaphore.
    Token { of: usize, index: usize },
    /// For a signal of an instance of a condition variable.
    Signal { of: usize, index: usize },
    /// For a connection to an instance of a listening socket.
    Connection { of: usize, index: usize },
    /// For an instance of a barrier.
    Barrier { of: usize, index: usize },
    /// For requests of a disk.
    Disk { of: usize },
    /// For room in memory, or in a cache.
    Memory,
    /// For memory to run short.
    Pressure,
    /// For a child to exit.
    Child,
    /// To be resumed.
    Resume,
}

/// What is left of a read or a write.
#[derive(Clone, Copy, Debug)]
pub(super) struct Transfer {
    /// The first page of the rest.
    pub page: u64,
    pub pages: u64,
}

/// Where a task has read, for reading ahead.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reading {
    pub disk: usize,
    /// The page behind the last one that it asked for.
    pub next: u64,
    /// The page behind the last one that was read for it.
    pub until: u64,
}

/// How far a task is in using its memory.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Touch {
    /// Pages that it has used.
    pub done: u64,
    /// The page that is being fetched.
    pub page: Option<u64>,
}

impl Touch {
    /// A page was used.
    pub fn go_on(&mut self) {
        self.done += 1;
        self.page = None;
    }
}

/// A task.
///
/// What a step that only takes time needs stands first and in one line of a cache.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub(super) struct Task {
    /// Actions before its next command.
    pub pending: VecDeque<Action>,
    /// Operations since time last passed for this task, and that time.
    pub steps: u32,
    /// Whether it performs `again` before its next command.
    pub tries_again: bool,
    pub has_exited: bool,
    /// Whether it is blocked and nobody has woken it yet.
    pub is_asleep: bool,
    pub steps_since: SimTime,
    /// What it does next.
    pub stepper: Stepper,
    /// The command for which it waits, or waited.
    pub again: Option<Command>,
    pub waits: Waits,
    pub parent: Option<TaskId>,
    pub is_process: bool,
    /// Whether a `resume` came before its `suspend`.
    pub is_resumed: bool,
    /// Children that have not exited.
    pub children: u32,
    /// Children that have exited and were not waited for.
    pub zombies: u32,
    /// Attempts of the connection that it tries to make.
    pub attempts: u32,
    /// Requests of disks that it waits for.
    pub requests: u32,
    /// The read or write that is under way.
    pub transfer: Option<Transfer>,
    pub touch: Touch,
    pub readings: Vec<Reading>,
    /// Keys of keyed locks that it holds: declaration and key, in the order of taking.
    pub keys: Vec<(usize, usize)>,
}

impl Task {
    /// A task at the begin of its work.
    pub fn new(stepper: Stepper) -> Self {
        Self {
            pending: VecDeque::new(),
            steps: 0,
            tries_again: false,
            has_exited: false,
            is_asleep: false,
            steps_since: SimTime::ZERO,
            stepper,
            again: None,
            waits: Waits::Nothing,
            parent: None,
            is_process: false,
            is_resumed: false,
            children: 0,
            zombies: 0,
            attempts: 0,
            requests: 0,
            transfer: None,
            touch: Touch::default(),
            readings: Vec::new(),
            keys: Vec::new(),
        }
    }

    /// Gives back what an exited task no longer needs: a run may have a great many.
    pub fn shrink(&mut self) {
        self.stepper.shrink();
        self.pending = VecDeque::new();
        self.keys = Vec::new();
        self.readings = Vec::new();
    }
}

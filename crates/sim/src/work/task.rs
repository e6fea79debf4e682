//! Where one task is in its work.

use std::collections::VecDeque;

use model::{Rng, SimTime, TaskId};
use workload::Releases;

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

impl Waits {
    /// Which instance of something declared it waits for.
    pub fn instance(self) -> Option<usize> {
        match self {
            Self::Message { index, .. }
            | Self::Room { index, .. }
            | Self::Lock { index, .. }
            | Self::Token { index, .. }
            | Self::Signal { index, .. }
            | Self::Connection { index, .. }
            | Self::Barrier { index, .. } => Some(index),
            Self::Nothing
            | Self::Disk { .. }
            | Self::Memory
            | Self::Pressure
            | Self::Child
            | Self::Resume => None,
        }
    }
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

/// Where a task reads or writes on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stream {
    pub disk: usize,
    pub next: u64,
}

/// A task.
///
/// What a step that only takes time needs stands first and in one line of a cache.
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct Task {
    /// Number of the next instruction.
    pub at: u32,
    pub group: u32,
    /// Operations since time last passed for this task, and that time.
    pub steps: u32,
    /// Whether its next instruction is the one for which it waits, or waited.
    pub tries_again: bool,
    pub has_exited: bool,
    /// Whether it has done anything; since when, `began` says.
    pub has_begun: bool,
    /// Whether it is blocked and nobody has woken it yet.
    pub is_asleep: bool,
    pub steps_since: SimTime,
    /// What it does before its next instruction.
    pub pending: VecDeque<Action>,
    pub index: u32,
    pub parent: Option<TaskId>,
    pub is_process: bool,
    pub variables: Vec<i64>,
    pub rng: Rng,
    pub waits: Waits,
    /// Whether a `resume` came before its `suspend`.
    pub is_resumed: bool,
    pub began: SimTime,
    /// Children that have not exited.
    pub children: u32,
    /// Children that have exited and were not waited for.
    pub zombies: u32,
    /// When the message that it received last was sent.
    pub message_sent: SimTime,
    /// What came with it.
    pub message_value: i64,
    /// Requests of disks that it waits for.
    pub requests: u32,
    /// The read or write that is under way.
    pub transfer: Option<Transfer>,
    /// Where it reads and writes on, for each disk that it has used so.
    pub streams: Vec<Stream>,
    pub readings: Vec<Reading>,
    /// Keys of keyed locks that it holds: declaration and key, in the order of taking.
    pub keys: Vec<(usize, usize)>,
    /// Spans that have begun.
    pub spans: Vec<(u32, SimTime)>,
    pub releases: Releases,
}

impl Task {
    /// A task at the begin of its work. `steps` and `steps_since` are its parent's, so that a
    /// chain of forks that takes no time comes to an end.
    pub fn new(group: u32, index: u32, variables: u32, rng: Rng) -> Self {
        Self {
            group,
            index,
            parent: None,
            is_process: false,
            at: 0,
            variables: vec![0; variables as usize],
            rng,
            pending: VecDeque::new(),
            waits: Waits::Nothing,
            tries_again: false,
            is_asleep: false,
            is_resumed: false,
            has_exited: false,
            has_begun: false,
            began: SimTime::ZERO,
            children: 0,
            zombies: 0,
            message_sent: SimTime::ZERO,
            message_value: 0,
            requests: 0,
            transfer: None,
            streams: Vec::new(),
            readings: Vec::new(),
            keys: Vec::new(),
            spans: Vec::new(),
            releases: Releases::default(),
            steps: 0,
            steps_since: SimTime::ZERO,
        }
    }

    /// Gives back what an exited task no longer needs: a run may have a great many.
    pub fn shrink(&mut self) {
        self.variables = Vec::new();
        self.pending = VecDeque::new();
        self.keys = Vec::new();
        self.streams = Vec::new();
        self.readings = Vec::new();
        self.spans = Vec::new();
        self.releases = Releases::default();
    }
}

//! Where one task is in its work.

use std::collections::VecDeque;

use model::{Nanos, Rng, SimTime, TaskId};

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
    /// For an instance of a barrier.
    Barrier { of: usize, index: usize },
    /// For a child to exit.
    Child,
    /// To be resumed.
    Resume,
}

/// A deadline's state within one task.
#[derive(Clone, Copy, Debug)]
pub(super) struct Release {
    pub deadline: u32,
    /// The release that is being served.
    pub at: SimTime,
    /// The one after it.
    pub next: SimTime,
}

/// A task.
#[derive(Debug)]
pub(super) struct Task {
    pub group: u32,
    pub index: u32,
    pub parent: Option<TaskId>,
    pub is_process: bool,
    /// Number of the next instruction.
    pub at: u32,
    pub variables: Vec<i64>,
    pub rng: Rng,
    /// What it does before its next instruction.
    pub pending: VecDeque<Action>,
    pub waits: Waits,
    /// Whether it is blocked and nobody has woken it yet.
    pub is_asleep: bool,
    /// Whether a `resume` came before its `suspend`.
    pub is_resumed: bool,
    pub has_exited: bool,
    /// Children that have not exited.
    pub children: u32,
    /// Children that have exited and were not waited for.
    pub zombies: u32,
    /// When the message that it received last was sent.
    pub message_sent: SimTime,
    /// Spans that have begun.
    pub spans: Vec<(u32, SimTime)>,
    pub releases: Vec<Release>,
    /// Operations since time last passed for this task, and that time.
    pub steps: u32,
    pub steps_since: SimTime,
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
            is_asleep: false,
            is_resumed: false,
            has_exited: false,
            children: 0,
            zombies: 0,
            message_sent: SimTime::ZERO,
            spans: Vec::new(),
            releases: Vec::new(),
            steps: 0,
            steps_since: SimTime::ZERO,
        }
    }

    /// Gives back what an exited task no longer needs: a run may have a great many.
    pub fn shrink(&mut self) {
        self.variables = Vec::new();
        self.pending = VecDeque::new();
        self.spans = Vec::new();
        self.releases = Vec::new();
    }

    /// The next release of a deadline with a period, and how many were given up for it. Later
    /// than `now` if it has not come yet.
    pub fn release(
        &mut self,
        deadline: u32,
        period: Nanos,
        skip: bool,
        now: SimTime,
    ) -> (SimTime, u64) {
        let Some(release) = self.releases.iter_mut().find(|r| r.deadline == deadline) else {
            self.releases.push(Release {
                deadline,
                at: now,
                next: now + period,
            });
            return (now, 0);
        };
        let passed = if skip && release.next < now {
            now.since(release.next).get() / period.get()
        } else {
            0
        };
        release.at = release.next + Nanos::new(passed * period.get());
        release.next = release.at + period;
        (release.at, passed)
    }

    /// The release of a deadline without a period is its message.
    pub fn release_by_message(&mut self, deadline: u32) {
        let at = self.message_sent;
        match self.releases.iter_mut().find(|r| r.deadline == deadline) {
            Some(release) => release.at = at,
            None => self.releases.push(Release {
                deadline,
                at,
                next: at,
            }),
        }
    }
}

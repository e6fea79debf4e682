//! Locks and barriers.

use std::collections::VecDeque;

use model::TaskId;
use model::workload::Handoff;

/// A mutex.
#[derive(Debug)]
pub(super) struct Mutex {
    handoff: Handoff,
    owner: Option<TaskId>,
    waiters: VecDeque<TaskId>,
}

/// How an attempt to take a lock ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// The task has it.
    Yes,
    /// It will be given to the task, who waits.
    Later,
    /// The task waits and must try again.
    Retry,
    /// The task has it already.
    Twice,
}

impl Mutex {
    pub fn new(handoff: Handoff) -> Self {
        Self {
            handoff,
            owner: None,
            waiters: VecDeque::new(),
        }
    }

    pub fn lock(&mut self, task: TaskId) -> Taken {
        match self.owner {
            None => {
                self.owner = Some(task);
                Taken::Yes
            }
            Some(owner) if owner == task => Taken::Twice,
            Some(_) => {
                self.waiters.push_back(task);
                match self.handoff {
                    Handoff::Fifo => Taken::Later,
                    Handoff::Barge => Taken::Retry,
                }
            }
        }
    }

    /// Whom giving it back wakes; `Err` if `task` does not have it.
    pub fn unlock(&mut self, task: TaskId) -> Result<Option<TaskId>, ()> {
        if self.owner != Some(task) {
            return Err(());
        }
        let next = self.waiters.pop_front();
        self.owner = match self.handoff {
            Handoff::Fifo => next,
            Handoff::Barge => None,
        };
        Ok(next)
    }
}

/// A barrier.
#[derive(Debug)]
pub(super) struct Gate {
    parties: u32,
    waiters: Vec<TaskId>,
}

impl Gate {
    pub fn new(parties: u32) -> Self {
        Self {
            parties,
            waiters: Vec::new(),
        }
    }

    /// Whom the last party wakes; `None` if `task` is not the last and waits.
    pub fn arrive(&mut self, task: TaskId) -> Option<Vec<TaskId>> {
        if self.waiters.len() + 1 == self.parties as usize {
            return Some(std::mem::take(&mut self.waiters));
        }
        self.waiters.push(task);
        None
    }
}

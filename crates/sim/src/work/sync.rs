//! Locks, semaphores, condition variables and barriers.

use std::collections::{BTreeMap, VecDeque};

use model::TaskId;
use workload::{Handoff, Lock, LockKind};

/// All locks of one declaration. Only those that somebody holds or waits for take memory.
#[derive(Clone, Debug)]
pub(super) struct Locks {
    handoff: Handoff,
    /// A task may take again what it holds.
    is_keyed: bool,
    busy: BTreeMap<usize, Held>,
}

/// One lock that somebody holds or waits for.
#[derive(Clone, Debug, Default)]
struct Held {
    owner: Option<TaskId>,
    /// Those who have it for reading; empty while there is an owner.
    readers: Vec<TaskId>,
    /// First come, first served. `true`: for reading.
    waiters: VecDeque<(TaskId, bool)>,
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
    /// The task has it already, and may not take it again.
    Twice,
    /// The task has it already, which is as good.
    Again,
}

impl Locks {
    pub fn new(lock: &Lock) -> Self {
        Self {
            handoff: lock.handoff,
            is_keyed: matches!(lock.kind, LockKind::Keyed(_)),
            busy: BTreeMap::new(),
        }
    }

    pub fn is_keyed(&self) -> bool {
        self.is_keyed
    }

    /// Takes instance `index`. `woken`: the task had waited and tries again, so it may pass those
    /// who wait.
    pub fn lock(&mut self, index: usize, task: TaskId, reads: bool, woken: bool) -> Taken {
        let held = self.busy.entry(index).or_default();
        if held.owner == Some(task) || held.readers.contains(&task) {
            return if self.is_keyed {
                Taken::Again
            } else {
                Taken::Twice
            };
        }
        let passes = woken || self.handoff == Handoff::Barge && !reads;
        let nobody_waits = passes || held.waiters.is_empty();
        if reads && held.owner.is_none() && nobody_waits {
            held.readers.push(task);
            return Taken::Yes;
        }
        if !reads && held.owner.is_none() && held.readers.is_empty() && nobody_waits {
            held.owner = Some(task);
            return Taken::Yes;
        }
        held.waiters.push_back((task, reads));
        match self.handoff {
            Handoff::Fifo => Taken::Later,
            Handoff::Barge => Taken::Retry,
        }
    }

    /// Gives it back; returns the tasks that wake. `Err` if `task` does not have it.
    pub fn unlock(&mut self, index: usize, task: TaskId) -> Result<Vec<TaskId>, ()> {
        let held = self.busy.get_mut(&index).ok_or(())?;
        if held.owner == Some(task) {
            held.owner = None;
        } else {
            let at = held.readers.iter().position(|&reader| reader == task);
            held.readers.swap_remove(at.ok_or(())?);
        }
        let woken = held.pass_on(self.handoff);
        if held.is_free() {
            self.busy.remove(&index);
        }
        Ok(woken)
    }

    /// Each task that waits, with the instance for which it does and one of those that have it.
    pub fn blocked(&self) -> impl Iterator<Item = (TaskId, usize, TaskId)> + '_ {
        let busy = self.busy.iter();
        let busy = busy.filter_map(|(index, held)| {
            let holder = held.owner.or_else(|| held.readers.first().copied())?;
            Some((*index, held, holder))
        });
        busy.flat_map(|(index, held, holder)| {
            let waiters = held.waiters.iter();
            waiters.map(move |(waiter, _)| (*waiter, index, holder))
        })
    }

    /// Owners, one for writing or several for reading; in no particular order.
    pub fn holders(&self, index: usize) -> impl Iterator<Item = TaskId> + '_ {
        let held = self.busy.get(&index);
        held.into_iter()
            .flat_map(|held| held.owner.iter().chain(&held.readers).copied())
    }
}

impl Held {
    fn is_free(&self) -> bool {
        self.owner.is_none() && self.readers.is_empty() && self.waiters.is_empty()
    }

    /// Gives the lock to those at the front, or wakes them to try again.
    fn pass_on(&mut self, handoff: Handoff) -> Vec<TaskId> {
        let mut woken = Vec::new();
        while let Some(&(task, reads)) = self.waiters.front() {
            let mixes = !reads && !woken.is_empty();
            if self.owner.is_some() || mixes || !reads && !self.readers.is_empty() {
                break;
            }
            self.waiters.pop_front();
            woken.push(task);
            match (handoff, reads) {
                (Handoff::Fifo, true) => self.readers.push(task),
                (Handoff::Fifo, false) => self.owner = Some(task),
                (Handoff::Barge, true) => {}
                // One at a time: the others would only wait again.
                (Handoff::Barge, false) => break,
            }
        }
        woken
    }
}

/// A counting semaphore.
#[derive(Clone, Debug)]
pub(super) struct Tokens {
    value: u32,
    waiters: VecDeque<TaskId>,
}

impl Tokens {
    pub fn new(value: u32) -> Self {
        Self {
            value,
            waiters: VecDeque::new(),
        }
    }

    /// Whether the task has got a token; else it waits and will be given one.
    pub fn take(&mut self, task: TaskId) -> bool {
        if self.value > 0 {
            self.value -= 1;
            return true;
        }
        self.waiters.push_back(task);
        false
    }

    /// Gives a token to the first waiting task, or keeps it. `Err` if there are too many.
    pub fn give(&mut self) -> Result<Option<TaskId>, ()> {
        let next = self.waiters.pop_front();
        if next.is_none() {
            self.value = self.value.checked_add(1).ok_or(())?;
        }
        Ok(next)
    }
}

/// A barrier.
#[derive(Clone, Debug)]
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

    /// Tasks that the last party wakes; `None` if `task` is not the last and waits.
    pub fn arrive(&mut self, task: TaskId) -> Option<Vec<TaskId>> {
        if self.waiters.len() + 1 == self.parties as usize {
            return Some(std::mem::take(&mut self.waiters));
        }
        self.waiters.push(task);
        None
    }
}

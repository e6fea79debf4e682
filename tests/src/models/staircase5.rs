//! Staircase 5, the announcement, on one CPU.
//!
//! Run time counts in nanoseconds; an interval that is used up ends at the next tick or decision,
//! and what it overran is missing from the next one.

use std::collections::VecDeque;

use model::{SimTime, TaskId};

use super::Scheduler;

const MS: i64 = 1_000_000;
/// 10 ms for each CPU, and there is one.
const RR: i64 = 10 * MS;
const LAST_STAIR: u32 = 139;

#[derive(Clone, Debug, Default)]
struct Task {
    parent: Option<TaskId>,
    thread: bool,
    static_prio: u32,
    prio: u32,
    level: u32,
    slice: i64,
    interval: i64,
    run: i64,
    /// Up to when run time is counted, or since when it sleeps.
    stamp: i64,
    queued: bool,
    first: bool,
    ended: bool,
}

impl Task {
    const fn stairs(&self) -> u32 {
        LAST_STAIR + 1 - self.static_prio
    }

    fn full(&self) -> i64 {
        RR * i64::from(self.stairs())
    }

    fn descend(&mut self, level: u32) {
        self.level = level.min(self.stairs() - 1);
        self.prio = self.static_prio + self.level;
        self.slice = self.full();
        self.interval = RR * i64::from(self.level + 1);
    }
}

/// The queue of the CPU.
#[derive(Clone, Debug)]
pub struct Staircase5 {
    tasks: Vec<Task>,
    lists: Vec<VecDeque<TaskId>>,
    curr: Option<TaskId>,
    resched: bool,
}

impl Default for Staircase5 {
    fn default() -> Self {
        Self {
            tasks: Vec::new(),
            lists: vec![VecDeque::new(); 140],
            curr: None,
            resched: false,
        }
    }
}

fn ns(time: SimTime) -> i64 {
    i64::try_from(time.as_nanos()).expect("a time within 292 years")
}

impl Staircase5 {
    fn unlink(&mut self, task: TaskId) {
        for list in &mut self.lists {
            list.retain(|&other| other != task);
        }
    }

    /// To the tail of the list that its priority says.
    fn append(&mut self, task: TaskId) {
        self.unlink(task);
        let prio = self.tasks[task.index()].prio;
        self.lists[prio as usize].push_back(task);
    }

    fn charge(&mut self, now: i64) {
        let Some(curr) = self.curr else { return };
        let t = &mut self.tasks[curr.index()];
        let ran = now - t.stamp;
        t.stamp = now;
        t.slice -= ran;
        t.interval -= ran;
        t.run += ran;
    }

    fn expire(&mut self, curr: TaskId) {
        let t = &mut self.tasks[curr.index()];
        if t.slice > 0 && t.interval > 0 {
            return;
        }
        let (slice, overrun) = (t.slice, t.interval.min(0));
        if slice <= 0 {
            t.descend(t.level + 1);
            t.first = false;
            if t.slice + slice > 0 {
                t.slice += slice;
            }
        } else {
            t.interval = RR;
            t.prio = LAST_STAIR.min(t.prio + 1);
        }
        t.interval += overrun;
        if t.interval <= 0 {
            t.interval = RR;
        }
        self.append(curr);
    }

    fn inherit(&mut self, task: TaskId, parent: TaskId) {
        let from = &mut self.tasks[parent.index()];
        let slice = (from.slice.max(1) + 1) / 2;
        let interval = (from.interval.max(1) + 1) / 2;
        from.slice -= slice;
        from.interval -= interval;
        self.resched |= from.slice <= 0 || from.interval <= 0;
        let t = &mut self.tasks[task.index()];
        t.descend(0);
        t.slice = slice.min(t.full());
        t.interval = interval.min(RR);
        t.first = true;
        self.append(task);
    }

    fn refund(&mut self, task: TaskId) {
        let t = &self.tasks[task.index()];
        let (left, first) = (t.interval, t.first);
        let Some(parent) = t.parent.filter(|_| !t.thread) else {
            return;
        };
        let to = &mut self.tasks[parent.index()];
        let most = RR * i64::from(to.level + 1);
        if first && left > 0 && to.interval < most && !to.ended {
            to.interval = most.min(to.interval + left);
        }
    }
}

impl Scheduler for Staircase5 {
    fn born(&mut self, task: TaskId, nice: i8, parent: Option<TaskId>, now: SimTime) {
        assert_eq!(task.index(), self.tasks.len(), "tasks come in order");
        let mut t = Task {
            parent,
            static_prio: (120 + i32::from(nice)) as u32,
            stamp: ns(now),
            ..Task::default()
        };
        t.descend(0);
        self.tasks.push(t);
    }

    fn wake(&mut self, task: TaskId, new: bool, now: SimTime) {
        self.charge(ns(now));
        let t = &mut self.tasks[task.index()];
        t.queued = true;
        match t.parent {
            Some(parent) if new => {
                self.inherit(task, parent);
                self.resched |= self.curr.is_none();
            }
            _ => {
                let sleep = ns(now) - t.stamp;
                if t.run >= MS || t.run + sleep >= RR {
                    t.descend(t.level.saturating_sub(1));
                }
                if t.slice <= 0 || t.interval <= 0 {
                    self.expire(task);
                } else {
                    self.append(task);
                }
                let prio = self.tasks[task.index()].prio;
                let curr = self.curr.map(|curr| self.tasks[curr.index()].prio);
                self.resched |= curr.is_none_or(|curr| prio < curr);
            }
        }
    }

    fn tick(&mut self, now: SimTime) {
        self.charge(ns(now));
        let Some(curr) = self.curr else { return };
        let t = &self.tasks[curr.index()];
        self.resched |= t.slice <= 0 || t.interval <= 0;
    }

    fn yields(&mut self, now: SimTime) {
        self.charge(ns(now));
        let curr = self.curr.expect("somebody yields");
        let t = &mut self.tasks[curr.index()];
        t.descend(t.level);
        self.append(curr);
        self.resched = true;
    }

    fn renice(&mut self, task: TaskId, nice: i8, now: SimTime) {
        self.charge(ns(now));
        let t = &mut self.tasks[task.index()];
        let new = (120 + i32::from(nice)) as u32;
        let was = std::mem::replace(&mut t.static_prio, new);
        t.level = t.level.min(t.stairs() - 1);
        if was == new {
            return;
        }
        t.prio = new;
        if t.queued {
            self.append(task);
            self.resched |= new < was || self.curr == Some(task);
        }
    }

    fn is_thread(&mut self, task: TaskId) {
        self.tasks[task.index()].thread = true;
    }

    fn leave(&mut self, task: TaskId, exits: bool, now: SimTime) {
        self.charge(ns(now));
        self.unlink(task);
        let t = &mut self.tasks[task.index()];
        t.queued = false;
        t.ended = exits;
        t.stamp = ns(now);
        if exits {
            self.refund(task);
        }
        self.curr = None;
        self.resched = true;
    }

    fn schedule(&mut self, now: SimTime) -> Option<TaskId> {
        self.charge(ns(now));
        self.resched = false;
        if let Some(curr) = self.curr {
            self.expire(curr);
        }
        let next = self.lists.iter().find_map(|list| list.front()).copied();
        if let Some(next) = next {
            self.tasks[next.index()].stamp = ns(now);
            if Some(next) != self.curr {
                self.tasks[next.index()].run = 0;
            }
        }
        self.curr = next;
        next
    }

    fn must_decide(&self) -> bool {
        self.resched
    }

    fn place(&self, task: TaskId) -> (u32, u32) {
        let t = &self.tasks[task.index()];
        (t.prio, t.level)
    }
}

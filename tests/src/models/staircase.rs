//! Staircase 10.5 on one CPU.
//!
//! Run time counts in nanoseconds; an interval that is used up ends at the next tick or decision,
//! and what it overran is missing from the next one.

use std::collections::VecDeque;

use model::{SimTime, TaskId};

use super::Scheduler;

const MS: i64 = 1_000_000;
const LAST_STAIR: u32 = 139;

/// The switches of the scheduler.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Burst lengthens the first stair.
    pub interactive: bool,
    /// Long intervals, late preemption.
    pub compute: bool,
    /// The resume rule of 7.G instead of that of 10.5.
    pub resume_7g: bool,
    /// A fresh slice preempts at equal priority.
    pub preempt_equal: bool,
}

#[derive(Clone, Debug, Default)]
struct Task {
    parent: Option<TaskId>,
    static_prio: u32,
    prio: u32,
    slice: i64,
    time_slice: i64,
    burst: u32,
    runtime: i64,
    totalrun: i64,
    /// Up to when run time is counted, or since when it sleeps.
    stamp: i64,
    queued: bool,
    slept: bool,
    /// It sleeps, or has just slept, uninterruptibly.
    waits: bool,
    forked: bool,
    yielded: bool,
}

/// The queue of the CPU.
#[derive(Clone, Debug)]
pub struct Staircase {
    set: Settings,
    tasks: Vec<Task>,
    lists: Vec<VecDeque<TaskId>>,
    curr: Option<TaskId>,
    resched: bool,
    preempted: bool,
    switched: i64,
}

fn ns(time: SimTime) -> i64 {
    i64::try_from(time.as_nanos()).expect("a time within 292 years")
}

fn jiffies(span: i64) -> i64 {
    span / MS
}

impl Staircase {
    /// An empty queue.
    #[must_use]
    pub fn new(set: Settings) -> Self {
        Self {
            set,
            tasks: Vec::new(),
            lists: vec![VecDeque::new(); 141],
            curr: None,
            resched: false,
            preempted: false,
            switched: 0,
        }
    }

    fn rr(&self) -> i64 {
        if self.set.compute { 100 * MS } else { 10 * MS }
    }

    fn max_burst(&self, task: TaskId) -> u32 {
        LAST_STAIR - self.tasks[task.index()].static_prio
    }

    fn full(&self, task: TaskId) -> i64 {
        self.rr() * i64::from(1 + self.max_burst(task))
    }

    fn effective(&self, task: TaskId) -> u32 {
        let t = &self.tasks[task.index()];
        let used = self.full(task) - t.slice;
        let bursts = if self.set.interactive && !self.set.compute {
            i64::from(t.burst.min(self.max_burst(task))) + 1
        } else {
            1
        };
        let first = self.rr() * bursts;
        if used < first {
            return t.static_prio;
        }
        let down = u32::try_from(1 + (used - first) / self.rr()).expect("a short stair");
        LAST_STAIR.min(t.static_prio + down)
    }

    fn unlink(&mut self, task: TaskId) {
        for list in &mut self.lists {
            list.retain(|&other| other != task);
        }
    }

    fn append(&mut self, task: TaskId, prio: u32) {
        self.unlink(task);
        self.tasks[task.index()].prio = prio;
        self.lists[prio as usize].push_back(task);
    }

    fn put_first(&mut self, task: TaskId, prio: u32) {
        self.unlink(task);
        self.tasks[task.index()].prio = prio;
        self.lists[prio as usize].push_front(task);
    }

    fn charge(&mut self, now: i64) {
        let Some(curr) = self.curr else { return };
        let t = &mut self.tasks[curr.index()];
        let ran = now - t.stamp;
        t.stamp = now;
        t.slice -= ran;
        t.time_slice -= ran;
        t.runtime += ran;
    }

    /// The tick's rule for a used up interval or slice.
    fn expire(&mut self, curr: TaskId) {
        let (rr, full) = (self.rr(), self.full(curr));
        let t = &mut self.tasks[curr.index()];
        if t.slice > 0 && t.time_slice > 0 {
            return;
        }
        if t.slice <= 0 {
            t.burst = t.burst.saturating_sub(1);
            t.slice += full;
            if t.slice <= 0 {
                t.slice = full;
            }
        }
        t.time_slice += rr;
        if t.time_slice <= 0 || t.time_slice > rr {
            t.time_slice = rr;
        }
        let prio = self.effective(curr);
        self.append(curr, prio);
    }

    fn gain(&mut self, task: TaskId) {
        let most = self.max_burst(task);
        let t = &mut self.tasks[task.index()];
        if !t.waits {
            t.burst = (t.burst + 1).min(most);
        }
        t.totalrun = 0;
    }

    fn resume_7g(&mut self, task: TaskId, sleep: i64) {
        let rr = self.rr();
        let plain = self.set.interactive && !self.set.compute;
        let t = &mut self.tasks[task.index()];
        let total = t.totalrun + t.runtime;
        if t.forked || ((t.runtime < MS || !plain) && t.runtime + sleep < rr) {
            t.forked = false;
            if jiffies(t.slice) - jiffies(total) < 1 {
                t.totalrun = 0;
                t.burst = t.burst.saturating_sub(1);
            } else {
                t.totalrun = total;
                t.slice -= jiffies(total) * MS;
            }
        } else {
            self.gain(task);
        }
    }

    fn resume_10(&mut self, task: TaskId, sleep: i64) {
        let (rr, compute) = (self.rr(), self.set.compute);
        let t = &mut self.tasks[task.index()];
        t.totalrun += t.runtime;
        let forked = std::mem::take(&mut t.forked);
        if jiffies(t.totalrun) >= jiffies(t.slice) && jiffies(sleep) < jiffies(t.slice) {
            t.burst = t.burst.saturating_sub(1);
            t.totalrun = 0;
            return;
        }
        if !forked && !compute {
            if sleep >= t.totalrun {
                self.gain(task);
                return;
            }
            t.totalrun -= sleep;
        }
        let total = jiffies(t.totalrun) * MS;
        if total >= t.slice {
            t.totalrun -= t.slice;
            t.burst = t.burst.saturating_sub(1);
        } else {
            t.slice -= total;
            if t.slice % rr != 0 {
                t.time_slice = t.slice % rr;
            }
        }
    }

    fn wake_up(&mut self, task: TaskId, now: i64) {
        let (full, rr) = (self.full(task), self.rr());
        let t = &mut self.tasks[task.index()];
        let sleep = now - t.stamp;
        t.slice = full;
        t.time_slice = rr;
        if t.slept {
            if self.set.resume_7g {
                self.resume_7g(task, sleep);
            } else {
                self.resume_10(task, sleep);
            }
        }
        self.tasks[task.index()].waits = false;
        let prio = self.effective(task);
        self.append(task, prio);
        self.preempt(task, now);
    }

    fn preempt(&mut self, task: TaskId, now: i64) {
        let Some(curr) = self.curr else {
            self.resched = true;
            return;
        };
        let (t, c) = (&self.tasks[task.index()], &self.tasks[curr.index()]);
        let fresh = t.slept && t.slice == self.full(task);
        let equal = self.set.preempt_equal && t.prio == c.prio && fresh;
        if t.prio >= c.prio && !equal {
            return;
        }
        if equal {
            let prio = t.prio;
            self.put_first(task, prio);
        }
        if self.set.compute && now - self.switched < 10 * MS {
            self.preempted = true;
        } else {
            self.resched = true;
        }
    }

    fn inherit(&mut self, task: TaskId, parent: TaskId) {
        let from = &mut self.tasks[parent.index()];
        from.forked = true;
        let from = from.clone();
        let t = &mut self.tasks[task.index()];
        t.slice = from.slice.max(1);
        t.time_slice = from.time_slice.max(1);
        let same = t.static_prio == from.static_prio;
        let prio = if same { from.prio } else { t.static_prio };
        self.append(task, prio);
    }
}

impl Scheduler for Staircase {
    fn born(&mut self, task: TaskId, nice: i8, parent: Option<TaskId>, now: SimTime) {
        assert_eq!(task.index(), self.tasks.len(), "tasks come in order");
        self.tasks.push(Task {
            parent,
            static_prio: (120 + i32::from(nice)) as u32,
            stamp: ns(now),
            ..Task::default()
        });
    }

    fn wake(&mut self, task: TaskId, new: bool, now: SimTime) {
        self.charge(ns(now));
        self.tasks[task.index()].queued = true;
        let parent = self.tasks[task.index()].parent;
        match parent {
            Some(parent) if new => {
                self.inherit(task, parent);
                self.resched |= self.curr.is_none();
            }
            _ => self.wake_up(task, ns(now)),
        }
        self.tasks[task.index()].runtime = 0;
    }

    fn tick(&mut self, now: SimTime) {
        self.charge(ns(now));
        let Some(curr) = self.curr else { return };
        let t = &self.tasks[curr.index()];
        if t.slice <= 0 || t.time_slice <= 0 {
            self.resched = true;
        }
        if self.preempted && ns(now) - self.switched >= 10 * MS {
            self.preempted = false;
            self.resched = true;
        }
    }

    fn yields(&mut self, now: SimTime) {
        self.charge(ns(now));
        let curr = self.curr.expect("somebody yields");
        let (full, rr) = (self.full(curr), self.rr());
        let t = &mut self.tasks[curr.index()];
        t.slice = full;
        t.time_slice = rr;
        t.burst = 0;
        t.yielded = true;
        self.append(curr, LAST_STAIR);
        self.resched = true;
    }

    fn renice(&mut self, task: TaskId, nice: i8, now: SimTime) {
        self.charge(ns(now));
        let t = &mut self.tasks[task.index()];
        let new = (120 + i32::from(nice)) as u32;
        let was = std::mem::replace(&mut t.static_prio, new);
        if !t.queued || was == new {
            return;
        }
        self.append(task, new);
        self.resched |= new < was || self.curr == Some(task);
    }

    fn leaves_uninterruptibly(&mut self, task: TaskId) {
        self.tasks[task.index()].waits = true;
    }

    fn leave(&mut self, task: TaskId, _exits: bool, now: SimTime) {
        self.charge(ns(now));
        self.unlink(task);
        let t = &mut self.tasks[task.index()];
        t.queued = false;
        t.slept = true;
        t.yielded = false;
        t.stamp = ns(now);
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
            if std::mem::take(&mut self.tasks[next.index()].yielded) {
                let prio = self.effective(next);
                self.put_first(next, prio);
            }
            self.tasks[next.index()].stamp = ns(now);
        }
        if next != self.curr {
            if let Some(next) = next {
                self.tasks[next.index()].runtime = 0;
            }
            self.switched = ns(now);
            self.preempted = false;
        }
        self.curr = next;
        next
    }

    fn must_decide(&self) -> bool {
        self.resched
    }

    fn place(&self, task: TaskId) -> (u32, u32) {
        let t = &self.tasks[task.index()];
        (t.prio, t.burst)
    }
}

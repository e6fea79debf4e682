//! The O(1) scheduler of Linux 2.6.3 and 2.6.10 on one CPU.
//!
//! Run time counts in nanoseconds and a jiffy is 1 ms; slices and pieces end at ticks, and what a
//! slice overran is missing from the next one.

use std::collections::VecDeque;

use model::{SimTime, TaskId};

use super::Scheduler;

const J: i64 = 1_000_000;

/// A task.
#[derive(Clone, Debug, Default)]
pub(super) struct Task {
    parent: Option<TaskId>,
    thread: bool,
    static_prio: i64,
    prio: i64,
    sleep_avg: i64,
    credit: i64,
    activated: i64,
    /// It sleeps uninterruptibly.
    waits: bool,
    timestamp: i64,
    /// Up to when `time_slice` is true.
    counted: i64,
    time_slice: i64,
    ticked: i64,
    first_slice: bool,
    woken_before: bool,
    /// Which array it is in; `None` when it is not runnable.
    array: Option<usize>,
    ended: bool,
}

/// The queue of the CPU.
#[derive(Clone, Debug)]
pub struct O1 {
    v2_6_10: bool,
    /// CPUs of the machine, which lengthen the pieces of interactive tasks.
    cpus: i64,
    tasks: Vec<Task>,
    arrays: [Vec<VecDeque<TaskId>>; 2],
    active: usize,
    expired_since: Option<i64>,
    best_expired: i64,
    curr: Option<TaskId>,
    resched: bool,
}

fn ns(time: SimTime) -> i64 {
    i64::try_from(time.as_nanos()).expect("a time within 292 years")
}

impl O1 {
    /// An empty queue of 2.6.3 or, with `v2_6_10`, of 2.6.10.
    #[must_use]
    pub fn new(v2_6_10: bool) -> Self {
        Self {
            v2_6_10,
            cpus: 1,
            tasks: Vec::new(),
            arrays: [vec![VecDeque::new(); 140], vec![VecDeque::new(); 140]],
            active: 0,
            expired_since: None,
            best_expired: 140,
            curr: None,
            resched: false,
        }
    }

    /// The queue of one of several CPUs.
    pub(super) fn one_of(cpus: u16) -> Self {
        Self {
            cpus: cpus.into(),
            ..Self::new(false)
        }
    }

    /// Who runs.
    pub(super) const fn current(&self) -> Option<TaskId> {
        self.curr
    }

    /// The tasks that wait, in the order in which another CPU may take them: the expired array
    /// first, the best list first, the end of a list first.
    pub(super) fn takeable(&self) -> Vec<TaskId> {
        let arrays = [&self.arrays[1 - self.active], &self.arrays[self.active]];
        let lists = arrays.into_iter().flatten();
        let tasks = lists.flat_map(|list| list.iter().rev()).copied();
        tasks.filter(|task| Some(*task) != self.curr).collect()
    }

    /// Takes a task out, for another CPU.
    pub(super) fn detach(&mut self, task: TaskId) -> Task {
        self.unlink(task);
        let t = &mut self.tasks[task.index()];
        t.array = None;
        t.clone()
    }

    /// Puts a task of another CPU in: asleep, or at the end of its list of the active array.
    pub(super) fn attach(&mut self, task: TaskId, state: Task, queued: bool) {
        let prio = state.prio;
        self.tasks[task.index()] = state;
        if queued {
            self.append(task, self.active, prio);
        }
    }

    /// The time slice of a static priority, in jiffies.
    #[must_use]
    pub const fn slice(&self, static_prio: i64) -> i64 {
        if !self.v2_6_10 {
            return 10 + 190 * (139 - static_prio) / 39;
        }
        let scale = if static_prio < 120 { 400 } else { 100 };
        let slice = scale * (140 - static_prio) / 20;
        if slice < 5 { 5 } else { slice }
    }

    const fn most(&self) -> i64 {
        if self.v2_6_10 { 1000 } else { 1020 }
    }

    fn bonus(&self, task: TaskId) -> i64 {
        self.tasks[task.index()].sleep_avg / J * 10 / self.most()
    }

    fn effective(&self, task: TaskId) -> i64 {
        let prio = self.tasks[task.index()].static_prio - (self.bonus(task) - 5);
        prio.clamp(100, 139)
    }

    /// Rust's division truncates toward zero as C's does.
    fn delta(&self, task: TaskId) -> i64 {
        (self.tasks[task.index()].static_prio - 120) * 10 / 40 + 2
    }

    /// Whether the stored priority makes the task interactive.
    #[must_use]
    pub fn interactive(&self, task: TaskId) -> bool {
        let t = &self.tasks[task.index()];
        t.prio <= t.static_prio - self.delta(task)
    }

    fn idle_sleep(&self, task: TaskId) -> i64 {
        (self.most() * (5 + self.delta(task) + 1) / 10 - 1) * J
    }

    fn unlink(&mut self, task: TaskId) {
        let t = &self.tasks[task.index()];
        if let Some(array) = t.array {
            self.arrays[array][t.prio as usize].retain(|&other| other != task);
        }
    }

    fn append(&mut self, task: TaskId, array: usize, prio: i64) {
        self.unlink(task);
        let t = &mut self.tasks[task.index()];
        t.prio = prio;
        t.array = Some(array);
        self.arrays[array][prio as usize].push_back(task);
    }

    /// Counts what the current task has run of its slice.
    fn count(&mut self, now: i64) {
        let Some(curr) = self.curr else { return };
        let t = &mut self.tasks[curr.index()];
        t.time_slice -= now - t.counted;
        t.counted = now;
    }

    /// What `schedule()` takes off the sleep average.
    fn charge(&mut self, task: TaskId, now: i64) {
        let (most, bonus) = (self.most() * J, self.bonus(task));
        let t = &mut self.tasks[task.index()];
        let mut run = (now - t.timestamp).min(most);
        t.timestamp = now;
        if run == 0 {
            return;
        }
        let (high, low) = (t.credit > 100, t.credit < -100);
        if high {
            run /= bonus.max(1);
        }
        t.sleep_avg -= run;
        if t.sleep_avg <= 0 {
            t.sleep_avg = 0;
            if !high && !low {
                t.credit -= 1;
            }
        }
    }

    /// What a sleep until `now` adds to the sleep average.
    fn credit(&mut self, task: TaskId, now: i64) {
        let most = self.most() * J;
        let idle = self.idle_sleep(task);
        let bonus = self.bonus(task);
        let average = self.slice(120) * J;
        let slice = self.slice(self.tasks[task.index()].static_prio) * J;
        let t = &mut self.tasks[task.index()];
        let mut s = (now - t.timestamp).min(most);
        let (high, low) = (t.credit > 100, t.credit < -100);
        if s > idle && t.activated != -1 {
            t.sleep_avg = most - average;
            t.credit += i64::from(!high);
        } else if s > 0 {
            s *= (10 - bonus).max(1);
            if low {
                s = s.min(slice);
            }
            if t.activated == -1 && !high && t.sleep_avg + s >= idle {
                t.sleep_avg = t.sleep_avg.max(idle);
                s = 0;
            }
            t.sleep_avg += s;
            if t.sleep_avg > most {
                t.sleep_avg = most;
                t.credit += i64::from(!high);
            }
        }
    }

    /// Tasks that are runnable here, the running one included (`nr_running`).
    pub(super) fn running(&self) -> i64 {
        let queued = self.tasks.iter().filter(|t| t.array.is_some());
        i64::try_from(queued.count()).expect("few tasks")
    }

    fn expire(&mut self, task: TaskId, now: i64) {
        let prio = self.effective(task);
        let full = self.slice(self.tasks[task.index()].static_prio) * J;
        let starve = (self.most() * self.running() + 1) * J;
        self.unlink(task);
        let t = &mut self.tasks[task.index()];
        t.array = None;
        t.prio = prio;
        t.time_slice = full + t.time_slice.min(0);
        if t.time_slice <= 0 {
            t.time_slice = full;
        }
        t.ticked = t.time_slice;
        t.first_slice = false;
        let static_prio = t.static_prio;
        let since = *self.expired_since.get_or_insert(now);
        let starving = now - since >= starve || static_prio > self.best_expired;
        if self.interactive(task) && !starving {
            self.append(task, self.active, prio);
        } else {
            self.append(task, 1 - self.active, prio);
            self.best_expired = self.best_expired.min(static_prio);
        }
    }

    fn ends_piece(&self, task: TaskId) -> bool {
        let t = &self.tasks[task.index()];
        let piece = (10 * J * self.cpus) << ((10 - self.bonus(task)).max(1) - 1);
        let full = self.slice(t.static_prio) * J;
        let multiples = |left: i64| (full - left).max(0) / piece;
        self.interactive(task)
            && multiples(t.time_slice) != multiples(t.ticked)
            && t.time_slice >= piece
            && t.array == Some(self.active)
    }

    /// The child takes half of the slice and most of the bonus, and stands before its parent.
    fn inherit(&mut self, task: TaskId, parent: TaskId, now: i64) {
        let (most, bonus) = (self.most(), self.bonus(parent));
        let from = &mut self.tasks[parent.index()];
        let left = from.time_slice.max(1);
        let share = (((left + J - 1) / J + 1) / 2 * J).min(left);
        from.time_slice = left - share;
        from.ticked = from.time_slice;
        from.sleep_avg = bonus * most / 10 * J;
        if from.time_slice == 0 {
            self.expire(parent, now);
        }
        let from = self.tasks[parent.index()].clone();
        let t = &mut self.tasks[task.index()];
        t.time_slice = share;
        t.first_slice = true;
        t.sleep_avg = bonus * 95 / 100 * most / 10 * J;
        t.prio = from.prio;
        t.array = from.array;
        let list = &mut self.arrays[from.array.expect("it runs")][from.prio as usize];
        let at = list.iter().position(|&other| other == parent);
        list.insert(at.expect("the running task is in its list"), task);
        self.resched = true;
    }

    fn settle_with_parent(&mut self, task: TaskId) {
        let t = self.tasks[task.index()].clone();
        let Some(parent) = t.parent.filter(|_| !t.thread) else {
            return;
        };
        let cap = if self.v2_6_10 { 800 } else { 200 } * J;
        let to = &mut self.tasks[parent.index()];
        if to.ended {
            return;
        }
        if t.first_slice && t.time_slice > 0 {
            to.time_slice = cap.min(to.time_slice + t.time_slice);
            to.ticked = to.time_slice;
        }
        if t.sleep_avg < to.sleep_avg {
            to.sleep_avg = to.sleep_avg / 4 * 3 + t.sleep_avg / 4;
        }
    }
}

impl Scheduler for O1 {
    fn born(&mut self, task: TaskId, nice: i8, parent: Option<TaskId>, now: SimTime) {
        assert_eq!(task.index(), self.tasks.len(), "tasks come in order");
        let static_prio = 120 + i64::from(nice);
        self.tasks.push(Task {
            parent,
            static_prio,
            timestamp: ns(now),
            time_slice: self.slice(static_prio) * J,
            ..Task::default()
        });
        self.tasks[task.index()].prio = self.effective(task);
    }

    fn wake(&mut self, task: TaskId, new: bool, now: SimTime) {
        self.wake_by(task, new, self.curr.is_none(), now);
    }

    fn tick(&mut self, now: SimTime) {
        self.count(ns(now));
        let Some(curr) = self.curr else { return };
        if self.tasks[curr.index()].time_slice <= 0 {
            self.expire(curr, ns(now));
            self.resched = true;
        } else if self.ends_piece(curr) {
            let prio = self.effective(curr);
            self.append(curr, self.active, prio);
            self.resched = true;
        }
        let t = &mut self.tasks[curr.index()];
        t.ticked = t.time_slice;
    }

    fn yields(&mut self, now: SimTime) {
        self.count(ns(now));
        let curr = self.curr.expect("somebody yields");
        let prio = self.tasks[curr.index()].prio;
        self.append(curr, 1 - self.active, prio);
        self.resched = true;
    }

    fn renice(&mut self, task: TaskId, nice: i8, now: SimTime) {
        self.count(ns(now));
        let new = 120 + i64::from(nice);
        let t = &mut self.tasks[task.index()];
        let was = std::mem::replace(&mut t.static_prio, new);
        if was == new {
            return;
        }
        let Some(array) = t.array else {
            t.prio = new;
            return;
        };
        self.append(task, array, new);
        self.resched |= new < was || self.curr == Some(task);
    }

    fn is_thread(&mut self, task: TaskId) {
        self.tasks[task.index()].thread = true;
    }

    fn leaves_uninterruptibly(&mut self, task: TaskId) {
        self.tasks[task.index()].waits = true;
    }

    fn leave(&mut self, task: TaskId, exits: bool, now: SimTime) {
        self.count(ns(now));
        self.unlink(task);
        self.tasks[task.index()].array = None;
        if exits {
            self.tasks[task.index()].ended = true;
            self.settle_with_parent(task);
        }
        self.charge(task, ns(now));
        self.curr = None;
        self.resched = true;
    }

    fn schedule(&mut self, now: SimTime) -> Option<TaskId> {
        let now = ns(now);
        self.count(now);
        self.resched = false;
        if let Some(curr) = self.curr {
            self.charge(curr, now);
        }
        if self.running() == 0 {
            self.expired_since = None;
            self.curr = None;
            return None;
        }
        if self.arrays[self.active].iter().all(VecDeque::is_empty) {
            self.active = 1 - self.active;
            self.expired_since = None;
            self.best_expired = 140;
        }
        let lists = &self.arrays[self.active];
        let next = *lists.iter().find_map(|list| list.front())?;
        if self.curr != Some(next) {
            self.switch_in(next, now);
        }
        self.curr = Some(next);
        Some(next)
    }

    fn must_decide(&self) -> bool {
        self.resched
    }

    fn place(&self, task: TaskId) -> (u32, u32) {
        let prio = self.tasks[task.index()].prio;
        (prio as u32, self.bonus(task) as u32)
    }
}

impl O1 {
    fn switch_in(&mut self, next: TaskId, now: i64) {
        let t = &self.tasks[next.index()];
        if t.activated > 0 {
            let waited = now - t.timestamp;
            let counts = if t.activated == 1 {
                waited * 38 / 128
            } else {
                waited
            };
            self.credit(next, t.timestamp + counts);
            let prio = self.effective(next);
            self.append(next, self.active, prio);
        }
        let t = &mut self.tasks[next.index()];
        t.activated = 0;
        t.timestamp = now;
        t.counted = now;
        t.ticked = t.time_slice;
    }

    /// Wakes a task; `interrupt` says that the waker is no task.
    pub(super) fn wake_by(&mut self, task: TaskId, new: bool, interrupt: bool, now: SimTime) {
        let now = ns(now);
        self.count(now);
        if let (Some(parent), true) = (self.tasks[task.index()].parent, new) {
            self.inherit(task, parent, now);
            self.tasks[task.index()].timestamp = now;
            self.tasks[task.index()].woken_before = true;
            return;
        }
        // The first wakeup of a task that was there from the start has no sleep before it.
        if std::mem::replace(&mut self.tasks[task.index()].woken_before, true) {
            if std::mem::take(&mut self.tasks[task.index()].waits) {
                self.tasks[task.index()].activated = -1;
            }
            self.credit(task, now);
            let prio = self.effective(task);
            let t = &mut self.tasks[task.index()];
            t.timestamp = now;
            if t.activated == 0 {
                t.activated = if interrupt { 2 } else { 1 };
            }
            t.prio = prio;
        }
        let prio = self.tasks[task.index()].prio;
        self.append(task, self.active, prio);
        let curr = self.curr.map(|curr| self.tasks[curr.index()].prio);
        self.resched |= curr.is_none_or(|curr| prio < curr);
    }
}

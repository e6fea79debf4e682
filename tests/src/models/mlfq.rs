//! The multi-level feedback queue on one CPU.
//!
//! Run time counts in nanoseconds; a quantum that is used up ends at the next tick or decision, and
//! what it overran is missing from the next one. The running task stays in its list.

use std::collections::VecDeque;

use model::{SimTime, TaskId};

use super::Scheduler;

const MS: i64 = 1_000_000;
const QUEUES: usize = 20;
const LAST: i64 = QUEUES as i64 - 1;
/// The longest slice of 2.6.3, which a parent's quantum does not exceed by what a child leaves.
const RETURN_MAX: i64 = 200 * MS;

/// The switches of the scheduler.
#[derive(Clone, Copy, Debug, Default)]
pub struct Settings {
    /// A quantum limits all work since the last wakeup.
    pub cumulative: bool,
    /// Nice levels bar queues.
    pub nice_ranges: bool,
    /// Yielding uses the quantum up.
    pub yield_expires: bool,
    /// A child that ends early leaves its share to its parent.
    pub exit_returns: bool,
    /// Each quantum is twice the one above.
    pub doubling: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Verdict {
    #[default]
    Up,
    Stay,
    Down,
}

#[derive(Clone, Debug, Default)]
struct Task {
    parent: Option<TaskId>,
    thread: bool,
    nice: i64,
    level: i64,
    /// Of the quantum; below 0 when overrun.
    left: i64,
    burst: i64,
    verdict: Verdict,
    /// Sank, and has not run since.
    sank: bool,
    queued: bool,
    runs_next: bool,
    first: bool,
    yielded: bool,
}

/// The queues of the CPU.
#[derive(Clone, Debug)]
pub struct Mlfq {
    set: Settings,
    tasks: Vec<Task>,
    queues: Vec<VecDeque<TaskId>>,
    curr: Option<TaskId>,
    /// Up to when the current task's run time is counted.
    stamp: i64,
    resched: bool,
}

fn ns(time: SimTime) -> i64 {
    i64::try_from(time.as_nanos()).expect("a time within 292 years")
}

impl Mlfq {
    /// Empty queues.
    #[must_use]
    pub fn new(set: Settings) -> Self {
        Self {
            set,
            tasks: Vec::new(),
            queues: vec![VecDeque::new(); QUEUES],
            curr: None,
            stamp: 0,
            resched: false,
        }
    }

    fn task(&mut self, task: TaskId) -> &mut Task {
        &mut self.tasks[task.index()]
    }

    fn quantum(&self, level: i64) -> i64 {
        if self.set.doubling {
            // No quantum exceeds 1000 s.
            ((10 * MS) << level).min(1_000_000 * MS)
        } else {
            10 * MS * (level + 1)
        }
    }

    /// The best and the worst queue that the nice level leaves a task.
    fn range(&self, nice: i64) -> (i64, i64) {
        if !self.set.nice_ranges {
            return (0, LAST);
        }
        let best = LAST * nice.max(0) / 19;
        let worst = LAST * (20 + nice.min(0)) / 20;
        (best, worst)
    }

    fn begin(&mut self, task: TaskId, level: i64) {
        let quantum = self.quantum(level);
        let t = self.task(task);
        (t.level, t.left, t.burst, t.sank) = (level, quantum, 0, false);
    }

    fn unlink(&mut self, task: TaskId) {
        for queue in &mut self.queues {
            queue.retain(|&other| other != task);
        }
    }

    fn append(&mut self, task: TaskId) {
        self.unlink(task);
        let level = self.task(task).level as usize;
        self.queues[level].push_back(task);
    }

    fn charge(&mut self, now: i64) {
        let ran = now - self.stamp;
        self.stamp = now;
        let Some(curr) = self.curr else { return };
        let t = self.task(curr);
        t.left -= ran;
        t.burst += ran;
        if ran > 0 {
            t.sank = false;
        }
    }

    /// Rule 2, if the quantum is used up.
    fn settle(&mut self, task: TaskId) {
        let set = self.set;
        let t = self.task(task);
        if std::mem::take(&mut t.yielded) && set.yield_expires {
            t.left = 0;
        }
        if t.left > 0 {
            return;
        }
        let over = -t.left;
        let (level, burst, nice) = (t.level, t.burst, t.nice);
        let (best, worst) = self.range(nice);
        let level = (level + 1).clamp(best, worst);
        let quantum = self.quantum(level);
        let t = self.task(task);
        if set.cumulative && quantum > burst {
            t.left = quantum - burst;
        } else {
            t.left = quantum - over.min(quantum / 2);
            t.burst = 0;
        }
        t.level = level;
        t.sank = true;
        t.first = false;
        self.append(task);
    }

    fn head(&self) -> Option<TaskId> {
        self.queues.iter().find_map(|queue| queue.front()).copied()
    }

    /// Rules 5 to 7: a task became ready.
    fn preempt(&mut self, task: TaskId, next: bool) {
        let level = self.task(task).level;
        let better = match self.curr {
            Some(curr) => next || level < self.task(curr).level,
            None => true,
        };
        self.resched |= better;
    }

    /// Rule 7: halves in whole milliseconds, the child's the greater one.
    fn split(&mut self, child: TaskId, parent: TaskId) {
        let level = self.task(child).level;
        let most = self.quantum(level);
        let from = self.task(parent);
        let left = from.left.max(0);
        let units = (left + MS - 1) / MS;
        let share = ((units + 1) / 2 * MS).min(left).min(most);
        let runs_next = from.level > level || share == left;
        // What it overran already is not forgiven.
        from.left -= share;
        let t = self.task(child);
        (t.left, t.runs_next, t.first) = (share.max(1), runs_next, true);
    }
}

impl Scheduler for Mlfq {
    fn born(&mut self, task: TaskId, nice: i8, parent: Option<TaskId>, now: SimTime) {
        assert_eq!(task.index(), self.tasks.len(), "tasks come in order");
        self.charge(ns(now));
        let nice = i64::from(nice);
        self.tasks.push(Task {
            parent,
            nice,
            ..Task::default()
        });
        let (best, _) = self.range(nice);
        self.begin(task, best);
        if let Some(parent) = parent {
            self.split(task, parent);
        }
    }

    fn wake(&mut self, task: TaskId, new: bool, now: SimTime) {
        self.charge(ns(now));
        let t = self.task(task);
        t.queued = true;
        let (level, verdict, nice) = (t.level, t.verdict, t.nice);
        if !new {
            let (best, worst) = self.range(nice);
            let level = match verdict {
                Verdict::Up => level - 1,
                Verdict::Stay => level,
                Verdict::Down => level + 1,
            };
            self.begin(task, level.clamp(best, worst));
        }
        let next = new && self.task(task).runs_next;
        if next {
            let level = self.task(task).level as usize;
            self.queues[level].push_front(task);
        } else {
            self.append(task);
        }
        self.preempt(task, next);
    }

    fn tick(&mut self, now: SimTime) {
        self.charge(ns(now));
        if let Some(curr) = self.curr {
            self.resched |= self.task(curr).left <= 0;
        }
    }

    fn yields(&mut self, now: SimTime) {
        self.charge(ns(now));
        let curr = self.curr.expect("somebody yields");
        self.task(curr).yielded = true;
        self.append(curr);
        self.resched = true;
    }

    fn renice(&mut self, task: TaskId, nice: i8, now: SimTime) {
        self.charge(ns(now));
        let (best, worst) = self.range(nice.into());
        let t = self.task(task);
        t.nice = nice.into();
        let (level, queued) = (t.level, t.queued);
        let nearest = level.clamp(best, worst);
        if nearest != level {
            self.begin(task, nearest);
        }
        if queued && nearest != level {
            self.append(task);
            self.resched = true;
        }
    }

    fn is_thread(&mut self, task: TaskId) {
        self.task(task).thread = true;
    }

    fn leave(&mut self, task: TaskId, exits: bool, now: SimTime) {
        self.charge(ns(now));
        self.unlink(task);
        let returns = exits && self.set.exit_returns;
        let t = self.task(task);
        let (left, parent) = (t.left, t.parent);
        let returns = std::mem::take(&mut t.first) && returns && !t.thread;
        t.verdict = if left <= 0 {
            Verdict::Down
        } else if t.sank {
            Verdict::Stay
        } else {
            Verdict::Up
        };
        (t.queued, t.yielded) = (false, false);
        if let Some(parent) = parent.filter(|_| returns) {
            let to = self.task(parent);
            let has = to.left.max(0);
            to.left += left.max(0).min((RETURN_MAX - has).max(0));
        }
        self.curr = None;
        self.resched = true;
    }

    fn schedule(&mut self, now: SimTime) -> Option<TaskId> {
        self.charge(ns(now));
        self.resched = false;
        if let Some(curr) = self.curr {
            self.settle(curr);
        }
        self.curr = self.head();
        self.curr
    }

    fn must_decide(&self) -> bool {
        self.resched
    }

    fn place(&self, task: TaskId) -> (u32, u32) {
        let level = self.tasks[task.index()].level as u32;
        (100 + level, level)
    }
}

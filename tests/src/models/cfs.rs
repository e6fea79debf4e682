//! CFS as Linux 5.10 has it, for one CPU.

use std::collections::BTreeMap;

use model::{SimTime, TaskId};

use super::Scheduler;
use super::eevdf::WEIGHTS;

/// `sysctl_sched_latency` of a machine with one CPU, ns.
const LATENCY: i128 = 6_000_000;
/// `sysctl_sched_min_granularity`, ns.
const MIN_GRANULARITY: i128 = 750_000;
/// `sysctl_sched_wakeup_granularity`, ns.
const WAKEUP_GRANULARITY: i128 = 1_000_000;
/// `sched_nr_latency`.
const NR_LATENCY: i128 = 8;
/// Weight of nice 0.
const NICE_0: i128 = 1024;

#[derive(Clone, Debug)]
struct Task {
    nice: i8,
    /// Before the task was first queued: beyond `min_vruntime`.
    vruntime: i128,
    is_new: bool,
    slept: bool,
    runnable: bool,
    skipped: bool,
    /// CPU time, and that at the begin of its turn.
    sum: i128,
    turn: i128,
    /// Its place among tasks of equal run times.
    arrival: u64,
}

impl Task {
    fn weight(&self) -> i128 {
        i128::from(WEIGHTS[usize::try_from(self.nice + 20).expect("a nice value")])
    }

    fn virtually(&self, nanos: i128) -> i128 {
        nanos * NICE_0 / self.weight()
    }
}

/// The queue of one CPU.
#[derive(Debug, Default)]
pub struct Cfs {
    tasks: BTreeMap<TaskId, Task>,
    current: Option<TaskId>,
    charged: SimTime,
    /// `min_vruntime`.
    least: i128,
    arrivals: u64,
    decide: bool,
}

impl Cfs {
    /// An empty queue.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn waiting(&self) -> impl Iterator<Item = (&TaskId, &Task)> {
        let current = self.current;
        let waits = move |(id, task): &(&TaskId, &Task)| task.runnable && Some(**id) != current;
        self.tasks.iter().filter(waits)
    }

    fn first(&self) -> Option<TaskId> {
        let first = self
            .waiting()
            .min_by_key(|(_, task)| (task.vruntime, task.arrival));
        first.map(|(id, _)| *id)
    }

    /// Virtual run time of the current task, now.
    fn running(&self, now: SimTime) -> Option<i128> {
        let task = &self.tasks[&self.current?];
        let ran = i128::from(now.since(self.charged).get());
        Some(task.vruntime + task.virtually(ran))
    }

    fn advance(&mut self) {
        let current = self.current.map(|id| self.tasks[&id].vruntime);
        let first = self.first().map(|id| self.tasks[&id].vruntime);
        if let Some(least) = current.into_iter().chain(first).min() {
            self.least = self.least.max(least);
        }
    }

    fn charge(&mut self, now: SimTime) {
        let ran = i128::from(now.since(self.charged).get());
        let vruntime = self.running(now);
        self.charged = now;
        let (Some(vruntime), Some(id)) = (vruntime, self.current) else {
            return;
        };
        let task = self.tasks.get_mut(&id).expect("the current task");
        task.vruntime = vruntime;
        task.sum += ran;
        if ran > 0 {
            self.advance();
        }
    }

    /// The part of a period of a task of this weight, with `more` beside those that are runnable.
    fn slice(&self, weight: i128, more: i128) -> i128 {
        let runnable = self.tasks.values().filter(|task| task.runnable);
        let (mut count, mut load) = (more, more * weight);
        for task in runnable {
            count += 1;
            load += task.weight();
        }
        let period = if count > NR_LATENCY {
            count * MIN_GRANULARITY
        } else {
            LATENCY
        };
        period * weight / load
    }

    fn enter(&mut self, id: TaskId) {
        self.arrivals += 1;
        let least = self.least;
        let task = self.tasks.get_mut(&id).expect("a task");
        if std::mem::take(&mut task.is_new) {
            task.vruntime += least;
        } else if std::mem::take(&mut task.slept) {
            task.vruntime = task.vruntime.max(least - LATENCY / 2);
        }
        task.runnable = true;
        task.arrival = self.arrivals;
    }

    fn is_far_behind(&self, key: i128, other: i128, task: TaskId) -> bool {
        other - key > self.tasks[&task].virtually(WAKEUP_GRANULARITY)
    }

    fn takes_cpu(&self, id: TaskId, now: SimTime) -> bool {
        let running = self.running(now);
        running.is_some_and(|running| self.is_far_behind(self.tasks[&id].vruntime, running, id))
    }

    fn begin_turn(&mut self) {
        if let Some(id) = self.current {
            let task = self.tasks.get_mut(&id).expect("the current task");
            task.turn = task.sum;
            task.skipped = false;
        }
    }
}

impl Scheduler for Cfs {
    fn born(&mut self, task: TaskId, nice: i8, parent: Option<TaskId>, now: SimTime) {
        let mut born = Task {
            nice,
            vruntime: 0,
            is_new: true,
            slept: false,
            runnable: false,
            skipped: false,
            sum: 0,
            turn: 0,
            arrival: 0,
        };
        if let (Some(_), Some(running)) = (parent, self.running(now)) {
            let slice = born.virtually(self.slice(born.weight(), 1));
            born.vruntime = (running - self.least).max(slice);
        }
        self.tasks.insert(task, born);
    }

    fn wake(&mut self, task: TaskId, _: bool, now: SimTime) {
        self.enter(task);
        self.decide |= self.takes_cpu(task, now);
    }

    fn tick(&mut self, now: SimTime) {
        self.charge(now);
        let (Some(id), Some(first)) = (self.current, self.first()) else {
            return;
        };
        let task = &self.tasks[&id];
        let (ran, slice) = (task.sum - task.turn, self.slice(task.weight(), 0));
        let ahead = task.vruntime - self.tasks[&first].vruntime;
        self.decide |= ran > slice || ran >= MIN_GRANULARITY && ahead > slice;
    }

    fn yields(&mut self, _: SimTime) {
        let Some(id) = self.current.filter(|_| self.first().is_some()) else {
            return;
        };
        self.decide = true;
        self.tasks.get_mut(&id).expect("it runs").skipped = true;
    }

    fn renice(&mut self, task: TaskId, nice: i8, now: SimTime) {
        let runs = self.current == Some(task);
        if runs {
            self.charge(now);
        }
        let own = self.tasks.get_mut(&task).expect("a task");
        let was = own.weight();
        own.nice = nice;
        let lowered = own.weight() < was;
        if runs {
            self.begin_turn();
            self.decide |= lowered;
        } else if self.tasks[&task].runnable {
            self.enter(task);
            self.decide |= self.takes_cpu(task, now);
        }
    }

    fn leave(&mut self, task: TaskId, _: bool, now: SimTime) {
        self.charge(now);
        let own = self.tasks.get_mut(&task).expect("a task");
        own.runnable = false;
        own.slept = true;
        self.current = None;
        self.advance();
        self.decide = false;
    }

    fn schedule(&mut self, now: SimTime) -> Option<TaskId> {
        self.decide = false;
        self.charge(now);
        let first = self.first();
        if let Some(id) = self.current {
            let own = self.tasks.get_mut(&id).expect("the current task");
            let (key, skipped) = (own.vruntime, std::mem::take(&mut own.skipped));
            let stays = first.is_none_or(|first| {
                let other = self.tasks[&first].vruntime;
                key < other && (!skipped || self.is_far_behind(key, other, id))
            });
            if stays {
                return self.current;
            }
            self.arrivals += 1;
            self.tasks.get_mut(&id).expect("it waits").arrival = self.arrivals;
        }
        self.current = first;
        self.charged = now;
        self.begin_turn();
        first
    }

    fn must_decide(&self) -> bool {
        self.decide
    }

    fn place(&self, task: TaskId) -> (u32, u32) {
        let nice = self.tasks[&task].nice;
        let weight = self.tasks[&task].weight();
        let prio = u32::try_from(i32::from(nice) + 120).expect("a priority");
        (prio, u32::try_from(weight).expect("a weight"))
    }
}

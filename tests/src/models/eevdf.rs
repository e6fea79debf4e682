//! EEVDF as Linux 6.18 has it, for one CPU: every average is computed anew from all tasks.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use model::{SimTime, TaskId};

use super::Scheduler;

/// Base slice of a machine with one CPU, ns (`sysctl_sched_base_slice`).
const SLICE: i128 = 700_000;
/// The lag that a task keeps is limited to two slices or one tick, ns.
const LAG: i128 = 4_000_000;
/// Weight of nice 0.
const NICE_0: i128 = 1024;

/// `sched_prio_to_weight`, nice -20 to 19.
pub const WEIGHTS: [u32; 40] = [
    88761, 71755, 56483, 46273, 36291, 29154, 23254, 18705, 14949, 11916, 9548, 7620, 6100, 4904,
    3906, 3121, 2501, 1991, 1586, 1277, 1024, 820, 655, 526, 423, 335, 272, 215, 172, 137, 110, 87,
    70, 56, 45, 36, 29, 23, 18, 15,
];

#[derive(Clone, Debug)]
struct Task {
    nice: i8,
    vruntime: i128,
    deadline: i128,
    /// What is left of a request when the task left its queue for a change.
    request: Option<i128>,
    lag: i128,
    /// Its place among tasks of equal deadlines.
    arrival: u64,
    runnable: bool,
    /// A child that has not been queued.
    starts: bool,
    /// It sleeps, and was ahead of the average when it fell asleep.
    delayed: bool,
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
pub struct Eevdf {
    tasks: BTreeMap<TaskId, Task>,
    current: Option<TaskId>,
    protected_to: i128,
    charged: SimTime,
    arrivals: u64,
    /// Virtual time of the empty queue.
    rest: i128,
    decide: bool,
    delays: bool,
}

impl Eevdf {
    /// An empty queue.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty queue that lets nobody go who is ahead (`DELAY_DEQUEUE`), as far as the policy
    /// follows that.
    #[must_use]
    pub fn delaying() -> Self {
        Self {
            delays: true,
            ..Self::default()
        }
    }

    /// The current task with what it has run since it was charged.
    fn running(&self, now: SimTime) -> Option<Task> {
        let mut task = self.tasks[&self.current?].clone();
        task.vruntime += task.virtually(i128::from(now.since(self.charged).get()));
        Some(task)
    }

    /// Weight, and weighted virtual run times, of all that is runnable.
    fn sums(&self, now: SimTime) -> (i128, i128) {
        let mut sums = (0, 0);
        for (id, task) in &self.tasks {
            if task.runnable {
                let running = (Some(*id) == self.current)
                    .then(|| self.running(now))
                    .flatten();
                let vruntime = running.map_or(task.vruntime, |running| running.vruntime);
                sums.0 += task.weight();
                sums.1 += task.weight() * vruntime;
            }
        }
        sums
    }

    fn average(&self, now: SimTime) -> i128 {
        let (weight, sum) = self.sums(now);
        if weight == 0 {
            return self.rest;
        }
        sum.div_euclid(weight)
    }

    fn eligible(&self, vruntime: i128, now: SimTime) -> bool {
        let (weight, sum) = self.sums(now);
        vruntime * weight <= sum
    }

    fn charge(&mut self, now: SimTime) {
        if let (Some(running), Some(id)) = (self.running(now), self.current) {
            self.tasks.insert(id, running);
        }
        self.charged = now;
    }

    /// A served request is followed by the next one.
    fn renew(&mut self) -> bool {
        let Some(id) = self.current else { return false };
        let task = self.tasks.get_mut(&id).expect("the current task");
        let served = task.vruntime >= task.deadline;
        if served {
            task.deadline = task.vruntime + task.virtually(SLICE);
        }
        served
    }

    fn enter(&mut self, id: TaskId, now: SimTime) {
        let (load, _) = self.sums(now);
        let average = self.average(now);
        self.arrivals += 1;
        let task = self.tasks.get_mut(&id).expect("a task");
        if std::mem::take(&mut task.delayed) {
            let limit = task.virtually(LAG.max(2 * SLICE));
            let is_ahead = average < task.vruntime;
            task.lag = (average - task.vruntime).clamp(-limit, 0);
            task.request = is_ahead.then_some(task.deadline - task.vruntime);
        }
        task.vruntime = average;
        if load > 0 {
            // Rust divides towards zero, as the kernel.
            task.vruntime -= task.lag * (load + task.weight()) / load;
        }
        let slice = task.virtually(SLICE);
        let fresh = if task.starts { slice / 2 } else { slice };
        task.deadline = task.vruntime + task.request.take().unwrap_or(fresh);
        task.starts = false;
        task.lag = 0;
        task.arrival = self.arrivals;
        task.runnable = true;
    }

    fn depart(&mut self, id: TaskId, sleeps: bool, now: SimTime) {
        let average = self.average(now);
        let task = self.tasks.get_mut(&id).expect("a task");
        let limit = task.virtually(LAG.max(2 * SLICE));
        task.lag = (average - task.vruntime).clamp(-limit, limit);
        task.request = (!sleeps).then_some(task.deadline - task.vruntime);
        task.runnable = false;
        task.delayed = self.delays && sleeps && task.lag < 0;
        if self.tasks.values().all(|task| !task.runnable) {
            self.rest = self.tasks[&id].vruntime;
            // The last to go takes all that are late with it.
            for task in self.tasks.values_mut().filter(|task| task.delayed) {
                task.delayed = false;
                task.lag = 0;
            }
        }
    }

    fn waiting(&self) -> impl Iterator<Item = (&TaskId, &Task)> {
        let current = self.current;
        let waits = move |(id, task): &(&TaskId, &Task)| task.runnable && Some(**id) != current;
        self.tasks.iter().filter(waits)
    }

    /// The eligible task that waits with the earliest deadline.
    fn best(&self, now: SimTime) -> Option<TaskId> {
        let eligible = self
            .waiting()
            .filter(|(_, task)| self.eligible(task.vruntime, now));
        let best = eligible.max_by_key(|(_, task)| Reverse((task.deadline, task.arrival)));
        best.map(|(id, _)| *id)
    }

    /// Whether a task that has just come takes the CPU, or makes it choose.
    fn takes_cpu(&self, id: TaskId, now: SimTime) -> bool {
        let Some(running) = self.running(now) else {
            return false;
        };
        let unprotected = running.vruntime >= self.protected_to;
        unprotected || (!self.eligible(running.vruntime, now) && self.best(now) == Some(id))
    }

    fn protect(&mut self) {
        if let Some(id) = self.current {
            self.protected_to = self.tasks[&id].deadline;
        }
    }
}

impl Scheduler for Eevdf {
    fn born(&mut self, task: TaskId, nice: i8, parent: Option<TaskId>, _: SimTime) {
        let born = Task {
            nice,
            vruntime: 0,
            deadline: 0,
            request: None,
            lag: 0,
            arrival: 0,
            runnable: false,
            starts: parent.is_some(),
            delayed: false,
        };
        self.tasks.insert(task, born);
    }

    fn wake(&mut self, task: TaskId, _: bool, now: SimTime) {
        self.enter(task, now);
        self.decide |= self.takes_cpu(task, now);
    }

    fn tick(&mut self, now: SimTime) {
        self.charge(now);
        let served = self.renew();
        let Some(id) = self.current else { return };
        let over = served || self.tasks[&id].vruntime >= self.protected_to;
        self.decide |= over && self.waiting().next().is_some();
    }

    fn yields(&mut self, now: SimTime) {
        let Some(id) = self.current else { return };
        if self.waiting().next().is_none() {
            return;
        }
        self.decide = true;
        let running = self.running(now).expect("it runs");
        if self.eligible(running.vruntime, now) {
            self.charge(now);
            self.renew();
            let task = self.tasks.get_mut(&id).expect("it runs");
            task.vruntime = task.deadline;
            task.deadline += task.virtually(SLICE);
        }
    }

    fn renice(&mut self, task: TaskId, nice: i8, now: SimTime) {
        let runs = self.current == Some(task);
        if runs {
            self.charge(now);
        }
        let runnable = self.tasks[&task].runnable;
        if runnable {
            self.depart(task, false, now);
        }
        let own = self.tasks.get_mut(&task).expect("a task");
        let was = own.weight();
        own.nice = nice;
        let is = own.weight();
        own.lag = own.lag * was / is;
        own.request = own.request.map(|request| request * was / is);
        if !runnable {
            return;
        }
        if runs {
            // It is in no queue while it changes.
            self.current = None;
            self.enter(task, now);
            self.current = Some(task);
            self.charged = now;
            self.protect();
            self.decide |= is < was;
        } else {
            self.enter(task, now);
            self.decide |= self.takes_cpu(task, now);
        }
    }

    fn leave(&mut self, task: TaskId, _: bool, now: SimTime) {
        self.charge(now);
        self.depart(task, true, now);
        self.current = None;
        self.decide = false;
    }

    fn schedule(&mut self, now: SimTime) -> Option<TaskId> {
        self.decide = false;
        self.charge(now);
        self.renew();
        let best = self.best(now);
        if let Some(id) = self.current {
            let own = &self.tasks[&id];
            let counts = self.eligible(own.vruntime, now);
            let stays = best.is_none_or(|best| {
                let protected = own.vruntime < self.protected_to;
                counts && (protected || own.deadline < self.tasks[&best].deadline)
            });
            if stays {
                return self.current;
            }
            self.arrivals += 1;
            let arrival = self.arrivals;
            self.tasks.get_mut(&id).expect("the current task").arrival = arrival;
        }
        self.current = best;
        self.charged = now;
        self.protect();
        best
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

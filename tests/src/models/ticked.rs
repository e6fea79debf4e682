//! Schedulers whose clock ticks a hundred times a second, whatever the machine's does: those with
//! counters of ticks.

use std::collections::BTreeSet;

use model::{Nanos, SimTime, TaskId};

use super::Scheduler;

/// A scheduler for one CPU, told what happens.
pub trait Model {
    /// A task comes to be, asleep.
    fn born(&mut self, task: TaskId, nice: i32, mm: u32, parent: Option<TaskId>);
    /// It becomes runnable, for the first time or again.
    fn woken(&mut self, task: TaskId);
    /// It stops being runnable, while it runs.
    fn slept(&mut self, task: TaskId);
    /// It ends, and its maker learns of it; `slept` follows.
    fn exited(&mut self, task: TaskId);
    /// It calls `sched_yield()`.
    fn yielded(&mut self, task: TaskId);
    /// It gets another nice value.
    fn reniced(&mut self, task: TaskId, nice: i32);
    /// A tick of the source's clock comes. True if the running task has to be replaced.
    fn tick(&mut self) -> bool;
    /// Who runs from now on; `None`: nobody.
    fn schedule(&mut self) -> Option<TaskId>;
    /// Whether the model wants to be asked at once.
    fn wants_schedule(&self) -> bool;
    /// Who runs.
    fn current(&self) -> Option<TaskId>;
}

/// A tick of the source's clock: HZ = 100.
const TICK: Nanos = Nanos::from_millis(10);

/// A [`Model`] with the clock of its source, which ticks beside the machine's.
#[derive(Clone, Debug)]
pub struct Ticked<M> {
    /// The model.
    pub model: M,
    machine_tick: Nanos,
    now: SimTime,
    /// The tick of the machine at which a counter that has run out must be noticed.
    expiry: Option<SimTime>,
    /// It was not.
    missed: bool,
    threads: BTreeSet<TaskId>,
}

impl<M: Model> Ticked<M> {
    /// Before the first tick.
    pub const fn new(model: M) -> Self {
        Self {
            model,
            machine_tick: TICK,
            now: SimTime::ZERO,
            expiry: None,
            missed: false,
            threads: BTreeSet::new(),
        }
    }
}

impl<M: Model> Scheduler for Ticked<M> {
    fn born(&mut self, task: TaskId, nice: i8, parent: Option<TaskId>, now: SimTime) {
        self.born_in(task, nice, task.0, parent, now);
    }

    fn born_in(&mut self, task: TaskId, nice: i8, mm: u32, parent: Option<TaskId>, _: SimTime) {
        self.model.born(task, nice.into(), mm, parent);
    }

    fn begin(&mut self, tick: Nanos) {
        self.machine_tick = tick;
    }

    /// A tick at this very moment still hits who ran until now.
    fn pass(&mut self, now: SimTime) {
        let number = |time: SimTime| time.as_nanos() / TICK.get();
        for tick in number(self.now) + 1..=number(now) {
            if self.model.tick() {
                let at = (tick * TICK.get()).next_multiple_of(self.machine_tick.get());
                self.expiry.get_or_insert(SimTime::from_nanos(at));
            }
        }
        self.missed |= self.expiry.is_some_and(|expiry| expiry < now);
        self.now = now;
    }

    fn wake(&mut self, task: TaskId, _: bool, _: SimTime) {
        self.model.woken(task);
    }

    fn tick(&mut self, _: SimTime) {}

    fn yields(&mut self, _: SimTime) {
        let current = self.model.current();
        self.model.yielded(current.expect("somebody yields"));
    }

    fn renice(&mut self, task: TaskId, nice: i8, _: SimTime) {
        self.model.reniced(task, nice.into());
    }

    fn is_thread(&mut self, task: TaskId) {
        self.threads.insert(task);
    }

    fn leave(&mut self, task: TaskId, exits: bool, _: SimTime) {
        if exits && !self.threads.contains(&task) {
            self.model.exited(task);
        }
        self.model.slept(task);
    }

    fn schedule(&mut self, _: SimTime) -> Option<TaskId> {
        self.expiry = None;
        self.model.schedule()
    }

    fn must_decide(&self) -> bool {
        let due = self.expiry.is_some_and(|expiry| expiry <= self.now);
        self.missed || due || self.model.wants_schedule()
    }

    fn may_decide(&self) -> bool {
        self.expiry.is_some() || self.model.wants_schedule()
    }

    fn place(&self, _: TaskId) -> (u32, u32) {
        (0, 0)
    }

    /// The policy shows counters that it has not brought up to date.
    fn reported(&self, _: TaskId) -> Option<(u32, u32)> {
        None
    }
}

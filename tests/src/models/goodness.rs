//! The scheduler of Linux 2.3.99 and 2.4.0 on one CPU: one list of all runnable tasks, the running
//! one included.

use model::TaskId;

use super::counters::{Kernel, Tasks, Variant};
use super::ticked::Model;

/// What is chosen if nobody is better.
const IDLE: i32 = -1000;

/// The scheduler.
#[derive(Clone, Debug)]
pub struct Goodness {
    /// Every task.
    pub tasks: Tasks,
    /// Runnable tasks, front first.
    pub list: Vec<TaskId>,
    current: Option<TaskId>,
    /// The address space in use.
    pub mm: Option<u32>,
    resched: bool,
}

impl Goodness {
    /// A system without tasks.
    #[must_use]
    pub const fn new(kernel: Kernel) -> Self {
        Self {
            tasks: Tasks::new(kernel),
            list: Vec::new(),
            current: None,
            mm: None,
            resched: false,
        }
    }

    fn kernel(&self) -> Kernel {
        self.tasks.kernel
    }

    /// The value that all others must beat.
    fn prev_goodness(&mut self, prev: TaskId) -> i32 {
        if self.kernel().variant == Variant::V99 && self.tasks.get(prev).yielding {
            self.tasks.get_mut(prev).yielding = false;
            return 0;
        }
        self.tasks.goodness(prev, self.mm)
    }

    /// The best task. `prev` is the running one, if it could go on.
    pub fn choose(&mut self, prev: Option<TaskId>) -> Option<TaskId> {
        loop {
            let mut best = IDLE;
            let mut next = None;
            if let Some(prev) = prev {
                best = self.prev_goodness(prev);
                next = Some(prev);
            }
            for &task in &self.list {
                // Only the kernel for several CPUs passes over a task that has one.
                if self.kernel().smp && Some(task) == prev {
                    continue;
                }
                let goodness = self.tasks.goodness(task, self.mm);
                if goodness > best {
                    best = goodness;
                    next = Some(task);
                }
            }
            if best != 0 {
                return next;
            }
            self.tasks.recalculate();
        }
    }
}

impl Model for Goodness {
    fn born(&mut self, task: TaskId, nice: i32, mm: u32, parent: Option<TaskId>) {
        self.resched |= self.tasks.born(task, nice, mm, parent);
    }

    fn woken(&mut self, task: TaskId) {
        self.list.insert(0, task);
        self.resched |= self
            .current
            .is_none_or(|current| self.tasks.preempts(task, current));
    }

    fn slept(&mut self, task: TaskId) {
        self.list.retain(|own| *own != task);
        self.tasks.get_mut(task).yielding = false;
        self.resched = true;
    }

    fn exited(&mut self, task: TaskId) {
        self.tasks.exited(task);
    }

    fn yielded(&mut self, task: TaskId) {
        match self.kernel().variant {
            Variant::V99 => {
                self.list.retain(|own| *own != task);
                self.list.push(task);
            }
            Variant::V24 if self.list.len() == 1 => return,
            Variant::V24 => {}
        }
        self.tasks.get_mut(task).yielding = true;
        self.resched = true;
    }

    fn reniced(&mut self, task: TaskId, nice: i32) {
        self.tasks.get_mut(task).nice = nice;
    }

    fn tick(&mut self) -> bool {
        let Some(current) = self.current else {
            return false;
        };
        let task = self.tasks.get_mut(current);
        task.counter = (task.counter - 1).max(0);
        task.counter == 0
    }

    fn schedule(&mut self) -> Option<TaskId> {
        let prev = self.current.filter(|task| self.list.contains(task));
        self.resched = false;
        let next = self.choose(prev);
        let Kernel { variant, smp } = self.kernel();
        if let (Some(prev), Some(next)) = (prev, next) {
            let yielding = std::mem::take(&mut self.tasks.get_mut(prev).yielding);
            // Who lost the CPU looks for another place: here there is only this one.
            if smp && prev != next && !(variant == Variant::V24 && yielding) {
                self.resched = self.tasks.preempts(prev, next);
            }
        }
        let before = std::mem::replace(&mut self.current, next);
        if let Some(next) = next {
            if before != Some(next) {
                self.tasks.began(next);
            }
            self.mm = Some(self.tasks.get(next).mm);
        }
        next
    }

    fn wants_schedule(&self) -> bool {
        self.resched
    }

    fn current(&self) -> Option<TaskId> {
        self.current
    }
}

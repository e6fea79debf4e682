//! ELSC on one CPU: a table of twenty lists, of which the running task is in none.

use std::collections::VecDeque;

use model::TaskId;

use super::counters::{Kernel, Tasks, Variant, quantum};
use super::ticked::Model;

/// Lists for normal tasks.
const LISTS: usize = 20;
/// Tasks looked at: half the number of CPUs, which is one here, and five.
const LIMIT: u32 = 5;

/// The list of a task with `counter` ticks and `priority`. One without ticks is where the next
/// recalculation will find it.
///
/// # Panics
/// If counter or priority is negative.
#[must_use]
pub fn list_of(counter: i32, priority: i32) -> usize {
    let counter = if counter == 0 { priority } else { counter };
    usize::try_from((counter + priority) / 4)
        .expect("counters are positive")
        .min(LISTS - 1)
}

/// The scheduler.
#[derive(Clone, Debug)]
pub struct Elsc {
    /// Every task.
    pub tasks: Tasks,
    /// Each list: those with ticks left stand before those without.
    pub lists: Vec<VecDeque<TaskId>>,
    /// Tasks looked at so far.
    pub examined: u32,
    current: Option<TaskId>,
    asleep: bool,
    /// The address space in use.
    pub mm: Option<u32>,
    resched: bool,
}

impl Elsc {
    /// A system without tasks, the kernel built for several CPUs or for one.
    #[must_use]
    pub fn new(smp: bool) -> Self {
        let variant = Variant::V99;
        Self {
            tasks: Tasks::new(Kernel { variant, smp }),
            lists: vec![VecDeque::new(); LISTS],
            examined: 0,
            current: None,
            asleep: false,
            mm: None,
            resched: false,
        }
    }

    /// The list in which a task belongs.
    #[must_use]
    pub fn list_for(&self, task: TaskId) -> usize {
        let task = self.tasks.get(task);
        list_of(task.counter, quantum(Variant::V99, task.nice))
    }

    fn is_dry(&self, task: TaskId) -> bool {
        self.tasks.get(task).counter == 0
    }

    fn add(&mut self, task: TaskId) {
        let list = self.list_for(task);
        if self.is_dry(task) {
            self.lists[list].push_back(task);
        } else {
            self.lists[list].push_front(task);
        }
    }

    /// Takes a task out of its list. Returns whether it was in one.
    fn delete(&mut self, task: TaskId) -> bool {
        let mut found = false;
        for list in &mut self.lists {
            let before = list.len();
            list.retain(|own| *own != task);
            found |= list.len() < before;
        }
        found
    }

    /// The highest list whose first task has ticks left.
    fn top(&self) -> Option<usize> {
        let is_live = |list: &usize| {
            let first = self.lists[*list].front();
            first.is_some_and(|task| !self.is_dry(*task))
        };
        (0..LISTS).rev().find(is_live)
    }

    fn search(&mut self, list: usize) -> Option<TaskId> {
        let (mut best, mut fallback) = (None, None);
        let mut looked = 0;
        for &task in &self.lists[list] {
            if looked == LIMIT {
                break;
            }
            looked += 1;
            if self.is_dry(task) {
                break;
            }
            if self.tasks.get(task).yielding {
                fallback = Some(task);
                continue;
            }
            let goodness = self.tasks.goodness(task, self.mm);
            if best.is_none_or(|(most, _)| goodness > most) {
                best = Some((goodness, task));
            }
            if !self.tasks.kernel.smp && self.mm == Some(self.tasks.get(task).mm) {
                break;
            }
        }
        self.examined += looked;
        best.map(|(_, task)| task).or(fallback)
    }

    fn choose(&mut self) -> Option<TaskId> {
        if self.top().is_none() {
            if self.lists.iter().all(VecDeque::is_empty) {
                return None;
            }
            // Those without ticks stand where they belong from now on.
            self.tasks.recalculate();
        }
        let top = self.top().expect("a recalculation leaves nobody without");
        let next = self.search(top).expect("a list with somebody in it");
        self.delete(next);
        Some(next)
    }

    /// The running task, if it could go on.
    #[must_use]
    pub fn prev(&self) -> Option<TaskId> {
        self.current.filter(|_| !self.asleep)
    }
}

impl Model for Elsc {
    fn born(&mut self, task: TaskId, nice: i32, mm: u32, parent: Option<TaskId>) {
        self.resched |= self.tasks.born(task, nice, mm, parent);
    }

    fn woken(&mut self, task: TaskId) {
        self.add(task);
        let current = self.current;
        self.resched |= current.is_none_or(|current| self.tasks.preempts(task, current));
    }

    fn slept(&mut self, task: TaskId) {
        assert_eq!(self.current, Some(task), "only the running task sleeps");
        self.asleep = true;
        self.tasks.get_mut(task).yielding = false;
        self.resched = true;
    }

    fn exited(&mut self, task: TaskId) {
        self.tasks.exited(task);
    }

    fn yielded(&mut self, task: TaskId) {
        self.tasks.get_mut(task).yielding = true;
        self.resched = true;
    }

    fn reniced(&mut self, task: TaskId, nice: i32) {
        let waits = self.delete(task);
        self.tasks.get_mut(task).nice = nice;
        if waits {
            self.add(task);
        }
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
        let prev = self.prev();
        self.resched = false;
        self.asleep = false;
        if let Some(prev) = prev {
            self.add(prev);
        }
        let next = self.choose();
        if let Some(prev) = prev {
            self.tasks.get_mut(prev).yielding = false;
        }
        if let (Some(prev), Some(next), true) = (prev, next, self.tasks.kernel.smp) {
            // Who lost the CPU looks for another place: here there is only this one.
            self.resched = prev != next && self.tasks.preempts(prev, next);
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

//! A workload file made of a recording, for people to edit: tasks of the same behaviour become one
//! group, and what they did becomes distributions and counts.

mod kind;
mod names;
mod write;

use std::collections::BTreeMap;

use model::{Event, PrevState, SimTime, TaskId, WakeCause, Wakeup, What};

pub use kind::{AsFile, KnownTask};
use kind::{GroupHistory, TaskHistory};

/// Collects what the tasks of a recording did. Memory grows with the tasks, not with the events.
#[derive(Debug, Default)]
pub struct Grouped {
    tasks: Vec<TaskHistory>,
}

impl Grouped {
    /// A recording of which nothing is known.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next events, in the order of time.
    pub fn events(&mut self, events: &[Event]) {
        events.iter().for_each(|event| self.take(event));
    }

    fn take(&mut self, event: &Event) {
        let time = event.time;
        match event.what() {
            What::New { group, parent, .. } => self.born(time, group, parent),
            What::Wakeup(wakeup) => self.woken(event, wakeup),
            What::Switch {
                prev,
                state,
                overhead,
            } => {
                self.left(prev, state, time);
                self.runs(event.task, time + overhead);
            }
            What::Steal { span } => {
                if let Some(task) = self.tasks.get_mut(event.task.index()) {
                    task.settle(time);
                    let until = time + span;
                    task.running = task.running.map(|since| since.max(until));
                }
            }
            _ => {}
        }
    }

    fn born(&mut self, now: SimTime, group: u32, parent: TaskId) {
        let parent = Some(parent.index()).filter(|parent| {
            let parent = self.tasks.get(*parent);
            parent.is_some_and(|parent| parent.has_run)
        });
        let own = self.tasks.len();
        if let Some(parent) = parent {
            *self.tasks[parent].forks.entry(own).or_default() += 1;
        }
        self.tasks.push(TaskHistory {
            group: group as usize,
            parent,
            asleep: now,
            ..TaskHistory::default()
        });
    }

    fn woken(&mut self, event: &Event, wakeup: Wakeup) {
        let Wakeup { waker, cause, .. } = wakeup;
        let by_task = waker != event.task
            && (self.tasks.get(waker.index())).is_some_and(|waker| waker.has_run);
        let Some(task) = self.tasks.get_mut(event.task.index()) else {
            return;
        };
        if !std::mem::replace(&mut task.started, true) {
            task.ran_first = cause == WakeCause::Before || task.parent.is_some();
            let is_wait = by_task || cause == WakeCause::Outside;
            // How long others slept before they were first seen is not known.
            if task.ran_first || !is_wait {
                return;
            }
        }
        let slept = event.time.since(task.asleep);
        if by_task {
            task.waits.add(slept);
            task.synchronously += u64::from(wakeup.sync);
            let target = event.task.index();
            *self.tasks[waker.index()].wakes.entry(target).or_default() += 1;
            return;
        }
        match cause {
            WakeCause::Outside => {
                task.waits.add(slept);
                task.by_outside += 1;
            }
            WakeCause::Device => task.devices.add(slept),
            _ => task.clocks.add(slept),
        }
    }

    /// `prev` left its CPU.
    fn left(&mut self, prev: TaskId, state: PrevState, now: SimTime) {
        if let Some(prev) = self.tasks.get_mut(prev.index()) {
            prev.settle(now);
            prev.running = None;
            if state != PrevState::Runnable {
                prev.end_burst();
                prev.asleep = now;
            }
        }
    }

    /// `next` got a CPU, and its first instruction comes `since` then.
    fn runs(&mut self, next: TaskId, since: SimTime) {
        if let Some(next) = self.tasks.get_mut(next.index()) {
            next.running = Some(since);
            next.has_run = true;
        }
    }

    /// The recording is over.
    pub fn finish(&mut self, end: SimTime) {
        for task in &mut self.tasks {
            task.settle(end);
            task.end_burst();
        }
    }
}

/// What makes tasks alike: their name without numbers, their urgency and CPUs, whether they are
/// forked, and what mostly ends their sleeps.
type Likeness = (String, i8, KnownTask, bool, u8);

impl Grouped {
    /// The workload file. `known` gives what is known of a task besides, by its number.
    #[must_use]
    pub fn to_toml(&self, file: &AsFile<'_>, known: &dyn Fn(usize) -> KnownTask) -> String {
        let mut numbers: BTreeMap<Likeness, usize> = BTreeMap::new();
        let mut kinds: Vec<GroupHistory> = Vec::new();
        let mut kind_of: Vec<Option<usize>> = Vec::new();
        for (index, task) in self.tasks.iter().enumerate() {
            if task.bursts.many() == 0 {
                kind_of.push(None);
                continue;
            }
            let group = file.groups.get(task.group);
            let called = names::stem(group.map_or("task", |group| &group.name));
            let nice = group.map_or(0, |group| group.nice);
            let known = known(index);
            let forked = task.parent.is_some();
            let likeness = (called.clone(), nice, known.clone(), forked, mostly(task));
            let number = *numbers.entry(likeness).or_insert_with(|| {
                kinds.push(GroupHistory {
                    called,
                    nice,
                    known,
                    forked,
                    ..GroupHistory::default()
                });
                kinds.len() - 1
            });
            kind_of.push(Some(number));
            add(&mut kinds[number], task);
        }
        for (task, kind) in self.tasks.iter().zip(&kind_of) {
            let Some(kind) = *kind else {
                continue;
            };
            let number = |task: usize| kind_of.get(task).copied().flatten();
            for (target, many) in &task.wakes {
                if let Some(target) = number(*target) {
                    *kinds[kind].wakes.entry(target).or_default() += many;
                }
            }
            for (child, many) in &task.forks {
                if let Some(child) = number(*child) {
                    *kinds[kind].forks.entry(child).or_default() += many;
                }
            }
        }
        names::name(&mut kinds, file.anonymous);
        write::write(&kinds, file)
    }
}

/// What mostly ends a task's sleeps: a wakeup, a clock, a device, nothing.
fn mostly(task: &TaskHistory) -> u8 {
    let counts = [
        (task.waits.many(), 1),
        (task.clocks.many(), 2),
        (task.devices.many(), 3),
    ];
    let most = counts.into_iter().max_by_key(|(many, _)| *many);
    most.filter(|(many, _)| *many > 0)
        .map_or(0, |(_, which)| which)
}

fn add(kind: &mut GroupHistory, task: &TaskHistory) {
    kind.tasks += 1;
    kind.ran_first += u64::from(task.ran_first);
    kind.sum.bursts.append(&task.bursts);
    kind.sum.waits.append(&task.waits);
    kind.sum.clocks.append(&task.clocks);
    kind.sum.devices.append(&task.devices);
    kind.sum.by_outside += task.by_outside;
    kind.sum.synchronously += task.synchronously;
}

#[cfg(test)]
mod tests;

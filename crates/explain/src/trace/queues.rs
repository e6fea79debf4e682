//! Who waits where: the run queues of a machine, rebuilt from its events.

use std::collections::BTreeMap;

use model::{CpuId, Event, PrevState, SimTime, TaskId, What};

/// Why a task waits for a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// It was woken.
    Woken,
    /// It is new.
    Started,
    /// It lost its CPU while it was runnable: its slice ended, it yielded, or another was
    /// preferred.
    Preempted,
}

impl Reason {
    /// One word for tables and files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Woken => "woken",
            Self::Started => "new",
            Self::Preempted => "preempted",
        }
    }
}

/// A wait that lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// Who waits.
    pub task: TaskId,
    /// The CPU at which it waits. The policy may give it another one in the end.
    pub cpu: CpuId,
    /// Since when.
    pub since: SimTime,
    /// Why.
    pub reason: Reason,
}

/// What one event did to the queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueChange {
    /// A task began to wait.
    Came(Wait),
    /// A waiting task's CPU changed from `from` to that of the wait.
    Moved {
        /// Its wait, at the new CPU.
        wait: Wait,
        /// The CPU at which it was.
        from: CpuId,
    },
    /// A CPU began to run a task, whose wait is over.
    Ran(Wait),
    /// A CPU has nothing to run any more.
    Idled(CpuId),
}

#[derive(Clone, Copy, Debug)]
struct Place {
    cpu: CpuId,
    /// The wait, and its number among all waits of the machine.
    wait: Option<(u64, Wait)>,
}

/// The waiting tasks of every CPU, in the order in which the kernel gave them to the policy.
///
/// A queue is what docs/events.md counts as one: tasks that are runnable, at that CPU, and not on
/// it, wherever the policy keeps them. In what order the policy will take them is its own affair.
#[derive(Clone, Debug, Default)]
pub struct Queues {
    places: Vec<Place>,
    waiting: Vec<BTreeMap<u64, TaskId>>,
    running: Vec<TaskId>,
    waits: u64,
}

impl Queues {
    /// The empty queues of `cpus` CPUs.
    #[must_use]
    pub fn new(cpus: u16) -> Self {
        Self {
            places: Vec::new(),
            waiting: vec![BTreeMap::new(); usize::from(cpus)],
            running: vec![TaskId::NONE; usize::from(cpus)],
            waits: 0,
        }
    }

    /// Tasks that wait at `cpu`, in the order in which the kernel gave them to the policy.
    ///
    /// # Panics
    /// If the machine has no such CPU.
    pub fn of(&self, cpu: CpuId) -> impl Iterator<Item = Wait> + '_ {
        self.waiting[cpu.index()].values().map(|task| {
            let (_, wait) = self.places[task.index()].wait.expect("a queued task waits");
            wait
        })
    }

    /// What waits anywhere, in the order in which the kernel gave them to the policy.
    #[must_use]
    pub fn all(&self) -> Vec<Wait> {
        let queues = self.waiting.iter().flatten();
        let mut waits: Vec<(u64, TaskId)> = queues.map(|(&at, &task)| (at, task)).collect();
        waits.sort_unstable();
        let wait = |(_, task): (u64, TaskId)| self.places[task.index()].wait.map(|(_, wait)| wait);
        waits.into_iter().filter_map(wait).collect()
    }

    /// The task that `cpu` runs, if it runs one.
    ///
    /// # Panics
    /// If the machine has no such CPU.
    #[must_use]
    pub fn running(&self, cpu: CpuId) -> Option<TaskId> {
        let task = self.running[cpu.index()];
        (task != TaskId::NONE).then_some(task)
    }

    /// Takes the next event, and says what it did: nothing, one thing, or, for a switch, what
    /// became of the task before and of the task after it.
    ///
    /// # Panics
    /// If the events break the rules of docs/events.md.
    pub fn take(&mut self, event: &Event) -> [Option<QueueChange>; 2] {
        match event.what() {
            What::New { .. } => {
                assert_eq!(event.task.index(), self.places.len(), "tasks are numbered");
                let cpu = event.cpu;
                self.places.push(Place { cpu, wait: None });
                [None, None]
            }
            What::Wakeup(wakeup) => {
                let reason = if wakeup.new {
                    Reason::Started
                } else {
                    Reason::Woken
                };
                self.places[event.task.index()].cpu = event.cpu;
                [Some(self.come(event.task, event.time, reason)), None]
            }
            What::Migrate { .. } => [self.migrate(event), None],
            What::Change(_) => {
                self.put_back(event.task);
                [None, None]
            }
            What::Switch { prev, state, .. } => self.switch(event, prev, state),
            _ => [None, None],
        }
    }

    fn come(&mut self, task: TaskId, since: SimTime, reason: Reason) -> QueueChange {
        let at = self.waits;
        self.waits += 1;
        let place = &mut self.places[task.index()];
        let cpu = place.cpu;
        let wait = Wait {
            task,
            cpu,
            since,
            reason,
        };
        place.wait = Some((at, wait));
        self.waiting[cpu.index()].insert(at, task);
        QueueChange::Came(wait)
    }

    /// A change of nice value, affinity or class takes a waiting task out of its queue and hands it
    /// to the policy anew, behind the others. It still waits since it began to.
    fn put_back(&mut self, task: TaskId) {
        let place = &mut self.places[task.index()];
        let Some((at, wait)) = &mut place.wait else {
            return;
        };
        let queue = &mut self.waiting[wait.cpu.index()];
        queue.remove(at);
        *at = self.waits;
        queue.insert(*at, task);
        self.waits += 1;
    }

    fn migrate(&mut self, event: &Event) -> Option<QueueChange> {
        let place = &mut self.places[event.task.index()];
        let from = std::mem::replace(&mut place.cpu, event.cpu);
        let (at, wait) = place.wait.as_mut()?;
        wait.cpu = event.cpu;
        self.waiting[from.index()].remove(at);
        self.waiting[event.cpu.index()].insert(*at, event.task);
        Some(QueueChange::Moved { wait: *wait, from })
    }

    fn switch(
        &mut self,
        event: &Event,
        prev: TaskId,
        state: PrevState,
    ) -> [Option<QueueChange>; 2] {
        let stays = prev != TaskId::NONE && state == PrevState::Runnable;
        let came = stays.then(|| self.come(prev, event.time, Reason::Preempted));
        self.running[event.cpu.index()] = event.task;
        if event.task == TaskId::NONE {
            return [came, Some(QueueChange::Idled(event.cpu))];
        }
        let place = &mut self.places[event.task.index()];
        let (at, wait) = place.wait.take().expect("a switch picks a waiting task");
        self.waiting[wait.cpu.index()].remove(&at);
        [came, Some(QueueChange::Ran(wait))]
    }
}

//! A look into the machine between two events, for checks of what events alone tell.

use model::{CpuId, SimTime, Sink, TaskId};

use crate::machine::{Machine, Vm};
use crate::sample::Samples;
use crate::task::RunState;

/// A sink that is shown the machine after every moment in which something happened.
///
/// It is given all events up to that moment first. Statistics are made from events alone; this is
/// how a test finds out that they say the truth.
pub trait Watcher: Sink {
    /// Looks.
    fn look(&mut self, view: &View<'_>);
}

/// The machine between two events.
pub struct View<'a>(pub(crate) &'a Machine);

/// A dispatch queue that is not empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queue {
    /// Its number, as policies have it; the local queue of a CPU has `SCX_DSQ_LOCAL_ON` and the
    /// CPU, the global queue `SCX_DSQ_GLOBAL`.
    pub id: u64,
    /// Tasks and their `dsq_vtime`, first the one that is taken first.
    pub tasks: Vec<(TaskId, u64)>,
}

impl View<'_> {
    /// The time.
    #[must_use]
    pub const fn now(&self) -> SimTime {
        self.0.now
    }

    /// What runs on `cpu`, if it is a task.
    ///
    /// # Panics
    /// If the machine has no such CPU.
    #[must_use]
    pub fn running(&self, cpu: CpuId) -> Option<TaskId> {
        self.0.cpus[cpu].curr().task()
    }

    /// The tasks that are runnable, on the run queue of `cpu` and not running, by number.
    #[must_use]
    pub fn waiting(&self, cpu: CpuId) -> Vec<TaskId> {
        let tasks = (0u32..).map(TaskId).zip(&self.0.tasks);
        let waits = tasks.filter(|(id, task)| {
            task.cpu == cpu && task.state == RunState::Runnable && !self.0.is_running(*id)
        });
        waits.map(|(id, _)| id).collect()
    }

    /// Every dispatch queue that holds tasks.
    #[must_use]
    pub fn queues(&self) -> Vec<Queue> {
        let dsqs = &self.0.dsqs;
        let filled = dsqs.indexes().filter(|&dsq| !dsqs.is_empty(dsq));
        let queue = |dsq| Queue {
            id: match dsqs.owner(dsq) {
                Some(cpu) => crate::flags::dsq::LOCAL_ON | u64::from(cpu.0),
                None => dsqs.id(dsq),
            },
            tasks: dsqs
                .tasks(dsq)
                .map(|id| (id, self.0.task(id).vtime))
                .collect(),
        };
        filled.map(queue).collect()
    }
}

/// Takes the events of a run, and looks if it can.
pub(crate) enum Audience<'a> {
    /// Only takes events.
    Listens(&'a mut dyn Sink),
    /// Looks, too.
    Watches(&'a mut dyn Watcher),
    /// Is shown counters now and then.
    Samples(Samples<'a>),
}

impl Audience<'_> {
    pub fn sink(&mut self) -> &mut dyn Sink {
        match self {
            Self::Listens(sink) => *sink,
            Self::Watches(watcher) => *watcher,
            Self::Samples(samples) => samples.sampler,
        }
    }

    /// Shows the counters as they are before anything happens at `now`.
    pub fn sample_before(&mut self, machine: &mut Machine, vm: &mut Vm, now: SimTime) {
        if let Self::Samples(samples) = self {
            samples.before(machine, vm, now);
        }
    }

    /// Shows the counters as they are when nothing more will happen.
    pub fn sample_at_end(&mut self, machine: &mut Machine, vm: &mut Vm) {
        if let Self::Samples(samples) = self {
            samples.at_end(machine, vm);
        }
    }

    /// Whether anybody wants to see the machine.
    pub const fn watches(&self) -> bool {
        matches!(self, Self::Watches(_))
    }

    /// Whether anybody is shown the counters.
    pub const fn samples(&self) -> bool {
        matches!(self, Self::Samples(_))
    }

    /// Shows the machine, if anybody wants to see it.
    pub fn look(&mut self, machine: &mut Machine, vm: &Vm) {
        let Self::Watches(watcher) = self else { return };
        machine.hand_over(vm, *watcher);
        watcher.look(&View(machine));
    }
}

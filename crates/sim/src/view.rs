//! A look into the machine between two events, for checks of what events alone tell.

use model::{CpuId, Event, EventMask, Header, SimTime, Sink, TaskId, Text};

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

    /// The task that runs on `cpu`, if there is one.
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

/// Who takes the events of a run: each of these, if it is there.
#[derive(Default)]
pub(crate) struct Audience<'a> {
    /// Takes events.
    pub sink: Option<&'a mut dyn Sink>,
    /// Looks, too.
    pub watcher: Option<&'a mut dyn Watcher>,
    /// Is shown counters now and then.
    pub samples: Option<Samples<'a>>,
}

impl Audience<'_> {
    /// Shows the counters as they are before anything happens at `now`.
    #[inline]
    pub fn sample_before(&mut self, machine: &mut Machine, vm: &mut Vm, now: SimTime) {
        if self.samples() {
            self.sample_due(machine, vm, now);
        }
    }

    fn sample_due(&mut self, machine: &mut Machine, vm: &mut Vm, now: SimTime) {
        while let Some(due) = self.samples.as_mut().and_then(|it| it.take_due(now)) {
            self.sample(machine, vm, due);
        }
    }

    /// Shows the counters as they are when nothing more will happen.
    pub fn sample_at_end(&mut self, machine: &mut Machine, vm: &mut Vm) {
        let end = machine.now;
        if self.samples.as_ref().is_some_and(|it| !it.has(end)) {
            self.sample(machine, vm, end);
        }
    }

    fn sample(&mut self, machine: &mut Machine, vm: &mut Vm, time: SimTime) {
        machine.hand_over(vm, self);
        if let Some(samples) = &mut self.samples {
            samples.take(machine, vm, time);
        }
    }

    /// Whether anybody wants to see the machine.
    pub const fn watches(&self) -> bool {
        self.watcher.is_some()
    }

    /// Whether anybody is shown the counters.
    pub const fn samples(&self) -> bool {
        self.samples.is_some()
    }

    /// Shows the machine, if anybody wants to see it.
    pub fn look(&mut self, machine: &mut Machine, vm: &Vm) {
        if self.watches() {
            machine.hand_over(vm, self);
        }
        if let Some(watcher) = &mut self.watcher {
            watcher.look(&View(machine));
        }
    }

    /// Calls `tell` with each that is there.
    fn each(&mut self, mut tell: impl FnMut(&mut dyn Sink)) {
        if let Some(sink) = &mut self.sink {
            tell(*sink);
        }
        if let Some(watcher) = &mut self.watcher {
            tell(*watcher);
        }
        if let Some(samples) = &mut self.samples {
            tell(samples.sampler);
        }
    }

    fn all(&self) -> impl Iterator<Item = &dyn Sink> {
        let sink = self.sink.as_deref().map(|it| it as &dyn Sink);
        let watcher = self.watcher.as_deref().map(|it| it as &dyn Sink);
        let samples = self.samples.as_ref();
        let sampler = samples.map(|it| &*it.sampler as &dyn Sink);
        [sink, watcher, sampler].into_iter().flatten()
    }
}

impl Sink for Audience<'_> {
    fn wants(&self) -> EventMask {
        let wants = self.all().map(Sink::wants);
        wants.fold(EventMask::NONE, EventMask::union)
    }

    fn begin(&mut self, header: &Header) {
        self.each(|sink| sink.begin(header));
    }

    fn events(&mut self, events: &[Event]) {
        self.each(|sink| sink.events(events));
    }

    fn text(&mut self, text: &Text) {
        self.each(|sink| sink.text(text));
    }

    /// A run to which nobody listens is wanted for its summary.
    fn has_enough(&self) -> bool {
        self.all().next().is_some() && self.all().all(Sink::has_enough)
    }

    fn finish(&mut self, end: SimTime) {
        self.each(|sink| sink.finish(end));
    }
}

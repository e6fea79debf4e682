//! What became of each task of a run.

use model::{Event, EventKind, EventMask, Header, SimTime, Sink, TaskId, What};
use workload::RunSpec;

use crate::runner::Runner;
use crate::services::Services;

/// Turns that are kept.
const MOST: usize = 100_000;
/// Most BPF instructions of a run: an object of a student may do anything.
const BUDGET: u64 = 1_000_000_000;

/// How runs are computed.
pub(super) fn options() -> sim::Options {
    sim::Options {
        total_budget: Some(BUDGET),
        ..sim::Options::default()
    }
}

/// A task's course.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabTask {
    /// Its name.
    pub name: String,
    /// When it was runnable first after it had slept: the job begins to wait.
    pub ready: Option<SimTime>,
    /// When it ran first from then on.
    pub started: Option<SimTime>,
    /// When it ended.
    pub ended: Option<SimTime>,
}

/// A run, as a student draws it.
#[derive(Clone, Debug, Default)]
pub struct Course {
    /// The tasks, in the order of their birth.
    pub tasks: Vec<LabTask>,
    /// Task that got a CPU, and when, in order; `None`: the idle task.
    pub turns: Vec<(SimTime, u16, Option<usize>)>,
    /// Of the run, once it has begun.
    pub header: Option<Header>,
    /// CPUs of the machine.
    pub cpus: u16,
    /// When the run was over.
    pub end: SimTime,
}

impl Course {
    /// Makes the run.
    ///
    /// # Errors
    /// When the policy or the machine is bad.
    pub fn of(services: &Services<'_>, spec: &RunSpec) -> anyhow::Result<Self> {
        let mut course = Self::default();
        let _summary = Runner::new(spec, services)
            .with_options(options())
            .with_sink(&mut course)
            .start()?;
        Ok(course)
    }

    fn take(&mut self, event: &Event) {
        let at = event.task.index();
        match event.what() {
            What::New { group, index, .. } => {
                let header = self.header.as_ref();
                let name = header.map(|header| traces::task_name(header, group, index));
                self.tasks.push(LabTask {
                    name: name.unwrap_or_default(),
                    ready: None,
                    started: None,
                    ended: None,
                });
            }
            // The last wakeup before it ends begins the job: before, it only came to life.
            What::Wakeup(_) => {
                if let Some(task) = self.tasks.get_mut(at) {
                    task.ready = Some(event.time);
                    task.started = None;
                }
            }
            What::Switch { .. } => {
                if self.turns.len() < MOST {
                    let who = (event.task != TaskId::NONE).then_some(at);
                    self.turns.push((event.time, event.cpu.0, who));
                }
                if let Some(task) = self.tasks.get_mut(at) {
                    task.started.get_or_insert(event.time);
                }
            }
            What::Exit => {
                if let Some(task) = self.tasks.get_mut(at) {
                    task.ended = Some(event.time);
                }
            }
            _ => {}
        }
    }
}

impl Sink for Course {
    fn wants(&self) -> EventMask {
        EventMask::NONE
            .with(EventKind::New)
            .with(EventKind::Wakeup)
            .with(EventKind::Switch)
            .with(EventKind::Exit)
    }

    fn begin(&mut self, header: &Header) {
        self.cpus = header.machine.cpus;
        self.header = Some(header.clone());
    }

    fn events(&mut self, events: &[Event]) {
        events.iter().for_each(|event| self.take(event));
    }

    fn finish(&mut self, end: SimTime) {
        self.end = end;
    }
}

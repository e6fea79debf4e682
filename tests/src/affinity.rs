//! Checks that no task runs where it may not.

use model::{CpuId, Event, EventKind, EventMask, Header, Op, SimTime, Sink, TaskId};

use crate::random::Known;

/// A sink that follows the affinities of a [`crate::random::RandomRun`]: those at birth, and those
/// of which the policy hears.
#[derive(Debug, Default)]
pub struct AffinityCheck {
    groups: Vec<Option<u64>>,
    tasks: Vec<Option<u64>>,
    running: Vec<TaskId>,
    /// CPUs whose task may not run there since that moment: the stopper has to come at once.
    outlawed: Vec<(CpuId, SimTime)>,
    /// Times at which a stopper had to come.
    pub evictions: u64,
    /// The first run that was not allowed.
    pub violation: Option<String>,
}

impl AffinityCheck {
    /// A check of tasks of these groups.
    #[must_use]
    pub fn new(groups: &[Known]) -> Self {
        Self {
            groups: groups.iter().map(|group| group.cpus).collect(),
            ..Self::default()
        }
    }

    fn allowed(&self, task: TaskId, cpu: CpuId) -> bool {
        match self.tasks[task.index()] {
            Some(mask) if cpu.0 < 64 => mask & 1 << cpu.0 != 0,
            Some(_) => false,
            None => true,
        }
    }

    fn switched(&mut self, event: &Event) {
        self.outlawed.retain(|(cpu, _)| *cpu != event.cpu);
        self.running[event.cpu.index()] = event.task;
        if event.task != TaskId::NONE && !self.allowed(event.task, event.cpu) {
            let what = format!(
                "at {} CPU {} takes task {}",
                event.time, event.cpu, event.task.0
            );
            self.violation.get_or_insert(what);
        }
    }

    fn masked(&mut self, event: &Event) {
        // The event has the mask of the first 64 CPUs. A larger mask is that of all CPUs: the
        // random workloads have no other.
        let is_whole = event.words().a > u64::from(event.words().b.count_ones());
        self.tasks[event.task.index()] = (!is_whole).then_some(event.words().b);
        let on = self.running.iter().position(|task| *task == event.task);
        let Some(cpu) = on.and_then(|cpu| u16::try_from(cpu).ok()).map(CpuId) else {
            return;
        };
        self.outlawed.retain(|(own, _)| *own != cpu);
        if !self.allowed(event.task, cpu) {
            self.outlawed.push((cpu, event.time));
            self.evictions += 1;
        }
    }
}

impl Sink for AffinityCheck {
    fn wants(&self) -> EventMask {
        EventMask::NONE
            .with(EventKind::New)
            .with(EventKind::Switch)
            .with(EventKind::Callback)
    }

    fn begin(&mut self, header: &Header) {
        self.running = vec![TaskId::NONE; usize::from(header.machine.cpus)];
    }

    fn events(&mut self, events: &[Event]) {
        for event in events {
            if let Some((cpu, since)) = self.outlawed.iter().find(|(_, since)| event.time > *since)
            {
                let what = format!("since {since} CPU {cpu} runs a task that may not run there");
                self.violation.get_or_insert(what);
            }
            match event.kind {
                EventKind::New => self
                    .tasks
                    .push(self.groups[(event.words().a & 0xffff_ffff) as usize]),
                EventKind::Switch => self.switched(event),
                EventKind::Callback if event.words().detail == Op::SetCpumask as u8 => {
                    self.masked(event);
                }
                _ => {}
            }
        }
    }

    fn finish(&mut self, _: SimTime) {}
}

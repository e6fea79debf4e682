//! Takes the events of a simulated run.

use model::{CpuId, Event, EventKind, EventMask, Header, Op, SimTime, Sink, TaskGroup, TaskId};

use crate::call::{Call, Who};

/// A sink that keeps all callbacks, with the names of tasks, and all switches.
#[derive(Debug, Default)]
pub struct Collector {
    /// The callbacks, in order.
    pub calls: Vec<Call>,
    /// The switches, in order.
    pub switches: Vec<Event>,
    /// What the policy reported on tasks that began to run, in order.
    pub reports: Vec<Event>,
    /// When each task left its CPU for the last time, in that order.
    pub exits: Vec<(TaskId, SimTime)>,
    /// Name of each task, in the order of creation.
    pub names: Vec<String>,
    groups: Vec<TaskGroup>,
    current: Vec<Who>,
    /// Indexes of `cpu_release` calls, one a CPU, whose taker the next switch will tell.
    released: Vec<Option<usize>>,
}

/// A sink that keeps the events of one kind.
#[derive(Debug)]
pub struct Kept {
    kind: EventKind,
    /// They, in order.
    pub events: Vec<Event>,
}

impl Kept {
    /// Of this kind.
    #[must_use]
    pub const fn of(kind: EventKind) -> Self {
        let events = Vec::new();
        Self { kind, events }
    }
}

impl Sink for Kept {
    fn wants(&self) -> EventMask {
        EventMask::NONE.with(self.kind)
    }

    fn begin(&mut self, _: &Header) {}

    fn events(&mut self, events: &[Event]) {
        let of_kind = events.iter().filter(|event| event.kind == self.kind);
        self.events.extend(of_kind);
    }

    fn finish(&mut self, _: SimTime) {}
}

impl Collector {
    /// The callbacks as a recording would show them: tasks whose names do not begin with `tv` are
    /// unknown.
    #[must_use]
    pub fn as_recorded(&self) -> Vec<Call> {
        let seen = |who: &Who| who.name().map_or_else(|| who.clone(), Who::named);
        let calls = self.calls.iter();
        calls
            .map(|call| Call {
                current: seen(&call.current),
                task: seen(&call.task),
                ..call.clone()
            })
            .collect()
    }

    /// The task called `name`.
    ///
    /// # Panics
    /// If there is none.
    #[must_use]
    pub fn task(&self, name: &str) -> TaskId {
        let at = self.names.iter().position(|own| own == name);
        let at = at.unwrap_or_else(|| panic!("no task is called {name}: {:?}", self.names));
        TaskId(u32::try_from(at).expect("a task number"))
    }

    /// The turns of the CPU: who ran from when until when, in order of their ends. The last turn
    /// lasts until `end`.
    #[must_use]
    pub fn turns(&self, cpu: u16, end: SimTime) -> Vec<(String, SimTime, SimTime)> {
        let mut turns = Vec::new();
        let mut open: Option<(TaskId, SimTime)> = None;
        for switch in self
            .switches
            .iter()
            .filter(|switch| switch.cpu == CpuId(cpu))
        {
            if let Some((task, since)) = open.take() {
                turns.push((self.names[task.index()].clone(), since, switch.time));
            }
            open = (switch.task != TaskId::NONE).then_some((switch.task, switch.time));
        }
        turns.extend(open.map(|(task, since)| (self.names[task.index()].clone(), since, end)));
        turns
    }

    /// When the task called `name` exited.
    ///
    /// # Panics
    /// If there is no such task, or it did not exit.
    #[must_use]
    pub fn exit_of(&self, name: &str) -> SimTime {
        let task = self.task(name);
        let exit = self.exits.iter().find(|(own, _)| *own == task);
        exit.unwrap_or_else(|| panic!("{name} did not exit")).1
    }

    fn who(&self, task: TaskId) -> Who {
        self.names
            .get(task.index())
            .map_or(Who::Idle, |name| Who::Task(name.as_str().into()))
    }

    fn born(&mut self, event: &Event) {
        let group = &self.groups[(event.words().a & 0xffff_ffff) as usize];
        let index = event.words().a >> 32;
        let name = match group.count {
            0 | 1 if index == 0 => group.name.clone(),
            _ => format!("{}.{index}", group.name),
        };
        self.names.push(name);
    }

    fn switched(&mut self, event: &Event) {
        let cpu = event.cpu.index();
        let next = self.who(event.task);
        if let Some(at) = self.released[cpu].take() {
            self.calls[at].task = next.clone();
        }
        self.current[cpu] = next;
        self.switches.push(*event);
    }

    fn called(&mut self, event: &Event) {
        let op = Op::ALL[usize::from(event.words().detail)];
        let cpu = event.cpu.index();
        if op == Op::CpuRelease {
            self.released[cpu] = Some(self.calls.len());
        }
        self.calls.push(Call {
            time: event.time,
            cpu: event.cpu.0,
            current: self.current[cpu].clone(),
            op,
            task: self.who(event.task),
            a: event.words().a,
            b: event.words().b,
        });
    }
}

impl Sink for Collector {
    fn wants(&self) -> EventMask {
        EventMask::NONE
            .with(EventKind::New)
            .with(EventKind::Switch)
            .with(EventKind::Callback)
            .with(EventKind::Report)
            .with(EventKind::Exit)
    }

    fn begin(&mut self, header: &Header) {
        self.groups.clone_from(&header.groups);
        self.current = vec![Who::Idle; usize::from(header.machine.cpus)];
        self.released = vec![None; usize::from(header.machine.cpus)];
    }

    fn events(&mut self, events: &[Event]) {
        for event in events {
            match event.kind {
                EventKind::New => self.born(event),
                EventKind::Switch => self.switched(event),
                EventKind::Callback => self.called(event),
                EventKind::Report => self.reports.push(*event),
                EventKind::Exit => self.exits.push((event.task, event.time)),
                _ => {}
            }
        }
    }

    fn finish(&mut self, _: SimTime) {}
}

//! Replays a simulated run beside a model: the model is told what tasks do and says whom the CPU
//! runs; the run must have done the same, at every choice and only then.

use std::collections::BTreeMap;

use model::{Event, EventKind, EventMask, Header, Nanos, Op, SimTime, Sink, TaskGroup, TaskId};

/// A scheduler for one CPU, told what happens.
pub trait Model {
    /// A task comes to be, asleep.
    fn born(&mut self, task: TaskId, nice: i32, mm: u32, parent: Option<TaskId>);
    /// It becomes runnable, for the first time or again.
    fn woken(&mut self, task: TaskId);
    /// It stops being runnable, while it runs.
    fn slept(&mut self, task: TaskId);
    /// It ends; `slept` follows.
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

/// A sink that holds a run against a model.
pub struct Replay<M> {
    /// The model.
    pub model: M,
    /// Choices compared.
    pub choices: u32,
    /// The first difference, in words.
    pub difference: Option<String>,
    machine_tick: Nanos,
    now: SimTime,
    /// Until when an expired counter must have been noticed.
    expiry: Option<SimTime>,
    /// The switch that must come next.
    switch: Option<Option<TaskId>>,
    groups: Vec<TaskGroup>,
    spaces: BTreeMap<TaskId, u32>,
    group_spaces: BTreeMap<u64, u32>,
}

impl<M: Model> Replay<M> {
    /// Compares with `model`.
    pub fn new(model: M) -> Self {
        Self {
            model,
            choices: 0,
            difference: None,
            machine_tick: TICK,
            now: SimTime::ZERO,
            expiry: None,
            switch: None,
            groups: Vec::new(),
            spaces: BTreeMap::new(),
            group_spaces: BTreeMap::new(),
        }
    }

    fn differs(&mut self, what: impl FnOnce() -> String) {
        if self.difference.is_none() {
            let at = self.now.as_nanos() / 1000;
            self.difference = Some(format!("{at} us, choice {}: {}", self.choices, what()));
        }
    }

    /// Time passes. A tick at this very moment still hits who ran until now.
    fn advance(&mut self, to: SimTime) {
        if to > self.now && self.model.wants_schedule() {
            self.differs(|| "the model chooses anew, and the run does not".to_owned());
        }
        let number = |time: SimTime| time.as_nanos() / TICK.get();
        for tick in number(self.now) + 1..=number(to) {
            if self.model.tick() {
                let at = (tick * TICK.get()).next_multiple_of(self.machine_tick.get());
                self.expiry.get_or_insert(SimTime::from_nanos(at));
            }
        }
        if self.expiry.is_some_and(|expiry| expiry < to) {
            self.differs(|| "a counter ran out unnoticed".to_owned());
        }
        self.now = to;
    }

    fn born(&mut self, event: &Event) {
        let parent = TaskId((event.b >> 32) as u32);
        let parent = (parent != TaskId::NONE).then_some(parent);
        let at = event.a & 0xffff_ffff;
        let group = &self.groups[at as usize];
        let nice = i32::from(group.nice);
        // The generator of workloads calls processes so.
        let process = group.name.starts_with("process");
        let own = self.spaces.len() as u32;
        let mm = match parent {
            _ if process => own,
            Some(parent) => self.spaces[&parent],
            None => *self.group_spaces.entry(at).or_insert(own),
        };
        self.spaces.insert(event.task, mm);
        self.model.born(event.task, nice, mm, parent);
    }

    fn called(&mut self, event: &Event) {
        const DEQ_SLEEP: u64 = 1;
        const DEQ_SPECIAL: u64 = 0x10;
        match Op::ALL[usize::from(event.detail)] {
            Op::Quiescent if event.a & DEQ_SLEEP != 0 => {
                if event.a & DEQ_SPECIAL != 0 {
                    self.model.exited(event.task);
                }
                self.model.slept(event.task);
            }
            Op::Yield => self.model.yielded(event.task),
            Op::Dispatch => self.choose(),
            _ => {}
        }
    }

    fn choose(&mut self) {
        self.check_switched();
        let before = self.model.current();
        let expired = self.expiry.take().is_some();
        let asked = expired || self.model.wants_schedule();
        if before.is_some() && !asked {
            self.differs(|| "the run chooses anew, and the model does not".to_owned());
        }
        let choice = self.model.schedule();
        self.choices += 1;
        self.switch = (choice != before).then_some(choice);
    }

    fn check_switched(&mut self) {
        if let Some(choice) = self.switch.take() {
            self.differs(|| format!("the model runs {choice:?}, and the run does not switch"));
        }
    }

    fn switched(&mut self, next: TaskId) {
        let next = (next != TaskId::NONE).then_some(next);
        match self.switch.take() {
            Some(choice) if choice == next => {}
            Some(choice) => self.differs(|| format!("the model runs {choice:?}, the run {next:?}")),
            None => self.differs(|| format!("the model keeps its task, the run takes {next:?}")),
        }
    }
}

impl<M: Model> Sink for Replay<M> {
    fn wants(&self) -> EventMask {
        EventMask::NONE
            .with(EventKind::New)
            .with(EventKind::Wakeup)
            .with(EventKind::Switch)
            .with(EventKind::Change)
            .with(EventKind::Callback)
    }

    fn begin(&mut self, header: &Header) {
        self.groups.clone_from(&header.groups);
        self.machine_tick = header.machine.tick();
    }

    fn events(&mut self, events: &[Event]) {
        const NICE: u64 = 0;
        for event in events {
            if self.difference.is_some() {
                return;
            }
            self.advance(event.time);
            match event.kind {
                EventKind::New => self.born(event),
                EventKind::Wakeup => self.model.woken(event.task),
                EventKind::Switch => self.switched(event.task),
                EventKind::Callback => self.called(event),
                EventKind::Change if event.a == NICE => {
                    self.model.reniced(event.task, event.b as i32);
                }
                _ => {}
            }
        }
    }

    fn finish(&mut self, _: SimTime) {}
}

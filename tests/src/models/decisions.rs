//! Reference models of schedulers, written from their documents, and the replay that compares a
//! policy with its model.
//!
//! A model knows nothing of `sched_ext`: it keeps its lists as the document has them, with the
//! running task in its list, and hears what happens on one CPU. At every decision of the policy it
//! must pick the same task, and the policy must decide whenever the model would.

use model::{Event, EventKind, EventMask, Header, Op, SimTime, Sink, TaskId};

/// `DEQUEUE_SPECIAL`, which 6.18 sets when a task leaves its CPU for the last time.
const EXITS: u64 = 0x10;

/// A scheduler of one CPU, as its document describes it.
pub trait Scheduler {
    /// `task` came to be, with `nice`, forked by `parent` or there from the start.
    fn born(&mut self, task: TaskId, nice: i8, parent: Option<TaskId>, now: SimTime);
    /// `task` became runnable: new after a fork, or by a wakeup.
    fn wake(&mut self, task: TaskId, new: bool, now: SimTime);
    /// The clock ticked while the current task ran.
    fn tick(&mut self, now: SimTime);
    /// The current task called `sched_yield()`.
    fn yields(&mut self, now: SimTime);
    /// `task` has a new nice value.
    fn renice(&mut self, task: TaskId, nice: i8, now: SimTime);
    /// The current task blocked or, with `exits`, ended.
    fn leave(&mut self, task: TaskId, exits: bool, now: SimTime);
    /// `schedule()`: who runs from now on.
    fn schedule(&mut self, now: SimTime) -> Option<TaskId>;
    /// Whether the current task is to be replaced or reconsidered.
    fn must_decide(&self) -> bool;
    /// Priority and level of a task, as the policy reports them.
    fn place(&self, task: TaskId) -> (u32, u32);
}

/// A sink that lets a model follow a run on one CPU, and keeps what it disagrees with.
#[derive(Debug)]
pub struct Replay<M> {
    /// The model.
    pub model: M,
    /// Decisions that were compared.
    pub decisions: u64,
    /// The first thing that differed.
    pub differs: Option<String>,
    nice: Vec<i8>,
    now: SimTime,
    running: Option<TaskId>,
    expected: Option<TaskId>,
    reported: Option<Event>,
}

impl<M: Scheduler> Replay<M> {
    /// A replay that has seen nothing yet.
    pub const fn new(model: M) -> Self {
        Self {
            model,
            decisions: 0,
            differs: None,
            nice: Vec::new(),
            now: SimTime::ZERO,
            running: None,
            expected: None,
            reported: None,
        }
    }

    fn differ(&mut self, what: impl FnOnce() -> String) {
        if self.differs.is_none() {
            self.differs = Some(format!("{} ns: {}", self.now.as_nanos(), what()));
        }
    }

    /// Everything of one instant has happened: both must have come to the same end.
    fn instant_ends(&mut self) {
        let (running, expected) = (self.running, self.expected);
        if running != expected {
            self.differ(|| format!("{running:?} runs, the model has {expected:?}"));
        }
        if self.model.must_decide() {
            self.differ(|| format!("{running:?} goes on, the model decides anew"));
        }
    }

    /// Compares what the policy reported last. Waits for the event behind it, because the report
    /// of a task whose nice value changes comes before the event that tells of the change.
    fn compare_report(&mut self) {
        let Some(event) = self.reported.take() else {
            return;
        };
        let reported = (event.a as u32, (event.a >> 32) as u32);
        let (task, own) = (event.task, self.model.place(event.task));
        if reported != own {
            self.differ(|| format!("{task:?} is at {reported:?}, in the model at {own:?}"));
        }
    }

    fn called(&mut self, event: &Event) {
        match Op::ALL[usize::from(event.detail)] {
            Op::Tick => self.model.tick(self.now),
            Op::Yield => self.model.yields(self.now),
            // SCX_DEQ_SLEEP: it blocks or exits; without it something about it changes.
            Op::Quiescent if event.a & 1 == 1 => {
                self.model.leave(event.task, event.a & EXITS != 0, self.now);
            }
            Op::Dispatch => {
                self.expected = self.model.schedule(self.now);
                self.decisions += 1;
            }
            _ => {}
        }
    }

    fn heard(&mut self, event: &Event) {
        let now = self.now;
        if event.kind != EventKind::Change {
            self.compare_report();
        }
        let known = |task: TaskId| (task != TaskId::NONE).then_some(task);
        match event.kind {
            EventKind::New => {
                let nice = self.nice[(event.a & 0xffff_ffff) as usize];
                let parent = known(TaskId((event.b >> 32) as u32));
                self.model.born(event.task, nice, parent, now);
            }
            EventKind::Wakeup => self.model.wake(event.task, event.b == 1, now),
            EventKind::Change if event.a == 0 => {
                let nice = i8::try_from(event.b as i64).expect("a nice value");
                self.model.renice(event.task, nice, now);
            }
            EventKind::Switch => {
                self.running = known(event.task);
                let (running, expected) = (self.running, self.expected);
                if running != expected {
                    self.differ(|| format!("{running:?} came, the model picks {expected:?}"));
                }
            }
            EventKind::Report => self.reported = Some(*event),
            EventKind::Callback => self.called(event),
            _ => {}
        }
    }
}

impl<M: Scheduler> Sink for Replay<M> {
    fn wants(&self) -> EventMask {
        EventMask::NONE
            .with(EventKind::New)
            .with(EventKind::Wakeup)
            .with(EventKind::Change)
            .with(EventKind::Switch)
            .with(EventKind::Report)
            .with(EventKind::Callback)
    }

    fn begin(&mut self, header: &Header) {
        assert_eq!(header.machine.cpus, 1, "models know one CPU");
        self.nice = header.groups.iter().map(|group| group.nice).collect();
    }

    fn events(&mut self, events: &[Event]) {
        for event in events {
            if event.time != self.now {
                self.instant_ends();
                self.now = event.time;
            }
            if self.differs.is_none() {
                self.heard(event);
            }
        }
    }

    fn finish(&mut self, _: SimTime) {}
}

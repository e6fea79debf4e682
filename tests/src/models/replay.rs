//! Reference models of schedulers, written from their documents, and the replay that compares a
//! policy with its model.
//!
//! A model knows nothing of `sched_ext`: it keeps its lists as the document has them, with the
//! running task in its list, and hears what happens on one CPU. At every decision of the policy it
//! must pick the same task, and the policy must decide whenever the model would.

use std::collections::{BTreeMap, BTreeSet};

use model::{Event, EventKind, EventMask, Header, Nanos, Op, SimTime, Sink, TaskGroup, TaskId};

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

    /// The run begins; the machine ticks every `tick`.
    fn begin(&mut self, _tick: Nanos) {}
    /// As [`Self::born`], with the task's address space.
    #[expect(
        clippy::too_many_arguments,
        reason = "all that a model may ask of a new task"
    )]
    fn born_in(&mut self, task: TaskId, nice: i8, _: u32, parent: Option<TaskId>, now: SimTime) {
        self.born(task, nice, parent, now);
    }
    /// `task` is a thread: a child of its maker's parent, so its maker learns nothing of its end.
    fn is_thread(&mut self, _task: TaskId) {}
    /// What [`Self::leave`] will say of `task` is an uninterruptible sleep.
    fn leaves_uninterruptibly(&mut self, _task: TaskId) {}
    /// Time has come to `now`; what happens then has not happened yet.
    fn pass(&mut self, _now: SimTime) {}
    /// Whether a decision is in order now, although the current task could go on.
    fn may_decide(&self) -> bool {
        true
    }
    /// What the policy has to report of a task; `None`: not compared.
    fn reported(&self, task: TaskId) -> Option<(u32, u32)> {
        Some(self.place(task))
    }
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
    groups: Vec<TaskGroup>,
    /// Address spaces of tasks, and those that the first tasks of a group share.
    spaces: BTreeMap<TaskId, u32>,
    group_spaces: BTreeMap<u64, u32>,
    /// Tasks that wait for disks only.
    readers: BTreeSet<TaskId>,
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
            groups: Vec::new(),
            spaces: BTreeMap::new(),
            group_spaces: BTreeMap::new(),
            readers: BTreeSet::new(),
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
        let reported = (event.words().a as u32, (event.words().a >> 32) as u32);
        let (task, own) = (event.task, self.model.reported(event.task));
        if own.is_some_and(|own| own != reported) {
            self.differ(|| format!("{task:?} is at {reported:?}, in the model at {own:?}"));
        }
    }

    fn born(&mut self, event: &Event) {
        let parent = TaskId((event.words().b >> 32) as u32);
        let parent = (parent != TaskId::NONE).then_some(parent);
        let at = event.words().a & 0xffff_ffff;
        let group = &self.groups[at as usize];
        let own = self.spaces.len() as u32;
        // The generators of workloads call processes so.
        let is_process = group.name.starts_with("process");
        let space = match parent {
            _ if is_process => own,
            Some(parent) => self.spaces[&parent],
            None => *self.group_spaces.entry(at).or_insert(own),
        };
        self.spaces.insert(event.task, space);
        // So, too.
        if group.name.starts_with("reader") {
            self.readers.insert(event.task);
        }
        self.model
            .born_in(event.task, group.nice, space, parent, self.now);
        if !is_process {
            self.model.is_thread(event.task);
        }
    }

    fn called(&mut self, event: &Event) {
        match Op::ALL[usize::from(event.words().detail)] {
            Op::Tick => self.model.tick(self.now),
            Op::Yield => self.model.yields(self.now),
            // SCX_DEQ_SLEEP: it blocks or exits; without it something about it changes.
            Op::Quiescent if event.words().a & 1 == 1 => {
                if self.readers.contains(&event.task) {
                    self.model.leaves_uninterruptibly(event.task);
                }
                self.model
                    .leave(event.task, event.words().a & EXITS != 0, self.now);
            }
            Op::Dispatch => {
                let goes_on = event.task != TaskId::NONE && event.words().b == 1;
                if goes_on && !self.model.may_decide() {
                    self.differ(|| "the run decides anew, the model does not".to_owned());
                }
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
            EventKind::New => self.born(event),
            EventKind::Wakeup => self.model.wake(event.task, event.words().b == 1, now),
            EventKind::Change if event.words().a == 0 => {
                let nice = i8::try_from(event.words().b as i64).expect("a nice value");
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
        self.groups.clone_from(&header.groups);
        self.model.begin(header.machine.tick());
    }

    fn events(&mut self, events: &[Event]) {
        for event in events {
            if event.time != self.now {
                self.instant_ends();
                self.now = event.time;
                self.model.pass(event.time);
            }
            if self.differs.is_none() {
                self.heard(event);
            }
        }
    }

    fn finish(&mut self, _: SimTime) {}
}

//! What single tasks went through: how long each run was waited for, what the queue looked like
//! meanwhile, and where the policy had put the task.
//!
//! Source: the three tracing calls of Torrey, Coleman and Miller, "A comparison of interactivity
//! in the Linux 2.6 scheduler and an MLFQ scheduler" (2007).

mod decided;
mod queues;
#[cfg(test)]
mod tests;

use model::report::EXPIRED;
use model::{CpuId, Event, EventKind, EventMask, Header, Nanos, PrevState, SimTime, Sink, TaskId};

pub use self::decided::{Decided, Decider, DecisionVerdict};
pub use self::queues::{QueueChange, Queues, Reason, Wait};
use traces::task_name;

/// Entries after which a tracer keeps no more: of queues, of what happened to them, and turns.
/// They take about 200 MB.
const MOST_ENTRIES: usize = 4_000_000;

/// Which tasks are traced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TracedTasks {
    /// The tasks that have this pid.
    Pid(u32),
    /// The task of this name, or all tasks of the group of this name.
    Name(String),
}

/// What a tracer keeps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    /// Whose events.
    pub which: TracedTasks,
    /// Also that of their children, and so on.
    pub children: bool,
    /// Whether queues are kept, and which tasks belong to one.
    pub queues: Option<Scope>,
}

/// Which tasks belong to a task's queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Those at the CPU at which the task waits.
    Cpu,
    /// All that wait, for a policy that keeps one queue for the whole machine.
    Machine,
}

/// Where the policy had put a task, in its own words (`Report` events).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueStanding {
    /// On the kernel's scale, 0 to 139, lower is better.
    pub priority: u32,
    /// Queue or level in the policy's own numbers.
    pub level: u32,
    /// [`INTERACTIVE`](model::report::INTERACTIVE), [`EXPIRED`].
    pub flags: u64,
}

/// One wait for a CPU, and the run that followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceTurn {
    /// Whose.
    pub task: TaskId,
    /// When it became ready.
    pub ready: SimTime,
    /// Why it was not running.
    pub reason: Reason,
    /// The CPU that it ran on, or at which it waits still.
    pub cpu: CpuId,
    /// What held that CPU when it became ready.
    pub behind: Option<TaskId>,
    /// How often its CPU was given to another task while it waited.
    pub overtaken: u32,
    /// When it got the CPU; `None` if it waits still.
    pub ran: Option<SimTime>,
    /// What the policy said of it then.
    pub standing: Option<QueueStanding>,
    /// When it left the CPU, and in which state; `None` if it runs still.
    pub left: Option<(SimTime, PrevState)>,
}

impl TraceTurn {
    /// How long it waited, if the wait is over.
    #[must_use]
    pub fn wait(&self) -> Option<Nanos> {
        self.ran.map(|ran| ran.since(self.ready))
    }

    /// Whether another task ran while it waited.
    #[must_use]
    pub const fn is_interfered(&self) -> bool {
        self.behind.is_some() || self.overtaken > 0
    }
}

/// From where the standing of a waiting task is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KnownFrom {
    /// The policy's report when its wait was over: it was put there before it waited.
    AtNextRun(QueueStanding),
    /// The report at its last run. It has not run since, so it may have been moved.
    AtLastRun(QueueStanding),
    /// The policy has said nothing of it.
    Nothing,
}

impl KnownFrom {
    /// What is known.
    #[must_use]
    pub const fn standing(self) -> Option<QueueStanding> {
        match self {
            Self::AtNextRun(standing) | Self::AtLastRun(standing) => Some(standing),
            Self::Nothing => None,
        }
    }

    /// Better ones first; what is not known comes last.
    fn rank(self) -> (bool, u64, u32) {
        match self.standing() {
            Some(it) => (false, it.flags & EXPIRED, it.priority),
            None => (true, 0, 0),
        }
    }
}

/// One task of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// Its wait.
    pub wait: Wait,
    /// Where the policy had put it.
    pub known: KnownFrom,
}

/// Event of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueEvent {
    /// A task of the queue, or one from elsewhere, got the CPU.
    Runs,
    /// A task joined.
    Comes(Reason),
    /// A task moved here from another CPU's queue.
    Arrives(CpuId),
    /// A task moved to another CPU's queue.
    Leaves(CpuId),
    /// The CPU went idle although the task waits.
    Idles,
}

/// One thing that happened to a queue while the traced task was in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueStep {
    /// When.
    pub time: SimTime,
    /// To whom; [`TaskId::NONE`] when a CPU went idle.
    pub task: TaskId,
    /// On which CPU.
    pub cpu: CpuId,
    /// What.
    pub what: QueueEvent,
}

/// A traced task's stay in a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Visit {
    /// Index of its wait in [`Tracer::turns`].
    pub turn: usize,
    /// Task that its CPU ran when it came.
    pub running: Option<TaskId>,
    /// The queue with the task in it: by the policy's word, then in the order in which the kernel
    /// gave them to the policy.
    pub queue: Vec<Waiting>,
    /// What happened until it ran.
    pub steps: Vec<QueueStep>,
}

#[derive(Clone, Debug, Default)]
struct Task {
    group: u32,
    index: u32,
    pid: u32,
    traced: bool,
    standing: Option<QueueStanding>,
    /// Its turn that is not over, as an index.
    turn: Option<usize>,
    /// Where its standing is to be filled in when it runs: visit and place in the queue.
    owed: Vec<(usize, usize)>,
}

/// Follows some tasks through a run.
#[derive(Clone, Debug)]
pub struct Tracer {
    selection: Selection,
    header: Option<Header>,
    queues: Queues,
    tasks: Vec<Task>,
    turns: Vec<TraceTurn>,
    visits: Vec<Visit>,
    /// Visits that are not over.
    open: Vec<usize>,
    /// Waiting traced tasks.
    waiting: Vec<usize>,
    entries: usize,
    left_out: u64,
    end: SimTime,
}

impl Tracer {
    /// Follows the tasks of `selection`.
    #[must_use]
    pub fn new(selection: Selection) -> Self {
        Self {
            selection,
            header: None,
            queues: Queues::default(),
            tasks: Vec::new(),
            turns: Vec::new(),
            visits: Vec::new(),
            open: Vec::new(),
            waiting: Vec::new(),
            entries: 0,
            left_out: 0,
            end: SimTime::ZERO,
        }
    }

    /// Waits and runs of the traced tasks, in the order in which the waits began.
    #[must_use]
    pub fn turns(&self) -> &[TraceTurn] {
        &self.turns
    }

    /// Stays in queues, in the order in which they began; empty unless queues are kept.
    #[must_use]
    pub fn visits(&self) -> &[Visit] {
        &self.visits
    }

    /// How many waits, and things that happened to queues, were too many to keep.
    #[must_use]
    pub const fn left_out(&self) -> u64 {
        self.left_out
    }

    /// The last moment of the run.
    #[must_use]
    pub const fn end(&self) -> SimTime {
        self.end
    }

    /// What the run was, once it has begun.
    #[must_use]
    pub const fn header(&self) -> Option<&Header> {
        self.header.as_ref()
    }

    /// The traced tasks.
    pub fn traced(&self) -> impl Iterator<Item = TaskId> + '_ {
        let tasks = (0..).map(TaskId).zip(&self.tasks);
        tasks.filter(|(_, task)| task.traced).map(|(id, _)| id)
    }

    /// The name of a task; "idle" for none.
    ///
    /// # Panics
    /// If there is no such task.
    #[must_use]
    pub fn name(&self, task: TaskId) -> String {
        if task == TaskId::NONE {
            return "idle".to_owned();
        }
        let Task { group, index, .. } = self.tasks[task.index()];
        let header = self.header.as_ref().expect("a run begins with its header");
        task_name(header, group, index)
    }

    /// The pid of a task; `None` for no task.
    #[must_use]
    pub fn pid(&self, task: TaskId) -> Option<u32> {
        self.tasks.get(task.index()).map(|task| task.pid)
    }

    /// Names of all tasks of the run, a group of several under its own name.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        let groups = self.header.iter().flat_map(|header| &header.groups);
        groups.map(|group| group.name.clone()).collect()
    }

    /// Whether the policy has reported on any task.
    #[must_use]
    pub fn has_reports(&self) -> bool {
        self.tasks.iter().any(|task| task.standing.is_some())
    }

    /// The waits that are over: those with another task in between, or those without.
    pub fn waits(&self, is_interfered: bool) -> impl Iterator<Item = Nanos> {
        let turns = self.turns.iter();
        turns
            .filter(move |turn| turn.is_interfered() == is_interfered)
            .filter_map(TraceTurn::wait)
    }

    fn add(&mut self, [group, index, pid]: [u32; 3], parent: TaskId) {
        let header = self.header.as_ref().expect("a run begins with its header");
        let wanted = match &self.selection.which {
            TracedTasks::Pid(wanted) => *wanted == pid,
            TracedTasks::Name(wanted) => {
                let group_name = header.groups.get(group as usize).map(|group| &group.name);
                group_name == Some(wanted) || task_name(header, group, index) == *wanted
            }
        };
        let parent = self.tasks.get(parent.index());
        let inherited = self.selection.children && parent.is_some_and(|parent| parent.traced);
        self.tasks.push(Task {
            group,
            index,
            pid,
            traced: wanted || inherited,
            ..Task::default()
        });
    }

    fn change(&mut self, event: &Event, change: QueueChange) {
        let step = |task, cpu, what| QueueStep {
            time: event.time,
            task,
            cpu,
            what,
        };
        match change {
            QueueChange::Came(wait) => {
                let Wait { task, cpu, .. } = wait;
                self.tell(&step(task, cpu, QueueEvent::Comes(wait.reason)), task);
                if self.tasks[task.index()].traced {
                    self.begin(wait);
                }
            }
            QueueChange::Moved { wait, from } => {
                let Wait { task, cpu, .. } = wait;
                self.tell(&step(task, from, QueueEvent::Leaves(cpu)), task);
                self.tell(&step(task, cpu, QueueEvent::Arrives(from)), task);
                self.follow(wait, &step(task, cpu, QueueEvent::Arrives(from)));
            }
            QueueChange::Ran(wait) => {
                self.settle(wait.task);
                self.end_wait(&wait, event);
                self.tell(&step(wait.task, event.cpu, QueueEvent::Runs), wait.task);
                self.overtake(event.cpu);
            }
            QueueChange::Idled(cpu) => {
                self.tell(&step(TaskId::NONE, cpu, QueueEvent::Idles), TaskId::NONE);
            }
        }
    }

    /// Tells the open visits to the queue of the step's CPU, but for `task`'s own.
    fn tell(&mut self, step: &QueueStep, task: TaskId) {
        let everywhere = self.selection.queues == Some(Scope::Machine);
        for &visit in &self.open {
            let turn = &self.turns[self.visits[visit].turn];
            if turn.task == task || !everywhere && turn.cpu != step.cpu {
                continue;
            }
            if self.entries < MOST_ENTRIES {
                self.visits[visit].steps.push(*step);
                self.entries += 1;
            } else {
                self.left_out += 1;
            }
        }
    }

    /// The traced task itself moves to another queue.
    fn follow(&mut self, wait: Wait, step: &QueueStep) {
        let Some(turn) = self.tasks[wait.task.index()].turn else {
            return;
        };
        self.turns[turn].cpu = wait.cpu;
        let own = self.open.iter().find(|&&at| self.visits[at].turn == turn);
        if let Some(&visit) = own {
            self.visits[visit].steps.push(*step);
        }
    }

    /// A traced task begins to wait.
    fn begin(&mut self, wait: Wait) {
        if self.entries >= MOST_ENTRIES {
            self.left_out += 1;
            return;
        }
        let turn = self.turns.len();
        self.entries += 1;
        self.tasks[wait.task.index()].turn = Some(turn);
        self.waiting.push(turn);
        self.turns.push(TraceTurn {
            task: wait.task,
            ready: wait.since,
            reason: wait.reason,
            cpu: wait.cpu,
            behind: self.queues.running(wait.cpu),
            overtaken: 0,
            ran: None,
            standing: None,
            left: None,
        });
        if let Some(scope) = self.selection.queues {
            self.visit(wait, turn, scope);
        }
    }

    fn visit(&mut self, wait: Wait, turn: usize, scope: Scope) {
        let waits: Vec<Wait> = match scope {
            Scope::Cpu => self.queues.of(wait.cpu).collect(),
            Scope::Machine => self.queues.all(),
        };
        let visit = self.visits.len();
        for (at, wait) in waits.iter().enumerate() {
            self.tasks[wait.task.index()].owed.push((visit, at));
        }
        let known = KnownFrom::Nothing;
        let queue = waits.into_iter().map(|wait| Waiting { wait, known });
        let queue: Vec<Waiting> = queue.collect();
        self.entries += queue.len();
        self.open.push(visit);
        self.visits.push(Visit {
            turn,
            running: self.queues.running(wait.cpu),
            queue,
            steps: Vec::new(),
        });
    }

    /// A task runs: what the policy says of it now held while it waited.
    fn settle(&mut self, task: TaskId) {
        let task = &mut self.tasks[task.index()];
        let known = task
            .standing
            .map_or(KnownFrom::Nothing, KnownFrom::AtNextRun);
        for (visit, at) in std::mem::take(&mut task.owed) {
            self.visits[visit].queue[at].known = known;
        }
    }

    fn end_wait(&mut self, wait: &Wait, event: &Event) {
        let Task { turn, standing, .. } = &self.tasks[wait.task.index()];
        let (turn, standing) = (*turn, *standing);
        let Some(turn) = turn else { return };
        self.waiting.retain(|&waiting| waiting != turn);
        self.open.retain(|&visit| self.visits[visit].turn != turn);
        let turn = &mut self.turns[turn];
        turn.cpu = event.cpu;
        turn.ran = Some(event.time);
        turn.standing = standing;
    }

    /// `cpu` was given to a task: the others that wait there were overtaken.
    fn overtake(&mut self, cpu: CpuId) {
        for &turn in &self.waiting {
            let turn = &mut self.turns[turn];
            turn.overtaken += u32::from(turn.cpu == cpu);
        }
    }

    /// The task that left its CPU, if it is traced.
    fn end_turn(&mut self, prev: TaskId, state: PrevState, now: SimTime) {
        let Some(task) = self.tasks.get_mut(prev.index()) else {
            return;
        };
        let Some(turn) = task.turn.take() else { return };
        let state = match state {
            PrevState::Idle => PrevState::Sleeping,
            state => state,
        };
        self.turns[turn].left = Some((now, state));
    }

    fn event(&mut self, event: &Event) {
        match event.what() {
            model::What::New {
                group,
                index,
                pid,
                parent,
            } => self.add([group, index, pid], parent),
            // The policy says where a task is right before the switch to it.
            model::What::Report {
                priority,
                level,
                flags,
            } => {
                self.tasks[event.task.index()].standing = Some(QueueStanding {
                    priority,
                    level,
                    flags,
                });
            }
            model::What::Switch { prev, state, .. } => self.end_turn(prev, state, event.time),
            _ => {}
        }
        // The task that comes from the CPU is overtaken by nobody in this moment: it finds the next
        // one running.
        for change in self.queues.take(event).into_iter().rev().flatten() {
            self.change(event, change);
        }
    }
}

impl Sink for Tracer {
    fn wants(&self) -> EventMask {
        [
            EventKind::New,
            EventKind::Wakeup,
            EventKind::Switch,
            EventKind::Migrate,
            EventKind::Report,
            EventKind::Change,
        ]
        .into_iter()
        .fold(EventMask::NONE, EventMask::with)
    }

    fn begin(&mut self, header: &Header) {
        self.queues = Queues::new(header.machine.cpus);
        self.header = Some(header.clone());
    }

    fn events(&mut self, events: &[Event]) {
        events.iter().for_each(|event| self.event(event));
    }

    fn finish(&mut self, end: SimTime) {
        self.end = end;
        for task in &mut self.tasks {
            let known = task
                .standing
                .map_or(KnownFrom::Nothing, KnownFrom::AtLastRun);
            for (visit, at) in task.owed.drain(..) {
                self.visits[visit].queue[at].known = known;
            }
        }
        for visit in &mut self.visits {
            visit.queue.sort_by_key(|waiting| waiting.known.rank());
        }
    }
}

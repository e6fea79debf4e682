//! A CPU and its run queue.

use model::{CpuCounts, CpuId, CpuTimes, Nanos, SimTime, TaskId};

use crate::mask::Mask;
use crate::task::Class;

/// Picoseconds of a nanosecond.
pub(crate) const PS: u64 = 1_000;

/// The task, idle task or stopper of a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Curr {
    /// Nothing.
    Idle,
    /// A task.
    Task(TaskId),
    /// The migration thread, which moves tasks that may not run here any more.
    Stopper,
}

impl Curr {
    /// The task, if it is one.
    pub fn task(self) -> Option<TaskId> {
        match self {
            Self::Task(task) => Some(task),
            _ => None,
        }
    }

    /// As events write it.
    pub fn id(self) -> TaskId {
        self.task().unwrap_or(TaskId::NONE)
    }
}

/// A [`Curr`] in the four bytes of a task's number: who holds a CPU is copied, compared and kept
/// at every turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Occupant(u32);

impl Occupant {
    /// The idle task. No task has this number.
    pub const IDLE: Self = Self(TaskId::NONE.0);
    /// The migration thread. No run has so many tasks.
    pub const STOPPER: Self = Self(TaskId::NONE.0 - 1);

    /// The task, if it is one.
    #[inline(always)]
    pub fn task(self) -> Option<TaskId> {
        (self.0 < Self::STOPPER.0).then_some(TaskId(self.0))
    }

    /// As events write it.
    #[inline(always)]
    pub fn id(self) -> TaskId {
        self.task().unwrap_or(TaskId::NONE)
    }

    /// Which of the three it is.
    #[inline(always)]
    pub fn curr(self) -> Curr {
        // The test that `task` makes, so that both are one where both are asked.
        match self.task() {
            Some(task) => Curr::Task(task),
            None if self == Self::IDLE => Curr::Idle,
            None => Curr::Stopper,
        }
    }
}

impl From<TaskId> for Occupant {
    #[inline(always)]
    fn from(task: TaskId) -> Self {
        Self(task.0)
    }
}

/// Duties of a CPU before its task goes on, so that one test says whether there are any.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Todo(u8);

impl Todo {
    /// It has noted kicks, to carry out by an interrupt.
    pub const KICKS: Self = Self(1);
    /// Deferred inserts wait for an interrupt on it.
    pub const DEFERRED: Self = Self(2);
    /// It must call the scheduler as soon as it can.
    pub const RESCHED: Self = Self(4);
    /// Its code has cost time that nobody has paid for.
    pub const DEBT: Self = Self(8);
    /// An interrupt or a switch has it until [`Cpu::busy_until`].
    pub const BUSY: Self = Self(16);
    /// It chooses at the end of this moment; see [`crate::textbook`].
    pub const CHOICE: Self = Self(32);
    /// Either has it do nothing else for now.
    pub const WAITS: Self = Self(Self::BUSY.0 | Self::CHOICE.0);

    /// Whether there is nothing.
    #[inline(always)]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether `what` is to be done.
    #[inline(always)]
    pub const fn has(self, what: Self) -> bool {
        self.0 & what.0 != 0
    }

    /// `what` is to be done, too.
    #[inline(always)]
    pub const fn add(&mut self, what: Self) {
        self.0 |= what.0;
    }

    /// `what` is done.
    #[inline(always)]
    pub const fn strike(&mut self, what: Self) {
        self.0 &= !what.0;
    }
}

/// Use of a CPU's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// A task's work.
    Run,
    /// An interrupt.
    Stolen,
    /// Nothing.
    Idle,
    /// A switch.
    Overhead,
}

/// Kicks made on a CPU that wait for its next chance to take an interrupt, by target.
#[derive(Clone)]
pub struct Kicks {
    /// Plain, preempting and waiting kicks.
    pub kick: Mask,
    /// Only if idle.
    pub if_idle: Mask,
    /// Those of `kick` that end the current slice.
    pub preempt: Mask,
    /// Those of `kick` that wait for the target.
    pub wait: Mask,
}

impl Kicks {
    /// None, on a machine of `cpus`.
    pub fn new(cpus: u16) -> Self {
        Self {
            kick: Mask::empty(cpus),
            if_idle: Mask::empty(cpus),
            preempt: Mask::empty(cpus),
            wait: Mask::empty(cpus),
        }
    }
}

/// Who is to run before the policy's tasks.
#[derive(Clone, Default)]
pub struct Others {
    /// Tasks that the stopper shall move away, and where to.
    pub to_move: Vec<(TaskId, CpuId)>,
    /// Runnable real-time tasks, most urgent first; the running one included.
    pub rt: Vec<TaskId>,
    /// Runnable fair tasks; the running one included.
    pub fair: Vec<TaskId>,
}

/// Nobody.
static NO_OTHERS: Others = Others {
    to_move: Vec::new(),
    rt: Vec::new(),
    fair: Vec::new(),
};

impl Others {
    const fn is_empty(&self) -> bool {
        self.to_move.is_empty() && self.rt.is_empty() && self.fair.is_empty()
    }
}

/// A CPU.
///
/// What each turn of its scheduler needs stands first and in two lines of a cache, but for what a
/// CPU seldom does: of 64 CPUs not all stays in the nearest one.
#[repr(C, align(64))]
#[derive(Clone)]
pub struct Cpu {
    /// What it runs.
    pub occupant: Occupant,
    /// Which task executes code on it: `curr`, but for the moment in which that takes the CPU.
    pub executes: TaskId,
    /// While `curr` takes the CPU: what had it before, and is still the kernel's `rq->curr`.
    pub leaves: Option<Occupant>,
    /// What it has to do before its task goes on.
    pub todo: Todo,
    /// An event that makes it look again is in the queue for this very moment.
    pub resume_pending: bool,
    /// The policy has been told that it lost the CPU.
    pub released: bool,
    /// What it does now.
    pub mode: Mode,
    /// It is inside the balance step, where its local queue's rules differ
    /// (`SCX_RQ_IN_BALANCE`).
    pub balances: bool,
    /// A wakeup chooses a queue on it, whose end carries out deferred inserts
    /// (`SCX_RQ_IN_WAKEUP`).
    pub wakes: bool,
    /// What it runs is back in a queue of the policy's, and the choice is to come; see
    /// [`crate::textbook`].
    pub is_put_back: bool,
    /// The rotor of `cpumask_any_and_distribute()`.
    pub rotor: u32,
    /// Since when the current task executes without interruption; `None`: it does not.
    pub executing_since: Option<SimTime>,
    /// When the tick in the queue comes; `None` when there is none.
    pub tick_at: Option<SimTime>,
    /// When the work timer in the queue comes, at the end of the current work or before it;
    /// [`Cpu::NO_TIMER`] when there is none.
    pub work_timer: SimTime,
    /// Since when it is in its mode.
    pub mode_since: SimTime,
    /// Until when an interrupt has the CPU.
    pub busy_until: SimTime,
    /// Time that interrupts and switches took, nanoseconds.
    pub stolen_ns: u64,
    /// Enqueue counter (`ops_qseq`).
    pub qseq: u64,
    /// Where there has never been anybody there is no list either.
    others: Option<Box<Others>>,
    /// How it spent the run.
    pub times: CpuTimes,
    /// What its scheduler has done, for whoever asks.
    pub counts: CpuCounts,
    /// What its code has cost and nobody has paid for yet, picoseconds; see [`Cpu::owe`].
    owed_ps: u64,
    /// Until when a switch has the CPU; interrupts come behind it.
    pub overhead_until: SimTime,
    /// The address space that it had last, under a profile with costs.
    pub mm: u64,
}

const _: () = assert!(
    size_of::<Cpu>() == 256,
    "a power of two finds a CPU by a shift"
);

impl Cpu {
    /// Later than any work ends.
    pub const NO_TIMER: SimTime = SimTime::from_nanos(u64::MAX);

    /// An idle CPU.
    pub fn new() -> Self {
        Self {
            occupant: Occupant::IDLE,
            executes: TaskId::NONE,
            leaves: None,
            todo: Todo::default(),
            resume_pending: false,
            released: false,
            balances: false,
            wakes: false,
            is_put_back: false,
            qseq: 0,
            counts: CpuCounts::default(),
            others: None,
            rotor: 0,
            tick_at: None,
            work_timer: Self::NO_TIMER,
            executing_since: None,
            busy_until: SimTime::ZERO,
            overhead_until: SimTime::ZERO,
            stolen_ns: 0,
            owed_ps: 0,
            mm: 0,
            times: CpuTimes::default(),
            mode: Mode::Idle,
            mode_since: SimTime::ZERO,
        }
    }

    /// Who is to run before the policy's tasks.
    pub fn others(&self) -> &Others {
        self.others.as_deref().unwrap_or(&NO_OTHERS)
    }

    /// The other classes' tasks, to change.
    pub fn others_mut(&mut self) -> &mut Others {
        self.others.get_or_insert_default()
    }

    /// Whether a class above the policy's has a task, or the stopper has something to do.
    #[inline(always)]
    pub fn has_others(&self) -> bool {
        self.others
            .as_ref()
            .is_some_and(|others| !others.is_empty())
    }

    /// Task that runs before the policy's tasks, if [`Cpu::has_others`].
    #[cold]
    pub fn first_of_others(&self) -> Occupant {
        let others = self.others();
        let tasks = others.rt.first().or(others.fair.first());
        match tasks {
            Some(&id) if others.to_move.is_empty() => id.into(),
            _ => Occupant::STOPPER,
        }
    }

    /// What it runs.
    #[inline(always)]
    pub fn curr(&self) -> Curr {
        self.occupant.curr()
    }

    /// Books the time since the last change and begins `mode`.
    #[inline]
    pub fn enter(&mut self, mode: Mode, now: SimTime) {
        let spent = now.since(self.mode_since);
        *account_of(self.mode, &mut self.times) += spent;
        self.mode = mode;
        self.mode_since = now;
    }

    /// Its code has cost so much, picoseconds, which somebody has to pay for.
    pub fn owe(&mut self, cost_ps: u64) {
        self.owed_ps += cost_ps;
        if self.owed_ps >= PS {
            self.todo.add(Todo::DEBT);
        }
    }

    /// Its debt, picoseconds.
    pub const fn owed_ps(&self) -> u64 {
        self.owed_ps
    }

    /// The whole nanoseconds of what it owes.
    #[inline]
    pub const fn debt(&self) -> Nanos {
        Nanos::new(self.owed_ps / PS)
    }

    /// Takes the whole nanoseconds of what it owes.
    pub fn take_debt(&mut self) -> Nanos {
        let whole = self.owed_ps / PS;
        self.owed_ps -= whole * PS;
        self.todo.strike(Todo::DEBT);
        Nanos::new(whole)
    }

    /// Pays up to so much of what it owes, picoseconds; how much.
    pub fn pay(&mut self, most_ps: u64) -> u64 {
        let paid = most_ps.min(self.owed_ps);
        self.owed_ps -= paid;
        if self.owed_ps < PS {
            self.todo.strike(Todo::DEBT);
        }
        paid
    }

    /// It owes nothing.
    pub fn forgive_debt(&mut self) {
        self.owed_ps = 0;
        self.todo.strike(Todo::DEBT);
    }

    /// An interrupt or a switch has it for `span` more, and so until `until`.
    pub fn be_busy(&mut self, until: SimTime, span: Nanos) {
        self.busy_until = until;
        self.stolen_ns += span.get();
        self.todo.add(Todo::BUSY);
    }

    /// How it has spent the run until `now`.
    pub fn times_until(&self, now: SimTime) -> CpuTimes {
        let mut times = self.times;
        let spent = now.since(self.mode_since.min(now));
        *account_of(self.mode, &mut times) += spent;
        times
    }

    /// Books the end of a switch: what comes behind it is an interrupt, as long as the CPU is busy.
    pub fn end_overhead(&mut self, now: SimTime) {
        if self.mode == Mode::Overhead && now >= self.overhead_until {
            self.enter(Mode::Stolen, self.overhead_until);
        }
    }

    /// The clock that tasks are charged by: time that interrupts took does not count.
    ///
    /// Source: `rq_clock_task()` with `CONFIG_IRQ_TIME_ACCOUNTING`.
    #[inline]
    pub fn task_clock(&self, now: SimTime) -> u64 {
        let ahead = self.busy_until.as_nanos().saturating_sub(now.as_nanos());
        // `stolen_ns` holds an interrupt's whole length from its start.
        (now.as_nanos() + ahead) - self.stolen_ns
    }
}

/// Where time spent in `mode` is booked.
#[inline(always)]
const fn account_of(mode: Mode, times: &mut CpuTimes) -> &mut Nanos {
    match mode {
        Mode::Run => &mut times.run,
        Mode::Stolen => &mut times.stolen,
        Mode::Idle => &mut times.idle,
        Mode::Overhead => &mut times.overhead,
    }
}

/// The CPU's current class, given the class of each task.
pub fn class_on(cpu: &Cpu, class: impl FnOnce(TaskId) -> Class) -> Class {
    match cpu.curr() {
        Curr::Idle => Class::Idle,
        Curr::Stopper => Class::Stop,
        Curr::Task(task) => class(task),
    }
}

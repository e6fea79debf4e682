//! What an event says, by name. docs/events.md says when each kind happens.

use super::{Caller, EventKind, Kicked, Looked, NOWHERE, Op, PrevState, Sliced, Until, WakeCause};
use crate::{CpuId, Nanos, TaskId};

/// An event with named fields. [`super::Event::task`] is the task that it happened to, and
/// [`super::Event::cpu`] the CPU; where they mean something else, the variant says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// A task came to be. The CPU is where its parent ran.
    New {
        /// Index of its [`super::TaskGroup`].
        group: u32,
        /// Its index within the group.
        index: u32,
        /// Its process number.
        pid: u32,
        /// Its parent, or [`TaskId::NONE`].
        parent: TaskId,
    },
    /// A task left its CPU for the last time.
    Exit,
    /// A task became runnable on the run queue of the event's CPU.
    Wakeup(Wakeup),
    /// A CPU changed its task: the event's task is the next one, [`TaskId::NONE`] for idle.
    Switch {
        /// The previous task, or [`TaskId::NONE`].
        prev: TaskId,
        /// In which state the previous task left the CPU.
        state: PrevState,
        /// Time that passes before the next task's first instruction.
        overhead: Nanos,
    },
    /// A task's CPU changed to the event's.
    Migrate {
        /// The CPU that it was at.
        from: CpuId,
    },
    /// A callback of the policy was called.
    Callback {
        /// Which one.
        op: Op,
        /// Its first word, see [`Op`].
        a: u64,
        /// Its second word, see [`Op`].
        b: u64,
    },
    /// An interrupt or a kernel activity took time from the CPU, and from the task if there is one.
    Steal {
        /// How much time.
        span: Nanos,
    },
    /// The policy reported on a task.
    Report {
        /// Its priority.
        priority: u32,
        /// Its level.
        level: u32,
        /// Bits of [`super::report`].
        flags: u64,
    },
    /// A named span of the workload began.
    SpanBegin {
        /// Index into [`super::Header::spans`].
        span: u32,
    },
    /// A named span of the workload ended.
    SpanEnd {
        /// Index into [`super::Header::spans`].
        span: u32,
        /// How long it was.
        length: Nanos,
    },
    /// Work with a deadline was done.
    Deadline {
        /// Index into [`super::Header::deadlines`].
        deadline: u32,
        /// How long after the deadline; zero when it was met.
        late: Nanos,
    },
    /// Deadlines passed whose work is never done.
    Skipped {
        /// Index into [`super::Header::deadlines`].
        deadline: u32,
        /// How many.
        periods: u64,
    },
    /// A counter of the workload was raised.
    Count {
        /// Index into [`super::Header::counters`].
        counter: u32,
        /// By how much.
        by: u64,
    },
    /// A task entered a named phase.
    Phase {
        /// Index into [`super::Header::phases`].
        phase: u32,
    },
    /// The event's CPU was kicked by the policy.
    Kick {
        /// The flags of the kick.
        flags: u64,
        /// The CPU that kicked.
        caller: CpuId,
    },
    /// A property of a task changed.
    Change(Change),
    /// A decision: a dispatch queue came to be or was destroyed.
    Queue {
        /// Who made or destroyed it.
        caller: Caller,
        /// Its id.
        id: u64,
        /// Its index in this run.
        queue: u32,
        /// Whether it came to be.
        exists: bool,
    },
    /// A decision: a task came into a queue, or `ops.enqueue` kept it.
    Insert {
        /// Who put it there.
        by: Cause,
        /// The queue; nowhere if the policy kept the task.
        into: InQueue,
        /// Bits of [`super::insert`].
        flags: u32,
    },
    /// A decision: a queue was looked at from the event's CPU. The task is the one that was taken
    /// or seen.
    Look {
        /// Who looked.
        by: Cause,
        /// The queue.
        at: InQueue,
        /// How.
        how: Looked,
    },
    /// A decision: a task left its queue, not for another one.
    Remove {
        /// Who took it out.
        by: Cause,
        /// The queue.
        from: InQueue,
        /// Why.
        why: Removed,
    },
    /// A decision: an insert of a task that the policy did not hold, which the kernel ignores.
    Ignored {
        /// Who inserted.
        by: Cause,
        /// The queue's id.
        id: u64,
    },
    /// A decision: the fate of a kick of the event's CPU.
    KickEnd {
        /// Who kicked.
        by: Cause,
        /// Its fate.
        fate: Kicked,
        /// The CPU that kicks.
        caller: CpuId,
    },
    /// A decision: the tracking of idle CPUs.
    Idle {
        /// Who changed it.
        by: Cause,
        /// How.
        how: IdleChange,
    },
    /// A decision: a task got another slice.
    Slice {
        /// Who gave it.
        by: Cause,
        /// Its length; `u64::MAX` never ends.
        slice: Nanos,
        /// Why.
        why: Sliced,
    },
    /// With decisions: the CPUs that a task may use.
    Allowed {
        /// Who says so.
        caller: Caller,
        /// How many.
        cpus: u64,
        /// The lowest 64 of them, as bits.
        mask: u64,
    },
    /// A decision: the end of the policy's time. The task is the one that the callback was about.
    Failed {
        /// Who ended it.
        by: Cause,
        /// The kernel's exit kind.
        kind: u64,
    },
    /// Reserved. A decision: the callback that the event's CPU executes is put off in its middle.
    /// The task is the one that it is about.
    Suspend {
        /// Where it is.
        by: Cause,
        /// What ends that.
        until: Until,
        /// When, which lock, or how many: see [`Until`].
        word: u64,
    },
    /// Reserved. A decision: the callback that was put off on the event's CPU goes on.
    Resume {
        /// Where it is.
        by: Cause,
        /// For how long it was put off.
        lasted: Nanos,
    },
    /// The events of callbacks, of queues, of an end, and of decisions that are not the kernel's
    /// are those of another scheduler from here on, on all CPUs. A stream begins with the root's;
    /// one with one scheduler has none of these.
    Scheduler {
        /// Its number, 0 for the root's; see [`super::Text::Scheduler`].
        scheduler: u32,
        /// The id of its cgroup.
        cgroup: u64,
    },
    /// The frequency of a domain of CPUs at the begin of the run, and when it has changed; the
    /// event's CPU is the first of it.
    Frequency {
        /// The new one, in kHz.
        khz: u64,
        /// The rate at which its CPUs work, in 2^-20 of the fastest CPU's; 0 if that is not told.
        rate: u32,
    },
    /// A decision: the virtual time by which the insert in front of it ordered a task.
    Vtime {
        /// Who inserted.
        by: Cause,
        /// It compares by the sign of the difference.
        vtime: u64,
    },
}

/// Waker of a task, and the cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wakeup {
    /// The task that woke it; [`TaskId::NONE`]: an interrupt or the start of the run.
    pub waker: TaskId,
    /// The CPU of the waker.
    pub waker_cpu: CpuId,
    /// Whether the waker told the kernel that it is about to sleep (`WF_SYNC`,
    /// kernel/sched/sched.h, 6.18), as pipes and sockets do. Never set by an interrupt.
    pub sync: bool,
    /// Whether it is the first wakeup of a forked task.
    pub new: bool,
    /// The cause. Only imported traces say it.
    pub cause: WakeCause,
}

/// A change of a task's property.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Its new nice value.
    Nice(i64),
    /// How many CPUs it may use from now on.
    Affinity(u64),
    /// Its new class.
    Class {
        /// Which one.
        class: TaskClass,
        /// Its real-time priority, 0 if nothing is said. Only imported traces say it.
        priority: u8,
    },
}

/// The class of a task, as [`Change::Class`] has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskClass {
    /// The kernel's own threads that stop a CPU.
    Stop,
    /// Real-time.
    RealTime,
    /// Fair.
    Fair,
    /// The policy's.
    Policy,
    /// What runs when nothing else does.
    Idle,
    /// By deadlines.
    Deadline,
    /// A number that has no meaning.
    Unknown(u64),
}

impl TaskClass {
    /// Its number in events.
    #[must_use]
    pub const fn number(self) -> u64 {
        match self {
            Self::Stop => 0,
            Self::RealTime => 1,
            Self::Fair => 2,
            Self::Policy => 3,
            Self::Idle => 4,
            Self::Deadline => 5,
            Self::Unknown(number) => number,
        }
    }

    pub(super) const fn of(number: u64) -> Self {
        match number {
            0 => Self::Stop,
            1 => Self::RealTime,
            2 => Self::Fair,
            3 => Self::Policy,
            4 => Self::Idle,
            5 => Self::Deadline,
            number => Self::Unknown(number),
        }
    }
}

/// Maker of a decision, and its source line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cause {
    /// In which callback, or outside of callbacks.
    pub caller: Caller,
    /// The line that made it, see [`super::Text::Place`]; [`NOWHERE`] if it is not known.
    pub place: u32,
}

impl Cause {
    /// The kernel, by a rule of its own.
    pub const KERNEL: Self = Self {
        caller: Caller::Kernel,
        place: NOWHERE,
    };
}

/// A queue and how many tasks are in it after the decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InQueue {
    /// The queue's index in this run; [`NOWHERE`] for no queue.
    pub queue: u32,
    /// How many tasks are in it.
    pub depth: u32,
}

impl InQueue {
    /// No queue.
    pub const NONE: Self = Self {
        queue: NOWHERE,
        depth: 0,
    };
}

/// Why a task left its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Removed {
    /// It begins to run.
    Runs,
    /// It does not want to run, or is taken out for a change.
    Leaves,
}

/// A change of what is known about idle CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum IdleChange {
    /// A program claimed the CPU.
    Claimed,
    /// It idles.
    Idles,
    /// It leaves idle.
    Busy,
}

impl Change {
    /// The change of a class of which nothing else is said.
    #[must_use]
    pub const fn class(class: TaskClass) -> Self {
        Self::Class { class, priority: 0 }
    }
}

impl What {
    /// The kind of it.
    #[inline(always)]
    #[must_use]
    pub const fn kind(&self) -> EventKind {
        match self {
            Self::New { .. } => EventKind::New,
            Self::Exit => EventKind::Exit,
            Self::Wakeup(_) => EventKind::Wakeup,
            Self::Switch { .. } => EventKind::Switch,
            Self::Migrate { .. } => EventKind::Migrate,
            Self::Callback { .. } => EventKind::Callback,
            Self::Steal { .. } => EventKind::Steal,
            Self::Report { .. } => EventKind::Report,
            Self::SpanBegin { .. } => EventKind::SpanBegin,
            Self::SpanEnd { .. } => EventKind::SpanEnd,
            Self::Deadline { .. } => EventKind::Deadline,
            Self::Skipped { .. } => EventKind::Skipped,
            Self::Count { .. } => EventKind::Count,
            Self::Phase { .. } => EventKind::Phase,
            Self::Kick { .. } => EventKind::Kick,
            Self::Change(_) => EventKind::Change,
            Self::Queue { .. } => EventKind::Queue,
            Self::Insert { .. } => EventKind::Insert,
            Self::Look { .. } => EventKind::Look,
            Self::Remove { .. } => EventKind::Remove,
            Self::Ignored { .. } => EventKind::Ignored,
            Self::KickEnd { .. } => EventKind::KickEnd,
            Self::Idle { .. } => EventKind::Idle,
            Self::Slice { .. } => EventKind::Slice,
            Self::Allowed { .. } => EventKind::Allowed,
            Self::Failed { .. } => EventKind::Failed,
            Self::Suspend { .. } => EventKind::Suspend,
            Self::Resume { .. } => EventKind::Resume,
            Self::Scheduler { .. } => EventKind::Scheduler,
            Self::Frequency { .. } => EventKind::Frequency,
            Self::Vtime { .. } => EventKind::Vtime,
        }
    }

    /// An event that a workload wants recorded: the `number` of its span, deadline, counter or
    /// phase, and the `value` that goes with it. `None` for other kinds.
    #[must_use]
    pub const fn of_workload(kind: EventKind, number: u32, value: u64) -> Option<Self> {
        Some(match kind {
            EventKind::SpanBegin => Self::SpanBegin { span: number },
            EventKind::SpanEnd => Self::SpanEnd {
                span: number,
                length: Nanos::new(value),
            },
            EventKind::Deadline => Self::Deadline {
                deadline: number,
                late: Nanos::new(value),
            },
            EventKind::Skipped => Self::Skipped {
                deadline: number,
                periods: value,
            },
            EventKind::Count => Self::Count {
                counter: number,
                by: value,
            },
            EventKind::Phase => Self::Phase { phase: number },
            _ => return None,
        })
    }
}

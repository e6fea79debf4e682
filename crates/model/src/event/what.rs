//! The words of an event by name: the one place that packs and unpacks them.
//!
//! docs/events.md says when each kind happens. A file, a hash and a table of columns take the
//! numbers of [`Event::words`]; everybody else takes [`Event::what`].

use super::{Caller, Changed, Event, EventKind, Kicked, Looked, NOWHERE, Op, PrevState, Sliced};
use super::{SYNC_BIT, WakeCause};
use crate::{CpuId, Nanos, SimTime, TaskId};

/// What happened, with named fields. [`Event::task`] is the task that it happened to, and
/// [`Event::cpu`] the CPU; where they mean something else, the variant says so.
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
        /// Bit 0: labelled interactive.
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
}

/// Who woke a task, and why.
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

    const fn of(number: u64) -> Self {
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

/// Who made a decision, and where.
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

/// The numbers of an event that stand in files, hashes and columns: [`Event::detail`] and the two
/// payload words. [`Event::what`] says what they mean.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventWords {
    /// Sub-kind.
    pub detail: u8,
    /// First payload word.
    pub a: u64,
    /// Second payload word.
    pub b: u64,
}

const fn low(word: u64) -> u32 {
    word as u32
}

const fn high(word: u64) -> u32 {
    (word >> 32) as u32
}

const fn both(low: u32, high: u32) -> u64 {
    low as u64 | (high as u64) << 32
}

impl EventWords {
    const fn of(detail: u8, a: u64, b: u64) -> Self {
        Self { detail, a, b }
    }

    const fn decided(by: Cause, a: u64, extra: u32) -> Self {
        Self::of(by.caller.number(), a, both(by.place, extra))
    }

    const fn about_queue(by: Cause, queue: InQueue, extra: u32) -> Self {
        Self::decided(by, both(queue.queue, queue.depth), extra)
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

    /// Packs it.
    #[inline(always)]
    #[must_use]
    const fn words(self) -> EventWords {
        let of = EventWords::of;
        match self {
            Self::New {
                group,
                index,
                pid,
                parent,
            } => of(0, both(group, index), both(pid, parent.0)),
            Self::Exit => of(0, 0, 0),
            Self::Wakeup(wakeup) => wakeup.words(),
            Self::Switch {
                prev,
                state,
                overhead,
            } => of(state as u8, prev.0 as u64, overhead.get()),
            Self::Migrate { from } => of(0, from.0 as u64, 0),
            Self::Callback { op, a, b } => of(op as u8, a, b),
            Self::Steal { span } => of(0, span.get(), 0),
            Self::Report {
                priority,
                level,
                flags,
            } => of(0, both(priority, level), flags),
            Self::SpanBegin { span } => of(0, span as u64, 0),
            Self::SpanEnd { span, length } => of(0, span as u64, length.get()),
            Self::Deadline { deadline, late } => of(0, deadline as u64, late.get()),
            Self::Skipped { deadline, periods } => of(0, deadline as u64, periods),
            Self::Count { counter, by } => of(0, counter as u64, by),
            Self::Phase { phase } => of(0, phase as u64, 0),
            Self::Kick { flags, caller } => of(0, flags, caller.0 as u64),
            Self::Change(change) => change.words(),
            _ => self.decision_words(),
        }
    }

    /// Packs a decision.
    #[inline(always)]
    const fn decision_words(self) -> EventWords {
        match self {
            Self::Queue {
                caller,
                id,
                queue,
                exists,
            } => EventWords::of(caller.number(), id, both(queue, exists as u32)),
            Self::Insert { by, into, flags } => EventWords::about_queue(by, into, flags),
            Self::Look { by, at, how } => EventWords::about_queue(by, at, how as u32),
            Self::Remove { by, from, why } => EventWords::about_queue(by, from, why as u32),
            Self::Ignored { by, id } => EventWords::decided(by, id, 0),
            Self::KickEnd { by, fate, caller } => {
                EventWords::decided(by, fate as u64, caller.0 as u32)
            }
            Self::Idle { by, how } => EventWords::decided(by, how as u64, 0),
            Self::Slice { by, slice, why } => EventWords::decided(by, slice.get(), why as u32),
            Self::Allowed { caller, cpus, mask } => EventWords::of(caller.number(), cpus, mask),
            Self::Failed { by, kind } => EventWords::decided(by, kind, 0),
            _ => EventWords::of(0, 0, 0),
        }
    }
}

impl Wakeup {
    #[inline(always)]
    const fn words(self) -> EventWords {
        let by = both(self.waker.0, self.waker_cpu.0 as u32) | (self.sync as u64) << SYNC_BIT;
        EventWords::of(self.cause as u8, by, self.new as u64)
    }
}

impl Change {
    /// The change of a class of which nothing else is said.
    #[must_use]
    pub const fn class(class: TaskClass) -> Self {
        Self::Class { class, priority: 0 }
    }

    const fn words(self) -> EventWords {
        match self {
            Self::Nice(nice) => EventWords::of(0, Changed::Nice as u64, nice.cast_unsigned()),
            Self::Affinity(cpus) => EventWords::of(0, Changed::Affinity as u64, cpus),
            Self::Class { class, priority } => {
                EventWords::of(priority, Changed::Class as u64, class.number())
            }
        }
    }
}

impl Event {
    /// `what` happened at `time` on `cpu` to `task`.
    #[inline(always)]
    #[must_use]
    pub const fn new(time: SimTime, cpu: CpuId, task: TaskId, what: What) -> Self {
        let EventWords { detail, a, b } = what.words();
        Self {
            time,
            task,
            cpu,
            kind: what.kind(),
            detail,
            a,
            b,
        }
    }

    /// The event whose numbers a file gives. `None` if one of them has no meaning in this kind: a
    /// sub-kind, a callback or a reason that does not exist.
    #[must_use]
    pub fn from_words(
        (time, cpu, task): (SimTime, CpuId, TaskId),
        kind: EventKind,
        words: EventWords,
    ) -> Option<Self> {
        let EventWords { detail, a, b } = words;
        let event = Self {
            time,
            task,
            cpu,
            kind,
            detail,
            a,
            b,
        };
        let callers = Op::ALL.len() as u64 + 2;
        let detail = u64::from(detail);
        let extra = u64::from(high(b));
        let is_known = match kind {
            EventKind::Switch => detail <= PrevState::Dead as u64,
            EventKind::Wakeup => detail <= WakeCause::Outside as u64,
            EventKind::Callback => detail < Op::ALL.len() as u64,
            EventKind::Change => {
                a <= Changed::Class as u64 && (detail == 0 || a == Changed::Class as u64)
            }
            EventKind::Look => detail < callers && extra <= Looked::LetGo as u64,
            EventKind::Remove => detail < callers && extra <= Removed::Leaves as u64,
            EventKind::Slice => detail < callers && extra <= Sliced::Cut as u64,
            EventKind::KickEnd => detail < callers && a <= Kicked::Taken as u64,
            EventKind::Idle => detail < callers && a <= IdleChange::Busy as u64,
            EventKind::Queue
            | EventKind::Insert
            | EventKind::Ignored
            | EventKind::Allowed
            | EventKind::Failed => detail < callers,
            _ => detail == 0,
        };
        is_known.then_some(event)
    }

    /// Its numbers, as files, hashes and columns have them.
    #[inline(always)]
    #[must_use]
    pub const fn words(&self) -> EventWords {
        EventWords::of(self.detail, self.a, self.b)
    }

    /// What happened.
    #[inline(always)]
    #[must_use]
    pub fn what(&self) -> What {
        match self.kind {
            EventKind::New => What::New {
                group: low(self.a),
                index: high(self.a),
                pid: low(self.b),
                parent: TaskId(high(self.b)),
            },
            EventKind::Exit => What::Exit,
            EventKind::Wakeup => What::Wakeup(self.wakeup()),
            EventKind::Switch => What::Switch {
                prev: TaskId(low(self.a)),
                state: self.prev_state(),
                overhead: Nanos::new(self.b),
            },
            EventKind::Migrate => What::Migrate {
                from: CpuId(self.a as u16),
            },
            EventKind::Callback => What::Callback {
                op: Op::ALL[usize::from(self.detail).min(Op::ALL.len() - 1)],
                a: self.a,
                b: self.b,
            },
            EventKind::Steal => What::Steal {
                span: Nanos::new(self.a),
            },
            EventKind::Report => What::Report {
                priority: low(self.a),
                level: high(self.a),
                flags: self.b,
            },
            EventKind::SpanBegin => What::SpanBegin { span: low(self.a) },
            EventKind::SpanEnd => What::SpanEnd {
                span: low(self.a),
                length: Nanos::new(self.b),
            },
            EventKind::Deadline => What::Deadline {
                deadline: low(self.a),
                late: Nanos::new(self.b),
            },
            EventKind::Skipped => What::Skipped {
                deadline: low(self.a),
                periods: self.b,
            },
            EventKind::Count => What::Count {
                counter: low(self.a),
                by: self.b,
            },
            EventKind::Phase => What::Phase { phase: low(self.a) },
            EventKind::Kick => What::Kick {
                flags: self.a,
                caller: CpuId(self.b as u16),
            },
            EventKind::Change => What::Change(self.change()),
            _ => self.decision(),
        }
    }

    /// Who made this decision, and where; `None` if it is none, or one without a place.
    #[must_use]
    pub fn cause(&self) -> Option<Cause> {
        match self.what() {
            What::Insert { by, .. }
            | What::Look { by, .. }
            | What::Remove { by, .. }
            | What::Ignored { by, .. }
            | What::KickEnd { by, .. }
            | What::Idle { by, .. }
            | What::Slice { by, .. }
            | What::Failed { by, .. } => Some(by),
            _ => None,
        }
    }

    #[inline(always)]
    const fn wakeup(&self) -> Wakeup {
        Wakeup {
            waker: TaskId(low(self.a)),
            waker_cpu: CpuId(high(self.a) as u16),
            sync: self.a >> SYNC_BIT & 1 != 0,
            new: self.b == 1,
            cause: match self.detail {
                1 => WakeCause::Before,
                2 => WakeCause::Clock,
                3 => WakeCause::Device,
                4 => WakeCause::Outside,
                _ => WakeCause::Unsaid,
            },
        }
    }

    #[inline(always)]
    const fn prev_state(&self) -> PrevState {
        match self.detail {
            0 => PrevState::Idle,
            1 => PrevState::Runnable,
            2 => PrevState::Sleeping,
            _ => PrevState::Dead,
        }
    }

    const fn change(&self) -> Change {
        match self.a {
            0 => Change::Nice(self.b.cast_signed()),
            1 => Change::Affinity(self.b),
            _ => Change::Class {
                class: TaskClass::of(self.b),
                priority: self.detail,
            },
        }
    }

    /// A decision. Nobody asks for these in a hot loop.
    fn decision(&self) -> What {
        let caller = Caller::numbered(self.detail);
        let place = low(self.b);
        let by = Cause { caller, place };
        let queue = InQueue {
            queue: low(self.a),
            depth: high(self.a),
        };
        match self.kind {
            EventKind::Queue => What::Queue {
                caller,
                id: self.a,
                queue: low(self.b),
                exists: high(self.b) == 1,
            },
            EventKind::Insert => What::Insert {
                by,
                into: queue,
                flags: high(self.b),
            },
            EventKind::Look => What::Look {
                by,
                at: queue,
                how: match high(self.b) {
                    0 => Looked::MoveToLocal,
                    1 => Looked::Iterate,
                    2 => Looked::Move,
                    3 => Looked::Kernel,
                    4 => Looked::Nothing,
                    _ => Looked::LetGo,
                },
            },
            EventKind::Remove => What::Remove {
                by,
                from: queue,
                why: match high(self.b) {
                    0 => Removed::Runs,
                    _ => Removed::Leaves,
                },
            },
            EventKind::Ignored => What::Ignored { by, id: self.a },
            EventKind::KickEnd => What::KickEnd {
                by,
                fate: match self.a {
                    0 => Kicked::Asked,
                    1 => Kicked::Coalesced,
                    2 => Kicked::Dropped,
                    _ => Kicked::Taken,
                },
                caller: CpuId(high(self.b) as u16),
            },
            EventKind::Idle => What::Idle {
                by,
                how: match self.a {
                    0 => IdleChange::Claimed,
                    1 => IdleChange::Idles,
                    _ => IdleChange::Busy,
                },
            },
            EventKind::Slice => What::Slice {
                by,
                slice: Nanos::new(self.a),
                why: match high(self.b) {
                    0 => Sliced::Set,
                    1 => Sliced::Insert,
                    2 => Sliced::Default,
                    _ => Sliced::Cut,
                },
            },
            EventKind::Allowed => What::Allowed {
                caller,
                cpus: self.a,
                mask: self.b,
            },
            _ => What::Failed { by, kind: self.a },
        }
    }
}

#[cfg(test)]
mod tests;

//! The one place that packs what an event says into its 32 bytes, and unpacks it.
//!
//! A file, a hash and a table of columns take the numbers of [`Event::words`]; everybody else takes
//! [`Event::what`].

use super::what::{Cause, Change, IdleChange, InQueue, Removed, TaskClass, Wakeup, What};
use super::{Caller, Changed, Event, EventKind, Kicked, Looked, Op, PrevState, SYNC_BIT, Sliced};
use super::{Until, WakeCause};
use crate::{CpuId, Nanos, SimTime, TaskId};

/// The numbers of an event that stand in files, hashes and columns: `detail` and the two
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

    /// Packs a decision, or one of the reserved kinds.
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
            Self::Suspend { by, until, word } => EventWords::decided(by, word, until as u32),
            Self::Resume { by, lasted } => EventWords::decided(by, lasted.get(), 0),
            Self::Scheduler { scheduler, cgroup } => EventWords::of(0, scheduler as u64, cgroup),
            Self::Frequency { khz, rate } => EventWords::of(0, khz, rate as u64),
            Self::Vtime { by, vtime } => EventWords::decided(by, vtime, 0),
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
            EventKind::Suspend => detail < callers && extra <= Until::Events as u64,
            EventKind::Slice => detail < callers && extra <= Sliced::Cut as u64,
            EventKind::KickEnd => detail < callers && a <= Kicked::Taken as u64,
            EventKind::Idle => detail < callers && a <= IdleChange::Busy as u64,
            EventKind::Queue
            | EventKind::Insert
            | EventKind::Ignored
            | EventKind::Allowed
            | EventKind::Failed
            | EventKind::Resume
            | EventKind::Vtime => detail < callers,
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

    /// Maker and source line of this decision; `None` if it is none, or one without a place.
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
            | What::Failed { by, .. }
            | What::Suspend { by, .. }
            | What::Resume { by, .. }
            | What::Vtime { by, .. } => Some(by),
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

    /// A decision, or one of the reserved kinds. Nobody asks for these in a hot loop.
    #[expect(
        clippy::too_many_lines,
        reason = "one arm for each kind; a split would hide the table"
    )]
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
            EventKind::Suspend => What::Suspend {
                by,
                until: match high(self.b) {
                    0 => Until::Time,
                    1 => Until::Lock,
                    _ => Until::Events,
                },
                word: self.a,
            },
            EventKind::Resume => What::Resume {
                by,
                lasted: Nanos::new(self.a),
            },
            EventKind::Scheduler => What::Scheduler {
                scheduler: low(self.a),
                cgroup: self.b,
            },
            EventKind::Vtime => What::Vtime { by, vtime: self.a },
            EventKind::Frequency => What::Frequency {
                khz: self.a,
                rate: low(self.b),
            },
            _ => What::Failed { by, kind: self.a },
        }
    }
}

#[cfg(test)]
mod tests;

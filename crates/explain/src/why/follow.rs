//! Follows a run decision by decision, so that two runs can be laid side by side.

use model::{
    Caller, Cause, CpuId, Event, EventKind, EventMask, Header, IdleChange, InQueue, Kicked, Looked,
    NOWHERE, Sliced, TaskId, Text, What, insert,
};

use super::finding::{Act, Places};
use super::schedulers::QueueName;
use super::state::{Kind, Queue, State};

/// Queues and waiting tasks that a scene names.
const NAMED: usize = 8;

/// What makes two decisions the same, whatever their lines are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    time: u64,
    kind: EventKind,
    cpu: CpuId,
    task: TaskId,
    caller: Caller,
    what: u64,
    more: (u32, u32),
}

/// What a policy saw when it decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scene {
    /// The task that each CPU runs; `None` where it idles.
    pub cpus: Vec<Option<String>>,
    /// Queues with tasks in them: what they are called, how many tasks, and the first ones.
    pub queues: Vec<(String, usize, Vec<String>)>,
    /// Tasks that wait for a CPU.
    pub waiting: usize,
}

/// Follows one run.
#[derive(Debug, Default)]
pub struct Follower {
    state: State,
    places: Places,
    /// The flags of the kick that was asked for last.
    kick: u64,
}

impl Follower {
    /// The events that it needs.
    #[must_use]
    pub const fn wants() -> EventMask {
        let all = EventMask::SCHED.union(EventMask::DECISIONS);
        all.with(EventKind::Vtime)
    }

    /// The run begins.
    pub fn begin(&mut self, header: &Header) {
        self.state.begin(header);
    }

    /// A text comes.
    pub fn text(&mut self, text: &Text) {
        self.places.take(text);
        self.state.schedulers.take(text);
    }

    /// What to compare of a decision; `None` for other events.
    #[must_use]
    pub fn key(&self, event: &Event) -> Option<Key> {
        let of = |it: InQueue| {
            let queue = self.state.queues.get(&it.queue);
            (queue.map_or(u64::MAX, |queue| queue.id), it.depth)
        };
        let (by, (what, depth), extra) = match event.what() {
            What::Insert { by, into, flags } => (by, of(into), flags),
            What::Look { by, at, how } => (by, of(at), how as u32),
            What::Remove { by, from, why } => (by, of(from), why as u32),
            What::Ignored { by, id } => (by, (id, 0), 0),
            What::KickEnd { by, fate, caller } => {
                let flags = self.asked(fate).unwrap_or(0);
                (by, (flags << 8 | fate as u64, 0), caller.0.into())
            }
            What::Vtime { by, vtime } => (by, (vtime, 0), 0),
            What::Idle { by, how } => (by, (how as u64, 0), 0),
            What::Slice { by, slice, why } => (by, (slice.get(), 0), why as u32),
            What::Failed { by, kind } => (by, (kind, 0), 0),
            _ => return None,
        };
        Some(Key {
            time: event.time.as_nanos(),
            kind: event.kind,
            cpu: event.cpu,
            task: event.task,
            caller: by.caller,
            what,
            more: (depth, extra),
        })
    }

    /// Goes past an event.
    pub fn apply(&mut self, event: &Event) {
        if let What::Kick { flags, .. } = event.what() {
            self.kick = flags;
        }
        self.state.take(event);
    }

    /// The flags of a kick that was asked for in this moment.
    fn asked(&self, fate: Kicked) -> Option<u64> {
        matches!(fate, Kicked::Asked | Kicked::Coalesced).then_some(self.kick)
    }

    /// What a decision does, in words, and who made it where.
    #[must_use]
    pub fn describe(&self, event: &Event) -> (String, Act) {
        let by = event.cause().unwrap_or(Cause::KERNEL);
        let act = Act {
            time: event.time,
            cpu: event.cpu,
            callback: by.caller.name(),
            place: self.places.get(by.place).cloned(),
        };
        (self.words(event), act)
    }

    fn words(&self, event: &Event) -> String {
        let task = self.state.name(event.task);
        let queue = |it: InQueue| {
            let queue = self.state.queues.get(&it.queue);
            queue.map_or_else(|| "a queue".to_owned(), |queue| self.called(queue))
        };
        match event.what() {
            What::Insert { into, .. } if into.queue == NOWHERE => {
                format!("keeps {task} in no queue")
            }
            What::Insert { into, flags, .. } => {
                let verb = match flags & insert::MOVED {
                    0 => "inserts",
                    _ => "moves",
                };
                let bits = [
                    (insert::VTIME, ", by virtual time"),
                    (insert::HEAD, ", in front"),
                    (insert::PREEMPT, ", preempting"),
                ];
                let how = bits.iter().filter(|(bit, _)| flags & bit != 0);
                let how: String = how.map(|(_, words)| *words).collect();
                let depth = into.depth;
                format!(
                    "{verb} {task} into {} (now {depth} tasks{how})",
                    queue(into)
                )
            }
            What::Look { at, how, .. } => match how {
                Looked::Nothing => "ends `dispatch` without a task".to_owned(),
                Looked::LetGo => format!("has {task} in hand and does not insert it"),
                _ if event.task == TaskId::NONE => format!("finds nobody in {}", queue(at)),
                _ => format!("takes {task} out of {}", queue(at)),
            },
            What::Remove { from, .. } => format!("{task} leaves {}", queue(from)),
            What::Ignored { .. } => format!("inserts {task}, which it does not hold: ignored"),
            What::KickEnd { fate, .. } => {
                let fate = match fate {
                    Kicked::Asked => "asked for",
                    Kicked::Coalesced => "asked for again",
                    Kicked::Dropped => "without effect",
                    Kicked::Taken => "carried out",
                };
                format!(
                    "kick of CPU {}: {fate}{}",
                    event.cpu,
                    self.kick_words(event)
                )
            }
            What::Idle { how, .. } => {
                let how = match how {
                    IdleChange::Claimed => "claimed",
                    IdleChange::Idles => "idle",
                    IdleChange::Busy => "busy",
                };
                format!("CPU {} becomes {how}", event.cpu)
            }
            What::Slice {
                why: Sliced::Cut, ..
            } => format!("cuts the slice of {task}"),
            What::Slice { slice, .. } if slice.get() == u64::MAX => {
                format!("gives {task} a slice without end")
            }
            What::Slice { slice, .. } => format!("gives {task} a slice of {slice}"),
            What::Vtime { vtime, .. } => format!("orders {task} by virtual time {vtime}"),
            _ => "ends the policy".to_owned(),
        }
    }

    /// The flags of a kick that was asked for, as the kernel calls them.
    fn kick_words(&self, event: &Event) -> String {
        let What::KickEnd { fate, .. } = event.what() else {
            return String::new();
        };
        let names = [(1, "IDLE"), (2, "PREEMPT"), (4, "WAIT")];
        let flags = self.asked(fate).unwrap_or(0);
        let set = names.iter().filter(|(bit, _)| flags & bit != 0);
        let set: Vec<_> = set.map(|(_, name)| format!("SCX_KICK_{name}")).collect();
        match set.as_slice() {
            [] => String::new(),
            set => format!(" ({})", set.join(" | ")),
        }
    }

    fn called(&self, queue: &Queue) -> String {
        name(self.state.schedulers.prefix(queue.of), queue.id)
    }

    /// What there was to see before the next event.
    #[must_use]
    pub fn scene(&self) -> Scene {
        let cpus = self.state.cpus.iter();
        let cpus = cpus.map(|cpu| cpu.task.map(|task| self.state.name(task)));
        let filled = self.state.queues.values();
        let filled = filled.filter(|queue| !queue.tasks.is_empty());
        let queues = filled.take(NAMED).map(|queue| {
            let first = self.state.members(queue).take(NAMED);
            let first = first.map(|task| self.state.name(task)).collect();
            (self.called(queue), queue.tasks.len(), first)
        });
        Scene {
            cpus: cpus.collect(),
            queues: queues.collect(),
            waiting: self.state.waiting().len(),
        }
    }
}

/// What people call a queue with this id of the scheduler at the cgroup `of`.
fn name(of: Option<String>, id: u64) -> String {
    match (State::kind_of(id), of) {
        (Kind::Local(cpu), _) => format!("the local queue of CPU {cpu}"),
        (Kind::Global, None) => "the global queue".to_owned(),
        (Kind::Global, Some(of)) => format!("the global queue of {of}"),
        (Kind::Policy, of) => format!("queue {}", QueueName { of, id }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Nanos, Op, SimTime};
    use traces::testing::header;

    const BY: Cause = Cause {
        caller: Caller::Callback(Op::Enqueue),
        place: NOWHERE,
    };

    fn event(what: What) -> Event {
        Event::new(SimTime::from_nanos(7), CpuId(1), TaskId(0), what)
    }

    fn follower() -> Follower {
        let mut follower = Follower::default();
        follower.begin(&header(2));
        follower
    }

    #[test]
    fn virtual_times_slices_and_flags_make_decisions_differ_and_are_told() {
        let into = InQueue { queue: 0, depth: 1 };
        let insert = |flags| What::Insert {
            by: BY,
            into,
            flags,
        };
        let slice = |slice| What::Slice {
            by: BY,
            slice: Nanos::from_millis(slice),
            why: Sliced::Insert,
        };
        let vtime = |vtime| What::Vtime { by: BY, vtime };
        for (one, other, words) in [
            (vtime(5), vtime(6), "by virtual time 6"),
            (slice(5), slice(6), "a slice of 6.00 ms"),
            (insert(0), insert(insert::HEAD), "(now 1 tasks, in front)"),
            (
                insert(0),
                insert(insert::PREEMPT),
                "(now 1 tasks, preempting)",
            ),
        ] {
            let follower = follower();
            assert_ne!(follower.key(&event(one)), follower.key(&event(other)));
            let (said, _) = follower.describe(&event(other));
            assert!(said.contains(words), "{said}");
        }
    }

    #[test]
    fn a_kick_is_told_with_its_flags() {
        let after = |flags| {
            let mut follower = follower();
            let caller = CpuId(0);
            follower.apply(&event(What::Kick { flags, caller }));
            follower
        };
        let asked = event(What::KickEnd {
            by: BY,
            fate: Kicked::Asked,
            caller: CpuId(0),
        });
        let (idle, preempt) = (after(1), after(2));
        assert_ne!(idle.key(&asked), preempt.key(&asked));
        let (said, _) = preempt.describe(&asked);
        assert_eq!(said, "kick of CPU 1: asked for (SCX_KICK_PREEMPT)");
    }
}

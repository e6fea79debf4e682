//! Follows a run decision by decision, so that two runs can be laid side by side.

use model::{
    Caller, Cause, CpuId, Event, EventKind, EventMask, Header, IdleChange, InQueue, Kicked, Looked,
    NOWHERE, Sliced, TaskId, Text, What, insert,
};

use super::finding::{Act, Places};
use super::state::{Kind, State};

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
}

impl Follower {
    /// The events that it needs.
    #[must_use]
    pub const fn wants() -> EventMask {
        EventMask::SCHED.union(EventMask::DECISIONS)
    }

    /// The run begins.
    pub fn begin(&mut self, header: &Header) {
        self.state.begin(header);
    }

    /// A text comes.
    pub fn text(&mut self, text: &Text) {
        self.places.take(text);
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
            What::KickEnd { by, fate, caller } => (by, (fate as u64, 0), caller.0.into()),
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
        self.state.take(event);
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
            queue.map_or_else(|| "a queue".to_owned(), |queue| name(queue.id))
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
                let head = match flags & insert::HEAD {
                    0 => "",
                    _ => ", in front",
                };
                let depth = into.depth;
                format!(
                    "{verb} {task} into {} (now {depth} tasks{head})",
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
                format!("kick of CPU {}: {fate}", event.cpu)
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
            _ => "ends the policy".to_owned(),
        }
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
            (name(queue.id), queue.tasks.len(), first)
        });
        Scene {
            cpus: cpus.collect(),
            queues: queues.collect(),
            waiting: self.state.waiting().len(),
        }
    }
}

/// What people call a queue with this id.
fn name(id: u64) -> String {
    match State::kind_of(id) {
        Kind::Local(cpu) => format!("the local queue of CPU {cpu}"),
        Kind::Global => "the global queue".to_owned(),
        Kind::Policy if id < 1 << 16 => format!("queue {id}"),
        Kind::Policy => format!("queue {id:#x}"),
    }
}

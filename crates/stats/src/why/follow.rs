//! Follows a run decision by decision, so that two runs can be laid side by side.

use std::collections::BTreeMap;

use model::{
    Caller, CpuId, Event, EventKind, EventMask, Header, Kicked, Looked, NOWHERE, Nanos, Sliced,
    TaskId, Text, insert,
};

use super::finding::{Act, Place};
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
    caller: u8,
    what: u64,
    more: (u64, u32),
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
    places: BTreeMap<u32, Place>,
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
        if let Text::Place {
            place,
            function,
            file,
            line,
        } = text
        {
            let described = Place {
                function: function.clone(),
                file: file.clone(),
                line: *line,
            };
            self.places.insert(*place, described);
        }
    }

    /// What to compare of a decision; `None` for other events.
    #[must_use]
    pub fn key(&self, event: &Event) -> Option<Key> {
        if !EventMask::DECISIONS.has(event.kind)
            || matches!(event.kind, EventKind::Queue | EventKind::Allowed)
        {
            return None;
        }
        let (what, more) = match event.kind {
            EventKind::Insert | EventKind::Look | EventKind::Remove => {
                let queue = self.state.queues.get(&(event.a as u32));
                (queue.map_or(u64::MAX, |queue| queue.id), event.a >> 32)
            }
            _ => (event.a, 0),
        };
        Some(Key {
            time: event.time.as_nanos(),
            kind: event.kind,
            cpu: event.cpu,
            task: event.task,
            caller: event.detail,
            what,
            more: (more, (event.b >> 32) as u32),
        })
    }

    /// Goes past an event.
    pub fn apply(&mut self, event: &Event) {
        self.state.take(event);
    }

    /// What a decision does, in words, and who made it where.
    #[must_use]
    pub fn describe(&self, event: &Event) -> (String, Act) {
        let act = Act {
            time: event.time,
            cpu: event.cpu,
            callback: Caller::of(event).name(),
            place: self.places.get(&(event.b as u32)).cloned(),
        };
        (self.words(event), act)
    }

    fn words(&self, event: &Event) -> String {
        let task = self.state.name(event.task);
        let (index, depth) = (event.a as u32, event.a >> 32);
        let extra = (event.b >> 32) as u32;
        let queue = || {
            let queue = self.state.queues.get(&index);
            queue.map_or_else(|| "a queue".to_owned(), |queue| name(queue.id))
        };
        match event.kind {
            EventKind::Insert if index == NOWHERE => format!("keeps {task} in no queue"),
            EventKind::Insert => {
                let verb = match extra & insert::MOVED {
                    0 => "inserts",
                    _ => "moves",
                };
                let head = match extra & insert::HEAD {
                    0 => "",
                    _ => ", in front",
                };
                format!("{verb} {task} into {} (now {depth} tasks{head})", queue())
            }
            EventKind::Look if extra == Looked::Nothing as u32 => {
                "ends `dispatch` without a task".to_owned()
            }
            EventKind::Look if extra == Looked::LetGo as u32 => {
                format!("has {task} in hand and does not insert it")
            }
            EventKind::Look if event.task == TaskId::NONE => format!("finds nobody in {}", queue()),
            EventKind::Look => format!("takes {task} out of {}", queue()),
            EventKind::Remove => format!("{task} leaves {}", queue()),
            EventKind::Ignored => format!("inserts {task}, which it does not hold: ignored"),
            EventKind::KickEnd => {
                let what = match event.a {
                    a if a == Kicked::Asked as u64 => "asked for",
                    a if a == Kicked::Coalesced as u64 => "asked for again",
                    a if a == Kicked::Dropped as u64 => "without effect",
                    _ => "carried out",
                };
                format!("kick of CPU {}: {what}", event.cpu)
            }
            EventKind::Idle => {
                let what = match event.a {
                    0 => "claimed",
                    1 => "idle",
                    _ => "busy",
                };
                format!("CPU {} becomes {what}", event.cpu)
            }
            EventKind::Slice if extra == Sliced::Cut as u32 => format!("cuts the slice of {task}"),
            EventKind::Slice if event.a == u64::MAX => {
                format!("gives {task} a slice without end")
            }
            EventKind::Slice => format!("gives {task} a slice of {}", Nanos::new(event.a)),
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

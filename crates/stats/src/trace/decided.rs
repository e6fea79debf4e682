//! What was decided about single tasks.

use std::collections::BTreeMap;

use model::{
    Caller, Event, EventKind, EventMask, Header, Looked, NOWHERE, SimTime, Sink, Sliced, TaskId,
    Text, insert,
};

use super::{Selection, Which};
use crate::task_name;
use crate::why::{Act, Place};

/// Decisions after which no more are kept.
const MOST: usize = 1_000_000;
/// A task that nobody created.
const NO_PARENT: u32 = u32::MAX;

/// What was decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It came into a queue, with [`insert`] flags.
    Inserted(u32),
    /// `enqueue` has ended without an insert: the policy has it.
    Kept,
    /// It was taken out of a queue.
    Taken,
    /// It left a queue, because it runs or because it does not want to.
    Left,
    /// An insert of it had no effect.
    Ignored,
    /// It got a slice of so many nanoseconds.
    Slice(u64),
}

impl Verdict {
    /// One word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Inserted(flags) if flags & insert::MOVED != 0 => "moved",
            Self::Inserted(_) => "inserted",
            Self::Kept => "kept",
            Self::Taken => "taken",
            Self::Left => "left",
            Self::Ignored => "ignored",
            Self::Slice(_) => "slice",
        }
    }
}

/// A decision about a task.
#[derive(Clone, Debug)]
pub struct Decided {
    /// About whom.
    pub task: TaskId,
    /// What.
    pub verdict: Verdict,
    /// The queue's id and how many tasks are in it afterwards.
    pub queue: Option<(u64, u32)>,
    /// Who, where and when.
    pub by: Act,
}

/// Collects decisions about the tasks of a selection.
#[derive(Debug)]
pub struct Decider {
    selection: Selection,
    header: Option<Header>,
    traced: Vec<bool>,
    places: BTreeMap<u32, Place>,
    queues: BTreeMap<u32, u64>,
    all: Vec<Decided>,
    left_out: u64,
}

impl Decider {
    /// Collects for `selection`.
    #[must_use]
    pub const fn new(selection: Selection) -> Self {
        Self {
            selection,
            header: None,
            traced: Vec::new(),
            places: BTreeMap::new(),
            queues: BTreeMap::new(),
            all: Vec::new(),
            left_out: 0,
        }
    }

    /// The decisions, in their order.
    #[must_use]
    pub fn decided(&self) -> &[Decided] {
        &self.all
    }

    /// Decisions that were too many to keep.
    #[must_use]
    pub const fn left_out(&self) -> u64 {
        self.left_out
    }

    fn born(&mut self, event: &Event) {
        let (group, index) = (event.a as u32, (event.a >> 32) as u32);
        let (pid, parent) = (event.b as u32, (event.b >> 32) as u32);
        let is_meant = match &self.selection.which {
            Which::Pid(wanted) => pid == *wanted,
            Which::Name(wanted) => self.header.as_ref().is_some_and(|header| {
                let named = header.groups.get(group as usize);
                task_name(header, group, index) == *wanted
                    || named.is_some_and(|group| group.name == *wanted)
            }),
        };
        let of_parent = parent != NO_PARENT
            && self.selection.children
            && self.traced.get(parent as usize).copied().unwrap_or(false);
        let at = event.task.index();
        if self.traced.len() <= at {
            self.traced.resize(at + 1, false);
        }
        self.traced[at] = is_meant || of_parent;
    }

    fn decided_about(&mut self, event: &Event, verdict: Verdict, queue: Option<(u64, u32)>) {
        if !self.traced.get(event.task.index()).is_some_and(|it| *it) {
            return;
        }
        if self.all.len() >= MOST {
            self.left_out += 1;
            return;
        }
        self.all.push(Decided {
            task: event.task,
            verdict,
            queue,
            by: Act {
                time: event.time,
                cpu: event.cpu,
                callback: Caller::of(event).name(),
                place: self.places.get(&(event.b as u32)).cloned(),
            },
        });
    }

    fn take(&mut self, event: &Event) {
        let index = event.a as u32;
        let extra = (event.b >> 32) as u32;
        let id = self.queues.get(&index).copied();
        let queue = id.map(|id| (id, (event.a >> 32) as u32));
        match event.kind {
            EventKind::New => self.born(event),
            EventKind::Queue => {
                self.queues.insert(event.b as u32, event.a);
            }
            EventKind::Insert if index == NOWHERE => self.decided_about(event, Verdict::Kept, None),
            EventKind::Insert => self.decided_about(event, Verdict::Inserted(extra), queue),
            EventKind::Look if extra < Looked::Nothing as u32 => {
                self.decided_about(event, Verdict::Taken, queue);
            }
            EventKind::Remove => self.decided_about(event, Verdict::Left, queue),
            EventKind::Ignored => {
                self.decided_about(event, Verdict::Ignored, Some((event.a, 0)));
            }
            EventKind::Slice if extra != Sliced::Insert as u32 => {
                self.decided_about(event, Verdict::Slice(event.a), None);
            }
            _ => {}
        }
    }
}

impl Sink for Decider {
    fn wants(&self) -> EventMask {
        EventMask::DECISIONS.with(EventKind::New)
    }

    fn begin(&mut self, header: &Header) {
        self.header = Some(header.clone());
    }

    fn events(&mut self, events: &[Event]) {
        events.iter().for_each(|event| self.take(event));
    }

    fn text(&mut self, text: &Text) {
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

    fn finish(&mut self, _: SimTime) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::{Stream, event, header};

    #[test]
    fn only_decisions_about_the_chosen_task_are_kept_with_their_lines() {
        let mut decider = Decider::new(Selection {
            which: Which::Pid(1001),
            children: false,
            queues: None,
        });
        decider.begin(&header(1));
        decider.text(&Text::Place {
            place: 4,
            function: "put".to_owned(),
            file: None,
            line: 0,
        });
        let queue = Event {
            a: 7,
            b: 1 << 32 | 2,
            ..event(0, EventKind::Queue, 0, TaskId::NONE)
        };
        let insert = |task| Event {
            a: 3 << 32 | 2,
            b: 4,
            ..event(5, EventKind::Insert, 0, TaskId(task))
        };
        let born = Stream::new().born(0, 0, 0, 0).born(0, 1, 0, 1).events;
        let pids: Vec<u32> = born.iter().map(|event| event.b as u32).collect();
        decider.selection.which = Which::Pid(pids[1]);
        decider.events(&born);
        decider.events(&[queue, insert(0), insert(1)]);
        let [only] = decider.decided() else {
            panic!("{:?}", decider.decided())
        };
        assert_eq!((only.task, only.queue), (TaskId(1), Some((7, 3))));
        assert_eq!(only.verdict, Verdict::Inserted(0));
        assert_eq!(only.by.place.as_ref().unwrap().function, "put");
    }

    #[test]
    fn a_name_chooses_a_task_or_all_of_its_group() {
        let chosen = |name: &str| {
            let mut decider = Decider::new(Selection {
                which: Which::Name(name.to_owned()),
                children: false,
                queues: None,
            });
            decider.begin(&header(1));
            let born = Stream::new().born(0, 0, 0, 0).born(0, 1, 1, 0);
            decider.events(&born.born(0, 2, 1, 1).events);
            let remove = |task| event(5, EventKind::Remove, 0, TaskId(task));
            // A slice that comes with an insert is part of that.
            let slice = |task, how: Sliced| Event {
                a: 9,
                b: (how as u64) << 32,
                ..event(5, EventKind::Slice, 0, TaskId(task))
            };
            for task in 0..3 {
                decider.events(&[remove(task), slice(task, Sliced::Insert)]);
            }
            decider.events(&[slice(2, Sliced::Cut)]);
            let decided = decider.decided().iter();
            decided
                .map(|it| (it.task.0, it.verdict))
                .collect::<Vec<_>>()
        };
        let left = |task| (task, Verdict::Left);
        assert_eq!(chosen("solo"), [left(0)]);
        assert_eq!(chosen("pair.1"), [left(2), (2, Verdict::Slice(9))]);
        assert_eq!(chosen("pair"), [left(1), left(2), (2, Verdict::Slice(9))]);
        assert_eq!(chosen("nobody"), []);
    }
}

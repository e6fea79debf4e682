//! What was decided about single tasks.

use std::collections::BTreeMap;

use model::{
    Cause, Event, EventKind, EventMask, Header, InQueue, Looked, NOWHERE, SimTime, Sink, Sliced,
    TaskId, Text, What, insert,
};

use super::{Selection, TracedTasks};
use crate::why::{Act, Places, QueueName, SchedulerNames};
use traces::task_name;

/// Decisions after which no more are kept.
const MOST: usize = 1_000_000;

/// What was decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecisionVerdict {
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

impl DecisionVerdict {
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
    pub verdict: DecisionVerdict,
    /// The queue and how many tasks are in it afterwards.
    pub queue: Option<(QueueName, u32)>,
    /// Who, where and when.
    pub by: Act,
}

/// Collects decisions about the tasks of a selection.
#[derive(Debug)]
pub struct Decider {
    selection: Selection,
    header: Option<Header>,
    traced: Vec<bool>,
    places: Places,
    queues: BTreeMap<u32, QueueName>,
    /// What schedulers below the root are called, and whose decisions come now.
    schedulers: SchedulerNames,
    scheduler: u32,
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
            places: Places::new(),
            queues: BTreeMap::new(),
            schedulers: SchedulerNames::new(),
            scheduler: 0,
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

    fn born(&mut self, task: TaskId, [group, index, pid]: [u32; 3], parent: TaskId) {
        let is_meant = match &self.selection.which {
            TracedTasks::Pid(wanted) => pid == *wanted,
            TracedTasks::Name(wanted) => self.header.as_ref().is_some_and(|header| {
                let named = header.groups.get(group as usize);
                task_name(header, group, index) == *wanted
                    || named.is_some_and(|group| group.name == *wanted)
            }),
        };
        let of_parent = parent != TaskId::NONE
            && self.selection.children
            && self.traced.get(parent.index()).copied().unwrap_or(false);
        let at = task.index();
        if self.traced.len() <= at {
            self.traced.resize(at + 1, false);
        }
        self.traced[at] = is_meant || of_parent;
    }

    fn decided_about(
        &mut self,
        event: &Event,
        by: Cause,
        about: (DecisionVerdict, Option<(QueueName, u32)>),
    ) {
        let (verdict, queue) = about;
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
                callback: by.caller.name(),
                place: self.places.get(by.place).cloned(),
            },
        });
    }

    fn take(&mut self, event: &Event) {
        let of = |it: InQueue| {
            let queue = self.queues.get(&it.queue)?;
            Some((queue.clone(), it.depth))
        };
        let named = |id| QueueName {
            of: self.schedulers.prefix(self.scheduler),
            id,
        };
        let (by, about) = match event.what() {
            What::New {
                group,
                index,
                pid,
                parent,
            } => return self.born(event.task, [group, index, pid], parent),
            What::Queue { queue, id, .. } => {
                let name = named(id);
                self.queues.insert(queue, name);
                return;
            }
            What::Scheduler { scheduler, .. } => {
                self.scheduler = scheduler;
                return;
            }
            What::Insert { by, into, .. } if into.queue == NOWHERE => {
                (by, (DecisionVerdict::Kept, None))
            }
            What::Insert { by, into, flags } => (by, (DecisionVerdict::Inserted(flags), of(into))),
            What::Look {
                how: Looked::Nothing | Looked::LetGo,
                ..
            } => return,
            What::Look { by, at, .. } => (by, (DecisionVerdict::Taken, of(at))),
            What::Remove { by, from, .. } => (by, (DecisionVerdict::Left, of(from))),
            What::Ignored { by, id } => (by, (DecisionVerdict::Ignored, Some((named(id), 0)))),
            What::Slice { by, slice, why } if why != Sliced::Insert => {
                (by, (DecisionVerdict::Slice(slice.get()), None))
            }
            _ => return,
        };
        self.decided_about(event, by, about);
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
        self.places.take(text);
        self.schedulers.take(text);
    }

    fn finish(&mut self, _: SimTime) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use traces::testing::{StreamWriter, event, header, with};

    #[test]
    fn only_decisions_about_the_chosen_task_are_kept_with_their_lines() {
        let mut decider = Decider::new(Selection {
            which: TracedTasks::Pid(1001),
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
        let queue = with(
            event(0, EventKind::Queue, 0, TaskId::NONE),
            (0, 7, 1 << 32 | 2),
        );
        let insert = |task| {
            with(
                event(5, EventKind::Insert, 0, TaskId(task)),
                (0, 3 << 32 | 2, 4),
            )
        };
        let born = StreamWriter::new().born(0, 0, 0, 0).born(0, 1, 0, 1).events;
        decider.events(&born);
        decider.events(&[queue, insert(0), insert(1)]);
        let [only] = decider.decided() else {
            panic!("{:?}", decider.decided())
        };
        let queue = QueueName { of: None, id: 7 };
        assert_eq!(
            (only.task, only.queue.as_ref()),
            (TaskId(1), Some(&(queue, 3)))
        );
        assert_eq!(only.verdict, DecisionVerdict::Inserted(0));
        assert_eq!(only.by.place.as_ref().unwrap().function, "put");
    }

    #[test]
    fn a_name_chooses_a_task_or_all_of_its_group() {
        let chosen = |name: &str| {
            let mut decider = Decider::new(Selection {
                which: TracedTasks::Name(name.to_owned()),
                children: false,
                queues: None,
            });
            decider.begin(&header(1));
            let born = StreamWriter::new().born(0, 0, 0, 0).born(0, 1, 1, 0);
            decider.events(&born.born(0, 2, 1, 1).events);
            let remove = |task| event(5, EventKind::Remove, 0, TaskId(task));
            // A slice that comes with an insert is part of that.
            let slice = |task, how: Sliced| {
                with(
                    event(5, EventKind::Slice, 0, TaskId(task)),
                    (0, 9, (how as u64) << 32),
                )
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
        let left = |task| (task, DecisionVerdict::Left);
        assert_eq!(chosen("solo"), [left(0)]);
        assert_eq!(chosen("pair.1"), [left(2), (2, DecisionVerdict::Slice(9))]);
        assert_eq!(
            chosen("pair"),
            [left(1), left(2), (2, DecisionVerdict::Slice(9))]
        );
        assert_eq!(chosen("nobody"), []);
    }
}

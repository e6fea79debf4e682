//! Decisions as instants, and the depths of queues as counters.

use std::collections::BTreeMap;

use model::{Cause, CpuId, Event, IdleChange, InQueue, Looked, NOWHERE, Nanos, TaskId, Text, What};

use super::tracks::{Mark, Track};

/// The bit of all built-in queues, and what begins the id of a local one (kernel 6.18,
/// include/linux/sched/ext.h).
const BUILTIN: u64 = 1 << 63;
const LOCAL_ON: u64 = 3 << 62;

/// What must be remembered to name queues and places.
#[derive(Debug, Default)]
pub struct DecisionNames {
    places: BTreeMap<u32, String>,
    queues: BTreeMap<u32, String>,
    /// Cgroups of the schedulers below the root, by their numbers, and whose decisions come now.
    schedulers: BTreeMap<u32, String>,
    scheduler: u32,
}

impl DecisionNames {
    pub const fn new() -> Self {
        Self {
            places: BTreeMap::new(),
            queues: BTreeMap::new(),
            schedulers: BTreeMap::new(),
            scheduler: 0,
        }
    }

    /// Remembers a place, or a scheduler.
    pub fn text(&mut self, text: &Text) {
        match text {
            Text::Place {
                place,
                function,
                file,
                line,
            } => {
                let words = match file {
                    Some(file) => format!("{file}:{line} ({function})"),
                    None => function.clone(),
                };
                self.places.insert(*place, words);
            }
            Text::Scheduler {
                scheduler, cgroup, ..
            } => {
                let cgroup = cgroup.trim_matches('/').to_owned();
                self.schedulers.insert(*scheduler, cgroup);
            }
            Text::Exit(_) | Text::SubExit { .. } => {}
        }
    }

    /// What follows is of this scheduler.
    pub const fn turn_to(&mut self, scheduler: u32) {
        self.scheduler = scheduler;
    }

    /// Remembers a queue that came to be or went away.
    pub fn queue(&mut self, index: u32, id: u64) {
        let words = match self.schedulers.get(&self.scheduler) {
            Some(of) => format!("{of}/{}", queue_words(id)),
            None => queue_words(id),
        };
        self.queues.insert(index, words);
    }

    /// Name of a queue's track.
    pub fn queue_name(&self, index: u32) -> String {
        let known = self.queues.get(&index).cloned();
        known.unwrap_or_else(|| format!("queue number {index}"))
    }

    /// What a decision writes on tracks; `name` gives a task's name.
    pub fn events<'a>(
        &'a self,
        event: &Event,
        name: impl Fn(TaskId) -> &'a str,
    ) -> [Option<Mark<'a>>; 2] {
        let task = || name(event.task);
        let queue = |it: InQueue| self.queue_name(it.queue);
        let (by, label, of, slice) = match event.what() {
            What::Insert { by, into, .. } => {
                let label = match into.queue {
                    NOWHERE => format!("{} is in no queue", task()),
                    _ => format!("{} into {}", task(), queue(into)),
                };
                (by, label, Some(into), None)
            }
            What::Look { by, at, how } => {
                let label = match how {
                    Looked::Nothing => "no task".to_owned(),
                    Looked::LetGo => "let go".to_owned(),
                    _ if event.task == TaskId::NONE => format!("{} is empty", queue(at)),
                    _ => format!("{} out of {}", task(), queue(at)),
                };
                (by, label, Some(at), None)
            }
            What::Remove { by, from, .. } => {
                let label = format!("{} leaves {}", task(), queue(from));
                (by, label, Some(from), None)
            }
            What::Ignored { by, .. } => (by, format!("insert of {} ignored", task()), None, None),
            What::Slice { by, slice, .. } => {
                (by, format!("slice of {}", task()), None, Some(slice))
            }
            What::Idle {
                by,
                how: IdleChange::Claimed,
            } => (by, format!("CPU {} claimed", event.cpu), None, None),
            What::Failed { by, .. } => (by, "ejected".to_owned(), None, None),
            _ => return [None, None],
        };
        let depth = of.filter(|of| of.queue != NOWHERE);
        let depth = depth.map(|of| Mark::counter(Track::Queue(of.queue), of.depth.into()));
        [Some(self.instant((event.cpu, by), label, slice)), depth]
    }

    fn instant(&self, (cpu, by): (CpuId, Cause), label: String, slice: Option<Nanos>) -> Mark<'_> {
        let slice = slice.map(|slice| ("slice_ns", slice.get()));
        let instant = Mark::instant(Track::Decisions(cpu), label, slice);
        match self.places.get(&by.place) {
            Some(place) => instant.with_text("by", place),
            None => instant,
        }
    }
}

/// What people call a queue with this id.
fn queue_words(id: u64) -> String {
    match id {
        local if local & LOCAL_ON == LOCAL_ON => {
            format!("local queue, CPU {}", CpuId(local as u16))
        }
        global if global & BUILTIN != 0 => "global queue".to_owned(),
        id if id < 1 << 16 => format!("queue {id}"),
        id => format!("queue {id:#x}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_of_a_scheduler_below_another_one_has_its_cgroup_in_front() {
        let mut names = DecisionNames::new();
        names.text(&Text::Scheduler {
            scheduler: 1,
            policy: "below".to_owned(),
            cgroup: "/app".to_owned(),
        });
        names.queue(8, 0);
        names.turn_to(1);
        names.queue(9, 0);
        let called = [8, 9].map(|index| names.queue_name(index));
        assert_eq!(called, ["queue 0", "app/queue 0"]);
    }

    #[test]
    fn a_queue_is_called_as_policies_write_its_number() {
        for (id, want) in [
            (LOCAL_ON | 3, "local queue, CPU 3"),
            (BUILTIN | 1, "global queue"),
            (7, "queue 7"),
            (0xffff, "queue 65535"),
            (0x1_0000, "queue 0x10000"),
        ] {
            assert_eq!(queue_words(id), want);
        }
    }
}

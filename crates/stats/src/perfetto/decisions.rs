//! Decisions as instants, and the depths of queues as counters.

use std::collections::BTreeMap;

use model::{CpuId, Event, EventKind, Looked, NOWHERE, TaskId, Text};

use super::tracks::{Mark, Track};

/// The bit of all built-in queues, and what begins the id of a local one (kernel 6.18,
/// include/linux/sched/ext.h).
const BUILTIN: u64 = 1 << 63;
const LOCAL_ON: u64 = 3 << 62;

/// What must be remembered to name queues and places.
#[derive(Debug, Default)]
pub struct Decisions {
    places: BTreeMap<u32, String>,
    queues: BTreeMap<u32, String>,
}

impl Decisions {
    pub const fn new() -> Self {
        Self {
            places: BTreeMap::new(),
            queues: BTreeMap::new(),
        }
    }

    /// Remembers a place.
    pub fn text(&mut self, text: &Text) {
        if let Text::Place {
            place,
            function,
            file,
            line,
        } = text
        {
            let words = match file {
                Some(file) => format!("{file}:{line} ({function})"),
                None => function.clone(),
            };
            self.places.insert(*place, words);
        }
    }

    /// Remembers a queue that came to be or went away.
    pub fn queue(&mut self, event: &Event) {
        self.queues.insert(event.b as u32, queue_words(event.a));
    }

    /// What a queue's track is called.
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
        let index = event.a as u32;
        let queue = |of: &Self| of.queue_name(index);
        let label = match event.kind {
            EventKind::Insert if index == NOWHERE => {
                format!("{} is in no queue", name(event.task))
            }
            EventKind::Insert => format!("{} into {}", name(event.task), queue(self)),
            EventKind::Look if event.b >> 32 == Looked::Nothing as u64 => "no task".to_owned(),
            EventKind::Look if event.b >> 32 == Looked::LetGo as u64 => "let go".to_owned(),
            EventKind::Look if event.task == TaskId::NONE => format!("{} is empty", queue(self)),
            EventKind::Look => format!("{} out of {}", name(event.task), queue(self)),
            EventKind::Remove => format!("{} leaves {}", name(event.task), queue(self)),
            EventKind::Ignored => format!("insert of {} ignored", name(event.task)),
            EventKind::Slice => format!("slice of {}", name(event.task)),
            EventKind::Idle if event.a == 0 => format!("CPU {} claimed", event.cpu),
            EventKind::Failed => "ejected".to_owned(),
            _ => return [None, None],
        };
        let has_depth = matches!(
            event.kind,
            EventKind::Insert | EventKind::Look | EventKind::Remove
        );
        let depth = (has_depth && index != NOWHERE)
            .then(|| Mark::counter(Track::Queue(index), event.a >> 32));
        [Some(self.instant(event, label)), depth]
    }

    fn instant(&self, event: &Event, label: String) -> Mark<'_> {
        let slice = (event.kind == EventKind::Slice).then_some(("slice_ns", event.a));
        let instant = Mark::instant(Track::Decisions(event.cpu), label, slice);
        match self.places.get(&(event.b as u32)) {
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

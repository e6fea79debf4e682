//! How long tasks wait for a CPU, at most.

use model::{Event, EventKind, EventMask, Header, Nanos, PrevState, SimTime, Sink, TaskId};

/// A sink that keeps the longest time for which a task was runnable and did not run. A wait that
/// the end of the run cuts off counts with what there was of it.
#[derive(Debug, Default)]
pub struct LongestWait {
    /// The longest wait so far, and whose.
    pub longest: (Nanos, Option<TaskId>),
    /// Since when each task waits, by its number.
    since: Vec<Option<SimTime>>,
}

impl LongestWait {
    fn ends(&mut self, task: TaskId, now: SimTime) {
        if let Some(since) = self.since[task.index()].take() {
            let waited = now.since(since);
            if waited > self.longest.0 {
                self.longest = (waited, Some(task));
            }
        }
    }
}

impl Sink for LongestWait {
    fn wants(&self) -> EventMask {
        EventMask::NONE
            .with(EventKind::New)
            .with(EventKind::Wakeup)
            .with(EventKind::Switch)
    }

    fn begin(&mut self, _: &Header) {}

    fn events(&mut self, events: &[Event]) {
        for event in events {
            match event.kind {
                EventKind::New => self.since.push(None),
                EventKind::Wakeup => self.since[event.task.index()] = Some(event.time),
                EventKind::Switch => {
                    if event.task != TaskId::NONE {
                        self.ends(event.task, event.time);
                    }
                    if event.words().detail == PrevState::Runnable as u8 {
                        let left = u32::try_from(event.words().a).expect("a task number");
                        self.since[TaskId(left).index()] = Some(event.time);
                    }
                }
                _ => {}
            }
        }
    }

    fn finish(&mut self, end: SimTime) {
        for task in 0..self.since.len() {
            self.ends(TaskId(u32::try_from(task).expect("a task number")), end);
        }
    }
}

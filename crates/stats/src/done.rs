//! When tasks had done the last of their work.

use model::{Event, EventMask, Header, PrevState, SimTime, Sink, TaskId, What};

/// Notes when each task left a CPU for the last time, and who forked it.
#[derive(Debug, Default)]
pub struct LastWork {
    tasks: Vec<Worker>,
    end: SimTime,
}

#[derive(Clone, Copy, Debug)]
struct Worker {
    group: u32,
    parent: TaskId,
    /// When it fell asleep or ended; `None`: it could go on.
    rests: Option<SimTime>,
    has_run: bool,
}

impl LastWork {
    /// When the last task that is `wanted`, or that such a task forked, directly or not, had done
    /// its work: the end of the run if one could go on. `None` if no such task ran. A task is asked
    /// for by its group and the group of the task that forked it.
    #[must_use]
    pub fn of(&self, wanted: &dyn Fn(u32, Option<u32>) -> bool) -> Option<SimTime> {
        let mut is_its: Vec<bool> = Vec::with_capacity(self.tasks.len());
        let mut last = None;
        for task in &self.tasks {
            // A parent has a lower number than its children.
            let parent = task.parent.index();
            let parents = is_its.get(parent).copied().unwrap_or(false);
            let parent = self.tasks.get(parent).map(|it| it.group);
            is_its.push(parents || wanted(task.group, parent));
            if is_its.last() == Some(&true) && task.has_run {
                last = last.max(Some(task.rests.unwrap_or(self.end)));
            }
        }
        last
    }

    fn take(&mut self, event: &Event) {
        match event.what() {
            What::New { group, parent, .. } => self.tasks.push(Worker {
                group,
                parent,
                rests: Some(event.time),
                has_run: false,
            }),
            What::Wakeup(_) => self.goes_on(event.task),
            What::Switch { prev, state, .. } => {
                if let Some(task) = self.tasks.get_mut(prev.index()) {
                    task.rests = (state != PrevState::Runnable).then_some(event.time);
                }
                if let Some(task) = self.tasks.get_mut(event.task.index()) {
                    (task.rests, task.has_run) = (None, true);
                }
            }
            What::Exit => {
                if let Some(task) = self.tasks.get_mut(event.task.index()) {
                    task.rests = Some(event.time);
                }
            }
            _ => {}
        }
    }

    fn goes_on(&mut self, task: TaskId) {
        if let Some(task) = self.tasks.get_mut(task.index()) {
            task.rests = None;
        }
    }
}

impl Sink for LastWork {
    fn wants(&self) -> EventMask {
        EventMask::SCHED
    }

    fn begin(&mut self, _: &Header) {}

    fn events(&mut self, events: &[Event]) {
        events.iter().for_each(|event| self.take(event));
    }

    fn finish(&mut self, end: SimTime) {
        self.end = end;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use traces::testing::StreamWriter;

    #[test]
    fn work_is_done_when_the_last_task_of_the_tree_rests_and_not_when_the_run_ends() {
        let sleeps = PrevState::Sleeping;
        let stream = StreamWriter::new()
            .born(0, 0, 0, 0)
            .born(0, 1, 1, 0)
            .start(0, 0, 0)
            .switch(1, 0, None, Some(0))
            .switch(50, 0, Some((0, sleeps)), None)
            .start(60, 1, 0)
            .switch(61, 0, None, Some(1))
            .switch(90, 0, Some((1, sleeps)), None);
        let mut work = LastWork::default();
        stream.feed(&mut work, 1, 500);
        let of = |group: u32| work.of(&|it, _| it == group).map(SimTime::as_nanos);
        assert_eq!([of(0), of(1), of(2)], [Some(50), Some(90), None]);
        assert_eq!(work.of(&|_, _| true).map(SimTime::as_nanos), Some(90));
        // Woken once more, it has not done all of its work when the run ends.
        let mut work = LastWork::default();
        stream.wakeup(100, 0, 0).feed(&mut work, 1, 500);
        assert_eq!(work.of(&|it, _| it == 0).map(SimTime::as_nanos), Some(500));
    }
}

//! Waits at the end of a run that is too short to judge them: which of them look as if nobody
//! would end them.

use model::{Nanos, SimTime, TaskId};

use super::Observer;
use super::finding::Finding;

/// A wait that goes on when the run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OpenWait {
    /// Who waits.
    pub task: TaskId,
    /// Since when.
    pub since: SimTime,
    /// A CPU idles that it may use.
    pub is_beside_idle: bool,
}

impl Observer {
    /// When the run ended, as far as it was followed.
    #[must_use]
    pub const fn end(&self) -> SimTime {
        self.end
    }

    /// The waits of the policy's tasks that go on at the end, in the order of their births.
    #[must_use]
    pub fn open_waits(&self) -> Vec<OpenWait> {
        let idles = |task| {
            let mut usable = self.state.usable(task).into_iter();
            usable.any(|cpu| self.state.cpus[cpu.index()].task.is_none())
        };
        let waiting = self.state.waiting().into_iter();
        let waiting = waiting.filter(|task| !self.state.tasks[task.index()].outranks());
        let waits = waiting.filter_map(|task| {
            Some(OpenWait {
                task,
                since: self.state.tasks[task.index()].runnable_since?,
                is_beside_idle: idles(task),
            })
        });
        waits.collect()
    }

    /// The longest wait of the policy's tasks so far, those that go on included. Only those that
    /// [`Observer::new`] keeps are known.
    #[must_use]
    pub fn longest_wait(&self) -> Nanos {
        self.worst().first().map_or(Nanos::ZERO, |wait| wait.span)
    }

    /// What there is to say about the wait of `task` that goes on at the end; `None`: it does not
    /// wait.
    #[must_use]
    pub fn open_finding(&self, task: TaskId) -> Option<Finding> {
        let known = task.index() < self.state.tasks.len();
        let waits = known.then(|| self.state.waited(task, self.end)).flatten();
        waits.map(|_| self.judge().finding(task))
    }
}

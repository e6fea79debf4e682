//! What tasks share: channels, locks, barriers, and one another's sleep.

use model::SimTime;
use workload::{Command, ResourceInstance, TaskRef};

use super::{Executor, Next};
use crate::work::channel::Wakes;
use crate::work::sync::Taken;
use crate::work::task::Waits;
use crate::work::{Action, WorkError};

/// Indices of a declaration and of its instance.
pub(super) const fn at(instance: ResourceInstance) -> (usize, usize) {
    (instance.of as usize, instance.index as usize)
}

impl Executor<'_> {
    /// Leaves the CPU until somebody wakes the task.
    pub(super) fn block(&mut self, waits: Waits) -> Action {
        let state = self.state();
        state.waits = waits;
        state.is_asleep = true;
        Action::Block
    }

    pub(super) fn wake(&mut self, wakes: Wakes) {
        for task in wakes.tasks {
            if self.work.rouse(task) {
                let wake = Action::Wake {
                    task,
                    sync: wakes.sync,
                };
                self.state().pending.push_back(wake);
            }
        }
    }

    /// Sends a message of so many bytes with this value.
    pub(super) fn send(
        &mut self,
        to: ResourceInstance,
        (bytes, value): (u64, i64),
        waited: Option<Waits>,
    ) -> Next {
        let (of, index) = at(to);
        let woken = waited.is_some();
        match self.work.channels[of][index].send((bytes, value), self.now, woken) {
            Some(wakes) => {
                self.wake(wakes);
                Next::Go
            }
            None => {
                self.work.channels[of][index].wait_to_send(self.task);
                Next::Again(self.block(Waits::Room { of, index }))
            }
        }
    }

    pub(super) fn recv(&mut self, from: ResourceInstance, waited: Option<Waits>) -> Next {
        let (of, index) = at(from);
        match self.work.channels[of][index].recv(self.now, waited.is_some()) {
            Some(((value, sent), wakes)) => {
                self.state().stepper.received(sent, value);
                self.wake(wakes);
                Next::Go
            }
            None => {
                self.work.channels[of][index].wait_to_recv(self.task);
                Next::Again(self.block(Waits::Message { of, index }))
            }
        }
    }

    /// Takes a lock, for reading if `reads`.
    pub(super) fn lock(
        &mut self,
        lock: ResourceInstance,
        reads: bool,
        waited: Option<Waits>,
    ) -> Result<Next, WorkError> {
        let (of, index) = at(lock);
        let task = self.task;
        let taken = self.work.locks[of].lock(index, task, reads, waited.is_some());
        // A lock that is handed over is the task's when it goes on, and it will not come here.
        if self.work.locks[of].is_keyed() && matches!(taken, Taken::Yes | Taken::Later) {
            self.state().keys.push((of, index));
        }
        match taken {
            Taken::Yes | Taken::Again => Ok(Next::Go),
            Taken::Later => Ok(Next::Act(self.block(Waits::Lock { of, index }))),
            Taken::Retry => Ok(Next::Again(self.block(Waits::Lock { of, index }))),
            Taken::Twice => Err(WorkError::Lock {
                place: self.place(),
                what: "takes a lock that it holds",
            }),
        }
    }

    pub(super) fn unlock(&mut self, lock: ResourceInstance) -> Result<Next, WorkError> {
        self.give_lock(at(lock))?;
        Ok(Next::Go)
    }

    pub(super) fn give_lock(&mut self, (of, index): (usize, usize)) -> Result<(), WorkError> {
        let Ok(tasks) = self.work.locks[of].unlock(index, self.task) else {
            let what = "gives back a lock that it does not hold";
            return Err(WorkError::Lock {
                place: self.place(),
                what,
            });
        };
        self.state().keys.retain(|&held| held != (of, index));
        self.wake(Wakes { tasks, sync: false });
        Ok(())
    }

    pub(super) fn barrier(&mut self, barrier: ResourceInstance) -> Next {
        let (of, index) = at(barrier);
        let Some(tasks) = self.work.barriers[of][index].arrive(self.task) else {
            self.start_later(barrier);
            return Next::Act(self.block(Waits::Barrier { of, index }));
        };
        self.wake(Wakes { tasks, sync: false });
        Next::Go
    }

    /// If the task waits for the run to begin, and itself begins later, it then goes on sleeping.
    fn start_later(&mut self, barrier: ResourceInstance) {
        let (workload, seed) = (&self.work.workload, self.work.seed);
        let Some(begin) = workload.begin.filter(|begin| begin.gate == barrier.of) else {
            return;
        };
        let stepper = &self.work.tasks[self.task.index()].stepper;
        let start = workload.start(seed, stepper.group(), stepper.index());
        if !start.is_zero() {
            let until = SimTime::ZERO + begin.at + start;
            let state = self.state();
            state.again = Some(Command::SleepUntil(until));
            state.tries_again = true;
        }
    }

    pub(super) fn suspend(&mut self) -> Next {
        if std::mem::take(&mut self.state().is_resumed) {
            return Next::Go;
        }
        Next::Act(self.block(Waits::Resume))
    }

    pub(super) fn resume(&mut self, task: TaskRef) -> Result<Next, WorkError> {
        if let Some(task) = self.target(task)? {
            let tasks = self.work.resume(task).into_iter().collect();
            self.wake(Wakes { tasks, sync: false });
        }
        Ok(Next::Go)
    }
}

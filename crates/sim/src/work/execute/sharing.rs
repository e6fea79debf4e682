//! What tasks share: channels, locks, barriers, and one another's sleep.

use model::workload::{Expr, Place, Target};

use super::{Executor, Next};
use crate::work::channel::Wakes;
use crate::work::sync::Taken;
use crate::work::task::Waits;
use crate::work::{Action, Work, WorkError};

impl Executor<'_> {
    /// The indices of an instance that exists. `name` and `count` tell of a declaration.
    fn instance(
        &mut self,
        Place { of, index }: &Place,
        count: impl Fn(&Work, usize) -> usize,
        name: impl Fn(&Work, usize) -> &str,
    ) -> Result<(usize, usize), WorkError> {
        let (of, index) = (*of as usize, self.eval(index)?);
        let count = count(self.work, of);
        match usize::try_from(index) {
            Ok(instance) if instance < count => Ok((of, instance)),
            _ => Err(WorkError::Index {
                place: self.place(),
                name: name(self.work, of).to_owned(),
                index,
                count: count as u64,
            }),
        }
    }

    fn channel(&mut self, place: &Place) -> Result<(usize, usize), WorkError> {
        self.instance(
            place,
            |work, of| work.channels[of].len(),
            |work, of| &work.workload.channels[of].name,
        )
    }

    /// Leaves the CPU until somebody wakes the task.
    pub(super) fn block(&mut self, waits: Waits) -> Action {
        let state = self.state();
        state.waits = waits;
        state.is_asleep = true;
        Action::Block
    }

    /// Whether the task had waited for the operation that it now executes.
    pub(super) fn had_waited(&mut self) -> bool {
        std::mem::take(&mut self.state().waits) != Waits::Nothing
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

    pub(super) fn send(&mut self, to: &Place, bytes: Option<&Expr>) -> Result<Next, WorkError> {
        let (of, index) = self.channel(to)?;
        let bytes = match bytes {
            Some(bytes) => self
                .within("the message's size", bytes, 1, i64::from(i32::MAX))?
                .unsigned_abs(),
            None => self.work.workload.channels[of].msg,
        };
        let woken = self.had_waited();
        match self.work.channels[of][index].send(bytes, self.now, woken) {
            Some(wakes) => {
                self.wake(wakes);
                Ok(Next::Go)
            }
            None => {
                self.work.channels[of][index].wait_to_send(self.task);
                Ok(Next::Again(self.block(Waits::Room { of, index })))
            }
        }
    }

    pub(super) fn recv(&mut self, from: &Place) -> Result<Next, WorkError> {
        let (of, index) = self.channel(from)?;
        let woken = self.had_waited();
        match self.work.channels[of][index].recv(woken) {
            Some((sent, wakes)) => {
                self.state().message_sent = sent;
                self.wake(wakes);
                Ok(Next::Go)
            }
            None => {
                self.work.channels[of][index].wait_to_recv(self.task);
                Ok(Next::Again(self.block(Waits::Message { of, index })))
            }
        }
    }

    fn mutex(&mut self, place: &Place) -> Result<(usize, usize), WorkError> {
        self.instance(
            place,
            |work, of| work.locks[of].len(),
            |work, of| &work.workload.locks[of].name,
        )
    }

    pub(super) fn lock(&mut self, lock: &Place) -> Result<Next, WorkError> {
        let (of, index) = self.mutex(lock)?;
        match self.work.locks[of][index].lock(self.task) {
            Taken::Yes => Ok(Next::Go),
            Taken::Later => Ok(Next::Act(self.block(Waits::Lock { of, index }))),
            Taken::Retry => Ok(Next::Again(self.block(Waits::Lock { of, index }))),
            Taken::Twice => Err(WorkError::Lock {
                place: self.place(),
                what: "takes a lock that it holds",
            }),
        }
    }

    pub(super) fn unlock(&mut self, lock: &Place) -> Result<Next, WorkError> {
        let (of, index) = self.mutex(lock)?;
        let Ok(next) = self.work.locks[of][index].unlock(self.task) else {
            let what = "gives back a lock that it does not hold";
            return Err(WorkError::Lock {
                place: self.place(),
                what,
            });
        };
        self.wake(Wakes {
            tasks: next.into_iter().collect(),
            sync: false,
        });
        Ok(Next::Go)
    }

    pub(super) fn barrier(&mut self, barrier: &Place) -> Result<Next, WorkError> {
        let (of, index) = self.instance(
            barrier,
            |work, of| work.barriers[of].len(),
            |work, of| &work.workload.barriers[of].name,
        )?;
        let Some(tasks) = self.work.barriers[of][index].arrive(self.task) else {
            return Ok(Next::Act(self.block(Waits::Barrier { of, index })));
        };
        self.wake(Wakes { tasks, sync: false });
        Ok(Next::Go)
    }

    pub(super) fn suspend(&mut self) -> Next {
        if std::mem::take(&mut self.state().is_resumed) {
            return Next::Go;
        }
        Next::Act(self.block(Waits::Resume))
    }

    pub(super) fn resume(&mut self, target: &Target) -> Result<Next, WorkError> {
        if let Some(task) = self.target(target)? {
            let tasks = self.work.resume(task).into_iter().collect();
            self.wake(Wakes { tasks, sync: false });
        }
        Ok(Next::Go)
    }
}

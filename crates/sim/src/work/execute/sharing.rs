//! What tasks share: channels, locks, barriers, and one another's sleep.

use workload::{Expr, Place, Target};

use super::{Executor, Next};
use crate::work::channel::Wakes;
use crate::work::sync::Taken;
use crate::work::task::Waits;
use crate::work::{Action, Work, WorkError};

impl Executor<'_> {
    /// The indices of an instance that exists. `name` and `count` tell of a declaration.
    pub(super) fn instance(
        &mut self,
        Place { of, index }: &Place,
        count: impl Fn(&Work, usize) -> usize,
        name: impl Fn(&Work, usize) -> &str,
    ) -> Result<(usize, usize), WorkError> {
        let (of, index) = (*of as usize, self.eval_or_kept(index)?);
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
        self.waited_for().is_some()
    }

    /// What the task had waited for, for the sake of the operation that it now executes.
    pub(super) fn waited_for(&mut self) -> Option<Waits> {
        let state = self.state();
        let waited = std::mem::take(&mut state.waits);
        (state.tries_again && waited != Waits::Nothing).then_some(waited)
    }

    /// An index, which is drawn only once: who has waited for an instance tries that one again.
    fn eval_or_kept(&mut self, index: &Expr) -> Result<i64, WorkError> {
        let state = self.state();
        let kept = state.waits.instance().filter(|_| state.tries_again);
        match kept {
            Some(kept) => Ok(i64::try_from(kept).expect("an index of a file")),
            None => self.eval(index),
        }
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

    pub(super) fn send(
        &mut self,
        to: &Place,
        bytes: Option<&Expr>,
        value: Option<&Expr>,
    ) -> Result<Next, WorkError> {
        let (of, index) = self.channel(to)?;
        let bytes = match bytes {
            Some(bytes) => self
                .within("the message's size", bytes, 1, i64::from(i32::MAX))?
                .unsigned_abs(),
            None => self.work.workload.channels[of].msg,
        };
        let value = self.eval(value.unwrap_or(&Expr::Me))?;
        let woken = self.had_waited();
        match self.work.channels[of][index].send((bytes, value), self.now, woken) {
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
            Some(((value, sent), wakes)) => {
                (self.state().message_sent, self.state().message_value) = (sent, value);
                self.wake(wakes);
                Ok(Next::Go)
            }
            None => {
                self.work.channels[of][index].wait_to_recv(self.task);
                Ok(Next::Again(self.block(Waits::Message { of, index })))
            }
        }
    }

    pub(super) fn mutex(&mut self, place: &Place) -> Result<(usize, usize), WorkError> {
        self.instance(
            place,
            |work, of| work.locks[of].count as usize,
            |work, of| &work.workload.locks[of].name,
        )
    }

    /// As [`mutex`](Self::mutex), whatever the task had waited for.
    pub(super) fn mutex_anew(&mut self, place: &Place) -> Result<(usize, usize), WorkError> {
        debug_assert_eq!(
            self.state().waits,
            Waits::Nothing,
            "the wait was asked for before"
        );
        self.mutex(place)
    }

    /// Takes a lock, for reading if `reads`.
    pub(super) fn lock(&mut self, lock: &Place, reads: bool) -> Result<Next, WorkError> {
        let place = self.mutex(lock)?;
        self.take_lock(place, reads)
    }

    pub(super) fn take_lock(
        &mut self,
        place: (usize, usize),
        reads: bool,
    ) -> Result<Next, WorkError> {
        let woken = self.had_waited();
        self.take_lock_after(place, reads, woken)
    }

    /// Takes a lock; `woken`: the task had waited for it.
    pub(super) fn take_lock_after(
        &mut self,
        (of, index): (usize, usize),
        reads: bool,
        woken: bool,
    ) -> Result<Next, WorkError> {
        let task = self.task;
        let taken = self.work.locks[of].lock(index, task, reads, woken);
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

    pub(super) fn unlock(&mut self, lock: &Place) -> Result<Next, WorkError> {
        let place = self.mutex(lock)?;
        self.give_lock(place)?;
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

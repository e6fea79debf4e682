//! What tasks share besides channels, mutexes and barriers.

use std::collections::BTreeSet;

use model::{EventKind, TaskId};
use workload::{Command, ResourceInstance, TaskFault};

use super::sharing::at;
use super::{Executor, Next};
use crate::work::channel::Wakes;
use crate::work::requests::retry_after;
use crate::work::task::{Transfer, Waits};
use crate::work::{Action, WorkError};

impl Executor<'_> {
    /// Performs what concerns locks besides mutexes, sockets, disks, memory and keyed spans.
    pub(super) fn perform_shared(
        &mut self,
        command: &Command,
        waited: Option<Waits>,
    ) -> Result<Next, WorkError> {
        Ok(match *command {
            Command::LockShared(lock) => return self.lock(lock, true, waited),
            Command::TryLock { lock, failed } => return self.try_lock(lock, failed, waited),
            Command::UnlockAll(of) => return self.unlock_all(of as usize),
            Command::SemWait(semaphore) => self.sem_wait(semaphore),
            Command::SemPost(semaphore) => return self.sem_post(semaphore),
            Command::CondWait { cond, lock } => return self.cond_wait(cond, lock, waited),
            Command::Signal(cond) => self.signal(cond, false),
            Command::Broadcast(cond) => self.signal(cond, true),
            Command::Connect { to, value } => self.connect(to, value),
            Command::Accept(from) => self.accept(from),
            Command::Done { arrival, request } => return self.done(arrival as usize, request),
            Command::Read { disk, page, pages } => {
                self.read(disk as usize, Transfer { page, pages }, waited)
            }
            Command::Write { disk, page, pages } => {
                self.write(disk as usize, Transfer { page, pages }, waited)
            }
            Command::Sync(disk) => {
                let all = self.work.workload.disks[disk as usize].sync_all;
                self.sync(disk as usize, (all, true), waited)
            }
            Command::WriteBack(disk) => self.sync(disk as usize, (true, false), waited),
            Command::Touch { pages, of } => self.touch(pages, of, waited),
            Command::Reclaim => self.reclaim(waited),
            Command::SpanBegin { span, key } => {
                self.work.spans.insert((span, key), self.now);
                self.record(EventKind::SpanBegin, u64::from(span), 0)
            }
            Command::SpanEnd { span, key } => return self.keyed_span_end(span, key),
            ref other => unreachable!("{other:?} is performed by the caller"),
        })
    }

    fn try_lock(
        &mut self,
        lock: ResourceInstance,
        failed: u32,
        waited: Option<Waits>,
    ) -> Result<Next, WorkError> {
        let refused = self.would_wait_in_a_circle(at(lock));
        self.state().stepper.answer(failed, i64::from(refused));
        if refused {
            return Ok(Next::Go);
        }
        self.lock(lock, false, waited)
    }

    /// Whether somebody who has the lock waits, directly or not, for a lock that this task has.
    /// Asked only where the workload says what to do then: a database rolls back, but a program
    /// with plain mutexes stands still.
    fn would_wait_in_a_circle(&self, (of, index): (usize, usize)) -> bool {
        let holders = |of: usize, index: usize| self.work.locks[of].holders(index);
        if holders(of, index).any(|holder| holder == self.task) {
            return false;
        }
        let mut reached: Vec<TaskId> = holders(of, index).collect();
        let mut seen = BTreeSet::new();
        while let Some(task) = reached.pop() {
            if task == self.task {
                return true;
            }
            let state = &self.work.tasks[task.index()];
            if let (true, Waits::Lock { of, index }) = (state.is_asleep, state.waits)
                && seen.insert(task)
            {
                reached.extend(holders(of, index));
            }
        }
        false
    }

    fn unlock_all(&mut self, of: usize) -> Result<Next, WorkError> {
        let held = self.state().keys.clone();
        for place in held.into_iter().filter(|&(lock, _)| lock == of) {
            self.give_lock(place)?;
        }
        Ok(Next::Go)
    }

    fn sem_wait(&mut self, semaphore: ResourceInstance) -> Next {
        let (of, index) = at(semaphore);
        if self.work.semaphores[of][index].take(self.task) {
            return Next::Go;
        }
        Next::Act(self.block(Waits::Token { of, index }))
    }

    fn sem_post(&mut self, semaphore: ResourceInstance) -> Result<Next, WorkError> {
        let (of, index) = at(semaphore);
        let Ok(next) = self.work.semaphores[of][index].give() else {
            return Err(WorkError::Lock {
                place: self.place(),
                what: "gives a semaphore more than 4294967295 tokens",
            });
        };
        self.wake(Wakes {
            tasks: next.into_iter().collect(),
            sync: false,
        });
        Ok(Next::Go)
    }

    /// First the lock is given back and the signal awaited, then the lock is taken again.
    fn cond_wait(
        &mut self,
        cond: ResourceInstance,
        lock: ResourceInstance,
        waited: Option<Waits>,
    ) -> Result<Next, WorkError> {
        if let Some(waited) = waited {
            let waited = Some(waited).filter(|waited| matches!(waited, Waits::Lock { .. }));
            return self.lock(lock, false, waited);
        }
        let (of, index) = at(cond);
        self.give_lock(at(lock))?;
        self.work.conditions[of][index].push_back(self.task);
        Ok(Next::Again(self.block(Waits::Signal { of, index })))
    }

    fn signal(&mut self, cond: ResourceInstance, all: bool) -> Next {
        let (of, index) = at(cond);
        let waiters = &mut self.work.conditions[of][index];
        let count = if all {
            waiters.len()
        } else {
            1.min(waiters.len())
        };
        let tasks = waiters.drain(..count).collect();
        self.wake(Wakes { tasks, sync: false });
        Next::Go
    }

    /// The number of attempts is 0 again when the connection stands.
    fn connect(&mut self, to: ResourceInstance, value: i64) -> Next {
        let (of, index) = at(to);
        let now = self.now;
        if let Some(woken) = self.work.listeners[of][index].connect(value, now) {
            self.state().attempts = 0;
            self.wake(Wakes {
                tasks: woken.into_iter().collect(),
                sync: true,
            });
            return Next::Go;
        }
        let attempts = &mut self.state().attempts;
        let before = *attempts;
        *attempts = attempts.saturating_add(1);
        let declared = &self.work.workload.listeners[of];
        let (wait, counter) = (retry_after(declared.retry, before), declared.retries);
        self.record(EventKind::Count, u64::from(counter), 1);
        Next::Again(Action::SleepUntil(now + wait))
    }

    fn accept(&mut self, from: ResourceInstance) -> Next {
        let (of, index) = at(from);
        let task = self.task;
        let Some((value, since)) = self.work.listeners[of][index].accept(task) else {
            return Next::Again(self.block(Waits::Connection { of, index }));
        };
        self.state().stepper.received(since, value);
        Next::Go
    }

    fn done(&mut self, arrival: usize, number: i64) -> Result<Next, WorkError> {
        let work = &mut *self.work;
        let declared = &work.workload.requests[arrival];
        let Some(ended) = work.arrivals[arrival].done(declared, number, self.now) else {
            let name = declared.irq.name.clone();
            return Err(WorkError::NoRequest {
                place: self.place(),
                name,
                number,
            });
        };
        let (span, lost, retries, cpu) = (
            u64::from(declared.span),
            u64::from(declared.lost),
            u64::from(declared.retries),
            declared.irq.cpu,
        );
        work.is_stopped |= work.requests_are_over();
        self.record(EventKind::SpanEnd, span, ended.latency.get());
        for (counter, by) in [(lost, ended.lost), (retries, ended.retried)] {
            if by > 0 {
                self.record(EventKind::Count, counter, by);
            }
        }
        let source = self.work.arrival_source(arrival);
        let interrupt = |at| Next::Act(Action::Interrupt { source, cpu, at });
        Ok(ended.next.map_or(Next::Go, interrupt))
    }

    fn keyed_span_end(&mut self, span: u32, key: i64) -> Result<Next, WorkError> {
        let Some(begin) = self.work.spans.remove(&(span, key)) else {
            let name = format!("{}, {key}", self.work.workload.spans[span as usize]);
            return Err(self.fault(TaskFault::not_begun(&name, "span_begin")));
        };
        let length = self.now.since(begin).get();
        Ok(self.record(EventKind::SpanEnd, u64::from(span), length))
    }
}

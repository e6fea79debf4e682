//! What tasks share besides channels, mutexes and barriers.

use std::collections::BTreeSet;

use model::{EventKind, TaskId};
use workload::{CGROUP_WEIGHTS, CgroupOp, DeviceOp, Expr, Place};

use super::{Executor, Next};
use crate::work::channel::Wakes;
use crate::work::requests::retry_after;
use crate::work::task::Waits;
use crate::work::{Action, CgroupChange, WorkError};

impl Executor<'_> {
    pub(super) fn device(&mut self, op: &DeviceOp) -> Result<Next, WorkError> {
        match op {
            DeviceOp::LockShared(lock) => self.lock(lock, true),
            DeviceOp::TryLock { lock, failed } => self.try_lock(lock, *failed),
            DeviceOp::UnlockAll(of) => self.unlock_all(*of as usize),
            DeviceOp::SemWait(semaphore) => self.sem_wait(semaphore),
            DeviceOp::SemPost(semaphore) => self.sem_post(semaphore),
            DeviceOp::CondWait { cond, lock } => self.cond_wait(cond, lock),
            DeviceOp::Signal(cond) => self.signal(cond, false),
            DeviceOp::Broadcast(cond) => self.signal(cond, true),
            DeviceOp::Connect { to, value, slot } => self.connect(to, value, *slot),
            DeviceOp::Accept(from) => self.accept(from),
            DeviceOp::Done { arrival, request } => self.done(*arrival as usize, request),
            DeviceOp::Read { disk, bytes, at } => self.read(*disk, bytes, at),
            DeviceOp::Write { disk, bytes, at } => self.write(*disk, bytes, at),
            DeviceOp::Sync(disk) => {
                let all = self.work.workload.disks[*disk as usize].sync_all;
                Ok(self.sync(*disk, all, true))
            }
            DeviceOp::WriteBack(disk) => Ok(self.sync(*disk, true, false)),
            DeviceOp::Touch { bytes, of, slots } => self.touch(bytes, of.as_ref(), *slots),
            DeviceOp::Reclaim => Ok(self.reclaim()),
            DeviceOp::Cgroup(op) => self.cgroup(op),
            DeviceOp::SpanBegin { span, key } => {
                let key = self.eval(key)?;
                self.work.spans.insert((*span, key), self.now);
                Ok(self.record(EventKind::SpanBegin, u64::from(*span), 0))
            }
            DeviceOp::SpanEnd { span, key } => self.keyed_span_end(*span, key),
        }
    }

    fn cgroup(&mut self, op: &CgroupOp) -> Result<Next, WorkError> {
        let (number, change) = match op {
            CgroupOp::Move {
                target,
                to,
                process,
            } => {
                let (to, process) = (*to, *process);
                return self.change(target, |task| Action::MoveCgroup { task, to, process });
            }
            CgroupOp::Weight { of, weight } => {
                let (low, high) = (*CGROUP_WEIGHTS.start(), *CGROUP_WEIGHTS.end());
                let weight = self.within("the weight", weight, low, high)?;
                let weight = u32::try_from(weight).expect("the range was checked");
                (*of, CgroupChange::Weight(weight))
            }
            CgroupOp::Max { of, max } => (*of, CgroupChange::Max(*max)),
            CgroupOp::Idle { of, idle } => {
                let idle = self.within("cpu.idle", idle, 0, 1)?;
                (*of, CgroupChange::Idle(idle == 1))
            }
        };
        Ok(Next::Act(Action::SetCgroup { number, change }))
    }

    fn try_lock(&mut self, lock: &Place, failed: u32) -> Result<Next, WorkError> {
        let place = self.mutex(lock)?;
        let refused = self.would_wait_in_a_circle(place);
        self.state().variables[failed as usize] = i64::from(refused);
        if refused {
            self.had_waited();
            return Ok(Next::Go);
        }
        self.take_lock(place, false)
    }

    /// Whether somebody who has the lock waits, directly or not, for a lock that this task has.
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

    fn sem_wait(&mut self, semaphore: &Place) -> Result<Next, WorkError> {
        let (of, index) = self.semaphore(semaphore)?;
        if self.work.semaphores[of][index].take(self.task) {
            return Ok(Next::Go);
        }
        Ok(Next::Act(self.block(Waits::Token { of, index })))
    }

    fn sem_post(&mut self, semaphore: &Place) -> Result<Next, WorkError> {
        let (of, index) = self.semaphore(semaphore)?;
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

    fn semaphore(&mut self, place: &Place) -> Result<(usize, usize), WorkError> {
        self.instance(
            place,
            |work, of| work.semaphores[of].len(),
            |work, of| &work.workload.semaphores[of].name,
        )
    }

    /// First the lock is given back and the signal awaited, then the lock is taken again.
    fn cond_wait(&mut self, cond: &Place, lock: &Place) -> Result<Next, WorkError> {
        let waited = self.waited_for();
        let lock = self.mutex_anew(lock)?;
        if let Some(waited) = waited {
            let tries_again = matches!(waited, Waits::Lock { .. });
            return self.take_lock_after(lock, false, tries_again);
        }
        let (of, index) = self.condition(cond)?;
        self.give_lock(lock)?;
        self.work.conditions[of][index].push_back(self.task);
        Ok(Next::Again(self.block(Waits::Signal { of, index })))
    }

    fn signal(&mut self, cond: &Place, all: bool) -> Result<Next, WorkError> {
        let (of, index) = self.condition(cond)?;
        let waiters = &mut self.work.conditions[of][index];
        let count = if all {
            waiters.len()
        } else {
            1.min(waiters.len())
        };
        let tasks = waiters.drain(..count).collect();
        self.wake(Wakes { tasks, sync: false });
        Ok(Next::Go)
    }

    fn condition(&mut self, place: &Place) -> Result<(usize, usize), WorkError> {
        self.instance(
            place,
            |work, of| work.conditions[of].len(),
            |work, of| &work.workload.conditions[of].name,
        )
    }

    fn listener(&mut self, place: &Place) -> Result<(usize, usize), WorkError> {
        self.instance(
            place,
            |work, of| work.listeners[of].len(),
            |work, of| &work.workload.listeners[of].name,
        )
    }

    /// The attempts' number is kept in a variable; it is 0 again when the connection stands.
    fn connect(&mut self, to: &Place, value: &Expr, slot: u32) -> Result<Next, WorkError> {
        let (of, index) = self.listener(to)?;
        let value = self.eval(value)?;
        let now = self.now;
        if let Some(woken) = self.work.listeners[of][index].connect(value, now) {
            self.state().variables[slot as usize] = 0;
            self.wake(Wakes {
                tasks: woken.into_iter().collect(),
                sync: true,
            });
            return Ok(Next::Go);
        }
        let attempts = &mut self.state().variables[slot as usize];
        let before = u32::try_from(*attempts).unwrap_or(u32::MAX);
        *attempts = attempts.saturating_add(1);
        let declared = &self.work.workload.listeners[of];
        let (wait, counter) = (retry_after(declared.retry, before), declared.retries);
        self.record(EventKind::Count, u64::from(counter), 1);
        Ok(Next::Again(Action::SleepUntil(now + wait)))
    }

    fn accept(&mut self, from: &Place) -> Result<Next, WorkError> {
        let (of, index) = self.listener(from)?;
        self.had_waited();
        let task = self.task;
        let Some((value, since)) = self.work.listeners[of][index].accept(task) else {
            return Ok(Next::Again(self.block(Waits::Connection { of, index })));
        };
        (self.state().message_value, self.state().message_sent) = (value, since);
        Ok(Next::Go)
    }

    fn done(&mut self, arrival: usize, request: &Expr) -> Result<Next, WorkError> {
        let number = self.eval(request)?;
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

    fn keyed_span_end(&mut self, span: u32, key: &Expr) -> Result<Next, WorkError> {
        let key = self.eval(key)?;
        let Some(begin) = self.work.spans.remove(&(span, key)) else {
            let name = self.work.workload.spans[span as usize].clone();
            return Err(WorkError::NotBegun {
                place: self.place(),
                name: format!("{name}, {key}"),
                what: "span_begin",
            });
        };
        let length = self.now.since(begin).get();
        Ok(self.record(EventKind::SpanEnd, u64::from(span), length))
    }
}

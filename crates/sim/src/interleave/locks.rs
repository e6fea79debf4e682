//! The kernel's locks, where turns wait for each other.
//!
//! Source: kernel/sched/core.c and kernel/sched/ext.c, kernel 6.18: `__schedule()`,
//! `try_to_wake_up()`, `consume_remote_task()`, `dispatch_to_local_dsq()`, `finish_dispatch()`.

use model::{CpuId, Op, TaskId};

use super::state::{LockKey, TurnWait};
use super::table::{LocksHeld, has};
use crate::flags::Waker;
use crate::machine::{Machine, Vm};
use crate::pending::Pending;
use crate::task::{OpsState, RunState};

impl Machine {
    /// Notes that `op` is called, if it is under locks that the table does not have.
    #[cold]
    pub(crate) fn check_locks(&mut self, op: Op, subject: Option<TaskId>) {
        let kernel = self.spec.kernel;
        let Some(all) = self.interleaving.as_deref_mut() else {
            return;
        };
        // Nobody else is there while one is alone, and behind the end.
        if all.races.is_none() || all.still > 0 || all.is_over {
            return;
        }
        let mine = all.locks.iter().filter(|(_, by)| **by == all.current);
        let (mut run_queue, mut task) = (false, false);
        for (key, _) in mine {
            run_queue |= matches!(key, LockKey::RunQueue(_));
            task |= subject.map(LockKey::Task) == Some(*key);
        }
        let held = LocksHeld { run_queue, task };
        if !has(op, held, kernel) {
            all.unlisted.insert((op.name(), held));
        }
    }

    /// Takes a lock, and waits for it if another turn holds it. Whether it was taken and is to be
    /// released: not if this turn holds it already.
    pub(crate) fn lock(&mut self, vm: &mut Vm, key: LockKey) -> bool {
        loop {
            if let Some(taken) = self.lock_or_wait(vm, key) {
                return taken;
            }
        }
    }

    /// A step of [`Machine::lock`]. `None`: it has waited, and looks again who holds the lock.
    fn lock_or_wait(&mut self, vm: &mut Vm, key: LockKey) -> Option<bool> {
        let Some(all) = self.interleaving.as_deref_mut() else {
            return Some(false);
        };
        match all.holds(key) {
            None => {
                let current = all.current;
                all.locks.insert(key, current);
                if let Some(races) = &mut all.races {
                    races.take(self.turn.exec, key);
                }
                Some(true)
            }
            Some(holder) if holder == all.current => Some(false),
            // Outside of turns everybody else has ended, or never will.
            Some(_) if !vm.is_in_turn() => Some(false),
            Some(_) => {
                self.wait(vm, TurnWait::Lock(key));
                None
            }
        }
    }

    /// As [`Machine::lock`], but takes nothing if whoever holds the lock waits for this turn, by
    /// itself or through others. That is looked at again after each wait: the lock may have another
    /// holder then.
    ///
    /// Source: `check_deadlock_AA()` and `check_deadlock_ABBA()` in kernel/bpf/rqspinlock.c, kernel
    /// 7.3, where a longer circle ends with a timeout.
    pub(crate) fn lock_without_deadlock(&mut self, vm: &mut Vm, key: LockKey) -> bool {
        loop {
            let all = self.interleaving.as_deref();
            if all.is_some_and(|all| all.waits_for_itself(key)) {
                return false;
            }
            if let Some(taken) = self.lock_or_wait(vm, key) {
                return taken;
            }
        }
    }

    /// Releases a lock that this turn has taken.
    pub(crate) fn unlock(&mut self, key: LockKey) {
        if let Some(all) = self.interleaving.as_deref_mut() {
            all.locks.remove(&key);
            if let Some(races) = &mut all.races {
                races.release(self.turn.exec, key);
            }
            self.wake_waiting(key, 1);
        }
    }

    /// A turn has ended: a program that faulted may have left a spin lock locked.
    pub(super) fn release_rest(&mut self, number: usize) {
        let Some(all) = self.interleaving.as_deref() else {
            return;
        };
        let held = all.locks.iter().filter(|(_, holder)| **holder == number);
        let held: Vec<_> = held.map(|(key, _)| *key).collect();
        for key in held {
            debug_assert!(
                matches!(key, LockKey::Spin(_)),
                "a turn has ended and holds {key:?}"
            );
            self.unlock(key);
        }
    }

    /// Who waits for a lock of another turn's goes on, as many as `most`.
    fn wake_waiting(&mut self, key: LockKey, most: usize) {
        let now = self.now;
        let Some(all) = self.interleaving.as_deref_mut() else {
            return;
        };
        for _ in 0..most {
            let first = all.queue.iter().position(|(wanted, _)| *wanted == key);
            let Some((_, number)) = first.and_then(|at| all.queue.remove(at)) else {
                return;
            };
            let Some(turn) = all.turns[number].as_mut() else {
                continue;
            };
            turn.waits = Some(TurnWait::Until(now));
            if !all.is_over {
                let what = Pending::Turn {
                    number: number as u32,
                };
                self.queue.push(now, turn.cpu, what);
            }
        }
    }

    /// Whether a turn that waits holds the lock of `cpu`'s run queue.
    pub(crate) fn is_locked_by_another(&self, cpu: CpuId) -> bool {
        let all = self.interleaving.as_deref();
        all.is_some_and(|all| {
            let holder = all.holds(LockKey::RunQueue(cpu));
            holder.is_some_and(|holder| holder != all.current)
        })
    }

    /// Whether this turn has the lock of `id`.
    pub(crate) fn holds_task(&self, id: TaskId) -> bool {
        let all = self.interleaving.as_deref();
        all.is_some_and(|all| all.holds(LockKey::Task(id)) == Some(all.current))
    }

    /// A switch of `cpu` has ended: who waits for that may wake the task that had it.
    pub(crate) fn end_switch(&mut self, cpu: CpuId) {
        if self.interleaving.is_some() {
            self.wake_waiting(LockKey::Switch(cpu), usize::MAX);
        }
    }

    /// Waits until no other turn has the lock of any of these run queues. The own ones are dropped
    /// meanwhile, as a kernel does it, and taken again; whether that was so: then the caller looks
    /// again at what it does.
    pub(crate) fn reach_run_queues(&mut self, vm: &mut Vm, cpus: [CpuId; 2]) -> bool {
        let mut has_waited = false;
        while let Some(&cpu) = cpus.iter().find(|cpu| self.is_locked_by_another(**cpu)) {
            if !vm.is_in_turn() {
                return has_waited;
            }
            let mine = self.drop_run_queues();
            if self.lock(vm, LockKey::RunQueue(cpu)) {
                self.unlock(LockKey::RunQueue(cpu));
            }
            self.take_run_queues_again(vm, mine);
            has_waited = true;
        }
        has_waited
    }

    /// Releases the run queues that this turn has locked.
    pub(crate) fn drop_run_queues(&mut self) -> Vec<LockKey> {
        let Some(all) = self.interleaving.as_deref() else {
            return Vec::new();
        };
        let mine = all
            .locks
            .iter()
            .filter(|(key, holder)| **holder == all.current && matches!(key, LockKey::RunQueue(_)));
        let mine: Vec<_> = mine.map(|(key, _)| *key).collect();
        mine.iter().for_each(|key| self.unlock(*key));
        mine
    }

    /// Undoes [`Machine::drop_run_queues`].
    pub(crate) fn take_run_queues_again(&mut self, vm: &mut Vm, mine: Vec<LockKey>) {
        for key in mine {
            self.lock(vm, key);
        }
    }

    /// Waits for the end of `ops.enqueue` that is called for `id` on another CPU.
    ///
    /// Source: `wait_ops_state()`, kernel 6.18.
    pub(crate) fn await_enqueue(&mut self, vm: &mut Vm, id: TaskId) {
        if !matches!(self.task(id).ops_state, OpsState::Queueing(_)) {
            return;
        }
        if self.lock(vm, LockKey::Enqueue(id)) {
            self.unlock(LockKey::Enqueue(id));
        }
    }

    /// Whether `id`, which sleeps, is still to be woken by who has its `pi_lock` now.
    ///
    /// Source: `try_to_wake_up()`, kernel 6.18, and `ttwu_runnable()`: one that is still on its run
    /// queue only goes on; else its last switch must have ended.
    pub(crate) fn is_to_be_woken(&mut self, vm: &mut Vm, id: TaskId, sleep: u64) -> bool {
        let is_same = |machine: &Self| {
            let task = machine.task(id);
            task.state == RunState::Sleeping && task.sleep_generation == sleep
        };
        loop {
            if !is_same(self) {
                return false;
            }
            let cpu = self.task(id).cpu;
            if self.is_falling_asleep(id) {
                let key = LockKey::RunQueue(cpu);
                let taken = self.lock(vm, key);
                let goes_on = is_same(self) && self.is_falling_asleep(id);
                if goes_on {
                    let task = self.task_mut(id);
                    task.state = RunState::Runnable;
                    task.sleep_generation += 1;
                    self.mirror_state(id);
                }
                if taken {
                    self.unlock(key);
                }
                if goes_on {
                    return false;
                }
            } else if self.is_running(id) && vm.is_in_turn() {
                self.wait(vm, TurnWait::Lock(LockKey::Switch(cpu)));
            } else {
                return true;
            }
        }
    }

    /// As [`Machine::wake`], of one CPU of several that may wake `id` at a time.
    pub(crate) fn wake_under_lock(&mut self, vm: &mut Vm, id: TaskId, by: Waker) {
        let task = self.task(id);
        let sleep = task.sleep_generation;
        if task.state != RunState::Sleeping {
            return;
        }
        let key = LockKey::Task(id);
        let taken = self.lock(vm, key);
        if self.is_to_be_woken(vm, id, sleep) {
            self.wake_sleeper(vm, id, by);
        }
        if taken {
            self.unlock(key);
        }
    }

    /// What is done to `id`, for which a kernel has `task_rq_lock()`: its own lock and that of its
    /// run queue.
    pub(crate) fn under_task_locks(
        &mut self,
        vm: &mut Vm,
        id: TaskId,
        action: impl FnOnce(&mut Self, &mut Vm),
    ) {
        let own = self.lock(vm, LockKey::Task(id));
        let (mut cpu, mut taken) = (self.task(id).cpu, false);
        while self.interleaves() {
            taken = self.lock(vm, LockKey::RunQueue(cpu));
            if self.task(id).cpu == cpu {
                break;
            }
            if taken {
                self.unlock(LockKey::RunQueue(cpu));
            }
            cpu = self.task(id).cpu;
        }
        action(self, vm);
        if taken {
            self.unlock(LockKey::RunQueue(cpu));
        }
        if own {
            self.unlock(LockKey::Task(id));
        }
    }
}

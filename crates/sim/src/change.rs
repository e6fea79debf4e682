//! What one task does to another, or to itself: nice value, affinity, policy, yield.
//!
//! A change takes the task out of its queues, sets the value, and puts it back; a running task is
//! stopped and started again on its CPU. All of it runs on the caller's CPU. Source:
//! `set_user_nice()`, `__set_cpus_allowed_ptr()`, `__sched_setscheduler()` and their callbacks in
//! the policy's class, kernel 6.18.

use model::{Change, CpuId, Op, TaskClass, TaskId, What};
use workload::{CpuSet, SchedPolicy};

use crate::cpu::Todo;
use crate::flags::{deq, enq};
use crate::idle::rotate;
use crate::interleave::state::LockKey;
use crate::kernels::Weighs;
use crate::machine::{Machine, Vm};
use crate::mask::{Mask, MaskId};
use crate::ops::{Call, CallOwner};
use crate::task::{Class, OpsState, RunState, ScxState, class_of, weight_of};

/// A class as events write it.
const fn told_class(class: Class) -> TaskClass {
    match class {
        Class::Stop => TaskClass::Stop,
        Class::Rt => TaskClass::RealTime,
        Class::Fair => TaskClass::Fair,
        Class::Ext => TaskClass::Policy,
        Class::Idle => TaskClass::Idle,
        Class::Dl => TaskClass::Deadline,
    }
}

impl Machine {
    /// Changes a nice value.
    pub(crate) fn set_nice(&mut self, vm: &mut Vm, id: TaskId, nice: i8) {
        if self.task(id).nice == nice || self.task(id).state == RunState::Dead {
            return;
        }
        self.change(vm, id, deq::SAVE | deq::NOCLOCK, |machine, vm| {
            machine.task_mut(id).nice = nice;
            machine.set_weight(vm, id);
        });
        self.emit_change(id, Change::Nice(nice.into()));
    }

    /// Changes the CPUs that a task may run on.
    pub(crate) fn set_affinity(&mut self, vm: &mut Vm, id: TaskId, cpus: &CpuSet) {
        if self.task(id).state == RunState::Dead {
            return;
        }
        let mask = self.mask_of(Some(cpus));
        if self.task(id).seldom.affinity == mask {
            return;
        }
        if self.task(id).class == Class::Dl {
            return self.refuse_deadline(id, "CPUs of a deadline task: the kernel answers EBUSY");
        }
        if self.task(id).migration_disabled > 0 && !self.masks.has(mask, self.task(id).cpu) {
            // `affine_move_task()`, kernel 6.18: whoever asks waits until the section ends.
            let name = self.name(id);
            self.note(format!(
                "an affinity of {name} is left out: a kernel lets whoever asks wait until the \
                 section that forbids migration ends"
            ));
            return;
        }
        // The kernel chooses the destination before it knows whether it will need one.
        let rotor = &mut self.cpus[self.turn.exec].rotor;
        let allowed = self.masks.get(mask);
        let Some(target) = rotate(rotor, allowed, self.idle.topology().online()) else {
            let name = self.name(id);
            self.note(format!(
                "an affinity of {name} has no CPU that is online; the kernel refuses it"
            ));
            return;
        };
        let leaves = !self.masks.has(mask, self.task(id).cpu);
        self.change(vm, id, deq::SAVE | deq::NOCLOCK, |machine, vm| {
            machine.allow(id, mask);
            if machine.task(id).class == Class::Ext {
                machine.call_set_cpumask(vm, id);
            }
            if leaves && machine.is_running(id) {
                machine.send_away(id, target);
            }
        });
        self.emit_affinity(id);
        let cpu = self.task(id).cpu;
        if leaves && self.is_running(id) {
            self.resched(cpu);
        } else if leaves && self.task(id).state == RunState::Runnable {
            self.move_queued_task(vm, id, target);
        }
    }

    /// Has the migration thread move a running task to `target`. What an earlier change wanted is
    /// forgotten: that CPU may be forbidden now.
    ///
    /// Source: `affine_move_task()`, kernel 6.18, where a second change writes its CPU into the
    /// request of the first.
    fn send_away(&mut self, id: TaskId, target: CpuId) {
        let cpu = self.task(id).cpu;
        let leaving = &mut self.cpus[cpu].others_mut().to_move;
        match leaving.iter_mut().find(|&&mut (other, _)| other == id) {
            Some((_, wanted)) => *wanted = target,
            None => leaving.push((id, target)),
        }
    }

    /// Changes a scheduling policy, and with it perhaps the class.
    pub(crate) fn set_policy(&mut self, vm: &mut Vm, id: TaskId, policy: SchedPolicy) {
        if self.task(id).seldom.policy == policy || self.task(id).state == RunState::Dead {
            return;
        }
        let old = self.task(id).class;
        let new = class_of(
            policy,
            self.scheds.root.attachment.is_attached(),
            self.is_partial(),
        );
        if !self.admit(id, policy) {
            return;
        }
        let moves = if old == new && old != Class::Rt {
            0
        } else {
            deq::MOVE
        };
        let moves = if old == new {
            moves
        } else {
            moves | self.rules.class_bit
        };
        self.change(vm, id, deq::SAVE | deq::NOCLOCK | moves, |machine, vm| {
            machine.task_mut(id).seldom.policy = policy;
            machine.mirror_policy(id);
            let leaves = old == Class::Ext && new != Class::Ext;
            match machine.rules.weighs_leavers {
                Weighs::Never if leaves => {
                    machine.task_mut(id).weight = weight_of(policy, machine.task(id).nice);
                }
                Weighs::Behind if leaves => {
                    machine.disable_task(vm, id);
                    machine.task_mut(id).weight = weight_of(policy, machine.task(id).nice);
                    machine.call_set_weight(vm, id);
                }
                _ => machine.set_weight(vm, id),
            }
            machine.task_mut(id).class = new;
            if new == Class::Ext && old != Class::Ext {
                machine.enable_task(vm, id);
                machine.tell_mask_at_switch(vm, id);
            }
        });
        if old == Class::Ext && new != Class::Ext {
            self.disable_task(vm, id);
        }
        self.emit_change(id, Change::class(told_class(new)));
        let cpu = self.task(id).cpu;
        if self.is_running(id) {
            self.resched(cpu);
        } else if self.task(id).state == RunState::Runnable {
            self.wakeup_preempt(cpu, id);
        }
    }

    /// `sched_yield()` of the task that runs on `cpu`.
    pub(crate) fn yield_task(&mut self, vm: &mut Vm, cpu: CpuId, id: TaskId) {
        self.cpus[cpu].counts.yields += 1;
        match self.task(id).class {
            Class::Ext => {
                self.update_curr(cpu);
                if self.scheduler_of(id).ops.has(Op::Yield) {
                    let held = self.take_own(vm, cpu);
                    let address = self.task(id).address;
                    let none = u64::from(TaskId::NONE.0);
                    self.call(
                        vm,
                        &Call {
                            op: Op::Yield,
                            locked: Some(cpu),
                            asked: CallOwner::Owner,
                            subject: Some(id),
                            args: [address, 0],
                            words: (none, 0),
                        },
                    );
                    self.give_run_queue(held);
                } else {
                    self.set_slice(id, 0);
                    self.tell_slice(id, model::Sliced::Cut);
                }
            }
            Class::Dl => self.yield_deadline(id),
            Class::Rt => self.rotate_rt(cpu, id),
            Class::Fair => self.rotate_fair(cpu),
            Class::Stop | Class::Idle => unreachable!("no task has this class"),
        }
        self.cpus[cpu].todo.add(Todo::RESCHED);
    }

    /// Takes the task out of its queues, applies `apply`, and puts it back.
    pub(crate) fn change(
        &mut self,
        vm: &mut Vm,
        id: TaskId,
        flags: u64,
        apply: impl FnOnce(&mut Self, &mut Vm),
    ) {
        // One that sleeps from now on is in its queue until its CPU has the lock of that.
        let queued = self.task(id).state == RunState::Runnable || self.is_falling_asleep(id);
        self.change_queued(vm, id, (flags, queued), apply);
    }

    /// As [`Machine::change`], of a task that is `queued`: one that sleeps from now on still is.
    pub(crate) fn change_queued(
        &mut self,
        vm: &mut Vm,
        id: TaskId,
        (flags, queued): (u64, bool),
        apply: impl FnOnce(&mut Self, &mut Vm),
    ) {
        let running = self.is_running(id);
        let cpu = self.task(id).cpu;
        if queued {
            self.dequeue_task(vm, id, flags);
        }
        if running {
            self.update_curr(cpu);
        }
        apply(self, vm);
        if queued {
            // The bits of a save read as those of a restore on the way in.
            self.enqueue_task(vm, id, flags);
        }
        if running {
            self.set_next_task(vm, cpu, id);
        }
    }

    /// Recomputes the weight from policy and nice value; a policy's task is told.
    pub(crate) fn set_weight(&mut self, vm: &mut Vm, id: TaskId) {
        let task = self.task(id);
        let weight = weight_of(task.seldom.policy, task.nice);
        let told = task.class == Class::Ext && task.scx_state == ScxState::Enabled;
        self.task_mut(id).weight = weight;
        self.mirror_policy(id);
        if told {
            self.call_set_weight(vm, id);
        }
    }

    pub(crate) fn call_set_weight(&mut self, vm: &mut Vm, id: TaskId) {
        let task = self.task(id);
        let (cpu, address, weight) = (task.cpu, task.address, u64::from(task.weight));
        self.call(
            vm,
            &Call {
                op: Op::SetWeight,
                locked: Some(cpu),
                asked: CallOwner::Owner,
                subject: Some(id),
                args: [address, weight],
                words: (weight, 0),
            },
        );
    }

    /// A task came into the policy's class, which is told where it may run unless it has heard of
    /// that with the task.
    ///
    /// Source: `switching_to_scx()`, kernel 7.3.
    pub(crate) fn tell_mask_at_switch(&mut self, vm: &mut Vm, id: TaskId) {
        if !(self.is_cid_form() && self.rules.enables_with_mask) {
            self.call_set_cpumask(vm, id);
        }
    }

    pub(crate) fn call_set_cpumask(&mut self, vm: &mut Vm, id: TaskId) {
        self.tell_allowed(id);
        if self.is_cid_form() {
            return self.tell_changed_cmask(vm, id);
        }
        let argument = self.mirror.cpus_address(self.task(id), &self.masks);
        self.call_set_mask(vm, id, argument);
    }

    /// Calls `ops.set_cpumask()` or `ops.set_cmask()`, which finds the CPUs that the task may use
    /// at `argument`.
    pub(crate) fn call_set_mask(&mut self, vm: &mut Vm, id: TaskId, argument: u64) {
        let task = self.task(id);
        let (cpu, address, mask) = (task.cpu, task.address, task.cpus);
        let count = u64::from(self.masks.count(mask));
        let low = self.masks.get(mask).words()[0];
        self.call(
            vm,
            &Call {
                op: Op::SetCpumask,
                locked: Some(cpu),
                asked: CallOwner::Owner,
                subject: Some(id),
                args: [address, argument],
                words: (count, low),
            },
        );
    }

    /// Moves a runnable task that does not run to another CPU's run queue, as the kernel does
    /// after an affinity change: the policy sees a new enqueue, but no new wait.
    ///
    /// Source: `move_queued_task()`, kernel 6.18.
    pub(crate) fn move_queued_task(&mut self, vm: &mut Vm, id: TaskId, target: CpuId) {
        if !self.interleaves() {
            self.leave_run_queue(vm, id);
            return self.come_to_run_queue(vm, id, target);
        }
        if self.holds_task(id) {
            return self.move_under_locks(vm, id, target);
        }
        // Nobody waits for a task's lock who has that of a run queue.
        let mine = self.drop_run_queues();
        self.under_task_locks(vm, id, |machine, vm| {
            machine.move_under_locks(vm, id, target);
        });
        self.take_run_queues_again(vm, mine);
    }

    /// As [`Machine::move_queued_task`], by who has the task's locks. No kernel has those of both
    /// run queues: in between the task is in none.
    fn move_under_locks(&mut self, vm: &mut Vm, id: TaskId, target: CpuId) {
        let task = self.task(id);
        let (cpu, mask) = (task.cpu, task.cpus);
        let stays = self.masks.has(mask, cpu) && self.is_online(cpu);
        if stays || task.state != RunState::Runnable || self.is_running(id) {
            return;
        }
        let is_usable = self.masks.has(mask, target) && self.is_online(target);
        let target = if is_usable {
            target
        } else {
            self.fallback_cpu(vm, id)
        };
        self.leave_run_queue(vm, id);
        let mine = self.drop_run_queues();
        let key = LockKey::RunQueue(target);
        let taken = self.lock(vm, key);
        self.come_to_run_queue(vm, id, target);
        if taken {
            self.unlock(key);
        }
        self.take_run_queues_again(vm, mine);
    }

    /// A runnable task that does not run leaves its run queue for another one.
    fn leave_run_queue(&mut self, vm: &mut Vm, id: TaskId) {
        if self.task(id).class != Class::Ext {
            return self.dequeue_task(vm, id, deq::NOCLOCK);
        }
        self.leave_custody(vm, id, deq::NOCLOCK);
        self.leave_dsq(id);
        self.tell_removed(id, false);
        let task = self.task_mut(id);
        task.ops_state = OpsState::None;
        task.direct = None;
    }

    /// It comes to that of `target`.
    fn come_to_run_queue(&mut self, vm: &mut Vm, id: TaskId, target: CpuId) {
        self.set_task_cpu(id, target);
        if self.task(id).class == Class::Ext {
            self.do_enqueue(vm, id, enq::MIGRATED, false);
        } else {
            self.enqueue_task(vm, id, enq::MIGRATED);
        }
        self.wakeup_preempt(target, id);
        self.run_deferred(vm, target);
    }

    /// Whether only tasks of class `SCHED_EXT` are the policy's.
    pub(crate) fn is_partial(&self) -> bool {
        self.scheds.root.ops.flag(crate::flags::ops::SWITCH_PARTIAL)
    }

    /// Records that a task may use other CPUs than before.
    pub(crate) fn emit_affinity(&mut self, id: TaskId) {
        let count = self.masks.count(self.task(id).seldom.affinity);
        self.emit_change(id, Change::Affinity(count.into()));
    }

    fn emit_change(&mut self, id: TaskId, change: Change) {
        let cpu = self.task(id).cpu;
        self.emit(id, cpu, What::Change(change));
    }

    /// `mask` becomes the affinity of `id`. While it must not migrate, it may still run on no
    /// other CPU than before.
    ///
    /// Source: `set_cpus_allowed_common()`, kernel 6.18: `cpus_mask` changes, and `cpus_ptr` shows
    /// it unless a section that forbids migration has pointed it elsewhere.
    pub(crate) fn allow(&mut self, id: TaskId, mask: MaskId) {
        let is_free = self.task(id).migration_disabled == 0 || self.unbound.contains(&id);
        let task = self.task_mut(id);
        task.seldom.affinity = mask;
        if is_free {
            task.cpus = mask;
        }
        self.mirror_cpus(id);
    }

    /// The mask of the one CPU to which a task of this affinity is bound that must not migrate:
    /// `cpu` if it may run there, else the first where it may.
    ///
    /// Source: `migrate_disable_switch()`, kernel 6.18, which binds a task to where it is.
    pub(crate) fn bound_near(&mut self, affinity: MaskId, cpu: CpuId) -> MaskId {
        let allowed = self.masks.get(affinity);
        let usable = allowed.and(self.idle.topology().online());
        let near = usable.has(cpu).then_some(cpu);
        let cpu = near.or_else(|| usable.first()).or_else(|| allowed.first());
        self.bound_to(cpu.expect("no task has an empty affinity"))
    }

    /// The mask that has `cpu` and no other.
    pub(crate) fn bound_to(&mut self, cpu: CpuId) -> MaskId {
        let mut mask = Mask::empty(self.spec.cpus);
        mask.insert(cpu);
        self.masks.intern(mask)
    }

    /// The mask of an affinity; `None`: all CPUs.
    pub(crate) fn mask_of(&mut self, cpus: Option<&CpuSet>) -> MaskId {
        let Some(cpus) = cpus else { return MaskId::ALL };
        let mut mask = Mask::empty(self.spec.cpus);
        cpus.within(self.spec.cpus)
            .iter()
            .for_each(|cpu| mask.insert(cpu));
        assert!(
            !mask.is_empty(),
            "the workload checks that a CPU of an affinity exists"
        );
        self.masks.intern(mask)
    }
}

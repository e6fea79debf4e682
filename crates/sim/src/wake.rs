//! Wakeups.
//!
//! Source: `try_to_wake_up()`, `select_task_rq()`, `ttwu_do_activate()` and
//! `select_task_rq_scx()`, as 6.12 and 7.2 have them alike. Everything here runs on the waker's
//! CPU.

use model::{Cause, CpuId, EventKind, Op, TaskId, WakeCause, Wakeup, What};

use crate::flags::{Waker, enq, wake};
use crate::idle::Wanted;
use crate::machine::{Machine, Vm};
use crate::ops::{Call, CallOwner};
use crate::places::AttachPoint;
use crate::task::{Carried, Class, Direct, Phase, RunState};

impl Machine {
    /// Wakes a sleeping task; one that is runnable already is left alone.
    pub(crate) fn wake(&mut self, vm: &mut Vm, id: TaskId, by: Waker) {
        if self.interleaves() {
            return self.wake_under_lock(vm, id, by);
        }
        self.wake_sleeper(vm, id, by);
    }

    /// As [`Machine::wake`], by whoever is the only one to wake it.
    #[inline(always)]
    pub(crate) fn wake_sleeper(&mut self, vm: &mut Vm, id: TaskId, by: Waker) {
        let task = self.task(id);
        let (state, from) = (task.state, task.cpu);
        if state != RunState::Sleeping {
            return;
        }
        if self.hooked.any() {
            self.trace_task(vm, AttachPoint::SchedWaking, id);
        }
        let held = self.take_machine();
        let flags = match by {
            Waker::Sleeper => wake::TTWU | wake::SYNC,
            Waker::Nobody | Waker::Current => wake::TTWU,
        };
        self.begin_waking(id);
        let (cpu, selected) = self.select_task_rq(vm, id, from, flags);
        let mut enqueue = enq::WAKEUP | enq::NOCLOCK;
        if selected {
            enqueue |= enq::CPU_SELECTED;
        }
        if cpu != from {
            enqueue |= enq::MIGRATED;
        }
        if cpu != self.turn.exec {
            self.charge(|costs| costs.wakeup_remote);
        }
        self.activate(vm, id, (cpu, enqueue), by);
        self.give_run_queue(held);
    }

    /// `id` is being woken: `__state` says so from the choice of its CPU on.
    #[inline(always)]
    pub(crate) fn begin_waking(&mut self, id: TaskId) {
        self.task_mut(id).waking = true;
        self.mirror_state(id);
    }

    /// Makes a new task runnable on `cpu`.
    #[inline(never)]
    pub(crate) fn activate_new(&mut self, vm: &mut Vm, id: TaskId, cpu: CpuId, flags: u64) {
        self.activate(vm, id, (cpu, flags | enq::INITIAL), Waker::Current);
    }

    /// Makes a sleeping or new task runnable on `cpu`; with [`enq::MIGRATED`] it was on another.
    #[inline(always)]
    fn activate(&mut self, vm: &mut Vm, id: TaskId, (cpu, flags): (CpuId, u64), by: Waker) {
        let new = flags & enq::INITIAL != 0;
        if new {
            // The first placement is no migration.
            self.task_mut(id).cpu = cpu;
            self.mirror_cpu(id);
        } else if flags & enq::MIGRATED != 0 {
            self.migrate(id, cpu);
        }
        self.moment.grant();
        let held = self.take_run_queue(vm, cpu);
        if self.wants(EventKind::Wakeup) {
            let waker = match by {
                Waker::Nobody => TaskId::NONE,
                Waker::Current | Waker::Sleeper => self.current().unwrap_or(TaskId::NONE),
            };
            let wakeup = Wakeup {
                waker,
                waker_cpu: self.turn.exec,
                sync: by == Waker::Sleeper,
                new,
                cause: WakeCause::Unsaid,
            };
            self.emit_wanted(id, cpu, What::Wakeup(wakeup));
        }
        let now = self.now;
        let task = self.task_mut(id);
        task.state = RunState::Runnable;
        task.waking &= !new;
        task.sleep_generation += 1;
        task.enter(Phase::Wait, now);
        self.enqueue_task_here(vm, id, flags);
        if new && self.hooked.any() {
            self.trace_task(vm, AttachPoint::SchedWakeupNew, id);
        }
        self.wakeup_preempt(cpu, id);
        self.task_mut(id).waking = false;
        self.mirror_state(id);
        if !new && self.hooked.any() {
            self.trace_task(vm, AttachPoint::SchedWakeup, id);
        }
        if self.deferred.any() {
            self.run_deferred(vm, cpu);
        }
        self.give_run_queue(held);
    }

    /// Whether a task that became runnable on `cpu` takes it from what runs there.
    ///
    /// Source: `wakeup_preempt()`, kernel 6.18; no class of the policy's tasks preempts itself.
    #[inline(always)]
    pub(crate) fn wakeup_preempt(&mut self, cpu: CpuId, id: TaskId) {
        let (new, curr) = (self.task(id).class, self.class_on(cpu));
        if new < curr || new == curr && new <= Class::Rt && self.is_more_urgent(id, cpu) {
            if new < Class::Ext {
                self.disturb_immed(cpu);
            }
            self.resched(cpu);
        } else if new == Class::Dl {
            self.spread_deadlines();
        }
    }

    /// The CPU for a task that becomes runnable, and whether the class was asked.
    #[inline(always)]
    pub(crate) fn select_task_rq(
        &mut self,
        vm: &mut Vm,
        id: TaskId,
        prev: CpuId,
        flags: u64,
    ) -> (CpuId, bool) {
        let task = self.task(id);
        let (mask, class) = (task.cpus, task.class);
        let asked = self.masks.count(mask) > 1 && !self.cannot_migrate(id);
        let cpu = match (asked, class) {
            (false, _) => self.only_allowed(id),
            (true, Class::Ext) => self.select_cpu_ext(vm, id, prev, flags),
            (true, Class::Dl) => prev,
            (true, class) => self.select_cpu_other(class, id, prev),
        };
        let allowed = self.masks.has(mask, cpu) && self.is_online(cpu);
        let cpu = if allowed {
            cpu
        } else {
            self.fallback_cpu(vm, id)
        };
        (cpu, asked)
    }

    #[cold]
    fn select_cpu_other(&mut self, class: Class, id: TaskId, prev: CpuId) -> CpuId {
        match class {
            Class::Rt => self.select_cpu_rt(id, prev),
            _ => self.select_cpu_fair(id, prev),
        }
    }

    /// Where a task goes that has no choice.
    #[inline]
    fn only_allowed(&self, id: TaskId) -> CpuId {
        let task = self.task(id);
        // Who must not migrate by its own doing has one CPU in its mask.
        if task.migration_disabled == 0 && self.cannot_migrate(id) {
            return task.cpu;
        }
        self.masks
            .get(task.cpus)
            .first()
            .expect("no task has an empty affinity")
    }

    /// Asks the policy, or the built-in rule when it has none.
    #[inline(always)]
    fn select_cpu_ext(&mut self, vm: &mut Vm, id: TaskId, prev: CpuId, flags: u64) -> CpuId {
        if !self.scheduler_of(id).ops.has(Op::SelectCpu) || self.bypasses(id) {
            let wanted = Wanted {
                prev,
                wake_flags: flags,
                within: None,
                flags: 0,
            };
            let found = self.select_cpu_default(id, &wanted);
            if found.is_some() {
                self.refill_slice(id);
                let direct = Direct {
                    dsq_id: crate::flags::dsq::LOCAL,
                    flags: 0,
                    carried: Carried {
                        slice: crate::flags::SLICE_DFL,
                        vtime: 0,
                    },
                    cause: Cause::KERNEL,
                };
                self.task_mut(id).direct = Some(direct);
            }
            let cpu = found.unwrap_or(prev);
            self.task_mut(id).selected_cpu = cpu;
            return cpu;
        }
        let (address, number) = (self.task(id).address, self.number_of(prev));
        let result = self.call(
            vm,
            &Call {
                op: Op::SelectCpu,
                locked: None,
                asked: CallOwner::Owner,
                subject: Some(id),
                args: [address, number, flags],
                words: (flags, u64::from(prev.0)),
            },
        );
        let number = i64::from(result.unwrap_or(number) as i32);
        let Some(cpu) = self.cpu_meant_by(self.owner(id), number) else {
            let message = format!("invalid CPU {number} from ops.select_cpu()");
            self.error_of(self.owner(id), message);
            return prev;
        };
        self.task_mut(id).selected_cpu = cpu;
        cpu
    }
}

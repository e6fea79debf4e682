//! CPUs that go offline and come back.
//!
//! Source: `sched_cpu_deactivate()`, `balance_push()`, `select_fallback_rq()` in
//! `kernel/sched/core.c`, and `handle_hotplug()` in `kernel/sched/ext.c`, kernel 6.18. A CPU that
//! goes offline hands no work out any more, but goes on scheduling until no task belongs to it:
//! whatever it picks is pushed to another CPU.

use model::{CpuId, ExitKind, Op, TaskId};

use crate::cpu::{Curr, Todo};
use crate::machine::{Machine, Vm};
use crate::mask::MaskId;
use crate::ops::{Call, CallOwner};
use crate::pending::{Packed, Pending};
use crate::schedulers::SchedId;
use crate::task::Class;

/// `SCX_ECODE_ACT_RESTART | SCX_ECODE_RSN_HOTPLUG`, kernel 6.18.
const RESTART_FOR_HOTPLUG: i64 = 1 << 48 | 1 << 32;

impl Machine {
    /// Whether `cpu` has not been taken away.
    #[inline]
    pub(crate) fn is_online(&self, cpu: CpuId) -> bool {
        self.idle.topology().is_online(cpu)
    }

    /// Puts what the workload wants to happen to CPUs into the queue.
    pub(crate) fn plan_hotplug(&mut self) {
        let workload = std::sync::Arc::clone(&self.workload);
        for planned in &workload.hotplugs {
            let times = [(Some(planned.offline), false), (planned.online, true)];
            for (after, online) in times {
                if let Some(after) = after {
                    let when = model::SimTime::ZERO + after;
                    self.queue
                        .push(when, planned.cpu, Pending::Hotplug { online });
                }
            }
        }
    }

    /// `cpu` goes offline or comes back.
    pub(crate) fn hotplug(&mut self, vm: &mut Vm, cpu: CpuId, online: bool) {
        if self.is_online(cpu) == online {
            return;
        }
        self.scheds.root.attachment.count_hotplug();
        self.idle.set_online(cpu, online);
        self.mirror
            .write_online(vm.memory(), self.idle.topology().online());
        self.show_online(vm.memory());
        if self.has_subs {
            self.caps_are_stale(cpu);
        }
        if self.scheds.root.attachment.is_attached() {
            let op = if online {
                Op::CpuOnline
            } else {
                Op::CpuOffline
            };
            if !self.scheds.root.ops.has(op) {
                let way = if online { "online" } else { "offline" };
                let message = format!("cpu {cpu} going {way}, exiting scheduler");
                self.eject(
                    SchedId::ROOT,
                    ExitKind::UnregKern,
                    RESTART_FOR_HOTPLUG,
                    message,
                );
                return;
            }
            let (number, told) = (u64::from(cpu.0), self.number_of(cpu));
            self.call(
                vm,
                &Call {
                    op,
                    locked: None,
                    asked: CallOwner::Root,
                    subject: None,
                    args: [told],
                    words: (number, 0),
                },
            );
        }
        self.cpus[cpu].todo.add(Todo::RESCHED);
    }

    /// Has the task that an offline CPU has picked pushed to another CPU; whether there is one.
    #[inline]
    pub(crate) fn push_away(&mut self, vm: &mut Vm, cpu: CpuId) -> bool {
        !self.is_online(cpu) && self.push_task_away(vm, cpu)
    }

    #[cold]
    fn push_task_away(&mut self, vm: &mut Vm, cpu: CpuId) -> bool {
        let Curr::Task(id) = self.cpus[cpu].curr() else {
            return false;
        };
        let target = self.fallback_cpu(vm, id);
        self.cpus[cpu].others_mut().to_move.push((id, target));
        true
    }

    /// The CPU for a task that may not stay where it is: the lowest that it may use in its node,
    /// then anywhere. When none is left, it may use all CPUs from now on.
    ///
    /// Source: `select_fallback_rq()`, kernel 6.18.
    pub(crate) fn fallback_cpu(&mut self, vm: &mut Vm, id: TaskId) -> CpuId {
        let task = self.task(id);
        let stays = self.cannot_migrate(id) && self.is_online(task.cpu);
        if stays && self.masks.has(task.cpus, task.cpu) {
            return task.cpu;
        }
        let allowed = self.masks.get(task.seldom.affinity);
        let near = self.idle.topology().near(task.cpu).and(allowed);
        let online = self.idle.topology().online();
        if let Some(cpu) = near.first().or_else(|| online.and(allowed).first()) {
            self.bind_again(vm, id, cpu);
            return cpu;
        }
        let from = task.cpu;
        let first = online.first().expect("one CPU is always online");
        let name = self.name(id);
        self.note(format!("process {name} no longer affine to cpu{from}"));
        self.allow(id, MaskId::ALL);
        if self.task(id).class == Class::Ext {
            self.call_set_cpumask(vm, id);
        }
        self.emit_affinity(id);
        self.bind_again(vm, id, first);
        first
    }

    /// A task that must not migrate has lost the CPU to which it was bound: it is bound to `cpu`.
    ///
    /// A kernel takes no CPU away before such a section has ended (`balance_hotplug_wait()`, 6.18);
    /// a workload has no end of it.
    fn bind_again(&mut self, vm: &mut Vm, id: TaskId, cpu: CpuId) {
        let task = self.task(id);
        if task.migration_disabled == 0 || self.masks.has(task.cpus, cpu) {
            return;
        }
        let (name, from) = (self.name(id), task.cpu);
        self.note(format!(
            "{name} moves from CPU {from} to CPU {cpu}, because its CPU goes offline; a kernel \
             waits until the section that forbids migration ends, and a workload has no end of it"
        ));
        self.task_mut(id).cpus = self.bound_to(cpu);
        self.mirror_cpus(id);
        if self.task(id).class == Class::Ext {
            self.call_set_cpumask(vm, id);
        }
    }

    /// Where what should happen on `cpu` takes place: timers and interrupts of an offline CPU are
    /// served by the first that is online.
    #[inline]
    pub(crate) fn serving_cpu(&self, cpu: CpuId, what: Packed) -> CpuId {
        if self.idle.topology().all_are_online() {
            return cpu;
        }
        self.serving_cpu_of_some(cpu, what.unpacked())
    }

    #[cold]
    fn serving_cpu_of_some(&self, cpu: CpuId, what: Pending) -> CpuId {
        let stays = matches!(
            what,
            Pending::WorkDone | Pending::Resume | Pending::Tick | Pending::Hotplug { .. }
        );
        if stays || self.is_online(cpu) {
            return cpu;
        }
        let first = self.idle.topology().online().first();
        first.expect("one CPU is always online")
    }
}

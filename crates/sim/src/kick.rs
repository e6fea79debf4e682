//! `scx_bpf_kick_cpu()`.
//!
//! A kick is noted on the calling CPU and carried out by an interrupt that the CPU sends itself:
//! as soon as it enables interrupts. Source: `scx_kick_cpu()` and `kick_cpus_irq_workfn()`,
//! kernel 6.18.

use model::{CpuId, Kicked, Sliced, TaskId, What};

use crate::cpu::{Curr, Todo};
use crate::flags::kick;
use crate::machine::{Machine, Vm};
use crate::task::Class;

impl Machine {
    /// Notes a kick of `target`.
    pub(crate) fn kick(&mut self, target: CpuId, flags: u64) {
        if self.bypassing != 0 && self.is_bypassed_by(self.caller()) {
            self.tell_kick(target, Kicked::Dropped);
            return;
        }
        let mut flags = flags;
        if self.has_subs {
            let Some(admitted) = self.admitted_kick(self.caller(), target, flags) else {
                self.tell_kick(target, Kicked::Dropped);
                return;
            };
            flags = admitted;
        }
        let caller = self.turn.exec;
        self.emit(TaskId::NONE, target, What::Kick { flags, caller });
        if flags & kick::IDLE != 0 {
            if flags & (kick::PREEMPT | kick::WAIT) != 0 {
                self.error("PREEMPT/WAIT cannot be used with SCX_KICK_IDLE");
                return;
            }
            // The kernel looks only if it gets the run queue's lock at the first try.
            let locked =
                self.turn.contexts.hold_lock_of(target) || self.is_locked_by_another(target);
            if !locked && self.skips_idle_kick(target) {
                self.tell_kick(target, Kicked::Dropped);
                return;
            }
            self.tell_asked_kick(target, flags);
            self.kicks[caller].if_idle.insert(target);
        } else {
            self.tell_asked_kick(target, flags);
            let kicks = &mut self.kicks[caller];
            kicks.kick.insert(target);
            if flags & kick::PREEMPT != 0 {
                kicks.preempt.insert(target);
            }
            if flags & kick::WAIT != 0 {
                kicks.wait.insert(target);
            }
        }
        self.cpus[caller].todo.add(Todo::KICKS);
    }

    /// A plain kick of the CPU itself, after `ops.dispatch` went round too often.
    pub(crate) fn kick_self(&mut self, cpu: CpuId) {
        self.kicks[cpu].kick.insert(cpu);
        self.cpus[cpu].todo.add(Todo::KICKS);
        self.poke(cpu);
    }

    fn skips_idle_kick(&self, target: CpuId) -> bool {
        self.cpus[target].curr() != Curr::Idle && !self.cpus[target].balances
    }

    /// Carries out the kicks noted on `cpu`: by CPU number, plain ones first.
    pub(crate) fn run_kicks(&mut self, vm: &mut Vm, cpu: CpuId) {
        let mut next = self.kicks[cpu].kick.first();
        while let Some(target) = next {
            let kicks = &mut self.kicks[cpu];
            kicks.kick.remove(target);
            kicks.wait.remove(target);
            let preempt = kicks.preempt.has(target);
            kicks.preempt.remove(target);
            self.reach_run_queues(vm, [target, target]);
            if preempt {
                self.end_slice(target);
            }
            self.resched(target);
            self.tell_kick(target, Kicked::Taken);
            next = self.kicks[cpu].kick.next_from(target.0 + 1);
        }
        let mut next = self.kicks[cpu].if_idle.first();
        while let Some(target) = next {
            self.kicks[cpu].if_idle.remove(target);
            self.reach_run_queues(vm, [target, target]);
            let skipped = self.skips_idle_kick(target);
            if !skipped {
                self.resched(target);
            }
            self.tell_kick(
                target,
                if skipped {
                    Kicked::Dropped
                } else {
                    Kicked::Taken
                },
            );
            next = self.kicks[cpu].if_idle.next_from(target.0 + 1);
        }
        self.cpus[cpu].todo.strike(Todo::KICKS);
    }

    /// The slice of the policy's task on `target` is over.
    pub(crate) fn end_slice(&mut self, target: CpuId) {
        if let Curr::Task(id) = self.cpus[target].curr()
            && self.task(id).class == Class::Ext
            && !self.cpus[target].is_put_back
        {
            self.update_curr(target);
            self.set_slice(id, 0);
            self.tell_slice(id, Sliced::Cut);
        }
    }
}

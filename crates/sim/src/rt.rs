//! Real-time and fair tasks, as far as a policy's tasks feel them: they take the CPU away.
//!
//! Approximated: real-time tasks choose a CPU when they wake and are not pulled or pushed later;
//! fair tasks, which exist before a policy is attached and beside one that switches only tasks of
//! class `SCHED_EXT`, take turns. docs/fidelity.md says so.

use model::{CpuId, TaskId};
use workload::SchedPolicy;

use crate::cpu::Curr;
use crate::flags::enq;
use crate::machine::Machine;
use crate::task::Class;

/// `RR_TIMESLICE`, nanoseconds (`include/linux/sched/rt.h`, kernel 6.18).
const RR_TIMESLICE: u64 = 100_000_000;
/// Turn of a fair task, nanoseconds: the default base slice of one to eight CPUs is 0.7 to 2.8 ms
/// (`sysctl_sched_base_slice`, `kernel/sched/fair.c`, kernel 6.18).
const FAIR_TURN: u64 = 2_800_000;

impl Machine {
    /// The real-time priority of a task: 1 to 99, 99 most urgent; above that a deadline task's.
    fn rt_priority(&self, id: TaskId) -> u8 {
        match self.task(id).seldom.policy {
            SchedPolicy::Fifo(priority) | SchedPolicy::RoundRobin(priority) => priority,
            SchedPolicy::Deadline(_) => u8::MAX,
            _ => 0,
        }
    }

    /// Whether a real-time or deadline task takes `cpu` from the task of its class that runs
    /// there.
    pub(crate) fn is_more_urgent(&self, id: TaskId, cpu: CpuId) -> bool {
        self.cpus[cpu].curr().task().is_some_and(|curr| {
            if self.task(id).class == Class::Dl {
                return self.is_due_before(id, curr);
            }
            self.task(curr).class == Class::Rt && self.rt_priority(id) > self.rt_priority(curr)
        })
    }

    /// Behind those of its priority; a task that was changed while it ran stays in front.
    pub(crate) fn enqueue_rt(&mut self, id: TaskId, flags: u64) {
        let (cpu, priority) = (self.task(id).cpu, self.rt_priority(id));
        let front = flags & enq::RESTORE != 0 && self.cpus[cpu].curr() == Curr::Task(id);
        let queue = &self.cpus[cpu].others().rt;
        let at = queue.iter().position(|&other| {
            let theirs = self.rt_priority(other);
            theirs < priority || front && theirs == priority
        });
        let at = at.unwrap_or(queue.len());
        self.cpus[cpu].others_mut().rt.insert(at, id);
    }

    /// The CPU where the task ran, unless its work there is at least as urgent: then the allowed
    /// CPU with the least urgent work, lowest number first.
    pub(crate) fn select_cpu_rt(&self, id: TaskId, prev: CpuId) -> CpuId {
        let urgency = |cpu: CpuId| match self.cpus[cpu].curr() {
            Curr::Task(curr) => self.rt_priority(curr),
            _ => 0,
        };
        if urgency(prev) < self.rt_priority(id) {
            return prev;
        }
        let allowed = self.masks.get(self.task(id).cpus);
        let allowed = allowed.and(self.idle.topology().online());
        allowed
            .iter()
            .min_by_key(|&cpu| urgency(cpu))
            .unwrap_or(prev)
    }

    /// The previous CPU if it idles, else the first allowed idle one, else the previous one.
    pub(crate) fn select_cpu_fair(&self, id: TaskId, prev: CpuId) -> CpuId {
        let idles = |cpu: CpuId| self.cpus[cpu].curr() == Curr::Idle && self.is_online(cpu);
        if idles(prev) {
            return prev;
        }
        let allowed = self.masks.get(self.task(id).cpus);
        allowed.iter().find(|&cpu| idles(cpu)).unwrap_or(prev)
    }

    /// `SCHED_RR` tasks take turns within a priority.
    pub(crate) fn tick_rt(&mut self, cpu: CpuId, id: TaskId) {
        self.update_curr(cpu);
        let SchedPolicy::RoundRobin(_) = self.task(id).seldom.policy else {
            return;
        };
        let ran = self.task(id).sum_exec;
        if ran / RR_TIMESLICE != (ran.saturating_sub(self.spec.tick().get())) / RR_TIMESLICE {
            self.rotate_rt(cpu, id);
        }
    }

    /// Puts a real-time task behind the others of its priority.
    pub(crate) fn rotate_rt(&mut self, cpu: CpuId, id: TaskId) {
        self.cpus[cpu].others_mut().rt.retain(|&other| other != id);
        self.enqueue_rt(id, 0);
        if self.cpus[cpu].others().rt.first() != Some(&id) {
            self.resched(cpu);
        }
    }

    /// Fair tasks take turns.
    pub(crate) fn tick_fair(&mut self, cpu: CpuId) {
        self.update_curr(cpu);
        let turn = FAIR_TURN.max(self.spec.tick().get());
        let Some(id) = self.cpus[cpu].curr().task() else {
            return;
        };
        let ran = self.task(id).sum_exec;
        if ran / turn != (ran.saturating_sub(self.spec.tick().get())) / turn {
            self.rotate_fair(cpu);
        }
    }

    /// Puts the running fair task behind the others.
    pub(crate) fn rotate_fair(&mut self, cpu: CpuId) {
        let queue = &mut self.cpus[cpu].others_mut().fair;
        if queue.len() > 1 {
            queue.rotate_left(1);
            self.resched(cpu);
        }
    }
}

//! Built-in idle tracking.
//!
//! Two masks: CPUs that idle, and CPUs of wholly idle cores. A CPU that is claimed leaves the mask
//! and stays out until it schedules again; forgetting a claimed CPU is a class of real bugs, so
//! the rule is kept. Source: `kernel/sched/ext_idle.c` of 6.17 to 7.0.

use model::{CpuId, MachineSpec, Op, TaskId};

use crate::cpu::Curr;
use crate::flags::{self, wake};
use crate::machine::{Machine, Vm};
use crate::mask::Mask;
use crate::ops::{Call, Ops};

/// Pick only wholly idle cores (`SCX_PICK_IDLE_CORE`).
pub(crate) const PICK_CORE: u64 = 1;

/// The masks.
pub(crate) struct Idle {
    /// CPUs that idle and are not claimed.
    pub cpu: Mask,
    /// CPUs of cores whose every CPU idles.
    pub smt: Mask,
    /// Whether tracking is on.
    pub enabled: bool,
    /// Hardware threads of a core.
    threads: u16,
    /// CPUs that share a last-level cache; 0: they do not matter to the choice.
    llc: u16,
    cpus: u16,
}

impl Idle {
    /// Masks of a machine whose CPUs all idle: what a kernel starts with.
    pub fn new(spec: &MachineSpec, ops: &Ops) -> Self {
        let all = Mask::all(spec.cpus);
        Self {
            cpu: all.clone(),
            smt: all,
            enabled: !ops.has(Op::UpdateIdle) || ops.flag(flags::ops::KEEP_BUILTIN_IDLE),
            threads: spec.smt.max(1),
            llc: if spec.llc < spec.cpus { spec.llc } else { 0 },
            cpus: spec.cpus,
        }
    }

    /// Whether cores have several hardware threads.
    pub fn has_smt(&self) -> bool {
        self.threads > 1
    }

    fn core(&self, cpu: CpuId) -> impl Iterator<Item = CpuId> + use<> {
        let first = cpu.0 / self.threads * self.threads;
        (first..(first + self.threads).min(self.cpus)).map(CpuId)
    }

    /// CPUs that share a last-level cache with `cpu`.
    fn llc(&self, cpu: CpuId) -> Option<Mask> {
        let size = if self.llc == 0 { return None } else { self.llc };
        let first = cpu.0 / size * size;
        let mut mask = Mask::empty(self.cpus);
        (first..(first + size).min(self.cpus)).for_each(|cpu| mask.insert(CpuId(cpu)));
        Some(mask)
    }

    fn share_cache(&self, a: CpuId, b: CpuId) -> bool {
        self.llc == 0 || a.0 / self.llc == b.0 / self.llc
    }

    /// Notes that `cpu` idles or leaves idle.
    fn update(&mut self, cpu: CpuId, idle: bool) {
        if !self.enabled {
            return;
        }
        if idle {
            self.cpu.insert(cpu);
            if self.core(cpu).all(|sibling| self.cpu.has(sibling)) {
                self.core(cpu).for_each(|sibling| self.smt.insert(sibling));
            }
        } else {
            self.cpu.remove(cpu);
            self.core(cpu).for_each(|sibling| self.smt.remove(sibling));
        }
    }

    /// Claims `cpu` if it idles (`scx_idle_test_and_clear_cpu()`). The core leaves the mask of
    /// wholly idle cores even when the claim fails.
    pub fn claim(&mut self, cpu: CpuId) -> bool {
        if self.has_smt() {
            self.core(cpu).for_each(|sibling| self.smt.remove(sibling));
        }
        let idle = self.cpu.has(cpu);
        self.cpu.remove(cpu);
        idle
    }

    /// Picks and claims an idle CPU of `allowed`; the search begins behind `rotor`.
    fn pick(&mut self, rotor: &mut u32, allowed: &Mask, flags: u64) -> Option<CpuId> {
        loop {
            let mut found = None;
            if self.has_smt() {
                found = rotate(rotor, &self.smt, allowed);
                if found.is_none() && flags & PICK_CORE != 0 {
                    return None;
                }
            }
            let cpu = match found {
                Some(cpu) => cpu,
                None => rotate(rotor, &self.cpu, allowed)?,
            };
            if self.claim(cpu) {
                return Some(cpu);
            }
        }
    }

    /// As [`Idle::pick`], first among the CPUs that share a cache with `prev`.
    fn pick_near_then_far(
        &mut self,
        rotor: &mut u32,
        prev: CpuId,
        allowed: &Mask,
        flags: u64,
    ) -> Option<CpuId> {
        let near = self.llc(prev).map(|llc| llc.and(allowed));
        near.and_then(|near| self.pick(rotor, &near, flags))
            .or_else(|| self.pick(rotor, allowed, flags))
    }

    /// An idle thread of the core of `prev`, claimed: what 7.1 and later prefer to other cores.
    fn claim_sibling(&mut self, prev: CpuId, allowed: &Mask) -> Option<CpuId> {
        let mut siblings = self.core(prev);
        let found = siblings.find(|&cpu| cpu != prev && allowed.has(cpu) && self.cpu.has(cpu))?;
        self.claim(found).then_some(found)
    }
}

/// `cpumask_any_and_distribute()`: the CPU of both masks that follows the last one given out on
/// this CPU, in turn.
pub(crate) fn rotate(rotor: &mut u32, a: &Mask, b: &Mask) -> Option<CpuId> {
    let behind = a.next_in_both(b, *rotor as u16 + 1);
    let next = behind.or_else(|| a.next_in_both(b, 0))?;
    *rotor = u32::from(next.0);
    Some(next)
}

impl Machine {
    /// The CPU becomes idle.
    pub(crate) fn enter_idle(&mut self, vm: &mut Vm, cpu: CpuId) {
        self.idle.update(cpu, true);
        self.call_update_idle(vm, cpu, true);
    }

    /// The CPU leaves idle.
    pub(crate) fn leave_idle(&mut self, vm: &mut Vm, cpu: CpuId) {
        self.idle.update(cpu, false);
        self.call_update_idle(vm, cpu, false);
    }

    /// The CPU was rescheduled and stays idle: the masks are refreshed, the policy is not told.
    pub(crate) fn idle_again(&mut self, cpu: CpuId) {
        self.idle.update(cpu, true);
    }

    fn call_update_idle(&mut self, vm: &mut Vm, cpu: CpuId, idle: bool) {
        if self.bypass || !self.attached {
            return;
        }
        let number = u64::from(cpu.0);
        self.call(
            vm,
            &Call {
                op: Op::UpdateIdle,
                locked: Some(cpu),
                subject: None,
                args: &[number, u64::from(idle)],
                words: (u64::from(idle), number),
            },
        );
    }

    /// Picks and claims an idle CPU of `allowed` (`scx_pick_idle_cpu()`).
    pub(crate) fn pick_idle(&mut self, allowed: &Mask, flags: u64) -> Option<CpuId> {
        let rotor = &mut self.cpus[self.exec].rotor;
        self.idle.pick(rotor, allowed, flags)
    }

    /// The built-in choice, as a policy asks for it: a task that cannot move gets its CPU or none.
    ///
    /// Source: `select_cpu_from_kfunc()`, kernel 6.18.
    pub(crate) fn select_idle(
        &mut self,
        id: TaskId,
        prev: CpuId,
        wake_flags: u64,
        within: Option<&Mask>,
        flags: u64,
    ) -> Option<CpuId> {
        let task = self.task(id);
        if self.masks.count(task.cpus) > 1 && task.migration_disabled == 0 {
            return self.select_cpu_default(id, prev, wake_flags, within, flags);
        }
        let allowed = match within {
            Some(within) => within.has(prev),
            None => self.masks.has(task.cpus, prev),
        };
        (allowed && self.idle.claim(prev)).then_some(prev)
    }

    /// The built-in choice of a CPU for a task that wakes; the CPU is claimed.
    ///
    /// Source: `scx_select_cpu_dfl()`, kernel 6.18.
    pub(crate) fn select_cpu_default(
        &mut self,
        id: TaskId,
        prev: CpuId,
        wake_flags: u64,
        within: Option<&Mask>,
        flags: u64,
    ) -> Option<CpuId> {
        // The waker is about to sleep; its own CPU is free when it does.
        let here = self.exec;
        let leaves = self.current().is_some_and(|task| self.task(task).exiting);
        let is_free = !leaves && self.dsqs.is_empty(self.dsqs.local(here));
        let is_7_2 = self.is_7_2();
        let own = self.tasks[id.index()].cpus;
        let (idle, rotor) = (&mut self.idle, &mut self.cpus[here].rotor);
        let both;
        let allowed = match within {
            Some(within) => {
                both = self.masks.get(own).and(within);
                &both
            }
            None => self.masks.get(own),
        };
        if allowed.is_empty() {
            return None;
        }
        let prev_allowed = allowed.has(prev);
        if wake_flags & wake::SYNC != 0 {
            if prev_allowed && idle.share_cache(here, prev) && idle.claim(prev) {
                return Some(prev);
            }
            if is_free && !idle.cpu.is_empty() && allowed.has(here) {
                return Some(here);
            }
        }
        if idle.has_smt() {
            if prev_allowed && idle.smt.has(prev) && idle.claim(prev) {
                return Some(prev);
            }
            let core = idle.pick_near_then_far(rotor, prev, allowed, PICK_CORE);
            if core.is_some() || flags & PICK_CORE != 0 {
                return core;
            }
        }
        if prev_allowed && idle.claim(prev) {
            return Some(prev);
        }
        if idle.has_smt()
            && is_7_2
            && let Some(sibling) = idle.claim_sibling(prev, allowed)
        {
            return Some(sibling);
        }
        idle.pick_near_then_far(rotor, prev, allowed, flags)
    }

    /// Whether `cpu` idles, as the tracking of the kernel's core sees it.
    pub(crate) fn is_idle(&self, cpu: CpuId) -> bool {
        self.cpus[cpu].curr == Curr::Idle
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rotor_gives_out_one_cpu_after_another() {
        let all = Mask::all(4);
        let mut rotor = 0;
        let picks: Vec<_> = (0..5)
            .map(|_| rotate(&mut rotor, &all, &all).unwrap().0)
            .collect();
        assert_eq!(picks, [1, 2, 3, 0, 1]);
        assert_eq!(rotate(&mut rotor, &all, &Mask::empty(4)), None);
        assert_eq!(rotor, 1, "a failed pick leaves the rotor alone");
    }
}

//! Built-in idle tracking.
//!
//! Two masks: CPUs that idle, and CPUs of wholly idle cores. A CPU that is claimed leaves the mask
//! and stays out until it schedules again; forgetting a claimed CPU is a class of real bugs, so
//! the rule is kept. Source: `kernel/sched/ext_idle.c` of 6.17 to 7.0.

use std::rc::Rc;

use model::{CpuId, IdleChange, MachineSpec, Op, TaskId};

use crate::flags::{self, wake};
use crate::machine::{Machine, Vm};
use crate::mask::Mask;
use crate::ops::{Call, CallOwner, Ops};
use crate::schedulers::SchedId;
use crate::topology::Topology;

/// Pick only wholly idle cores (`SCX_PICK_IDLE_CORE`).
pub(crate) const PICK_CORE: u64 = 1;

/// Look only in the node that was given (`SCX_PICK_IDLE_IN_NODE`).
pub(crate) const PICK_IN_NODE: u64 = 2;

/// The masks.
///
/// With masks for each node the kernel has a pair a node. They never overlap, so here one pair
/// serves both ways, and a search in a node sees the node's part.
///
/// Only this module changes them, so that a claimed CPU stays out until it schedules.
#[derive(Clone)]
pub(crate) struct Idle {
    /// CPUs that idle and are not claimed.
    cpu: Mask,
    /// CPUs of cores whose every CPU idles. Without meaning if each CPU is a core: programs are
    /// given the mask above for it then.
    smt: Mask,
    enabled: bool,
    per_node: bool,
    topology: Topology,
    /// Whether caches and nodes matter to the built-in choice.
    uses: (bool, bool),
}

impl Idle {
    /// Whether any CPU idles and is not claimed.
    pub fn has_any(&self) -> bool {
        !self.cpu.is_empty()
    }

    /// Masks of a machine whose CPUs all idle: what a kernel starts with.
    pub fn new(spec: &MachineSpec, ops: &Ops) -> Self {
        let topology = Topology::new(spec);
        let mut idle = Self {
            cpu: topology.online().clone(),
            smt: topology.online().clone(),
            enabled: !ops.has(Op::UpdateIdle) || ops.flag(flags::ops::KEEP_BUILTIN_IDLE),
            per_node: ops.flag(flags::ops::BUILTIN_IDLE_PER_NODE),
            topology,
            uses: (false, false),
        };
        idle.look_at_topology();
        idle
    }

    /// CPUs that idle and are not claimed.
    pub const fn cpus(&self) -> &Mask {
        &self.cpu
    }

    /// CPUs of cores whose every CPU idles.
    pub const fn cores(&self) -> &Mask {
        &self.smt
    }

    /// Whether tracking is on.
    pub const fn is_enabled(&self) -> bool {
        self.enabled
    }

    /// Whether the policy asked for masks for each node.
    pub const fn is_per_node(&self) -> bool {
        self.per_node
    }

    /// Which CPUs belong together, and which are there.
    #[inline]
    pub const fn topology(&self) -> &Topology {
        &self.topology
    }

    /// A CPU goes offline or comes back.
    pub fn set_online(&mut self, cpu: CpuId, online: bool) {
        self.topology.set_online(cpu, online);
        self.look_at_topology();
    }

    /// Decides anew what matters to the built-in choice: CPUs have come or gone.
    fn look_at_topology(&mut self) {
        let nodes = !self.per_node && self.topology.uses_nodes();
        self.uses = (self.topology.uses_llc(), nodes);
    }

    /// Whether cores have several hardware threads.
    pub fn has_smt(&self) -> bool {
        self.topology.has_smt()
    }

    fn core(&self, cpu: CpuId) -> impl Iterator<Item = CpuId> + use<> {
        self.topology.core(cpu)
    }

    /// The node whose masks a search for `cpu` begins in; `None`: there is one pair for all.
    fn start_node(&self, cpu: CpuId) -> Option<u16> {
        self.per_node.then(|| self.topology.node_of(cpu))
    }

    /// Notes that `cpu` idles or leaves idle.
    #[inline]
    fn update(&mut self, cpu: CpuId, idle: bool) {
        if !self.enabled {
            return;
        }
        if !self.has_smt() {
            if idle {
                self.cpu.insert(cpu);
            } else {
                self.cpu.remove(cpu);
            }
            return;
        }
        self.update_core(cpu, idle);
    }

    #[inline(never)]
    fn update_core(&mut self, cpu: CpuId, idle: bool) {
        if idle {
            self.cpu.insert(cpu);
            // A core whose other thread is offline has one thread.
            let siblings = self.core(cpu).filter(|&it| self.topology.is_online(it));
            if siblings.into_iter().all(|sibling| self.cpu.has(sibling)) {
                for sibling in self.core(cpu) {
                    if self.topology.is_online(sibling) {
                        self.smt.insert(sibling);
                    }
                }
            }
        } else {
            self.cpu.remove(cpu);
            self.core(cpu).for_each(|sibling| self.smt.remove(sibling));
        }
    }

    /// Claims `cpu` if it idles (`scx_idle_test_and_clear_cpu()`). The core leaves the mask of
    /// wholly idle cores even when the claim fails.
    #[inline(always)]
    pub fn claim(&mut self, cpu: CpuId) -> bool {
        if self.has_smt() {
            self.core(cpu).for_each(|sibling| self.smt.remove(sibling));
        }
        self.cpu.take(cpu)
    }
}

/// What a built-in choice is asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted<'a> {
    /// The CPU that the task ran on last.
    pub prev: CpuId,
    /// As `ops.select_cpu` gets them ([`wake`]).
    pub wake_flags: u64,
    /// Only one of these, if they are given.
    pub within: Option<&'a Mask>,
    /// [`PICK_CORE`] and [`PICK_IN_NODE`].
    pub flags: u64,
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
    #[inline(always)]
    pub(crate) fn enter_idle(&mut self, vm: &mut Vm, cpu: CpuId) {
        if self.rules.tells_idle_first {
            self.call_update_idle(vm, cpu, true);
        }
        self.idle.update(cpu, true);
        self.tell_idle(cpu, IdleChange::Idles);
        if !self.rules.tells_idle_first {
            self.call_update_idle(vm, cpu, true);
        }
    }

    /// The CPU leaves idle.
    #[inline(always)]
    pub(crate) fn leave_idle(&mut self, vm: &mut Vm, cpu: CpuId) {
        if self.rules.tells_idle_first {
            self.call_update_idle(vm, cpu, false);
        }
        self.idle.update(cpu, false);
        self.tell_idle(cpu, IdleChange::Busy);
        if !self.rules.tells_idle_first {
            self.call_update_idle(vm, cpu, false);
        }
    }

    /// The CPU was rescheduled and stays idle: the masks are refreshed, the policy is not told.
    /// But those are told that have got the CPU.
    pub(crate) fn idle_again(&mut self, vm: &mut Vm, cpu: CpuId) {
        self.idle.update(cpu, true);
        if self.has_subs {
            self.tell_owed_idle(vm, cpu);
        }
    }

    #[inline]
    fn call_update_idle(&mut self, vm: &mut Vm, cpu: CpuId, idle: bool) {
        if self.has_subs {
            return self.tell_idle_to_all(vm, cpu, idle);
        }
        self.tell_idle_to(vm, (SchedId::ROOT, cpu), idle);
    }

    /// Tells the scheduler `who` whether `cpu` idles, if it wants to know.
    #[inline]
    pub(crate) fn tell_idle_to(&mut self, vm: &mut Vm, (who, cpu): (SchedId, CpuId), idle: bool) {
        let sched = &self.scheds[who];
        let is_told = !sched.attachment.bypasses() && sched.attachment.is_attached();
        if sched.ops.has(Op::UpdateIdle) && is_told {
            self.tell_update_idle(vm, (who, cpu), idle);
        }
    }

    #[inline(never)]
    fn tell_update_idle(&mut self, vm: &mut Vm, (who, cpu): (SchedId, CpuId), idle: bool) {
        let (number, told) = (u64::from(cpu.0), self.number_of(cpu));
        self.call(
            vm,
            &Call {
                op: Op::UpdateIdle,
                locked: Some(cpu),
                asked: CallOwner::The(who),
                subject: None,
                args: [told, u64::from(idle)],
                words: (u64::from(idle), number),
            },
        );
    }

    /// Picks and claims an idle CPU of `allowed`. With a node the search begins there and goes on
    /// in the others, from the lowest number, unless the flags say otherwise: all are equally far.
    ///
    /// Source: `scx_pick_idle_cpu()`, kernel 6.18.
    pub(crate) fn pick_idle(
        &mut self,
        allowed: &Mask,
        node: Option<u16>,
        flags: u64,
    ) -> Option<CpuId> {
        let Some(start) = node else {
            return self.pick_idle_in(allowed, flags);
        };
        let found = self.pick_idle_in_node(allowed, node, flags);
        if found.is_some() || flags & PICK_IN_NODE != 0 {
            return found;
        }
        let others = (0..self.idle.topology.nodes()).filter(|&other| other != start);
        others
            .into_iter()
            .find_map(|other| self.pick_idle_in_node(allowed, Some(other), flags))
    }

    fn pick_idle_in_node(
        &mut self,
        allowed: &Mask,
        node: Option<u16>,
        flags: u64,
    ) -> Option<CpuId> {
        match node {
            None => self.pick_idle_in(allowed, flags),
            Some(node) => {
                let there = self.idle.topology.node(node).and(allowed);
                self.pick_idle_in(&there, flags)
            }
        }
    }

    /// Source: `pick_idle_cpu_in_node()`, kernel 6.18.
    fn pick_idle_in(&mut self, allowed: &Mask, flags: u64) -> Option<CpuId> {
        loop {
            let rotor = &mut self.cpus[self.turn.exec].rotor;
            let mut found = None;
            if self.idle.has_smt() {
                found = rotate(rotor, &self.idle.smt, allowed);
                if found.is_none() && flags & PICK_CORE != 0 {
                    return None;
                }
            }
            let cpu = match found {
                Some(cpu) => cpu,
                None => rotate(rotor, &self.idle.cpu, allowed)?,
            };
            if self.idle.claim(cpu) {
                return Some(cpu);
            }
        }
    }

    /// The built-in choice, as a policy asks for it: a task that cannot move gets its CPU or none.
    ///
    /// Source: `select_cpu_from_kfunc()`, kernel 6.18.
    #[inline(always)]
    pub(crate) fn select_idle(&mut self, id: TaskId, wanted: &Wanted<'_>) -> Option<CpuId> {
        let task = self.task(id);
        if self.masks.count(task.cpus) > 1 && !self.cannot_migrate(id) {
            return self.select_cpu_default(id, wanted);
        }
        self.select_for_immovable(id, wanted)
    }

    #[inline(never)]
    fn select_for_immovable(&mut self, id: TaskId, wanted: &Wanted<'_>) -> Option<CpuId> {
        let task = self.task(id);
        if !self.rules.chooses_near {
            return self.select_cpu_plainly(id, wanted);
        }
        if self.rules.chooses_only_cpu {
            return self.select_only_cpu(id, wanted);
        }
        let Wanted { prev, within, .. } = *wanted;
        let allowed = match within {
            Some(within) => within.has(prev),
            None => self.masks.has(task.cpus, prev),
        };
        (allowed && self.idle.claim(prev)).then_some(prev)
    }

    /// The only CPU that a task can run on, claimed.
    ///
    /// Source: `select_cpu_restricted()`, kernel 7.3.
    fn select_only_cpu(&mut self, id: TaskId, wanted: &Wanted<'_>) -> Option<CpuId> {
        let task = self.task(id);
        let cpus = self.masks.get(task.cpus);
        let cpu = if self.cannot_migrate(id) {
            task.cpu
        } else {
            cpus.first()?
        };
        let wished = wanted.within.is_none_or(|within| within.has(cpu));
        let near = wanted.flags & PICK_IN_NODE == 0
            || self.idle.start_node(cpu) == self.idle.start_node(wanted.prev);
        (cpus.has(cpu) && wished && near && self.idle.claim(cpu)).then_some(cpu)
    }

    /// The built-in choice before there were caches and nodes in it.
    ///
    /// Source: `scx_select_cpu_dfl()`, kernel 6.12.
    fn select_cpu_plainly(&mut self, id: TaskId, wanted: &Wanted<'_>) -> Option<CpuId> {
        let Wanted {
            prev, wake_flags, ..
        } = *wanted;
        let allowed = self.masks.shared(self.task(id).cpus);
        let here = self.turn.exec;
        if wake_flags & wake::SYNC != 0 {
            let leaves = self.current().is_some_and(|task| self.task(task).exiting);
            let local = self.dsqs.local(here);
            let free = !leaves && self.dsqs.is_empty(local) && !self.idle.cpu.is_empty();
            if free && allowed.has(here) {
                return Some(here);
            }
        }
        if self.idle.has_smt() {
            if self.idle.smt.has(prev) && self.idle.claim(prev) {
                return Some(prev);
            }
            let core = self.pick_idle(&allowed, None, PICK_CORE);
            if core.is_some() {
                return core;
            }
        }
        if self.idle.claim(prev) {
            return Some(prev);
        }
        self.pick_idle(&allowed, None, 0)
    }

    /// The built-in choice of a CPU for a task that wakes; the CPU is claimed.
    ///
    /// Source: `scx_select_cpu_dfl()`, kernel 6.18.
    #[inline(always)]
    pub(crate) fn select_cpu_default(&mut self, id: TaskId, wanted: &Wanted<'_>) -> Option<CpuId> {
        // Most often nothing else needs to be looked at.
        if self.rules.chooses_near
            && wanted.within.is_none()
            && wanted.wake_flags & wake::SYNC == 0
            && !self.idle.has_smt()
            && self.masks.has(self.task(id).cpus, wanted.prev)
            && self.idle.claim(wanted.prev)
        {
            return Some(wanted.prev);
        }
        // A copy, so that a choice made above need not be in memory.
        let wanted = Wanted { ..*wanted };
        self.search_cpu(id, &wanted)
    }

    /// As [`Machine::select_cpu_default`], where the CPU of before is not simply free.
    #[inline(never)]
    fn search_cpu(&mut self, id: TaskId, wanted: &Wanted<'_>) -> Option<CpuId> {
        if !self.rules.chooses_near {
            return self.select_cpu_plainly(id, wanted);
        }
        let Wanted {
            prev,
            wake_flags,
            within,
            flags,
        } = *wanted;
        let mut allowed = self.masks.shared(self.task(id).cpus);
        if let Some(within) = within {
            allowed = Rc::new(allowed.and(within));
        }
        if allowed.is_empty() {
            return None;
        }
        let prev_allowed = allowed.has(prev);
        let node = self.idle.start_node(prev);
        let (by_llc, by_node) = self.idle.uses;
        let topology = &self.idle.topology;
        let near = [
            by_llc.then(|| topology.llc(prev).and(&allowed)),
            by_node.then(|| topology.near(prev).and(&allowed)),
        ];
        if wake_flags & wake::SYNC != 0
            && let Some(cpu) = self.select_for_sync(prev, prev_allowed, &allowed, flags)
        {
            return Some(cpu);
        }
        if self.idle.has_smt() {
            if prev_allowed && self.idle.smt.has(prev) && self.idle.claim(prev) {
                return Some(prev);
            }
            let core = self.pick_near_then_far(&near, &allowed, node, flags | PICK_CORE);
            if core.is_some() || flags & PICK_CORE != 0 {
                return core;
            }
        }
        if prev_allowed && self.idle.claim(prev) {
            return Some(prev);
        }
        if self.idle.has_smt()
            && self.rules.prefers_sibling
            && let Some(sibling) = self.claim_sibling(prev, &allowed)
        {
            return Some(sibling);
        }
        self.pick_near_then_far(&near, &allowed, node, flags)
    }

    /// An idle thread of the core of `prev`, claimed.
    fn claim_sibling(&mut self, prev: CpuId, allowed: &Mask) -> Option<CpuId> {
        let mut siblings = self.idle.core(prev);
        let idle = &self.idle.cpu;
        let found = siblings.find(|&cpu| cpu != prev && allowed.has(cpu) && idle.has(cpu))?;
        self.idle.claim(found).then_some(found)
    }

    /// Looks behind the same cache, then in the same node, then anywhere.
    fn pick_near_then_far(
        &mut self,
        near: &[Option<Mask>; 2],
        allowed: &Mask,
        node: Option<u16>,
        flags: u64,
    ) -> Option<CpuId> {
        let core = flags & PICK_CORE;
        for near in near.iter().flatten() {
            let found = self.pick_idle_in_node(near, node, core);
            if found.is_some() {
                return found;
            }
        }
        self.pick_idle(allowed, node, flags)
    }

    /// The waker is about to sleep: its own CPU may be the best.
    fn select_for_sync(
        &mut self,
        prev: CpuId,
        prev_allowed: bool,
        allowed: &Mask,
        flags: u64,
    ) -> Option<CpuId> {
        let here = self.turn.exec;
        if prev_allowed && self.idle.topology.share_cache(here, prev) && self.idle.claim(prev) {
            return Some(prev);
        }
        let leaves = self.current().is_some_and(|task| self.task(task).exiting);
        let local = self.dsqs.local(here);
        let waker_node = self.idle.start_node(here);
        let elsewhere = flags & PICK_IN_NODE != 0 && waker_node != self.idle.start_node(prev);
        let some_idle = match waker_node {
            None => !self.idle.cpu.is_empty(),
            Some(node) => !self.idle.cpu.and(&self.idle.topology.node(node)).is_empty(),
        };
        let free = !leaves && self.dsqs.is_empty(local) && !elsewhere && some_idle;
        (free && allowed.has(here)).then_some(here)
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

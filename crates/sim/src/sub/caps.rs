//! Rights of schedulers on CPUs (`SCX_CAP_*`): what each may put into a CPU's local queue.
//!
//! The root has all of them. One below it has those that the scheduler above it has granted; they
//! take effect on a CPU when that CPU looks for work the next time.
//!
//! Source: `scx_sub_grant()`, `scx_sub_revoke()`, `scx_process_sync_ecaps()` and
//! `scx_resolve_local_dsq()` in kernel/sched/ext/sub.c, kernel 7.3.

use model::{CpuId, Op, Sliced, TaskId};

use crate::counters::Counter;
use crate::cpu::Curr;
use crate::dsq::DsqIndex;
use crate::flags::{enq, kick};
use crate::machine::{Machine, Vm};
use crate::mirror::stale;
use crate::ops::{Call, CallOwner};
use crate::schedulers::SchedId;
use crate::subs::{ALL_CAPS, CapSet, Caps, ENQ, ENQ_IMMED, PREEMPT};
use crate::task::{Class, OpsState, Reenqueued};

/// The rights that go with those of `caps`.
const fn with_implied(caps: CapSet) -> CapSet {
    let mut all = caps;
    if all & PREEMPT != 0 {
        all |= ENQ;
    }
    if all & ENQ != 0 {
        all |= ENQ_IMMED;
    }
    all
}

impl Machine {
    // ---- Granting ----

    /// The rights that were granted to `who` on a cid.
    pub(crate) fn granted(&self, who: SchedId, cid: u32) -> CapSet {
        let sub = self.sub(who);
        sub.map_or(ALL_CAPS, |sub| sub.caps.granted[cid as usize])
    }

    /// The parent of `child` grants it `caps` on `cids`. Gives those that it was refused, in their
    /// order: on which the parent itself lacks one of them.
    pub(crate) fn grant(
        &mut self,
        vm: &mut Vm,
        child: SchedId,
        (caps, cids): (CapSet, &[u32]),
    ) -> Vec<u32> {
        let parent = self.sub(child).map_or(SchedId::ROOT, |sub| sub.parent);
        let lacks = |cid: &u32| caps & !self.granted(parent, *cid) != 0;
        let (denied, given): (Vec<u32>, Vec<u32>) = cids.iter().copied().partition(lacks);
        for cid in given {
            let caps = self.granted(child, cid) | caps;
            self.set_granted(child, cid, caps);
        }
        self.tell_caps(vm, child);
        denied
    }

    /// `caps` on `cids` are taken from `child` and all schedulers below it.
    pub(crate) fn revoke(&mut self, vm: &mut Vm, child: SchedId, (caps, cids): (CapSet, &[u32])) {
        let ids = self.scheds.ids().filter(|&id| self.is_within(id, child));
        for who in ids.collect::<Vec<_>>() {
            for &cid in cids {
                let caps = self.granted(who, cid) & !caps;
                self.set_granted(who, cid, caps);
            }
            self.tell_caps(vm, who);
        }
    }

    fn set_granted(&mut self, who: SchedId, cid: u32, caps: CapSet) {
        let own = &mut self.sub_mut(who).caps;
        let before = std::mem::replace(&mut own.granted[cid as usize], caps);
        if before == caps {
            return;
        }
        own.changed[cid as usize] |= before ^ caps;
        let table = self.cids.table();
        let Some(cpu) = table.and_then(|table| table.cpu(cid.into())) else {
            return;
        };
        self.caps_are_stale(cpu);
        self.kick_self(cpu);
    }

    /// What is in effect on `cpu` is found out anew when it looks for work.
    pub(crate) fn caps_are_stale(&mut self, cpu: CpuId) {
        if let Some(stale) = &mut self.subs.stale {
            stale.insert(cpu);
        }
    }

    /// A scheduler has ended: it has no rights.
    pub(super) fn drop_caps(&mut self, who: SchedId) {
        let cpus = self.spec.cpus;
        self.sub_mut(who).caps = Caps::new(cpus);
    }

    /// Tells the scheduler `who` which grants have changed, shard by shard. One that is being
    /// attached hears of it later.
    pub(super) fn tell_caps(&mut self, vm: &mut Vm, who: SchedId) {
        let attachment = &self.scheds[who].attachment;
        if !attachment.is_attached() || attachment.bypasses() {
            return;
        }
        let none = vec![0; usize::from(self.spec.cpus)];
        let changed = std::mem::replace(&mut self.sub_mut(who).caps.changed, none);
        let table = self.cids.table();
        let shards: Vec<_> = table.map_or_else(Vec::new, |table| table.shards().collect());
        for (shard, range) in shards.into_iter().enumerate() {
            let is_changed = |cid: &u16| changed[usize::from(*cid)] != 0;
            let those: Vec<u16> = range.clone().filter(is_changed).collect();
            let of = |cid: &u16| u64::from(changed[usize::from(*cid)]);
            let caps = those.iter().map(of).fold(0, |all, caps| all | caps);
            let Some(at) = self.write_shard_mask(vm, (who, shard), (range, &those)) else {
                continue;
            };
            if caps != 0 {
                let words = (caps, those.len() as u64);
                self.call_with_words(vm, (who, Op::SubCapsUpdated), [at, caps], words);
            }
        }
    }

    // ---- Effect ----

    /// Rights of `who` in effect on `cpu`.
    #[inline]
    pub(crate) fn caps_on(&self, who: SchedId, cpu: CpuId) -> CapSet {
        let sub = self.sub(who);
        sub.map_or(ALL_CAPS, |sub| sub.caps.in_effect[cpu.index()])
    }

    /// Grants and revocations take effect on `cpu`, which is about to look for work.
    #[cold]
    pub(crate) fn sync_caps(&mut self, vm: &mut Vm, cpu: CpuId) {
        let is_stale = self.subs.stale.as_ref().is_some_and(|it| it.has(cpu));
        if !is_stale {
            return;
        }
        if let Some(stale) = &mut self.subs.stale {
            stale.remove(cpu);
        }
        for who in self.subs_in_order() {
            self.sync_caps_of(vm, (who, cpu));
        }
    }

    fn sync_caps_of(&mut self, vm: &mut Vm, (who, cpu): (SchedId, CpuId)) {
        let cid = self.number_of(cpu);
        let granted = with_implied(self.granted(who, cid as u32));
        let now = if self.is_online(cpu) { granted } else { 0 };
        let bypasses = self.scheds[who].attachment.bypasses();
        let sub = self.sub_mut(who);
        let before = std::mem::replace(&mut sub.caps.in_effect[cpu.index()], now);
        if now & !before & ENQ_IMMED != 0 {
            sub.owed_idle.insert(cpu);
        }
        if before & !now & (ENQ | ENQ_IMMED) != 0 {
            self.turn_out(vm, who, cpu);
        }
        // Of a CPU that has gone nobody is told: it comes back with the rights it was known by.
        if bypasses || !self.is_online(cpu) {
            return;
        }
        let told = std::mem::replace(&mut self.sub_mut(who).caps.told[cpu.index()], now);
        if told == now || !self.scheds[who].ops.has(Op::SubEcapsUpdated) {
            return;
        }
        let was = std::mem::replace(&mut self.cpus[cpu].balances, true);
        self.turn.buffer.begin();
        let (told, now) = (u64::from(told), u64::from(now));
        let call = Call {
            op: Op::SubEcapsUpdated,
            locked: Some(cpu),
            asked: CallOwner::The(who),
            subject: None,
            args: [cid, told, now],
            words: (cid, told << 8 | now),
        };
        self.call(vm, &call);
        self.flush_buffer(vm, cpu);
        self.tell_released(vm);
        self.cpus[cpu].balances = was;
    }

    /// The scheduler `who` has lost rights on `cpu`: its tasks there that need them go.
    fn turn_out(&mut self, vm: &mut Vm, who: SchedId, cpu: CpuId) {
        if let Curr::Task(id) = self.cpus[cpu].curr()
            && self.task(id).owner == who
            && self.task(id).class == Class::Ext
            && self.lacks(cpu, id, 0) != 0
        {
            self.update_curr(cpu);
            self.set_slice(id, 0);
            self.tell_slice(id, Sliced::Cut);
            self.flush_mirrors(vm);
        }
        let local = self.dsqs.local(cpu);
        let tasks: Vec<TaskId> = self.dsqs.tasks(local).collect();
        for id in tasks {
            if self.task(id).owner == who && !self.admits(cpu, id, 0) {
                self.leave_dsq(id);
                self.tell_removed(id, false);
                self.turn_away(cpu, id, Reenqueued::Cap);
            }
        }
    }

    // ---- Local queues ----

    /// Rights that the owner of `id` lacks to put it into the local queue of `cpu` with `flags`.
    fn lacks(&self, cpu: CpuId, id: TaskId, flags: u64) -> CapSet {
        let owner = self.owner(id);
        let asks_immed = flags & enq::IMMED != 0 || self.task(id).immed;
        let mut needed = if asks_immed { ENQ_IMMED } else { ENQ };
        if flags & enq::PREEMPT != 0
            && let Curr::Task(curr) = self.cpus[cpu].curr()
            && self.task(curr).class == Class::Ext
            && !self.is_within(self.owner(curr), owner)
        {
            needed |= PREEMPT;
        }
        needed & !self.caps_on(owner, cpu)
    }

    /// Whether `id` may come into the local queue of `cpu`. One that cannot go elsewhere, and one
    /// that exits, always may.
    #[cold]
    pub(crate) fn admits(&mut self, cpu: CpuId, id: TaskId, flags: u64) -> bool {
        let is_restored = flags & enq::IGNORE_CAPS != 0;
        if is_restored || self.bypasses(id) || self.lacks(cpu, id, flags) == 0 {
            return true;
        }
        let moving = &self.cpus[cpu].others().to_move;
        let is_leaving = moving.iter().any(|(other, _)| *other == id);
        let stays =
            self.task(id).exiting || self.cannot_migrate(id) || is_leaving || !self.is_online(cpu);
        if stays {
            self.count(id, Counter::SubForcedAdmit);
        }
        stays
    }

    /// The flags of an insert that was admitted: without preemption if its scheduler lacks the
    /// right to that.
    #[cold]
    pub(crate) fn admitted_flags(&mut self, cpu: CpuId, id: TaskId, flags: u64) -> u64 {
        let lacks = self.lacks(cpu, id, flags) & PREEMPT != 0 && !self.bypasses(id);
        let dropped = if lacks { enq::PREEMPT } else { 0 };
        flags & !(enq::IGNORE_CAPS | dropped)
    }

    /// The flags of a kick of `target` by `who`, if it has the right to kick.
    ///
    /// A kernel finds that out when the kick is carried out.
    #[cold]
    pub(crate) fn admitted_kick(&mut self, who: SchedId, target: CpuId, flags: u64) -> Option<u64> {
        let caps = self.caps_on(who, target);
        if caps & ENQ_IMMED == 0 {
            self.scheds[who].counters.count(Counter::SubKickDenied);
            return None;
        }
        let is_foreign =
            |id: TaskId| self.task(id).class == Class::Ext && !self.is_within(self.owner(id), who);
        let curr = self.cpus[target].curr().task();
        if flags & kick::PREEMPT == 0 || caps & PREEMPT != 0 || !curr.is_some_and(is_foreign) {
            return Some(flags);
        }
        self.scheds[who].counters.count(Counter::SubPreemptDenied);
        Some(flags & !kick::PREEMPT)
    }

    /// Offers the tasks of `who` in the local queue of `cpu` again, if it has the CPU.
    #[cold]
    pub(crate) fn reoffer_own(&mut self, who: SchedId, cpu: CpuId) {
        if self.caps_on(who, cpu) & ENQ_IMMED == 0 {
            self.scheds[who].counters.count(Counter::SubReenqDenied);
            return;
        }
        let tasks = self.dsqs.tasks(self.dsqs.local(cpu));
        let own = tasks.filter(|id| self.is_within(self.owner(*id), who));
        for id in own.collect::<Vec<_>>() {
            self.leave_dsq(id);
            self.tell_removed(id, false);
            self.turn_away(cpu, id, Reenqueued::Kfunc);
        }
    }

    /// A task does not come into the local queue of `cpu`: it is offered to its scheduler again
    /// when the CPU has time for that.
    #[cold]
    pub(crate) fn turn_away(&mut self, cpu: CpuId, id: TaskId, why: Reenqueued) {
        let queue = self.subs.rejects[cpu.index()];
        self.put_aside(queue, id, why);
        self.reoffer_queue_later(cpu, queue);
    }

    /// A task waits in a queue that no program finds.
    pub(super) fn put_aside(&mut self, queue: DsqIndex, id: TaskId, why: Reenqueued) {
        self.dsqs.push(queue, id, false);
        let task = self.task_mut(id);
        task.dsq = Some(queue);
        (task.direct, task.ops_state) = (None, OpsState::None);
        (task.immed, task.reenqueued) = (false, why);
        self.touch(id, stale::FLAGS);
        self.note_custody(queue, id);
        self.tell_insert(queue, id, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subs::PERF;

    #[test]
    fn a_right_brings_the_weaker_ones_with_it() {
        let all = [0, ENQ_IMMED, ENQ, PREEMPT, PERF, PERF | ENQ_IMMED, ALL_CAPS];
        let wanted = [0, 1, 3, 7, 8, 9, 15];
        assert_eq!(all.map(with_implied), wanted);
    }
}

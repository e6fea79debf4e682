//! Rescues (`SCX_ENQ_RESCUE`): a task that may run nowhere but on a CPU to which its scheduler has
//! no right gets a little of that CPU's time now and then.
//!
//! Source: kernel/sched/ext/sub.c, kernel 7.3. Who was admitted waits its turn in the local queue;
//! a kernel lets it preempt others there when it has waited for long.

use model::{CpuId, ExitKind, Sliced, TaskId};

use crate::counters::Counter;
use crate::flags::enq;
use crate::machine::Machine;
use crate::pending::Pending;
use crate::rescues::RescueKnobs;
use crate::task::Reenqueued;

impl Machine {
    /// What the root says of rescues, if it wants any.
    fn rescue_knobs(&self) -> Option<RescueKnobs> {
        let (share, quantum) = self.scheds.root.ops.rescues();
        RescueKnobs::of(share, quantum)
    }

    /// A task does not come into the local queue of `cpu` by right: it is rescued, if its insert
    /// asks for that, or offered again.
    #[cold]
    pub(crate) fn reject_from_cpu(&mut self, cpu: CpuId, id: TaskId, flags: u64) {
        match self.rescue_knobs() {
            Some(knobs) if flags & enq::RESCUE != 0 => self.rescue(cpu, id, knobs),
            _ => self.turn_away(cpu, id, Reenqueued::Cap),
        }
    }

    /// Admits a task for a while, or lets it wait for that.
    fn rescue(&mut self, cpu: CpuId, id: TaskId, knobs: RescueKnobs) {
        self.count(id, Counter::SubRescue);
        self.settle_rescue(cpu, Some(id), knobs);
        let tick = self.spec.tick();
        let rescues = &mut self.subs.rescues[cpu.index()];
        let is_free = rescues.admitted.is_none() && rescues.waiting.is_empty();
        if is_free && rescues.has(knobs.quantum) {
            return self.admit_rescued(cpu, id, knobs.slice(1, tick));
        }
        rescues.waiting.push_back((id, self.now));
        let queue = self.subs.parked[cpu.index()];
        self.put_aside(queue, id, Reenqueued::No);
        self.arm_rescue(cpu, knobs);
    }

    /// Pays for who was admitted, if it is done, which it is if it is `id`; forgets who waits no
    /// more; and adds what has come.
    fn settle_rescue(&mut self, cpu: CpuId, id: Option<TaskId>, knobs: RescueKnobs) {
        let (parked, now) = (self.subs.parked[cpu.index()], self.now);
        if let Some((admitted, before)) = self.subs.rescues[cpu.index()].admitted
            && (id == Some(admitted) || !self.has_place_on(cpu, admitted))
        {
            let (owner, ran) = (self.owner(admitted), self.task(admitted).sum_exec - before);
            let rescues = &mut self.subs.rescues[cpu.index()];
            rescues.admitted = None;
            rescues.pay(owner, ran);
        }
        let mut waiting = std::mem::take(&mut self.subs.rescues[cpu.index()].waiting);
        waiting.retain(|(other, _)| {
            id != Some(*other) && self.tasks[other.index()].dsq == Some(parked)
        });
        let rescues = &mut self.subs.rescues[cpu.index()];
        rescues.waiting = waiting;
        rescues.accrue(now, knobs);
    }

    /// Whether a task runs on `cpu` or waits in its local queue.
    fn has_place_on(&self, cpu: CpuId, id: TaskId) -> bool {
        let waits = self.task(id).dsq == Some(self.dsqs.local(cpu));
        waits || self.task(id).cpu == cpu && self.is_running(id)
    }

    fn admit_rescued(&mut self, cpu: CpuId, id: TaskId, slice: u64) {
        let before = self.task(id).sum_exec;
        self.subs.rescues[cpu.index()].admitted = Some((id, before));
        self.task_mut(id).immed = false;
        self.set_slice(id, slice);
        self.tell_slice(id, Sliced::Default);
        self.insert_local(cpu, id, enq::IGNORE_CAPS);
    }

    fn arm_rescue(&mut self, cpu: CpuId, knobs: RescueKnobs) {
        let tick = self.spec.tick();
        let rescues = &mut self.subs.rescues[cpu.index()];
        if std::mem::replace(&mut rescues.is_armed, true) {
            return;
        }
        let slice = knobs.slice(rescues.waiting.len(), tick);
        let when = self.now + rescues.delay(slice, knobs);
        self.queue.push(when, cpu, Pending::Rescue);
    }

    /// The timer of the rescues on `cpu` expires: who has waited longest is admitted, if there is
    /// time for it.
    #[cold]
    pub(crate) fn rescue_next(&mut self, cpu: CpuId) {
        self.subs.rescues[cpu.index()].is_armed = false;
        let Some(knobs) = self.rescue_knobs() else {
            return;
        };
        self.settle_rescue(cpu, None, knobs);
        let (tick, is_online) = (self.spec.tick(), self.is_online(cpu));
        let rescues = &mut self.subs.rescues[cpu.index()];
        let Some(&(id, since)) = rescues.waiting.front() else {
            return;
        };
        let slice = knobs.slice(rescues.waiting.len(), tick);
        if is_online && rescues.admitted.is_none() && rescues.has(slice) {
            rescues.waiting.pop_front();
            self.leave_dsq(id);
            self.tell_removed(id, false);
            self.admit_rescued(cpu, id, slice);
        } else if self.now.since(since).get() > knobs.patience() {
            self.end_greediest(cpu, id, self.now.since(since).get());
        }
        if !self.subs.rescues[cpu.index()].waiting.is_empty() {
            self.arm_rescue(cpu, knobs);
        }
    }

    /// A task has waited for too long to be rescued: who took most of the time ends.
    fn end_greediest(&mut self, cpu: CpuId, id: TaskId, waited: u64) {
        let attached = |who| self.subs.order.contains(&who);
        let found = self.subs.rescues[cpu.index()].greediest(attached);
        let (who, used) = found.unwrap_or((self.owner(id), 0));
        let (used, waited) = (used / 1_000_000, waited / 1_000_000);
        let (s, ms) = (waited / 1_000, waited % 1_000);
        let message = format!(
            "used too much rescue CPU time ({used}ms) while {} waited {s}.{ms:03}s to be rescued",
            self.name(id)
        );
        self.eject(who, ExitKind::ErrorRescue, 0, message);
    }
}

//! How a CPU gets work where there are several schedulers: the root is asked, and hands the CPU
//! down.
//!
//! Source: `scx_dispatch_sched()`, `dispatch_one()` and `scx_bpf_sub_dispatch()`, kernel 7.3.

use model::{CpuId, Op};

use crate::dsq::DsqIndex;
use crate::fetched::{Fetched, Prev};
use crate::flags::DSP_MAX_LOOPS;
use crate::machine::{Machine, Vm};
use crate::ops::CallOwner;
use crate::schedulers::SchedId;
use crate::subs::ENQ_IMMED;

/// What a scheduler has found for a CPU.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Nothing,
    /// It has moved a task to the local queue, if the task was admitted there.
    Moved,
    /// The previous task has a slice and goes on.
    Kept,
}

impl Machine {
    /// Fetches work where none waits in the local queue, and there are several schedulers.
    #[cold]
    pub(crate) fn fetch_among(&mut self, vm: &mut Vm, cpu: CpuId, prev: Prev) -> Fetched {
        self.turn.prev = prev;
        match self.dispatch_by(vm, cpu, SchedId::ROOT) {
            Verdict::Kept => Fetched::Kept(prev.id),
            Verdict::Moved => self.first_local(cpu),
            Verdict::Nothing if prev.queued && self.keeps_last_among(cpu, prev) => {
                self.count(prev.id, crate::counters::Counter::DispatchKeepLast);
                Fetched::Kept(prev.id)
            }
            Verdict::Nothing => Fetched::Nothing,
        }
    }

    /// Whether a task goes on because nothing else is there to run: its scheduler must still have
    /// the right to that.
    fn keeps_last_among(&self, cpu: CpuId, prev: Prev) -> bool {
        let has_base = self.caps_on(self.owner(prev.id), cpu) & ENQ_IMMED != 0;
        self.keeps_last(prev.id) && (has_base || self.cannot_migrate(prev.id))
    }

    /// Lets the scheduler `who` find work for `cpu`.
    fn dispatch_by(&mut self, vm: &mut Vm, cpu: CpuId, who: SchedId) -> Verdict {
        if self.consume_global_of(vm, cpu, who) {
            return Verdict::Moved;
        }
        let sched = &self.scheds[who];
        let is_asked = sched.ops.has(Op::Dispatch) && !sched.attachment.bypasses();
        if !is_asked || !self.is_online(cpu) {
            return Verdict::Nothing;
        }
        for _ in 0..DSP_MAX_LOOPS {
            self.call_dispatch_by(vm, cpu, who);
            let prev = self.turn.prev;
            if prev.queued && self.has_slice_left(prev.id) {
                return Verdict::Kept;
            }
            let is_there = self.first_local(cpu) != Fetched::Nothing;
            if is_there || self.consume_global_of(vm, cpu, who) {
                return Verdict::Moved;
            }
            if !self.turn.buffer.has_moved() || self.is_halted() {
                return Verdict::Nothing;
            }
        }
        self.kick_self(cpu);
        Verdict::Nothing
    }

    /// Of the previous task only its own scheduler is told.
    fn call_dispatch_by(&mut self, vm: &mut Vm, cpu: CpuId, who: SchedId) {
        let prev = self.turn.prev;
        let is_its = prev.subject().is_some_and(|id| self.owner(id) == who);
        let told = if is_its { prev } else { Prev::NONE };
        self.call_dispatch(vm, cpu, told, CallOwner::The(who));
    }

    /// `scx_bpf_sub_dispatch()`: the program of the caller, which looks for work for a CPU, lets
    /// the scheduler at `cgroup` do so. Whether that one has found some.
    pub(crate) fn sub_dispatch(&mut self, vm: &mut Vm, cgroup: u64) -> bool {
        let (caller, cpu) = (self.caller(), self.turn.exec);
        let Some(child) = self.sub_at(cgroup) else {
            return false;
        };
        if self.sub(child).is_none_or(|sub| sub.parent != caller) {
            let message = format!("trying to dispatch a distant sub-sched on cgroup {cgroup}");
            self.error(message);
            return false;
        }
        if self.caps_on(child, cpu) & ENQ_IMMED == 0 {
            return false;
        }
        if std::mem::replace(&mut self.sub_mut(child).dispatches, true) {
            self.error("dispatch recursion detected");
            return false;
        }
        // Each has a buffer of its own.
        let buffer = std::mem::take(&mut self.turn.buffer);
        let verdict = self.dispatch_by(vm, cpu, child);
        self.turn.buffer = buffer;
        self.sub_mut(child).dispatches = false;
        verdict != Verdict::Nothing
    }

    // ---- Global queues ----

    /// The global queue of `who` from which `cpu` takes tasks.
    pub(crate) fn global_queue_of(&self, who: SchedId, cpu: CpuId) -> DsqIndex {
        let node = self.idle.topology().node_of(cpu);
        let own = self.sub(who).map(|sub| sub.globals[usize::from(node)]);
        own.unwrap_or_else(|| self.dsqs.global(node))
    }

    fn consume_global_of(&mut self, vm: &mut Vm, cpu: CpuId, who: SchedId) -> bool {
        if who == SchedId::ROOT {
            return self.consume_global(vm, cpu);
        }
        let global = self.global_queue_of(who, cpu);
        !self.dsqs.is_empty(global) && self.consume(vm, cpu, global, 0).0
    }

    // ---- Idle CPUs ----

    /// Tells the root, and every scheduler below it that has the CPU, that `cpu` idles or does not.
    #[cold]
    pub(crate) fn tell_idle_to_all(&mut self, vm: &mut Vm, cpu: CpuId, idle: bool) {
        self.tell_idle_to(vm, (SchedId::ROOT, cpu), idle);
        for who in self.subs_in_order() {
            if self.hears_of(who, cpu) {
                self.sub_mut(who).owed_idle.remove(cpu);
                self.tell_idle_to(vm, (who, cpu), idle);
            }
        }
    }

    /// Tells those that have got the CPU that it idles, although nothing has changed.
    #[cold]
    pub(crate) fn tell_owed_idle(&mut self, vm: &mut Vm, cpu: CpuId) {
        for who in self.subs_in_order() {
            if self.hears_of(who, cpu) && self.sub_mut(who).owed_idle.take(cpu) {
                self.tell_idle_to(vm, (who, cpu), true);
            }
        }
    }

    /// Whether `who`, and all above it, have the CPU.
    fn hears_of(&self, who: SchedId, cpu: CpuId) -> bool {
        let up = |id: &SchedId| self.sub(*id).map(|sub| sub.parent);
        let mut all = std::iter::successors(Some(who), up);
        all.all(|id| self.caps_on(id, cpu) & ENQ_IMMED != 0)
    }
}

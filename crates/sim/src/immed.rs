//! `SCX_ENQ_IMMED`: a task that is put into a local queue runs there at once or is offered to the
//! policy again. Since kernel 7.1.
//!
//! Source: `dsq_inc_nr()`, `rq_is_open()`, `scx_vet_enq_flags()`, `local_task_should_reenq()`,
//! `process_deferred_reenq_locals()` and `put_prev_task_scx()`, kernels 7.1 to 7.3.

use model::{CpuId, ExitKind, TaskId};

use crate::counters::Counter;
use crate::deferred::Reoffer;
use crate::flags::{dsq, enq, ops};
use crate::machine::{Machine, Vm};
use crate::mirror::stale;
use crate::schedulers::SchedId;
use crate::task::{Class, Reenqueued};

/// `SCX_REENQ_LOCAL_MAX_REPEAT`, since 7.3 `SCX_REENQ_MAX_REPEAT`: how often tasks come back
/// without anybody having run before the policy is ejected.
const MOST_REPEATS: u32 = 256;

impl Machine {
    /// The flags with which an insert into the queue `dsq_id` is made; `None` after an error.
    #[inline]
    pub(crate) fn vet_immed(&mut self, flags: u64, dsq_id: u64) -> Option<u64> {
        let is_local = dsq_id == dsq::LOCAL || dsq_id & dsq::LOCAL_ON == dsq::LOCAL_ON;
        let asks = flags & enq::IMMED != 0;
        if asks && !is_local {
            self.error(format!("SCX_ENQ_IMMED on a non-local DSQ 0x{dsq_id:x}"));
            return None;
        }
        if flags & enq::RESCUE != 0 && self.rules.has_sub_caps && !is_local {
            self.error(format!("SCX_ENQ_RESCUE on a non-local DSQ 0x{dsq_id:x}"));
            return None;
        }
        let caller = self.caller();
        let always = is_local && self.scheds[caller].ops.flag(ops::ALWAYS_ENQ_IMMED);
        self.has_immed |= asks || always;
        Some(flags | if always { enq::IMMED } else { 0 })
    }

    /// A task came into the local queue of `cpu`, of a policy that uses `SCX_ENQ_IMMED`.
    #[cold]
    #[inline(never)]
    pub(crate) fn inserted_immed(&mut self, cpu: CpuId, id: TaskId, flags: u64) {
        if flags & self.rules.enq_immed != 0 {
            self.task_mut(id).immed = true;
            self.touch(id, stale::FLAGS);
        }
        let local = self.dsqs.local(cpu);
        let is_alone = self.dsqs.len(local) == 1;
        // While the CPU looks for work nobody knows yet whether its task goes on, so the queue is
        // looked at when that is known.
        let is_open = self.is_open(cpu, flags) && !self.cpus[cpu].balances;
        if self.has_immed_in(cpu) && !(is_alone && is_open) {
            self.reoffer_later(cpu, Reoffer::Immed);
        }
    }

    /// A task of a higher class was woken on `cpu`: who should run there at once cannot.
    #[cold]
    pub(crate) fn disturb_immed(&mut self, cpu: CpuId) {
        if self.has_immed && self.has_immed_in(cpu) {
            self.reoffer_later(cpu, Reoffer::Immed);
        }
    }

    fn has_immed_in(&self, cpu: CpuId) -> bool {
        let local = self.dsqs.local(cpu);
        self.dsqs.tasks(local).any(|id| self.task(id).immed)
    }

    /// Whether a task of the policy's that comes to `cpu` runs there at once: no higher class wants
    /// the CPU, and it idles, looks for work, or its task is preempted by the insert.
    pub(crate) fn is_open(&self, cpu: CpuId, flags: u64) -> bool {
        let state = &self.cpus[cpu];
        if state.has_others() && self.any_class_has_task(cpu, Class::Stop) {
            return false;
        }
        let class = self.class_on(cpu);
        let may_take = state.balances || flags & enq::PREEMPT != 0;
        class > Class::Ext || class == Class::Ext && may_take
    }

    /// Offers a task to the policy again.
    pub(crate) fn enqueue_again(&mut self, vm: &mut Vm, id: TaskId, why: Reenqueued) {
        self.set_reenqueued(id, why);
        if why == Reenqueued::Immed {
            self.count(id, Counter::ReenqImmed);
        }
        if self.rules.counts_reenqueues && self.is_back_too_often(id) {
            // The kernel keeps it out of all queues until the policy is off, which is at once.
            let global = self.global_queue(self.task(id).cpu);
            self.enqueue_with_new_slice(global, id, 0);
        } else {
            self.do_enqueue(vm, id, enq::REENQ, false);
        }
        self.set_reenqueued(id, Reenqueued::No);
    }

    fn set_reenqueued(&mut self, id: TaskId, why: Reenqueued) {
        if self.rules.enq_immed != 0 {
            self.task_mut(id).reenqueued = why;
            self.touch(id, stale::FLAGS);
        }
    }

    /// Counts how often a task came back since it ran or slept. One that comes back too often ends
    /// its policy; whether it does.
    ///
    /// Source: `do_enqueue_task()`, kernel 7.3.
    #[cold]
    fn is_back_too_often(&mut self, id: TaskId) -> bool {
        let task = self.task(id);
        let lately = (task.sum_exec, task.sleep_generation);
        let (since, count) = self.reenqueues.entry(id).or_default();
        if *since != lately {
            (*since, *count) = (lately, 0);
        }
        *count += 1;
        let count = *count;
        if count > 1 {
            self.count(id, Counter::ReenqRepeat);
        }
        if count > MOST_REPEATS {
            let message = format!("{} reenqueued {count} times without running", self.name(id));
            self.eject(self.owner(id), ExitKind::ErrorReenq, 0, message);
        }
        count > MOST_REPEATS
    }

    /// Tasks of a local queue came back so often in one go. Whether that is too often.
    ///
    /// Source: `process_deferred_reenq_locals()`, kernels 7.1 and 7.2.
    #[cold]
    pub(crate) fn is_repeated_too_often(&mut self, repeats: u32) -> bool {
        if self.rules.counts_reenqueues {
            return false;
        }
        self.scheds.root.counters.count(Counter::ReenqRepeat);
        if repeats > MOST_REPEATS {
            self.error_of(
                SchedId::ROOT,
                format!("SCX_ENQ_REENQ on SCX_DSQ_LOCAL repeated {repeats} times"),
            );
        }
        repeats > MOST_REPEATS
    }
}

//! What differs between the kernels that are simulated: one file a version.
//!
//! Inside, the machine speaks 6.18's numbers ([`crate::flags`]); what a policy sees and says is
//! translated here, in both directions. No rule asks for a version: it asks [`KernelRules`] for
//! the one thing that it wants to know.

mod v6_12;
mod v6_16;
mod v6_17;
mod v6_18;
mod v6_19;
mod v7_0;
mod v7_1;
mod v7_2;
mod v7_3;

use model::Kernel;

use crate::flags::{deq, enq};
use crate::machine::Machine;
use crate::task::ScxState;

/// What one kernel does that others do not. Each field names the file where its kernel says so;
/// files without a folder are in `kernel/sched/`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KernelRules {
    /// The object whose BTF says which types, constants and functions the kernel has, compiled
    /// from `crates/sim/kernel/VERSION.h`. Every kernel function carries the declaration tag
    /// `bpf_kfunc`; layouts are the simulator's own.
    pub types: &'static [u8],
    /// Bits of `enq_flags`: the machine's, the kernel's, where they differ (`sched.h`,
    /// `ext_internal.h`).
    pub enq_bits: &'static [(u64, u64)],
    /// Bits of `deq_flags`: the machine's, the kernel's, where they differ (`sched.h`).
    pub deq_bits: &'static [(u64, u64)],
    /// [`enq::IMMED`] where the kernel has `SCX_ENQ_IMMED`, else 0 (`ext_internal.h`).
    pub enq_immed: u64,
    /// A task that is enqueued again and again is counted by itself, and the policy ends with an
    /// exit kind of its own (`ext.c`: `do_enqueue_task()`); else rounds of one CPU are counted.
    pub counts_reenqueues: bool,
    /// `SCX_DEQ_SCHED_CHANGE`: a task leaves for another reason than sleep; 0 where nobody says so
    /// (`ext_internal.h`).
    pub deq_sched_change: u64,
    /// The machine's bit of a change of class, which comes with a dequeue and an enqueue; 0 where
    /// it is not told from other changes (`sched.h`: `DEQUEUE_CLASS`).
    pub class_bit: u64,
    /// Additional flag of `ops.runnable` when the current task is put back after a change; 0: none
    /// (`ext/ext.c`: `enqueue_task_scx()`).
    pub restored_bit: u64,
    /// `SCX_OPS_*` flags that the kernel knows (`ext_internal.h`: `SCX_OPS_ALL_FLAGS`).
    pub ops_flags: u64,
    /// Event counters in the order of `struct scx_event_stats` (`ext_internal.h`).
    pub counters: &'static [&'static str],
    /// The number of each [`ScxState`] in `p->scx.flags` (`include/linux/sched/ext.h`).
    pub state_numbers: [u32; 4],
    /// CPUs have topological numbers, and policies may have the cid form (`ext/cid.c`).
    pub has_cids: bool,
    /// Schedulers below others have rights on CPUs (`ext/sub.c`). Without these, none is attached
    /// below another one here.
    pub has_sub_caps: bool,
    /// Words of `struct scx_cid_topo` (`ext/types.h`); 0 without cids.
    pub cid_topo_words: usize,
    /// A policy in cid form is told with `ops.enable()` which CPUs a task may use, and by
    /// `ops.set_cmask()` before its weight (`ext/ext.c`: `__scx_enable_task()`).
    pub enables_with_mask: bool,
    /// A task that enters the policy's class is `SCX_TASK_ENABLED` when `ops.set_weight` tells its
    /// weight; else it becomes so behind that (`ext.c`: `scx_enable_task()`).
    pub enabled_when_weighed: bool,
    /// The policy is told when its custody of a task ends (`ext.c`: `call_task_dequeue()`).
    pub has_custody: bool,
    /// The end of the custody of a task that is moved to another CPU's local queue is told when it
    /// begins to run (`ext.c`: `call_task_dequeue()`).
    pub tells_moved_late: bool,
    /// `ops.dispatch` is called before the class is chosen, and so even if a higher class has a
    /// task (`ext.c`: `balance_scx()` as a method of the class). Else only if none has
    /// (`pick_task_scx()`).
    pub balances_before_pick: bool,
    /// The built-in choice prefers an idle thread of the previous CPU's core to other cores
    /// (`ext_idle.c`: `scx_select_cpu_dfl()`).
    pub prefers_sibling: bool,
    /// Whether a task that leaves the policy's class gets its new weight with an `ops.set_weight`
    /// (`ext.c`: `reweight_task_scx()`).
    pub weighs_leavers: Weighs,
    /// A task that leaves the policy's class leaves its slice and its `dsq_vtime` behind (`ext.c`:
    /// `scx_disable_task()`).
    pub clears_leavers: bool,
    /// `ops.exit_task` comes right behind a task's last switch, not with its last reference
    /// (`ext.c`: `sched_ext_dead()`).
    pub exits_at_last_switch: bool,
    /// The message about a queue that does not exist names the task (`ext.c`:
    /// `find_dsq_for_dispatch()`).
    pub names_task_without_dsq: bool,
    /// `scx_bpf_task_cgroup()` names the operations that may call it (`ext.c`).
    pub task_cgroup_has_mask: bool,
    /// `ops.cgroup_move` is called as what it is, an operation under the run queue's lock (`ext.c`:
    /// `scx_cgroup_move_task()`).
    pub cgroup_move_is_locked: bool,
    /// `ops.cgroup_set_idle` exists (`ext.c`: `scx_group_set_idle()`).
    pub has_cgroup_set_idle: bool,
    /// The built-in choice of a CPU looks in the cache and the node of the previous CPU first, and
    /// respects the task's affinity for that CPU (`ext_idle.c`: `scx_select_cpu_dfl()`).
    pub chooses_near: bool,
    /// A program that asks for the built-in choice of a task that cannot move gets the task's only
    /// CPU, if that idles, not the previous CPU that it names (`ext/idle.c`:
    /// `select_cpu_restricted()`).
    pub chooses_only_cpu: bool,
    /// `ops.update_idle` is called before the mask of idle CPUs changes (`ext.c`:
    /// `__scx_update_idle()`).
    pub tells_idle_first: bool,
    /// A task that cannot migrate goes to its CPU's local queue, and the policy is asked only with
    /// `SCX_OPS_ENQ_MIGRATION_DISABLED` (`ext.c`: `do_enqueue_task()`).
    pub skips_immovable: bool,
    /// A section that forbids migration binds its task at the begin of each `__schedule()`, also
    /// without a switch; else behind the choice of the next task, if that is another one
    /// (`core.c`: `migrate_disable_switch()`).
    pub binds_first: bool,
    /// A task that the policy puts into the local queue when it is enqueued with `SCX_ENQ_LAST`
    /// goes on at once: the CPU looks again (`ext.c`: `put_prev_task_scx()`).
    pub last_goes_on: bool,
    /// Slice and `dsq_vtime` of an insert are written when the task is put into the queue, not when
    /// the policy asks for it (`ext/ext.c`: `apply_slice_vtime()`).
    pub inserts_slice: bool,
}

/// When a task that leaves the policy's class gets its new weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Weighs {
    /// While it still belongs to the policy: before `ops.disable`.
    Before,
    /// Behind `ops.disable`.
    Behind,
    /// Not at all.
    Never,
}

/// Event counters of 6.14 to 7.0.
const COUNTERS_6_18: &[&str] = &[
    "SCX_EV_SELECT_CPU_FALLBACK",
    "SCX_EV_DISPATCH_LOCAL_DSQ_OFFLINE",
    "SCX_EV_DISPATCH_KEEP_LAST",
    "SCX_EV_ENQ_SKIP_EXITING",
    "SCX_EV_ENQ_SKIP_MIGRATION_DISABLED",
    "SCX_EV_REFILL_SLICE_DFL",
    "SCX_EV_BYPASS_DURATION",
    "SCX_EV_BYPASS_DISPATCH",
    "SCX_EV_BYPASS_ACTIVATE",
];

/// Event counters of 7.1 and 7.2.
const COUNTERS_7_2: &[&str] = &[
    "SCX_EV_SELECT_CPU_FALLBACK",
    "SCX_EV_DISPATCH_LOCAL_DSQ_OFFLINE",
    "SCX_EV_DISPATCH_KEEP_LAST",
    "SCX_EV_ENQ_SKIP_EXITING",
    "SCX_EV_ENQ_SKIP_MIGRATION_DISABLED",
    "SCX_EV_REENQ_IMMED",
    "SCX_EV_REENQ_LOCAL_REPEAT",
    "SCX_EV_REFILL_SLICE_DFL",
    "SCX_EV_BYPASS_DURATION",
    "SCX_EV_BYPASS_DISPATCH",
    "SCX_EV_BYPASS_ACTIVATE",
    "SCX_EV_INSERT_NOT_OWNED",
    "SCX_EV_SUB_BYPASS_DISPATCH",
];

/// Bits of `enq_flags` since 6.19.
const ENQ_BITS_6_19: &[(u64, u64)] = &[
    (enq::HEAD, 1 << 16),
    (enq::MIGRATED, 1 << 18),
    (enq::INITIAL, 1 << 19),
    (enq::CPU_SELECTED, 1 << 20),
    (enq::CLASS, 1 << 6),
];

/// Bits of `deq_flags` since 6.19.
const DEQ_BITS_6_19: &[(u64, u64)] = &[(deq::SPECIAL, 1 << 16), (deq::CLASS, 1 << 6)];

/// The rules of `kernel`.
///
/// # Panics
/// If the kernel has none: every [`Kernel::ALL`] has a line here, which a test checks.
pub(crate) fn rules_of(kernel: Kernel) -> &'static KernelRules {
    match kernel {
        Kernel::V6_12 => &v6_12::RULES,
        Kernel::V6_16 => &v6_16::RULES,
        Kernel::V6_17 => &v6_17::RULES,
        Kernel::V6_18 => &v6_18::RULES,
        Kernel::V6_19 => &v6_19::RULES,
        Kernel::V7_0 => &v7_0::RULES,
        Kernel::V7_1 => &v7_1::RULES,
        Kernel::V7_2 => &v7_2::RULES,
        Kernel::V7_3 => &v7_3::RULES,
        _ => unreachable!("no other kernel can be asked for"),
    }
}

/// `flags` with every bit of `pairs` moved from the first to the second.
fn moved(flags: u64, pairs: impl Iterator<Item = (u64, u64)> + Clone) -> u64 {
    let old = pairs.clone().fold(0, |mask, (from, _)| mask | from);
    let bits = pairs.filter(|(from, _)| flags & from != 0);
    bits.fold(flags & !old, |flags, (_, to)| flags | to)
}

impl KernelRules {
    /// Flags of `ops.enqueue` and `ops.runnable` in the kernel's own numbers.
    #[inline(always)]
    pub fn enq_out(&self, flags: u64) -> u64 {
        if self.enq_bits.is_empty() {
            return flags;
        }
        moved(flags, self.enq_bits.iter().copied())
    }

    /// Flags that a policy gives an insert, in the machine's numbers.
    #[inline]
    fn enq_in(&self, flags: u64) -> u64 {
        if self.enq_bits.is_empty() {
            return flags;
        }
        let back = self.enq_bits.iter().map(|&(ours, theirs)| (theirs, ours));
        moved(flags, back)
    }

    /// Flags of `ops.quiescent`, and of `ops.dequeue` when a task is taken back, in the numbers of
    /// the kernel.
    #[inline]
    pub fn deq_out(&self, flags: u64) -> u64 {
        if self.deq_bits.is_empty() {
            return flags;
        }
        let change = if flags & deq::SLEEP == 0 {
            self.deq_sched_change
        } else {
            0
        };
        moved(flags, self.deq_bits.iter().copied()) | change
    }

    /// The number of a task's state (`enum scx_task_state`; since 7.1 `SCX_TASK_READY` and its like
    /// in `enum scx_ent_flags`). `SCX_TASK_INIT` lasts no time here.
    pub fn state_number(&self, state: ScxState) -> u32 {
        self.state_numbers[state as usize]
    }
}

impl Machine {
    /// Flags that a policy gives an insert into the queue `dsq_id`, in the machine's numbers;
    /// `None` after an error.
    #[inline]
    pub(crate) fn enq_in(&mut self, flags: u64, dsq_id: u64) -> Option<u64> {
        let flags = self.rules.enq_in(flags);
        if self.rules.enq_immed == 0 {
            return Some(flags);
        }
        self.vet_immed(flags, dsq_id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kernel_has_rules_and_types_of_its_own() {
        let mut types: Vec<_> = Kernel::ALL.map(|kernel| rules_of(kernel).types).into();
        types.dedup();
        assert_eq!(types.len(), Kernel::ALL.len());
    }

    #[test]
    fn flags_move_to_their_places_on_7_2_and_back() {
        let rules = rules_of(Kernel::V7_2);
        let theirs = 0x10_0009 | 1 << 40;
        let ours = enq::WAKEUP | enq::NOCLOCK | enq::CPU_SELECTED | enq::REENQ;
        assert_eq!(rules.enq_out(ours), theirs);
        assert_eq!(rules.enq_in(theirs), ours);
        let sleep = deq::SPECIAL | deq::SLEEP | deq::NOCLOCK;
        assert_eq!(rules.deq_out(sleep), 0x1_0009);
        assert_eq!(rules.deq_out(deq::SAVE), 1 << 33 | deq::SAVE);
    }

    #[test]
    fn flags_keep_their_places_on_6_18() {
        let rules = rules_of(Kernel::V6_18);
        for flags in [enq::HEAD | enq::CPU_SELECTED, deq::SPECIAL | deq::SAVE] {
            let all = [
                rules.enq_out(flags),
                rules.enq_in(flags),
                rules.deq_out(flags),
            ];
            assert_eq!(all, [flags; 3]);
        }
    }
}

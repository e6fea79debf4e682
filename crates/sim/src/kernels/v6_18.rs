//! Linux 6.18. The machine's numbers are this kernel's.
//!
//! Source: `kernel/sched/ext.c`, BTF and callback traces of Debian's 6.18.15.

use super::KernelRules;
use crate::counters::Counter;
use crate::flags::ops;

pub(super) const RULES: KernelRules = KernelRules {
    types: include_bytes!(concat!(env!("OUT_DIR"), "/kernel-6.18.o")),
    enq_bits: &[],
    deq_bits: &[],
    enq_immed: 0,
    deq_sched_change: 0,
    class_bit: 0,
    ops_flags: ops::ALL | ops::HAS_CGROUP_WEIGHT,
    ops_flags_unmodelled: 0,
    counters: &[
        (
            "SCX_EV_SELECT_CPU_FALLBACK",
            Some(Counter::SelectCpuFallback),
        ),
        (
            "SCX_EV_DISPATCH_LOCAL_DSQ_OFFLINE",
            Some(Counter::DispatchLocalDsqOffline),
        ),
        ("SCX_EV_DISPATCH_KEEP_LAST", Some(Counter::DispatchKeepLast)),
        ("SCX_EV_ENQ_SKIP_EXITING", Some(Counter::EnqSkipExiting)),
        (
            "SCX_EV_ENQ_SKIP_MIGRATION_DISABLED",
            Some(Counter::EnqSkipMigrationDisabled),
        ),
        ("SCX_EV_REFILL_SLICE_DFL", Some(Counter::RefillSliceDfl)),
        ("SCX_EV_BYPASS_DURATION", None),
        ("SCX_EV_BYPASS_DISPATCH", Some(Counter::BypassDispatch)),
        ("SCX_EV_BYPASS_ACTIVATE", Some(Counter::BypassActivate)),
    ],
    state_numbers: [0, 1, 2, 3],
    has_custody: false,
    balances_before_pick: true,
    prefers_sibling: false,
    weighs_leavers: true,
    exits_at_last_switch: false,
    names_task_without_dsq: true,
    task_cgroup_has_mask: true,
    cgroup_move_is_locked: false,
    has_cgroup_set_idle: false,
};

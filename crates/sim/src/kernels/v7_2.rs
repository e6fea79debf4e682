//! Linux 7.2.
//!
//! Source: BTF and callback traces of Debian's 7.2.12.

use super::KernelRules;
use crate::counters::Counter;
use crate::flags::{deq, enq, ops};

pub(super) const RULES: KernelRules = KernelRules {
    types: include_bytes!(concat!(env!("OUT_DIR"), "/kernel-7.2.o")),
    enq_bits: &[
        (enq::HEAD, 1 << 16),
        (enq::MIGRATED, 1 << 18),
        (enq::INITIAL, 1 << 19),
        (enq::CPU_SELECTED, 1 << 20),
        (enq::CLASS, 1 << 6),
    ],
    deq_bits: &[(deq::SPECIAL, 1 << 16), (deq::CLASS, 1 << 6)],
    enq_immed: 1 << 33,
    deq_sched_change: 1 << 33,
    class_bit: deq::CLASS,
    ops_flags: ops::ALL | UNMODELLED,
    ops_flags_unmodelled: UNMODELLED,
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
        ("SCX_EV_REENQ_IMMED", None),
        ("SCX_EV_REENQ_LOCAL_REPEAT", None),
        ("SCX_EV_REFILL_SLICE_DFL", Some(Counter::RefillSliceDfl)),
        ("SCX_EV_BYPASS_DURATION", None),
        ("SCX_EV_BYPASS_DISPATCH", Some(Counter::BypassDispatch)),
        ("SCX_EV_BYPASS_ACTIVATE", Some(Counter::BypassActivate)),
        ("SCX_EV_INSERT_NOT_OWNED", None),
        ("SCX_EV_SUB_BYPASS_DISPATCH", None),
    ],
    // There a state that lasts no time here comes second: INIT_BEGIN.
    state_numbers: [0, 2, 3, 4],
    has_custody: true,
    // Since 6.19.
    balances_before_pick: false,
    // Since 7.1.
    prefers_sibling: true,
    weighs_leavers: false,
    // Since 6.19.
    exits_at_last_switch: true,
    names_task_without_dsq: false,
    // Since 7.1 no context is named.
    task_cgroup_has_mask: false,
    // Since 7.1.
    cgroup_move_is_locked: true,
    // Since 6.19.
    has_cgroup_set_idle: true,
};

/// `SCX_OPS_ALWAYS_ENQ_IMMED` and `SCX_OPS_TID_TO_TASK`.
const UNMODELLED: u64 = 0x180;

//! Linux 7.3.
//!
//! Source: BTF and callback traces of Debian's 7.3.4, and its `kernel/sched/ext/`.

use super::{DEQ_BITS_6_19, ENQ_BITS_6_19, KernelRules, Weighs};
use crate::flags::{deq, enq, ops};

pub(super) const RULES: KernelRules = KernelRules {
    types: include_bytes!(concat!(env!("OUT_DIR"), "/kernel-7.3.o")),
    enq_bits: ENQ_BITS_6_19,
    deq_bits: DEQ_BITS_6_19,
    enq_immed: enq::IMMED,
    counts_reenqueues: true,
    deq_sched_change: 1 << 33,
    class_bit: deq::CLASS,
    // SCX_ENQ_IGNORE_CAPS.
    restored_bit: 1 << 60,
    ops_flags: ops::ALL | ops::ALWAYS_ENQ_IMMED | ops::TID_TO_TASK,
    counters: COUNTERS,
    state_numbers: [0, 1, 3, 4],
    has_cids: true,
    has_sub_caps: true,
    cid_topo_words: 8,
    enables_with_mask: true,
    enabled_when_weighed: false,
    has_custody: true,
    tells_moved_late: false,
    balances_before_pick: false,
    prefers_sibling: true,
    weighs_leavers: Weighs::Never,
    clears_leavers: true,
    exits_at_last_switch: true,
    names_task_without_dsq: false,
    task_cgroup_has_mask: false,
    cgroup_move_is_locked: true,
    has_cgroup_set_idle: true,
    chooses_near: true,
    chooses_only_cpu: true,
    tells_idle_first: false,
    skips_immovable: true,
    binds_first: true,
    last_goes_on: true,
    inserts_slice: true,
};

const COUNTERS: &[&str] = &[
    "SCX_EV_SELECT_CPU_FALLBACK",
    "SCX_EV_DISPATCH_LOCAL_DSQ_OFFLINE",
    "SCX_EV_DISPATCH_KEEP_LAST",
    "SCX_EV_ENQ_SKIP_EXITING",
    "SCX_EV_ENQ_SKIP_MIGRATION_DISABLED",
    "SCX_EV_REENQ_IMMED",
    "SCX_EV_REENQ_REPEAT",
    "SCX_EV_REFILL_SLICE_DFL",
    "SCX_EV_SLICE_CLAMPED",
    "SCX_EV_SLICE_DENIED",
    "SCX_EV_BYPASS_DURATION",
    "SCX_EV_BYPASS_DISPATCH",
    "SCX_EV_BYPASS_ACTIVATE",
    "SCX_EV_INSERT_NOT_OWNED",
    "SCX_EV_SUB_BYPASS_DISPATCH",
    "SCX_EV_SUB_FORCED_ADMIT",
    "SCX_EV_SUB_PREEMPT_DENIED",
    "SCX_EV_SUB_KICK_DENIED",
    "SCX_EV_SUB_REENQ_DENIED",
    "SCX_EV_SUB_CIDPERF_DENIED",
    "SCX_EV_SUB_RESCUE",
];

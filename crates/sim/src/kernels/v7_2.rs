//! Linux 7.2.
//!
//! Source: BTF and callback traces of Debian's 7.2.12.

use super::{COUNTERS_7_2, DEQ_BITS_6_19, ENQ_BITS_6_19, KernelRules, Weighs};
use crate::flags::{deq, enq, ops};

pub(super) const RULES: KernelRules = KernelRules {
    types: include_bytes!(concat!(env!("OUT_DIR"), "/kernel-7.2.o")),
    enq_bits: ENQ_BITS_6_19,
    deq_bits: DEQ_BITS_6_19,
    enq_immed: enq::IMMED,
    counts_reenqueues: false,
    deq_sched_change: 1 << 33,
    class_bit: deq::CLASS,
    restored_bit: 0,
    ops_flags: ops::ALL | ops::ALWAYS_ENQ_IMMED | ops::TID_TO_TASK,
    counters: COUNTERS_7_2,
    state_numbers: [0, 1, 3, 4],
    has_cids: true,
    has_sub_caps: false,
    cid_topo_words: 6,
    enables_with_mask: false,
    enabled_when_weighed: false,
    has_custody: true,
    tells_moved_late: false,
    // Since 6.19.
    balances_before_pick: false,
    // Since 7.1.
    prefers_sibling: true,
    weighs_leavers: Weighs::Never,
    clears_leavers: false,
    // Since 6.19.
    exits_at_last_switch: true,
    names_task_without_dsq: false,
    // Since 7.1 no context is named.
    task_cgroup_has_mask: false,
    // Since 7.1.
    cgroup_move_is_locked: true,
    // Since 6.19.
    has_cgroup_set_idle: true,
    chooses_near: true,
    chooses_only_cpu: false,
    tells_idle_first: false,
    skips_immovable: true,
    binds_first: true,
    last_goes_on: false,
    inserts_slice: false,
};

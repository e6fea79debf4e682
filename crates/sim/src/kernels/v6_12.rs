//! Linux 6.12. Debian builds it without `sched_ext`, so that no kernel was there to be asked.
//!
//! Source: `kernel/sched/ext.c` of Debian's 6.12.117. Fixes stand there that 6.12.0 did not have.

use super::{KernelRules, Weighs};
use crate::flags::ops;

pub(super) const RULES: KernelRules = KernelRules {
    types: include_bytes!(concat!(env!("OUT_DIR"), "/kernel-6.12.o")),
    enq_bits: &[],
    deq_bits: &[],
    enq_immed: 0,
    counts_reenqueues: false,
    deq_sched_change: 0,
    class_bit: 0,
    restored_bit: 0,
    ops_flags: ops::KEEP_BUILTIN_IDLE
        | ops::ENQ_LAST
        | ops::ENQ_EXITING
        | ops::SWITCH_PARTIAL
        | ops::HAS_CGROUP_WEIGHT,
    // Since 6.14.
    counters: &[],
    state_numbers: [0, 0, 2, 3],
    has_cids: false,
    has_sub_caps: false,
    cid_topo_words: 0,
    enables_with_mask: false,
    enabled_when_weighed: true,
    has_custody: false,
    tells_moved_late: false,
    balances_before_pick: true,
    prefers_sibling: false,
    weighs_leavers: Weighs::Before,
    clears_leavers: false,
    exits_at_last_switch: false,
    names_task_without_dsq: true,
    task_cgroup_has_mask: true,
    cgroup_move_is_locked: false,
    has_cgroup_set_idle: false,
    chooses_near: false,
    chooses_only_cpu: false,
    tells_idle_first: true,
    skips_immovable: false,
    binds_first: false,
    last_goes_on: true,
    inserts_slice: false,
};

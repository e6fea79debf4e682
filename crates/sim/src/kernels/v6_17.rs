//! Linux 6.17.
//!
//! Source: BTF and callback traces of Debian's 6.17.13, `kernel/sched/ext.c` of 6.17.8.

use super::{KernelRules, v6_18};

/// Nothing that is modelled came with 6.18.
pub(super) const RULES: KernelRules = KernelRules {
    types: include_bytes!(concat!(env!("OUT_DIR"), "/kernel-6.17.o")),
    ..v6_18::RULES
};

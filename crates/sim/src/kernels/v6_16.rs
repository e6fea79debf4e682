//! Linux 6.16.
//!
//! Source: BTF and callback traces of Debian's 6.16.12; what these do not show is taken to be as in
//! `kernel/sched/ext.c` of 6.17.8.

use super::{KernelRules, v6_17};

/// Nothing that is modelled came with 6.17, as far as its BTF and traces show.
pub(super) const RULES: KernelRules = KernelRules {
    types: include_bytes!(concat!(env!("OUT_DIR"), "/kernel-6.16.o")),
    ..v6_17::RULES
};

//! Linux 7.0. Its types, constants and functions are those of 6.19.
//!
//! Source: BTF and callback traces of Debian's 7.0.13; what these do not show is taken to be as in
//! `kernel/sched/ext.c` of 6.19.11.

use super::{KernelRules, v6_19};

/// Nothing that is modelled came with 7.0.
pub(super) const RULES: KernelRules = KernelRules {
    types: include_bytes!(concat!(env!("OUT_DIR"), "/kernel-7.0.o")),
    ..v6_19::RULES
};

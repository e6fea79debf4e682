//! Accesses to pages of the arena that were not there, as they are kept; `arena.rs` says more.

use std::collections::BTreeMap;

/// An instruction that has accessed pages of the arena which were not allocated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArenaFault {
    /// It stores.
    pub is_store: bool,
    /// Where, the first time: the address that user space would use.
    pub address: u64,
    /// How often.
    pub count: u64,
    /// The function's name.
    pub program: String,
    /// Instruction within the function.
    pub insn: u32,
    /// Source file, if the object has line information.
    pub file: Option<String>,
    /// Source line.
    pub line: u32,
}

/// The faults of an instance.
#[derive(Clone, Debug, Default)]
pub(crate) struct Faults {
    /// By operation: whether it stores, where first, and how often.
    pub(crate) all: BTreeMap<u32, (bool, u64, u64)>,
    /// Those of the calls in progress: the operation, whether it stores, and where.
    pub(crate) pending: Vec<(u32, bool, u64)>,
}

//! Native code that several instances run.
//!
//! A study runs the same object a thousand times, with another workload or seed. Nothing that
//! is built into the code depends on where an instance's memory lies, so instances with the same
//! operations, constants, maps and functions share it. [`Key`] is all that the translator looks at;
//! it is compared in full.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use super::native::{Callees, Offsets};
use super::plan::{ArrayPlan, ImportPlan, Plan};
use super::program::Program;
use crate::op::Code;

/// Programs that are kept when no instance runs them.
const KEPT: usize = 16;

/// What native code is made of.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Key {
    functions: BTreeSet<u32>,
    code: Arc<Code>,
    imports: Vec<ImportPlan>,
    /// By map, and where the handles of maps begin.
    arrays: Vec<Option<ArrayPlan>>,
    handles: Option<u64>,
    contexts: BTreeSet<u32>,
    /// Frozen sections, by address.
    constants: Vec<(u64, Box<[u8]>)>,
    /// Bytes of the region, and where its parts begin.
    size: u64,
    writable_start: u64,
    /// Where the arena's window begins, and the high halves of its addresses in user space.
    arena: Option<(u64, u64)>,
    callees: Callees,
    at: Offsets,
}

impl Key {
    pub(super) fn new(plan: &Plan<'_>, functions: &BTreeSet<u32>) -> Self {
        Self {
            functions: functions.clone(),
            code: Arc::clone(plan.code),
            imports: plan.imports.clone(),
            arrays: plan.arrays.clone(),
            handles: plan.maps.handle(0),
            contexts: plan.contexts.clone(),
            constants: plan.memory.constants(),
            size: plan.memory.size(),
            writable_start: plan.memory.writable_start(),
            arena: plan
                .memory
                .arena()
                .map(|pages| (pages.base(), pages.user())),
            callees: plan.callees,
            at: plan.at,
        }
    }
}

/// Programs of this process, the one used last at the end.
static PROGRAMS: Mutex<Vec<(Key, Arc<Program>)>> = Mutex::new(Vec::new());

/// The program that was made of `key`, if it is still there.
pub(super) fn find(key: &Key) -> Option<Arc<Program>> {
    let mut programs = PROGRAMS.lock().unwrap_or_else(PoisonError::into_inner);
    let at = programs.iter().position(|(other, _)| other == key)?;
    let found = programs.remove(at);
    let program = Arc::clone(&found.1);
    programs.push(found);
    Some(program)
}

/// Keeps `program` for the next instance. Another thread may have made the same meanwhile; then
/// there are two of them for a time.
pub(super) fn keep(key: Key, program: &Arc<Program>) {
    let mut programs = PROGRAMS.lock().unwrap_or_else(PoisonError::into_inner);
    if programs.len() >= KEPT {
        programs.remove(0);
    }
    programs.push((key, Arc::clone(program)));
}

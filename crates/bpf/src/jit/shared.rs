//! Native code that several instances run.
//!
//! A study runs the same object a thousand times, with another workload or seed. Nothing that
//! is built into the code depends on where an instance's memory lies, so instances with the same
//! operations, constants, maps and functions share it. [`Key`] is all that the translator looks at;
//! it is compared in full.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use super::native::{Callees, Offsets};
use super::plan::{ArrayPlan, ImportPlan, InstancePlan};
use super::program::NativeProgram;
use crate::op::Code;

/// Programs that are kept when no instance runs them, and codes that nobody has translated yet.
const KEPT: usize = 16;

/// What native code is made of, whatever functions it has.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Key {
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
    places: bool,
}

impl Key {
    pub(super) fn new(plan: &InstancePlan<'_>) -> Self {
        Self {
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
            places: plan.places,
        }
    }
}

/// What instances of this process have made of some code.
#[derive(Debug, Default)]
pub(crate) struct KnownCode {
    /// Native code that has the functions asked for.
    pub(crate) program: Option<Arc<NativeProgram>>,
    /// Instructions that instances have interpreted that ended without native code.
    pub(crate) interpreted: u64,
}

/// What is remembered of one code.
#[derive(Debug)]
struct SharedCode {
    key: Key,
    /// Each with its functions.
    programs: Vec<(BTreeSet<u32>, Arc<NativeProgram>)>,
    interpreted: u64,
}

/// Codes that this process has run, the one used last at the end.
static ENTRIES: Mutex<Vec<SharedCode>> = Mutex::new(Vec::new());

/// What is known of `key`, with a program that has all of `functions` if there is one.
pub(super) fn look(key: &Key, functions: &BTreeSet<u32>) -> KnownCode {
    let mut entries = ENTRIES.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(at) = entries.iter().position(|entry| entry.key == *key) else {
        return KnownCode::default();
    };
    entries[at..].rotate_left(1);
    let entry = entries.last().expect("one was found");
    let fits = |program: &&(BTreeSet<u32>, Arc<NativeProgram>)| functions.is_subset(&program.0);
    KnownCode {
        program: entry.programs.iter().find(fits).map(|it| Arc::clone(&it.1)),
        interpreted: entry.interpreted,
    }
}

/// Keeps `program` for the next instance, in place of those that have less. Another thread may have
/// made the same meanwhile; then there are two of them for a time.
pub(super) fn keep(key: Key, functions: BTreeSet<u32>, program: &Arc<NativeProgram>) {
    with_entry(key, |entry| {
        entry
            .programs
            .retain(|(fewer, _)| !fewer.is_subset(&functions));
        entry.programs.push((functions, Arc::clone(program)));
        entry.interpreted = 0;
    });
}

/// An instance has interpreted so many instructions in vain.
pub(super) fn warm(key: Key, interpreted: u64) {
    with_entry(key, |entry| {
        entry.interpreted = entry.interpreted.saturating_add(interpreted);
    });
}

fn with_entry(key: Key, change: impl FnOnce(&mut SharedCode)) {
    let mut entries = ENTRIES.lock().unwrap_or_else(PoisonError::into_inner);
    match entries.iter().position(|entry| entry.key == key) {
        Some(at) => entries[at..].rotate_left(1),
        None => {
            if entries.len() >= KEPT {
                entries.remove(0);
            }
            entries.push(SharedCode {
                key,
                programs: Vec::new(),
                interpreted: 0,
            });
        }
    }
    change(entries.last_mut().expect("it was found or added"));
}

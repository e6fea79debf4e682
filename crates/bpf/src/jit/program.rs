//! Native code as an instance holds it.

use std::collections::BTreeSet;

use cranelift_jit::JITModule;

use super::entry::{NativeEntry, ProgramEntry};
use crate::backend::Execution;
use crate::{Host, Memory};

/// Native code. Nothing of one instance is built in; see `shared.rs`.
pub(crate) struct NativeProgram {
    /// Owns the machine code; `None` only while it is dropped.
    pub(super) module: Option<JITModule>,
    pub(super) entries: Vec<Option<NativeEntry>>,
    /// Functions that must be entered with a pointer into the region as their only argument.
    pub(super) contexts: BTreeSet<u32>,
    pub(super) size: Execution,
}

// SAFETY: The module is only kept for the machine code that it owns, which is finished and never
// changes; nothing calls into the module until it is dropped, by its only owner.
unsafe impl Send for NativeProgram {}
// SAFETY: As above; a shared reference gives nothing but the addresses of functions.
unsafe impl Sync for NativeProgram {}

impl std::fmt::Debug for NativeProgram {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Program").field(&self.size).finish()
    }
}

impl Drop for NativeProgram {
    fn drop(&mut self) {
        if let Some(module) = self.module.take() {
            // SAFETY: Entries are only called through `run`, for an instance that shares this
            // program. This is dropped with the last such instance, so none of them is executing.
            unsafe { module.free_memory() };
        }
    }
}

impl NativeProgram {
    pub(crate) fn size(&self) -> Execution {
        self.size.clone()
    }

    /// Whether it has all of these.
    pub(crate) fn has(&self, functions: &BTreeSet<u32>) -> bool {
        let is_here =
            |function: &u32| matches!(self.entries.get(*function as usize), Some(Some(_)));
        functions.iter().all(is_here)
    }

    /// For outermost calls, by function.
    pub(crate) fn program_entries<H: Host>(&self) -> Box<[ProgramEntry]> {
        let of = |(function, entry): (u32, &Option<NativeEntry>)| match entry {
            // SAFETY: The function was translated with a context as its only argument.
            Some(entry) if self.contexts.contains(&function) => unsafe { ProgramEntry::of(*entry) },
            _ => ProgramEntry::absent::<H>(),
        };
        (0..).zip(&self.entries).map(of).collect()
    }

    /// Where `function` begins, if it may be entered with `args`; it is interpreted otherwise.
    #[inline]
    pub(crate) fn entry(
        &self,
        function: u32,
        args: &[u64; 5],
        memory: &Memory,
    ) -> Option<NativeEntry> {
        let entry = *self.entries.get(function as usize)?;
        let is_context = memory.is_inside(args[0]) && args[1..] == [0; 4];
        entry.filter(|_| is_context || !self.contexts.contains(&function))
    }
}

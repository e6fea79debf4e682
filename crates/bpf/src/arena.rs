//! Accesses through pointers into the arena, and those of them that go nowhere.
//!
//! Where no page is allocated, a kernel's processor faults, and the handler goes on behind the
//! instruction: a load has given 0, a store is lost. From 6.18 on it also tells the program's
//! stream of errors.
//!
//! Source: `ex_handler_bpf()` in `arch/x86/net/bpf_jit_comp.c` and
//! `bpf_prog_report_arena_violation()` in kernel/bpf/arena.c, kernel 7.3.

use crate::faults::ArenaFault;
use crate::host::Host;
use crate::instance::Instance;
use crate::stop::Spot;

/// Faults of one call that are told to a stream. A stream would not hold many more.
const MOST_TOLD: usize = 1_000;

/// Number of a program's stream of errors (`BPF_STDERR`, kernel 6.18, include/uapi/linux/bpf.h).
const ERRORS: u64 = 2;

impl<H: Host> Instance<H> {
    /// The instructions that have accessed pages of the arena which were not allocated, in the
    /// order in which they were loaded.
    #[must_use]
    pub fn arena_faults(&self) -> Vec<ArenaFault> {
        let fault = |(op, (is_store, address, count)): (&u32, &(bool, u64, u64))| {
            let Spot {
                program,
                insn,
                file,
                line,
            } = self.spot(*op as usize);
            ArenaFault {
                is_store: *is_store,
                address: *address,
                count: *count,
                program,
                insn,
                file,
                line,
            }
        };
        self.faults.all.iter().map(fault).collect()
    }

    /// The operation `op` accesses the arena, with `pointer` in its register: so many bytes, and
    /// whether it stores. Where that is; false if not all of it is there, which is counted.
    #[inline]
    pub(crate) fn arena_access(
        &mut self,
        op: usize,
        pointer: u64,
        (len, stores): (u64, bool),
    ) -> (u64, bool) {
        let offset = self.code.ops[op].off;
        // No operation is marked without an arena.
        let pages = self.memory.arena();
        let address = pages.map_or(0, |pages| pages.place(pointer, offset));
        let there = self.arena_touch(op as u32, address, (len, stores));
        (address, there)
    }

    /// Whether `len` bytes are there at `address`. If not, it is counted, for the operation `op` if
    /// that is one.
    #[inline]
    pub(crate) fn arena_touch(
        &mut self,
        op: u32,
        address: u64,
        (len, stores): (u64, bool),
    ) -> bool {
        let pages = self.memory.arena();
        let there = pages.is_some_and(|pages| pages.holds(address, len));
        if !there && (op as usize) < self.code.ops.len() {
            self.arena_fault(op, stores, address);
        }
        there
    }

    /// The operation `op` has accessed what is not there, at `address`.
    #[cold]
    fn arena_fault(&mut self, op: u32, is_store: bool, address: u64) {
        let pages = self.memory.arena();
        let address = pages.map_or(address, |pages| pages.to_user(address));
        let known = self.faults.all.entry(op).or_insert((is_store, address, 0));
        known.2 += 1;
        if self.faults.pending.len() < MOST_TOLD && !self.streams.is_empty() {
            self.faults.pending.push((op, is_store, address));
            self.stack.progress.put_aside();
        }
    }

    /// A call of `function` has ended: its stream of errors is told what has faulted. A callback
    /// has no stream; then the program around it is told.
    #[cold]
    #[inline(never)]
    pub(crate) fn tell_faults(&mut self, function: u32) {
        let Some(program) = self.streams.of_function(function) else {
            return;
        };
        for (op, is_store, address) in std::mem::take(&mut self.faults.pending) {
            let access = if is_store { "WRITE" } else { "READ" };
            let Spot {
                program: name,
                insn,
                file,
                line,
            } = self.spot(op as usize);
            let place = file.map_or_else(String::new, |file| format!(" @ {file}:{line}"));
            let text = format!(
                "ERROR: Arena {access} access at unmapped address {address:#x}\n\
                 Call trace:\n{name}+{insn}{place}\n"
            );
            // A kernel drops what has no room.
            let _full = self.streams.print(program, ERRORS, text.as_bytes());
        }
    }

    /// Whether [`Instance::tell_faults`] has something to tell.
    #[inline]
    pub(crate) const fn has_faults(&self) -> bool {
        !self.faults.pending.is_empty()
    }

    /// No call is in progress any more: what nobody could be told of is forgotten.
    pub(crate) fn forget_faults(&mut self) {
        self.faults.pending.clear();
    }
}

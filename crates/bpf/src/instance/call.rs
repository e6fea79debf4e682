//! Calls of an instance's programs.
//!
//! # The ways in and out
//!
//! All lead through [`Inside`], which counts the call in, and out again with its frame and budget.
//!
//! ```text
//!  call_program        prepare + call_prepared        call_function, run_syscall
//!       |    \               |                                |
//!       |     `-outermost--> +-- native code, native stack    |
//!       |                    |     `-> run_outermost ------.  |
//!       |                    `-- else Unfinished(None)     |  |
//!       |                          `-> finish              |  |
//!       |                                |                 |  |
//!       |                        call_interpreted          |  |
//!       |                          |         `-> interp    |  |
//!   call_nested                call_outermost    |         |  |
//!       |                          |             |         |  |
//!       `-----------> enter <------' <-----------|---------|--'
//!                       `-> jit::run or interp   |         |
//!  out:                            |             |         |
//!   nothing untidy: the value  <---+-------------+---------+
//!   else leave: what is still held, where it failed, what was removed;
//!   of run_outermost by way of Unfinished(Some), finish and settle
//! ```
//!
//! Nearly every call is `call_prepared` to the value: it has no array of arguments, no frame of its
//! own and one test at its end, of [`Progress::untidy`]. The others differ in what they may find:
//! another call around them (`enter`), no native code yet (`call_interpreted`), or something to
//! say (`settle`, `leave`).
//!
//! # What programs may rely on
//!
//! The same on every back end: a function begins with its arguments in `r1` to `r5` and zeros in
//! the other registers; a call leaves zeros in `r1` to `r5` and keeps `r6` to `r9`. A frame is zero
//! on entry, as far down as the function's constant offsets from `r10` reach, or wholly if `r10` is
//! used in another way; what lies deeper is left from earlier calls.
//!
//! # Counting
//!
//! Every executed instruction counts one, whatever it is; an `LD_IMM64` of two slots counts one.
//! Instructions are charged by basic block, at its entry: when the count would exceed the budget,
//! the program stops with [`Stop::Budget`] *at the block's first instruction* and the block counts
//! nothing. A block ends with a jump (`may_goto` is one), a call or an exit, or before an
//! instruction that a jump leads to. When an instruction inside a block fails, the count is that of
//! the instructions executed, the failing one included. So a back end that tests the budget at
//! block entry stops at the same place with the same count, and a host function, before which a
//! block always ends, sees an exact count. The budget also shrinks by one for every 8 bytes that a
//! built-in function copies, compares or clears; these are not counted as retired.

use super::Instance;
use super::inside::Inside;
use crate::call_stack::MAX_NESTED;
use crate::frame::Trap;
use crate::host::{CallCtx, Host};
use crate::map::hash::Removed;
use crate::nesting::Nesting;
use crate::progress::Progress;
use crate::stop::{Fault, Spot, Stop};
use crate::{interp, jit};

/// Arguments of a `struct_ops` callback; the kernel allows 12 (`MAX_BPF_FUNC_ARGS`, Linux 6.18,
/// include/linux/bpf.h).
const MAX_ARGS: usize = 12;

/// The arguments of the next outermost call are in their place: see [`Instance::prepare`].
#[derive(Debug)]
pub struct Prepared(());

/// A call that is not at its end: [`Instance::finish`] must follow. It has what the function has
/// given; `None`: it is still to be called.
#[derive(Debug)]
pub struct Unfinished(Option<u64>);

impl<H: Host> Instance<H> {
    /// Calls a function as the kernel calls a `struct_ops` callback: `r1` points to the arguments,
    /// an array of 64-bit words that the program may only read.
    ///
    /// # Errors
    /// The program's fault.
    ///
    /// # Panics
    /// If there are more than 12 arguments or no such function.
    #[inline(always)]
    pub fn call_program(
        &mut self,
        function: u32,
        args: &[u64],
        host: &mut H,
    ) -> Result<u64, Fault> {
        let result = self.call_program_boxed(function, args, host);
        result.map_err(|fault| *fault)
    }

    /// Calls a program; the result fits into registers, since a fault is boxed.
    ///
    /// # Errors
    /// The program's fault.
    ///
    /// # Panics
    /// If there are more than 12 arguments or no such function.
    #[inline(always)]
    pub fn call_program_boxed(
        &mut self,
        function: u32,
        args: &[u64],
        host: &mut H,
    ) -> Result<u64, Box<Fault>> {
        match self.prepare(args) {
            Some(prepared) => match self.call_prepared(function, prepared, host) {
                Ok(value) => Ok(value),
                Err(unfinished) => self.finish(function, unfinished, host),
            },
            None => self.call_nested(function, args, host),
        }
    }

    /// Puts the arguments of an outermost call to where its program looks for them. `None` if a
    /// call is in progress, whose own arguments lie there.
    ///
    /// # Panics
    /// If there are more than 12.
    #[inline(always)]
    pub fn prepare(&mut self, args: &[u64]) -> Option<Prepared> {
        assert!(
            args.len() <= MAX_ARGS,
            "a callback has {} arguments",
            args.len()
        );
        if self.stack.depth > 0 {
            return None;
        }
        jit::put_arguments(self, self.stack.contexts, args);
        Some(Prepared(()))
    }

    /// Calls a program whose arguments the caller has stored in their place, so that the rest is
    /// the same code for every callback.
    ///
    /// # Errors
    /// [`Unfinished`]: there is more to do than nearly always.
    ///
    /// # Panics
    /// If there is no such function.
    #[inline(always)]
    pub fn call_prepared(
        &mut self,
        function: u32,
        _: Prepared,
        host: &mut H,
    ) -> Result<u64, Unfinished> {
        let Some(entry) = self.quick_entry(function) else {
            return Err(Unfinished(None));
        };
        let context = self.stack.contexts;
        // What a call needs is as the one before has left it.
        let mut call = Inside::enter_outermost(self);
        let value = jit::run_outermost(&mut *call, host, entry, context);
        drop(call);
        let value = jit::report_stores_behind(self, host, value);
        if jit::is_plain(self) && !self.stack.progress.exceeds_total() {
            Ok(value)
        } else {
            Err(Unfinished(Some(value)))
        }
    }

    /// Does what is left of a call of `function` by [`Instance::call_prepared`].
    ///
    /// # Errors
    /// The program's fault.
    #[inline(never)]
    pub fn finish(
        &mut self,
        function: u32,
        Unfinished(value): Unfinished,
        host: &mut H,
    ) -> Result<u64, Box<Fault>> {
        let Some(value) = value else {
            return self.call_interpreted(function, host);
        };
        // The reason of a stop is named first, by what this call was allowed.
        let result = if jit::is_plain(self) {
            Ok(value)
        } else {
            self.settle(value, function, host)
        };
        self.account();
        result
    }

    /// Without native code, and as nearly all calls are: an outermost one, of which nothing needs
    /// attention.
    #[inline(always)]
    fn call_interpreted(&mut self, function: u32, host: &mut H) -> Result<u64, Box<Fault>> {
        if self.native.is_some() || self.heat.is_due() {
            return self.call_outermost(function, host);
        }
        let before = self.retired();
        let context = self.stack.contexts;
        let mut call = Inside::enter_outermost(self);
        let result = interp::run(&mut *call, host, function, [context, 0, 0, 0, 0]);
        drop(call);
        self.heat.note(function, self.retired() - before);
        if let (Ok(value), 0) = (&result, self.stack.progress.untidy) {
            self.account();
            return Ok(*value);
        }
        if self.has_faults() {
            self.tell_faults(function);
        }
        // The reason of a stop is named already, by what this call was allowed.
        self.account();
        self.leave(result.map_err(|trap| *trap), Nesting::default(), function)
            .map_err(Box::new)
    }

    /// An outermost call with arguments that are in their place, by whatever executes it.
    #[inline(never)]
    fn call_outermost(&mut self, function: u32, host: &mut H) -> Result<u64, Box<Fault>> {
        self.enter(function, [self.stack.contexts, 0, 0, 0, 0], host)
            .map_err(Box::new)
    }

    /// A call of which nothing is known.
    #[inline(never)]
    fn call_nested(
        &mut self,
        function: u32,
        args: &[u64],
        host: &mut H,
    ) -> Result<u64, Box<Fault>> {
        let context = self.stack.context();
        self.memory.put_words(context, args);
        self.enter(function, [context, 0, 0, 0, 0], host)
            .map_err(Box::new)
    }

    /// Native code for an outermost call of which nothing else needs attention.
    #[inline]
    fn quick_entry(&mut self, function: u32) -> Option<jit::ProgramEntry> {
        // Without native code nobody asks for the stack, which takes a look into /proc.
        let entry = self.entries.get(function as usize).copied()?;
        self.scratch.has_room().then_some(entry)
    }

    /// The end of an outermost call with [`Instance::quick_entry`] that has given `value`, and of
    /// which something is to be said.
    #[inline(never)]
    fn settle(&mut self, value: u64, function: u32, host: &mut H) -> Result<u64, Box<Fault>> {
        if self.has_faults() {
            self.tell_faults(function);
        }
        match jit::settle_outermost(self, value) {
            None => self.call_outermost(function, host),
            Some(result) => self
                .leave(result, Nesting::default(), function)
                .map_err(Box::new),
        }
    }

    /// Writes an array's index where the next callback can read it as a key.
    pub(crate) fn scratch_index(&mut self, index: u32) -> u64 {
        let address = self.stack.context() + 8 * MAX_ARGS as u64;
        self.memory.poke_u32(address, index);
        address
    }

    /// Calls the function at a callback's address, with its arguments in registers.
    ///
    /// # Errors
    /// The program's fault; [`Stop::WildCall`] if there is no function at `address`.
    pub fn call_function(
        &mut self,
        address: u64,
        args: [u64; 5],
        host: &mut H,
    ) -> Result<u64, Fault> {
        match self.function_at(address) {
            Some(function) => self.enter(function, args, host),
            None => Err(Fault {
                stop: Stop::WildCall(address),
                program: "callback".into(),
                insn: 0,
                file: None,
                line: 0,
            }),
        }
    }

    /// Runs a `SEC("syscall")` program on a context that it may change.
    ///
    /// # Errors
    /// The program's fault.
    ///
    /// # Panics
    /// If there is no such function.
    pub fn run_syscall(
        &mut self,
        function: u32,
        context: &mut [u8],
        host: &mut H,
    ) -> Result<u64, Fault> {
        let len = context.len() as u64;
        let Ok(address) = self.memory.alloc_map(len) else {
            return Err(self.fault(
                Stop::OutOfMemory {
                    limit: self.config.memory_bytes,
                },
                function,
            ));
        };
        self.memory.write(address, context);
        let result = self.enter(function, [address, 0, 0, 0, 0], host);
        self.memory.read(address, context);
        self.memory.free_map(address, len);
        result
    }

    /// Every call of a program comes through here.
    fn enter(&mut self, function: u32, args: [u64; 5], host: &mut H) -> Result<u64, Fault> {
        if self.stack.depth > MAX_NESTED {
            return Err(self.fault(Stop::CallDepth { limit: MAX_NESTED }, function));
        }
        if self.stack.depth == 0 {
            if self.heat.is_due() {
                self.look_for_native();
            }
            self.stack.roomy = self.native.is_some() && self.scratch.has_room();
        }
        let held = self.stack.progress.nesting;
        let mut call = Inside::enter(self);
        let result = call.execute(function, args, host);
        drop(call);
        if self.has_faults() {
            self.tell_faults(function);
        }
        let tidy = self.stack.depth > 0 || self.stack.progress.untidy == 0;
        if self.stack.depth == 0 {
            self.account();
            // As quick calls want it.
            self.stack.roomy = true;
        }
        match result {
            Ok(result) if tidy && self.stack.progress.nesting == held => Ok(result),
            result => self.leave(result, held, function),
        }
    }

    /// Executes a function of a call that has been entered, by whatever there is.
    #[inline]
    fn execute(&mut self, function: u32, args: [u64; 5], host: &mut H) -> Result<u64, Trap> {
        let native = self.native.as_ref().filter(|_| self.stack.roomy);
        let entry = native.and_then(|native| native.entry(function, &args, &self.memory));
        if let Some(entry) = entry {
            return jit::run(self, host, entry, function, args);
        }
        let before = self.retired();
        let result = interp::run(self, host, function, args).map_err(|trap| *trap);
        self.heat.note(function, self.retired() - before);
        result
    }

    /// A call has ended that held `held` when it began: the rest of it, if there is something to
    /// do or to say.
    #[cold]
    #[inline(never)]
    fn leave(
        &mut self,
        result: Result<u64, Trap>,
        held: Nesting,
        function: u32,
    ) -> Result<u64, Fault> {
        if self.stack.depth == 0 {
            self.free_removed();
        }
        let left = std::mem::replace(&mut self.stack.progress.nesting, held);
        let result = match (result, left.excess_over(held)) {
            (Err(trap), _) => Err(self.locate(trap)),
            (Ok(_), Some(what)) => Err(self.fault(Stop::Refused(what), function)),
            (Ok(result), None) => Ok(result),
        };
        if self.stack.depth == 0 {
            self.stack.innermost = None;
            self.forget_faults();
            self.stack.progress.untidy = 0;
        } else {
            self.stack.progress.untidy = Progress::SECTION * held.sections();
            self.stack.progress.put_aside();
        }
        result
    }

    /// Calls an import. The caller's block has ended, so counts are exact.
    pub(crate) fn call_import(
        &mut self,
        host: &mut H,
        import: usize,
        mut args: [u64; 5],
    ) -> Result<u64, Stop> {
        let binding = &mut self.bindings[import];
        binding.calls += 1;
        if let Some((argument, value)) = binding.given {
            args[argument] = value;
        }
        self.stack.progress.charged_ps += binding.cost_ps;
        match binding.body {
            Some(body) => body(&mut CallCtx { vm: self, host }, args),
            None => Err(Stop::not_simulated(&self.image.imports[import].name)),
        }
    }

    /// The memory of an element that left its map is used again when no program runs that could
    /// have its address, as RCU has it in the kernel.
    pub(crate) fn bury(&mut self, removed: Removed) {
        self.removed.push(removed);
        self.stack.progress.put_aside();
        if self.stack.depth == 0 {
            self.free_removed();
        }
    }

    /// A turn has ended: what was kept for those that wait may not be needed any more.
    #[cfg(not(target_family = "wasm"))]
    pub(crate) fn forget_removed(&mut self) {
        if !self.removed.is_empty() && self.stack.depth == 0 {
            self.free_removed();
        }
    }

    fn free_removed(&mut self) {
        // A call that waits may have their addresses, too.
        if self.aside.any() {
            return;
        }
        for removed in self.removed.drain(..) {
            self.memory.free_map(removed.element, removed.bytes);
        }
    }

    /// The fault of a whole function.
    fn fault(&mut self, stop: Stop, function: u32) -> Fault {
        let op = self.code.entries[function as usize].op as usize;
        self.locate(Trap { stop, op })
    }

    /// Says where `trap` happened. A nested call's fault passes through the host as a bare
    /// [`Stop`]; its place is remembered, because it is the one that helps.
    fn locate(&mut self, trap: Trap) -> Fault {
        if let Some(inner) = self
            .stack
            .innermost
            .take()
            .filter(|inner| inner.stop == trap.stop)
        {
            self.remember(&inner);
            return inner;
        }
        let Spot {
            program,
            insn,
            file,
            line,
        } = self.spot(trap.op);
        let fault = Fault {
            stop: trap.stop,
            program,
            insn,
            file,
            line,
        };
        self.remember(&fault);
        fault
    }

    fn remember(&mut self, fault: &Fault) {
        if self.stack.depth > 0 {
            self.stack.innermost = Some(fault.clone());
            self.stack.progress.put_aside();
        }
    }
}

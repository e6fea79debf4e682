//! An image made ready to run, with its memory.
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

use std::sync::Arc;

use crate::backend::{Backend, Execution, Refusal, WARM};
use crate::bind::{Binding, Config, InstanceError, bind};
use crate::decode::{self, Addresses};
use crate::host::{CallCtx, Fault, Host, HostFunction, Stop};
use crate::interp::{self, FRAME_BYTES, MAX_FRAMES, Trap};
use crate::jit;
use crate::map::Maps;
use crate::map::hash::Removed;
use crate::memory::Memory;
use crate::nesting::Nesting;
use crate::objects::Objects;
use crate::op::Code;
use crate::progress::Progress;
use crate::timer::Timers;
use crate::variables::Variables;
use crate::{Image, MapKind};

/// Calls of programs through the host on top of each other, beyond the outermost.
const MAX_NESTED: u32 = 8;

/// Arguments of a `struct_ops` callback; the kernel allows 12 (`MAX_BPF_FUNC_ARGS`, Linux 6.18,
/// include/linux/bpf.h).
const MAX_ARGS: usize = 12;

/// Words of a nested call's context: the arguments, and behind them a key for callbacks.
const CONTEXT_WORDS: u64 = 16;

/// The greatest budget that is told from none: differences of counts fit into a signed word.
const MOST_BUDGET: u64 = 1 << 62;

/// Guest address of the first function, outside the region: the kernel's module area. Only for
/// callbacks; a load from there gives zero.
const FUNCTIONS: u64 = 0xffff_ffff_c000_0000;

/// Bytes between the addresses of two functions.
const FUNCTION_STEP: u64 = 16;

/// An [`Image`] made ready to run. Its addresses, counts and results depend on nothing but the
/// image, the configuration and what the host does.
#[derive(Debug)]
pub struct Instance<H: Host> {
    pub(crate) memory: Memory,
    pub(crate) maps: Maps,
    pub(crate) timers: Timers,
    pub(crate) objects: Objects,
    pub(crate) variables: Variables,
    pub(crate) code: Arc<Code>,
    /// The same again, for an outermost call to borrow: to count references anew takes as long as
    /// to interpret ten instructions.
    spare_code: Option<Arc<Code>>,
    pub(crate) image: Arc<Image>,
    pub(crate) bindings: Vec<Binding<H>>,
    pub(crate) config: Config,
    /// Context arrays of nested calls, in the read-only half.
    contexts: u64,
    pub(crate) progress: Progress,
    /// [`Instance::retired`] and [`Instance::charged`] when the spin lock that is held was taken.
    pub(crate) locked_at: (u64, u64),
    pub(crate) stack_start: u64,
    pub(crate) stack_end: u64,
    /// Callers of the functions that run now, of all nested calls.
    pub(crate) frames: Vec<interp::Frame>,
    /// Calls in progress; 0 in an outermost one of which that is not said yet, see
    /// [`Instance::say_depth`].
    pub(crate) depth: u32,
    /// Elements that left their maps and may still be looked at.
    removed: Vec<Removed>,
    /// Where the innermost of nested calls failed.
    innermost: Option<Fault>,
    /// What native code needs while it runs.
    pub(crate) scratch: jit::Scratch,
    /// Native code, if it was made.
    pub(crate) native: Option<Arc<jit::Program>>,
    /// How an outermost call of each function begins; nothing as long as there is no native code.
    entries: Box<[jit::ProgramEntry]>,
    /// The configured budget, as far as it can be told from none.
    allowance: u64,
    /// Why there is none, if it was tried.
    refusal: Option<Refusal>,
    /// Native code is made at the first outermost call after so many retired instructions.
    translate_at: u64,
    /// Whether the outermost call runs on a native stack with room enough for native code. True
    /// between calls.
    pub(crate) roomy: bool,
}

impl<H: Host> Instance<H> {
    /// Creates the maps and data sections of `image` and binds its imports, by name and prototype:
    /// first from `table`, then from the machine's own functions.
    ///
    /// # Errors
    /// See [`InstanceError`]. Missing functions are reported all at once.
    pub fn new(
        image: Arc<Image>,
        table: &[HostFunction<H>],
        config: Config,
    ) -> Result<Self, InstanceError> {
        let bindings = bind(&image, table, &config)?;
        let has_arena = image.maps.iter().any(|map| map.kind == MapKind::Arena);
        let arena_bytes = has_arena.then_some(config.arena_bytes);
        let mut memory =
            Memory::reserve(config.map_bytes, arena_bytes).map_err(InstanceError::Reserve)?;
        let stack_bytes = u64::from(config.stack_bytes);
        let stack_start = memory.alloc_map(stack_bytes)?;
        let context_bytes = u64::from(MAX_NESTED + 1) * 8 * CONTEXT_WORDS;
        let contexts = memory.alloc_kernel(context_bytes, 64)?;
        let variables = Variables::new(&mut memory, &image.variables, config.cpus)?;
        let maps = Maps::new(&mut memory, &image, config.cpus)?;
        let places = Places {
            maps: &maps,
            variables: &variables,
            image: &image,
        };
        let code = Arc::new(decode::decode(&image, &places)?);
        let allowance = config.budget.min(MOST_BUDGET);
        let translate_at = match config.backend {
            Backend::Auto => WARM,
            Backend::Interpreter | Backend::Jit => u64::MAX,
        };
        let mut instance = Self {
            memory,
            maps,
            timers: Timers::default(),
            objects: Objects::default(),
            variables,
            spare_code: Some(Arc::clone(&code)),
            code,
            image,
            bindings,
            config,
            contexts,
            progress: Progress {
                frame: stack_start,
                ..Progress::default()
            },
            locked_at: (0, 0),
            stack_start,
            stack_end: stack_start + stack_bytes,
            frames: Vec::new(),
            depth: 0,
            removed: Vec::new(),
            innermost: None,
            scratch: jit::Scratch::default(),
            native: None,
            entries: Box::default(),
            allowance,
            refusal: None,
            translate_at,
            roomy: true,
        };
        instance.progress.refuel(allowance);
        if instance.config.backend == Backend::Jit {
            instance.translate();
        }
        match instance.refusal {
            Some(refusal) => Err(InstanceError::Native(refusal)),
            None => Ok(instance),
        }
    }

    /// Makes native code, or notes why it cannot.
    #[cold]
    fn translate(&mut self) {
        self.translate_at = u64::MAX;
        match jit::translate(self) {
            Ok(program) => {
                if FRAME_BYTES <= u64::from(self.config.stack_bytes) {
                    self.scratch
                        .rest(self.frame_limit(), self.memory.host_address(self.contexts));
                    self.entries = program.program_entries::<H>();
                }
                self.native = Some(program);
            }
            Err(refusal) => self.refusal = Some(refusal),
        }
    }

    /// Where the first frame of the call begins that has just been counted in.
    pub(crate) fn first_frame(&self) -> u64 {
        match self.depth {
            0 | 1 => self.stack_start,
            _ => self.progress.frame + FRAME_BYTES,
        }
    }

    /// The greatest frame pointer with which a function of this call may call another: by depth,
    /// and by stack.
    pub(crate) fn frame_limit(&self) -> u64 {
        let deepest = self.first_frame() + FRAME_BYTES * (MAX_FRAMES as u64 - 1);
        deepest.min(self.stack_end.saturating_sub(FRAME_BYTES))
    }

    /// What executes the programs at this time.
    #[must_use]
    pub fn execution(&self) -> Execution {
        match (&self.native, &self.refusal) {
            (Some(program), _) => program.size(),
            (None, Some(refusal)) => Execution::Refused(refusal.clone()),
            (None, None) => Execution::Interpreted,
        }
    }

    /// What was loaded.
    #[must_use]
    pub fn image(&self) -> &Image {
        &self.image
    }

    /// The memory, to mirror kernel objects in.
    #[inline]
    pub const fn memory(&mut self) -> &mut Memory {
        &mut self.memory
    }

    /// CPUs of the machine.
    #[must_use]
    pub const fn cpus(&self) -> u32 {
        self.config.cpus
    }

    /// Instructions retired since the instance was created. See the module about counting.
    #[inline]
    #[must_use]
    pub const fn retired(&self) -> u64 {
        self.progress.retired()
    }

    /// How often each function of the host was called, by name. Complete only with
    /// [`Config::tally`]: native code builds some of them in otherwise.
    pub fn calls(&self) -> impl Iterator<Item = (&str, u64)> {
        let names = self.image.imports.iter().map(|import| &*import.name);
        names.zip(self.bindings.iter().map(|binding| binding.calls))
    }

    /// What the calls of host functions have cost beyond their instructions, picoseconds.
    #[inline]
    #[must_use]
    pub const fn charged(&self) -> u64 {
        self.progress.charged_ps
    }

    /// A host function costs more than its table says, by `cost_ps` picoseconds.
    #[inline]
    pub const fn charge(&mut self, cost_ps: u64) {
        self.progress.charged_ps += cost_ps;
    }

    /// Instructions that an outermost call may retire.
    #[must_use]
    pub const fn budget(&self) -> u64 {
        self.config.budget
    }

    /// A built-in function handled `bytes` bytes. What it does counts as one instruction, but the
    /// budget shrinks with the work, so that no program runs for ever inside built-in functions.
    #[inline]
    pub const fn spend(&mut self, bytes: u64) {
        self.progress.spend(bytes / 8);
    }

    pub(crate) const fn stack_bytes(&self) -> u32 {
        self.config.stack_bytes
    }

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

    /// As [`Instance::call_program`], with a result that fits into registers.
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
        assert!(
            args.len() <= MAX_ARGS,
            "a callback has {} arguments",
            args.len()
        );
        let Some(entry) = self.quick_entry(function) else {
            return self.call_program_slowly(function, args, host);
        };
        // What a call needs is as the one before has left it.
        let answer = jit::run_outermost(self, host, entry, self.contexts, args);
        self.progress.refuel_after(answer.fuel(), self.allowance);
        if jit::is_plain(self) {
            return Ok(answer.value());
        }
        self.settle(answer.value(), function, args, host)
    }

    #[inline(never)]
    fn call_program_slowly(
        &mut self,
        function: u32,
        args: &[u64],
        host: &mut H,
    ) -> Result<u64, Box<Fault>> {
        self.say_depth();
        let context = self.context();
        self.memory.put_words(context, args);
        self.enter(function, [context, 0, 0, 0, 0], host)
            .map_err(Box::new)
    }

    /// Native code for an outermost call of which nothing else needs attention.
    #[inline]
    fn quick_entry(&mut self, function: u32) -> Option<jit::ProgramEntry> {
        let entry = *self.entries.get(function as usize)?;
        (self.is_resting() && self.scratch.has_room()).then_some(entry)
    }

    /// Whether no call is in progress, to somebody whom a program can call: each call has a budget
    /// of the same size, and no program calls anybody before its first block is charged.
    #[inline]
    const fn is_resting(&self) -> bool {
        self.progress.fuel == self.allowance.cast_signed()
    }

    /// Makes [`Instance::depth`] true. Calls by [`Instance::quick_entry`] are not counted when
    /// they begin, because few of them lead to another call, and stores are what limits them.
    const fn say_depth(&mut self) {
        if self.depth == 0 && !self.is_resting() {
            self.depth = 1;
            // The end of the outermost call takes it back.
            self.progress.put_aside();
        }
    }

    /// The end of an outermost call with [`Instance::quick_entry`] that has given `value`, and of
    /// which something is to be said.
    #[inline(never)]
    fn settle(
        &mut self,
        value: u64,
        function: u32,
        args: &[u64],
        host: &mut H,
    ) -> Result<u64, Box<Fault>> {
        self.depth = 0;
        match jit::settle_outermost(self, value) {
            None => self.call_program_slowly(function, args, host),
            Some(result) => self
                .leave(result, Nesting::default(), function)
                .map_err(Box::new),
        }
    }

    /// The context array of the next call; the depth must have been said.
    fn context(&self) -> u64 {
        self.contexts + u64::from(self.depth.min(MAX_NESTED)) * 8 * CONTEXT_WORDS
    }

    /// Writes an array's index where the next callback can read it as a key.
    pub(crate) fn scratch_index(&mut self, index: u32) -> u64 {
        self.say_depth();
        let address = self.context() + 8 * MAX_ARGS as u64;
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
                    limit: self.config.map_bytes,
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

    /// The guest address of a function.
    #[must_use]
    pub fn function_address(&self, function: u32) -> Option<u64> {
        Places::of(self).function(function)
    }

    fn function_at(&self, address: u64) -> Option<u32> {
        let at = address.wrapping_sub(FUNCTIONS);
        let function = u32::try_from(at / FUNCTION_STEP).ok()?;
        let exact = at.is_multiple_of(FUNCTION_STEP);
        (exact && (function as usize) < self.image.functions.len()).then_some(function)
    }

    /// Every call of a program comes through here.
    fn enter(&mut self, function: u32, args: [u64; 5], host: &mut H) -> Result<u64, Fault> {
        self.say_depth();
        if self.depth > MAX_NESTED {
            return Err(self.fault(Stop::CallDepth { limit: MAX_NESTED }, function));
        }
        if self.depth == 0 {
            if self.retired() >= self.translate_at {
                self.translate();
            }
            self.roomy = self.native.is_some() && self.scratch.has_room();
        }
        let held = self.progress.nesting;
        self.depth += 1;
        let native = self.native.as_ref().filter(|_| self.roomy);
        let entry = native.and_then(|native| native.entry(function, &args, &self.memory));
        let result = match entry {
            Some(entry) => jit::run(self, host, entry, function, args),
            None => interp::run(self, host, function, args),
        };
        self.depth -= 1;
        let tidy = self.depth > 0 || self.progress.untidy == 0;
        if self.depth == 0 {
            self.progress.refuel(self.allowance);
            // As quick calls want it.
            self.roomy = true;
        }
        match result {
            Ok(result) if tidy && self.progress.nesting == held => Ok(result),
            result => self.leave(result, held, function),
        }
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
        if self.depth == 0 {
            self.free_removed();
        }
        let left = std::mem::replace(&mut self.progress.nesting, held);
        let result = match (result, left.excess_over(held)) {
            (Err(trap), _) => Err(self.locate(trap)),
            (Ok(_), Some(what)) => Err(self.fault(Stop::Refused(what), function)),
            (Ok(result), None) => Ok(result),
        };
        if self.depth == 0 {
            self.innermost = None;
            self.progress.untidy = 0;
        } else {
            self.progress.untidy = Progress::SECTION * held.sections();
            self.progress.put_aside();
        }
        result
    }

    /// The code, apart from the instance.
    #[inline]
    pub(crate) fn lend_code(&mut self) -> Arc<Code> {
        let spare = self.spare_code.take();
        spare.unwrap_or_else(|| Arc::clone(&self.code))
    }

    /// Gives back what [`Instance::lend_code`] gave.
    #[inline]
    pub(crate) fn take_code_back(&mut self, code: Arc<Code>) {
        self.spare_code = Some(code);
    }

    /// The import that is the helper `number`.
    pub(crate) fn helper(&self, number: u64) -> Result<usize, Stop> {
        let wanted = u32::try_from(number).ok();
        let found = self
            .image
            .imports
            .iter()
            .position(|import| import.helper.is_some() && import.helper == wanted);
        found.ok_or_else(|| Stop::Poison(format!("the object declares no helper {number}")))
    }

    /// Calls an import. The caller's block has ended, so counts are exact.
    pub(crate) fn call_import(
        &mut self,
        host: &mut H,
        import: usize,
        args: [u64; 5],
    ) -> Result<u64, Stop> {
        let binding = &mut self.bindings[import];
        binding.calls += 1;
        self.progress.charged_ps += binding.cost_ps;
        match binding.body {
            Some(body) => body(&mut CallCtx { vm: self, host }, args),
            None => {
                let name = &self.image.imports[import].name;
                Err(Stop::Poison(format!("function `{name}` is not simulated")))
            }
        }
    }

    /// `addr_space_cast`, in both directions: the arena has the same addresses for the kernel and
    /// for user space.
    #[inline]
    pub(crate) fn cast_arena(&self, value: u64) -> u64 {
        let low = value & u64::from(u32::MAX);
        match self.memory.arena() {
            Some(pages) if low != 0 => pages.base() | low,
            _ => low,
        }
    }

    /// The memory of an element that left its map is used again when no program runs that could
    /// have its address, as RCU has it in the kernel.
    pub(crate) fn bury(&mut self, removed: Removed) {
        self.say_depth();
        self.removed.push(removed);
        self.progress.put_aside();
        if self.depth == 0 {
            self.free_removed();
        }
    }

    fn free_removed(&mut self) {
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
            .innermost
            .take()
            .filter(|inner| inner.stop == trap.stop)
        {
            self.remember(&inner);
            return inner;
        }
        let slot = self.code.origin[trap.op];
        let holds = |f: &&crate::Function| f.start <= slot && slot - f.start < f.len;
        let function = self.image.functions.iter().find(holds);
        let (program, start) = function.map_or(("?", 0), |f| (f.name.as_str(), f.start));
        let after = self.image.lines.partition_point(|line| line.insn <= slot);
        let line = after.checked_sub(1).map(|at| &self.image.lines[at]);
        let line = line.filter(|line| line.insn >= start);
        let fault = Fault {
            stop: trap.stop,
            program: program.to_owned(),
            insn: slot - start,
            file: line.map(|line| line.file.to_string()),
            line: line.map_or(0, |line| line.line),
        };
        self.remember(&fault);
        fault
    }

    fn remember(&mut self, fault: &Fault) {
        self.say_depth();
        if self.depth > 0 {
            self.innermost = Some(fault.clone());
            self.progress.put_aside();
        }
    }
}

/// A host function hands a nested program's fault on with `?`. The place is not lost: the instance
/// remembers it for the outermost call.
impl From<Fault> for Stop {
    fn from(fault: Fault) -> Self {
        fault.stop
    }
}

/// Where the decoder finds the addresses of an instance's parts.
struct Places<'a> {
    maps: &'a Maps,
    variables: &'a Variables,
    image: &'a Image,
}

impl<'a> Places<'a> {
    fn of<H: Host>(instance: &'a Instance<H>) -> Self {
        Self {
            maps: &instance.maps,
            variables: &instance.variables,
            image: &instance.image,
        }
    }
}

impl Addresses for Places<'_> {
    fn map_handle(&self, map: u32) -> Option<u64> {
        self.maps.handle(map)
    }

    fn map_value(&self, map: u32) -> Option<u64> {
        self.maps.get(map)?.first_value()
    }

    fn variable(&self, variable: u32) -> Option<u64> {
        self.variables.address(variable)
    }

    fn function(&self, function: u32) -> Option<u64> {
        let known = (function as usize) < self.image.functions.len();
        known.then(|| FUNCTIONS + u64::from(function) * FUNCTION_STEP)
    }
}

/// Every test runs on both back ends.
#[cfg(test)]
#[path = "instance"]
mod interpreted {
    const BACKEND: crate::Backend = crate::Backend::Interpreter;

    #[path = "tests.rs"]
    mod tests;
}

#[cfg(all(test, feature = "jit"))]
#[path = "instance"]
mod native {
    const BACKEND: crate::Backend = crate::Backend::Jit;

    #[expect(clippy::duplicate_mod, reason = "the same tests with another back end")]
    #[path = "tests.rs"]
    mod tests;
}

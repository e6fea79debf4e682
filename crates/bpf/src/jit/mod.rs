//! The native back end: a translator from operations to machine code, by `cranelift`.
//!
//! What a program does, counts and leaves behind is what the interpreter makes of it, to the
//! instruction; the interpreter is the definition. `function.rs` has the control flow and the
//! counting, `arithmetic.rs` the arithmetic, `access.rs` memory, `calls.rs` calls and what is built
//! in instead of calls. `native.rs` has all that native code and Rust do to each other: the record
//! that they share, the way in, and the functions that native code calls.
//!
//! # Native stack
//!
//! Native code runs on the thread's own stack, below the Rust code that entered it, because the
//! host functions that it calls must run there anyway. What it needs is bounded before it runs:
//! at most [`FRAMES`] frames, none of which may be larger than [`MAX_FRAME`]; a program with a
//! larger frame is interpreted. A frame is smaller than a page, so that an overflow cannot step
//! over the stack's guard page, and an outermost call with too little stack left is interpreted.

mod access;
mod arithmetic;
mod calls;
mod function;
mod known;
mod native;
mod plan;
mod shared;
mod stack;
mod store;
mod words;

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use cranelift_codegen::ir::{AbiParam, Signature, types::I64};
use cranelift_codegen::settings::{self, Configurable, Flags};
use cranelift_codegen::{Context, isa::OwnedTargetIsa};
use cranelift_frontend::FunctionBuilderContext;
use cranelift_jit::{ArenaMemoryProvider, JITBuilder, JITModule};
use cranelift_module::{FuncId, Linkage, Module, default_libcall_names};

use crate::backend::{Execution, Refusal};
use crate::interp::MAX_FRAMES;
use crate::op::Kind;
use crate::{Host, Image, Insn, Instance, Member, Memory};
pub(crate) use native::{
    Entry, HostEntry, ProgramEntry, Scratch, host_entry, is_plain, run, run_outermost,
    settle_outermost,
};
use plan::Plan;
pub(crate) use words::OpenWords;

/// Bytes of native stack that a frame may take.
const MAX_FRAME: u32 = 2048;

/// Address space for the machine code of a program, bytes: what a branch can span on aarch64.
const CODE_ROOM: usize = 128 << 20;

/// Frames that native code may have on the stack at a time: eight functions deep in each of the
/// outermost call and the eight that can nest in it.
const FRAMES: usize = MAX_FRAMES * 9;

/// Native code. Nothing of one instance is built in; see `shared.rs`.
pub(crate) struct Program {
    /// Owns the machine code; `None` only while it is dropped.
    module: Option<JITModule>,
    entries: Vec<Option<Entry>>,
    /// Functions that must be entered with a pointer into the region as their only argument.
    contexts: BTreeSet<u32>,
    size: Execution,
}

// SAFETY: The module is only kept for the machine code that it owns, which is finished and never
// changes; nothing calls into the module until it is dropped, by its only owner.
unsafe impl Send for Program {}
// SAFETY: As above; a shared reference gives nothing but the addresses of functions.
unsafe impl Sync for Program {}

impl std::fmt::Debug for Program {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Program").field(&self.size).finish()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        if let Some(module) = self.module.take() {
            // SAFETY: Entries are only called through `run`, for an instance that shares this
            // program. This is dropped with the last such instance, so none of them is executing.
            unsafe { module.free_memory() };
        }
    }
}

impl Program {
    pub(crate) fn size(&self) -> Execution {
        self.size.clone()
    }

    /// For outermost calls, by function.
    pub(crate) fn program_entries<H: Host>(&self) -> Box<[ProgramEntry]> {
        let of = |(function, entry): (u32, &Option<Entry>)| match entry {
            // SAFETY: The function was translated with a context as its only argument.
            Some(entry) if self.contexts.contains(&function) => unsafe { ProgramEntry::of(*entry) },
            _ => ProgramEntry::absent::<H>(),
        };
        (0..).zip(&self.entries).map(of).collect()
    }

    /// Where `function` begins, if it may be entered with `args`; it is interpreted otherwise.
    #[inline]
    pub(crate) fn entry(&self, function: u32, args: &[u64; 5], memory: &Memory) -> Option<Entry> {
        let entry = *self.entries.get(function as usize)?;
        let is_context = memory.is_inside(args[0]) && args[1..] == [0; 4];
        entry.filter(|_| is_context || !self.contexts.contains(&function))
    }
}

/// Makes native code of all functions that a kernel would load, and those that they can reach.
///
/// If it was made for an instance like this one before, that is it.
pub(crate) fn translate<H: Host>(vm: &Instance<H>) -> Result<Arc<Program>, Refusal> {
    let functions = reachable(vm.image());
    let is_insn = |op: &&crate::op::Op| op.kind != Kind::Fall;
    let len = |function: &u32| vm.code.ops_of(*function).iter().filter(is_insn).count() as u64;
    let instructions = functions.iter().map(len).sum();
    let limit = vm.config.native_limit;
    if instructions > u64::from(limit) {
        return Err(Refusal::TooLarge {
            instructions,
            limit,
        });
    }
    let plan = Plan::new(vm);
    let key = shared::Key::new(&plan, &functions);
    if let Some(program) = shared::find(&key) {
        return Ok(program);
    }
    // The generator is somebody else's code: that it gives up on a strange program by an assertion
    // must not end the run.
    let built = catch_unwind(AssertUnwindSafe(|| build(&plan, &functions)));
    let (module, entries, bytes) =
        built.unwrap_or_else(|_| Err(Refusal::Generator("it panicked".into())))?;
    let program = Arc::new(Program {
        module: Some(module),
        entries,
        contexts: plan.contexts,
        size: Execution::Native {
            functions: functions.len() as u32,
            instructions: instructions as u32,
            bytes,
        },
    });
    shared::keep(key, &program);
    Ok(program)
}

/// The functions that a kernel loads, what they call, and callbacks whose address they take. With
/// no programs, as in tests, all.
fn reachable(image: &Image) -> BTreeSet<u32> {
    let of_program = |program: u32| image.programs.get(program as usize).map(|p| p.function);
    let members = image.struct_ops.iter().flat_map(|table| &table.members);
    let mut pending: Vec<u32> = members
        .filter_map(|(_, member)| match member {
            Member::Program(program) => of_program(*program),
            _ => None,
        })
        .collect();
    let loaded = image.programs.iter().filter(|program| program.autoload);
    pending.extend(loaded.map(|program| program.function));
    if image.programs.is_empty() {
        pending.extend(0..image.functions.len() as u32);
    }
    let mut found = BTreeSet::new();
    while let Some(function) = pending.pop() {
        if found.insert(function) {
            pending.extend(mentioned(image, function));
        }
    }
    found
}

/// The functions that `function` calls or takes the address of. Every slot is looked at, so the
/// second slot of a constant may name one too many, which does no harm.
pub(super) fn mentioned(image: &Image, function: u32) -> impl Iterator<Item = u32> + '_ {
    const CALL: u8 = 0x85;
    const LD_IMM64: u8 = 0x18;
    let range = &image.functions[function as usize];
    let code = &image.code[range.start as usize..][..range.len as usize];
    let mentions = |insn: &&Insn| matches!((insn.code, insn.src), (CALL, 1) | (LD_IMM64, 4));
    let known = |function: &u32| (*function as usize) < image.functions.len();
    code.iter()
        .filter(mentions)
        .map(|insn| insn.imm as u32)
        .filter(known)
}

type Built = (JITModule, Vec<Option<Entry>>, u32);

/// Generates all code, and makes it executable.
fn build(plan: &Plan<'_>, functions: &BTreeSet<u32>) -> Result<Built, Refusal> {
    let mut builder = JITBuilder::with_isa(isa()?, default_libcall_names());
    // One piece of address space, so that every function can reach every other.
    let room = ArenaMemoryProvider::new_with_size(CODE_ROOM).map_err(generator)?;
    builder.memory_provider(Box::new(room));
    let mut module = JITModule::new(builder);
    match define_all(&mut module, plan, functions) {
        Ok(bytes) => {
            let mut entries = vec![None; plan.image.functions.len()];
            for (function, id) in &bytes.ids {
                let code = module.get_finalized_function(*id);
                // SAFETY: The code is finished and has the signature of `signature`.
                entries[*function as usize] = Some(unsafe { Entry::new(code) });
            }
            Ok((module, entries, bytes.bytes))
        }
        Err(refusal) => {
            // SAFETY: No address of this code has left this function.
            unsafe { module.free_memory() };
            Err(refusal)
        }
    }
}

struct Defined {
    ids: BTreeMap<u32, FuncId>,
    bytes: u32,
}

fn define_all(
    module: &mut JITModule,
    plan: &Plan<'_>,
    functions: &BTreeSet<u32>,
) -> Result<Defined, Refusal> {
    let mut ids = BTreeMap::new();
    let signature = signature(module);
    for function in functions {
        let mut signature = signature.clone();
        if plan.has_context(*function) {
            signature.params.truncate(2);
        }
        let id = module
            .declare_function(&format!("f{function}"), Linkage::Local, &signature)
            .map_err(generator)?;
        ids.insert(*function, id);
    }
    let mut context = module.make_context();
    let mut builder_context = FunctionBuilderContext::new();
    let mut bytes = 0;
    let mut stores = Vec::new();
    for callee in plan.callees.store {
        let id = store::define(module, &mut context, &mut builder_context, callee)?;
        stores.push(id);
        bytes += code_size(&context, "a store")?;
        module.clear_context(&mut context);
    }
    let stores = stores.try_into().expect("one for each size");
    for (function, id) in &ids {
        context.func.signature = signature.clone();
        if plan.has_context(*function) {
            context.func.signature.params.truncate(2);
        }
        let start = function::Start {
            plan,
            module,
            ids: &ids,
            stores,
            function: *function,
        };
        start.translate(&mut context.func, &mut builder_context);
        module
            .define_function(*id, &mut context)
            .map_err(generator)?;
        bytes += code_size(&context, &plan.image.functions[*function as usize].name)?;
        module.clear_context(&mut context);
    }
    module.finalize_definitions().map_err(generator)?;
    Ok(Defined { ids, bytes })
}

/// Bytes of the code just generated, if its frame is not too large.
fn code_size(context: &Context, function: &str) -> Result<u32, Refusal> {
    let code = context
        .compiled_code()
        .ok_or_else(|| Refusal::Generator("no code came out".into()))?;
    // Above the frame lie the return address and the caller's frame pointer.
    let frame = code.buffer.frame_layout().map_or(u32::MAX, |layout| {
        layout.frame_to_fp_offset.saturating_add(16)
    });
    if frame > MAX_FRAME {
        return Err(Refusal::Frame {
            function: function.into(),
            bytes: frame,
            limit: MAX_FRAME,
        });
    }
    Ok(code.code_info().total_size)
}

/// The signature of every translated function and of what it calls: the instance and `r1` to `r5`
/// in; `r0` and the fuel that is left out.
fn signature(module: &JITModule) -> Signature {
    let mut signature = module.make_signature();
    signature.params = vec![AbiParam::new(I64); 6];
    signature.returns = vec![AbiParam::new(I64); 2];
    signature
}

fn isa() -> Result<OwnedTargetIsa, Refusal> {
    let mut flags = settings::builder();
    let verify = if cfg!(debug_assertions) {
        "true"
    } else {
        "false"
    };
    let wanted = [
        ("opt_level", "speed"),
        ("is_pic", "false"),
        ("use_colocated_libcalls", "false"),
        ("enable_verifier", verify),
        // Nothing unwinds through native code; see `native.rs`.
        ("unwind_info", "false"),
    ];
    for (flag, value) in wanted {
        flags.set(flag, value).map_err(generator)?;
    }
    if !cfg!(any(target_arch = "x86_64", target_arch = "aarch64")) {
        return Err(Refusal::Processor(std::env::consts::ARCH.into()));
    }
    let builder =
        cranelift_native::builder().map_err(|error| Refusal::Processor(error.to_string()))?;
    builder.finish(Flags::new(flags)).map_err(generator)
}

fn generator(error: impl std::fmt::Display) -> Refusal {
    Refusal::Generator(error.to_string())
}

#[cfg(test)]
mod tests;

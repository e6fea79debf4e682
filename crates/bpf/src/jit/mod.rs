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
//! at most so many frames as `stack.rs` says, none of which may be larger than [`MAX_FRAME`]; a
//! program with a larger frame is interpreted. A frame is smaller than a page, so that an overflow
//! cannot step over the stack's guard page, and an outermost call with too little stack left is
//! interpreted.

mod access;
mod arena;
mod arithmetic;
mod calls;
mod entry;
mod function;
mod known;
mod native;
mod plan;
mod program;
mod shared;
mod signature;
mod stack;
mod store;

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use cranelift_codegen::settings::{self, Configurable, Flags};
use cranelift_codegen::{Context, isa::OwnedTargetIsa};
use cranelift_frontend::FunctionBuilderContext;
use cranelift_jit::{ArenaMemoryProvider, JITBuilder, JITModule};
use cranelift_module::{FuncId, Linkage, Module, default_libcall_names};

use crate::backend::{Execution, Refusal};
use crate::{Host, Instance};
pub(crate) use entry::report_stores_behind;
pub(crate) use entry::{HostEntry, ProgramEntry, Scratch, host_entry};
pub(crate) use native::{is_plain, put_arguments, run, run_outermost, settle_outermost};
use plan::InstancePlan;
pub(crate) use program::NativeProgram;
pub(crate) use shared::KnownCode;
use signature::{generator, signature};
use stack::MAX_FRAME;

/// Address space for the machine code of a program, bytes: what a branch can span on aarch64.
const CODE_ROOM: usize = 128 << 20;

/// Makes native code of these functions. Those that they can reach must be among them.
pub(crate) fn translate<H: Host>(
    vm: &Instance<H>,
    functions: &BTreeSet<u32>,
) -> Result<Arc<NativeProgram>, Refusal> {
    let instructions = vm.code.instructions(functions);
    let limit = vm.config.native_limit;
    if instructions > u64::from(limit) {
        return Err(Refusal::TooLarge {
            instructions,
            limit,
        });
    }
    let plan = InstancePlan::new(vm);
    let key = shared::Key::new(&plan);
    if let Some(program) = shared::look(&key, functions).program {
        return Ok(program);
    }
    // The generator is somebody else's code: that it gives up on a strange program by an assertion
    // must not end the run.
    let built = catch_unwind(AssertUnwindSafe(|| build(&plan, functions)));
    let (module, entries, bytes) =
        built.unwrap_or_else(|_| Err(Refusal::Generator("it panicked".into())))?;
    let program = Arc::new(NativeProgram {
        module: Some(module),
        entries,
        contexts: plan.contexts,
        size: Execution::Native {
            functions: functions.len() as u32,
            instructions: instructions as u32,
            bytes,
        },
    });
    shared::keep(key, functions.clone(), &program);
    Ok(program)
}

/// What instances of this process with the same code have made of it.
pub(crate) fn known<H: Host>(vm: &Instance<H>, functions: &BTreeSet<u32>) -> KnownCode {
    shared::look(&shared::Key::new(&InstancePlan::new(vm)), functions)
}

/// An instance ends that has interpreted so many instructions without native code for them.
pub(crate) fn remember<H: Host>(vm: &Instance<H>, interpreted: u64) {
    shared::warm(shared::Key::new(&InstancePlan::new(vm)), interpreted);
}

type Built = (JITModule, Vec<Option<entry::NativeEntry>>, u32);

/// Generates all code, and makes it executable.
fn build(plan: &InstancePlan<'_>, functions: &BTreeSet<u32>) -> Result<Built, Refusal> {
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
                entries[*function as usize] = Some(unsafe { entry::NativeEntry::new(code) });
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
    plan: &InstancePlan<'_>,
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
    let mut define = |callees: [usize; 4]| {
        let mut defined = Vec::new();
        for callee in callees {
            let id = store::define(module, &mut context, &mut builder_context, callee)?;
            defined.push(id);
            bytes += code_size(&context, "a store")?;
            module.clear_context(&mut context);
        }
        Ok(defined.try_into().expect("one for each size"))
    };
    let stores = define(plan.callees.store)?;
    let (loads, others) = plan.callees.arena;
    let arena = (define(loads)?, define(others)?);
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
            arena,
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

#[cfg(test)]
mod tests;

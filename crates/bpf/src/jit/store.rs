//! Stores that native code leaves to Rust, behind functions that preserve all registers.
//!
//! They are called where hardly anybody comes. If such a call destroyed registers as others do,
//! every function with a store would have to keep in memory, from its entry on, what it needs
//! behind one.

use cranelift_codegen::Context;
use cranelift_codegen::ir::types::I64;
use cranelift_codegen::ir::{AbiParam, InstBuilder};
use cranelift_codegen::isa::CallConv;
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use cranelift_jit::JITModule;
use cranelift_module::{FuncId, Module};

use super::signature::{generator, signature};
use crate::Refusal;

/// Defines a function that calls `callee`, one of `native.rs`, with the instance, an address and
/// a value. It returns nothing; whether the program was stopped stands in the instance. The code
/// is left in `context`.
pub(super) fn define(
    module: &mut JITModule,
    context: &mut Context,
    builder_context: &mut FunctionBuilderContext,
    callee: usize,
) -> Result<FuncId, Refusal> {
    let mut store = signature(module);
    store.params.truncate(3);
    let mut own = module.make_signature();
    own.call_conv = CallConv::PreserveAll;
    own.params = vec![AbiParam::new(I64); 3];
    let id = module.declare_anonymous_function(&own);
    let id = id.map_err(generator)?;
    context.func.signature = own;
    let config = module.target_config();
    let mut b = FunctionBuilder::new(&mut context.func, builder_context);
    let block = b.create_block();
    b.append_block_params_for_function_params(block);
    b.switch_to_block(block);
    let args = b.block_params(block).to_vec();
    let store = b.import_signature(store);
    let callee = b.ins().iconst(I64, (callee as u64).cast_signed());
    b.ins().call_indirect(store, callee, &args);
    b.ins().return_(&[]);
    b.seal_all_blocks();
    b.finalize(config);
    module.define_function(id, context).map_err(generator)?;
    Ok(id)
}

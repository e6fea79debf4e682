//! What all native code is called with, and what the code generator complains of.

use cranelift_codegen::ir::{AbiParam, Signature, types::I64};
use cranelift_jit::JITModule;
use cranelift_module::Module;

use crate::backend::Refusal;

/// The signature of every translated function and of what it calls: the instance and `r1` to `r5`
/// in; `r0` and the fuel that is left out.
pub(super) fn signature(module: &JITModule) -> Signature {
    let mut signature = module.make_signature();
    signature.params = vec![AbiParam::new(I64); 6];
    signature.returns = vec![AbiParam::new(I64); 2];
    signature
}

/// The code generator's own error.
pub(super) fn generator(error: impl std::fmt::Display) -> Refusal {
    Refusal::Generator(error.to_string())
}

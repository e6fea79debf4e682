//! Stands in the place of `on_kernel` in a program that was built without the feature `live`.

use std::num::NonZeroUsize;

use model::Advised;
use runslice::door::{KernelPlace, Store, UnsupportedError};

use crate::experiments;

/// No experiment can be run on a kernel.
///
/// # Errors
/// Always.
pub fn machine<'a>(
    _: KernelPlace,
    _: &'a Store,
    _: Option<NonZeroUsize>,
) -> anyhow::Result<Box<dyn experiments::Machine + 'a>> {
    let message = Advised::new(
        "this runslice was built without what takes a real kernel",
        "use --machine sim, or build one that has it with `make release`",
    );
    Err(UnsupportedError::new(message).into())
}

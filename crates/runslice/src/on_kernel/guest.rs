//! Guests, for every verb that boots one.

use std::path::PathBuf;

use model::Advised;
use vm::VmError;

use crate::about::About;
use crate::exit::{UnsupportedError, UsageError};

/// How a command calls this program.
pub const OWN_NAME: &str = "runslice";

/// `runslice` means this program in a guest, whatever its file is called here.
///
/// # Errors
/// The errors of [`About::file`].
pub fn own_name() -> anyhow::Result<Vec<(String, PathBuf)>> {
    Ok(vec![(OWN_NAME.to_owned(), About::file()?)])
}

/// What the user can mend by installing something is told from what failed.
pub fn explain(error: VmError) -> anyhow::Error {
    match error {
        VmError::ProgramMissing { .. } => UsageError::new(Advised::of(&error)).into(),
        VmError::ToolMissing { .. }
        | VmError::BusyboxDynamic { .. }
        | VmError::KernelMissing { .. } => UnsupportedError::new(Advised::of(&error)).into(),
        _ => error.into(),
    }
}

//! Guests, for every verb that boots one.

use std::env;
use std::path::PathBuf;

use anyhow::Context as _;
use vm::VmError;

use crate::exit::{UnsupportedError, UsageError};

/// How a command calls this program.
pub const OWN_NAME: &str = "runslice";

/// `runslice` means this program in a guest, whatever its file is called here.
///
/// # Errors
/// When the system cannot say where the file is.
pub fn own_name() -> anyhow::Result<Vec<(String, PathBuf)>> {
    let me = env::current_exe().context("cannot find this program's own file")?;
    Ok(vec![(OWN_NAME.to_owned(), me)])
}

/// What the user can mend by installing something is told from what failed.
pub fn explain(error: VmError) -> anyhow::Error {
    match error {
        VmError::ProgramMissing { .. } => UsageError(error.to_string()).into(),
        VmError::ToolMissing { .. }
        | VmError::BusyboxDynamic { .. }
        | VmError::KernelMissing { .. } => UnsupportedError(error.to_string()).into(),
        _ => error.into(),
    }
}

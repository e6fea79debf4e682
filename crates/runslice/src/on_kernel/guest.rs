//! Guests, for every verb that boots one.

use std::path::PathBuf;

use model::Advised;
use vm::{End, GuestOutcome, VmError};

use crate::exit::{UnsupportedError, UsageError};
use crate::programs;

/// How a command calls this program.
pub const OWN_NAME: &str = "runslice";

/// `runslice` means this program in a guest, whatever its file is called here.
///
/// # Errors
/// The errors of [`programs::runslice`].
pub fn own_name() -> anyhow::Result<Vec<(String, PathBuf)>> {
    Ok(vec![(OWN_NAME.to_owned(), programs::runslice()?)])
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

/// Why a guest has brought no results, in words; `text` is what it brought.
#[must_use]
pub fn failure(outcome: &GuestOutcome, text: &str) -> Option<String> {
    let words = String::from_utf8_lossy(&outcome.stderr);
    let last = words.lines().last().unwrap_or_default();
    match &outcome.end {
        End::NoResult { reason } => Some(format!("the guest gave no result: {reason}")),
        End::TimedOut => Some("the guest took too long".to_owned()),
        End::Exited(status) if text.is_empty() => {
            Some(format!("nothing was run: status {status}; {last}"))
        }
        End::Exited(_) => None,
    }
}

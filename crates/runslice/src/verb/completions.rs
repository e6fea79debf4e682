//! `runslice completions SHELL`.

use std::io::{self, Write};

use anyhow::Context as _;
use clap_complete::Shell;
use clap_complete::env::Shells;

use crate::exit::Status;

/// The variable in which a shell says that it wants completions, and for which shell.
pub const VARIABLE: &str = "COMPLETE";

/// Prints what `shell` must read to ask this program.
///
/// # Errors
/// When standard output is closed.
pub fn run(shell: Shell) -> anyhow::Result<Status> {
    let shells = Shells::builtins();
    let shell = shells
        .completer(&shell.to_string())
        .context("a shell that is known")?;
    let mut script = Vec::new();
    shell.write_registration(VARIABLE, "runslice", "runslice", "runslice", &mut script)?;
    io::stdout().write_all(&script)?;
    Ok(Status::Done)
}

//! `runslice completions SHELL`.

use std::io::{self, Write};

use clap::CommandFactory;
use clap_complete::Shell;

use crate::cli::Cli;
use crate::exit::Status;

/// Prints the completions for `shell`.
///
/// # Errors
/// When standard output is closed.
pub fn run(shell: Shell) -> anyhow::Result<Status> {
    // The generator panics when it cannot write, so it writes to memory.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "runslice", &mut script);
    io::stdout().write_all(&script)?;
    Ok(Status::Done)
}

//! `runslice man FOLDER`.

use std::path::Path;

use anyhow::Context;
use clap::CommandFactory;

use crate::cli::Cli;
use crate::exit::Status;

/// Writes a manual page for the program and for each verb.
///
/// # Errors
/// When a page cannot be written.
pub fn run(folder: &Path) -> anyhow::Result<Status> {
    clap_mangen::generate_to(Cli::command(), folder)
        .with_context(|| format!("cannot write manual pages into {}", folder.display()))?;
    Ok(Status::Done)
}

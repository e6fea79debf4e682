//! `runslice man FOLDER`.

use std::io::Write as _;
use std::path::Path;

use clap::{Command, CommandFactory};
use clap_mangen::Man;

use crate::cli::Cli;
use crate::exit::Status;
use crate::help::arranged;
use crate::output;

/// Writes a manual page for the program and for each verb.
///
/// # Errors
/// When the folder cannot be made, or another user could have prepared it. When a page cannot be
/// written.
pub fn run(folder: &Path) -> anyhow::Result<Status> {
    let mut program = arranged(Cli::command()).disable_help_subcommand(true);
    program.build();
    output::make_folder(folder)?;
    write(program, folder)?;
    Ok(Status::Done)
}

/// Writes the pages of a command's own commands, and its own.
fn write(command: Command, folder: &Path) -> anyhow::Result<()> {
    let shown = command.get_subcommands().filter(|it| !it.is_hide_set());
    for command in shown.cloned() {
        write(command, folder)?;
    }
    let page = Man::new(command);
    let mut text = Vec::new();
    page.render(&mut text)?;
    let mut to = output::create(&folder.join(page.get_filename()))?;
    to.write_all(&text)?;
    Ok(to.flush()?)
}

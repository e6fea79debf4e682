//! Where results go: standard output, or a file that the user names.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal as _, Write};
use std::path::Path;

use anyhow::Context;

use crate::exit::UsageError;
use crate::export;

/// Opens `path` for results, or standard output when there is none.
///
/// # Errors
/// When the file cannot be created.
pub fn open(path: Option<&Path>) -> anyhow::Result<Box<dyn Write>> {
    match path {
        Some(path) => Ok(Box::new(create(path)?)),
        None => Ok(Box::new(BufWriter::new(io::stdout().lock()))),
    }
}

/// Refuses bytes that no terminal can show, before the work for them is done.
///
/// # Errors
/// When they would go to a terminal.
pub fn check(form: Option<export::Form>, path: Option<&Path>) -> Result<(), UsageError> {
    let is_text = form.is_none_or(export::Form::is_text);
    if is_text || path.is_some() || !io::stdout().is_terminal() {
        return Ok(());
    }
    let message = "a Parquet file is bytes that no terminal shows; name a file with --output";
    Err(UsageError(message.to_owned()))
}

/// Creates a file, or empties it.
///
/// # Errors
/// When the file cannot be created; the message names it.
pub fn create(path: &Path) -> anyhow::Result<BufWriter<File>> {
    let file = File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(BufWriter::new(file))
}

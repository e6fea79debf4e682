//! Where results go: standard output, or a file that the user names.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use anyhow::Context;

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

/// Creates a file, or empties it.
///
/// # Errors
/// When the file cannot be created; the message names it.
pub fn create(path: &Path) -> anyhow::Result<BufWriter<File>> {
    let file = File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(BufWriter::new(file))
}

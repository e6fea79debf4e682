//! Where results go: standard output, or a file that the user names.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal as _, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::exit::UsageError;
use crate::sheet;

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
pub fn check(form: Option<sheet::Form>, path: Option<&Path>) -> Result<(), UsageError> {
    let is_text = form.is_none_or(sheet::Form::is_text);
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

/// The file for one of several policies: `events.jsonl` becomes `events.mlfq.jsonl`.
pub fn path_for(path: &Path, policy: &str, several: bool) -> PathBuf {
    if !several {
        return path.to_owned();
    }
    let plain = |c: char| {
        if c.is_alphanumeric() || c == '-' || c == '_' {
            c
        } else {
            '-'
        }
    };
    let policy: String = policy.chars().map(plain).collect();
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let name = match path.extension() {
        Some(ending) => format!("{stem}.{policy}.{}", ending.to_string_lossy()),
        None => format!("{stem}.{policy}"),
    };
    path.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_policies_get_a_file_each() {
        let file = |path: &str, policy| path_for(Path::new(path), policy, true);
        assert_eq!(file("out/e.jsonl", "mlfq"), Path::new("out/e.mlfq.jsonl"));
        assert_eq!(file("e", "mlfq:nq=3"), Path::new("e.mlfq-nq-3"));
        let alone = path_for(Path::new("e.jsonl"), "mlfq", false);
        assert_eq!(alone, Path::new("e.jsonl"));
    }
}

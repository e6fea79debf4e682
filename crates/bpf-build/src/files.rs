//! The files below a folder.

use std::fs;
use std::path::{Path, PathBuf};

/// All files at and below `path`, in order.
///
/// # Panics
/// When a folder cannot be read: without its sources nothing can be built.
#[must_use]
pub fn files_below(path: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    collect(path, &mut files);
    files.sort();
    files
}

fn collect(path: &Path, files: &mut Vec<PathBuf>) {
    if path.is_file() {
        files.push(path.to_owned());
        return;
    }
    let entries = fs::read_dir(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    for entry in entries.flatten() {
        collect(&entry.path(), files);
    }
}

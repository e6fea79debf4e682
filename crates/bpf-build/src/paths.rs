//! Paths as the compiler sees them: relative to the source's folder.

use std::path::{Component, Path, PathBuf};

use crate::Error;

/// The folder in which a file lies, without links and dots.
pub(crate) fn folder(file: &Path) -> Result<PathBuf, Error> {
    match file.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => canonical(parent),
        _ => canonical(Path::new(".")),
    }
}

/// `path` without links and dots.
pub(crate) fn canonical(path: &Path) -> Result<PathBuf, Error> {
    path.canonicalize().map_err(|source| Error::File {
        path: path.to_path_buf(),
        source,
    })
}

/// How to get from the folder `from` to `to`, both canonical.
pub(crate) fn relative(from: &Path, to: &Path) -> PathBuf {
    let shared = from
        .components()
        .zip(to.components())
        .take_while(|(a, b)| a == b)
        .count();
    let up = from.components().skip(shared).map(|_| Component::ParentDir);
    let path: PathBuf = up.chain(to.components().skip(shared)).collect();
    if path.as_os_str().is_empty() {
        PathBuf::from(".")
    } else {
        path
    }
}

/// The files behind the colon of a make rule as the compiler writes it (`-MD`).
pub(crate) fn prerequisites(rule: &str) -> Vec<String> {
    let Some((_, files)) = rule.split_once(": ") else {
        return Vec::new();
    };
    let mut found = vec![String::new()];
    let mut escaped = false;
    for c in files.replace("\\\n", " ").chars() {
        match c {
            '\\' if !escaped => escaped = true,
            ' ' | '\n' if !escaped => found.push(String::new()),
            _ => {
                escaped = false;
                found.last_mut().expect("never empty").push(c);
            }
        }
    }
    found.retain(|file| !file.is_empty());
    found
}

/// `path` without `.` and `..`, by its letters alone.
#[cfg(feature = "others")]
pub(crate) fn without_dots(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    plain
}

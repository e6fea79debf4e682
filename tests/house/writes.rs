//! That the doors write by `folder`, and not by `std::fs`: root would follow other users' links,
//! and write into folders that they have prepared.

use std::fs;
use std::path::Path;

use crate::{modules, root};

/// What makes, replaces or opens a file or a folder to write.
const WRITES: [&str; 9] = [
    "fs::write(",
    "fs::copy(",
    "fs::rename(",
    "File::create(",
    "File::create_new(",
    "File::options()",
    "OpenOptions",
    "create_dir",
    "DirBuilder",
];

/// The files that may, and where they write.
const MAY: [(&str, &str); 11] = [
    ("reproduce/src/machines/on_kernel/kernels.rs", OWN),
    ("runslice/src/files.rs", OWN),
    ("runslice/src/on_kernel/fidelity.rs", OWN),
    ("runslice/src/on_kernel/series.rs", OWN),
    (
        "runslice/src/on_kernel/session.rs",
        "below /run, where root alone writes",
    ),
    ("runslice/src/on_kernel/switch.rs", KERNEL),
    ("runslice/src/on_kernel/verb/load/around.rs", KERNEL),
    (
        "runslice/src/on_kernel/verb/record/file.rs",
        "new, after `folder::check_way`, of mode 600",
    ),
    ("runslice/src/source.rs", OWN),
    ("runslice/src/verb/check.rs", OWN),
    ("runslice/src/verb/fidelity/make.rs", OWN),
];
const OWN: &str = "in an `OwnFolder`, which nobody else can reach";
const KERNEL: &str = "files of the kernel, below /proc and /sys";

/// The words by which a file writes, but for its tests.
fn writes(file: &Path) -> Vec<&'static str> {
    let text = fs::read_to_string(file).expect("a source is readable");
    let code = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    let lines = || {
        code.lines()
            .filter(|line| !line.trim_start().starts_with("//"))
    };
    let found = WRITES
        .iter()
        .filter(|word| lines().any(|line| has(line, word)));
    found.copied().collect()
}

/// Whether a line has such words; `NewFile::create(` is not `File::create(`.
fn has(line: &str, word: &str) -> bool {
    let mut found = line.match_indices(word);
    found.any(|(at, _)| !line[..at].ends_with(|it: char| it.is_alphanumeric() || it == '_'))
}

#[test]
fn doors_write_by_folder_and_not_by_std() {
    let mut may: Vec<_> = MAY.iter().map(|it| it.0).collect();
    for door in ["runslice", "reproduce", "mcp", "testing"] {
        let crates = root().join("crates");
        for (name, file) in modules(&crates.join(door).join("src")) {
            if name.iter().any(|part| part == "tests" || part == "test") {
                continue;
            }
            let found = writes(&file);
            let place = file
                .strip_prefix(&crates)
                .expect("below")
                .display()
                .to_string();
            if found.is_empty() {
                continue;
            }
            let known = may.iter().position(|it| *it == place);
            let known = known.unwrap_or_else(|| {
                panic!(
                    "{place} writes by {found:?}: use `output` or `folder`, which follow no link \
                     of another user"
                )
            });
            may.remove(known);
        }
    }
    assert!(
        may.is_empty(),
        "{may:?} write no more: take them off the list"
    );
}

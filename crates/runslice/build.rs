//! Gives the program a number of the sources that simulated results depend on, so that stored
//! results of another version are known. Debug and release builds have the same number.

use std::fs;
use std::path::{Path, PathBuf};

// A crate that the build depends on would be compiled a second time with all that it needs.
#[path = "../model/src/fnv.rs"]
#[expect(dead_code, reason = "the build needs a part of it")]
mod fnv;

/// The crates that make results; the machine profiles do, too.
const CRATES: [&str; 5] = ["model", "workload", "bpf", "sim", "stats"];

fn main() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut files = Vec::new();
    for name in CRATES {
        let folder = crates.join(name);
        for part in ["src", "kernel", "Cargo.toml"] {
            let path = folder.join(part);
            if path.exists() {
                println!("cargo::rerun-if-changed={}", path.display());
                collect(&path, &mut files);
            }
        }
    }
    let profiles = crates.join("../profiles");
    println!("cargo::rerun-if-changed={}", profiles.display());
    collect(&profiles, &mut files);
    files.sort();
    // What changes by accident is found; nobody forges his own results.
    let mut hash = fnv::Fnv1a::new();
    for path in files {
        let bytes = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        hash.write(&bytes);
    }
    println!("cargo::rustc-env=RUNSLICE_SOURCES={:016x}", hash.value());
}

/// All files at and below `path`.
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

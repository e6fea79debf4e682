//! Gives the program a number of the sources that simulated results depend on, so that stored
//! results of another version are known. Debug and release builds have the same number.

use std::fs;
use std::path::Path;

// A crate that the build depends on would be compiled a second time with all that it needs.
#[path = "../model/src/fnv.rs"]
#[expect(dead_code, reason = "the build needs a part of it")]
mod fnv;

#[path = "../bpf-build/src/files.rs"]
mod files;

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
                files.extend(files::files_below(&path));
            }
        }
    }
    let profiles = crates.join("../profiles");
    println!("cargo::rerun-if-changed={}", profiles.display());
    files.extend(files::files_below(&profiles));
    files.sort();
    // What changes by accident is found; nobody forges his own results.
    let mut hash = fnv::Fnv1a::new();
    for path in files {
        let bytes = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        hash.write(&bytes);
    }
    println!("cargo::rustc-env=RUNSLICE_SOURCES={:016x}", hash.value());
}

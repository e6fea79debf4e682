//! Gives the program a number of the sources that simulated results depend on, so that stored
//! results of another version are known. Debug and release builds have the same number.

use std::fs;
use std::path::{Path, PathBuf};

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
    // FNV-1a: what changes by accident is found, nobody forges his own results.
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for path in files {
        let bytes = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        for byte in bytes {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
    println!("cargo::rustc-env=RUNSLICE_SOURCES={hash:016x}");
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

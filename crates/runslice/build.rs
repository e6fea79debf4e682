//! Gives the program a number of the sources that simulated results depend on, so that stored
//! results of another version are known. Debug and release builds have the same number.

use std::fs;
use std::path::{Path, PathBuf};

/// The crates that make results; the machine profiles do, too.
const CRATES: [&str; 5] = ["model", "workload", "bpf", "sim", "stats"];

fn main() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    // A package from a registry is alone: its version stands for what it depends on.
    let bytes = match crates.join("model/src").exists() {
        true => sources(&crates),
        false => env!("CARGO_PKG_VERSION").into(),
    };
    // What changes by accident is found; nobody forges his own results. FNV-1a of 64 bits.
    let number = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |state, byte| {
        (state ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    println!("cargo::rustc-env=RUNSLICE_SOURCES={number:016x}");
}

/// All sources, one behind the other.
fn sources(crates: &Path) -> Vec<u8> {
    let mut files: Vec<PathBuf> = Vec::new();
    for name in CRATES {
        let folder = crates.join(name);
        for part in ["src", "kernel", "Cargo.toml"] {
            let path = folder.join(part);
            if path.exists() {
                println!("cargo::rerun-if-changed={}", path.display());
                files.extend(bpf_build::files_below(&path));
            }
        }
    }
    let profiles = crates.join("../profiles");
    println!("cargo::rerun-if-changed={}", profiles.display());
    files.extend(bpf_build::files_below(&profiles));
    files.sort();
    let read = |path: &PathBuf| {
        fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    };
    files.iter().flat_map(read).collect()
}

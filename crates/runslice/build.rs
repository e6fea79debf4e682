//! Gives the program numbers of the sources that results depend on, one for simulated runs and one
//! for runs on a kernel, so that stored results of another version are known. Debug and release
//! builds have the same numbers.

use std::fs;
use std::path::{Path, PathBuf};

/// What simulated results are made of, below the project's root.
const SIMULATED: [&str; 6] = [
    "crates/model",
    "crates/workload",
    "crates/bpf",
    "crates/sim",
    "crates/stats",
    "profiles",
];
/// What results of a kernel are made of: the loads, the policies, what attaches them, the guest,
/// and what is read from a load's events. A change elsewhere costs nobody hours of guests.
const REAL: [&str; 7] = [
    "crates/load",
    "crates/live",
    "crates/vm",
    "crates/stats/src/probe.rs",
    "crates/runslice/src/on_kernel/series.rs",
    "crates/runslice/src/on_kernel/reproduce",
    "policies",
];

fn main() {
    let root = std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo says where");
    let root = Path::new(&root).join("../..");
    for (name, parts) in [
        ("RUNSLICE_SOURCES", &SIMULATED[..]),
        ("RUNSLICE_REAL_SOURCES", &REAL),
    ] {
        // A package from a registry is alone: its version stands for what it depends on.
        let bytes = match root.join("crates/model/src").exists() {
            true => sources(&root, parts),
            false => env!("CARGO_PKG_VERSION").into(),
        };
        // What changes by accident is found; nobody forges his own results. FNV-1a of 64 bits.
        let number = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |state, byte| {
            (state ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        });
        println!("cargo::rustc-env={name}={number:016x}");
    }
}

/// All sources of these parts, one behind the other; of a crate without its tests.
fn sources(root: &Path, parts: &[&str]) -> Vec<u8> {
    let mut files: Vec<PathBuf> = Vec::new();
    for part in parts {
        let whole = root.join(part);
        let inside = ["src", "kernel", "Cargo.toml"].map(|name| whole.join(name));
        let is_crate = part.starts_with("crates/") && inside[2].exists();
        let paths = if is_crate {
            inside.to_vec()
        } else {
            vec![whole]
        };
        for path in paths.iter().filter(|path| path.exists()) {
            println!("cargo::rerun-if-changed={}", path.display());
            files.extend(bpf_build::files_below(path));
        }
    }
    files.sort();
    let read = |path: &PathBuf| {
        fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    };
    files.iter().flat_map(read).collect()
}

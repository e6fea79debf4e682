//! Gives the program numbers of the sources that results depend on, one for simulated runs and one
//! for runs on a kernel, so that stored results of another version are known. Debug and release
//! builds have the same numbers. Says how the program is linked, too.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// What simulated results are made of, below the project's root.
const SIMULATED: [&str; 8] = [
    "crates/model",
    "crates/workload",
    "crates/bpf",
    "crates/sim",
    "crates/traces",
    "crates/stats",
    "crates/explain",
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
    "crates/reproduce/src/machines/on_kernel",
    "policies",
];

fn main() {
    if starts_packed_programs() {
        println!("cargo::rustc-link-arg-bin=runslice=-Wl,-z,pack-relative-relocs");
    }
    let root = env::var_os("CARGO_MANIFEST_DIR").expect("cargo says where");
    let root = Path::new(&root).join("../..");
    for (name, parts) in [
        ("RUNSLICE_SOURCES", &SIMULATED[..]),
        ("RUNSLICE_REAL_SOURCES", &REAL),
    ] {
        // A package from a registry is alone: its version stands for what it depends on.
        let bytes = if root.join("crates/model/src").exists() {
            sources(&root, parts)
        } else {
            env!("CARGO_PKG_VERSION").into()
        };
        // What changes by accident is found; nobody forges his own results. FNV-1a of 64 bits.
        let number = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |state, byte| {
            (state ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        });
        println!("cargo::rustc-env={name}={number:016x}");
    }
}

/// Whether the C library starts a program that lists the places of its addresses as a bit map. The
/// program has some 35,000, which are 840 kB otherwise and are read at each start.
///
/// Source: the GNU C library's news of version 2.36.
fn starts_packed_programs() -> bool {
    let of = |what: &str| env::var(what).unwrap_or_default();
    if of("HOST") != of("TARGET") || of("CARGO_CFG_TARGET_ENV") != "gnu" {
        return false;
    }
    let version = Command::new("getconf").arg("GNU_LIBC_VERSION").output();
    let version = version.map(|it| it.stdout).unwrap_or_default();
    let version = String::from_utf8_lossy(&version);
    let minor = version.trim().strip_prefix("glibc 2.");
    minor.and_then(|it| it.parse().ok()) >= Some(36)
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

//! Gives the program a number of the sources that simulated results depend on, so that stored
//! results of another version are known. Debug and release builds have the same number.
//!
//! Builds the files of experiments/ in, so that `reproduce` works wherever the program is.

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
    experiments(&crates.join("../experiments"));
}

/// Endings of the files that are built in; `Files` in src/reproduce/files.rs has them, too.
const ENDINGS: [&str; 5] = ["toml", "csv", "txt", "md", "json"];

/// Writes the list of the experiments' files with their texts.
fn experiments(folder: &Path) {
    println!("cargo::rerun-if-changed={}", folder.display());
    let folder = folder
        .canonicalize()
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files = Vec::new();
    collect(&folder, &mut files);
    files.retain(|path| {
        path.extension()
            .is_some_and(|it| ENDINGS.iter().any(|known| it == *known))
    });
    files.sort();
    let mut list = String::from("static EMBEDDED: &[(&str, &str)] = &[\n");
    for path in files {
        let below = path.strip_prefix(&folder).expect("it was found there");
        let below = below.to_str().expect("names are plain text");
        list += &format!("    ({below:?}, include_str!({path:?})),\n");
    }
    list += "];\n";
    let out = std::env::var_os("OUT_DIR").expect("cargo says where");
    let path = Path::new(&out).join("experiments.rs");
    fs::write(&path, list).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
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

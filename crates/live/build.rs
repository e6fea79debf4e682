//! Compiles the tracing programs beside the sources, each `src/**/NAME.bpf.c` to `NAME.bpf.o`.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

fn main() {
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    compile_below(&root.join("src"), &root.join("include"), &out);
}

fn compile_below(folder: &Path, include: &Path, out: &Path) {
    // The folder itself: a program was added or removed.
    println!("cargo::rerun-if-changed={}", folder.display());
    let entries = fs::read_dir(folder).expect("the crate's folder is readable");
    for entry in entries {
        let path = entry.expect("the crate's folder is readable").path();
        if path.is_dir() {
            compile_below(&path, include, out);
            continue;
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let Some(name) = name.strip_suffix(".bpf.c") else {
            continue;
        };
        let object = out.join(format!("{name}.bpf.o"));
        if let Err(error) = bpf_build::compile_into(&path, &[include], &object) {
            panic!("{error}");
        }
    }
}

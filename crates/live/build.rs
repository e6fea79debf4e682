//! Compiles the programs that record what the kernel's scheduler does.

use std::env;
use std::path::PathBuf;

fn main() -> Result<(), bpf_build::Error> {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let source = root.join("src/record/record.bpf.c");
    let include = root.join("../../policies/include");
    bpf_build::compile_into(&source, &[&include], &out.join("record.bpf.o"))
}

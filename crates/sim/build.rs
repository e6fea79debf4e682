//! Compiles the header of each simulated kernel to an object whose BTF describes that kernel.

use std::env;
use std::path::PathBuf;

fn main() -> Result<(), bpf_build::Error> {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    // An absolute path: the compiler runs in the header's folder, and so does the list that it
    // writes of what it read.
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let kernels = root.join("kernel");
    ["6.18", "7.2"].into_iter().try_for_each(|version| {
        let object = out.join(format!("kernel-{version}.o"));
        bpf_build::compile_into(&kernels.join(format!("{version}.h")), &[], &object)
    })
}

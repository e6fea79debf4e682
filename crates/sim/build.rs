//! Compiles the header of each simulated kernel to an object whose BTF describes that kernel:
//! `kernel/VERSION.h` to `kernel-VERSION.o`.

use std::path::PathBuf;
use std::{env, fs};

fn main() -> Result<(), bpf_build::Error> {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    // An absolute path: the compiler runs in the header's folder, and so does the list that it
    // writes of what it read.
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let kernels = root.join("kernel");
    println!("cargo::rerun-if-changed={}", kernels.display());
    for entry in fs::read_dir(&kernels).expect("the folder of the kernels' headers") {
        let header = entry.expect("a header").path();
        let version = header.file_stem().and_then(|stem| stem.to_str());
        let is_header = header.extension().is_some_and(|extension| extension == "h");
        // Other headers are parts of these.
        let version =
            version.filter(|name| is_header && name.starts_with(|c: char| c.is_ascii_digit()));
        if let Some(version) = version {
            let object = out.join(format!("kernel-{version}.o"));
            bpf_build::compile_into(&header, &[], &object)?;
        }
    }
    Ok(())
}

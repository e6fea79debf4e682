//! Compiles the policies that only tests run, `policies/*.bpf.c`, and writes the table of them.

use std::env;
use std::fs;
use std::path::PathBuf;

fn main() {
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let folder = root.join("policies");
    let include = root.join("../policies/include");
    // The folder itself: a policy was added or removed.
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut sources: Vec<_> = fs::read_dir(&folder)
        .expect("the folder of test policies is readable")
        .map(|entry| {
            entry
                .expect("the folder of test policies is readable")
                .path()
        })
        .collect();
    sources.sort();
    let mut table = String::from("&[\n");
    for source in sources {
        let name = source
            .file_name()
            .and_then(|name| name.to_str())
            .expect("a UTF-8 name");
        let Some(name) = name.strip_suffix(".bpf.c") else {
            continue;
        };
        let object = out.join(format!("{name}.bpf.o"));
        if let Err(error) = bpf_build::compile_into(&source, &[&include], &object) {
            panic!("{error}");
        }
        table += &format!("    ({name:?}, include_bytes!({object:?})),\n");
    }
    table += "]\n";
    fs::write(out.join("policies.rs"), table).expect("OUT_DIR is writable");
}

//! Builds the files of experiments/ in, so that `reproduce` works wherever the program is.

use std::fs;
use std::path::Path;

fn main() {
    // Asked when it runs: the place where it was compiled is gone when the project was moved.
    let root = std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo says where");
    experiments(&Path::new(&root).join("experiments"));
}

/// Endings of the files that are built in; `Files` in src/files.rs has them, too.
const ENDINGS: [&str; 5] = ["toml", "csv", "txt", "md", "json"];

/// Writes the list of the experiments' files with their texts.
fn experiments(folder: &Path) {
    println!("cargo::rerun-if-changed={}", folder.display());
    let folder = folder
        .canonicalize()
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files = bpf_build::files_below(&folder);
    files.retain(|path| {
        path.extension()
            .is_some_and(|it| ENDINGS.iter().any(|known| it == *known))
    });
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

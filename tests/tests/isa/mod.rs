//! Conformance of the object machine with RFC 9669, by vectors.
//!
//! Our own stand in `tests/isa/*.data`. Those of the public suite `bpf_conformance`, whose format
//! is ours, stand in the folders `tests` and `negative` of the one that `RUNSLICE_ISA_DIR` names;
//! their tests are ignored by name, since nobody need have them.

mod assembler;
mod public_suite;
mod vector;

use std::path::{Path, PathBuf};

use vector::Vector;

/// Names and texts.
type Files = Vec<(String, String)>;

/// All `.data` files of a folder with their text, by name.
fn files(folder: &Path) -> Files {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let paths = entries.map(|entry| entry.expect("a folder can be listed").path());
    let mut paths: Vec<PathBuf> = paths
        .filter(|path| path.extension().is_some_and(|ext| ext == "data"))
        .collect();
    paths.sort();
    assert!(!paths.is_empty(), "no vectors in {}", folder.display());
    let text = |path: PathBuf| {
        let text = std::fs::read_to_string(&path).expect("a vector can be read");
        (path.display().to_string(), text)
    };
    paths.into_iter().map(text).collect()
}

/// What is wrong with each vector of a folder that does not behave as it says.
fn failures(folder: &Path) -> Vec<String> {
    let failure = |(name, text): (String, String)| {
        Vector::parse(&text)
            .and_then(|vector| vector.check())
            .err()
            .map(|e| format!("{name}: {e}"))
    };
    files(folder).into_iter().filter_map(failure).collect()
}

#[test]
fn our_vectors_give_their_results() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("isa");
    assert_eq!(failures(&folder), [""; 0]);
}

#[test]
fn a_vector_with_a_wrong_result_or_count_fails() {
    let check = |text| Vector::parse(text).and_then(|vector| vector.check());
    assert_eq!(
        check("-- asm\nmov r0, 1\nexit\n-- result\n0x1\n-- retired\n2\n"),
        Ok(())
    );
    assert!(check("-- asm\nmov r0, 1\nexit\n-- result\n0x2\n").is_err());
    assert!(check("-- asm\nmov r0, 1\nexit\n-- result\n0x1\n-- retired\n3\n").is_err());
    assert!(check("-- asm\nmov r0, 1\nexit\n-- error\n").is_err());
    assert!(
        check("-- asm\nmov r0, 1\nexit\n").is_err(),
        "it states nothing"
    );
}

//! Conformance of the object machine with RFC 9669, by vectors.
//!
//! Our own stand in `tests/isa/*.data`. With `RUNSLICE_ISA_DIR` set, the vectors in its folders
//! `tests` and `negative` run as well: the public suite `bpf_conformance`, whose format is ours.

mod assembler;
mod vector;

use std::path::{Path, PathBuf};

use vector::{BACK_ENDS, Vector};

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

fn public_suite() -> Option<PathBuf> {
    std::env::var_os("RUNSLICE_ISA_DIR").map(PathBuf::from)
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

/// How many vectors the public suite has: those that give a result, malformed ones that set a field
/// which must be zero, and malformed ones that test whoever runs the suite.
const PUBLIC: (usize, usize, usize) = (313, 45, 15);

#[test]
fn the_public_vectors_give_their_results() {
    let Some(suite) = public_suite() else { return };
    for backend in BACK_ENDS {
        let passes = |(name, text): &(String, String)| {
            let result = Vector::parse(text).and_then(|vector| vector.check_on(backend));
            let failure = result.err().map(|error| format!("{name}: {error}"));
            failure.map_or(Ok(()), Err)
        };
        let files = files(&suite.join("tests"));
        let (passed, failed): (Vec<_>, Vec<_>) = files.iter().map(passes).partition(Result::is_ok);
        println!(
            "{backend:?}: {} of {} public vectors",
            passed.len(),
            files.len()
        );
        assert_eq!((passed.len(), failed), (PUBLIC.0, vec![]), "{backend:?}");
    }
}

#[test]
fn the_public_suite_is_complete() {
    let Some(suite) = public_suite() else { return };
    let (raw, others) = malformed(&suite);
    let counts = (files(&suite.join("tests")).len(), raw.len(), others.len());
    println!(
        "{} vectors, {} with a field that must be zero, {} others",
        counts.0, counts.1, counts.2
    );
    assert_eq!(counts, PUBLIC);
}

/// The malformed vectors that set a field which must be zero, and those that test the runner.
fn malformed(suite: &Path) -> (Files, Files) {
    let is_raw = |(_, text): &(String, String)| text.contains("-- raw");
    files(&suite.join("negative")).into_iter().partition(is_raw)
}

#[test]
fn a_set_field_that_must_be_zero_does_not_load_and_the_same_program_without_it_does() {
    let Some(suite) = public_suite() else { return };
    let failure = |(name, text): (String, String)| {
        let vector = Vector::parse(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        let Some((insn, refused)) = vector.reserved_field() else {
            return Some(format!("{name}: no reserved field is refused"));
        };
        // The name ends with the field: `unused-call-offset.data`.
        let fields = ["dst", "src", "off", "imm"];
        let stated = name.trim_end_matches(".data").rsplit('-').next();
        let stated = stated.and_then(|field| fields.into_iter().find(|f| field.starts_with(f)));
        let stated = stated.unwrap_or_else(|| panic!("{name} names no field"));
        // In a 64-bit move, offset 1 is the kernel's cast between address spaces, which are in
        // the immediate; so that is what is wrong there.
        let is_cast = name.ends_with("unused-mov64_reg-offset.data");
        if refused != if is_cast { "imm" } else { stated } {
            return Some(format!("{name}: the field `{refused}` is refused"));
        }
        let mended = vector.without((insn, stated)).load();
        mended.err().map(|error| format!("{name}: mended: {error}"))
    };
    let failures: Vec<String> = malformed(&suite)
        .0
        .into_iter()
        .filter_map(failure)
        .collect();
    assert_eq!(failures, [""; 0]);
}

#[test]
fn the_vectors_for_the_runner_do_not_assemble_load_or_give_their_result() {
    let Some(suite) = public_suite() else { return };
    for (name, text) in malformed(&suite).1 {
        for backend in BACK_ENDS {
            let result = Vector::parse(&text).and_then(|vector| Ok((vector.run(backend)?, vector)));
            let passes = result.is_ok_and(|(run, vector)| vector.result == Some(run.result));
            assert!(!passes, "{name} on {backend:?}");
        }
    }
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

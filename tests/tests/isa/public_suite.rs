//! The vectors of the public suite.

use std::path::{Path, PathBuf};

use super::vector::{BACK_ENDS, Vector};
use super::{Files, files};

fn folder() -> PathBuf {
    let folder = std::env::var_os("RUNSLICE_ISA_DIR").expect("the variable names the suite");
    PathBuf::from(folder)
}

/// How many vectors the public suite has: those that give a result, malformed ones that set a field
/// which must be zero, and malformed ones that test whoever runs the suite.
const PUBLIC: (usize, usize, usize) = (313, 45, 15);

#[test]
#[ignore = "RUNSLICE_ISA_DIR names the public suite"]
fn the_public_vectors_give_their_results() {
    let suite = folder();
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
#[ignore = "RUNSLICE_ISA_DIR names the public suite"]
fn the_public_suite_is_complete() {
    let suite = folder();
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
#[ignore = "RUNSLICE_ISA_DIR names the public suite"]
fn a_set_field_that_must_be_zero_does_not_load_and_the_same_program_without_it_does() {
    let suite = folder();
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
#[ignore = "RUNSLICE_ISA_DIR names the public suite"]
fn the_vectors_for_the_runner_do_not_assemble_load_or_give_their_result() {
    let suite = folder();
    for (name, text) in malformed(&suite).1 {
        for backend in BACK_ENDS {
            let result = Vector::parse(&text).and_then(|vector| Ok((vector.run(backend)?, vector)));
            let passes = result.is_ok_and(|(run, vector)| vector.result == Some(run.result));
            assert!(!passes, "{name} on {backend:?}");
        }
    }
}

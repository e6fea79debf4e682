//! Files that the program of 25 November 2026 (fe2e7a40) wrote, in `golden/before`: they are read,
//! or refused with one sentence.

use std::fs;
use std::path::{Path, PathBuf};

use runslice_tests::command;

const PROGRAM: &str = env!("CARGO_BIN_EXE_runslice");

fn kept() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/before")
}

/// What a command prints that must end well in the folder of the kept files.
fn said(words: &[&str]) -> String {
    command::said(PROGRAM, &kept(), words, 0).0
}

/// The sentence with which a file is refused: a line that says what is wrong, and one that says
/// what to do.
fn refused(name: &str, file: &[u8], words: &[&str]) -> String {
    let folder = command::empty_folder(env!("CARGO_TARGET_TMPDIR"), &format!("before-{name}"));
    fs::write(folder.join(name), file).expect("writable");
    let (out, err) = command::said(PROGRAM, &folder, words, 1);
    assert_eq!(out, "");
    assert!(err.lines().count() <= 2, "{err}");
    err
}

#[test]
fn bundles_of_every_version_run() {
    let load = ["-w", "workload.toml", "--cpus", "1", "--audit"];
    for (bundle, load) in [
        ("one.bundle", &load[..]),
        ("two.bundle", &load[..]),
        // It has its own load.
        ("three.bundle", &["--audit"][..]),
    ] {
        let said = said(&[&["sim", bundle], load].concat());
        assert!(said.contains("every account adds up"), "{bundle}: {said}");
    }
}

/// What is kept is what its first line says.
#[test]
fn the_kept_bundles_are_of_three_versions() {
    for (version, name) in ["one", "two", "three"].iter().enumerate() {
        let file = fs::read(kept().join(format!("{name}.bundle"))).expect("it is kept");
        let first = format!("runslice bundle {}\n", version + 1);
        assert!(file.starts_with(first.as_bytes()), "{name}");
    }
}

#[test]
fn a_bundle_of_a_later_version_is_refused_with_its_version() {
    let file = b"runslice bundle 4\n{}\n";
    let said = refused("later.bundle", file, &["sim", "later.bundle", "-w", "desk"]);
    assert_eq!(
        said,
        "runslice: later.bundle: the bundle has version `4`\n  this program reads 1 to 3\n"
    );
}

#[test]
fn events_of_either_version_are_replayed() {
    for (version, name) in [(1, "events-1.jsonl"), (3, "events-3.jsonl")] {
        let file = fs::read_to_string(kept().join(name)).expect("it is kept");
        let first = format!("{{\"runslice_events\":{version},");
        assert!(file.starts_with(&first), "{name}");
        let said = said(&["sim", "fifo", "--from", name, "--audit"]);
        assert!(said.contains("every account adds up"), "{name}: {said}");
    }
}

/// Version 2 was written on 23 November only.
#[test]
fn events_of_other_versions_are_refused_with_their_version() {
    let file = fs::read_to_string(kept().join("events-1.jsonl")).expect("it is kept");
    for version in [2, 5] {
        let other = format!("\"runslice_events\":{version},");
        let other = file.replacen("\"runslice_events\":1,", &other, 1);
        let words = ["sim", "fifo", "--from", "other.jsonl"];
        let said = refused("other.jsonl", other.as_bytes(), &words);
        let want = format!("the events have format version {version}, and this runslice reads 1");
        assert!(said.contains(&want), "{said}");
    }
}

#[test]
fn a_workload_runs_and_one_with_a_later_key_is_refused_with_its_place() {
    let said = said(&["sim", "fifo", "-w", "workload.toml", "--audit"]);
    assert!(said.contains("every account adds up"), "{said}");
    let file = fs::read_to_string(kept().join("workload.toml")).expect("it is kept");
    let later = file.replacen("[workload]\n", "[workload]\nlater = 1\n", 1);
    let words = ["sim", "fifo", "-w", "later.toml"];
    let said = refused("later.toml", later.as_bytes(), &words);
    assert!(said.contains("later.toml:2:"), "{said}");
}

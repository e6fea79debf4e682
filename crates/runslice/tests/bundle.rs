//! Bundles and objects inside other files, through the command line.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn runslice(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_runslice"))
        .args(arguments)
        .output()
        .expect("runslice starts")
}

/// Standard output of a command that must succeed.
fn said(arguments: &[&str]) -> String {
    let output = runslice(arguments);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {stderr}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// The status and standard error of a command that must fail.
fn refused(arguments: &[&str]) -> (Option<i32>, String) {
    let output = runslice(arguments);
    assert!(!output.status.success(), "{arguments:?} succeeded");
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code(), stderr)
}

fn scratch(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

const LOAD: [&str; 6] = ["-w", "hackbench", "--duration", "50ms", "--format", "json"];

/// Results in all but the command line that made them.
fn without_command(results: &str) -> serde_json::Value {
    let mut results: serde_json::Value = serde_json::from_str(results).expect("JSON");
    let command = results.as_object_mut().and_then(|it| it.remove("command"));
    assert!(command.is_some(), "it says how it was made");
    results
}

#[test]
fn a_bundle_runs_as_what_it_was_made_of() {
    let bundle = scratch("one.bundle");
    let asked = "fifo --set slice_ns=3000000 --cpus 3 --hz 1000 --kernel 7.2";
    let asked: Vec<_> = asked.split(' ').collect();
    said(&[&["bundle"], &asked[..], &["-o", text(&bundle)]].concat());
    let direct = without_command(&said(&[&["sim"], &asked[..], &LOAD].concat()));
    let bundled = said(&[&["sim", text(&bundle)][..], &LOAD].concat());
    assert_eq!(without_command(&bundled), direct);
    // What the command line says counts more than the bundle.
    let smaller = said(&[&["sim", text(&bundle), "--cpus", "1"][..], &LOAD].concat());
    assert!(smaller.contains("\"cpus\": 1"), "{smaller}");
    assert_ne!(without_command(&smaller), direct);
}

#[test]
fn a_bundle_is_checked_when_it_is_made_and_when_it_is_read() {
    let bundle = scratch("two.bundle");
    let _ = std::fs::remove_file(&bundle);
    for (option, value, expected) in [
        ("--set", "slice=1", "no knob or variable `slice`"),
        ("--set", "slice_ns=1", "out of range for `slice_ns`"),
        ("--run", "setup:1", "no program `setup`"),
        ("--ops", "other_ops", "no scheduling policy"),
    ] {
        let (_, stderr) = refused(&["bundle", "fifo", option, value, "-o", text(&bundle)]);
        assert!(stderr.contains(expected), "{stderr}");
        assert!(!bundle.exists(), "{option} {value} left a file");
    }
    said(&["bundle", "fifo", "-o", text(&bundle)]);
    let mut bytes = std::fs::read(&bundle).expect("written");
    bytes.truncate(bytes.len() - 10);
    std::fs::write(&bundle, bytes).expect("writable");
    let (status, stderr) = refused(&[&["sim", text(&bundle)][..], &LOAD].concat());
    assert_eq!(status, Some(1), "{stderr}");
    assert!(
        stderr.contains("the bundle's object should have"),
        "{stderr}"
    );
}

#[test]
fn a_bundle_has_the_run_of_an_object_if_one_is_named() {
    let bundle = scratch("run.bundle");
    let run = ["-w", "hackbench", "--duration", "50ms", "--seed", "3"];
    let made = [&["bundle", "fifo"][..], &run, &["-o", text(&bundle)]];
    said(&made.concat());
    let direct = said(&[&["sim", "fifo"][..], &run, &["--format", "json"]].concat());
    let bundled = said(&["sim", text(&bundle), "--format", "json"]);
    assert_eq!(without_command(&bundled), without_command(&direct));
}

#[test]
fn bundles_for_machines_that_differ_are_not_compared() {
    let [small, large] = ["small.bundle", "large.bundle"].map(scratch);
    said(&["bundle", "fifo", "--cpus", "2", "-o", text(&small)]);
    said(&["bundle", "fifo", "--cpus", "5", "-o", text(&large)]);
    let both = ["sim", text(&small), text(&large)];
    let (status, stderr) = refused(&[&both[..], &LOAD].concat());
    assert_eq!(status, Some(2), "{stderr}");
    assert!(stderr.contains("machines that differ"), "{stderr}");
    said(&[&both[..], &["--cpus", "4"], &LOAD].concat());
}

#[test]
fn a_binary_is_as_good_as_the_object_in_it() {
    let binary = scratch("scheduler");
    let object = policies::find("mlfq").expect("a policy").object;
    std::fs::write(&binary, [&[0x90; 1001], object, b"more"].concat()).expect("writable");
    let checked = said(&["check", text(&binary)]);
    assert_eq!(checked, said(&["check", "mlfq"]));
    let run = |policy: &str| {
        let words = [
            "sim",
            policy,
            "-w",
            "hackbench",
            "--duration",
            "50ms",
            "--audit",
        ];
        said(&words)
    };
    let (_, of_binary) = run(text(&binary))
        .split_once(": ")
        .map(owned)
        .expect("a line");
    let (_, of_name) = run("mlfq").split_once(": ").map(owned).expect("a line");
    assert_eq!(of_binary, of_name);
    assert!(of_name.ends_with("every account adds up\n"), "{of_name}");
    std::fs::write(&binary, b"\x7fELF\x02\x01\x01 nothing inside").expect("writable");
    let (status, stderr) = refused(&["check", text(&binary)]);
    assert_eq!(status, Some(2), "{stderr}");
    assert!(stderr.contains("no BPF object lies in it"), "{stderr}");
}

fn owned((left, right): (&str, &str)) -> (String, String) {
    (left.to_owned(), right.to_owned())
}

//! How `runslice reproduce` finds and starts `runslice-reproduce`, for which scripts stand here.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use runslice_tests::folder;

/// A copy of the program in `bin`, where cargo has built no other beside it, in an empty folder of
/// the test `name`.
fn alone(name: &str) -> (PathBuf, PathBuf) {
    let folder = folder!(name);
    let program = folder.join("bin/runslice");
    fs::create_dir(folder.join("bin")).expect("writable");
    fs::hard_link(env!("CARGO_BIN_EXE_runslice"), &program).expect("of one file system");
    (folder, program)
}

/// Writes a `runslice-reproduce` into this folder.
fn write(folder: &Path, script: &str) {
    fs::create_dir_all(folder).expect("writable");
    let file = folder.join("runslice-reproduce");
    fs::write(&file, format!("#!/bin/sh\n{script}\n")).expect("writable");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("it is ours");
}

fn reproduce(program: &Path, path: &OsStr, words: &[OsString]) -> Output {
    Command::new(program)
        .arg("reproduce")
        .args(words)
        .env("PATH", path)
        .env("OF_THE_CALLER", "kept")
        .current_dir(program.with_file_name(".."))
        .stdin(Stdio::null())
        .output()
        .expect("it starts")
}

/// What a call prints and how it ends, where the PATH is `path`.
fn said(program: &Path, path: &str, words: &[&str]) -> (String, Option<i32>) {
    let words: Vec<OsString> = words.iter().map(Into::into).collect();
    let output = reproduce(program, OsStr::new(path), &words);
    let [out, err] = [output.stdout, output.stderr].map(|it| String::from_utf8(it).expect("text"));
    (out + &err, output.status.code())
}

#[test]
fn a_program_on_the_path_gets_words_and_environment_and_its_status_is_ours() {
    let (folder, program) = alone("programs-path");
    let others = folder.join("others");
    write(&others, "printf '%s|' \"$@\" $OF_THE_CALLER; exit 77");
    let odd = OsString::from_vec(b"o\xe9-\xff d".to_vec());
    let words = ["002-x".into(), "-d".into(), odd, "--".into(), "-y".into()];
    let output = reproduce(&program, others.as_os_str(), &words);
    assert_eq!(output.stdout, b"002-x|-d|o\xe9-\xff d|--|-y|kept|");
    assert_eq!((output.status.code(), output.stderr), (Some(77), vec![]));
}

#[test]
fn the_process_becomes_the_program_so_that_signals_are_its_own() {
    let (folder, program) = alone("programs-signal");
    let others = folder.join("others");
    write(&others, "echo $$; trap - TERM; kill -TERM $$; echo alive");
    let mut child = Command::new(&program);
    let child = child.arg("reproduce").env("PATH", &others);
    let child = child.stdout(Stdio::piped()).spawn().expect("it starts");
    let id = child.id();
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(String::from_utf8_lossy(&output.stdout), format!("{id}\n"));
    assert_eq!(output.status.signal(), Some(15));
}

#[test]
fn the_program_beside_this_one_goes_before_one_on_the_path() {
    let (folder, program) = alone("programs-beside");
    write(&folder.join("others"), "echo other");
    write(&folder.join("bin"), "echo beside");
    let others = folder.join("others");
    let (text, status) = said(&program, &others.to_string_lossy(), &[]);
    assert_eq!((text.as_str(), status), ("beside\n", Some(0)));
}

#[test]
fn an_empty_part_of_the_path_is_not_the_folder_that_one_is_in() {
    let (folder, program) = alone("programs-empty");
    write(&folder, "echo mine");
    for path in ["", ":", ":/no/such/folder", "/no/such/folder:"] {
        let (text, status) = said(&program, path, &[]);
        assert_eq!(status, Some(4), "`{path}`: {text}");
    }
    let (text, status) = said(&program, "/no/such/folder:.", &[]);
    assert_eq!((text.as_str(), status), ("mine\n", Some(0)));
}

#[test]
fn a_program_that_is_not_installed_is_told_with_the_places_and_the_way() {
    let (folder, program) = alone("programs-none");
    // What nobody may start is no program.
    fs::write(folder.join("bin/runslice-reproduce"), "").expect("writable");
    let (text, status) = said(&program, "/no/such/folder", &["--all"]);
    let bin = fs::canonicalize(folder.join("bin")).expect("it is there");
    let want = format!(
        "runslice: the program `runslice-reproduce` is not installed: it is neither in {} nor on \
         the PATH\n  install the package of runslice, or build it: `make release`, or in a debug \
         build `cargo build --package runslice-reproduce`\n",
        bin.display()
    );
    assert_eq!((text, status), (want, Some(4)));
}

#[test]
fn a_program_that_cannot_be_started_is_a_failure_with_its_name() {
    let (folder, program) = alone("programs-broken");
    write(&folder.join("bin"), "");
    let file = folder.join("bin/runslice-reproduce");
    fs::write(&file, "#!/no/such/interpreter\n").expect("writable");
    let (text, status) = said(&program, "", &[]);
    let begin = "runslice: cannot start ";
    assert!(text.starts_with(begin) && status == Some(1), "{text}");
}

#[test]
fn help_and_refusals_need_no_other_program() {
    let (_, program) = alone("programs-help");
    let (text, status) = said(&program, "", &["--help"]);
    let usage = "Usage: runslice reproduce [OPTIONS] [EXPERIMENT]...";
    assert!(text.contains(usage) && status == Some(0), "{text}");
    let (text, status) = said(&program, "", &["--machine", "moon"]);
    assert!(text.contains("`moon`") && status == Some(2), "{text}");
}

/// A constant would be there once for each crate that names it.
#[test]
fn a_policy_is_in_the_program_once() {
    let program = fs::read(env!("CARGO_BIN_EXE_runslice")).expect("readable");
    let shipped = || policies::ALL.iter().chain(policies::LESSONS);
    let mut found = vec![0; shipped().count()];
    for (at, _) in program
        .windows(4)
        .enumerate()
        .filter(|it| it.1 == b"\x7fELF")
    {
        for (count, policy) in found.iter_mut().zip(shipped()) {
            *count += usize::from(program[at..].starts_with(policy.object));
        }
    }
    assert!(found.iter().all(|count| *count == 1), "{found:?}");
}

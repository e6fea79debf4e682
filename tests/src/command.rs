//! A program as a user calls it: in a folder of its own, and without a terminal.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The empty folder `name` below `all`; what an earlier test left there is gone.
///
/// # Panics
/// If it cannot be made.
#[must_use]
pub fn empty_folder(all: &str, name: &str) -> PathBuf {
    let path = Path::new(all).join(name);
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).expect("the folder for tests is writable");
    path
}

/// What became of `program` with these words, started in `folder` without standard input.
///
/// # Panics
/// If it cannot be started.
pub fn run<S: AsRef<OsStr>>(program: &str, folder: &Path, words: &[S]) -> Output {
    let mut command = Command::new(program);
    command.args(words).current_dir(folder).stdin(Stdio::null());
    command.output().expect("the program starts")
}

/// What `program` prints on standard output and on standard error.
///
/// # Panics
/// If it cannot be started, ends with another status, or prints what is no text.
pub fn said<S: AsRef<OsStr>>(
    program: &str,
    folder: &Path,
    words: &[S],
    status: i32,
) -> (String, String) {
    let output = run(program, folder, words);
    let [out, err] = [output.stdout, output.stderr].map(|it| String::from_utf8(it).expect("text"));
    let words: Vec<&OsStr> = words.iter().map(AsRef::as_ref).collect();
    assert_eq!(output.status.code(), Some(status), "{words:?}: {out}{err}");
    (out, err)
}

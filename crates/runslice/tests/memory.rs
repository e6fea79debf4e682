//! Exhausted memory: every command that asks for more than it may have ends with one message and
//! the status of a refusal by the computer, never by a signal.

#![cfg(target_os = "linux")]

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

fn scratch(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

/// What a command says on standard error that may have `kib` KiB of address space, and must be
/// refused.
fn refused(kib: u64, arguments: &[&str]) -> String {
    let program = env!("CARGO_BIN_EXE_runslice");
    let limited = format!("ulimit -c 0 && ulimit -v {kib} && exec \"$0\" \"$@\"");
    let output = Command::new("sh")
        .args(["-c", &limited, program])
        .args(arguments)
        .output()
        .expect("a shell starts");
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{arguments:?}: {stderr}");
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    stderr
}

#[test]
fn more_tasks_than_memory_holds_end_a_run_with_a_message() {
    let load = scratch("crowd.toml");
    let crowd = "[workload]\nname = \"crowd\"\nstop = \"duration:1s\"\n\
                 [task.one]\ncount = 100000\ndo = [\"loop(inf)[ run(1ms), sleep(1ms) ]\"]\n";
    fs::write(&load, crowd).expect("writable");
    let load = load.to_str().expect("UTF-8");
    let sim = ["sim", "fifo", "-w", load, "--cpus", "1024"];
    // The object's own memory is reserved at once.
    let reserved = |said: &String| {
        said.contains("cannot reserve address space for the object (see `ulimit -v`)")
    };
    assert!(reserved(&refused(1_000_000, &sim)));
    // What the tasks take, above 100 MiB, comes bit by bit. How much the program itself takes
    // depends on how it was built.
    let limits = (4_200_000..).step_by(20_000);
    let said = limits
        .map(|kib| refused(kib, &sim))
        .find(|it| !reserved(it));
    let said = said.expect("the limits have no end");
    assert!(
        said.starts_with("runslice: out of memory: the system refused "),
        "{said}"
    );
}

#[test]
fn a_file_that_memory_does_not_hold_is_named() {
    let path = scratch("long.bpf.o");
    let file = File::create(&path).expect("writable");
    file.set_len(900 << 20).expect("a file with a hole");
    let path = path.to_str().expect("UTF-8");
    let said = refused(500_000, &["sim", path, "-w", "desk"]);
    assert_eq!(
        said,
        format!("runslice: cannot read {path}: out of memory\n")
    );
    fs::remove_file(path).expect("it is there");
}

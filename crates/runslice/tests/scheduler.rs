//! `sim --scheduler`: a scheduler's own program on the simulated machine. The program is runslice
//! itself, whose `run` loads a policy with libbpf as published loaders do.

#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use std::process::{Command, Output, Stdio};

const RUNSLICE: &str = env!("CARGO_BIN_EXE_runslice");

fn sim(arguments: &[&str]) -> Output {
    let mut command = Command::new(RUNSLICE);
    command.arg("sim").args(arguments).stdin(Stdio::null());
    command.output().expect("runslice starts")
}

/// Events and hash of a run, as `--audit` prints them.
fn audit(arguments: &[&str]) -> String {
    let output = sim(&[arguments, &["-w", "desk", "--duration", "1s", "--audit"]].concat());
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {text}{said}");
    let (_, events) = text.split_once(": ").expect("a name stands first");
    events.to_owned()
}

#[test]
fn a_program_that_only_attaches_gives_the_events_of_its_policy() {
    for policy in ["fifo", "mlfq"] {
        let command = format!("'{RUNSLICE}' run {policy}");
        let own = audit(&["--scheduler", &command, "--loader-cpu", "free"]);
        assert_eq!(own, audit(&[policy]), "{policy}");
    }
}

#[test]
fn the_threads_of_a_program_are_tasks_in_the_tables() {
    let command = format!("'{RUNSLICE}' run fifo");
    let run = ["--scheduler", &command, "-w", "desk", "--duration", "1s"];
    let first = sim(&run);
    let table = String::from_utf8_lossy(&first.stdout).into_owned();
    let name = "runslice run fifo";
    let row = table.lines().find(|line| line.starts_with(name));
    let row: Vec<&str> = row
        .expect("the program has a row")
        .split_whitespace()
        .collect();
    let runs: u64 = row[7].parse().expect("its runs");
    assert!(row[6] == "1" && runs > 0, "{table}");
    assert_eq!(sim(&run).stdout, first.stdout, "the same again");
}

#[test]
fn a_program_that_attaches_nothing_is_an_error_with_its_last_lines() {
    let cases = [
        ("/bin/echo no policy here", Some(1), "no policy here"),
        ("/nowhere/scx_none", Some(1), "/nowhere/scx_none"),
        ("'unclosed", Some(2), "quotes closed"),
    ];
    for (command, status, words) in cases {
        let output = sim(&["--scheduler", command, "-w", "desk", "--duration", "1s"]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), status, "{said}");
        assert!(said.contains(words), "{command}: {said}");
    }
    let set = ["--scheduler", "/bin/true", "-w", "desk", "--set", "a=1"];
    assert_eq!(sim(&set).status.code(), Some(2));
}

//! Ctrl-C: one line says what is kept and which command goes on.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use runslice_tests::command;
use rustix::process::{Pid, Signal, kill_process};

fn folder(name: &str) -> PathBuf {
    command::empty_folder(env!("CARGO_TARGET_TMPDIR"), &format!("interrupts-{name}"))
}

fn start(folder: &Path, words: &[&str], output: Stdio) -> Child {
    // Whoever started the tests in the background has them ignore Ctrl-C, and what they start.
    let mut program = Command::new("env");
    program.args(["--default-signal=INT,TERM", env!("CARGO_BIN_EXE_runslice")]);
    program.args(words).current_dir(folder).stdin(Stdio::null());
    program.stdout(output).stderr(Stdio::piped());
    program.spawn().expect("the program starts")
}

/// Ends it as Ctrl-C does once `is_far` says so, and gives the last line of what it said.
fn interrupted(mut child: Child, is_far: impl Fn() -> bool) -> String {
    while !is_far() {
        let ended = child.try_wait().expect("a child");
        assert!(ended.is_none(), "it ended before: {ended:?}");
        std::thread::yield_now();
    }
    kill_process(Pid::from_child(&child), Signal::INT).expect("it runs");
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(130));
    let said = String::from_utf8(output.stderr).expect("text");
    let lines = said.lines().filter(|line| line.contains("interrupted"));
    assert_eq!(lines.count(), 1, "{said}");
    said.lines().last().unwrap_or_default().to_owned()
}

fn files(folder: &Path) -> usize {
    fs::read_dir(folder).map_or(0, Iterator::count)
}

#[test]
fn a_sweep_says_that_its_runs_are_kept_and_goes_on_from_there() {
    let folder = folder("sweep");
    let text = "policy = [\"fifo\"]\nworkload = [\"desk\"]\nseeds = 100000\nduration = \"50ms\"\n";
    fs::write(folder.join("s.toml"), text).expect("writable");
    let runs = folder.join("s.results/runs");
    let child = start(&folder, &["sweep", "s.toml"], Stdio::null());
    let line = interrupted(child, || files(&runs) > 3);
    let begin = "runslice: interrupted: the runs that are done are kept, ";
    let end = " of this call, in s.results; `runslice sweep s.toml` goes on from there";
    assert!(line.starts_with(begin) && line.ends_with(end), "{line}");
}

#[test]
fn what_keeps_nothing_says_so_and_leaves_no_part_of_a_file() {
    let folder = folder("sim");
    let load = "[workload]\nname = \"long\"\n[task.t]\ncount = 9\ndo = \"loop(inf)[run(1ms)]\"\n";
    fs::write(folder.join("long.toml"), load).expect("writable");
    let words = ["sim", "fifo", "-w", "long.toml", "--duration", "100000s"];
    let child = start(
        &folder,
        &[&words[..], &["--events", "e.jsonl"]].concat(),
        Stdio::null(),
    );
    let events = folder.join("e.jsonl");
    let line = interrupted(child, || fs::metadata(&events).is_ok_and(|it| it.len() > 0));
    let want = "runslice: interrupted: nothing is kept; `runslice sim fifo -w long.toml \
                --duration 100000s --events e.jsonl` begins anew";
    assert_eq!(line, want);
    assert!(!events.exists());
}

#[test]
fn what_prints_while_it_looks_says_that_its_results_end_there() {
    let folder = folder("task");
    let pid = std::process::id().to_string();
    let words = ["stat", "task", &pid, "--every", "20ms"];
    let mut child = start(&folder, &words, Stdio::piped());
    let mut lines = BufReader::new(child.stdout.take().expect("its output")).lines();
    for _ in 0..3 {
        lines.next().expect("a line").expect("text");
    }
    // What it goes on to print must not fill the pipe.
    let rest = std::thread::spawn(move || lines.count());
    let line = interrupted(child, || true);
    let want = format!(
        "runslice: interrupted: the results are of the time until then; `runslice {}` begins anew",
        words.join(" ")
    );
    assert_eq!(line, want);
    rest.join().expect("it reads");
}

#[test]
fn a_recording_says_whether_the_same_command_adds_to_it() {
    let folder = folder("record");
    let two = "version 17\ntimestamp 4294892296\ncpu0 0 0 0 0 0 0 1000 2000 3\n";
    fs::write(folder.join("from"), two).expect("writable");
    let words = [
        "stat", "record", "s.txt", "--from", "from", "--every", "1ms",
    ];
    let file = folder.join("s.txt");
    let child = start(&folder, &words, Stdio::null());
    let line = interrupted(child, || fs::metadata(&file).is_ok_and(|it| it.len() > 200));
    let call = words.join(" ");
    let want = "runslice: interrupted: what was recorded is kept in s.txt; ";
    assert_eq!(line, format!("{want}`runslice {call}` goes on behind it"));
}

#[test]
fn a_search_keeps_the_run_that_it_is_making_smaller_and_goes_on_with_it() {
    let folder = folder("hunt");
    let object = runslice_tests::policy::object("faulty-drops").expect("a test policy");
    fs::write(folder.join("drops.bpf.o"), &*object).expect("writable");
    let words = ["hunt", "drops.bpf.o", "-o", "found"];
    let state = folder.join("found/hunt.json");
    let is_whole = || {
        let text = fs::read_to_string(&state).unwrap_or_default();
        text.contains("\"is_whole\": true")
    };
    let line = interrupted(start(&folder, &words, Stdio::null()), is_whole);
    assert!(
        line.contains(" in found; `runslice hunt drops.bpf.o -o found` goes on"),
        "{line}"
    );
    assert!(is_whole(), "the search had ended");
    let program = env!("CARGO_BIN_EXE_runslice");
    let (out, said) = command::said(program, &folder, &words, 3);
    assert!(
        said.contains("as it was found; it is made smaller now"),
        "{said}"
    );
    assert!(out.contains("Smallest run that shows it"), "{out}");
    assert!(!is_whole());
}

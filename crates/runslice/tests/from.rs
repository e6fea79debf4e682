//! Recordings as workloads: what was recorded on a simulated machine runs again on it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

const PING_PONG: &str = r#"
[workload]
name = "ping-pong"

[chan.ball]
kind = "pipe"
count = 2

[task.ping]
kind = "process"
do = ["loop(200)[ run(100us), send(ball[0]), recv(ball[1]), count(round) ]"]

[task.pong]
kind = "process"
do = ["loop(200)[ recv(ball[0]), run(100us), send(ball[1]) ]"]
"#;

fn at(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

fn runslice(words: &[&str]) -> Output {
    let output = Command::new(env!("CARGO_BIN_EXE_runslice"))
        .args(words)
        .output();
    output.expect("runslice starts")
}

/// The report of a run that succeeds, and what it said on standard error.
fn report(words: &[&str]) -> (Value, String) {
    let output = runslice(&[words, &["--format", "json"]].concat());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{words:?}: {said}");
    let mut document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    (document["runs"][0]["report"].take(), said)
}

#[test]
fn ping_pong_at_half_the_cost_takes_half_the_time() {
    let (load, events) = (at("from-pp.toml"), at("from-pp.jsonl"));
    std::fs::write(&load, PING_PONG).unwrap();
    let (load, events) = (load.to_str().unwrap(), events.to_str().unwrap());
    let (first, _) = report(&["sim", "fifo", "-w", load, "--events", events]);
    let (whole, said) = report(&["sim", "fifo", "--from", events]);
    assert!(
        said.contains("wait for the task that woke, 0 stay timers (0.0 %)"),
        "{said}"
    );
    let (half, _) = report(&["sim", "fifo", "--from", events, "--cost-scale", "0.5"]);
    let elapsed = |report: &Value| report["machine"]["elapsed_ns"].as_u64().unwrap();
    assert_eq!(elapsed(&first), 200 * 200_000);
    assert_eq!(elapsed(&whole), elapsed(&first));
    assert_eq!(elapsed(&half), elapsed(&first) / 2);
    assert_eq!(half["counters"][0]["total"], 200);
}

#[test]
fn every_shipped_workload_that_was_recorded_does_the_same_work_again() {
    let loads: [(&str, &[&str]); 4] = [
        ("chat", &["--scale", "rooms=1", "--scale", "msgs=3"]),
        ("hackbench", &["--scale", "groups=1", "--scale", "loops=3"]),
        ("make", &["--scale", "files=8"]),
        ("desk", &["--duration", "500ms"]),
    ];
    for (load, more) in loads {
        for policy in ["fifo", "mlfq"] {
            let events = at(&format!("from-{load}-{policy}.jsonl"));
            let events = events.to_str().unwrap();
            let words = [&["sim", policy, "-w", load, "--events", events], more].concat();
            let (first, _) = report(&words);
            let (again, _) = report(&["sim", policy, "--from", events]);
            let run = |report: &Value| report["all"]["run_ns"].as_u64().unwrap();
            assert_eq!(run(&again), run(&first), "{load} under {policy}");
            let counted = |report: &Value| -> u64 {
                let counters = report["counters"].as_array().unwrap();
                counters
                    .iter()
                    .map(|counter| counter["total"].as_u64().unwrap())
                    .sum()
            };
            assert_eq!(counted(&again), counted(&first), "{load} under {policy}");
        }
    }
}

#[test]
fn what_is_no_recording_is_refused_with_its_name_and_line() {
    let bad = at("from-bad.jsonl");
    std::fs::write(&bad, "{\"runslice_events\":1}\n").unwrap();
    let bad = bad.to_str().unwrap();
    let cases = [
        (vec!["sim", "fifo", "--from", bad], 1, "from-bad.jsonl"),
        (
            vec!["sim", "fifo", "--from", "no-such-file"],
            1,
            "cannot read no-such-file",
        ),
        (
            vec!["sim", "fifo", "--from", bad, "-w", "desk"],
            2,
            "cannot be used with",
        ),
        (
            vec!["sim", "fifo", "--from", bad, "--cost-scale", "x"],
            2,
            "such as 0.5",
        ),
        (
            vec!["sim", "fifo", "-w", "desk", "--cost-scale", "1"],
            2,
            "--from",
        ),
        (vec!["sim", "fifo"], 2, "--workload"),
    ];
    for (words, status, want) in cases {
        let output = runslice(&words);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{words:?}: {said}");
        assert!(said.contains(want), "{words:?}: {said}");
    }
}

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

/// Yields, and wakeups by which a waker says that it is about to sleep, decide how a chat goes.
#[test]
fn a_chat_that_was_recorded_goes_switch_by_switch_as_it_did() {
    let switches = |path: &str| -> Vec<String> {
        let text = std::fs::read_to_string(path).unwrap();
        let lines = text
            .lines()
            .filter(|line| line.contains("\"event\":\"switch\""));
        lines.map(str::to_owned).collect()
    };
    for policy in ["eevdf", "mlfq", "o1"] {
        let [first, again] = ["", "-again"].map(|it| at(&format!("course-{policy}{it}.jsonl")));
        let [first, again] = [&first, &again].map(|it| it.to_str().unwrap());
        let chat = ["-w", "chat", "--scale", "rooms=2", "--scale", "msgs=5"];
        let _ = report(&[&["sim", policy], &chat[..], &["--events", first]].concat());
        let _ = report(&["sim", policy, "-w", first, "--events", again]);
        let [first, again] = [first, again].map(switches);
        assert!(first.len() > 1_000, "{policy}: {}", first.len());
        assert!(first == again, "{policy}: another course");
    }
}

#[test]
fn a_recording_of_our_own_becomes_a_workload_file_too() {
    let (load, events, file) = (at("own.toml"), at("own.jsonl"), at("own-again.toml"));
    std::fs::write(&load, PING_PONG).unwrap();
    let [load, events, file] = [&load, &events, &file].map(|it| it.to_str().unwrap());
    let _ = report(&["sim", "fifo", "-w", load, "--events", events]);
    let convert = |more: &[&str]| runslice(&[&["convert", events, "-o", file], more].concat());
    assert!(convert(&[]).status.success());
    let (again, _) = report(&["sim", "fifo", "-w", file, "--duration", "1s"]);
    let names: Vec<&str> = (again["tasks"].as_array().unwrap().iter())
        .map(|task| task["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["ping", "pong"]);
    assert_eq!(again["machine"]["elapsed_ns"], 200 * 200_000);
    let refused = convert(&["--window", "1s.."]);
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(
        said.contains("--window is for traces of other programs"),
        "{said}"
    );
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
        (
            vec!["sim", "fifo", "-w", "desk", "--window", "1s.."],
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

/// One turn of ftrace's text: who runs, the flags, microseconds, and what is reported. `IDLE` is
/// the switch from the idle task.
const TURN: [(&str, &str, u64, &str); 13] = [
    (
        "<idle>-0",
        "d.h1.",
        0,
        "hrtimer_expire_entry: hrtimer=1 function=f now=1",
    ),
    (
        "<idle>-0",
        "d.h2.",
        1,
        "sched_waking: comm=my clock pid=70 PRIO target_cpu=000",
    ),
    (
        "<idle>-0",
        "d.h2.",
        2,
        "sched_wakeup: comm=my clock pid=70 PRIO target_cpu=000",
    ),
    ("<idle>-0", "d.h1.", 3, "hrtimer_expire_exit: hrtimer=1"),
    (
        "<idle>-0",
        "d..2.",
        4,
        "IDLE prev_state=R ==> next_comm=my clock next_pid=70 next_PRIO",
    ),
    (
        "my clock-70",
        "d..2.",
        1000,
        "sched_waking: comm=served pid=71 PRIO target_cpu=000",
    ),
    (
        "my clock-70",
        "d..2.",
        1001,
        "sched_wakeup: comm=served pid=71 PRIO target_cpu=000",
    ),
    (
        "my clock-70",
        "d..2.",
        1004,
        "sched_switch: prev_comm=my clock prev_pid=70 prev_PRIO \
        prev_state=S ==> next_comm=served next_pid=71 next_PRIO",
    ),
    (
        "served-71",
        "d..2.",
        3004,
        "sched_switch: prev_comm=served prev_pid=71 prev_PRIO \
        prev_state=S ==> next_comm=swapper/0 next_pid=0 next_PRIO",
    ),
    (
        "<idle>-0",
        "d.s2.",
        5000,
        "sched_waking: comm=net pid=72 PRIO target_cpu=000",
    ),
    (
        "<idle>-0",
        "d.s2.",
        5001,
        "sched_wakeup: comm=net pid=72 PRIO target_cpu=000",
    ),
    (
        "<idle>-0",
        "d..2.",
        5004,
        "IDLE prev_state=R ==> next_comm=net next_pid=72 next_PRIO",
    ),
    (
        "net-72",
        "d..2.",
        5504,
        "sched_switch: prev_comm=net prev_pid=72 prev_PRIO \
        prev_state=S ==> next_comm=swapper/0 next_pid=0 next_PRIO",
    ),
];

/// What ftrace says of a task that sleeps by a clock, wakes another, and gets work from outside.
fn ftrace() -> String {
    let mut text = "# tracer: nop\n".to_owned();
    for turn in 0..100 {
        for (who, flags, us, what) in TURN {
            let us = turn * 10_000 + us;
            let (s, us) = (5 + us / 1_000_000, us % 1_000_000);
            let idle = "sched_switch: prev_comm=swapper/0 prev_pid=0 prev_PRIO";
            let what = what.replace("IDLE", idle).replace("PRIO", "prio=120");
            text += &format!(" {who} [000] {flags} {s}.{us:06}: {what}\n");
        }
    }
    text
}

#[test]
fn a_trace_of_ftrace_becomes_a_load_as_recorded_and_as_a_file() {
    let (trace, file) = (at("from-ftrace.txt"), at("from-ftrace.toml"));
    std::fs::write(&trace, ftrace()).unwrap();
    let (trace, file) = (trace.to_str().unwrap(), file.to_str().unwrap());
    let (again, said) = report(&["sim", "fifo", "--from", trace]);
    for want in [
        "wakeups: 100 by tasks, 100 by clocks, 0 by devices, 100 from outside",
        "affinities are not in this trace",
    ] {
        assert!(said.contains(want), "{said}");
    }
    // 1 ms, 2 ms and 0.5 ms in each of 100 turns.
    assert_eq!(again["all"]["run_ns"], 350_000_000);
    let (named, _) = report(&["sim", "fifo", "-w", trace]);
    assert_eq!(named["all"]["run_ns"], again["all"]["run_ns"]);
    let (part, _) = report(&["sim", "fifo", "--from", trace, "--window", "..500ms"]);
    assert_eq!(part["all"]["run_ns"], 175_000_000);

    let output = runslice(&["convert", trace, "-o", file]);
    assert!(output.status.success(), "{output:?}");
    let text = std::fs::read_to_string(file).unwrap();
    for want in ["[task.my_clock]", "[task.served]", "[irq.net_outside]"] {
        assert!(text.contains(want), "{want}\n{text}");
    }
    let (made, _) = report(&["sim", "fifo", "-w", file]);
    let run = made["all"]["run_ns"].as_f64().unwrap();
    // Arrivals are drawn: 100 of them, of 0.5 ms each, are expected.
    assert!((300e6..400e6).contains(&run), "{run}\n{text}");
    let output = runslice(&["convert", trace, "--anonymous"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.contains("[task.task1]") && !text.contains("served"),
        "{text}"
    );
}

#[test]
fn what_a_profile_charges_is_taken_off_whoever_names_the_trace_or_the_profile() {
    let (trace, bundle) = (at("from-charged.txt"), at("from-charged.bundle"));
    std::fs::write(&trace, ftrace()).unwrap();
    let (trace, bundle) = (trace.to_str().unwrap(), bundle.to_str().unwrap());
    let machine = ["--cpus", "1", "--hz", "1000", "--kernel", "6.18"];
    let charged = [&machine[..], &["--profile", "default-v0"]].concat();
    let words = ["bundle", "fifo", "-o", bundle];
    let made = runslice(&[&words[..], &charged[..]].concat());
    assert!(made.status.success(), "{made:?}");
    let run = |words: [&str; 3], machine: &[&str]| {
        let (told, said) = report(&[&["sim"][..], &words[..], machine].concat());
        let is_said = said.contains("is taken off the recorded CPU time");
        assert!(is_said, "{words:?}: {said}");
        told["all"].clone()
    };
    let want = run(["fifo", "--from", trace], &charged);
    assert_eq!(run(["fifo", "-w", trace], &charged), want);
    for option in ["--from", "-w"] {
        assert_eq!(run([bundle, option, trace], &machine), want, "{option}");
    }
}

#[test]
fn a_page_of_systrace_is_a_trace_wherever_one_stands() {
    let (page, file) = (at("from-systrace.html"), at("from-systrace.toml"));
    // A viewer of some hundred kilobytes stands before the trace.
    let viewer = "<script>x</script>\n".repeat(20_000);
    let trace = ftrace();
    let text = format!(
        "<!DOCTYPE html>\n<html><body>\n{viewer}<!-- BEGIN TRACE -->\n  <script \
         class=\"trace-data\" type=\"application/text\">\n{trace}  </script>\n\
         <!-- END TRACE -->\n</body></html>\n"
    );
    std::fs::write(&page, text).unwrap();
    let (page, file) = (page.to_str().unwrap(), file.to_str().unwrap());
    let (by_from, _) = report(&["sim", "fifo", "--from", page]);
    assert_eq!(by_from["all"]["run_ns"], 350_000_000);
    let (by_name, _) = report(&["sim", "fifo", "-w", page]);
    assert_eq!(by_name["all"], by_from["all"]);
    let output = runslice(&["convert", page, "-o", file]);
    assert!(output.status.success(), "{output:?}");
    let text = std::fs::read_to_string(file).unwrap();
    assert!(text.contains("[task.served]"), "{text}");
}

#[test]
fn our_own_trace_for_perfetto_is_read_back() {
    let (load, trace) = (at("from-own.toml"), at("from-own.pftrace"));
    std::fs::write(&load, PING_PONG).unwrap();
    let (load, trace) = (load.to_str().unwrap(), trace.to_str().unwrap());
    let (first, _) = report(&["sim", "fifo", "-w", load, "--trace", trace]);
    let (again, _) = report(&["sim", "fifo", "--from", trace]);
    assert_eq!(again["all"]["run_ns"], first["all"]["run_ns"]);
}

#[test]
fn a_damaged_trace_is_an_error_with_file_and_place() {
    let trace = at("from-damaged.data");
    std::fs::write(&trace, b"PERFILE2\x68\0\0\0\0\0\0\0\x90").unwrap();
    let output = runslice(&["sim", "fifo", "--from", trace.to_str().unwrap()]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("from-damaged.data: byte 16: the file ends within"),
        "{said}"
    );
}

#[test]
fn runs_of_a_load_that_draws_nothing_are_told_to_be_the_same() {
    let load = at("drawless.toml");
    std::fs::write(&load, PING_PONG).expect("written");
    let load = load.to_str().expect("UTF-8");
    let said = |words: &[&str]| {
        let output = runslice(&[&["sim", "fifo", "--runs", "3"], words].concat());
        String::from_utf8(output.stdout).expect("text")
    };
    let same = said(&["-w", load]);
    assert!(same.contains("The 3 runs of each are the same"), "{same}");
    let drawn = said(&["-w", "desk", "--duration", "1s"]);
    assert!(drawn.contains("Medians of 3 runs each."), "{drawn}");
}

#[test]
fn a_recording_with_bound_tasks_runs_on_machines_with_fewer_cpus() {
    let load = "[workload]\nname = \"bound\"\n[task.t]\ncpus = \"3\"\ndo = \"run(20ms)\"\n";
    let (file, events, plan) = (
        at("from-bound.toml"),
        at("from-bound.jsonl"),
        at("from-bound-sweep.toml"),
    );
    std::fs::write(&file, load).expect("written");
    let (file, events) = (file.to_str().unwrap(), events.to_str().unwrap());
    report(&["sim", "fifo", "-w", file, "--cpus", "4", "--events", events]);
    // What somebody wrote is refused, what was recorded is freed.
    let refused = runslice(&["sim", "fifo", "-w", file, "--cpus", "2"]);
    assert!(!refused.status.success());
    for words in [["--from", events], ["--workload", events]] {
        let words = [&["sim", "fifo", "--cpus", "2"], &words[..]].concat();
        let (freed, _) = report(&words);
        assert_eq!(freed["machine"]["elapsed_ns"], 20_000_000, "{words:?}");
    }
    let text =
        format!("policy = [\"fifo\"]\nworkload = [\"{events}\"]\ncpus = [1, 2, 4]\nseeds = 1\n");
    std::fs::write(&plan, text).expect("written");
    let swept = runslice(&["sweep", plan.to_str().unwrap(), "--format", "csv"]);
    let said = String::from_utf8_lossy(&swept.stderr);
    assert!(swept.status.success(), "{said}");
}

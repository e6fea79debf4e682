//! Texts of `trace-cmd report` that differ from the usual ones, as whole traces.

use std::fmt::Write as _;

use model::{Event, EventKind, Nanos, TaskId, What};

use super::{check_rules, import};
use crate::foreign::{Imported, Window};

fn read(text: &str) -> (Vec<Event>, Imported) {
    let (events, imported) = import(text.as_bytes(), Window::default()).unwrap();
    check_rules(&events, &imported);
    (events, imported)
}

fn task(imported: &Imported, name: &str) -> TaskId {
    let at = imported
        .tasks
        .iter()
        .position(|it| it.comm.to_string() == name);
    TaskId(u32::try_from(at.unwrap()).unwrap())
}

/// How long each turn of a task was, in microseconds.
fn turns(events: &[Event], task: TaskId) -> Vec<u64> {
    let switches = events.iter().filter(|it| it.kind == EventKind::Switch);
    let (mut turns, mut begin) = (Vec::new(), None);
    for event in switches {
        let at = event.time.as_nanos() / 1_000;
        if event.task == task {
            begin = Some(at);
        } else if matches!(event.what(), What::Switch { prev, .. } if prev == task) {
            turns.extend(begin.take().map(|begin| at - begin));
        }
    }
    turns
}

/// A turn of `worker` on CPU 0, and who comes after it, with fields as they are.
fn raw(mark: &str) -> String {
    let mut text = "version = 6\ncpus=2\n".to_owned();
    let mut switch = |at: &str, who: &str, prev: &str, state: u64, next: &str| {
        writeln!(
            text,
            "  {who} [000] 100.{at}: sched_switch:  {mark}prev_comm={prev} prev_prio=120 \
             prev_state={state} next_comm={next} next_prio=120"
        )
        .unwrap();
    };
    let (idle, worker, other) = ("swapper/0 prev_pid=0", "worker", "other");
    switch("000000", "<idle>-0", idle, 0, "worker next_pid=900");
    switch(
        "005000",
        "worker-900",
        &format!("{worker} prev_pid=900"),
        1,
        "swapper/0 next_pid=0",
    );
    switch("010000", "<idle>-0", idle, 0, "worker next_pid=900");
    switch(
        "015000",
        "worker-900",
        &format!("{worker} prev_pid=900"),
        4096,
        "other next_pid=901",
    );
    switch(
        "016000",
        "other-901",
        &format!("{other} prev_pid=901"),
        64,
        "worker next_pid=900",
    );
    switch(
        "020000",
        "worker-900",
        &format!("{worker} prev_pid=900"),
        2,
        "swapper/0 next_pid=0",
    );
    text
}

#[test]
fn raw_fields_tell_the_same_turns_with_and_without_the_mark_of_a_failure() {
    for mark in ["", "[FAILED TO PARSE] "] {
        let (events, imported) = read(&raw(mark));
        assert_eq!(imported.findings.records, 6, "{mark}");
        assert_eq!(
            turns(&events, task(&imported, "worker")),
            [5_000, 5_000, 4_000]
        );
        assert_eq!(turns(&events, task(&imported, "other")), [1_000]);
    }
}

/// One recording as `trace-cmd report` prints it with the plugin of sched events, and as
/// `trace-cmd report -R` does.
///
/// `-R` prints each field of the event's format, in its order: states and softirqs as numbers, and
/// fields that the usual text leaves out.
const BOTH: [(&str, &str, &str); 12] = [
    (
        "<idle>-0 [000] 100.000100: sched_wakeup:",
        "worker one:900 [120] success=1 CPU:000",
        "comm=worker one pid=900 prio=120 success=1 target_cpu=0",
    ),
    (
        "<idle>-0 [000] 100.000110: sched_switch:",
        "swapper/0:0 [120] R ==> worker one:900 [120]",
        "prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=0 next_comm=worker one \
         next_pid=900 next_prio=120",
    ),
    (
        "worker one-900 [000] 100.001000: sched_process_fork:",
        "comm=worker one pid=900 child_comm=worker one child_pid=901",
        "parent_comm=worker one parent_pid=900 child_comm=worker one child_pid=901",
    ),
    (
        "worker one-900 [000] 100.001010: sched_wakeup_new:",
        "worker one:901 [120] success=1 CPU:001",
        "comm=worker one pid=901 prio=120 success=1 target_cpu=1",
    ),
    (
        "<idle>-0 [001] 100.001100: sched_switch:",
        "swapper/1:0 [120] R ==> worker one:901 [120]",
        "prev_comm=swapper/1 prev_pid=0 prev_prio=120 prev_state=0 next_comm=worker one \
         next_pid=901 next_prio=120",
    ),
    (
        "worker one-901 [001] 100.002000: softirq_entry:",
        "vec=1 [action=TIMER]",
        "vec=1",
    ),
    (
        "worker one-901 [001] 100.002005: sched_waking:",
        "comm=other pid=902 prio=120 target_cpu=000",
        "comm=other pid=902 prio=120 success=1 target_cpu=0",
    ),
    (
        "worker one-901 [001] 100.002010: softirq_exit:",
        "vec=1 [action=TIMER]",
        "vec=1",
    ),
    (
        "worker one-900 [000] 100.003000: sched_switch:",
        "worker one:900 [120] R+ ==> other:902 [120]",
        "prev_comm=worker one prev_pid=900 prev_prio=120 prev_state=4096 next_comm=other \
         next_pid=902 next_prio=120",
    ),
    (
        "other-902 [000] 100.004000: sched_switch:",
        "other:902 [120] D ==> worker one:900 [120]",
        "prev_comm=other prev_pid=902 prev_prio=120 prev_state=2 next_comm=worker one \
         next_pid=900 next_prio=120",
    ),
    (
        "worker one-901 [001] 100.005000: sched_process_exit:",
        "comm=worker one pid=901 prio=120",
        "comm=worker one pid=901 prio=120 group_dead=0",
    ),
    (
        "worker one-901 [001] 100.005010: sched_switch:",
        "worker one:901 [120] Z ==> swapper/1:0 [120]",
        "prev_comm=worker one prev_pid=901 prev_prio=120 prev_state=32 next_comm=swapper/1 \
         next_pid=0 next_prio=120",
    ),
];

#[test]
fn a_report_of_raw_fields_is_the_recording_that_the_usual_report_is() {
    let report = |of: fn(&(&'static str, &'static str, &'static str)) -> &'static str| {
        let mut text = "cpus=2\n".to_owned();
        for line in &BOTH {
            writeln!(text, "  {}  {}", line.0, of(line)).unwrap();
        }
        read(&text)
    };
    let (usual, raw) = (report(|it| it.1), report(|it| it.2));
    assert_eq!(raw.0, usual.0);
    assert_eq!(raw.1.findings.records, 12);
    let named =
        |of: &Imported| -> Vec<String> { of.tasks.iter().map(|it| it.comm.to_string()).collect() };
    assert_eq!(named(&raw.1), named(&usual.1));
    let first = task(&raw.1, "worker one");
    assert_eq!(turns(&raw.0, first), [2_890]);
    assert_eq!(turns(&raw.0, task(&raw.1, "other")), [1_000]);
}

/// `hog` has CPU 1 throughout, and wakes `worker` on CPU 0.
fn hog() -> String {
    let mut text = "cpus=2\n".to_owned();
    for turn in 0..20 {
        let at = turn * 10;
        writeln!(
            text,
            " hog-700 [001] d..2. 100.{at:03}000: sched_waking: comm=worker pid=900 prio=120 \
             target_cpu=000\n <idle>-0 [000] d..2. 100.{at:03}010: sched_switch: \
             prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=worker \
             next_pid=900 next_prio=120\n worker-900 [000] d..2. 100.{:03}000: sched_switch: \
             prev_comm=worker prev_pid=900 prev_prio=120 prev_state=S ==> next_comm=swapper/0 \
             next_pid=0 next_prio=120",
            at + 4
        )
        .unwrap();
    }
    text
}

#[test]
fn a_thread_that_never_switches_has_its_cpu_throughout_and_wakes_whom_it_wakes() {
    let (events, imported) = read(&hog());
    let hog = task(&imported, "hog");
    assert_eq!(imported.findings.wakeups.task, 20);
    assert_eq!(imported.findings.wakeups.unsaid, 0);
    let on = |it: &&Event| it.kind == EventKind::Switch && it.cpu.0 == 1;
    let switches: Vec<_> = events.iter().filter(on).collect();
    assert_eq!(switches.len(), 1, "{switches:?}");
    assert_eq!((switches[0].task, switches[0].time.as_nanos()), (hog, 0));
}

#[test]
fn every_part_of_a_trace_has_the_machine_of_its_head_and_may_be_idle() {
    let mut text = "version = 7\ncpus=8\n".to_owned();
    for (second, cpu) in [(100, 0), (105, 5)] {
        for (at, prev, next) in [(110, "swapper", "a"), (5110, "a", "swapper")] {
            let pid = |name| if name == "a" { 900 + cpu } else { 0 };
            writeln!(
                text,
                " x-{0} [00{cpu}] {second}.{at:06}: sched_switch: prev_comm={prev} prev_pid={0} \
                 prev_prio=120 prev_state=S ==> next_comm={next} next_pid={1} next_prio=120",
                pid(prev),
                pid(next)
            )
            .unwrap();
        }
    }
    let part = |from, until| Window {
        from: Nanos::from_secs(from),
        until: Some(Nanos::from_secs(until)),
    };
    let tasks = [
        (Window::default(), 2),
        (part(0, 1), 1),
        (part(2, 3), 0),
        (part(4, 9), 1),
    ];
    for (window, tasks) in tasks {
        let (events, imported) = import(text.as_bytes(), window).unwrap();
        check_rules(&events, &imported);
        assert_eq!(imported.header.machine.cpus, 8, "{window:?}");
        assert_eq!(imported.tasks.len(), tasks, "{window:?}");
    }
}

#[test]
fn the_latency_format_is_read_as_a_trace() {
    let text = "cpus=4\n\
        trace-cm-1394    1d..2  2535.384253: sched_switch:         prev_comm=trace-cmd \
        prev_pid=1394 prev_prio=120 prev_state=R+ ==> next_comm=kworker/1:2 next_pid=679 \
        next_prio=120\n\
        kworker/-679     1d..2  2535.384280: sched_switch:         prev_comm=kworker/1:2 \
        prev_pid=679 prev_prio=120 prev_state=I ==> next_comm=trace-cmd next_pid=1394 \
        next_prio=120\n";
    let (events, imported) = read(text);
    assert_eq!(
        (imported.findings.records, imported.header.machine.cpus),
        (2, 4)
    );
    assert_eq!(turns(&events, task(&imported, "kworker/1:2")), [27]);
}

#[test]
fn a_cpu_that_no_machine_has_is_named() {
    let line = |cpu: u32, second: u32| {
        format!(
            "          <idle>-0     [{cpu}] d..2. {second}.000001: sched_switch: \
             prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=a next_pid=7 \
             next_prio=120\n"
        )
    };
    let text = line(99_999_999, 1) + &line(99_999_999, 2);
    let error = import(text.as_bytes(), Window::default()).unwrap_err();
    let expected = "2 records, none of a CPU below 4096; the first is of CPU 99999999";
    assert_eq!(error.to_string(), expected);
    // One of them does not spoil the rest.
    let (_, imported) = read(&(line(99_999_999, 1) + &line(1, 2)));
    assert_eq!(imported.findings.damaged, 1);
}

/// A text of these lines, each a record of ftrace from the `[CPU]` on.
fn traced(lines: &[&str]) -> String {
    let lines = lines
        .iter()
        .map(|line| format!("          <idle>-0     {line}\n"));
    lines.collect()
}

const SWITCH: &str = "sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R \
                      ==> next_comm=a next_pid=7 next_prio=120";

#[test]
fn lines_that_are_damaged_or_cut_are_counted_and_the_first_is_named() {
    let good = format!("[000] d..2. 1.000001: {SWITCH}");
    let garbled = "[000] d..2. 1.000002: sc@@@m=x prev_pid=0 prev_prio=120 prev_state=R ==> \
                   next_comm=a next_pid=7 next_prio=120";
    let late = format!("[000] d..2. 1000000000000000.000000: {SWITCH}");
    let cpu = format!("[4294967299] d..2. 1.000003: {SWITCH}");
    let softirq = "[000] d.s2. 1.000004: softirq_entry: vec";
    let other = "[000] d..2. 1.000005: sched_stat_runtime: comm=x pid=1 runtime=5 [ns]";
    let lines = [&good, garbled, &late, &cpu, softirq, other, "stack"];
    let (_, imported) = read(&traced(&lines));
    let findings = imported.findings;
    assert_eq!((findings.records, findings.damaged), (1, 4));
    let said = findings.sentences().join("\n");
    let want = "4 records cut or damaged, and left out; the first is in line 2";
    assert!(said.contains(want), "{said}");

    // The last line of a file that breaks off, wherever that is.
    let begin = traced(&[&good]);
    let rest = format!("          <idle>-0     {good}");
    for cut in [12, 23, 27, 50, 110, 130] {
        let (_, imported) = read(&format!("{begin}{}", &rest[..cut]));
        let findings = imported.findings;
        let at = Some(begin.len() as u64);
        assert_eq!((findings.cut_at, findings.damaged), (at, 0), "{cut}");
    }

    let error = import(traced(&[&late, &cpu]).as_bytes(), Window::default()).unwrap_err();
    let expected = "no `sched_switch` can be read: 2 damaged records, the first in line 1";
    assert_eq!(error.to_string(), expected);
}

#[test]
fn the_programs_of_a_page_are_no_damaged_records() {
    let good = format!("[000] d..2. 1.000001: {SWITCH}");
    let page = format!(
        "<html>\n// sched_switch: prev_pid=\n{}</html>",
        traced(&[&good])
    );
    let findings = read(&page).1.findings;
    assert_eq!(
        (findings.records, findings.damaged, findings.cut_at),
        (1, 0, None)
    );
}

#[test]
fn a_nul_in_a_name_spoils_that_name_only() {
    let good = format!("[000] d..2. 1.000001: {SWITCH}");
    let nul = good
        .replace("comm=a", "comm=a\0b")
        .replace("1.000001", "1.000002");
    for lines in [[&good, &nul], [&nul, &good]] {
        let findings = read(&traced(&lines.map(String::as_str))).1.findings;
        assert_eq!((findings.records, findings.damaged), (2, 0));
    }
    // A file of another kind may have the text of a trace.
    let other = format!("a.txt\0\0\n{}", traced(&[&good]));
    assert!(!crate::foreign::is_trace(other.as_bytes()));
}

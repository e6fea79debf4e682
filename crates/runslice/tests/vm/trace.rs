//! `runslice trace` of the running kernel, and `check --vm`, in virtual machines.

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use runslice_tests::{folder, guest, policy};

/// A policy in C that real verifiers refuse: it reads through a pointer that may be null. (With a
/// constant key they would know that it is not.)
const UNCHECKED: &str = "\
#include <scx.h>
BPF_LICENSE();
ARRAY(numbers, u64, 1);
void OP(unchecked_enqueue, struct task_struct *p, u64 enq_flags)
{
	u32 key = enq_flags;
	u64 *number = bpf_map_lookup_elem(&numbers, &key);

	scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, *number, enq_flags);
}
POLICY(unchecked_ops, .enqueue = (void *)unchecked_enqueue, .name = \"unchecked\");
";

fn runslice(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_runslice"))
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .expect("runslice starts")
}

fn said(output: &Output) -> String {
    let [stdout, stderr] = [&output.stdout, &output.stderr].map(|b| String::from_utf8_lossy(b));
    format!("{stdout}{stderr}")
}

#[test]
#[ignore = "boots a kernel: make test-vm"]
fn the_running_kernel_is_traced_under_a_policy() {
    // Sleepers and two hogs on one CPU; each `sleep` sleeps, wakes once and exits. Counted time:
    // a busy computer would leave too little of two seconds.
    let script = "\
        hog() { while :; do :; done; }
        taskset 2 sh -c 'while :; do :; done' & taskset 2 sh -c 'while :; do :; done' &
        runslice run mlfq -- sh -c '
            runslice trace queue sleep --for 2s --format csv >queue.csv &
            trace=$!
            while kill -0 $trace 2>/dev/null; do taskset 2 sleep 0.1; done; wait'
        grep -c returns queue.csv
        grep -m1 waits queue.csv
        runslice trace status nobody --for 100ms; echo status $?";
    let said = guest!().counted().good(script, &[]);
    let (text, stdout) = (said.text(), said.stdout);
    let returns = stdout.lines().find_map(|line| line.parse::<u32>().ok());
    assert!(returns.is_some_and(|count| count >= 3), "{text}");
    // The policy's word is there: mlfq's priorities begin at 100.
    let row = stdout.lines().find(|line| line.contains(",waits,"));
    let cells: Vec<&str> = row.unwrap_or_default().split(',').collect();
    assert!(
        cells.get(10).is_some_and(|it| it.starts_with('1')),
        "{text}"
    );
    assert!(stdout.contains("status 2"), "{text}");
}

/// The object of [`UNCHECKED`].
fn unchecked() -> PathBuf {
    let folder = folder!("unchecked");
    let source = folder.join("unchecked.bpf.c");
    std::fs::write(&source, UNCHECKED).expect("the folder for tests is writable");
    policy::compile(
        &source,
        env!("CARGO_TARGET_TMPDIR"),
        env!("CARGO_CRATE_NAME"),
    )
}

#[test]
#[ignore = "boots a kernel: make test-vm"]
fn real_verifiers_accept_what_is_shipped_and_say_why_they_refuse() {
    let output = runslice(&["check", "--vm", "mlfq"]);
    let text = said(&output);
    assert_eq!(output.status.code(), Some(0), "{text}");
    for kernel in ["6.18", "7.2"] {
        let line = format!("kernel {kernel}: the verifier accepts it");
        assert!(text.contains(&line), "{text}");
    }
    let object = unchecked();
    let output = runslice(&[
        "check",
        "--vm",
        "--kernel",
        "6.18",
        &object.to_string_lossy(),
    ]);
    let text = said(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("kernel 6.18: refused"), "{text}");
    assert!(text.contains("unchecked_enqueue"), "{text}");
    assert!(text.contains("map_value_or_null"), "{text}");
}

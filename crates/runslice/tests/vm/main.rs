//! Policies on real kernels, in virtual machines.
//!
//! `make test-vm` installs what they need and runs them. Each boots one guest at a time, because
//! two would starve each other on a small computer.

#![cfg(feature = "live")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, PoisonError};

/// Held while a guest runs.
static ONE: Mutex<()> = Mutex::new(());

const KERNELS: [&str; 2] = ["6.18", "7.2"];

/// As they are attached to a kernel: mlfq's guards are off by default, as in its source, which
/// lets kernel threads starve behind hogs.
const POLICIES: [&str; 2] = ["fifo", "mlfq:guard_ms=10000,kthreads_fast=1"];

/// What the kernel prints when something is wrong with it.
const COMPLAINTS: [&str; 8] = [
    "WARNING:",
    "BUG:",
    "Oops",
    "rcu: INFO",
    "rcu_preempt detected",
    "workqueue lockup",
    "blocked for more than",
    "verifier bug",
];

/// Two hogs, one that changes its CPU, one that forks, until they are killed.
const LOAD: &str = "\
    hog() { while :; do :; done; }
    hog & hog &
    while :; do (true); done &
    mover=$!
    while :; do taskset -p 1 $mover; taskset -p 2 $mover; done >/dev/null 2>&1 &
    ";

/// Runs `runslice vm` with these arguments.
fn vm(arguments: &[&str]) -> Output {
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    Command::new(env!("CARGO_BIN_EXE_runslice"))
        .arg("vm")
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .expect("runslice starts")
}

/// Runs a shell script on `kernel` with this program at hand, and returns all that it printed.
fn script(kernel: &str, script: &str) -> String {
    let output = vm(&[
        "--kernel",
        kernel,
        "--with",
        "runslice",
        "--timeout",
        "120s",
        "--kernel-log",
        "--",
        "sh",
        "-c",
        script,
    ]);
    let text = said(&output);
    assert!(output.status.success(), "{kernel}: {text}");
    assert_eq!(complaints(&text), [""; 0], "{kernel}: {text}");
    text
}

fn said(output: &Output) -> String {
    let [stdout, stderr] = [&output.stdout, &output.stderr].map(|b| String::from_utf8_lossy(b));
    format!("{stdout}{stderr}")
}

fn complaints(text: &str) -> Vec<&str> {
    let bad = |line: &&str| COMPLAINTS.iter().any(|word| line.contains(word));
    text.lines().filter(bad).collect()
}

/// The object of a test policy, compiled anew.
fn object(name: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let source = root.join("tests/objects").join(format!("{name}.bpf.c"));
    let include = root.join("../../policies/include");
    let bytes = bpf_build::compile(&source, &[&include]).unwrap_or_else(|error| panic!("{error}"));
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("vm-{name}.bpf.o"));
    std::fs::write(&path, bytes).expect("the folder for tests is writable");
    path
}

#[test]
#[ignore = "boots a kernel: make test-vm"]
fn a_guest_returns_output_files_and_status() {
    let share = Path::new(env!("CARGO_TARGET_TMPDIR")).join("vm-share");
    std::fs::create_dir_all(&share).unwrap();
    std::fs::write(share.join("in"), "seven\n").unwrap();
    let share_text = share.to_string_lossy();
    let command = "cat in; echo oops >&2; mkdir -p made; echo eight >made/out; exit 7";
    let output = vm(&["--share", &share_text, "--", "sh", "-c", command]);
    assert_eq!(output.status.code(), Some(7), "{}", said(&output));
    assert_eq!(output.stdout, b"seven\n");
    assert_eq!(output.stderr, b"oops\n");
    assert_eq!(
        std::fs::read_to_string(share.join("made/out")).unwrap(),
        "eight\n"
    );
    std::fs::remove_dir_all(share).unwrap();
}

#[test]
#[ignore = "boots a kernel: make test-vm"]
fn a_command_that_does_not_end_gives_no_result() {
    let output = vm(&["--timeout", "2s", "--", "sh", "-c", "echo began; sleep 60"]);
    assert_eq!(output.status.code(), Some(6), "{}", said(&output));
    assert!(said(&output).contains("began\nvm: no result: the command was still running"));
}

#[test]
#[ignore = "boots a kernel: make test-vm"]
fn every_shipped_policy_is_accepted_schedules_and_goes_on_both_kernels() {
    let names: Vec<_> = policies::ALL.iter().map(|policy| policy.name).collect();
    for kernel in KERNELS {
        let text = script(
            kernel,
            &format!(
                "for policy in {}; do
                    runslice run $policy -- sh -c 'cat /sys/kernel/sched_ext/root/ops
                        for i in 1 2 3 4 5 6 7 8; do (true) & done; wait'
                    cat /sys/kernel/sched_ext/state
                done",
                names.join(" ")
            ),
        );
        for name in &names {
            assert!(
                text.contains(&format!("run: {name} is the scheduler")),
                "{kernel}: {text}"
            );
            assert!(text.lines().any(|line| line == *name), "{kernel}: {text}");
        }
        assert_eq!(
            text.lines().filter(|line| *line == "disabled").count(),
            policies::ALL.len(),
            "{text}"
        );
    }
}

#[test]
#[ignore = "boots a kernel: make test-vm"]
fn every_shipped_policy_survives_31_s_of_load() {
    let stress = "stress-ng --temp-path /tmp --cpu 2 --affinity 2 --fork 2 --vm 1 --vm-bytes 64M \
                  --switch 2 --timeout 32s";
    for kernel in KERNELS {
        for policy in POLICIES {
            let mut words = vec![
                "--kernel",
                kernel,
                "--timeout",
                "120s",
                "--kernel-log",
                "--",
            ];
            words.extend(["runslice", "run", policy, "--"]);
            words.extend(stress.split_whitespace());
            let output = vm(&words);
            let text = said(&output);
            assert_eq!(
                output.status.code(),
                Some(0),
                "{policy} on {kernel}: {text}"
            );
            assert_eq!(complaints(&text), [""; 0], "{policy} on {kernel}");
            assert!(
                text.contains("kernel's own scheduler is back after 3"),
                "{text}"
            );
        }
    }
}

#[test]
#[ignore = "boots a kernel: make test-vm"]
fn a_policy_that_stalls_is_ejected_with_status_3_and_the_kernels_words() {
    let loser = object("loser");
    for kernel in KERNELS {
        let loser = loser.to_string_lossy();
        let output = vm(&[
            "--kernel", kernel, "--", "runslice", "run", &loser, "--for", "30s",
        ]);
        let text = said(&output);
        assert_eq!(output.status.code(), Some(3), "{kernel}: {text}");
        assert!(
            text.contains("was ejected: runnable task stall: "),
            "{kernel}: {text}"
        );
    }
}

#[test]
#[ignore = "boots a kernel: make test-vm"]
fn a_killed_runslice_leaves_the_default_scheduler_and_the_load_goes_on() {
    for kernel in KERNELS {
        for policy in POLICIES {
            let text = script(
                kernel,
                &format!(
                    "{LOAD}
                    runslice run {policy} &
                    while ! grep -q enabled /sys/kernel/sched_ext/state; do sleep 0.1; done
                    sleep 3
                    kill -KILL $!
                    for i in 1 2 3 4 5 6 7 8 9; do
                        sleep 1
                        grep -q disabled /sys/kernel/sched_ext/state && break
                    done
                    echo \"afterwards $(cat /sys/kernel/sched_ext/state)\"
                    kill -0 $mover && echo 'the load goes on'"
                ),
            );
            assert!(
                text.contains("afterwards disabled"),
                "{policy} on {kernel}: {text}"
            );
            assert!(
                text.contains("the load goes on"),
                "{policy} on {kernel}: {text}"
            );
        }
    }
}

#[test]
#[ignore = "boots a kernel: make test-vm"]
fn signals_bring_the_default_scheduler_back_and_end_with_130() {
    for kernel in KERNELS {
        let text = script(
            kernel,
            "for signal in INT TERM; do
                runslice run fifo -- sh -c 'sleep 2; kill -'$signal' $PPID; sleep 60'
                echo \"$signal ended with $?, $(cat /sys/kernel/sched_ext/state)\"
            done",
        );
        for signal in ["INT", "TERM"] {
            let want = format!("{signal} ended with 130, disabled");
            assert!(text.contains(&want), "{kernel}: {text}");
        }
    }
}

#[test]
#[ignore = "boots a kernel: make test-vm"]
fn a_cpu_goes_and_comes_under_load() {
    for kernel in KERNELS {
        for policy in POLICIES {
            let text = script(
                kernel,
                &format!(
                    "{LOAD}
                    runslice run {policy} -- sh -c '
                        for i in 1 2 3; do
                            echo 0 >/sys/devices/system/cpu/cpu1/online; sleep 1
                            echo 1 >/sys/devices/system/cpu/cpu1/online; sleep 1
                        done'
                    echo \"status $?\""
                ),
            );
            assert!(text.contains("status 0"), "{policy} on {kernel}: {text}");
        }
    }
}

#[test]
#[ignore = "boots a kernel: make test-vm"]
fn counted_time_repeats_every_byte_and_samples_differ() {
    let run = |extra: &[&str]| {
        let command = "runslice run fifo -- sh -c '
            for i in 1 2 3 4 5 6; do (true) & done; wait
            cat /proc/schedstat /proc/uptime'";
        let mut words = vec!["--det", "--with", "runslice"];
        words.extend(extra);
        words.extend(["--", "sh", "-c", command]);
        let output = vm(&words);
        assert!(output.status.success(), "{}", said(&output));
        output.stdout
    };
    let first = run(&[]);
    assert!(first == run(&[]), "two counted runs differ");
    assert!(
        run(&["--seed", "1"]) != run(&["--seed", "2"]),
        "two samples are the same"
    );
}

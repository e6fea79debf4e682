//! Policies on real kernels, in virtual machines.
//!
//! `make test-vm` installs what they need and runs them. Each boots one guest at a time, because
//! two would starve each other on a small computer.

mod loads;
mod nodes;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{LazyLock, Mutex, PoisonError};

use runslice_tests::object;

/// Held while a guest runs.
static ONE: Mutex<()> = Mutex::new(());

const KERNELS: [&str; 2] = ["6.18", "7.2"];

/// What the kernel prints when something is wrong with it, or with a policy.
const COMPLAINTS: [&str; 10] = [
    "WARNING:",
    "BUG:",
    "Oops",
    "rcu: INFO",
    "rcu_preempt detected",
    "workqueue lockup",
    "blocked for more than",
    "verifier bug",
    "Writing directly to p->scx",
    "runnable task stall",
];

/// This program without what debuggers want, which is ten times the rest: guests unpack it all.
static PROGRAM: LazyLock<PathBuf> = LazyLock::new(|| {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("vm-program");
    std::fs::create_dir_all(&folder).expect("the folder for tests is writable");
    let program = folder.join("runslice");
    let status = Command::new("strip")
        .arg("-o")
        .arg(&program)
        .arg(env!("CARGO_BIN_EXE_runslice"))
        .status();
    let status = status.expect("strip is there; `scripts/setup.sh vm` installs it");
    assert!(status.success(), "strip: {status}");
    program
});

/// Runs `runslice vm` with these arguments.
fn vm(arguments: &[&str]) -> Output {
    vm_with_path(&std::env::var_os("PATH").unwrap_or_default(), arguments)
}

/// The same, with QEMU as it is found on `path`.
fn vm_with_path(path: &OsStr, arguments: &[&str]) -> Output {
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    Command::new(PROGRAM.as_path())
        .env("PATH", path)
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
#[ignore = "boots two kernels: make test-vm"]
fn an_object_that_asks_for_the_kernels_configuration_is_accepted() {
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let output = Command::new(PROGRAM.as_path())
        .args(["check", "--vm"])
        .arg(object!("asks_config"))
        .stdin(Stdio::null())
        .output()
        .expect("runslice starts");
    for kernel in KERNELS {
        let line = format!("kernel {kernel}: the verifier accepts it");
        assert!(said(&output).contains(&line), "{}", said(&output));
    }
}

/// Students load them into kernels, too.
#[test]
#[ignore = "boots two kernels: make test-vm"]
fn both_kernels_accept_every_lesson_and_run_under_it() {
    let names: Vec<&str> = policies::LESSONS.iter().map(|lesson| lesson.name).collect();
    let script = format!(
        "for lesson in {}; do runslice run $lesson -- \
         sh -c 'for i in 1 2 3 4; do (sleep 0.05; echo .) & done; wait' >/dev/null; \
         echo $lesson $?; done",
        names.join(" ")
    );
    for kernel in KERNELS {
        let words = ["--kernel", kernel, "--det", "--with", "runslice", "--"];
        let output = vm(&[&words[..], &["sh", "-c", &script]].concat());
        for name in &names {
            let ended = format!("{name} 0\n");
            assert!(
                said(&output).contains(&ended),
                "{kernel}: {}",
                said(&output)
            );
        }
        assert!(
            !said(&output).contains("ejected"),
            "{kernel}: {}",
            said(&output)
        );
    }
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
fn a_terminal_shows_what_a_guest_printed_before_it_died() {
    // The result of this guest never comes: it dies when the line was read to be sent.
    let command = "echo half a result
        until grep -qs \"^pos:.14\" $(for pid in $(pidof tail); do echo /proc/$pid/fdinfo/*; done)
        do sleep 0.1; done
        sleep 3; echo c >/proc/sysrq-trigger; sleep 1000";
    let output = on_a_terminal(command);
    let text = said(&output);
    assert_eq!(output.status.code(), Some(6), "{text}");
    assert_eq!(text.matches("half a result").count(), 1, "{text}");
    assert!(text.contains("Kernel panic"), "{text}");
}

#[test]
#[ignore = "boots a kernel: make test-vm"]
fn a_terminal_shows_each_line_once() {
    let output =
        on_a_terminal("for i in 1 2 3; do echo out $i.; echo err $i. >&2; sleep 1; done; exit 7");
    let text = said(&output);
    assert_eq!(output.status.code(), Some(7), "{text}");
    for line in ["out 1.", "err 1.", "out 2.", "err 2.", "out 3.", "err 3."] {
        assert_eq!(text.matches(line).count(), 1, "{text}");
    }
}

/// Runs a script in a guest of a `runslice vm` whose output is a terminal.
fn on_a_terminal(script: &str) -> Output {
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let words = ["vm", "--timeout", "100s", "--", "sh", "-c", script];
    let quoted = words.map(|word| format!("'{word}'")).join(" ");
    let command = format!("{} {quoted}", PROGRAM.display());
    // Of util-linux: a terminal for one command.
    Command::new("script")
        .args(["-qec", &command, "/dev/null"])
        .stdin(Stdio::null())
        .output()
        .expect("script is there; it belongs to bsdutils")
}

#[test]
#[ignore = "boots a kernel: make test-vm"]
fn a_policy_that_stalls_is_ejected_with_status_3_and_the_kernels_words() {
    let loser = object!("loser");
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

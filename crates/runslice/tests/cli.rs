//! What the command line prints and how it ends. Each file of `golden/` has the arguments and the
//! expected output together; `UPDATE_GOLDEN=1` writes the expected part anew.

use std::fmt::Write as _;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use runslice_tests::{command, object};

fn golden_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

/// The program, in the folder of the golden files, so that messages name files as the user did.
fn runslice() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_runslice"));
    command.current_dir(golden_folder()).stdin(Stdio::null());
    command
}

fn run(arguments: &str) -> Output {
    runslice()
        .args(arguments.split_whitespace())
        .output()
        .expect("runslice starts")
}

/// The part of a golden file that the user writes: comment and arguments.
fn arguments(golden: &str) -> &str {
    let (_, rest) = golden
        .split_once("-- args\n")
        .expect("a golden file has `-- args`");
    rest.split("\n-- ").next().unwrap_or(rest)
}

/// The whole file as it should be after a run that gave `output`.
fn expected_file(golden: &str, output: &Output) -> String {
    let (comment, _) = golden
        .split_once("-- args\n")
        .expect("a golden file has `-- args`");
    let mut file = format!("{comment}-- args\n{}\n", arguments(golden).trim_end());
    let status = output.status.code().expect("no signal ended it");
    let (stdout, stderr) = [&output.stdout, &output.stderr]
        .map(|b| String::from_utf8_lossy(b))
        .into();
    write!(
        file,
        "-- status\n{status}\n-- stdout\n{stdout}-- stderr\n{stderr}"
    )
    .expect("to memory");
    file
}

#[test]
fn the_output_is_as_the_golden_files_say() {
    let update = std::env::var_os("UPDATE_GOLDEN").is_some();
    let entries = std::fs::read_dir(golden_folder()).expect("the folder exists");
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.expect("readable").path())
        .collect();
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "txt"));
    // `mistakes.rs` makes the many calls of this one.
    paths.retain(|path| !path.ends_with("mistakes.txt"));
    paths.sort();
    assert!(paths.len() >= 5, "golden files are missing");
    let mut wrong = String::new();
    for path in paths {
        let have = std::fs::read_to_string(&path).expect("readable");
        let want = expected_file(&have, &run(arguments(&have)));
        if have == want {
            continue;
        }
        if update {
            std::fs::write(&path, want).expect("writable");
        } else {
            let _ = writeln!(
                wrong,
                "{}\nnow:\n{want}\nexpected:\n{have}\n",
                path.display()
            );
        }
    }
    assert!(
        wrong.is_empty(),
        "{wrong}UPDATE_GOLDEN=1 writes what it is now"
    );
}

#[test]
fn the_readme_shows_all_that_the_program_prints() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    let readme = std::fs::read_to_string(&path).expect("readable");
    let command = "$ runslice sim fifo mlfq -w desk -o desk.html\n";
    let begin = readme.find(command).expect("the README begins with a run") + command.len();
    let shown = &readme[begin..begin + readme[begin..].find("```").expect("the block ends")];
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("readme");
    std::fs::create_dir_all(&folder).expect("the folder for tests is writable");
    let mut command = runslice();
    command
        .current_dir(&folder)
        .args("sim fifo mlfq -w desk -o desk.html".split(' '));
    let output = command.output().expect("runslice starts");
    let printed = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(folder.join("desk.html").is_file());
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        let (before, after) = (&readme[..begin], &readme[begin + shown.len()..]);
        std::fs::write(&path, format!("{before}{printed}{after}")).expect("writable");
        return;
    }
    assert_eq!(shown, printed, "UPDATE_GOLDEN=1 writes what it is now");
}

/// The service's command line must be one that this program takes; no systemd is asked.
#[test]
fn the_service_starts_what_the_command_line_knows() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../dist/runslice@.service");
    let unit = std::fs::read_to_string(path).expect("readable");
    let mut lines = unit.lines();
    let start = lines.find_map(|line| line.strip_prefix("ExecStart=/usr/local/bin/runslice "));
    let start = start.expect("the unit starts runslice");
    let words = |options: &str, knobs: &str| {
        let start = start.replace("%i", "mlfq");
        let start = start.replace("$RUNSLICE_OPTIONS", options);
        format!(
            "{} --root no_sched_ext",
            start.replace("${RUNSLICE_KNOBS}", knobs)
        )
    };
    for (options, knobs) in [
        ("", ""),
        ("--ignore-cgroups", ":guard_ms=10000,kthreads_fast=1"),
    ] {
        let output = run(&words(options, knobs));
        let stderr = String::from_utf8_lossy(&output.stderr);
        // As far as this machine without sched_ext: the words were understood.
        assert_eq!(output.status.code(), Some(4), "{stderr}");
    }
    assert_eq!(run(&words("--no-such", "")).status.code(), Some(2));
    assert!(unit.contains("\nRestartPreventExitStatus=1 2 4\n"));
    assert!(unit.contains("\nSuccessExitStatus=130\n"));
    assert!(unit.contains("\nStartLimitBurst="));
}

#[test]
fn the_service_has_the_rights_that_it_needs_and_no_more() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../dist/runslice@.service");
    let unit = std::fs::read_to_string(path).expect("readable");
    let settings = unit.lines().filter(|line| !line.starts_with('#'));
    let of = |key: &str| -> Vec<&str> {
        let lines = settings.clone().filter_map(|line| line.split_once('='));
        lines.filter(|it| it.0 == key).map(|it| it.1).collect()
    };
    // Each capability has its reason above the line.
    let capabilities = of("CapabilityBoundingSet");
    assert_eq!(capabilities.len(), 1);
    for capability in capabilities[0].split(' ') {
        let name = capability.strip_prefix("CAP_").expect("a capability");
        let reasons = unit.lines().filter(|line| line.starts_with("# "));
        let is_named = |line: &str| {
            let mut words = line.split(|c: char| !c.is_ascii_uppercase() && c != '_');
            words.any(|it| it == name)
        };
        assert!(reasons.clone().any(is_named), "{capability} has no reason");
    }
    for key in [
        "AmbientCapabilities",
        "PermissionsStartOnly",
        "RootDirectory",
    ] {
        assert_eq!(of(key), [""; 0], "{key}");
    }
    for (key, value) in [
        ("NoNewPrivileges", "yes"),
        ("ProtectSystem", "strict"),
        ("ProtectHome", "yes"),
        ("PrivateTmp", "yes"),
        ("ProtectKernelModules", "yes"),
        ("ProtectControlGroups", "yes"),
        ("ProtectHostname", "yes"),
        ("RestrictNamespaces", "yes"),
        ("RestrictSUIDSGID", "yes"),
        ("LockPersonality", "yes"),
        ("MemoryDenyWriteExecute", "yes"),
        ("RestrictAddressFamilies", "AF_UNIX"),
        ("SystemCallFilter", "@system-service bpf perf_event_open"),
        ("SystemCallArchitectures", "native"),
    ] {
        assert_eq!(of(key), [value], "{key}");
    }
}

#[test]
fn the_same_policy_twice_is_told_apart_and_gives_the_same_figures() {
    let output = run("sim fifo fifo -w two_hogs.toml --format csv");
    let stdout = String::from_utf8(output.stdout).expect("UTF-8");
    let rows = |name: &str| -> Vec<String> {
        // What is in front of the policy's name is the same in all rows.
        let policy = format!(",ideal,1,{name},");
        let rows = stdout.lines().filter_map(|line| line.split_once(&policy));
        rows.map(|(_, figures)| figures.to_owned()).collect()
    };
    assert_eq!(rows("fifo").len(), 3, "{stdout}");
    assert_eq!(rows("fifo"), rows("fifo#2"));
}

#[test]
fn json_has_the_request_the_end_and_the_report_of_every_run() {
    let output = run("sim fifo:slice_ns=5000000 mlfq -w two_hogs.toml --format json --seed 9");
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(json["runslice_results"], 2);
    assert_eq!(
        (&json["seed"], &json["workload"]),
        (&9.into(), &"two-hogs".into())
    );
    assert_eq!(json["machine"]["cpus"], 1);
    let runs = json["runs"].as_array().expect("a list of runs");
    assert_eq!(runs.len(), 2);
    assert_eq!(runs[0]["knobs"]["slice_ns"], "5000000");
    for run in runs {
        assert_eq!(run["exit"]["reason"], "unregistered from user space");
        assert_eq!(run["report"]["groups"][0]["group"], "hog");
        assert_eq!(run["report"]["machine"]["elapsed_ns"], 1_000_000_000);
        assert!(run["callbacks"].as_u64().is_some_and(|count| count > 100));
    }
}

#[test]
fn an_ejected_policy_ends_in_status_3_with_kind_message_time_and_its_table() {
    let mut command = runslice();
    command
        .arg("sim")
        .arg(object!("loser"))
        .args(["--workload", "desk"]);
    let output = command
        .args(["--duration", "5s"])
        .output()
        .expect("runslice starts");
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(3), "{stdout}");
    assert!(stdout.contains("\nhog "), "the table is there: {stdout}");
    let last = stdout.lines().last().unwrap_or_default();
    assert!(last.starts_with("loser was ejected at 1."), "{last}");
    assert!(
        last.contains("runnable task stall") && last.contains("failed to run"),
        "{last}"
    );

    let output = command
        .args(["--format", "csv"])
        .output()
        .expect("runslice starts");
    assert_eq!(output.status.code(), Some(3));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        stderr.contains("loser was ejected at 1."),
        "files do not say it: {stderr}"
    );
}

#[test]
fn check_names_everything_that_is_missing_at_once() {
    let output = runslice()
        .arg("check")
        .arg(object!("needy"))
        .output()
        .expect("runslice starts");
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{stdout}");
    for name in ["scx_bpf_read_minds", "scx_bpf_tell_future"] {
        assert!(stdout.contains(name), "{name}: {stdout}");
    }
    assert!(!stdout.contains("nothing missing"), "{stdout}");
}

#[test]
fn check_fails_when_a_callback_can_reach_what_the_kernel_lacks() {
    let check = |set: &[&str]| {
        let output = runslice()
            .arg("check")
            .arg(object!("absent"))
            .args(set)
            .output();
        let output = output.expect("runslice starts");
        let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
        (output.status.code(), stdout)
    };
    let (status, stdout) = check(&[]);
    assert_eq!(status, Some(0), "{stdout}");
    for part in [
        "kernel 6.18: on branches that are not taken there, 2",
        "kernel 6.18: nothing missing",
        "nr_cpu_ids",
        "cpu_of_slot",
        "ring buffer `told`: nobody reads it",
    ] {
        assert!(stdout.contains(part), "{part}: {stdout}");
    }
    assert!(!stdout.contains("can reach"), "{stdout}");
    for set in ["zero_is_fine", "written"] {
        assert!(!stdout.contains(set), "{set}: {stdout}");
    }
    let (status, stdout) = check(&["--set", "asks=1", "--set", "nr_cpu_ids=4"]);
    assert_eq!(status, Some(1), "{stdout}");
    let reached = "kernel 6.18: the callbacks can reach 1, which ends the policy\n  the target \
                   kernel 6.18 lacks the function `scx_bpf_ask_oracle`";
    assert!(stdout.contains(reached), "{stdout}");
    assert!(!stdout.contains("nothing missing"), "{stdout}");
    assert!(!stdout.contains("nr_cpu_ids"), "{stdout}");
}

#[test]
fn check_says_what_an_object_has_and_that_the_verifier_was_not_asked() {
    for policy in ["fifo", "mlfq"] {
        let output = run(&format!("check {policy}"));
        let stdout = String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(0), "{stdout}");
        for kernel in ["6.18", "7.2"] {
            let line = format!(
                "kernel {kernel}: nothing missing; the verifier was not asked (--vm asks it)"
            );
            assert!(stdout.lines().any(|it| it == line), "{stdout}");
        }
        for part in [
            "runslice_counters",
            "scx_bpf_dsq_insert",
            "sched_ext_ops",
            "slice_ns",
        ] {
            let expected = part != "slice_ns" || policy == "fifo";
            assert_eq!(stdout.contains(part), expected, "{part}: {stdout}");
        }
    }
}

#[test]
fn check_names_the_options_that_a_kernel_was_built_without() {
    let folder = command::empty_folder(env!("CARGO_TARGET_TMPDIR"), "check-config");
    let all = "CONFIG_SCHED_CLASS_EXT=y\nCONFIG_BPF_SYSCALL=y\nCONFIG_BPF_JIT=y\n\
               CONFIG_DEBUG_INFO_BTF=y\nCONFIG_HZ=300\n";
    let without = all.replace(
        "CONFIG_SCHED_CLASS_EXT=y",
        "# CONFIG_SCHED_CLASS_EXT is not set",
    );
    std::fs::write(folder.join("all"), all).expect("writable");
    std::fs::write(folder.join("without"), without).expect("writable");
    let said = |file: &str, status| {
        let words = ["check", "fifo", "--config", file].map(str::to_owned);
        command::said(env!("CARGO_BIN_EXE_runslice"), &folder, &words, status)
    };
    let (out, _) = said("all", 0);
    assert!(
        out.contains("all that fifo needs is set; it ticks 300 times"),
        "{out}"
    );
    let (out, _) = said("without", 1);
    assert!(
        out.contains("CONFIG_SCHED_CLASS_EXT  no   sched_ext"),
        "{out}"
    );
    assert!(
        out.contains("without: 1 option is not set: fifo cannot run there"),
        "{out}"
    );
}

#[test]
fn check_prints_what_callbacks_cost_and_ends_well() {
    let output = run("check fifo:slice_ns=5000000 --costs");
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{stdout}");
    let begin = stdout.find("dispatch").expect("a row of the decision");
    let rows: Vec<Vec<&str>> = stdout[begin..]
        .lines()
        .take(4)
        .map(|line| {
            line.trim_start_matches("dispatch")
                .split_whitespace()
                .collect()
        })
        .collect();
    let hogs: Vec<&str> = rows.iter().map(|row| row[0]).collect();
    assert_eq!(hogs, ["10", "100", "1000", "10000"], "{stdout}");
    // fifo does the same for any number: calls, instructions, visits and charged time agree.
    assert!(
        rows[1..].iter().all(|row| row[2..] == rows[0][2..]),
        "{stdout}"
    );
    assert!(stdout.contains("scx_bpf_dsq_move_to_local"), "{stdout}");
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let mut command = runslice();
    command
        .arg("completions")
        .arg("bash")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().expect("runslice starts");
    drop(child.stdout.take());
    let mut errors = String::new();
    let mut stderr = child.stderr.take().expect("piped");
    stderr.read_to_string(&mut errors).expect("UTF-8");
    assert_eq!(errors, "");
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
}

#[test]
fn two_processes_print_the_same_bytes() {
    let outputs = [(); 2].map(|()| run("sim fifo mlfq -w desk --duration 1s --format json"));
    assert_eq!(
        outputs[0].status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&outputs[0].stderr)
    );
    assert!(!outputs[0].stdout.is_empty());
    assert_eq!(outputs[0].stdout, outputs[1].stdout);
}

#[test]
fn every_policy_gets_an_event_file_and_a_trace_of_its_own() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("files");
    std::fs::create_dir_all(&folder).expect("writable");
    let at = |name: &str| folder.join(name);
    let output = runslice()
        .args([
            "sim",
            "fifo",
            "mlfq",
            "--workload",
            "desk",
            "--duration",
            "100ms",
        ])
        .arg("--events")
        .arg(at("e.jsonl"))
        .arg("--trace")
        .arg(at("t.pftrace"))
        .arg("--output")
        .arg(at("table.txt"))
        .output()
        .expect("runslice starts");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(output.stdout.is_empty(), "the table went to a file");
    for name in [
        "e.fifo.jsonl",
        "e.mlfq.jsonl",
        "t.fifo.pftrace",
        "t.mlfq.pftrace",
        "table.txt",
    ] {
        let bytes = std::fs::read(at(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(!bytes.is_empty(), "{name} is empty");
    }
    let events = std::fs::read_to_string(at("e.mlfq.jsonl")).expect("UTF-8");
    assert!(
        events
            .lines()
            .next()
            .is_some_and(|header| header.contains("\"mlfq\""))
    );
    assert!(events.lines().count() > 100, "too few events");
}

#[test]
fn a_manual_page_is_written_for_every_verb() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("man");
    std::fs::create_dir_all(&folder).expect("writable");
    let output = runslice()
        .arg("man")
        .arg(&folder)
        .output()
        .expect("runslice starts");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    for verb in ["", "-sim", "-list", "-check", "-completions", "-man"] {
        let page = folder.join(format!("runslice{verb}.1"));
        let text =
            std::fs::read_to_string(&page).unwrap_or_else(|error| panic!("{page:?}: {error}"));
        assert!(text.contains(".TH"), "{page:?} is no manual page");
    }
}

/// A user with a build as root must not run what somebody else has put into the folder for
/// temporary files, under any name that this program could be expected to use.
#[test]
fn a_load_executes_nothing_that_another_user_has_planted() {
    let name = format!("runslice-planted-{}", std::process::id());
    let shared = std::env::temp_dir().join(name);
    std::fs::create_dir(&shared).expect("the test's own folder");
    let proof = shared.join("executed");
    let planted = format!("all clean:\n\ttouch {}\n", proof.display());
    for folder in ["runslice-tree", "runslice-contest"] {
        let folder = shared.join(folder);
        std::fs::create_dir(&folder).expect("in the test's own folder");
        for file in ["GNUmakefile", "makefile", "Makefile"] {
            std::fs::write(folder.join(file), &planted).expect("in the test's own folder");
        }
    }
    let small = "--files 2 --functions 1";
    for load in [
        format!("load kernbench {small} --runs 1 --pause 0s --loads maximal"),
        format!("load contest {small} --rows no_load"),
    ] {
        let output = runslice()
            .args(load.split_whitespace())
            .env("TMPDIR", &shared)
            .output()
            .expect("runslice starts");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(0), "{load}: {said}");
    }
    assert!(!proof.exists(), "a planted makefile was executed");
    let left = std::fs::read_dir(&shared).expect("it is there").count();
    assert_eq!(left, 2, "the loads left something behind");
    std::fs::remove_dir_all(&shared).expect("it is the test's own");
}

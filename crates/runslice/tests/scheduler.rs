//! `--scheduler`: a scheduler's own program on the simulated machine, and recordings of it. The
//! program is runslice itself, whose `run` loads a policy with libbpf as published loaders do.

#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use std::io::{Read as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;

const RUNSLICE: &str = env!("CARGO_BIN_EXE_runslice");

fn runslice(arguments: &[&str]) -> Output {
    let mut command = Command::new(RUNSLICE);
    command.args(arguments).stdin(Stdio::null());
    command.output().expect("runslice starts")
}

fn sim(arguments: &[&str]) -> Output {
    runslice(&[&["sim"], arguments].concat())
}

/// Standard output of a command that must succeed.
fn said(arguments: &[&str]) -> String {
    let output = runslice(arguments);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {said}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Standard error of a command that must fail with that status.
fn refused(arguments: &[&str], status: i32) -> String {
    let output = runslice(arguments);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(status), "{arguments:?}: {said}");
    said
}

fn scratch(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
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
    let run = [
        "--scheduler",
        &command,
        "-w",
        "desk",
        "--duration",
        "1s",
        "--wide",
    ];
    let first = sim(&run);
    let table = String::from_utf8_lossy(&first.stdout).into_owned();
    let name = "runslice run fifo";
    // The first row is in the table of the load's goals.
    let row = table.lines().filter(|line| line.starts_with(name)).nth(1);
    let row: Vec<&str> = row
        .expect("the program has a row")
        .split_whitespace()
        .collect();
    let runs: u64 = row[7].parse().expect("its runs");
    assert!(
        row[6].parse::<u32>().is_ok_and(|it| it > 0) && runs > 0,
        "{table}"
    );
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

const LOAD: [&str; 4] = ["-w", "desk", "--duration", "300ms"];

/// What `--audit` says behind the policy's name.
fn behind_name(line: &str) -> String {
    let (_, events) = line.split_once(": ").expect("a name stands first");
    events.to_owned()
}

#[test]
fn a_bundle_repeats_a_run_without_its_program() {
    let bundle = scratch("loader.bundle");
    let program = scratch("loader-that-goes");
    std::fs::copy(RUNSLICE, &program).expect("a copy");
    for cpu in ["simulated", "free"] {
        let command = format!("{} run mlfq", text(&program));
        let own = ["--scheduler", &command, "--loader-cpu", cpu];
        let live = said(&[&["sim"], &own[..], &LOAD, &["--audit"]].concat());
        said(&[&["bundle"], &own[..], &LOAD, &["-o", text(&bundle)]].concat());
        assert_eq!(said(&["sim", text(&bundle), "--audit"]), live, "{cpu}");
        let table = said(&[&["sim"], &own[..], &LOAD].concat());
        // A recording has no system calls to count.
        let is_of_both = |line: &&str| !line.contains("system calls in the run");
        let table: Vec<&str> = table.lines().filter(is_of_both).collect();
        let repeated = said(&["sim", text(&bundle)]);
        assert_eq!(repeated.lines().collect::<Vec<_>>(), table, "{cpu}");
        // What it says of itself again changes nothing.
        let again = [&["sim", text(&bundle), "--audit", "--seed", "1"], &LOAD[..]].concat();
        assert_eq!(said(&again), live, "{cpu}");
    }
    std::fs::remove_file(&program).expect("it is there");
    let followed = said(&["trace", "pid", "pointer", "--sim", text(&bundle)]);
    let own = format!("'{RUNSLICE}' run mlfq");
    let own = ["--scheduler", &own, "--loader-cpu", "free"];
    let live = said(
        &[
            &["trace", "pid", "pointer"],
            &own[..],
            &LOAD[..2],
            &["--for", "300ms"],
        ]
        .concat(),
    );
    // The names of the two programs differ.
    assert_eq!(behind_name(&followed), behind_name(&live));
}

/// As root the other user is nobody; else only what surrounds the program is another's.
#[test]
fn a_run_and_its_recording_are_those_of_another_user() {
    let bundle = scratch("others.bundle");
    let command = format!("'{RUNSLICE}' run mlfq");
    let own = ["--scheduler", &command];
    let run = [&["sim"], &own[..], &LOAD, &["--audit"]].concat();
    let live = said(&run);
    said(&[&["bundle"], &own[..], &LOAD, &["-o", text(&bundle)]].concat());
    let is_root = std::fs::metadata("/proc/self").expect("there").uid() == 0;
    let others = |arguments: &[&str]| {
        let mut other = Command::new(RUNSLICE);
        other.args(arguments).stdin(Stdio::null());
        other.env_clear().env("LANG", "tr_TR").current_dir("/");
        if is_root {
            other.uid(65534).gid(65534);
        }
        let output = other.output().expect("runslice starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {said}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    assert_eq!(others(&["sim", text(&bundle), "--audit"]), live, "replay");
    assert_eq!(others(&run), live, "the program");
}

#[test]
fn a_recording_of_another_run_is_refused_and_says_of_which_it_is() {
    let bundle = scratch("bound.bundle");
    let command = format!("'{RUNSLICE}' run fifo");
    let make = ["bundle", "--scheduler", &command, "-o", text(&bundle)];
    said(&[&make[..], &LOAD].concat());
    for (options, words) in [
        (&["-w", "chat"][..], "workloads/desk.toml"),
        (&["-w", "desk", "--scale", "hogs=9"], "parameters []"),
        (&["--seed", "7"], "seed 1"),
        (&["--duration", "1s"], "300 ms"),
        (&["--cpus", "3"], "another machine"),
        (&["--runs", "2"], "one seed"),
        (&["--set", "slice_ns=1"], "prepare an object"),
    ] {
        let said = refused(&[&["sim", text(&bundle)], options].concat(), 2);
        assert!(said.contains(words), "{options:?}: {said}");
    }
    for verb in [&["check"][..], &["bundle", "-o", "/dev/null"]] {
        let said = refused(&[verb, &[text(&bundle)]].concat(), 2);
        assert!(said.contains("a recording"), "{verb:?}: {said}");
    }
    let said = refused(&["bundle", "--scheduler", &command, "-o", "/dev/null"], 2);
    assert!(said.contains("--workload"), "{said}");
}

#[test]
fn a_setup_only_bundle_has_the_events_of_the_policy_under_every_load_and_seed() {
    let bundle = scratch("setup.bundle");
    let command = format!("'{RUNSLICE}' run mlfq:queues=3");
    said(&[
        "bundle",
        "--setup-only",
        "--scheduler",
        &command,
        "-o",
        text(&bundle),
    ]);
    for load in [
        &["-w", "desk", "--duration", "300ms"][..],
        // A bundle has its machine, that of desk; web has another one.
        &[
            "-w",
            "web",
            "--cpus",
            "4",
            "--duration",
            "300ms",
            "--seed",
            "9",
        ],
    ] {
        let of = |policy: &str| behind_name(&said(&[&["sim", policy, "--audit"], load].concat()));
        assert_eq!(of(text(&bundle)), of("mlfq:queues=3"), "{load:?}");
    }
    said(&[
        "sim",
        text(&bundle),
        "-w",
        "desk",
        "--duration",
        "50ms",
        "--runs",
        "2",
    ]);
    let said = refused(&["sim", text(&bundle), "-w", "desk", "--cpus", "3"], 2);
    assert!(said.contains("another machine"), "{said}");
    let said = refused(&["sim", text(&bundle)], 2);
    assert!(said.contains("give --workload"), "{said}");
}

#[test]
fn a_damaged_recording_ends_with_an_error_and_never_with_a_panic() {
    let bundle = scratch("damaged.bundle");
    let command = format!("'{RUNSLICE}' run fifo");
    let load = ["-w", "desk", "--duration", "20ms"];
    let make = ["bundle", "--scheduler", &command, "-o", text(&bundle)];
    said(&[&make[..], &load].concat());
    let whole = std::fs::read(&bundle).expect("written");
    let lines = whole.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
    let (header, _) = lines.clone().nth(1).expect("a header");
    let (header, packed) = whole.split_at(header + 1);
    let mut recording = Vec::new();
    let read = GzDecoder::new(packed).read_to_end(&mut recording);
    read.expect("gzip");
    let first = b"runslice recording of a loader 1\n".len();
    let end = recording.len() - 8;
    let damaged = scratch("changed.bundle");
    let play = |recording: &[u8]| {
        let mut file = GzEncoder::new(header.to_vec(), Compression::fast());
        file.write_all(recording).expect("to memory");
        std::fs::write(&damaged, file.finish().expect("to memory")).expect("written");
        sim(&[text(&damaged)])
    };
    let mut differences = 0;
    for step in 0..60 {
        let mut bytes = recording.clone();
        // Most of it is types and programs; what comes last are turns.
        let at = match step % 2 {
            0 => first + (end - first) / 61 * (step + 1),
            _ => end - 1 - step * 13,
        };
        bytes[at] = bytes[at].wrapping_add(1 + step as u8 * 4);
        let sum = fnv1a(&bytes[..end]);
        bytes[end..].copy_from_slice(&sum.to_le_bytes());
        let output = play(&bytes);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            matches!(output.status.code(), Some(0 | 1 | 3)),
            "byte {at}: {said}"
        );
        differences += u32::from(said.contains("replay: record"));
    }
    assert!(differences > 0, "no answer ever differed");
    let mut bytes = recording;
    bytes[end - 40] ^= 1;
    let output = play(&bytes);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("cut or changed"), "{said}");
}

/// The checksum at a recording's end.
fn fnv1a(bytes: &[u8]) -> u64 {
    model::Fnv1a::of(bytes.iter().copied())
}

#[test]
fn programs_stand_in_sweeps_beside_policies_and_their_runs_are_kept() {
    let folder = scratch("sweep-of-programs");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("made");
    std::fs::copy(RUNSLICE, folder.join("own")).expect("a copy");
    let file = folder.join("sweep.toml");
    let content = "policy = ['fifo']\nscheduler = ['./own run fifo']\nworkload = ['desk']\n\
                   seeds = 2\nduration = '50ms'\n";
    std::fs::write(&file, content).expect("written");
    let more = format!("'{RUNSLICE}' run mlfq");
    let sweep = [
        "sweep",
        text(&file),
        "--scheduler",
        &more,
        "--loader-cpu",
        "free",
        "--jobs",
        "2",
    ];
    let results = said(&[&sweep[..], &["--format", "json"]].concat());
    for name in ["\"fifo\"", "\"own run fifo\"", "\"runslice run mlfq\""] {
        assert!(results.contains(name), "{name}: {results}");
    }
    let again = runslice(&sweep);
    let told = String::from_utf8_lossy(&again.stderr).into_owned();
    assert!(told.contains("6 of 6 runs are there already"), "{told}");
    // Another program of that name makes its own runs.
    let mut bytes = std::fs::read(RUNSLICE).expect("readable");
    bytes.push(0);
    std::fs::remove_file(folder.join("own")).expect("it is there");
    std::fs::write(folder.join("own"), bytes).expect("written");
    let mode = std::fs::metadata(RUNSLICE).expect("there").permissions();
    std::fs::set_permissions(folder.join("own"), mode).expect("ours");
    let told = String::from_utf8_lossy(&runslice(&sweep).stderr).into_owned();
    assert!(told.contains("4 of 6 runs are there already"), "{told}");
    let bound = scratch("bound-in-sweep.bundle");
    said(
        &[
            &["bundle", "--scheduler", &more, "-o", text(&bound)],
            &LOAD[..],
        ]
        .concat(),
    );
    let content = format!("policy = ['{}']\nworkload = ['desk']\n", text(&bound));
    std::fs::write(&file, content).expect("written");
    let told = refused(&["sweep", text(&file)], 1);
    assert!(told.contains("cannot be swept"), "{told}");
}

#[test]
fn check_says_what_a_program_has_loaded() {
    let command = format!("'{RUNSLICE}' run mlfq");
    let checked = said(&["check", "--scheduler", &command]);
    for words in [
        "struct_ops/mlfq_enqueue",
        "mlfq_ops",
        "kernel 6.18: nothing missing",
        "7.2",
    ] {
        assert!(checked.contains(words), "{words}: {checked}");
    }
    assert!(!checked.contains("probe/"), "{checked}");
    let said = refused(&["check", "--scheduler", "/bin/true"], 1);
    assert!(said.contains("before it attached"), "{said}");
    refused(&["check", "--scheduler", "/bin/true", "fifo"], 2);
}

#[test]
fn one_file_is_not_given_for_two_outputs() {
    let command = format!("'{RUNSLICE}' run fifo");
    let same = [
        "sim",
        "--scheduler",
        &command,
        "--loader-output",
        "x",
        "--events",
        "x",
    ];
    let said = refused(&[&same[..], &LOAD].concat(), 2);
    assert!(
        said.contains("x is given for --events and for --loader-output"),
        "{said}"
    );
    let printed = scratch("printed.txt");
    let kept = [
        "sim",
        "--scheduler",
        &command,
        "--loader-output",
        text(&printed),
    ];
    runslice(&[&kept[..], &LOAD].concat());
    let printed = std::fs::read_to_string(&printed).expect("written");
    assert!(printed.contains("fifo is the scheduler"), "{printed}");
}

#[test]
fn metrics_that_nobody_serves_are_told_as_missing() {
    let command = format!("'{RUNSLICE}' run fifo");
    let file = scratch("stats.jsonl");
    let ask = [
        "sim",
        "--scheduler",
        &command,
        "--scheduler-stats",
        text(&file),
    ];
    let table = said(&[&ask[..], &["--scheduler-stats-every", "100ms"], &LOAD].concat());
    assert!(
        table.contains("no metrics: its socket is var/run/scx/root/stats"),
        "{table}"
    );
    assert_eq!(std::fs::read_to_string(&file).expect("made"), "");
}

#[test]
fn a_stall_under_a_program_is_explained_as_that_of_its_policy() {
    let load = scratch("held.toml");
    let held = "[workload]\nname = \"held\"\nstop = \"duration:4s\"\n[machine]\ncpus = 1\n\
                [task.shell]\ndo = \"run(inf)\"\n\
                [task.rt]\npolicy = \"fifo:50\"\ndo = \"sleep(100ms), run(inf)\"\n";
    std::fs::write(&load, held).expect("written");
    let command = format!("'{RUNSLICE}' run fifo");
    let program = ["--scheduler", &command, "--loader-cpu", "free"];
    let of = |words: &[&str]| {
        let output = runslice(&[&["explain"], words].concat());
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(output.status.code(), Some(0), "{words:?}: {said}");
        let (found, again) = said.split_once("\nAgain:").expect("a command at the end");
        (found.to_owned(), again.to_owned())
    };
    let (own, again) = of(&[&program[..], &["-w", text(&load)]].concat());
    assert!(own.starts_with("outranked: "), "{own}");
    assert!(again.contains("--scheduler"), "{again}");
    assert_eq!(own, of(&["fifo", "-w", text(&load)]).0);
    let bundle = scratch("held.bundle");
    let make = ["-w", text(&load), "-o", text(&bundle)];
    runslice(&[&["bundle"], &program[..], &make].concat());
    assert_eq!(own, of(&[text(&bundle)]).0, "a recording has its workload");
    for (more, words) in [
        (&["fifo"][..], "give a policy or --scheduler"),
        (&["--events", "e"], "leave out --scheduler"),
        (&["--set", "a=1"], "prepare an object"),
    ] {
        let said = refused(&[&["explain"], &program[..], more].concat(), 2);
        assert!(said.contains(words), "{more:?}: {said}");
    }
}

//! `--scheduler` with programs that mean harm or are broken: each run ends with a message, and
//! nothing of the program is left. The program is that of the supervisor's tests
//! (tests/loader), which this test has cargo build.

#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

const RUNSLICE: &str = env!("CARGO_BIN_EXE_runslice");
const NAME: &str = "runslice-loader-subject";

/// The program, beside the one under test.
fn subject() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let folder = Path::new(RUNSLICE).parent().expect("a folder");
        let mut cargo = Command::new(std::env::var_os("CARGO").expect("cargo runs this test"));
        cargo.args([
            "build",
            "--quiet",
            "--package",
            "runslice-loader-tests",
            "--bin",
            NAME,
        ]);
        if folder.ends_with("release") {
            cargo.arg("--release");
        }
        let target = folder.parent().expect("a target folder");
        cargo.env("CARGO_TARGET_DIR", target);
        assert!(cargo.status().expect("cargo starts").success());
        folder.join(NAME)
    })
}

/// The folders of one test: that in which runslice makes its own, and one for files.
struct Folders {
    temporary: PathBuf,
    given: PathBuf,
}

impl Folders {
    fn new(name: &str) -> Self {
        let all = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("hostile-{name}"));
        let _ = fs::remove_dir_all(&all);
        let [temporary, given] = ["temporary", "given"].map(|it| all.join(it));
        fs::create_dir_all(&temporary).expect("made");
        fs::create_dir_all(&given).expect("made");
        Self { temporary, given }
    }

    fn sim(&self, case: &str, options: &[&str]) -> Command {
        let mut command = Command::new(RUNSLICE);
        // The folder's name is in the command line, so that processes are known by it.
        let program = format!("'{}' {case}", subject().display());
        command.args([
            "sim",
            "--scheduler",
            &program,
            "-w",
            "desk",
            "--duration",
            "1s",
        ]);
        command.args(options).env("TMPDIR", &self.temporary);
        command.stdin(Stdio::null());
        command
    }

    /// What a run prints that must end with `status` and leave nothing behind.
    fn said(&self, case: &str, options: &[&str], status: i32) -> String {
        let output = self.sim(case, options).output().expect("runslice starts");
        let Output { stdout, stderr, .. } = &output;
        let said = String::from_utf8_lossy(&[&stdout[..], stderr].concat()).into_owned();
        assert_eq!(output.status.code(), Some(status), "{case}: {said}");
        assert!(!said.contains("panicked"), "{case}: {said}");
        self.nothing_is_left(case);
        said
    }

    fn nothing_is_left(&self, case: &str) {
        wait_for(&format!("{case}: processes"), || processes(case).is_empty());
        wait_for(&format!("{case}: files"), || {
            fs::read_dir(&self.temporary).is_ok_and(|mut it| it.next().is_none())
        });
    }
}

/// Waits, and fails when it takes far longer than a busy computer needs.
fn wait_for(what: &str, is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The processes of the program in a case; zombies have no command line.
fn processes(case: &str) -> Vec<String> {
    let is_it = |line: &str| {
        let words: Vec<&str> = line.split('\0').collect();
        let at = words.iter().position(|it| it.ends_with(NAME));
        at.is_some_and(|at| words[at + 1..].join(" ").trim() == case)
    };
    let all = fs::read_dir("/proc").expect("processes").flatten();
    let found = all.filter(|it| {
        let line = fs::read_to_string(it.path().join("cmdline"));
        line.is_ok_and(|line| is_it(&line))
    });
    found
        .map(|it| it.file_name().to_string_lossy().into_owned())
        .collect()
}

fn has(said: &str, words: &[&str]) {
    for word in words {
        assert!(said.contains(word), "no `{word}` in: {said}");
    }
}

#[test]
fn one_that_fails_is_told_with_its_last_lines_and_status() {
    let folders = Folders::new("fails");
    let said = folders.said("fail", &[], 1);
    // What it prints cannot change the terminal.
    has(
        &said,
        &["ended (status 3) before it attached", "\\u001b[31mno CPUs"],
    );
}

#[test]
fn one_that_makes_no_call_is_killed() {
    let folders = Folders::new("hangs");
    let said = folders.said("hang", &[], 1);
    has(&said, &["has made no system call for 10 s", "thread 0"]);
}

#[test]
fn one_that_spins_is_refused_after_a_tenth_of_a_second_of_its_cpu_time() {
    let folders = Folders::new("spins");
    has(
        &folders.said("spin", &[], 1),
        &[
            "attached no policy within 100 ms of CPU time",
            "without end",
        ],
    );
}

#[test]
fn one_that_sleeps_is_refused_after_its_time_to_attach() {
    let folders = Folders::new("sleeps");
    has(
        &folders.said("sleep", &[], 1),
        &["attached no policy within 60 s of simulated time", "sleep"],
    );
}

#[test]
fn children_of_one_that_ends_are_killed_with_it() {
    let folders = Folders::new("forks");
    has(
        &folders.said("fork", &[], 1),
        &["before it attached a policy", "child said"],
    );
    let said = folders.said("forks", &[], 1);
    // One child makes no system call, which is the sooner end.
    has(&said, &["has made no system call for 10 s"]);
    wait_for("its children", || processes("child of forks").is_empty());
}

#[test]
fn one_that_writes_where_it_may_not_is_refused_each_file() {
    let folders = Folders::new("writes");
    let outside = folders.given.join("outside");
    let given = folders.given.join("folder");
    let output = folders.given.join("output");
    fs::create_dir(&given).expect("made");
    fs::write(&outside, "kept").expect("written");
    let inside = given.join("file");
    let case = format!("escapes {} {}", outside.display(), inside.display());
    let [given, output] = [&given, &output].map(|it| it.to_str().expect("UTF-8"));
    let options = ["--loader-dir", given, "--loader-output", output];
    has(&folders.said(&case, &options, 1), &["before it attached"]);
    let printed = fs::read_to_string(output).expect("kept");
    has(
        &printed,
        &[
            "write outside: 13",
            "mkdir: 13",
            "write given: 0",
            "unlink: 13",
        ],
    );
    assert_eq!(fs::read_to_string(&outside).expect("there"), "kept");
    assert_eq!(fs::read_to_string(&inside).expect("there"), "given");
    // Without a folder it may write nowhere.
    let output = folders.given.join("output-2");
    let output = output.to_str().expect("UTF-8");
    fs::remove_file(&inside).expect("there");
    folders.said(&case, &["--loader-output", output], 1);
    has(
        &fs::read_to_string(output).expect("kept"),
        &["write outside: 13", "write given: 13"],
    );
    assert!(!inside.exists());
}

#[test]
fn one_that_asks_for_what_is_not_there_is_refused_each_call() {
    let folders = Folders::new("denied");
    let output = folders.given.join("output");
    let output = output.to_str().expect("UTF-8");
    let said = folders.said("denied", &["--loader-output", output], 1);
    has(&said, &["before it attached"]);
    has(
        &fs::read_to_string(output).expect("kept"),
        &[
            "mount 1",
            "ptrace 1",
            "io_uring_setup 38",
            "socket 13",
            "bpf 22",
            "kill 3",
        ],
    );
}

#[test]
fn output_without_end_fills_no_disk() {
    let folders = Folders::new("floods");
    let output = folders.given.join("output");
    let path = output.to_str().expect("UTF-8");
    folders.said("floods", &["--loader-output", path], 1);
    let kept = fs::metadata(&output).expect("kept").len();
    assert!(kept > 1 << 20 && kept <= 33 << 20, "{kept} bytes");
}

/// Starts a run and waits until its program runs.
fn started(folders: &Folders, case: &str) -> Child {
    let mut command = folders.sim(case, &[]);
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    let run = command.spawn().expect("runslice starts");
    wait_for("the program runs", || !processes(case).is_empty());
    run
}

fn kill(pid: &str) {
    let status = Command::new("kill").args(["-KILL", pid]).status();
    assert!(status.expect("kill starts").success(), "{pid}");
}

#[test]
fn one_that_somebody_kills_is_told_with_the_signals_status() {
    let folders = Folders::new("shot");
    // Not the case of another test.
    let run = started(&folders, "hang shot");
    // A program that hangs: it is killed before runslice would.
    for pid in processes("hang shot") {
        kill(&pid);
    }
    let output = run.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    // It may be killed before its first call.
    has(&said, &["ended (status 137) before it "]);
    folders.nothing_is_left("hang shot");
}

/// What a shell does that attaches a policy by another program in the background.
fn after_attaching(name: &str, then: &str, status: i32, words: &[&str]) {
    let folders = Folders::new(name);
    // The name, so that processes are known by it.
    let command = format!("sh -c \"'{RUNSLICE}' run fifo & {then} # {name}\"");
    let mut sim = Command::new(RUNSLICE);
    let arguments = ["sim", "-w", "desk", "--duration", "3s", "--scheduler"];
    sim.args(arguments).arg(&command).stdin(Stdio::null());
    sim.env("TMPDIR", &folders.temporary);
    let output = sim.output().expect("runslice starts");
    let said = String::from_utf8_lossy(&[&output.stdout[..], &output.stderr].concat()).into_owned();
    assert_eq!(output.status.code(), Some(status), "{said}");
    has(&said, words);
    folders.nothing_is_left(name);
    let is_its = |it: fs::DirEntry| {
        let line = fs::read_to_string(it.path().join("cmdline"));
        line.is_ok_and(|line| line.contains("run fifo &") && line.contains(name))
    };
    let all = || fs::read_dir("/proc").expect("processes").flatten();
    wait_for("its shell", || !all().any(is_its));
}

#[test]
fn a_policy_that_its_program_takes_off_has_an_early_end() {
    after_attaching(
        "attached-and-shot",
        "sleep 1; kill -9 \\$!; sleep 100",
        3,
        &["was ejected at 1.", "took it off before the run was over"],
    );
}

#[test]
fn one_that_makes_no_call_after_attaching_is_killed() {
    after_attaching(
        "attached-and-hangs",
        "sleep 1; while :; do :; done",
        1,
        &["has made no system call for 10 s"],
    );
}

#[test]
fn one_that_does_not_hear_that_it_shall_end_is_killed() {
    after_attaching(
        "attached-and-deaf",
        "trap '' INT; sleep 1000",
        0,
        &["did not end within 5 s of simulated time"],
    );
}

#[test]
fn when_a_run_is_interrupted_nothing_of_the_program_is_left() {
    let folders = Folders::new("interrupted");
    let run = started(&folders, "hang interrupted");
    let pid = run.id().to_string();
    let status = Command::new("kill").args(["-INT", &pid]).status();
    assert!(status.expect("kill starts").success());
    let output = run.wait_with_output().expect("it ends");
    assert!(!output.status.success(), "{:?}", output.status);
    folders.nothing_is_left("hang interrupted");
}

#[test]
fn when_runslice_is_killed_nothing_of_the_program_is_left() {
    let folders = Folders::new("killed");
    let mut run = started(&folders, "hang killed");
    run.kill().expect("it runs");
    run.wait().expect("it ends");
    folders.nothing_is_left("hang killed");
}

#[test]
fn a_folder_that_takes_the_place_of_the_programs_files_stays() {
    let folders = Folders::new("takes");
    let output = folders.given.join("output");
    let given = folders.temporary.to_str().expect("UTF-8").to_owned();
    let case = format!("takes {given}");
    let options = [
        "--loader-dir",
        &given,
        "--loader-output",
        output.to_str().expect("UTF-8"),
    ];
    let run = folders
        .sim(&case, &options)
        .output()
        .expect("runslice starts");
    let said = String::from_utf8_lossy(&run.stderr);
    assert_eq!(run.status.code(), Some(1), "{said}");
    has(&said, &["before it attached"]);
    has(
        &fs::read_to_string(&output).expect("kept"),
        &["rename 13", "move tree 0", "look 0"],
    );
    wait_for("processes", || processes(&case).is_empty());
    assert!(
        !folders.temporary.join("moved").exists(),
        "its files are deleted where they are"
    );
    let left = fs::read_dir(&folders.temporary).expect("there").flatten();
    let kept: Vec<_> = left
        .filter_map(|it| fs::read(it.path().join("r/sys/kernel/sched_ext/root/ops")).ok())
        .collect();
    assert_eq!(kept, [b"kept"]);
}

#[test]
fn output_that_is_made_long_is_read_from_its_end() {
    let folders = Folders::new("grows");
    let output = folders.given.join("output");
    let path = output.to_str().expect("UTF-8");
    let said = folders.said("grows", &["--loader-output", path], 1);
    has(
        &said,
        &["ended (status 0) before it attached a policy", "new 28"],
    );
    let kept = fs::read(&output).expect("kept");
    assert!(
        kept.len() > 16 << 20 && kept.len() < 17 << 20,
        "{} bytes",
        kept.len()
    );
    assert!(kept.starts_with(b"ftruncate 27\n") && kept.ends_with(b"AAA"));
}

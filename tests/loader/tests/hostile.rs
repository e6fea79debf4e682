//! Programs that make random system calls: nothing outside of their own files changes, and none of
//! their processes is left.
//!
//! They never run as root: what the supervisor let through by mistake would be done to this
//! computer, for example to the files below `/dev`.

use std::fs;
use std::io::ErrorKind;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, symlink};
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::{BOOT, Driven, settings};
use loader::Supervisor;
use model::Nanos;
use model::user_space::UserSpace as _;

/// Simulated time of a program; one that waits longer is ended.
const LONG: Nanos = Nanos::from_secs(5);
/// The variable by which processes of these programs are known, whatever they execute.
const MARK: &str = "RUNSLICE_HOSTILE";

/// What must not change: a folder, a process, and sockets.
struct Canary {
    folder: tempfile::TempDir,
    process: Child,
    stream: UnixListener,
    named: UnixListener,
    datagram: UnixDatagram,
    before: Vec<String>,
}

impl Canary {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("file"), "kept").unwrap();
        fs::create_dir(at("folder")).unwrap();
        fs::write(at("folder/file"), "kept, too").unwrap();
        symlink("file", at("link")).unwrap();
        let name = SocketAddr::from_abstract_name(folder.path().to_str().unwrap()).unwrap();
        let [stream, named] = [
            UnixListener::bind(at("stream")),
            UnixListener::bind_addr(&name),
        ]
        .map(Result::unwrap);
        let datagram = UnixDatagram::bind(at("datagram")).unwrap();
        stream.set_nonblocking(true).unwrap();
        named.set_nonblocking(true).unwrap();
        datagram.set_nonblocking(true).unwrap();
        let process = Command::new("sleep")
            .arg("100000")
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let name = format!("/proc/{}/comm", process.id());
        // It executes a moment after it is there.
        while fs::read_to_string(&name).unwrap() != "sleep\n" {
            std::thread::sleep(Duration::from_millis(1));
        }
        let mut canary = Self {
            folder,
            process,
            stream,
            named,
            datagram,
            before: Vec::new(),
        };
        canary.before = canary.look();
        canary
    }

    /// All that could be seen of a change.
    fn look(&self) -> Vec<String> {
        let mut seen = Vec::new();
        look_into(self.folder.path(), &mut seen);
        let process = format!("/proc/{}", self.process.id());
        for name in ["limits", "oom_score_adj", "comm"] {
            seen.push(fs::read_to_string(format!("{process}/{name}")).unwrap());
        }
        let status = fs::read_to_string(format!("{process}/status")).unwrap();
        let fields = ["State", "Cpus_allowed:", "ShdPnd", "TracerPid"];
        let told = status
            .lines()
            .filter(|line| fields.iter().any(|it| line.starts_with(it)));
        // It may run for a moment when the host looks.
        seen.extend(told.map(|it| it.replace("R (running)", "S (sleeping)")));
        let stat = fs::read_to_string(format!("{process}/stat")).unwrap();
        // Priority and nice value.
        seen.extend(stat.split(' ').skip(17).take(2).map(str::to_owned));
        seen
    }

    fn is_untouched(&mut self) {
        assert_eq!(
            self.process.try_wait().unwrap(),
            None,
            "the process has ended"
        );
        for (now, before) in self.look().iter().zip(&self.before) {
            assert_eq!(now, before);
        }
        assert_eq!(self.look().len(), self.before.len());
        for socket in [&self.stream, &self.named] {
            assert!(socket.accept().is_err(), "somebody has connected");
        }
        assert!(
            self.datagram.recv(&mut [0; 8]).is_err(),
            "somebody has sent"
        );
    }
}

impl Canary {
    /// Nothing of a program is left beside the canary, in the folder for temporary files.
    fn is_alone(&self, seed: u64) {
        let beside = fs::read_dir(std::env::temp_dir()).unwrap();
        let left: Vec<_> = beside
            .map(|it| it.unwrap().path())
            .filter(|it| it != self.folder.path())
            .collect();
        assert!(left.is_empty(), "seed {seed}: {left:?} stay");
    }
}

impl Drop for Canary {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn look_into(folder: &Path, seen: &mut Vec<String>) {
    let mut names: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|it| it.unwrap().path())
        .collect();
    names.sort();
    for path in names {
        let facts = fs::symlink_metadata(&path).unwrap();
        let times = (
            facts.mtime(),
            facts.mtime_nsec(),
            facts.ctime(),
            facts.ctime_nsec(),
        );
        let content = facts.is_file().then(|| fs::read_to_string(&path).unwrap());
        let link = fs::read_link(&path).ok();
        let (mode, inode, owner) = (facts.mode(), facts.ino(), (facts.uid(), facts.gid()));
        seen.push(format!(
            "{path:?} {mode:o} {inode} {owner:?} {times:?} {content:?} {link:?}"
        ));
        if facts.is_dir() {
            look_into(&path, seen);
        }
    }
}

/// Processes whose environment has the mark; zombies have none.
fn marked(mark: &str) -> usize {
    let word = format!("{MARK}={mark}");
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let found = processes.filter_map(|it| fs::read(it.path().join("environ")).ok());
    found
        .filter(|it| it.split(|byte| *byte == 0).any(|it| it == word.as_bytes()))
        .count()
}

/// Outcome of programs that have run.
#[derive(Default)]
struct Ran {
    programs: u64,
    /// Calls that the programs have made.
    made: u64,
    /// Those of them that the supervisor has answered.
    answered: u64,
    /// Programs that wait inside of the kernel for themselves, or never make a call.
    silent: u64,
    /// Ends that are no program's own.
    errors: Vec<String>,
}

impl Ran {
    /// Runs a program.
    fn run(&mut self, seed: u64, calls: u64, canary: &Canary, mark: &str) {
        let mut settings = settings(4);
        settings
            .environment
            .push((MARK.to_owned(), mark.to_owned()));
        let folder = canary.folder.path().to_str().unwrap();
        let (number, most) = (seed.to_string(), calls.to_string());
        let victim = canary.process.id().to_string();
        let args = ["hostile", &number, &most, folder, &victim];
        let program = std::env::var(SUBJECT);
        let program = program.unwrap_or(env!("CARGO_BIN_EXE_runslice-loader-subject").to_owned());
        let mut driven: Driven<Supervisor> = Driven::start(&program, &args, settings);
        let mut interrupts = 0;
        let end = loop {
            let end = driven.try_run(BOOT + LONG);
            // Nobody may be left who could end a wait; its handler of this signal does.
            interrupts += 1;
            if !matches!(end, Ok(None)) || driven.now >= BOOT + LONG || interrupts > calls {
                break end;
            }
            driven.interrupt();
        };
        if let Err(error) = end {
            println!("seed {seed}: {error}");
            if error.contains("has made no system call for 10 s") {
                self.silent += 1;
            } else {
                self.errors.push(format!("seed {seed}: {error}"));
            }
        }
        let made = fs::read(driven.user.root().join("tmp/calls")).unwrap_or_default();
        self.programs += 1;
        self.made += made.first_chunk().map_or(0, |it| u64::from_le_bytes(*it));
        self.answered += driven.user.calls();
    }

    fn print(&self) {
        let Self {
            programs,
            made,
            answered,
            silent,
            errors,
        } = self;
        println!(
            "{programs} programs: {made} calls were made, {answered} answered by the supervisor, \
             {silent} programs fell silent, {} errors",
            errors.len()
        );
    }
}

/// Where the program is that another user may execute.
const SUBJECT: &str = "RUNSLICE_SUBJECT";
/// The user and the group that own nothing.
const NOBODY: u32 = 65534;

fn is_root() -> bool {
    fs::metadata("/proc/self").unwrap().uid() == 0
}

/// Whether this process is one that [`apart`] has started.
fn is_apart() -> bool {
    !is_root() && std::env::var_os(SUBJECT).is_some()
}

/// Runs a test of this file again, with a folder of its own for temporary files; as root as a user
/// who owns nothing but that folder.
fn apart(test: &str) {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let [own, tests, subject] =
        ["own", "tests", "runslice-loader-subject"].map(|it| folder.path().join(it));
    fs::create_dir(&own).unwrap();
    // What was built may lie where only its owner may look.
    fs::copy(std::env::current_exe().unwrap(), &tests).unwrap();
    fs::copy(env!("CARGO_BIN_EXE_runslice-loader-subject"), &subject).unwrap();
    let mut again = Command::new(&tests);
    if is_root() {
        chown(&own, Some(NOBODY), Some(NOBODY)).unwrap();
        again.uid(NOBODY).gid(NOBODY);
    }
    again
        .args(["--exact", "--include-ignored", "--nocapture"])
        .arg(format!("hostile::{test}"))
        .current_dir(&own)
        .env("TMPDIR", &own)
        .env(SUBJECT, &subject);
    let done = output_of(&mut again);
    let [said, wrong] = [&done.stdout, &done.stderr].map(|it| String::from_utf8_lossy(it));
    // A program of tests that finds none of this name succeeds too.
    let has_run = done.status.success() && said.contains("1 passed");
    assert!(has_run, "{test}: {}: {said}{wrong}", done.status);
    print!("{said}");
}

/// Runs a program that was just copied. Between its fork and its exec a child of another test has
/// the copy open for writing, and it cannot be executed until then (ETXTBSY, execve(2)).
fn output_of(copied: &mut Command) -> std::process::Output {
    const TRIES: u32 = 1_000;
    for _ in 0..TRIES {
        match copied.output() {
            Err(error) if error.kind() == ErrorKind::ExecutableFileBusy => {
                std::thread::sleep(Duration::from_millis(1));
            }
            output => return output.unwrap(),
        }
    }
    panic!("the copy stays open for writing");
}

/// Runs so many programs of so many calls each, from a seed on.
fn run_all(test: &str, first: u64, programs: u64, calls: u64) {
    if !is_apart() {
        return apart(test);
    }
    let mark = format!("{}-{first}", std::process::id());
    let mut canary = Canary::new();
    let mut ran = Ran::default();
    for seed in first..first + programs {
        ran.run(seed, calls, &canary, &mark);
        let began = Instant::now();
        while marked(&mark) > 0 {
            assert!(
                began.elapsed() < Duration::from_secs(60),
                "seed {seed}: some are left"
            );
            std::thread::sleep(Duration::from_millis(1));
        }
        canary.is_untouched();
        canary.is_alone(seed);
        if ran.programs.is_multiple_of(100) {
            ran.print();
        }
    }
    ran.print();
    assert!(ran.errors.is_empty(), "{:#?}", ran.errors);
    // Many end early, as by a signal of their own, and the filter answers calls itself.
    let (made, answered) = (ran.made, ran.answered);
    assert!(answered > programs * 50, "{answered}: most ended at once");
    assert!(made > answered / 2, "{made}: they are not counted");
}

/// What may be told of each call: it does not exist, is not allowed, or something is there already
/// or is no file that has a length.
const REFUSED: [i32; 4] = [libc::EPERM, libc::EACCES, libc::EEXIST, libc::EINVAL];

#[test]
fn no_device_and_no_file_of_the_computer_changes() {
    if !is_apart() {
        return apart("no_device_and_no_file_of_the_computer_changes");
    }
    let canary = tempfile::tempdir().unwrap();
    let mine = canary.path().join("mine");
    fs::write(&mine, "kept").unwrap();
    let look = |path: &str| {
        let facts = fs::symlink_metadata(path).unwrap();
        (
            facts.ino(),
            facts.mode(),
            facts.uid(),
            facts.rdev(),
            facts.len(),
            facts.mtime_nsec(),
        )
    };
    let there = [
        "/dev",
        "/dev/null",
        "/dev/zero",
        "/dev/urandom",
        mine.to_str().unwrap(),
    ];
    let before = there.map(look);
    let mut args = vec![
        "devices",
        "/dev/full",
        "/dev/tty",
        "/dev/new",
        "/proc/self/fd/0",
    ];
    args.extend(there);
    let program = std::env::var(SUBJECT);
    let program = program.unwrap_or(env!("CARGO_BIN_EXE_runslice-loader-subject").to_owned());
    let mut driven: Driven<Supervisor> = Driven::start(&program, &args, settings(1));
    let end = driven.run(LONG + BOOT).expect("it ends");
    let out = driven.out();
    assert_eq!(end.status, 0, "{out}{}", driven.err());
    assert!(out.lines().count() >= 22 * (args.len() - 1), "{out}");
    for line in out.lines() {
        let errno = line.rsplit(' ').next().and_then(|it| it.parse().ok());
        assert!(errno.is_some_and(|it| REFUSED.contains(&it)), "{line}");
    }
    assert_eq!(there.map(look), before);
}

#[test]
fn a_program_whose_memory_nobody_may_read_is_killed_and_the_run_goes_on() {
    if !is_apart() {
        return apart("a_program_whose_memory_nobody_may_read_is_killed_and_the_run_goes_on");
    }
    let program = std::env::var(SUBJECT).unwrap();
    let mut driven: Driven<Supervisor> =
        Driven::start(&program, &["closed interpreter"], settings(1));
    let end = driven.run(BOOT + LONG).expect("it ends");
    assert_eq!(end.status, 0, "{}", driven.err());
    assert_eq!(driven.out().trim(), "status 9");
    let expected = "a program was killed since it runs a file that may not be read";
    let notes = driven.user.summary();
    assert!(notes.iter().any(|it| it.contains(expected)), "{notes:?}");
}

#[test]
#[ignore = "drives a program until it is killed: a part of the test below"]
fn drives_closed_folders() {
    let program = std::env::var(SUBJECT).unwrap();
    let mut driven: Driven<Supervisor> = Driven::start(&program, &["closed folders"], settings(1));
    let _ = driven.try_run(BOOT + Nanos::from_secs(10));
    std::thread::sleep(Duration::from_secs(1000));
}

/// The number of the process that watches over the program of a supervisor.
fn watcher_of(supervisor: u32) -> Option<String> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let mut numbers = processes.filter_map(|it| it.file_name().into_string().ok());
    numbers.find(|it| {
        let status = fs::read_to_string(format!("/proc/{it}/status")).unwrap_or_default();
        let has = |line: &str| status.lines().any(|it| it == line);
        has("Name:\tloader-watcher") && has(&format!("PPid:\t{supervisor}"))
    })
}

/// Waits up to a minute.
fn wait_for(what: &str, is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_killed_supervisor_leaves_no_folder_where_no_process_can_be_made() {
    if !is_apart() {
        return apart("a_killed_supervisor_leaves_no_folder_where_no_process_can_be_made");
    }
    let folder = tempfile::tempdir().unwrap();
    let mut supervisor = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "hostile::drives_closed_folders"])
        .env("TMPDIR", folder.path())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let own = || fs::read_dir(folder.path()).unwrap().flatten().next();
    wait_for("the folders are closed", || {
        own().is_some_and(|it| it.path().join("r/tmp/ready").exists())
    });
    // As if the program had made as many processes as the user may have.
    let watcher = watcher_of(supervisor.id()).expect("it watches");
    let limited = Command::new("prlimit")
        .args(["--nproc=0:0", "--pid", &watcher])
        .status()
        .unwrap();
    assert!(limited.success());
    supervisor.kill().unwrap();
    supervisor.wait().unwrap();
    wait_for("its folder is gone", || own().is_none());
}

#[test]
fn random_calls_change_nothing_outside_and_leave_nobody() {
    run_all(
        "random_calls_change_nothing_outside_and_leave_nobody",
        1,
        200,
        300,
    );
}

/// A number that the environment gives, to run a part of the test below.
fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

#[test]
#[ignore = "10,000 programs of 2,000 calls take an hour or more: make test-long"]
fn ten_thousand_random_programs_change_nothing_outside_and_leave_nobody() {
    run_all(
        "ten_thousand_random_programs_change_nothing_outside_and_leave_nobody",
        number("RUNSLICE_SEED").unwrap_or(1_000_000),
        number("RUNSLICE_PROGRAMS").unwrap_or(10_000),
        2000,
    );
}

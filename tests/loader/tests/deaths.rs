//! Threads and processes that die where their supervisor does something for them: the run goes on,
//! and ends as the program does.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::support::{BOOT, Driven, settings};
use loader::{Settings, Supervisor};
use model::Nanos;
use model::user_space::{ProgramEnd, UserSpace as _};

const LONG: Nanos = Nanos::from_secs(10);

/// A supervisor that looks away after each call.
fn call_by_call() -> Settings {
    let mut settings = settings(4);
    settings.prices.calls_max = 1;
    settings
}

fn end(args: &[&str], settings: Settings) -> (ProgramEnd, String, Vec<String>) {
    let mut driven = Driven::subject(args, settings);
    let end = driven.try_run(BOOT + LONG);
    let end = end.unwrap_or_else(|error| panic!("{args:?}: {error}"));
    let end = end.unwrap_or_else(|| panic!("{args:?}: {:?}", driven.user.waits()));
    (end, driven.out(), driven.user.summary())
}

/// The variable by which the program is known that is killed.
const MARK: &str = "RUNSLICE_KILLED=at each call";

/// The host's number of the program, whatever it executes.
fn marked() -> i32 {
    let parent = format!("PPid:\t{}", std::process::id());
    let has = |path: &Path, file: &str, end: char, line: &str| {
        let text = fs::read_to_string(path.join(file)).unwrap_or_default();
        text.split(end).any(|it| it == line)
    };
    let processes = fs::read_dir("/proc").unwrap().flatten().map(|it| it.path());
    let mut found =
        processes.filter(|it| has(it, "environ", '\0', MARK) && has(it, "status", '\n', &parent));
    let found = found.next().expect("it runs");
    found
        .file_name()
        .unwrap()
        .to_str()
        .unwrap()
        .parse()
        .unwrap()
}

/// Runs a program of this computer that must succeed.
fn command(words: &[&str]) {
    let status = Command::new(words[0]).args(&words[1..]).status().unwrap();
    assert!(status.success(), "{words:?}");
}

fn kill(process: i32) {
    command(&["kill", "-KILL", &process.to_string()]);
    let stat = format!("/proc/{process}/stat");
    let began = Instant::now();
    while !fs::read_to_string(&stat).is_ok_and(|it| it.contains(") Z ")) {
        assert!(began.elapsed() < Duration::from_secs(60), "it lives");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_program_that_is_killed_at_any_of_its_calls_ends_as_one_that_was_killed() {
    let case = ["all that is traced"];
    let mut settings = call_by_call();
    let (name, value) = MARK.split_once('=').unwrap();
    settings
        .environment
        .push((name.to_owned(), value.to_owned()));
    let mut killed = 0;
    // Before that the C library begins.
    for turns in 40.. {
        let mut driven: Driven<Supervisor> = Driven::subject(&case, settings.clone());
        if driven
            .turns(turns)
            .unwrap_or_else(|it| panic!("{turns} turns: {it}"))
        {
            assert_eq!(driven.user.end().expect("it ends").status, 0);
            break;
        }
        kill(marked());
        let end = driven.try_run(BOOT + LONG);
        let end = end.unwrap_or_else(|error| panic!("killed after {turns} turns: {error}"));
        assert_eq!(
            end.expect("it ends").status,
            137,
            "killed after {turns} turns"
        );
        killed += 1;
    }
    assert!(killed > 50, "{killed}");
}

#[test]
fn a_signal_that_ends_a_program_where_it_makes_threads_is_its_end() {
    for calls in 0..12 {
        let (end, ..) = end(&["signal to a maker", &calls.to_string()], call_by_call());
        assert_eq!(end.status, 128 + 10, "after {calls} calls");
    }
}

#[test]
fn signals_for_a_thread_in_vfork_wait_until_its_child_lets_it_go() {
    let (handled, out, _) = end(&["signals in vfork", "handled"], settings(4));
    // Two different ones: what has come already does not come twice.
    assert_eq!((handled.status, out.trim()), (0, "true 0 2 signals"));
    let (ended, out, _) = end(&["signals in vfork", "not handled"], settings(4));
    assert_eq!((ended.status, out.trim()), (128 + 12, ""));
}

#[test]
fn the_maker_of_a_vforked_child_that_kills_itself_goes_on() {
    let (end, out, notes) = end(&["vforked child that kills itself"], settings(4));
    let expected = (0, "its maker goes on");
    assert_eq!((end.status, out.trim()), expected, "{notes:?}");
}

#[test]
fn a_thread_that_a_filter_of_its_own_ends_is_no_end_of_the_run() {
    for when in ["at once", "later"] {
        let began = Instant::now();
        let (end, out, _) = end(&["thread that dies alone", when], settings(4));
        assert_eq!((end.status, out.trim()), (0, "the others go on"), "{when}");
        // It was found to be dead, and not waited for.
        assert!(began.elapsed() < Duration::from_secs(10), "{when}");
    }
}

#[test]
fn a_program_of_very_many_words_is_executed() {
    // The kernel takes a fourth of it for the words.
    let own = std::process::id().to_string();
    command(&["prlimit", "--stack=67108864:", "--pid", &own]);
    let (end, out, notes) = end(&["many words"], settings(1));
    assert_eq!(
        (end.status, out.trim()),
        (0, "a child process"),
        "{notes:?}"
    );
}

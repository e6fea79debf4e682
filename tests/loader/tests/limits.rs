//! What a program may ask of its supervisor in one run: each limit ends the run by name, and
//! nobody is left. Nothing here looks at a clock: the limits are counts and bytes.

use std::fs;

use crate::support::{Driven, settings};
use loader::{ProgramLimits, Supervisor};
use model::Nanos;
use model::user_space::UserSpace as _;

const LONG: Nanos = Nanos::from_secs(4000);

fn lines(case: &str) -> Vec<String> {
    let mut driven = Driven::subject(&[case], settings(1));
    let end = driven.run(LONG).expect("it ends");
    assert_eq!(end.status, 0, "{}{}", driven.out(), driven.err());
    driven.out().lines().map(str::to_owned).collect()
}

/// The processes that run the subject with a case; zombies have no command line.
fn running(case: &str) -> usize {
    let end = format!("runslice-loader-subject\0{case}\0");
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|it| fs::read_to_string(it.path().join("cmdline")).ok());
    lines.filter(|it| it.ends_with(&end)).count()
}

/// Runs a case that must end by a limit: the error, and the calls that were answered.
fn ends_by(case: &str, limits: ProgramLimits) -> (String, u64) {
    let mut settings = settings(4);
    settings.limits = limits;
    let mut driven: Driven<Supervisor> = Driven::subject(&[case], settings);
    let error = driven.try_run(LONG).unwrap_err();
    let calls = driven.user.calls();
    drop(driven);
    assert_eq!(running(case), 0, "{case}");
    (error, calls)
}

#[test]
fn folders_below_one_another_have_an_end() {
    let expected = [
        // `/tmp` is the first of a hundred.
        "99 folders, then 36",
        "below 36",
        "above 0",
        "by a descriptor 36",
        "to it 36",
    ];
    assert_eq!(lines("nests"), expected);
}

#[test]
fn a_path_of_very_many_parts_is_too_long() {
    assert_eq!(
        lines("winds"),
        ["few 0", "many 36", "links 0", "many links 36"]
    );
}

#[test]
fn processes_that_make_processes_without_end_end_the_run() {
    let (error, _) = ends_by("bomb", ProgramLimits::default());
    assert!(
        error.contains("it has more than 256 processes at once"),
        "{error}"
    );
}

#[test]
fn children_one_after_another_without_end_end_the_run() {
    let limits = ProgramLimits {
        births: 50,
        ..ProgramLimits::default()
    };
    for case in ["one after another", "stillborn one after another"] {
        let (error, _) = ends_by(case, limits);
        let expected = "it makes more than 50 threads and processes in a run";
        assert!(error.contains(expected), "{case}: {error}");
    }
}

#[test]
fn memory_without_end_ends_the_run() {
    let limits = ProgramLimits {
        memory: 64 << 20,
        ..ProgramLimits::default()
    };
    for case in ["fills memory", "fills shared memory"] {
        let (error, _) = ends_by(case, limits);
        let expected = "its processes have more than 64 MiB of memory together";
        assert!(error.contains(expected), "{case}: {error}");
    }
}

#[test]
fn calls_without_end_end_the_run_at_the_same_call_every_time() {
    let limits = ProgramLimits {
        steps: 20_000,
        steps_per_second: 10,
        ..ProgramLimits::default()
    };
    let (error, calls) = ends_by("calls for ever", limits);
    assert!(error.contains("more than 20000 steps"), "{error}");
    assert!((1_000..=2_001).contains(&calls), "{calls}");
    assert_eq!(ends_by("calls for ever", limits).1, calls);
    // A long path takes more of them than a short call.
    let (error, looks) = ends_by("looks for ever", limits);
    assert!(error.contains("more than 20000 steps"), "{error}");
    assert!(looks < calls / 2, "{looks}");
}

//! The processes that a program makes: one thread of all runs at a time, and none is left.

use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::{Driven, settings};
use model::Nanos;

const LONG: Nanos = Nanos::from_secs(4000);

/// Runs a case to its end, which must be a good one: what it printed.
fn lines(args: &[&str]) -> Vec<String> {
    let mut driven = Driven::subject(args, settings(4));
    let end = driven.run(LONG).expect("it ends");
    assert_eq!(end.status, 0, "{}{}", driven.out(), driven.err());
    driven.out().lines().map(str::to_owned).collect()
}

/// The processes with such a command line; zombies have none.
fn running(command: &str) -> usize {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|it| fs::read_to_string(it.path().join("cmdline")).ok());
    lines.filter(|it| it.contains(command)).count()
}

fn wait_for(what: &str, is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_child_that_makes_no_call_ends_the_run_and_is_not_left_behind() {
    let mut driven = Driven::subject(&["left behind", "ended"], settings(4));
    let error = driven.try_run(LONG).unwrap_err();
    let expected = "a child of thread 0 (runslice-loader) has made no system call for 10 s";
    assert!(error.contains(expected), "{error}");
    assert_eq!(driven.out(), "", "its parent has gone on");
    drop(driven);
    assert_eq!(running("runslice-loader-subject\0left behind\0ended"), 0);
}

#[test]
#[ignore = "drives a program until it is killed: a part of the test below"]
fn drives_until_it_is_killed() {
    let mut driven = Driven::subject(&["left behind", "killed"], settings(4));
    let _ = driven.try_run(LONG);
}

#[test]
fn a_child_that_makes_no_call_dies_with_a_supervisor_that_is_killed() {
    let mut supervisor = Command::new(std::env::current_exe().unwrap())
        .args([
            "--ignored",
            "--exact",
            "children::drives_until_it_is_killed",
        ])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let command = "runslice-loader-subject\0left behind\0killed";
    wait_for("the program and its child run", || running(command) == 2);
    supervisor.kill().unwrap();
    supervisor.wait().unwrap();
    wait_for("both have ended", || running(command) == 0);
}

#[test]
fn a_child_that_would_run_beside_its_maker_is_refused() {
    // CLONE_VM; with CLONE_FILES and CLONE_SIGHAND; CLONE_PARENT, also with CLONE_VM and with both
    // of CLONE_VM and CLONE_VFORK; CLONE_PIDFD; CLONE_VFORK of a thread. All with SIGCHLD, which
    // no thread may have.
    let flags = ["111", "d11", "8011", "8111", "c111", "1011", "14d11"];
    let expected: Vec<String> = flags.iter().map(|it| format!("{it} 1")).collect();
    assert_eq!(lines(&[&["beside"], &flags[..]].concat()), expected);
}

#[test]
fn a_new_process_or_thread_runs_to_its_first_call_before_its_maker_goes_on() {
    assert_eq!(lines(&["one at a time"]), ["process true", "thread true"]);
}

#[test]
fn a_child_that_dies_before_its_first_call_can_be_waited_for() {
    assert_eq!(lines(&["stillborn"]), ["died of 11"]);
}

#[test]
fn a_child_that_the_kernel_refuses_can_be_asked_for_again() {
    let expected = ["refused 22", "refused 22", "refused 22", "made 0"];
    assert_eq!(lines(&["births that fail"]), expected);
}

#[test]
#[ignore = "drives a program where descriptors are few: a part of the test below"]
fn drives_with_few_descriptors() {
    println!("{}", lines(&["births without room"]).join("\n"));
}

/// Each process of the program takes a descriptor of the supervisor.
#[test]
fn without_a_descriptor_left_a_child_is_refused_and_the_run_goes_on() {
    let own = std::env::current_exe().unwrap();
    let script = "ulimit -n 60; exec \"$0\" --ignored --exact --nocapture \
                  children::drives_with_few_descriptors";
    let driven = Command::new("sh").args(["-c", script]).arg(own).output();
    let driven = driven.unwrap();
    let said = String::from_utf8_lossy(&[driven.stdout, driven.stderr].concat()).into_owned();
    assert!(driven.status.success(), "{said}");
    let line = said
        .lines()
        .find_map(|it| it.split_once(" made, then refused "));
    let (made, why) = line.unwrap_or_else(|| panic!("{said}"));
    let made: u32 = made.rsplit(' ').next().unwrap().parse().unwrap();
    assert!((5..60).contains(&made), "{said}");
    assert_eq!(why, libc::EAGAIN.to_string(), "{said}");
    assert!(said.contains("then made 0"), "{said}");
}

#[test]
fn signals_of_children_that_end_are_not_lost() {
    assert_eq!(lines(&["signals of children"]), ["20 ended", "told true"]);
}

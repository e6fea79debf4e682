//! Published schedulers' own programs against the stub: `LOADER='PROGRAM ARGS' BTF=FILE` names one
//! and the kernel's types; `PROGRAM=FILE` any program, such as one in Go, which uses the vDSO
//! and has threads of its own.
//!
//!     export LOADER=scx_bpfland BTF=vmlinux.btf
//!     cargo test -p runslice-loader-tests --test all published_loader -- --ignored

use loader::Supervisor;
use loader::recording::{Recorder, Recording, Replay};
use model::Nanos;

use crate::support::{BOOT, Driven, settings};

/// How often a loader is run; each time it must do the same.
const RUNS: usize = 3;

#[test]
#[ignore = "needs a published scheduler: LOADER='PROGRAM ARGS' BTF=FILE"]
fn a_published_loader_attaches_goes_on_and_ends_and_does_the_same_again() {
    let logs: Vec<_> = (0..RUNS).map(|_| run()).collect();
    assert!(logs.iter().all(|it| *it == logs[0]), "the runs differ");
}

/// What the simulated machine was asked, and what the loader wrote.
fn run() -> (Vec<String>, String) {
    let words = std::env::var("LOADER").expect("LOADER='PROGRAM ARGS'");
    let words: Vec<&str> = words.split_ascii_whitespace().collect();
    let mut settings = settings(8);
    settings.shown.btf = std::fs::read(std::env::var_os("BTF").expect("BTF")).expect("types");
    let mut driven = Driven::start(words[0], &words[1..], settings);
    let end = driven.try_run(BOOT + Nanos::from_secs(10));
    let attached = driven.kernel.attached.is_some();
    let links = driven
        .kernel
        .log
        .iter()
        .filter(|it| it.contains(" link "))
        .count();
    println!(
        "{} turns, {links} links, attached {attached}, {end:?}",
        driven.turns
    );
    println!(
        "{:?}\n{:?}",
        driven.user.summary(),
        model::user_space::UserSpace::waits(&driven.user)
    );
    if !attached {
        println!(
            "{}\n{}\n{}",
            driven.kernel.log.join("\n"),
            driven.out(),
            driven.err()
        );
    }
    assert!(attached);
    driven.interrupt();
    let end = driven.try_run(BOOT + Nanos::from_secs(20));
    println!("{end:?}\n{}\n{}", driven.out(), driven.err());
    let end = end.expect("it goes on").expect("it ends");
    // Our own program ends with 130 when it is interrupted.
    assert!(matches!(end.status, 0 | 130), "{end:?}");
    assert_eq!(driven.kernel.attached, None);
    (driven.kernel.log.clone(), driven.out() + &driven.err())
}

#[test]
#[ignore = "needs a published scheduler: LOADER='PROGRAM ARGS' BTF=FILE"]
fn a_recording_of_a_published_loader_does_the_same() {
    let words = std::env::var("LOADER").expect("LOADER='PROGRAM ARGS'");
    let mut words = words.split_ascii_whitespace().map(str::to_owned);
    let mut settings = settings(8);
    settings.shown.btf = std::fs::read(std::env::var_os("BTF").expect("BTF")).expect("types");
    let program = words.next().expect("a program");
    let words: Vec<String> = words.collect();
    let user = Supervisor::start(program.as_ref(), &words, settings).expect("it starts");
    let mut live = Driven::of(Recorder::new(user), 8);
    live.run(BOOT + Nanos::from_secs(5));
    live.interrupt();
    let end = live.run(BOOT + Nanos::from_secs(10));
    let log = live.kernel.log.clone();
    let bytes = live.user.finish().to_bytes();
    println!("{} bytes, {end:?}", bytes.len());
    let recording = Recording::from_bytes(&bytes).expect("it is whole");
    let mut replay = Driven::of(Replay::new(recording), 8);
    replay.run(BOOT + Nanos::from_secs(5));
    replay.interrupt();
    assert_eq!(replay.run(BOOT + Nanos::from_secs(10)), end);
    assert!(replay.kernel.log == log, "the replay differs");
}

#[test]
#[ignore = "needs a program: PROGRAM=FILE"]
fn a_program_does_the_same_again() {
    let program = std::env::var("PROGRAM").expect("PROGRAM=FILE");
    let once = || {
        let mut driven = Driven::start(&program, &[], settings(4));
        driven.run(BOOT + Nanos::from_secs(10));
        driven.interrupt();
        let end = driven.run(BOOT + Nanos::from_secs(20));
        (end, driven.out(), driven.err(), driven.kernel.log)
    };
    let first = once();
    println!("{:?}\n{}\n{}", first.0, first.1, first.2);
    for _ in 1..RUNS * 2 {
        assert!(first == once(), "the runs differ");
    }
}

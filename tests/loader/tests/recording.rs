//! A recording of a program, played back against a machine like the one that it ran on.

use crate::support::{BOOT, Driven, settings};
use loader::Supervisor;
use loader::recording::{Recorder, Recording, Replay};
use model::Nanos;
use model::user_space::UserSpace;

const LONG: Nanos = Nanos::from_secs(4000);

fn record(case: &str) -> (Vec<String>, Vec<u8>) {
    let program = env!("CARGO_BIN_EXE_runslice-loader-subject");
    let user = Supervisor::start(program.as_ref(), &[case.to_owned()], settings(4));
    let mut driven = Driven::of(Recorder::new(user.expect("it starts")), 4);
    let mut end = driven.run(BOOT + Nanos::from_secs(5));
    if end.is_none() {
        go_on(&mut driven, case);
        end = driven.run(LONG);
    }
    assert_eq!(end.expect("it ends").status, 0);
    (driven.kernel.log.clone(), driven.user.finish().to_bytes())
}

/// Ends the wait of a case from outside.
fn go_on<U: UserSpace>(driven: &mut Driven<U>, case: &str) {
    if case == "signals" {
        driven.interrupt();
    } else {
        driven.kernel.ready = true;
        driven.look();
    }
}

fn replay(bytes: &[u8]) -> Driven<Replay> {
    let recording = Recording::from_bytes(bytes).expect("it is whole");
    Driven::of(Replay::new(recording), 4)
}

#[test]
fn a_replay_does_what_the_program_did() {
    for case in ["threads", "maps", "fork", "pipes"] {
        let (log, bytes) = record(case);
        let mut driven = replay(&bytes);
        let end = driven
            .run(LONG)
            .unwrap_or_else(|| panic!("{case} does not end"));
        assert_eq!((end.status, &driven.kernel.log), (0, &log), "{case}");
    }
}

#[test]
fn interrupts_and_ring_buffers_are_replayed() {
    for case in ["signals", "epoll"] {
        let (log, bytes) = record(case);
        let mut driven = replay(&bytes);
        assert_eq!(driven.run(BOOT + Nanos::from_secs(5)), None, "{case}");
        go_on(&mut driven, case);
        assert_eq!(driven.run(LONG).expect("it ends").status, 0, "{case}");
        assert_eq!(driven.kernel.log, log, "{case}");
    }
}

#[test]
fn the_first_answer_that_differs_is_named() {
    let (_, bytes) = record("maps");
    let mut driven = replay(&bytes);
    // On this machine the array cannot hold what the other's held.
    driven.kernel.forgets = true;
    let error = driven.try_run(LONG).unwrap_err();
    assert!(
        error.starts_with("replay: record 0 at 3600.0 s: MAP_LOOKUP_ELEM"),
        "{error}"
    );
    let mut driven = replay(&bytes);
    driven.now = BOOT + Nanos::from_secs(1);
    let error = driven.try_run(LONG).unwrap_err();
    assert_eq!(
        error,
        "replay: record 0 at 3601.0 s: thread 0 has a turn; recorded is thread 0 at 3600 s"
    );
}

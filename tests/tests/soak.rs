//! A few trials of each kind of those that `make soak` makes for hours.

use runslice_tests::soak::{Kind, trial};

/// Trials that are made here, of all kinds together.
const TRIALS: u64 = 400;
/// Trials that were broken once.
const BROKEN_ONCE: [u64; 1] = [98_336];

#[test]
fn the_first_trials_break_nothing() {
    let mut broken = Vec::new();
    for number in (0..TRIALS).chain(BROKEN_ONCE) {
        if let Err(what) = trial(number) {
            broken.push(format!("trial {number}, {:?}: {what}", Kind::of(number)));
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn a_trial_is_the_same_again() {
    for number in 0..Kind::ALL.len() as u64 {
        let (one, two) = (trial(number), trial(number));
        assert!(one.is_ok() && one == two, "{one:?}, {two:?}");
    }
    let kinds: Vec<Kind> = (0..Kind::ALL.len() as u64).map(Kind::of).collect();
    assert_eq!(kinds, Kind::ALL);
}

/// The loads are tested where they are made; machines belong to the simulator.
#[test]
fn every_machine_of_a_trial_can_be_simulated() {
    for number in 0..500 {
        let machine = workload::generate::trial(3, number, true).machine;
        let checked = sim::check_machine(&machine);
        assert!(checked.is_ok(), "{checked:?}: {machine:?}");
    }
}

//! Three configurations of rt-app, followed by hand, and others by rule.

use workload::rtapp;

use super::toy::Toy;
use crate::work::*;

/// The configuration on the toy, to its end.
fn played(json: &str) -> Toy {
    let imported = rtapp::import(json, "case.json").unwrap_or_else(|error| panic!("{error}"));
    let mut toy = Toy::new(&imported.toml, 1);
    toy.run()
        .unwrap_or_else(|error| panic!("{error}\n{}", imported.toml));
    toy
}

/// Milliseconds and task of each begin of a run.
fn runs(toy: &Toy) -> Vec<(u64, u32)> {
    let runs = toy.times(|action| matches!(action, Action::Run(_)));
    runs.into_iter()
        .map(|(us, task)| (us / 1_000, task))
        .collect()
}

/// A task of three phases that share a timer of 10 ms. The second one runs for 15 ms, so it finds
/// the point at 30 ms passed when it is done at 35.
fn phases(mode: &str) -> Vec<u64> {
    let timer = format!("\"timer\": {{ \"ref\": \"unique\", \"period\": 10000{mode} }}");
    let toy = played(&format!(
        "{{ \"tasks\": {{ \"t\": {{ \"loop\": 1, \"phases\": {{ \
         \"a\": {{ \"loop\": 2, \"run\": 3000, {timer} }}, \
         \"b\": {{ \"run\": 15000, {timer} }}, \
         \"c\": {{ \"loop\": 2, \"run\": 1000, {timer} }} }} }} }} }}"
    ));
    assert!(toy.all_dead());
    runs(&toy).into_iter().map(|(ms, _)| ms).collect()
}

#[test]
fn a_relative_timer_begins_anew_where_it_was_missed_and_an_absolute_one_catches_up() {
    assert_eq!(phases(""), [0, 10, 20, 35, 45]);
    assert_eq!(phases(", \"mode\": \"absolute\""), [0, 10, 20, 35, 40]);
}

#[test]
fn a_signalled_task_goes_on_when_it_gets_its_mutex_back() {
    // The first task waits from 0 ms. The second signals at 2 ms and keeps the mutex until 5 ms; on
    // one CPU without preemption it runs on until 6.
    let toy = played(
        "{ \"tasks\": { \
         \"consumer\": { \"loop\": 1, \"lock\": \"m\", \"wait\": { \"ref\": \"q\", \"mutex\": \
         \"m\" }, \
         \"unlock\": \"m\", \"run\": 5000 }, \
         \"producer\": { \"loop\": 1, \"run1\": 2000, \"lock\": \"m\", \"signal\": \"q\", \
         \"run2\": 3000, \"unlock\": \"m\", \"run3\": 1000 } } }",
    );
    assert_eq!(runs(&toy), [(0, 1), (2, 1), (5, 1), (6, 0)]);
    assert_eq!(toy.now, SimTime::ZERO + Nanos::from_millis(11));
}

#[test]
fn a_resume_that_nobody_waits_for_is_lost() {
    // `b` suspends at 3 ms: the resume at 1 ms came too early, the one at 7 ms counts.
    let toy = played(
        "{ \"tasks\": { \
         \"a\": { \"loop\": 1, \"run1\": 1000, \"resume1\": \"b\", \"run2\": 1000, \
         \"sleep\": 5000, \"resume2\": \"b\" }, \
         \"b\": { \"loop\": 1, \"sleep\": 3000, \"suspend\": \"\", \"run\": 2000 } } }",
    );
    assert_eq!(runs(&toy), [(0, 0), (1, 0), (7, 1)]);
    assert!(toy.all_dead());
}

#[test]
fn a_timer_begins_with_its_task_and_not_at_its_first_turn() {
    let toy = played(
        "{ \"tasks\": { \"t\": { \"loop\": 1, \"delay\": 5000, \"run1\": 4000, \
         \"timer\": { \"ref\": \"unique\", \"period\": 10000 }, \"run2\": 1000 } } }",
    );
    assert_eq!(runs(&toy), [(5, 0), (15, 0)]);
}

#[test]
fn instances_meet_at_a_barrier() {
    let toy = played(
        "{ \"tasks\": { \"t\": { \"instance\": 3, \"loop\": 2, \"run\": 1000, \"barrier\": \"b\" \
         }, \
         \"u\": { \"loop\": 2, \"sleep\": 9000, \"barrier\": \"b\" } } }",
    );
    // The fourth one gets the CPU at 3 ms, sleeps until 12 and opens the barrier.
    assert_eq!(
        runs(&toy).into_iter().map(|(ms, _)| ms).collect::<Vec<_>>(),
        [0, 1, 2, 12, 13, 14]
    );
    assert!(toy.all_dead());
}

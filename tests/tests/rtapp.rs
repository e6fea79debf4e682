//! Imported configurations of rt-app do what rt-app does with them: three cases whose times were
//! worked out by hand from rt-app's own rules (its tutorial and `rt-app.c`, version 1.0).

use model::{Nanos, SimTime};
use runslice_tests::run::Run;
use workload::rtapp;

/// The turns of a CPU in milliseconds, and when each task of `tasks` exited.
fn simulate(json: &str, cpus: u16, tasks: &[&str]) -> (Vec<Vec<(u64, u64)>>, Vec<u64>) {
    let imported = rtapp::import(json, "case.json").unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(imported.lost, [""; 0], "nothing is lost of these");
    // The run brings a table of its own for the workload.
    let (_, rest) = imported
        .toml
        .split_once("[workload]")
        .expect("the workload has a name");
    let (_, tables) = rest.split_once("\n\n").expect("and tasks behind it");
    let run = Run {
        cpus,
        until: Nanos::from_secs(1),
        ..Run::new("fifo", tables)
    };
    let (collector, _) = run.execute();
    let ms = |time: SimTime| {
        let ns = time.as_nanos();
        assert!(ns.is_multiple_of(1_000_000), "{ns} ns, in {tables}");
        ns / 1_000_000
    };
    let turns = |cpu| {
        let turns = collector.turns(cpu, SimTime::from_nanos(1_000_000_000));
        let times = turns.iter().map(|(_, from, to)| (ms(*from), ms(*to)));
        // Operations that take no time need a turn of no length.
        times.filter(|(from, to)| from < to).collect()
    };
    (
        (0..cpus).map(turns).collect(),
        tasks
            .iter()
            .map(|task| ms(collector.exit_of(task)))
            .collect(),
    )
}

#[test]
fn run_and_sleep_take_turns_from_the_end_of_the_run() {
    let json = "{ \"tasks\": { \"worker\": { \"loop\": 3, \"run\": 20000, \"sleep\": 80000 } } }";
    let (turns, exits) = simulate(json, 1, &["worker"]);
    assert_eq!(turns[0], [(0, 20), (100, 120), (200, 220)]);
    assert_eq!(exits, [300]);
}

#[test]
fn a_relative_timer_forgets_a_missed_period_and_an_absolute_one_makes_up_for_it() {
    let with = |mode: &str| {
        let timer = format!(
            "\"timer\": {{ \"ref\": \"unique\", \"period\": 10000, \"mode\": \"{mode}\" }}"
        );
        format!(
            "{{ \"tasks\": {{ \"late\": {{ \"loop\": 1, \"phases\": {{ \
             \"long\": {{ \"run\": 15000, {timer} }}, \
             \"short\": {{ \"loop\": 3, \"run\": 4000, {timer} }} }} }} }} }}"
        )
    };
    // The point at 10 ms has passed at 15 ms: the next one is 10 ms after 15 ms.
    let (turns, exits) = simulate(&with("relative"), 1, &["late"]);
    assert_eq!(turns[0], [(0, 19), (25, 29), (35, 39)]);
    assert_eq!(exits, [45]);
    // The next one is at 20 ms all the same.
    let (turns, exits) = simulate(&with("absolute"), 1, &["late"]);
    assert_eq!(turns[0], [(0, 19), (20, 24), (30, 34)]);
    assert_eq!(exits, [40]);
}

#[test]
fn a_mutex_excludes_and_a_resume_wakes_who_is_suspended() {
    let json = "{ \"tasks\": { \
                \"first\": { \"cpus\": [0], \"loop\": 2, \"lock\": \"m\", \"run\": 10000, \
                             \"unlock\": \"m\", \"sleep\": 1000 }, \
                \"second\": { \"cpus\": [1], \"loop\": 1, \"delay\": 5000, \"lock\": \"m\", \
                              \"run\": 10000, \"unlock\": \"m\" }, \
                \"sleeper\": { \"cpus\": [2], \"loop\": 2, \"suspend\": \"sleeper\", \
                               \"run\": 3000 }, \
                \"waker\": { \"cpus\": [3], \"loop\": 2, \"run\": 5000, \
                             \"resume\": \"sleeper\", \"sleep\": 10000 } } }";
    let (turns, exits) = simulate(json, 4, &["first", "second", "sleeper", "waker"]);
    // `first` wants the mutex again at 11 ms, when `second` has it since 10 ms.
    assert_eq!(turns[0], [(0, 10), (20, 30)]);
    assert_eq!(turns[1], [(10, 20)]);
    assert_eq!(turns[2], [(5, 8), (20, 23)]);
    assert_eq!(turns[3], [(0, 5), (15, 20)]);
    assert_eq!(exits, [31, 20, 23, 30]);
}

//! What programs see of a task is true when they look, also where only they make it be kept.

use model::Nanos;
use runslice_tests::run::Run;

/// Two turns of 5 ms on the second of two CPUs, of a slice that never ends. The time charged is
/// there when the turn stops; the task sleeps then (state 1), and executes the callback itself,
/// which pins it. A timer enqueues it, whose callback nobody executes.
#[test]
fn every_field_that_a_program_names_is_up_to_date() {
    let run = Run {
        cpus: 2,
        until: Nanos::from_millis(30),
        ..Run::new(
            "mirrors",
            "[task.t]\ncpus = \"1\"\ndo = \"loop(2)[ run(5ms), sleep(5ms) ]\"",
        )
    };
    let (_, summary) = run.go();
    let turn = |what: &str, ran: u64, state: u32, pinned: u32| {
        format!(
            "{what}: ran {ran}, user {ran}\n{what}: state {state}, pinned {pinned}\n\
             {what}: on 1, woken for 1\n"
        )
    };
    let ms = |ms: u64| Nanos::from_millis(ms).get();
    let wanted = [
        turn("in", 0, 0, 0),
        turn("out", ms(5), 1, 1),
        turn("in", ms(5), 0, 0),
        turn("out", ms(10), 1, 1),
        turn("in", ms(10), 0, 0),
    ];
    let wanted: String = wanted.concat();
    let printed = &summary.printed;
    assert!(
        printed.starts_with(&wanted),
        "{printed}\ninstead of\n{wanted}"
    );
}

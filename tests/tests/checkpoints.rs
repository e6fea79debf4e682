//! A run that goes on from a checkpoint is the run that was never stopped.

use model::{CpuId, Nanos, Rng, SimTime};
use runslice_tests::run::Run;
use sim::{Checkpoint, Deed, Intervention, Simulation};
use workload::RunSpec;

use crate::reuse::{Hash, Varied, line_of, varied_runs};

/// The run, stopped at `time`. The hash has all events up to then.
fn stopped(run: &Varied, spec: &RunSpec, time: SimTime) -> (Option<Checkpoint>, Hash) {
    let mut hash = Hash::new(run.decides);
    let simulation = Simulation::new(spec).with_options(run.options);
    let stopped = simulation.with_sink(&mut hash).checkpoint(time);
    (stopped.unwrap_or_default(), hash)
}

/// Some moments of the run, its begin among them.
fn moments(end: SimTime, rng: &mut Rng) -> [SimTime; 4] {
    let end = end.as_nanos();
    let mut drawn = || rng.below(end.max(1));
    // A moment at which ticks come, and others do not.
    let tick = drawn() / 4_000_000 * 4_000_000;
    [0, drawn(), tick, end.saturating_sub(1)].map(SimTime::from_nanos)
}

#[test]
fn any_run_goes_on_from_any_moment_as_if_it_had_not_been_stopped() {
    let mut rng = Rng::new(57, 0);
    let mut resumed = 0;
    for run in varied_runs() {
        let mut hash = Hash::new(run.decides);
        let simulation = Simulation::new(&run.spec).with_options(run.options);
        let whole = simulation.with_sink(&mut hash).start();
        let Ok(end) = whole.as_ref().map(|it| it.summary.end) else {
            continue;
        };
        let whole = line_of(whole, &hash);
        for time in moments(end, &mut rng) {
            let (checkpoint, up_to) = stopped(&run, &run.spec, time);
            let Some(checkpoint) = checkpoint else {
                // The policy was ejected, or all tasks have exited.
                continue;
            };
            // The second goes on from a checkpoint that another has gone on from.
            for nth in 1..=2 {
                let mut hash = up_to.clone();
                let rest = checkpoint.resume().with_sink(&mut hash).start();
                assert_eq!(
                    line_of(rest, &hash),
                    whole,
                    "{} from {time}, {nth}",
                    run.name
                );
                resumed += 1;
            }
        }
    }
    assert!(resumed > 1_000, "only {resumed} runs went on");
}

#[test]
fn what_is_done_after_a_checkpoint_is_what_is_done_in_the_whole_run() {
    let hogs = "[task.hog]\ncount = 5\ndo = \"loop(inf)[ run(3ms), sleep(1ms) ]\"\n";
    for policy in ["fifo", "mlfq", "eevdf", "faulty-no-kick"] {
        let run = Run {
            cpus: 2,
            until: Nanos::from_millis(200),
            ..Run::new(policy, hogs)
        };
        let run = Varied {
            decides: true,
            ..Varied::new(policy.to_owned(), run.spec())
        };
        let at = SimTime::from_nanos(100_300_000);
        let deeds = [
            Deed::EndSlice(CpuId(1)),
            Deed::Kick(CpuId(0)),
            Deed::Jitter(3),
        ];
        let deeds = deeds.map(|deed| Intervention { at, deed });
        let mut hash = Hash::new(true);
        let whole = Simulation::new(&run.spec)
            .with_interventions(deeds.to_vec())
            .with_sink(&mut hash)
            .start();
        let whole = line_of(whole, &hash);
        let before = SimTime::from_nanos(at.as_nanos() - 1);
        let (checkpoint, up_to) = stopped(&run, &run.spec, before);
        let checkpoint = checkpoint.expect("it goes on");
        let mut hash = up_to.clone();
        let resumed = checkpoint.resume().with_interventions(deeds.to_vec());
        let done = resumed.with_sink(&mut hash).start();
        assert_eq!(line_of(done, &hash), whole, "{policy}");
        let mut hash = up_to;
        let without = checkpoint.resume().with_sink(&mut hash).start();
        assert_ne!(
            line_of(without, &hash),
            whole,
            "{policy}: it does something"
        );
    }
}

#[test]
fn a_run_that_goes_on_can_end_earlier() {
    let run = Run {
        until: Nanos::from_millis(500),
        ..Run::new("fifo", "[task.hog]\ncount = 2\ndo = \"run(inf)\"\n")
    };
    let short = Run {
        until: Nanos::from_millis(300),
        ..run
    };
    let mut hash = Hash::new(false);
    let spec = short.spec();
    let whole = Simulation::new(&spec).with_sink(&mut hash).start();
    let whole = line_of(whole, &hash);
    let run = Varied::new("fifo".to_owned(), run.spec());
    let (checkpoint, mut hash) = stopped(&run, &run.spec, SimTime::from_nanos(123_456_789));
    let checkpoint = checkpoint.expect("it goes on");
    let resumed = checkpoint.resume().until(Nanos::from_millis(300));
    let done = resumed.with_sink(&mut hash).start();
    assert_eq!(line_of(done, &hash), whole);
}

#[test]
fn a_run_that_is_over_has_no_checkpoint() {
    let spec = Run::new("fifo", "[task.t]\ndo = \"run(1ms)\"\n").spec();
    let late = Simulation::new(&spec).checkpoint(SimTime::from_nanos(5_000_000_000));
    assert!(late.expect("it can be made").is_none());
}

//! No time is lost, invented or spent in the wrong place, whatever policies and workloads do.

use model::{EventKind, Nanos};
use runslice_tests::collect::Collector;
use runslice_tests::random::RandomRun;
use runslice_tests::run::Run;
use runslice_tests::soak;
use stats::Conservation;
use traces::Tee;

/// Runs that every run of the tests makes.
const RUNS: u64 = 1_200;

#[test]
fn time_is_conserved_in_random_runs() {
    let mut seen = vec![0; EventKind::Change as usize + 1];
    let mut evictions = 0;
    for seed in 0..RUNS {
        let run = RandomRun::new(seed);
        let sound = soak::sound(&run).unwrap_or_else(|what| {
            panic!(
                "{what}\nreplay with RandomRun::new({seed}): {} {:?} on {:?}, tie seed {:?}\n{}",
                run.spec.policy.name,
                run.spec.policy.set,
                run.spec.machine,
                run.spec.tie_seed,
                run.text
            )
        });
        seen.iter_mut()
            .zip(sound.seen)
            .for_each(|(all, here)| *all += here);
        evictions += sound.evictions;
    }
    // The runs have shown what they are meant to show.
    let count = |kind: EventKind| seen[kind as usize];
    assert!(count(EventKind::Exit) > 5_000, "{seen:?}");
    assert!(count(EventKind::Steal) > 10_000, "{seen:?}");
    assert!(count(EventKind::Kick) > 10_000, "{seen:?}");
    assert!(count(EventKind::Migrate) > 10_000, "{seen:?}");
    assert!(count(EventKind::Change) > 2_000, "{seen:?}");
    // Requests from outside that were served, and requests of disks.
    assert!(count(EventKind::SpanEnd) > 1_000, "{seen:?}");
    assert!(count(EventKind::Count) > 10_000, "{seen:?}");
    assert!(evictions > 100, "{evictions}");
}

/// Found by the fuzzer: the call of `init_task` for a child that was refused named a task that
/// never came to be, or the next child.
#[test]
fn a_refused_fork_leaves_no_trace_of_a_task() {
    let workload = "[task.parent]\ndo = \"run(1ms), fork(child), run(1ms), fork(child)\"\n\
                    [task.child]\ncount = 0\ndo = \"run(1ms)\"\n";
    let run = Run {
        set: &[("fork_error", "-5")],
        until: Nanos::from_millis(9),
        ..Run::new("probe", workload)
    };
    let (mut conservation, mut seen) = (Conservation::new(), Collector::default());
    let summary = run.feed(&mut Tee::new(vec![&mut conservation, &mut seen]));
    assert_eq!(conservation.check(&summary), Ok(()));
    assert_eq!(
        seen.names.len(),
        1,
        "nobody but the parent was born: {:?}",
        seen.names
    );
}

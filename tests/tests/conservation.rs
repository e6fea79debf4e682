//! No time is lost, invented or spent in the wrong place, whatever policies and workloads do.

use model::{Event, EventKind, EventMask, Header, Nanos, SimTime, Sink};
use runslice_tests::affinity::AffinityCheck;
use runslice_tests::random::RandomRun;
use runslice_tests::run::Run;
use stats::{Conservation, Tee};

/// Runs that every run of the tests makes.
const RUNS: u64 = 1_200;

/// Who has exited, and what happened how often.
#[derive(Default)]
struct Deeds {
    groups: Vec<usize>,
    exited: Vec<usize>,
    seen: Vec<u64>,
}

impl Sink for Deeds {
    fn wants(&self) -> EventMask {
        EventMask::ALL
    }

    fn begin(&mut self, _: &Header) {
        self.seen = vec![0; EventKind::Change as usize + 1];
    }

    fn events(&mut self, events: &[Event]) {
        for event in events {
            self.seen[event.kind as usize] += 1;
            match event.kind {
                EventKind::New => self.groups.push((event.a & 0xffff_ffff) as usize),
                EventKind::Exit => self.exited.push(event.task.index()),
                _ => {}
            }
        }
    }

    fn finish(&mut self, _: SimTime) {}
}

/// What is wrong with the run, and how often each kind of event came.
fn check(run: &RandomRun) -> Result<(Vec<u64>, u64), String> {
    let mut conservation = Conservation::new();
    let mut affinity = AffinityCheck::new(&run.groups);
    let mut deeds = Deeds::default();
    let mut tee = Tee::new(vec![&mut conservation, &mut affinity, &mut deeds]);
    let summary = sim::run(&run.spec, &mut tee).map_err(|error| error.to_string())?;
    conservation
        .check(&summary)
        .map_err(|violation| violation.to_string())?;
    if let Some(violation) = affinity.violation {
        return Err(violation);
    }
    if summary.exit.message.contains("[_ON]") || summary.exit.fault.is_some() {
        return Err(format!("the policy was ejected: {:?}", summary.exit));
    }
    let ran: Nanos = summary.tasks.iter().map(|task| task.run).sum();
    let given: Nanos = summary.cpus.iter().map(|cpu| cpu.run).sum();
    if ran != given {
        return Err(format!("tasks ran {ran:?}, CPUs ran {given:?}"));
    }
    for task in &deeds.exited {
        let (did, had) = (
            summary.tasks[*task].run,
            run.groups[deeds.groups[*task]].work,
        );
        if did != had {
            return Err(format!("task {task} ran {did:?} for work of {had:?}"));
        }
    }
    Ok((deeds.seen, affinity.evictions))
}

#[test]
fn time_is_conserved_in_random_runs() {
    let mut seen = vec![0; EventKind::Change as usize + 1];
    let mut evictions = 0;
    for seed in 0..RUNS {
        let run = RandomRun::new(seed);
        let (events, evicted) = check(&run).unwrap_or_else(|what| {
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
            .zip(events)
            .for_each(|(all, here)| *all += here);
        evictions += evicted;
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
    let (mut conservation, mut deeds) = (Conservation::new(), Deeds::default());
    let summary = run.feed(&mut Tee::new(vec![&mut conservation, &mut deeds]));
    assert_eq!(conservation.check(&summary), Ok(()));
    assert_eq!(deeds.groups, [0], "nobody but the parent was born");
}

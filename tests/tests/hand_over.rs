//! What the kernel does of itself when a policy hands a task over or asks for a CPU.

use model::{
    CpuId, Event, EventKind, EventMask, Header, Kicked, Nanos, Sample, Sampler, SimTime, Sink,
};
use runslice_tests::collect::Kept;
use runslice_tests::run::Run;
use sim::Simulation;

const ONE: &str = "[task.A]\nstart = \"5ms\"\ndo = \"run(3ms)\"\n";

fn run(set: &'static [(&'static str, &'static str)]) -> Run<'static> {
    Run {
        cpus: 2,
        until: Nanos::from_millis(20),
        set,
        ..Run::new("hands-over", ONE)
    }
}

/// Source: `dispatch_enqueue()` and `move_remote_task_to_local_dsq()`, kernel 6.18: a CPU that runs
/// a class below the policy's is told to schedule.
#[test]
fn an_idle_cpu_that_another_one_gives_a_task_runs_it_at_once_without_a_kick() {
    let (collected, summary) = run(&[]).execute();
    let ms = |count| SimTime::ZERO + Nanos::from_millis(count);
    assert_eq!(
        collected.turns(1, summary.end),
        [("A".to_owned(), ms(5), ms(8))]
    );
    assert_eq!(collected.turns(0, summary.end), []);
}

#[test]
fn the_mask_of_a_task_that_may_not_run_everywhere_is_not_full() {
    let bound = "[task.A]\nstart = \"5ms\"\ncpus = \"0\"\ndo = \"run(3ms)\"\n";
    let (collected, summary) = Run {
        workload: bound,
        ..run(&[])
    }
    .execute();
    assert_eq!(collected.turns(0, summary.end).len(), 1);
    assert_eq!(collected.turns(1, summary.end), []);
}

/// Calls of CPU 1's scheduler.
struct Calls(u64);

impl Sink for Calls {
    fn wants(&self) -> EventMask {
        EventMask::NONE
    }

    fn begin(&mut self, _: &Header) {}

    fn events(&mut self, _: &[Event]) {}

    fn finish(&mut self, _: SimTime) {}
}

impl Sampler for Calls {
    fn sample(&mut self, sample: &Sample) {
        self.0 = sample.cpus[1].schedules;
    }
}

#[test]
fn a_cpu_that_runs_a_task_is_not_disturbed_by_another_one_that_it_is_given() {
    let calls = |start_ms: u64| {
        let workload = format!("{ONE}[task.B]\nstart = \"{start_ms}ms\"\ndo = \"run(3ms)\"\n");
        let mut calls = Calls(0);
        let spec = Run {
            workload: &workload,
            ..run(&[])
        }
        .spec();
        Simulation::new(&spec)
            .sampled(&mut calls, Nanos::from_millis(19))
            .start()
            .expect("a run");
        calls.0
    };
    // Who comes later finds an idle CPU: A gives way to idling, and that to B.
    assert_eq!(calls(6) + 1, calls(12));
}

/// Those that wake whoever runs there and those of an idle CPU are noted apart from each other.
#[test]
fn a_kick_that_is_asked_for_twice_becomes_one_with_the_first_of_its_kind() {
    let mut ends = Kept::of(EventKind::KickEnd);
    let _ = run(&[("kicks", "1")]).feed(&mut ends);
    // What became of each kick of CPU 1, in order.
    let its = ends.events.iter().filter(|it| it.cpu == CpuId(1));
    let kicks: Vec<u64> = its.map(|it| it.words().a).collect();
    let (asked, again) = (Kicked::Asked as u64, Kicked::Coalesced as u64);
    assert_eq!(kicks[..4], [asked, again, asked, again]);
    assert!(kicks.len() > 4, "they are carried out: {kicks:?}");
}

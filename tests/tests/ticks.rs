//! Where nothing else happens meanwhile, ticks and the ends of their interrupts pass by the event
//! queue. Who watches a run sees each event, so nothing passes there. Both are the same run.

use model::{Event, EventMask, Header, Nanos, Profile, SimTime, Sink};
use runslice_tests::random::RandomRun;
use runslice_tests::run::Run;
use sim::{Simulation, View, Watcher};
use workload::RunSpec;

/// Random runs that are compared.
const RUNS: u64 = 400;

/// Keeps all events.
struct Everything {
    wants: EventMask,
    events: Vec<Event>,
    end: Option<SimTime>,
}

impl Everything {
    const fn of(wants: EventMask) -> Self {
        let events = Vec::new();
        Self {
            wants,
            events,
            end: None,
        }
    }
}

impl Sink for Everything {
    fn wants(&self) -> EventMask {
        self.wants
    }

    fn begin(&mut self, _: &Header) {}

    fn events(&mut self, events: &[Event]) {
        self.events.extend(events);
    }

    fn finish(&mut self, end: SimTime) {
        self.end = Some(end);
    }
}

impl Watcher for Everything {
    fn look(&mut self, _: &View<'_>) {}
}

/// Runs `spec` in both ways; returns how many events it has.
fn compare(spec: &RunSpec, wants: EventMask, what: &str) -> usize {
    let (mut heard, mut seen) = (Everything::of(wants), Everything::of(wants));
    let by_sink = sim::run(spec, &mut heard).expect("a run");
    let by_watcher = Simulation::new(spec).watched(&mut seen).start();
    let by_watcher = by_watcher.expect("a run").summary;
    let first = heard.events.iter().zip(&seen.events).find(|(a, b)| a != b);
    assert!(first.is_none(), "{what}: {first:?}");
    assert_eq!(heard.events.len(), seen.events.len(), "{what}");
    assert_eq!(heard.end, seen.end, "{what}");
    assert_eq!(format!("{by_sink:?}"), format!("{by_watcher:?}"), "{what}");
    heard.events.len()
}

#[test]
fn ticks_that_pass_are_ticks_in_random_runs() {
    let mut events = 0;
    for seed in 0..RUNS {
        let RandomRun { mut spec, text, .. } = RandomRun::new(seed);
        spec.machine.profile = Profile::DefaultV0;
        // Most random runs have a slow tick, and many CPUs whose ticks come at once.
        if seed % 2 == 0 {
            spec.machine.hz = 1_000;
        }
        // With callbacks each of them is noted, without them it only costs time.
        let wants = match seed % 4 {
            0 => EventMask::ALL,
            _ => EventMask::SCHED,
        };
        events += compare(&spec, wants, &format!("seed {seed}\n{text}"));
    }
    assert!(events > 100_000, "only {events}");
}

#[test]
fn ticks_that_pass_are_ticks_beside_all_that_may_come_between() {
    // Hogs whose work ends at all times between two ticks and within the interrupt of one, those
    // that sleep meanwhile, interrupts, and higher classes.
    let workload = "[task.hog]\ncount = 3\ndo = \"run(inf)\"\n\
         [task.nice]\ncount = 2\nnice = 5\n\
         do = \"loop(inf)[ run(uniform(1ms, 9ms)), sleep(uniform(1us, 9ms)) ]\"\n\
         [task.close]\ndo = \"loop(inf)[ run(999us), sleep(1us), run(3us), sleep(997us) ]\"\n\
         [task.rt]\npolicy = \"rr:20\"\ncount = 2\n\
         do = \"loop(inf)[ run(2500us), sleep(30ms) ]\"\n\
         [irq.net]\npoisson = \"3ms\"\ncost = \"uniform(1us, 40us)\"\n";
    for policy in ["fifo", "mlfq", "o1", "staircase", "cfs", "eevdf"] {
        for cpus in [1, 2, 4] {
            let run = Run {
                cpus,
                until: Nanos::from_secs(3),
                ..Run::new(policy, workload)
            };
            for tie_seed in [None, Some(5)] {
                let mut spec = run.spec();
                (spec.machine.profile, spec.tie_seed) = (Profile::DefaultV0, tie_seed);
                compare(&spec, EventMask::SCHED, policy);
            }
        }
    }
}

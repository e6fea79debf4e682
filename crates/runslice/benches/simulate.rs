//! How fast the simulated machine is: CPU time of this process for the desk workload, once under
//! each shipped policy. Asserts nothing; compare its figures on one computer only.

use std::sync::Arc;

use model::{Event, EventMask, Header, Nanos, PolicySpec, SimTime, Sink, Summary};
use workload::{RunSpec, Workload};

/// Runs of each case. The fastest counts: everything that disturbs a run makes it slower.
const ROUNDS: u32 = 5;

/// Counts events and drops them.
struct Counter {
    mask: EventMask,
    events: u64,
}

impl Sink for Counter {
    fn wants(&self) -> EventMask {
        self.mask
    }

    fn begin(&mut self, _: &Header) {}

    fn events(&mut self, events: &[Event]) {
        self.events += events.len() as u64;
    }

    fn finish(&mut self, _: SimTime) {}
}

/// CPU time that this thread has used, from the kernel's own scheduler statistics.
fn cpu_time() -> Nanos {
    let path = "/proc/thread-self/schedstat";
    let text = std::fs::read_to_string(path).expect("a kernel with CONFIG_SCHED_INFO");
    let ran = text.split(' ').next().and_then(|field| field.parse().ok());
    Nanos::new(ran.expect("the first field is the time on a CPU in nanoseconds"))
}

/// The least CPU time of some runs, and what the last one gave. All runs give the same.
fn measure(spec: &RunSpec, mask: EventMask) -> (Nanos, Summary, u64) {
    let mut least = Nanos::MAX;
    let mut result = None;
    for _ in 0..ROUNDS {
        let mut counter = Counter { mask, events: 0 };
        let start = cpu_time();
        let summary = sim::run(spec, &mut counter).expect("shipped policies and workloads run");
        least = least.min(cpu_time() - start);
        result = Some((summary, counter.events));
    }
    let (summary, events) = result.expect("at least one round");
    (least, summary, events)
}

#[expect(clippy::cast_precision_loss, reason = "a printed figure")]
fn ratio(part: u64, whole: u64) -> f64 {
    part as f64 / whole.max(1) as f64
}

fn main() {
    let text = include_str!("../../../workloads/desk.toml");
    let workload = Workload::parse_with(text, "workloads/desk.toml", &[]).expect("desk is right");
    let workload = Arc::new(workload);
    println!(
        "desk, least CPU time of {ROUNDS} runs; a callback includes the kernel side around it"
    );
    println!(
        "{:<10} {:>10} {:>10} {:>12} {:>12} {:>12} {:>12} {:>10}",
        "policy",
        "simulated",
        "CPU time",
        "events",
        "events/s",
        "callbacks",
        "ns/callback",
        "ns/insn"
    );
    for policy in policies::ALL {
        let spec = RunSpec {
            policy: PolicySpec::of_object(policy.name, Arc::from(policy.object)),
            workload: Arc::clone(&workload),
            machine: workload.machine.clone(),
            seed: workload.seed,
            tie_seed: None,
            attach_after: Nanos::ZERO,
            duration: None,
        };
        let (bare, summary, _) = measure(&spec, EventMask::NONE);
        let (full, _, events) = measure(&spec, EventMask::ALL);
        println!(
            "{:<10} {:>10} {:>10} {:>12} {:>12.0} {:>12} {:>12.1} {:>10.2}",
            policy.name,
            summary.end.since(SimTime::ZERO).to_string(),
            bare.to_string(),
            events,
            1e9 * ratio(events, full.get()),
            summary.callbacks,
            ratio(bare.get(), summary.callbacks),
            ratio(bare.get(), summary.instructions),
        );
    }
}

//! Context switches per second of CPU time: how fast the simulated machine is, with statistics on.
//! A switch to the idle task does not count. Asserts nothing; compare figures of one run only.
//!
//! `--case N` runs case N once and prints nothing but its figures, for a profiler (the cases of
//! growth come behind the others); `--switches N` says how many switches a run has.

use std::time::Duration;

use model::{EventMask, ExitKind};
use runslice_tests::speed::Case;
use runslice_tests::usage::cpu_time;
use stats::Metrics;
use workload::RunSpec;

/// As in the program.
#[global_allocator]
static ALLOCATOR: allocator::CheckedAllocator = allocator::CheckedAllocator {
    program: "switches",
    status: 1,
};

/// A case, what is wanted, and what the nearest simulator of this kind has: an unmerged proposal
/// of February 2026 that compiles C against stubs, rebuilt with `-O2` (millions of switches a
/// second, docs/performance.md; measured on another computer than this may be).
const CASES: [(Case, f64, f64); 6] = [
    (Case::sleepers(1, 10), 10.0, 1.243),
    (Case::sleepers(4, 100), 8.0, 1.110),
    (Case::sleepers(64, 1_000), 7.0, 0.896),
    (Case::sleepers(256, 1_000), 5.0, 0.252),
    (Case::sleepers(4, 10_000), 5.0, 0.309),
    (Case::hogs(4, 10_000), 6.0, 0.046),
];

/// Where the time of a switch may grow, beside the first of them.
const GROWTH: [Case; 4] = [
    Case::sleepers(4, 100),
    Case::sleepers(4, 10_000),
    Case::sleepers(4, 100_000),
    Case::sleepers(1_024, 10_000),
];

/// The fastest round counts: everything that disturbs one makes it slower.
const ROUNDS: u32 = 3;

/// Switches of a run, roughly.
const SWITCHES: u64 = 3_000_000;

struct Measured {
    switches: u64,
    callbacks: u64,
    time: Duration,
}

impl Measured {
    fn ns_per_switch(&self) -> f64 {
        self.time.as_secs_f64() * 1e9 / self.switches as f64
    }
}

fn run(spec: &RunSpec, with_statistics: bool) -> Measured {
    let start = cpu_time();
    let mut metrics = Metrics::new();
    let summary = if with_statistics {
        sim::run(spec, &mut metrics)
    } else {
        sim::run(spec, &mut Deaf)
    };
    let summary = summary.expect("the run can be made");
    let switches = if with_statistics {
        metrics.report().all.runs
    } else {
        0
    };
    let time = cpu_time() - start;
    assert_eq!(
        summary.exit.kind,
        ExitKind::Unreg,
        "{}",
        summary.exit.message
    );
    Measured {
        switches,
        callbacks: summary.callbacks,
        time,
    }
}

/// Wants no events.
struct Deaf;

impl model::Sink for Deaf {
    fn wants(&self) -> EventMask {
        EventMask::NONE
    }

    fn begin(&mut self, _: &model::Header) {}

    fn events(&mut self, _: &[model::Event]) {}

    fn finish(&mut self, _: model::SimTime) {}
}

/// The fastest of some runs.
fn fastest(spec: &RunSpec, with_statistics: bool) -> Measured {
    let runs = (0..ROUNDS).map(|_| run(spec, with_statistics));
    let fastest = runs.min_by_key(|run| run.time);
    fastest.expect("at least one round")
}

/// The number behind `name` on the command line.
fn option(name: &str) -> Option<u64> {
    let args: Vec<String> = std::env::args().collect();
    let at = args.iter().position(|arg| arg == name)?;
    let number = args.get(at + 1).and_then(|text| text.parse().ok());
    Some(number.unwrap_or_else(|| panic!("{name} takes a number")))
}

fn main() {
    let switches = option("--switches").unwrap_or(SWITCHES);
    let spec = |case: &Case| case.spec(case.time_for(switches));
    if let Some(number) = option("--case") {
        let mut cases = CASES.iter().map(|(case, ..)| case).chain(&GROWTH);
        let case = cases.nth(number as usize).expect("there is such a case");
        let measured = run(&spec(case), true);
        println!(
            "{case}: {} switches, {:.1} ns each",
            measured.switches,
            measured.ns_per_switch()
        );
        return;
    }
    println!("switches to a task per second of CPU time, least CPU time of {ROUNDS} runs");
    println!(
        "{:<14} {:>9} {:>9} {:>9} {:>6} {:>9} {:>7} {:>10} {:>10}",
        "CPUs x tasks",
        "switches",
        "M/s",
        "ns each",
        "aim",
        "neighbour",
        "times",
        "callbacks",
        "statistics"
    );
    for (case, aim, neighbour) in CASES {
        let full = fastest(&spec(&case), true);
        let bare = fastest(&spec(&case), false);
        let each = full.ns_per_switch();
        let millions = 1e3 / each;
        let statistics = 1.0 - bare.time.as_secs_f64() / full.time.as_secs_f64();
        println!(
            "{:<14} {:>9} {millions:>9.2} {each:>9.1} {aim:>6.1} {neighbour:>9.3} {:>6.1}x \
             {:>10.2} {:>8.0} %",
            case.to_string(),
            full.switches,
            millions / neighbour,
            full.callbacks as f64 / full.switches as f64,
            100.0 * statistics,
        );
    }
    println!("\nnanoseconds a switch between runs of {switches} and twice as many");
    let each = |case: &Case| {
        let time = |switches| fastest(&case.spec(case.time_for(switches)), true);
        let (short, long) = (time(switches), time(2 * switches));
        let more = long.time.saturating_sub(short.time);
        more.as_secs_f64() * 1e9 / (long.switches - short.switches) as f64
    };
    let first = each(&GROWTH[0]);
    for case in GROWTH {
        let each = each(&case);
        println!(
            "{:<14} {each:>9.1} {:>6.2}x",
            case.to_string(),
            each / first
        );
    }
}

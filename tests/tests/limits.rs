//! What a policy or a workload can ask of the machine has an end, and what it does wrong without
//! being ejected is said.

use model::{Nanos, Summary};
use runslice_tests::collect::Collector;
use runslice_tests::run::Run;
use sim::{Backend, Options};
use workload::RunSpec;

/// One task that computes for 10 ms.
const ONE: &str = "[task.A]\ndo = \"run(10ms)\"\n";

/// `greedy_case` of `policies/greedy.bpf.c`.
#[derive(Clone, Copy)]
enum Case {
    Clocks = 1,
    Absolute = 11,
}

fn spec(case: Case, cpus: u16, workload: &str) -> RunSpec {
    let number = (case as u32).to_string();
    let set = [("greedy_case", number.as_str())];
    let run = Run {
        set: &set,
        cpus,
        until: Nanos::from_secs(4),
        ..Run::new("greedy", workload)
    };
    run.spec()
}

/// Runs it with little instructions a callback on both back ends, which must agree.
fn both(spec: &RunSpec) -> Summary {
    let on = |backend| {
        let options = Options {
            backend,
            budget: Some(2_000_000),
        };
        sim::run_with(spec, &mut Collector::default(), options).expect("the run can be made")
    };
    let (interpreted, native) = (on(Backend::Interpreter), on(Backend::Jit));
    assert_eq!(interpreted, native);
    native
}

fn go(case: Case, cpus: u16, workload: &str) -> Summary {
    both(&spec(case, cpus, workload))
}

#[test]
fn the_machine_has_been_up_for_an_hour_when_a_run_begins() {
    let summary = go(Case::Clocks, 1, ONE);
    // Jiffies of 1 ms, from five minutes before the wrap of the low half on.
    let jiffies = (1_u64 << 32) - 300_000 + 3_600_000;
    let hour = 3_600_000_000_000_u64;
    let line = format!("{hour} {hour} {jiffies}");
    assert_eq!(summary.printed.lines().next(), Some(line.as_str()));
    assert_eq!(
        summary.exit.time.as_nanos(),
        10_000_000,
        "a run begins at 0"
    );
}

#[test]
fn a_timer_at_an_absolute_time_fires_then() {
    let summary = go(Case::Absolute, 1, ONE);
    let line = summary.printed.lines().next();
    assert_eq!(line, Some("fired at 3600001000000"));
}

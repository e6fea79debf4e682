//! The interpreter and native code give the same results, counts, faults and memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::{Nanos, RunSpec};
use runslice_tests::random::RandomRun;
use runslice_tests::run::Run;
use runslice_tests::simulate::{self, Left};
use runslice_tests::{both, program};
use sim::Backend;

/// Compares the programs of some seeds; gives how often each kind of result was seen.
fn compare_seeds(seeds: std::ops::Range<u64>) -> BTreeMap<String, u64> {
    let mut kinds = BTreeMap::new();
    for seed in seeds {
        let image = Arc::new(program::generate(seed));
        image
            .check()
            .unwrap_or_else(|e| panic!("seed {seed} is no good program: {e}"));
        let seen = both::compare(&image, 2000).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        let seen = seen.unwrap_or_else(|| panic!("seed {seed}: no native code"));
        for result in seen.results {
            let kind = match result {
                Ok(_) => "ok".to_owned(),
                Err(fault) => {
                    let text = format!("{:?}", fault.stop);
                    text.split(['(', ' ']).next().unwrap_or_default().to_owned()
                }
            };
            *kinds.entry(kind).or_default() += 1;
        }
    }
    kinds
}

#[test]
fn generated_programs_behave_alike_on_both_back_ends() {
    let kinds = compare_seeds(0..1000);
    println!("{kinds:?}");
    // A generator that only made programs of one sort would prove little.
    for kind in [
        "ok",
        "WildStore",
        "Budget",
        "Refused",
        "Poison",
        "CallDepth",
        "WildCall",
    ] {
        assert!(
            kinds.get(kind).is_some_and(|count| *count > 3),
            "{kind}: {kinds:?}"
        );
    }
}

#[test]
#[ignore = "takes a minute: make test-long"]
fn ten_thousand_generated_programs_behave_alike_on_both_back_ends() {
    compare_seeds(1000..11_000);
}

#[test]
fn both_back_ends_stop_at_the_same_place_with_every_budget() {
    let mut stops = 0;
    for seed in 0..40 {
        let image = Arc::new(program::generate(seed));
        let full = both::compare(&image, 2000).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        let full = full.unwrap_or_else(|| panic!("seed {seed}: no native code"));
        let longest = full.retired.windows(2).map(|pair| pair[1] - pair[0]).max();
        for budget in 0..longest.unwrap_or(0).min(60) {
            let seen = both::compare(&image, budget);
            let seen = seen.unwrap_or_else(|e| panic!("seed {seed}, budget {budget}: {e}"));
            let seen = seen.expect("as with the full budget");
            stops += seen.results.iter().filter(|result| result.is_err()).count();
        }
    }
    assert!(stops > 1000, "{stops} stops");
}

/// What is left of a run.
fn simulate(spec: &RunSpec, backend: Backend) -> Left {
    simulate::on(spec, backend, None).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn simulated_runs_are_the_same_on_both_back_ends() {
    let mut events = 0;
    for seed in 0..150 {
        let RandomRun { spec, text, .. } = RandomRun::new(seed);
        let interpreted = simulate(&spec, Backend::Interpreter);
        let native = simulate(&spec, Backend::Jit);
        assert_eq!(
            interpreted, native,
            "seed {seed}, {:?}\n{text}",
            spec.policy.name
        );
        events += native.1;
    }
    assert!(events > 100_000, "{events} events");
}

#[test]
fn a_run_that_warms_up_is_the_same_as_one_on_either_back_end() {
    let workload = "[task.pair]\ncount = 40\n\
                    do = \"loop(30000)[ run(10us), sleep(50us) ]\"\n";
    let spec = Run {
        until: Nanos::from_secs(3),
        ..Run::new("mlfq", workload)
    }
    .spec();
    let auto = simulate(&spec, Backend::Auto);
    assert!(
        auto.2.instructions > 2 * bpf::WARM,
        "{}",
        auto.2.instructions
    );
    assert_eq!(auto, simulate(&spec, Backend::Interpreter));
    assert_eq!(auto, simulate(&spec, Backend::Jit));
}

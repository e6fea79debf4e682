//! The interpreter and native code give the same results, counts, faults and memory.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::Nanos;
use runslice_tests::random::RandomRun;
use runslice_tests::run::Run;
use runslice_tests::simulate::{self, Left};
use runslice_tests::{both, program, scripted};
use sim::Backend;
use workload::RunSpec;

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
#[ignore = "takes minutes: make test-long"]
fn two_thousand_simulated_runs_are_the_same_on_both_back_ends() {
    for seed in 150..2150 {
        let RandomRun { spec, text, .. } = RandomRun::new(seed);
        let [interpreted, native] =
            [Backend::Interpreter, Backend::Jit].map(|backend| simulate(&spec, backend));
        assert_eq!(interpreted, native, "seed {seed}\n{text}");
    }
}

/// `cpu_release` calls `scx_bpf_reenqueue_local()`, which calls `enqueue`, which calls functions
/// in its turn: the one way in which a callback runs inside another on this machine. A budget can
/// end in the outer callback, in the inner one, or between them.
#[test]
fn a_budget_ends_at_the_same_place_where_a_release_enqueues_again() {
    // enqueue calls nothing and inserts into the local queue with the usual slice; cpu_release
    // takes the queue back.
    let script = [
        (scripted::ENQUEUE, &[0, 3, 3][..]),
        (scripted::CPU_RELEASE, &[0, 1]),
    ];
    let spec = scripted::spec(&scripted::repeating(&script));
    let on = |backend, budget| simulate::on(&spec, backend, Some(budget)).expect("a run");
    let mut places = BTreeSet::new();
    for budget in 1..1500 {
        let interpreted = on(Backend::Interpreter, budget);
        let place = interpreted.2.exit.fault.clone().unwrap_or_default();
        let of_interest = ["scripted_cpu_release+", "scripted_enqueue+"];
        let is_of_interest = of_interest
            .iter()
            .any(|callback| place.starts_with(callback));
        // Once for each place of these, and for some others: a translation takes long.
        if places.insert(place) && (is_of_interest || places.len().is_multiple_of(8)) {
            assert_eq!(interpreted, on(Backend::Jit, budget), "budget {budget}");
        }
    }
    let callback = |place: &String| place.split('+').next().unwrap_or_default().to_owned();
    let stopped: BTreeSet<String> = places.iter().map(callback).collect();
    // Its way to the call is short: where it stops itself, the inner callbacks have returned.
    for callback in ["scripted_cpu_release", "scripted_enqueue", ""] {
        assert!(stopped.contains(callback), "{callback}: {stopped:?}");
    }
}

/// The functions of the simulated kernel in random order, from random callbacks.
#[test]
fn scripted_policies_behave_alike_on_both_back_ends() {
    let mut ends = BTreeMap::<String, u64>::new();
    let mut callbacks = 0;
    for seed in 0..120 {
        let (_, _, summary) = scripted::check(&scripted::random(seed)).expect("a run");
        callbacks += summary.callbacks;
        let message: String = summary.exit.message.chars().take(24).collect();
        *ends.entry(message).or_default() += 1;
    }
    // Scripts that all ended alike would try little.
    assert!(
        callbacks > 3_000 && ends.len() > 12,
        "{callbacks} callbacks, {ends:#?}"
    );
}

#[test]
#[ignore = "takes minutes: make test-long"]
fn three_thousand_scripted_policies_behave_alike_on_both_back_ends() {
    for seed in 120..3_120 {
        let _ = scripted::check(&scripted::random(seed)).expect("a run");
    }
}

/// Scripts and programs by which fuzzing found something, in the order of the finds.
#[test]
fn what_fuzzing_found_stays_mended() {
    // A program that loads the address of a hash's first value, which no hash has: refused on
    // both back ends, where the comparison took the refusal for a broken test.
    let (image, budget) = program::generate_from(include_bytes!("found/value_of_a_hash.bin"));
    let image = Arc::new(image);
    assert_eq!(both::compare(&image, budget), Ok(None));
    let refusal = both::run(&image, Backend::Interpreter, budget).expect_err("it is refused");
    assert!(
        refusal.to_string().contains("refers to nothing"),
        "{refusal}"
    );

    // A dispatch that inserts and moves nothing to where it is needed, a full 32 rounds long for
    // each turn of the scheduler: the moment ended after a million turns, which took minutes.
    let script = include_bytes!("found/host_that_takes_minutes.bin");
    let (_, _, summary) = scripted::check(script).expect("a run");
    let message = "the machine is busy with scheduling alone";
    assert_eq!(summary.exit.message, message, "{:?}", summary.exit);
    assert!(
        summary.instructions < 50_000_000,
        "{} instructions",
        summary.instructions
    );
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
        auto.2.instructions > 5_000 * bpf::PRICE,
        "{}",
        auto.2.instructions
    );
    assert_eq!(auto, simulate(&spec, Backend::Interpreter));
    assert_eq!(auto, simulate(&spec, Backend::Jit));
}

//! Runs that must come out the same whatever executes the policy.

use model::{Sink, Summary};
use sim::{Backend, Error, Options, Simulation};
use traces::TraceHash;
use workload::RunSpec;

/// What a run leaves: hash and number of its events, and the summary.
pub type Left = (u64, u64, Summary);

/// Makes the run on one back end, from the first instruction on.
///
/// # Errors
/// As [`sim::run`].
pub fn on(spec: &RunSpec, backend: Backend, budget: Option<u64>) -> Result<Left, Error> {
    let mut hash = TraceHash::new();
    let options = Options {
        backend,
        budget,
        ..Options::default()
    };
    let finished = Simulation::new(spec)
        .with_options(options)
        .with_sink(&mut hash)
        .start()?;
    Ok((hash.value(), hash.count(), finished.summary))
}

/// Makes the run as [`sim::run`] does, and again on each back end alone.
///
/// # Errors
/// As [`sim::run`].
///
/// # Panics
/// If the back ends differ in events, counts, exit or fault, or one of them refuses what another
/// takes.
pub fn on_both(spec: &RunSpec, sink: &mut dyn Sink) -> Result<Summary, Error> {
    let name = &spec.policy.name;
    let usual = sim::run(spec, sink);
    let interpreted = on(spec, Backend::Interpreter, None);
    let native = on(spec, Backend::Jit, None);
    match (&usual, interpreted, native) {
        (Ok(usual), Ok(interpreted), Ok(native)) => {
            assert_eq!(interpreted, native, "{name}: interpreted and native");
            assert_eq!(*usual, native.2, "{name}: as usual and native");
        }
        (Err(usual), Err(interpreted), Err(native)) => {
            let [usual, interpreted, native] =
                [usual, &interpreted, &native].map(|error| format!("{error:?}"));
            assert_eq!(interpreted, native, "{name}: interpreted and native");
            assert_eq!(usual, native, "{name}: as usual and native");
        }
        (_, interpreted, native) => {
            let [a, b] = [interpreted, native].map(Result::err);
            panic!("{name}: as usual {usual:?}, interpreted {a:?}, native {b:?}");
        }
    }
    usual
}

//! `runslice sim --audit`: the same run on both back ends, with all accounts checked.

use std::fmt::Write as _;

use anyhow::{Context as _, bail, ensure};
use model::Summary;
use sim::{Backend, Options};
use stats::Conservation;
use traces::{Tee, TraceHash};
use workload::RunSpec;

use crate::computer::COMPUTER;
use crate::exit::UnsupportedError;
use crate::left_out;
use crate::report::ejection_in;
use crate::runner::Runner;

/// What a run left, as far as two runs of one spec must agree.
#[derive(Debug, PartialEq, Eq)]
struct Trace {
    hash: u64,
    events: u64,
    summary: Summary,
}

/// Runs `spec` within `limits` once interpreted and once as native code, and says what came of it
/// in one line.
///
/// # Errors
/// When the run cannot be made, an account does not add up, or the two differ.
pub fn audit(spec: &RunSpec, limits: Options) -> anyhow::Result<String> {
    if !cfg!(feature = "jit") {
        return Err(UnsupportedError::new(left_out::words("native code", "jit")).into());
    }
    let name = &spec.policy.name;
    let with = |backend| Options { backend, ..limits };
    let interpreted = trace(spec, with(Backend::Interpreter))?;
    let native = match trace(spec, with(Backend::Jit)) {
        Ok(native) => native,
        Err(error) => return Err(error).with_context(|| format!("{name}, as native code")),
    };
    if interpreted != native {
        bail!(
            "{name}: the back ends differ: {} events with hash {:016x} interpreted, {} with \
             {:016x} as native code",
            interpreted.events,
            interpreted.hash,
            native.events,
            native.hash
        );
    }
    let mut line = format!(
        "{name}: {} events, hash {:016x} interpreted and native, every account adds up",
        native.events, native.hash
    );
    if let Some(ejection) = ejection_in(name, &native.summary) {
        write!(line, "; {ejection}").expect("to memory");
    }
    Ok(line)
}

fn trace(spec: &RunSpec, options: Options) -> anyhow::Result<Trace> {
    let (mut hash, mut accounts) = (TraceHash::new(), Conservation::new());
    let mut tee = Tee::new(vec![&mut hash, &mut accounts]);
    let summary = Runner::new(spec, &COMPUTER)
        .with_options(options)
        .with_sink(&mut tee)
        .start()?;
    let checked = accounts.check(&summary);
    ensure!(
        checked.is_ok(),
        "{}: an account does not add up: {}",
        spec.policy.name,
        checked.err().map_or_else(String::new, |it| it.to_string())
    );
    Ok(Trace {
        hash: hash.value(),
        events: hash.count(),
        summary,
    })
}

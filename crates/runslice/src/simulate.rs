//! Simulated runs, for every verb that makes some.

use model::{Nanos, Sampler, Sink, Summary};
use sim::Options;
use stats::{Later, Metrics};
use workload::RunSpec;

use crate::cancel::{self, Until};
use crate::exit::UsageError;
use crate::report::Outcome;
use crate::say::say;
use crate::scheduler;

/// Simulates a run of which only the figures are wanted.
///
/// # Errors
/// When a policy or the machine is bad.
pub fn measure(spec: &RunSpec) -> anyhow::Result<Outcome> {
    Ok(measure_within(spec, Options::default())?.0)
}

/// As [`measure`], within limits; also gives what else the metrics know.
///
/// # Errors
/// As [`measure`].
pub fn measure_within(spec: &RunSpec, options: Options) -> anyhow::Result<(Outcome, Metrics)> {
    let mut metrics = Metrics::new();
    let summary = run_with(spec, &mut metrics, options)?;
    Ok((outcome(spec, &metrics, summary), metrics))
}

/// Simulates a run of a policy, or of a scheduler's own program.
///
/// # Errors
/// When a policy, its program or the machine is bad.
pub fn run(spec: &RunSpec, sink: &mut dyn Sink) -> anyhow::Result<Summary> {
    run_with(spec, sink, Options::default())
}

/// As [`run`], computed as `options` say.
///
/// # Errors
/// As [`run`].
pub fn run_with(spec: &RunSpec, sink: &mut dyn Sink, options: Options) -> anyhow::Result<Summary> {
    let Some(flag) = cancel::flag() else {
        return run_whole(spec, sink, options);
    };
    cancel::check()?;
    let summary = run_whole(spec, &mut Until { sink, flag }, options);
    // What was cut short is no result.
    cancel::check()?;
    summary
}

fn run_whole(spec: &RunSpec, sink: &mut dyn Sink, options: Options) -> anyhow::Result<Summary> {
    if let Some(begin) = spec.workload.begin {
        return run_from_first(spec, &mut Later::new(begin.at, sink), options);
    }
    run_from_first(spec, sink, options)
}

fn run_from_first(
    spec: &RunSpec,
    sink: &mut dyn Sink,
    options: Options,
) -> anyhow::Result<Summary> {
    match &spec.policy.program {
        None => sim::run_with(spec, sink, options).map_err(explain),
        Some(program) => scheduler::run(program, spec, |user| {
            sim::run_program(spec, sink, options, user).map_err(explain)
        }),
    }
}

/// As [`run`], and shows `sampler` the counters every `every`.
///
/// # Errors
/// As [`run`].
pub fn run_sampled(
    spec: &RunSpec,
    sampler: &mut dyn Sampler,
    every: Nanos,
) -> anyhow::Result<Summary> {
    match &spec.policy.program {
        None => sim::run_sampled(spec, sampler, every).map_err(explain),
        Some(program) => scheduler::run(program, spec, |user| {
            sim::run_program_sampled(spec, sampler, every, user).map_err(explain)
        }),
    }
}

/// Says, before a run begins, that it ends at another time than the user may think.
pub fn say_end(spec: &RunSpec) {
    if let (_, Some(note)) = sim::latest_end(spec) {
        say("runslice", &note);
    }
}

/// The figures of a run that is over.
pub fn outcome(spec: &RunSpec, metrics: &Metrics, summary: Summary) -> Outcome {
    Outcome {
        policy: spec.policy.name.clone(),
        set: spec.policy.set.clone(),
        report: metrics.report(),
        summary,
        compared: None,
    }
}

/// A knob that does not exist is a mistake on the command line, not in a file.
pub fn explain(error: sim::Error) -> anyhow::Error {
    use sim::PolicyError::{Entry, Set, SetUp, When};
    match error {
        sim::Error::Policy {
            policy,
            source: source @ (Set(_) | When { .. } | Entry(_) | SetUp(_)),
        } => UsageError(format!(
            "policy `{policy}`: {}",
            with_advice(source.to_string())
        ))
        .into(),
        other => other.into(),
    }
}

/// The words for a number that is out of range end in the range; here they say to give one in it.
fn with_advice(mut words: String) -> String {
    let range = words
        .split_once(" is out of range for `")
        .and_then(|(before, rest)| Some(before.len() + rest.find("`: ")?));
    if let Some(at) = range {
        let colon = at + " is out of range for ``".len();
        words.replace_range(colon..colon + 1, "; give");
    }
    words
}

//! Simulated runs, for every verb that makes some.

use model::Summary;
use stats::Metrics;
use workload::RunSpec;

use crate::exit::UsageError;
use crate::report::Outcome;

/// Simulates a run of which only the figures are wanted.
///
/// # Errors
/// When a policy or the machine is bad.
pub fn measure(spec: &RunSpec) -> anyhow::Result<Outcome> {
    measure_within(spec, sim::Options::default())
}

/// As [`measure`], within limits.
///
/// # Errors
/// As [`measure`].
pub fn measure_within(spec: &RunSpec, options: sim::Options) -> anyhow::Result<Outcome> {
    let mut metrics = Metrics::new();
    let summary = sim::run_with(spec, &mut metrics, options).map_err(explain)?;
    Ok(outcome(spec, &metrics, summary))
}

/// The figures of a run that is over.
pub fn outcome(spec: &RunSpec, metrics: &Metrics, summary: Summary) -> Outcome {
    Outcome {
        policy: spec.policy.name.clone(),
        set: spec.policy.set.clone(),
        report: metrics.report(),
        summary,
    }
}

/// A knob that does not exist is a mistake on the command line, not in a file.
pub fn explain(error: sim::Error) -> anyhow::Error {
    use sim::PolicyError::{Entry, Set, SetUp};
    match error {
        sim::Error::Policy {
            policy,
            source: source @ (Set(_) | Entry(_) | SetUp(_)),
        } => UsageError(format!("policy `{policy}`: {source}")).into(),
        other => other.into(),
    }
}

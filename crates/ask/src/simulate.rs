//! What is to be said of a simulated run before it begins, and when it cannot be made.

use model::Advised;
use workload::RunSpec;

use crate::error::UsageError;
use crate::note::Topic;
use crate::services::Services;

/// Says, before a run begins, that it ends at another time than the user may think.
pub fn say_end(services: &Services<'_>, spec: &RunSpec) {
    if let (_, Some(note)) = sim::latest_end(spec) {
        services.note(Topic::Run, note);
    }
}

/// A knob that does not exist is a mistake on the command line, not in a file.
#[must_use]
pub fn explain(error: sim::Error) -> anyhow::Error {
    use sim::PolicyError::{Entry, Set, SetUp, When};
    match error {
        sim::Error::Policy {
            policy,
            source: source @ (Set(_) | When { .. } | Entry(_) | SetUp(_)),
        } => UsageError::new(Advised::of(&source).at(format!("policy `{policy}`"))).into(),
        other => other.into(),
    }
}

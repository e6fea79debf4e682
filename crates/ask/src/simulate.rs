//! What is to be said of a simulated run before it begins, and when it cannot be made.

use model::{Advice as _, Advised};
use workload::{RunSpec, Workload};

use crate::error::UsageError;
use crate::note::Topic;
use crate::services::Services;
use crate::workload_arg::is_shipped;

/// Says, before a run begins, that it ends at another time than the user may think, and which
/// spans of the user's load leave out the waits that a scheduler causes.
pub fn say_end(services: &Services<'_>, spec: &RunSpec) {
    if let (_, Some(note)) = sim::latest_end(spec) {
        services.note(Topic::Run, note);
    }
    say_late_spans(services, &spec.workload);
}

/// Names spans that begin when their task already has a CPU. The workloads that are built in
/// measure where the programs measured that they stand for.
pub fn say_late_spans(services: &Services<'_>, workload: &Workload) {
    /// Spans that are named one by one.
    const NAMED: usize = 3;
    if is_shipped(&workload.file) {
        return;
    }
    let late = workload.late_spans();
    for span in late.iter().take(NAMED) {
        services.note(Topic::Run, span.in_full());
    }
    if let more @ 1.. = late.len().saturating_sub(NAMED) {
        services.note(Topic::Run, format!("{more} more spans begin so"));
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

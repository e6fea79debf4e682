//! Whether a queue that was left alone is served again by itself: a policy that throttles tasks or
//! gathers them comes back, and to take a task out before would prove nothing.

use std::sync::Arc;

use explain::why::{Fault, Finding, Observer};
use model::Nanos;
use workload::RunSpec;

use super::begin_of;
use crate::runner::Runner;
use crate::services::Services;

/// A run goes on for as long as the task has waited, and at least so long.
const LEAST: Nanos = Nanos::from_secs(1);

/// Whether it is of a queue that the policy may have left alone for a while.
pub(super) fn may_end(finding: &Finding) -> bool {
    let pauses = matches!(finding.fault, Fault::Skipped | Fault::UnreadQueue);
    pauses && finding.message.is_none() && finding.queue.is_some()
}

/// Whether the wait of `finding` ends when nothing is done, and the run of `spec` goes on.
///
/// # Errors
/// When the run cannot be made, or nobody waits for the answer any more.
pub(super) fn ends(
    services: &Services<'_>,
    (spec, options): (&RunSpec, sim::Options),
    finding: &Finding,
) -> anyhow::Result<bool> {
    let Some(victim) = finding.victim.as_ref() else {
        return Ok(false);
    };
    let end = Nanos::new(finding.time.as_nanos()) + victim.waited.max(LEAST);
    let longer = for_longer(spec, end + begin_of(spec));
    let mut observer = Observer::new(0, None);
    Runner::new(&longer, services)
        .with_options(options)
        .with_sink(&mut observer)
        .start()?;
    let mut open = observer.open_waits().into_iter();
    let goes_on = open.any(|wait| wait.task == victim.task && Some(wait.since) == victim.since);
    Ok(!goes_on)
}

/// `spec` that ends at `end`, whatever else it says.
fn for_longer(spec: &RunSpec, end: Nanos) -> RunSpec {
    let mut longer = spec.clone();
    longer.duration = Some(end);
    if longer.workload.stop.after.is_some() {
        let mut workload = (*longer.workload).clone();
        workload.stop.after = Some(end);
        longer.workload = Arc::new(workload);
    }
    longer
}

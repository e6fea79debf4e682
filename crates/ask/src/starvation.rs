//! Whether tasks that a run left waiting for long starve by a fault of the policy: `explain` says
//! so of the same run.

use explain::why::{Observer, Right};
use model::Summary;
use workload::RunSpec;

use crate::right;
use crate::runner::Runner;
use crate::services::Services;

/// What the machine's note about such tasks begins with.
const STARVED: &str = "STARVED: ";

/// Makes the run of `spec`, which came to `summary`, once more with decisions if it left tasks
/// waiting for long, and takes them out of `summary` if nobody is at fault. A run is a function of
/// its spec, so that is the same run; that of a program is left as it is, because its own time
/// would be spent twice.
///
/// # Errors
/// When nobody waits for the answer any more.
pub fn judge(
    services: &Services<'_>,
    spec: &RunSpec,
    options: sim::Options,
    right: Option<Right>,
    summary: &mut Summary,
) -> anyhow::Result<()> {
    if summary.starved.is_empty() || spec.policy.program.is_some() {
        return Ok(());
    }
    let mut observer = right::observer(spec, right, Observer::new(0, None));
    let same = Runner::new(spec, services)
        .with_options(options)
        .with_sink(&mut observer)
        .start()?;
    observer.set_blocked(&same.blocked);
    let finding = observer.finding();
    if finding
        .as_ref()
        .is_some_and(explain::why::Finding::is_fault)
    {
        return Ok(());
    }
    summary.starved.clear();
    let why = finding.map_or("it was not their turn", |it| match it.tier() {
        Some(_) => "others had their share, which the policy promises to nobody",
        None => it.fault.sentence(),
    });
    for note in &mut summary.notes {
        if let Some(rest) = note.strip_prefix(STARVED) {
            *note = format!("no fault of the policy ({why}): {rest}");
        }
    }
    Ok(())
}

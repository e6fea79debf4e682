//! The same runs on the simulated machine.

use std::sync::Arc;

use anyhow::Context as _;
use model::{MachineSpec, Nanos, Profile, Sink, Summary};
use stats::Metrics;
use stats::compare::machines::MachineRun;
use workload::{RunSpec, Workload};

use super::asked::{Play, PlaysRequest};
use super::kept::Kept;
use crate::outcome::ejection;
use crate::policy;
use crate::runner::Runner;
use crate::services::Services;

/// A play that is simulated: of which request, which one, and what is kept of it.
pub type KeptPlay<'a> = (&'a PlaysRequest, &'a Play, &'a Kept);

/// The policy of a play, with its knobs as the kernel had them.
///
/// # Errors
/// When there is no such policy.
pub fn policy(
    services: &Services<'_>,
    (request, play, kept): KeptPlay<'_>,
) -> anyhow::Result<String> {
    policy::as_on_kernel(
        services,
        &request.asked.policies[play.policy],
        kept.machine.kernel,
    )
}

/// The run of a play: same policy, CPUs, tick, kernel, seed and length, and the workload as real
/// processes play it, which had slept before it.
///
/// # Errors
/// When there is no such policy, or the workload is wrong.
pub fn spec(
    services: &Services<'_>,
    of: KeptPlay<'_>,
    profile: &Profile,
) -> anyhow::Result<RunSpec> {
    let (request, play, kept) = of;
    let run = RunSpec {
        policy: policy::find(services, &policy(services, of)?)?,
        machine: MachineSpec {
            profile: profile.clone(),
            ..kept.machine.clone()
        },
        seed: play.seed,
        tie_seed: None,
        attach_after: Nanos::ZERO,
        duration: Some(Nanos::new(request.asked.duration_ns)),
        workload: Arc::new(request.workload(services, play)?),
    };
    Ok(run.as_played(Nanos::new(kept.run.before_ns)))
}

/// Simulates a play; in the place of figures the reason if the policy was ejected.
///
/// # Errors
/// The errors of [`spec`], and when the machine is bad.
pub fn run(
    services: &Services<'_>,
    of: KeptPlay<'_>,
    profile: &Profile,
) -> anyhow::Result<Result<MachineRun, String>> {
    let (request, play, kept) = of;
    let spec = spec(services, of, profile)?;
    let mut metrics = Metrics::of_every_turn();
    let summary = feed(services, (play, &spec), &mut metrics)?;
    if let Some(line) = ejection(&request.label(services, play), &summary.exit) {
        return Ok(Err(line));
    }
    Ok(Ok(MachineRun {
        load: request.asked.workloads[play.workload].clone(),
        policy: request.label(services, play),
        seed: play.seed,
        before_ns: kept.run.before_ns,
        ..compared(&metrics, &spec.workload)
    }))
}

/// What is compared of the simulated run of `load`: of its own tasks, not of threads that stand for
/// what a kernel does.
#[must_use]
pub fn compared(metrics: &Metrics, load: &Workload) -> MachineRun {
    let is_own = |name: &str| {
        let mut groups = load.groups.iter();
        groups.any(|group| !group.background && group.name == name)
    };
    MachineRun::new(&metrics.report(), &metrics.waits()).only(is_own)
}

/// Sends the events of a simulated play to `sink`, from its begin on.
///
/// # Errors
/// When the policy or the machine is bad.
pub fn feed(
    services: &Services<'_>,
    (play, spec): (&Play, &RunSpec),
    sink: &mut dyn Sink,
) -> anyhow::Result<Summary> {
    let run = Runner::new(spec, services).with_sink(sink).start();
    run.with_context(|| play.id.clone())
}

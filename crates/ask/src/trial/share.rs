//! Tries what may end an unfair share, which no single decision makes.

use explain::why::{Fault, Finding, Observer};
use model::{Nanos, SimTime};
use sim::{Deed, Intervention};
use workload::RunSpec;

use super::cure::Cure;
use super::{CURED, CureTrial, MAY_FAIL, MAY_HELP, PLACEBOS, Unproven, begin_of};
use crate::runner::Runner;
use crate::services::Services;

/// Tries it, unless a run with a change ends in an error of its own.
pub(super) fn attempt(
    services: &Services<'_>,
    run: (&RunSpec, sim::Options),
    finding: &Finding,
) -> anyhow::Result<(Vec<CureTrial>, Option<Unproven>)> {
    let tried = by_weight(services, run, finding);
    // Whoever does not wait for the answer wants no other one.
    services.check()?;
    Ok(tried.unwrap_or_else(|error| (Vec::new(), Some(Unproven::not_repeated(&error)))))
}

/// Tries it from the begin of the run on, in runs of half its length: 30 of these take 15 times
/// the run.
fn by_weight(
    services: &Services<'_>,
    (spec, options): (&RunSpec, sim::Options),
    finding: &Finding,
) -> anyhow::Result<(Vec<CureTrial>, Option<Unproven>)> {
    let half = RunSpec {
        duration: Some(Nanos::new(finding.time.as_nanos() / 2) + begin_of(spec)),
        ..spec.clone()
    };
    let is_unfair = |deeds: Vec<Deed>| {
        let at = SimTime::ZERO;
        let deeds = deeds.into_iter().map(|deed| Intervention { at, deed });
        let mut observer = Observer::new(0, None);
        Runner::new(&half, services)
            .with_options(options)
            .with_interventions(deeds.collect())
            .with_sink(&mut observer)
            .start()?;
        let finding = observer.finding();
        anyhow::Ok(finding.is_some_and(|it| it.fault != Fault::Outranked))
    };
    if !is_unfair(Vec::new())? {
        let why = Unproven::not_tried("half of the run does not show it, and all of it takes long");
        return Ok((Vec::new(), Some(why)));
    }
    let cure = Cure::ByWeight;
    let mut trial = CureTrial::new(cure, SimTime::ZERO, None);
    let victim = finding.victim.as_ref();
    let deeds = victim.map_or_else(Vec::new, |victim| cure.deeds(victim.task));
    let with_jitter = |seed: u32, deeds: &[Deed]| {
        let jitter = std::iter::once(Deed::Jitter(seed.into()));
        jitter.chain(deeds.iter().copied()).collect::<Vec<_>>()
    };
    while trial.tried < CURED && trial.tried - trial.helped <= MAY_FAIL {
        trial.tried += 1;
        trial.helped += u32::from(!is_unfair(with_jitter(trial.tried, &deeds))?);
    }
    let is_cured = trial.tried - trial.helped <= MAY_FAIL;
    while is_cured && trial.placebos < 2 * PLACEBOS && trial.placebos_helped <= MAY_HELP {
        trial.placebos += 1;
        let seed = CURED + trial.placebos;
        trial.placebos_helped += u32::from(!is_unfair(with_jitter(seed, &[]))?);
    }
    let unproven = if trial.placebos_helped > MAY_HELP {
        Some(Unproven::AnyDisturbance)
    } else {
        (!trial.proves()).then_some(Unproven::NoCure)
    };
    Ok((vec![trial], unproven))
}

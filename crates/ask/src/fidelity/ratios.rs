//! How far ratios of two policies on a kernel lie outside of the intervals that simulations give:
//! what widens the intervals of `choose`.

use std::collections::BTreeMap;

use model::{Profile, seeds};
use stats::Metrics;
use stats::compare::machines::MachineRun;
use stats::compare::{Measure, Settings, Values, effect, least_of};

use super::kept::Kept;
use super::{Fidelity, simulated};
use crate::choose::errors::{LoadClass, LoadError};
use crate::error::Error;
use crate::services::Services;

/// Simulated runs of each policy, as many as `choose` makes.
const RUNS: u64 = 10;
/// The fewest waits and turns of which a mean is compared. Percentiles are left out: plays of some
/// seconds have too few waits beyond a high one, and a median says nothing where it lies between
/// two modes.
const FEWEST: u64 = 20;
/// The fewest things of which a rate is compared.
const COUNTED: u64 = 10;

/// A run by figure. Each is named by its group and by what it is.
type Figures = BTreeMap<(String, String), f64>;

/// The figures of a group that `choose` compares, as far as there are enough values behind them.
fn figures(run: &MachineRun) -> Figures {
    let mut found = Figures::new();
    for group in &run.groups {
        let mut put = |name: &str, measure: Measure, value: f64| {
            let key = (group.name.clone(), name.to_owned());
            found.insert(key, value.max(least_of(measure)));
        };
        put("cpu", Measure::Millionths, group.share as f64);
        if let Some(mean) = group.waits.mean_of(FEWEST.into()) {
            put("mean delay", Measure::Nanos, mean);
        }
        if group.runs >= FEWEST {
            let run = group.share as f64 * run.elapsed_ns as f64 / 1e6;
            put("mean slice", Measure::Nanos, run / group.runs as f64);
        }
        for (name, count) in group.counters.iter().filter(|it| it.1 >= COUNTED) {
            let rate = *count as f64 * 1e9 / run.elapsed_ns.max(1) as f64;
            put(&format!("work {name}"), Measure::Rate, rate);
        }
    }
    found
}

impl Fidelity<'_> {
    /// The errors of ratios to the first policy, load by load, under the last of the profiles.
    ///
    /// # Errors
    /// As [`Fidelity::ask`].
    pub fn ratios(&self, services: &Services<'_>) -> Result<Vec<LoadError>, Error> {
        Ok(self.ratios_of(services)?)
    }

    fn ratios_of(&self, services: &Services<'_>) -> anyhow::Result<Vec<LoadError>> {
        let asked = &self.plays.asked;
        let profile = self.profiles.last().map(|it| it.1.clone());
        let profile = profile.unwrap_or(Profile::Ideal);
        let name_of_profile = profile.name().to_owned();
        let mut loads = Vec::new();
        for (workload, name) in asked.workloads.iter().enumerate() {
            let mut sides = Vec::new();
            for policy in 0..asked.policies.len() {
                sides.push(self.side(services, (workload, policy), &profile)?);
            }
            let Some((Some(base), others)) = sides.split_first() else {
                continue;
            };
            let outside = others
                .iter()
                .flatten()
                .map(|it| (it.policy.clone(), base.outside(it)));
            let outside: BTreeMap<String, f64> = outside.collect();
            if !outside.is_empty() {
                loads.push(LoadError {
                    load: name.clone(),
                    class: base.class,
                    kernel: asked.kernel.clone(),
                    cpus: asked.cpus,
                    profile: name_of_profile.clone(),
                    baseline: base.policy.clone(),
                    plays: u32::try_from(base.played.len()).unwrap_or(u32::MAX),
                    outside,
                });
            }
        }
        Ok(loads)
    }

    /// Plays and simulations of a workload under a policy; `None` without a play, or if the policy
    /// was ejected.
    fn side(
        &self,
        services: &Services<'_>,
        of: (usize, usize),
        profile: &Profile,
    ) -> anyhow::Result<Option<Side>> {
        let plays = self.plays.plays(services).into_iter();
        let plays = plays.filter(|it| (it.workload, it.policy) == of);
        let mut played = Vec::new();
        let mut first = None;
        for play in plays {
            if let Some(kept) = Kept::read(services, self.plays, &play)? {
                played.push(figures(&kept.run));
                first.get_or_insert((play, kept));
            }
        }
        let Some((play, kept)) = first else {
            return Ok(None);
        };
        let spec = simulated::spec(services, (self.plays, &play, &kept), profile)?;
        let specs: Vec<_> = (0..RUNS)
            .map(|run| workload::RunSpec {
                seed: seeds::of_run(spec.seed, run),
                ..spec.clone()
            })
            .collect();
        let jobs = services.jobs(self.jobs);
        let runs = services.map(&specs, jobs, "simulated runs", |spec| {
            let mut metrics = Metrics::of_every_turn();
            let summary = simulated::feed(services, (&play, spec), &mut metrics)?;
            let compared = simulated::compared(&metrics, &spec.workload);
            let is_sound = !summary.exit.kind.is_error();
            Ok(is_sound.then(|| (figures(&compared), LoadClass::of(&metrics.report()))))
        })?;
        let runs: Option<Vec<_>> = runs.into_iter().collect();
        Ok(runs.map(|runs| Side {
            policy: self.plays.label(services, &play),
            class: runs.first().map_or(LoadClass::Idle, |it| it.1),
            simulated: runs.into_iter().map(|it| it.0).collect(),
            played,
        }))
    }
}

/// A load under a policy.
struct Side {
    policy: String,
    class: LoadClass,
    /// By seed.
    played: Vec<Figures>,
    /// By seed.
    simulated: Vec<Figures>,
}

impl Side {
    /// How far the played ratio of `other` to this one lies outside of the simulated interval, as a
    /// logarithm, the largest over all figures that all runs have.
    fn outside(&self, other: &Self) -> f64 {
        let mut largest: f64 = 0.0;
        for figure in self.played[0].keys() {
            let log = |of: &[Figures]| -> Option<f64> {
                let logs: Option<Vec<f64>> = of
                    .iter()
                    .map(|it| it.get(figure).map(|it| it.ln()))
                    .collect();
                logs.map(|it| it.iter().sum::<f64>() / it.len() as f64)
            };
            let pairs = self.simulated.iter().zip(&other.simulated);
            let pairs: Option<Vec<(f64, f64)>> = pairs
                .map(|(a, b)| Some((*a.get(figure)?, *b.get(figure)?)))
                .collect();
            let (Some(ours), Some(theirs), Some(pairs)) =
                (log(&self.played), log(&other.played), pairs)
            else {
                continue;
            };
            let values = Values::Pairs(pairs);
            let found = effect(&values, Measure::Nanos, 1, &Settings::default());
            if let Ok(effect) = found.as_ref() {
                let played = theirs - ours;
                largest = largest.max(effect.low - played).max(played - effect.high);
            }
        }
        largest
    }
}

//! How far ratios of two policies on a kernel lie outside of the intervals that simulations give:
//! what widens the intervals of `choose`.

use std::collections::BTreeMap;

use model::{Profile, seeds};
use stats::Metrics;
use stats::compare::machines::{Group, MachineRun};
use stats::compare::{Measure, Settings, Values, effect, least_of};

use super::kept::Kept;
use super::{Fidelity, simulated};
use crate::choose::errors::{LoadClass, LoadError};
use crate::choose::kinds::FigureKind;
use crate::choose::runs::differing;
use crate::error::Error;
use crate::services::Services;

/// Simulated runs of each policy, as many as `choose` makes.
const RUNS: u64 = 10;
/// The fewest waits and turns of which a mean is compared. A median is not: it says nothing where
/// it lies between two modes.
const FEWEST: u64 = 100;
/// The high percentiles that are compared, in thousandths, with the fewest waits: 20 lie beyond.
const TAILS: [(u16, u128); 2] = [(900, 200), (990, 2000)];

/// Errors are kept in so many parts of 1.
const DIGITS: f64 = 1e4;

/// The figures of a run, by kind and name.
type Figures = BTreeMap<(FigureKind, String), f64>;

/// The figures of a run that `choose` compares, as far as there are enough values behind them.
fn figures(run: &MachineRun) -> Figures {
    let mut found = Figures::new();
    for group in &run.groups {
        let mut put = |kind: FigureKind, what: &str, measure: Measure, value: f64| {
            let name = format!("{what} of {}", group.name);
            found.insert((kind, name), value.max(least_of(measure)));
        };
        let share = group.share as f64;
        put(FigureKind::Cpu, "cpu", Measure::Millionths, share);
        if let Some(mean) = group.waits.mean_of(FEWEST.into()) {
            put(FigureKind::Wait, "mean delay", Measure::Nanos, mean);
        }
        for (permille, fewest) in TAILS {
            if let Some(value) = group.waits.permille_of(permille, fewest) {
                let what = format!("p{} delay", permille / 10);
                put(FigureKind::Tail, &what, Measure::Nanos, value);
            }
        }
        if let Some(mean) = mean_turn(group, run.elapsed_ns) {
            put(FigureKind::Slice, "mean slice", Measure::Nanos, mean);
        }
    }
    found
}

/// The mean of a group's turns, up to a factor that is the same in all runs of a machine.
fn mean_turn(group: &Group, elapsed_ns: u64) -> Option<f64> {
    let run = group.share as f64 * elapsed_ns as f64 / 1e6;
    (group.runs >= FEWEST).then(|| run / group.runs as f64)
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
            let outside: BTreeMap<String, BTreeMap<FigureKind, f64>> = outside.collect();
            if !outside.is_empty() {
                loads.push(LoadError {
                    load: name.clone(),
                    seed: asked.seed,
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

    /// Plays and simulations of a workload under a policy; `None` if one of the plays is not there,
    /// or if the policy was ejected.
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
            let Some(kept) = Kept::read(services, self.plays, &play)? else {
                return Ok(None);
            };
            played.push(figures(&kept.run));
            first.get_or_insert((play, kept));
        }
        let Some((play, kept)) = first else {
            return Ok(None);
        };
        let spec = simulated::spec(services, (self.plays, &play, &kept), profile)?;
        let specs = (0..RUNS).map(|run| workload::RunSpec {
            seed: seeds::of_run(spec.seed, run),
            ..spec.clone()
        });
        let specs = differing(specs.collect());
        let jobs = services.jobs(self.jobs);
        let runs = services.map(&specs, jobs, "simulated runs", |spec| {
            let mut metrics = Metrics::of_every_turn();
            let summary = simulated::feed(services, (&play, spec), &mut metrics)?;
            let compared = simulated::compared(&metrics, &spec.workload);
            let is_sound = summary.error().is_none();
            Ok(is_sound.then(|| (figures(&compared), LoadClass::of(&metrics.report()))))
        })?;
        let runs: Option<Vec<_>> = runs.into_iter().collect();
        Ok(runs.map(|runs| Side {
            policy: self.plays.label(services, &play),
            class: runs.first().map_or(LoadClass::Steady, |it| it.1),
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
    /// logarithm: by kind of figure, the largest over all figures that all runs have.
    fn outside(&self, other: &Self) -> BTreeMap<FigureKind, f64> {
        let mut largest = BTreeMap::new();
        for figure in self.played.iter().flat_map(|it| it.keys()) {
            if let Some(outside) = self.outside_at(figure, other) {
                let found: &mut f64 = largest.entry(figure.0).or_default();
                *found = found.max(outside);
            }
        }
        largest
    }

    /// The same of one figure; `None` if a run has not enough values.
    fn outside_at(&self, figure: &(FigureKind, String), other: &Self) -> Option<f64> {
        let log = |of: &[Figures]| -> Option<f64> {
            let logs: Option<Vec<f64>> = of
                .iter()
                .map(|it| it.get(figure).map(|it| it.ln()))
                .collect();
            logs.map(|it| it.iter().sum::<f64>() / it.len() as f64)
        };
        let played = log(&other.played)? - log(&self.played)?;
        let pairs = self.simulated.iter().zip(&other.simulated);
        let pairs: Option<Vec<(f64, f64)>> = pairs
            .map(|(a, b)| Some((*a.get(figure)?, *b.get(figure)?)))
            .collect();
        let found = effect(
            &Values::Pairs(pairs?),
            Measure::Nanos,
            1,
            &Settings::default(),
        );
        let effect = found.ok()?;
        let beyond = (effect.low - played).max(played - effect.high);
        // More digits than mean anything would change with the last bit of a logarithm.
        Some((beyond.max(0.0) * DIGITS).round() / DIGITS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs whose only figure is the mean delay of `a`, in milliseconds.
    fn runs(of: &[f64]) -> Vec<Figures> {
        let figure = (FigureKind::Wait, "mean delay of a".to_owned());
        let run = |ms: &f64| Figures::from([(figure.clone(), ms * 1e6)]);
        of.iter().map(run).collect()
    }

    fn side(policy: &str, played: &[f64], simulated: &[f64]) -> Side {
        Side {
            policy: policy.to_owned(),
            class: LoadClass::Steady,
            played: runs(played),
            simulated: runs(simulated),
        }
    }

    fn outside(base: &Side, other: &Side) -> f64 {
        base.outside(other)[&FigureKind::Wait]
    }

    #[test]
    fn a_played_ratio_is_outside_by_its_distance_from_the_simulated_interval() {
        let same = [1.0; 10];
        let base = side("base", &[1.0], &same);
        // Twice as long, simulated and played.
        assert!(outside(&base, &side("other", &[2.0], &[2.0; 10])).abs() < 1e-9);
        // Played it is four times as long, or as long as the other: a factor of two outside.
        for played in [4.0, 1.0] {
            let found = outside(&base, &side("other", &[played], &[2.0; 10]));
            assert!((found - 2.0_f64.ln()).abs() < 1e-4, "{found}");
        }
        // What the runs themselves leave open is not outside.
        let wide = [1.0, 4.0, 1.0, 4.0, 2.0, 2.0, 1.0, 4.0, 1.0, 4.0];
        let found = outside(&base, &side("other", &[2.4], &wide));
        assert!(found.abs() < 1e-9, "{found}");
    }

    #[test]
    fn a_figure_counts_if_each_play_and_each_run_has_it() {
        let base = side("base", &[1.0, 1.0], &[1.0; 10]);
        let mut other = side("other", &[2.0, 3.0], &[1.0; 10]);
        assert!(outside(&base, &other) > 0.8);
        other.simulated[7].clear();
        assert!(base.outside(&other).is_empty());
        let mut other = side("other", &[2.0, 3.0], &[1.0; 10]);
        other.played[1].clear();
        assert!(base.outside(&other).is_empty());
    }
}

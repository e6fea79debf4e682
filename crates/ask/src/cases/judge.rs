//! Whether a case shows: its bad versions show the signature, and its good ones are clean, under
//! the load and under loads that are like it.

use std::num::NonZeroUsize;
use std::path::Path;

use model::seeds;

use super::case::{CaseLoad, CaseRun, CaseStatus, PublicCase};
use super::see::CaseSeen;
use super::versions;
use crate::error::{Error, UsageError, in_full};
use crate::policy::FoundPolicy;
use crate::services::Services;

/// Of so many seeds of the load one is taken for each load that is like it.
const NEAR: u32 = 4;
/// Chance, at most, with which the runs of a bad version show a case that the good ones never do,
/// if both had the same bug.
const CHANCE: f64 = 0.05;

/// How cases are judged.
#[derive(Clone, Copy, Debug)]
pub struct CaseJudge<'a> {
    /// The folder with the versions.
    pub folder: &'a Path,
    /// Runs of each version, with as many seeds.
    pub seeds: u32,
    /// Threads; the number does not change the answer.
    pub jobs: Option<NonZeroUsize>,
}

/// What a case came to.
#[derive(Clone, Debug)]
pub struct CaseResult {
    /// The case.
    pub case: PublicCase,
    /// The answer.
    pub verdict: CaseVerdict,
    /// The runs of each version.
    pub versions: Vec<VersionRuns>,
}

impl CaseResult {
    /// Of a case of which nothing was run.
    #[must_use]
    pub const fn listed(case: PublicCase) -> Self {
        Self {
            case,
            verdict: CaseVerdict::Listed,
            versions: Vec::new(),
        }
    }

    /// Whether the case came out otherwise than its file says. Nobody has said anything of one that
    /// was never run.
    #[must_use]
    pub fn is_otherwise(&self) -> bool {
        let status = self.case.status;
        match self.verdict {
            CaseVerdict::Shown => !status.is_claim() && status != CaseStatus::NotRun,
            CaseVerdict::NotShown(_) => status.is_claim(),
            CaseVerdict::CannotRun(_) | CaseVerdict::Listed => false,
        }
    }
}

/// Whether a case shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CaseVerdict {
    /// It does.
    Shown,
    /// It does not, for these reasons.
    NotShown(Vec<String>),
    /// A version is missing or cannot be run, as these sentences say.
    CannotRun(Vec<String>),
    /// Nothing was run: the file has no run, or nobody asked for it.
    Listed,
}

/// The runs of a version.
#[derive(Clone, Debug)]
pub struct VersionRuns {
    /// The version.
    pub version: String,
    /// Whether it is a bad one.
    pub is_bad: bool,
    /// Runs of the load, in the order of their seeds.
    pub runs: Vec<CaseSeen>,
    /// Which of them show the signature.
    pub shown: Vec<bool>,
    /// Runs of the loads that are like it, with the load's number from 1.
    pub near: Vec<(usize, CaseSeen)>,
    /// Which of those show the signature.
    pub near_shown: Vec<bool>,
    /// The median of the good versions' numbers under the load.
    pub usual: Option<f64>,
}

impl VersionRuns {
    /// Runs of the load that show the signature.
    #[must_use]
    pub fn count(&self) -> usize {
        self.shown.iter().filter(|it| **it).count()
    }

    /// Runs that are clean, of all.
    #[must_use]
    pub fn clean(&self) -> (usize, usize) {
        let near = self.near.iter().map(|(_, seen)| seen);
        let all = self.runs.iter().chain(near);
        let shown = self.shown.iter().chain(&self.near_shown);
        let clean = all.zip(shown).filter(|it| is_clean(*it)).count();
        (clean, self.runs.len() + self.near.len())
    }

    /// The first run that shows the signature.
    #[must_use]
    pub fn first(&self) -> Option<&CaseSeen> {
        let mut all = self.runs.iter().zip(&self.shown);
        all.find(|(_, shown)| **shown).map(|(seen, _)| seen)
    }
}

fn is_clean((seen, shown): (&CaseSeen, &bool)) -> bool {
    !shown && seen.trouble().is_none()
}

/// A version that can be run.
struct Ready<'a> {
    version: &'a str,
    is_bad: bool,
    found: FoundPolicy,
}

impl CaseJudge<'_> {
    /// Makes the runs of `case` and judges them. A version that is not there is an answer.
    ///
    /// # Errors
    /// When the load is wrong, or nobody waits for the answer any more.
    pub fn judge(&self, services: &Services<'_>, case: &PublicCase) -> Result<CaseResult, Error> {
        Ok(self.judged(services, case)?)
    }

    fn judged(&self, services: &Services<'_>, case: &PublicCase) -> anyhow::Result<CaseResult> {
        let result = |verdict, versions| CaseResult {
            case: case.clone(),
            verdict,
            versions,
        };
        let Some(run) = &case.run else {
            return Ok(result(CaseVerdict::Listed, Vec::new()));
        };
        let ready = match self.ready(services, (case, run)) {
            Ok(ready) => ready,
            Err(missing) => return Ok(result(CaseVerdict::CannotRun(missing), Vec::new())),
        };
        // A wrong load is a mistake of the file, and not of a version.
        for load in std::iter::once(&run.load).chain(&run.near) {
            let any = &ready[0].found;
            load.spec(services, (&any.policy, any.machine.as_ref()), 1)?;
        }
        let mut versions = Vec::new();
        for version in &ready {
            match self.runs_of(services, run, version) {
                Ok(runs) => {
                    refuse_unknown(case, &runs)?;
                    versions.push(runs);
                }
                Err(error) => {
                    services.check()?;
                    let why = format!("{}: {}", version.version, in_full(&error));
                    return Ok(result(CaseVerdict::CannotRun(vec![why]), versions));
                }
            }
        }
        mark(run, &mut versions);
        Ok(result(verdict(run, &versions), versions))
    }

    /// All versions, or what is missing.
    fn ready<'c>(
        &self,
        services: &Services<'_>,
        (case, run): (&'c PublicCase, &CaseRun),
    ) -> Result<Vec<Ready<'c>>, Vec<String>> {
        let bad = case.bad.iter().map(|it| (it, true));
        let all = bad.chain(case.good.iter().map(|it| (it, false)));
        let (mut ready, mut missing) = (Vec::new(), Vec::new());
        for (version, is_bad) in all {
            match versions::open(services, (case, run), version, self.folder) {
                Ok(Some(found)) => ready.push(Ready {
                    version,
                    is_bad,
                    found,
                }),
                Ok(None) => missing.push(format!(
                    "{} has no {}-{version}",
                    self.folder.display(),
                    case.scheduler
                )),
                Err(error) => missing.push(format!("{version}: {}", in_full(&error))),
            }
        }
        if missing.is_empty() {
            Ok(ready)
        } else {
            Err(missing)
        }
    }

    /// Makes the runs of a version: a bad one need not show the bug under a load that is like it.
    fn runs_of(
        &self,
        services: &Services<'_>,
        run: &CaseRun,
        version: &Ready<'_>,
    ) -> anyhow::Result<VersionRuns> {
        let seeds = |count: u32| (0..count).map(|at| seeds::of_run(1, at.into()));
        let near = if version.is_bad { &[][..] } else { &run.near };
        let mut plan: Vec<(usize, &CaseLoad, u64)> =
            seeds(self.seeds).map(|seed| (0, &run.load, seed)).collect();
        for (at, load) in near.iter().enumerate() {
            let seeds = seeds(self.seeds.div_ceil(NEAR));
            plan.extend(seeds.map(|seed| (at + 1, load, seed)));
        }
        let jobs = services.jobs(self.jobs);
        let found = &version.found;
        let seen = services.map(&plan, jobs, version.version, |(_, load, seed)| {
            let spec = load.spec(services, (&found.policy, found.machine.as_ref()), *seed)?;
            CaseSeen::of(services, &spec, run.shows.goal())
        })?;
        let mut all = plan.iter().map(|(at, ..)| *at).zip(seen);
        let runs = all.by_ref().take(self.seeds as usize);
        Ok(VersionRuns {
            version: version.version.to_owned(),
            is_bad: version.is_bad,
            runs: runs.map(|(_, seen)| seen).collect(),
            shown: Vec::new(),
            near: all.collect(),
            near_shown: Vec::new(),
            usual: None,
        })
    }
}

/// Refuses a number that a load does not have: no run could show it.
fn refuse_unknown(case: &PublicCase, version: &VersionRuns) -> anyhow::Result<()> {
    let near = version.near.iter().map(|(_, seen)| seen);
    let mut all = version.runs.iter().chain(near);
    match all.find_map(|seen| seen.unknown.clone()) {
        Some(unknown) => Err(UsageError::new(unknown.at(&case.name)).into()),
        None => Ok(()),
    }
}

/// Notes which runs show the signature. A number under a load that is like the case's is held
/// against the median under that load.
fn mark(run: &CaseRun, versions: &mut [VersionRuns]) {
    let medians: Vec<Option<f64>> = (0..=run.near.len())
        .map(|load| {
            let good = versions.iter().filter(|it| !it.is_bad);
            let values = good.flat_map(|it| {
                let near = it.near.iter().map(|(at, seen)| (*at, seen));
                let all = it.runs.iter().map(|seen| (0, seen)).chain(near);
                all.filter(move |(at, _)| *at == load)
                    .filter_map(|(_, seen)| seen.value)
            });
            median(values.collect())
        })
        .collect();
    for version in versions {
        version.usual = medians[0];
        let shows = |load: usize, seen: &CaseSeen| run.shows.is_in(seen, medians[load]);
        version.shown = version.runs.iter().map(|seen| shows(0, seen)).collect();
        let near = version.near.iter();
        version.near_shown = near.map(|(load, seen)| shows(*load, seen)).collect();
    }
}

/// The lower of the two middle values of an even number.
fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len().checked_sub(1)? / 2;
    values.get(middle).copied()
}

fn verdict(run: &CaseRun, versions: &[VersionRuns]) -> CaseVerdict {
    let good = versions.iter().filter(|it| !it.is_bad);
    let clean = good.clone().map(|it| it.runs.len()).sum();
    let mut reasons = Vec::new();
    for bad in versions.iter().filter(|it| it.is_bad) {
        let (count, all) = (bad.count(), bad.runs.len());
        if !is_beyond_chance(count, all, clean) {
            reasons.push(format!("{} shows it in {count} of {all} runs", bad.version));
        }
    }
    reasons.extend(good.filter_map(|it| dirty(run, it)));
    if reasons.is_empty() {
        CaseVerdict::Shown
    } else {
        CaseVerdict::NotShown(reasons)
    }
}

/// Why a good version is not clean, if it is not.
fn dirty(run: &CaseRun, version: &VersionRuns) -> Option<String> {
    let runs = version.runs.iter().map(|seen| (0, seen));
    let near = version.near.iter().map(|(at, seen)| (*at, seen));
    let shown = version.shown.iter().chain(&version.near_shown);
    let mut dirty = runs
        .chain(near)
        .zip(shown)
        .filter(|((_, seen), shown)| !is_clean((seen, shown)));
    let ((at, seen), _) = dirty.next()?;
    let load = match at {
        0 => &run.load,
        near => &run.near[near - 1],
    };
    let what = seen.trouble();
    let what = what.unwrap_or_else(|| "it shows the signature, too".to_owned());
    let (clean, all) = version.clean();
    Some(format!(
        "{} is clean in {clean} of {all} runs only; with {} and seed {}: {what}",
        version.version, load.written.file, seen.seed
    ))
}

/// Whether `count` of `runs` bad runs and none of `clean` good ones are more than chance: Fisher's
/// exact test, one-sided, the probability that all `count` fall among the bad ones.
///
/// Source: Fisher (1934), "Statistical Methods for Research Workers", 5th edition, section 21.02.
fn is_beyond_chance(count: usize, runs: usize, clean: usize) -> bool {
    let part = |at: usize| (runs - at) as f64 / (runs + clean - at) as f64;
    let chance: f64 = (0..count).map(part).product();
    count > 0 && chance <= CHANCE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_of_twenty_runs_are_no_chance_and_four_may_be() {
        assert!(is_beyond_chance(5, 20, 20));
        assert!(!is_beyond_chance(4, 20, 20));
        assert!(is_beyond_chance(3, 3, 3));
        assert!(!is_beyond_chance(2, 2, 2));
        assert!(!is_beyond_chance(0, 20, 20));
    }

    #[test]
    fn a_median_is_one_of_the_values() {
        assert_eq!(median(vec![]), None);
        assert_eq!(median(vec![3.0, 1.0]), Some(1.0));
        assert_eq!(median(vec![3.0, 1.0, 2.0]), Some(2.0));
    }
}

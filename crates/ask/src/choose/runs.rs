//! The runs of all candidates, and the figures that are taken of them.

use std::num::NonZeroUsize;

use anyhow::bail;
use model::{Advised, MachineSpec, Nanos, Summary};
use stats::compare::series::BLOCKS_MIN;
use stats::compare::{
    Better, Choice, Extent, Measure, MeasuredNumber, MetricRow, Question, Role, Set, Settings,
    compare, least_of, runs_to_decide,
};
use stats::{LastWork, Metrics, Report};
use workload::{RunSpec, Workload};

use super::errors::LoadClass;
use super::reruns::{self, Plan, Reruns};
use super::{Candidate, Choose};
use crate::error::UsageError;
use crate::goal::{Goal, Spans, Stat, Whose, family};
use crate::outcome::{Outcome, Results};
use crate::runner::Runner;
use crate::runs::say_end;
use crate::runs::{Asked, StartJitter, number_namesakes, refuse_recordings_of_runs, seeded};
use crate::score_file::Identity;
use crate::services::Services;
use crate::stated::stated;

/// Runs of each candidate, where they suffice to decide.
const RUNS: u32 = 10;

/// All candidates under one load, and how they did.
#[derive(Debug)]
pub struct Field {
    /// The load's name.
    pub load: String,
    /// The machine of the baseline.
    pub machine: MachineSpec,
    /// What kind of load it is, by the baseline's first run.
    pub class: LoadClass,
    /// The candidates, the baseline first.
    pub candidates: Vec<Candidate>,
    /// What is to become better.
    pub goals: Vec<Goal>,
    /// Whether the user stated the goals.
    pub is_asked: bool,
    /// Runs of each candidate.
    pub runs: usize,
    /// Seed of the first run; those of the others follow from it.
    pub seed: u64,
    /// Which recording it is, if the load is one.
    pub identity: Option<Identity>,
    /// By how much later than the load says the tasks of a run began.
    pub start_jitter: Nanos,
    /// By candidate, what the goals came to.
    pub sets: Vec<Set>,
    /// By candidate, what else may have become worse.
    pub rest: Vec<Set>,
    /// By candidate, why it cannot be chosen.
    pub failures: Vec<Option<String>>,
    /// By which factor the recording's own score says that each part of it is off.
    pub scored: Vec<(String, f64)>,
    /// What the runs are.
    pub material: Material,
}

/// What the runs of a candidate are.
#[derive(Debug)]
pub enum Material {
    /// Runs that differ in their seeds and have nothing else to do with each other.
    Runs,
    /// Reruns of one recording.
    Reruns(Reruns, Plan),
}

/// Which figures are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// The goals.
    Goals,
    /// What else may have become worse.
    Rest,
}

/// What is kept of a run.
struct Run {
    goals: Vec<MeasuredNumber>,
    rest: Vec<MeasuredNumber>,
    failure: Option<String>,
}

impl Field {
    /// What candidate `at` is called.
    #[must_use]
    pub fn name(&self, at: usize) -> &str {
        &self.sets[at].arm
    }

    /// Makes all runs.
    ///
    /// # Errors
    /// When a candidate, the load or a goal is wrong.
    pub fn run(
        request: &Choose,
        services: &Services<'_>,
        settings: &Settings,
    ) -> anyhow::Result<Self> {
        if let Some(recording) = request.recording(services) {
            return reruns::run(request, services, recording, settings);
        }
        let candidates = request.candidates.clone();
        let jitter = StartJitter::asked(request.start_jitter);
        let first = specs(request, services, None, jitter)?;
        let jobs = services.jobs(request.jobs);
        say_end(services, &first[0]);
        let (results, report) = try_out(services, &first, jobs)?;
        let goals = goals(request, &report, &results)?;
        let comparisons = goals.len() * (candidates.len() - 1);
        let runs = request.runs.unwrap_or(runs_for(comparisons, settings));
        let specs = by_run(&first, runs);
        let rest = others(&goals, &report, &results, (specs.len(), settings));
        let all: Vec<&RunSpec> = specs.iter().flatten().collect();
        let made = services.map(&all, jobs, "runs", |spec| {
            let mut work = LastWork::default();
            let (outcome, metrics) = Runner::new(spec, services).with_sink(&mut work).measure()?;
            let take = |goals: &[Goal], role| {
                let mut all = of_run(goals, role, &metrics, &outcome.report);
                all.extend(goals.iter().filter_map(|goal| {
                    Some(MeasuredNumber {
                        name: goal.to_string(),
                        measure: goal.measure(),
                        better: goal.better(),
                        role,
                        value: goal.end(&work, &spec.workload.groups)?,
                    })
                }));
                all
            };
            Ok(Run {
                goals: take(&goals, Role::Goal),
                rest: take(&rest, Role::Goal),
                failure: failure(&outcome),
            })
        })?;
        let names = specs[0].iter().map(|it| it.policy.name.clone());
        let mut field = Self {
            load: results.workload,
            machine: results.machine,
            class: LoadClass::of(&report),
            goals,
            is_asked: !request.goals.is_empty(),
            runs: specs.len(),
            seed: specs[0][0].seed,
            identity: None,
            start_jitter: specs[0][0].workload.start_jitter,
            sets: names.map(|it| Set::new(&it, "", "simulated")).collect(),
            rest: Vec::new(),
            failures: vec![None; candidates.len()],
            candidates,
            scored: Vec::new(),
            material: Material::Runs,
        };
        field.rest.clone_from(&field.sets);
        field.gather(made);
        field.check_values()?;
        Ok(field)
    }

    /// The sets of these figures, by candidate.
    #[must_use]
    pub fn sets_of(&self, which: Which) -> &[Set] {
        match which {
            Which::Goals => &self.sets,
            Which::Rest => &self.rest,
        }
    }

    pub(super) fn sets_mut(&mut self, which: Which) -> &mut [Set] {
        match which {
            Which::Goals => &mut self.sets,
            Which::Rest => &mut self.rest,
        }
    }

    /// How a recording was rerun, if the load is one.
    #[must_use]
    pub const fn plan(&self) -> Option<&Plan> {
        match &self.material {
            Material::Runs => None,
            Material::Reruns(_, plan) => Some(plan),
        }
    }

    /// How much longer a recording must be for candidate `at` to have enough blocks at a goal.
    #[must_use]
    pub fn lacks(&self, at: usize, goal: usize) -> Option<Nanos> {
        let Material::Reruns(reruns, plan) = &self.material else {
            return None;
        };
        let blocks = reruns.few_blocks(at, goal)?.max(1);
        let counts = plan.length.get().saturating_sub(plan.warm_up.get()) as f64;
        let factor = BLOCKS_MIN as f64 / blocks as f64 - 1.0;
        Some(Nanos::new((counts * factor.max(0.0)) as u64))
    }

    /// What candidate `at` came to at a goal over all its runs.
    #[must_use]
    pub fn value(&self, at: usize, goal: usize) -> Option<f64> {
        if let Material::Reruns(reruns, _) = &self.material {
            return reruns.value(at, goal);
        }
        let series = self.sets[at].find(&self.goals[goal].to_string())?;
        Some(series.values.iter().sum::<f64>() / series.values.len() as f64)
    }

    /// Holds candidates against candidate `base`, goal by goal.
    #[must_use]
    pub fn compared(
        &self,
        which: Which,
        (base, others): (usize, &[usize]),
        settings: &Settings,
    ) -> Vec<MetricRow> {
        if let Material::Reruns(reruns, _) = &self.material {
            return reruns.rows((self, which), (base, others), settings);
        }
        let sets = self.sets_of(which);
        let theirs: Vec<Set> = others.iter().map(|at| raised(&sets[*at])).collect();
        let ours = raised(&sets[base]);
        let question = Question {
            base: &ours,
            others: &theirs,
            again: None,
            only: None,
        };
        let mut rows = compare(&[question], Choice::Stated, settings);
        for row in &mut rows {
            let find = |arm: &str| {
                let set = sets.iter().find(|it| it.arm == *arm)?;
                Some(&set.find(&row.metric)?.values)
            };
            let [ours, theirs] = [find(&row.base), find(&row.arm)];
            let mean = |it: &Vec<f64>| it.iter().sum::<f64>() / it.len() as f64;
            row.base_extent = ours.and_then(|it| Extent::of(it));
            row.arm_extent = theirs.and_then(|it| Extent::of(it));
            if let (Ok(judged), Some(ours), Some(theirs)) = (&mut row.result, ours, theirs) {
                (judged.effect.base, judged.effect.other) = (mean(ours), mean(theirs));
                // The runs that were made are those that decide so many comparisons.
                let made = judged.effect.values[0].min(judged.effect.values[1]);
                judged.runs_needed = judged.runs_needed.filter(|it| *it > made);
            }
        }
        rows
    }

    /// Sorts runs, which come by run and then by candidate, into sets.
    fn gather(&mut self, made: Vec<Run>) {
        let count = self.candidates.len();
        let mut failed = vec![Vec::new(); count];
        for (at, run) in made.into_iter().enumerate() {
            let (pair, at) = (at / count, at % count);
            if let Some(why) = run.failure {
                failed[at].push(why);
                self.sets[at].void += 1;
                continue;
            }
            let pair = Some(pair as u64);
            self.sets[at].add(run.goals, pair);
            self.rest[at].add(run.rest, pair);
        }
        for (to, failed) in self.failures.iter_mut().zip(failed) {
            *to = why_failed(failed, self.runs);
        }
    }

    /// Refuses a goal of which no run of the baseline has a value.
    pub(super) fn check_values(&self) -> anyhow::Result<()> {
        let goals = self.goals.iter().map(ToString::to_string);
        let mut without = goals.filter(|goal| self.sets[0].find(goal).is_none());
        match without.next().filter(|_| self.failures[0].is_none()) {
            Some(goal) => bail!(
                "`{goal}`: under {} nothing of the kind happened",
                self.name(0)
            ),
            None => Ok(()),
        }
    }
}

/// Why a candidate cannot be chosen whose runs failed for these reasons.
pub(super) fn why_failed(failed: Vec<String>, runs: usize) -> Option<String> {
    let times = failed.len();
    let why = failed.into_iter().next()?;
    Some(if times == runs {
        format!("in each run {why}")
    } else {
        format!("in {times} of {runs} runs {why}")
    })
}

/// A set whose values are at least as large as what means something, so that each change is a
/// ratio.
fn raised(set: &Set) -> Set {
    let mut set = set.clone();
    let goals = set.series.iter_mut().filter(|it| it.role == Role::Goal);
    for series in goals {
        let least = least_of(series.measure);
        series.values.iter_mut().for_each(|it| *it = it.max(least));
    }
    set
}

/// As many runs as it takes to decide so many comparisons.
fn runs_for(comparisons: usize, settings: &Settings) -> u32 {
    let needed = runs_to_decide(comparisons, true, settings.level());
    u32::try_from(needed).unwrap_or(RUNS).max(RUNS)
}

/// One run of each candidate.
pub(super) fn specs(
    request: &Choose,
    services: &Services<'_>,
    given: Option<Workload>,
    start_jitter: StartJitter,
) -> anyhow::Result<Vec<RunSpec>> {
    let (name, given) = match given {
        Some(part) => (None, Some(part)),
        None => request.load.given(services, &request.scale)?,
    };
    let asked = Asked {
        workload: name,
        scale: &request.scale,
        machine: &request.machine,
        seed: request.seed,
        duration: request.duration,
        start_jitter,
    };
    let found = request
        .candidates
        .iter()
        .map(|it| it.found.clone())
        .collect();
    let mut specs = asked.specs(services, found, given)?;
    number_namesakes(&mut specs);
    refuse_recordings_of_runs(&specs)?;
    let machine = &specs[0].machine;
    if specs.iter().any(|spec| spec.machine != *machine) {
        let message = Advised::new(
            "a candidate is a bundle for another machine",
            "give one machine to all with --cpus and the other options of the machine",
        );
        return Err(UsageError::new(message).into());
    }
    Ok(specs)
}

/// The first run of each candidate, which finds what is wrong with one before all runs are made,
/// and what there is to ask for: the report of the baseline.
fn try_out(
    services: &Services<'_>,
    first: &[RunSpec],
    jobs: NonZeroUsize,
) -> anyhow::Result<(Results, Report)> {
    let tried = services.map(first, jobs, "candidates", |spec| {
        Ok(Runner::new(spec, services).measure()?.0)
    })?;
    let report = tried[0].report.clone();
    Ok((Results::simulated(&first[0], tried), report))
}

/// So many runs of each candidate, with the same seeds.
fn by_run(first: &[RunSpec], runs: u32) -> Vec<Vec<RunSpec>> {
    let of_all: Vec<Vec<RunSpec>> = first.iter().map(|it| seeded(it, runs)).collect();
    let run = |at: usize| of_all.iter().map(|it| it[at].clone()).collect();
    (0..runs as usize).map(run).collect()
}

/// The goals of the user, or those of the load.
pub(super) fn goals(
    request: &Choose,
    report: &Report,
    results: &Results,
) -> anyhow::Result<Vec<Goal>> {
    let mut goals: Vec<Goal> = Vec::new();
    for goal in &request.goals {
        goal.check(report).map_err(UsageError::new)?;
        if !goals.contains(goal) {
            goals.push(goal.clone());
        }
    }
    if goals.is_empty() {
        let stated = stated(results);
        let stated = stated.iter().filter_map(|it| Goal::of_metric(it, report));
        goals.extend(stated);
    }
    if goals.is_empty() {
        bail!(Advised::new(
            "this load states no goal",
            "state one with --goal"
        ));
    }
    Ok(goals)
}

/// What else may become worse: the load's own goals, its work, and the waits of its groups, those
/// with most CPU time first. As many as so many runs can decide.
pub(super) fn others(
    goals: &[Goal],
    report: &Report,
    results: &Results,
    (runs, settings): (usize, &Settings),
) -> Vec<Goal> {
    /// More than this nobody reads.
    const MOST: usize = 100;
    let of = |name: &str| Whose::Groups(name.to_owned());
    let stated = stated(results);
    let stated = stated.iter().filter_map(|it| Goal::of_metric(it, report));
    let work = report.counters.iter().map(|it| Goal::Work {
        counter: Some(it.name.clone()),
        whose: of(&it.group),
    });
    let mut groups: Vec<_> = report.groups.iter().collect();
    groups.sort_by_key(|it| std::cmp::Reverse(it.times.run));
    let waits = groups.into_iter().map(|it| {
        let whose = of(family(&it.name));
        Goal::time(Stat::Permille(990), Spans::Delay, whose)
    });
    let mut all: Vec<Goal> = Vec::new();
    for goal in stated.chain(work).chain(waits) {
        let can_decide = runs_to_decide(all.len() + 1, true, settings.level()) <= runs;
        if all.len() >= MOST || !can_decide {
            break;
        }
        if !goals.contains(&goal) && !all.contains(&goal) {
            all.push(goal);
        }
    }
    all
}

/// The values of a run that is over, and a number that differs wherever anything does.
fn of_run(goals: &[Goal], role: Role, metrics: &Metrics, report: &Report) -> Vec<MeasuredNumber> {
    let switches = MeasuredNumber {
        name: "machine.switches".to_owned(),
        measure: Measure::Count,
        better: Better::Neither,
        role: Role::Other,
        value: report.machine.switches as f64,
    };
    let values = goals
        .iter()
        .filter_map(|it| it.measured(role, metrics, report));
    let grown = goals.iter().filter_map(|it| it.growth(report));
    values.chain(grown).chain([switches]).collect()
}

/// Why the candidate cannot be chosen after such a run.
pub(super) fn failure(outcome: &Outcome) -> Option<String> {
    let Summary { starved, .. } = &outcome.summary;
    if let Some(ejection) = outcome.ejection() {
        let words = ejection.strip_prefix(&outcome.policy).unwrap_or(&ejection);
        return Some(format!("it{words}"));
    }
    let longest = starved.iter().max_by_key(|it| it.waited)?;
    Some(format!(
        "it starved {} for {} to the end",
        longest.name, longest.waited
    ))
}

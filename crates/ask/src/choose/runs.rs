//! The runs of all candidates, and the figures that are taken of them.

use std::num::NonZeroUsize;

use anyhow::bail;
use model::{Advised, MachineSpec, Nanos, Summary};
use stats::compare::{Better, Measure, MeasuredNumber, Role, Set, Settings, runs_to_decide};
use stats::{Metrics, Report};
use workload::{RunSpec, Workload};

use super::{Candidate, Choose};
use crate::error::UsageError;
use crate::goal::{Goal, Spans, Stat, Whose, family};
use crate::outcome::{Outcome, Results};
use crate::recording;
use crate::runner::Runner;
use crate::runs::say_end;
use crate::runs::{Asked, StartJitter, number_namesakes, refuse_recordings_of_runs, seeded};
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
    /// The candidates, the baseline first.
    pub candidates: Vec<Candidate>,
    /// What is to become better.
    pub goals: Vec<Goal>,
    /// Whether the user stated the goals.
    pub is_asked: bool,
    /// Runs of each candidate.
    pub runs: usize,
    /// Whether the runs are parts of a trace.
    pub is_parts: bool,
    /// By how much later than the load says the tasks of a run began.
    pub start_jitter: Nanos,
    /// By candidate, what the goals came to.
    pub sets: Vec<Set>,
    /// By candidate, what else may have become worse.
    pub rest: Vec<Set>,
    /// By candidate, why it cannot be chosen.
    pub failures: Vec<Option<String>>,
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

    /// Makes all runs, under `load` if it is given.
    ///
    /// # Errors
    /// When a candidate, the load or a goal is wrong.
    pub fn run(
        request: &Choose,
        services: &Services<'_>,
        settings: &Settings,
    ) -> anyhow::Result<Self> {
        let candidates = request.candidates.clone();
        let (first, is_parts) = first_runs(request, services)?;
        let jobs = services.jobs(request.jobs);
        say_end(services, &first[0][0]);
        let (results, report) = try_out(services, &first, jobs)?;
        let goals = goals(request, &report, &results)?;
        let specs = if is_parts {
            first
        } else {
            let comparisons = goals.len() * (candidates.len() - 1);
            by_run(
                &first[0],
                request.runs.unwrap_or(runs_for(comparisons, settings)),
            )
        };
        let rest = others(&goals, &report, &results, (specs.len(), settings));
        let all: Vec<&RunSpec> = specs.iter().flatten().collect();
        let made = services.map(&all, jobs, "runs", |spec| {
            let (outcome, metrics) = measured(spec, services)?;
            let take = |goals: &[Goal], role| of_run(goals, role, &metrics, &outcome.report);
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
            goals,
            is_asked: !request.goals.is_empty(),
            runs: specs.len(),
            is_parts,
            start_jitter: specs[0][0].workload.start_jitter,
            sets: names.map(|it| Set::new(&it, "", "simulated")).collect(),
            rest: Vec::new(),
            failures: vec![None; candidates.len()],
            candidates,
        };
        field.rest.clone_from(&field.sets);
        field.gather(made);
        field.check_values()?;
        Ok(field)
    }

    /// Sorts runs, which come by run and then by candidate, into sets.
    fn gather(&mut self, made: Vec<Run>) {
        let count = self.candidates.len();
        let mut failed = vec![(0_usize, None); count];
        for (at, run) in made.into_iter().enumerate() {
            let (pair, at) = (at / count, at % count);
            if let Some(why) = run.failure {
                failed[at].0 += 1;
                failed[at].1.get_or_insert(why);
                self.sets[at].void += 1;
                continue;
            }
            let pair = Some(pair as u64);
            self.sets[at].add(run.goals, pair);
            self.rest[at].add(run.rest, pair);
        }
        for (to, (times, why)) in self.failures.iter_mut().zip(failed) {
            *to = why.map(|why| match times {
                times if times == self.runs => format!("in each run {why}"),
                times => format!("in {times} of {} runs {why}", self.runs),
            });
        }
    }

    /// Refuses a goal of which no run of the baseline has a value.
    fn check_values(&self) -> anyhow::Result<()> {
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

fn measured(spec: &RunSpec, services: &Services<'_>) -> anyhow::Result<(Outcome, Metrics)> {
    Runner::new(spec, services).measure()
}

/// As many runs as it takes to decide so many comparisons.
fn runs_for(comparisons: usize, settings: &Settings) -> u32 {
    let needed = runs_to_decide(comparisons, true, settings.level());
    u32::try_from(needed).unwrap_or(RUNS).max(RUNS)
}

/// The first run of each candidate; of a trace all runs, part by part, and that they are parts. A
/// rerun of a trace draws nothing, so that its seeds differ in nothing; noise added to the recorded
/// times would be invented.
fn first_runs(
    request: &Choose,
    services: &Services<'_>,
) -> anyhow::Result<(Vec<Vec<RunSpec>>, bool)> {
    let candidates = &request.candidates;
    let trace = request.trace(services);
    let parts = match trace {
        None => None,
        Some((path, wanted)) => {
            // A trace states the time until it is done, and else two waits.
            let goals = if request.goals.is_empty() {
                2
            } else {
                request.goals.len()
            };
            let runs = runs_for(goals * (candidates.len() - 1), &Settings::default());
            let count = request.runs.unwrap_or(runs);
            let parts = recording::parts(services, path, wanted, count)?;
            if parts.is_some() && request.seed.is_some() {
                let message = "the runs of a trace are its parts, which have no --seed";
                return Err(UsageError::new(message).into());
            }
            if parts.as_ref().is_some_and(Vec::is_empty) {
                bail!("{}: no task runs in it", path.display());
            }
            parts
        }
    };
    let jitter = match (request.start_jitter, &parts) {
        // Nothing else in its runs would differ.
        (None, None) if trace.is_some() => StartJitter::Tick,
        (asked, _) => StartJitter::asked(asked),
    };
    let Some(parts) = parts else {
        return Ok((vec![specs(request, services, None, jitter)?], false));
    };
    let all = parts
        .into_iter()
        .map(|part| specs(request, services, Some(part), jitter));
    Ok((all.collect::<anyhow::Result<_>>()?, true))
}

/// One run of each candidate.
fn specs(
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
/// and what there is to ask for: the report of the baseline, of a trace with the groups of all
/// parts.
fn try_out(
    services: &Services<'_>,
    first: &[Vec<RunSpec>],
    jobs: NonZeroUsize,
) -> anyhow::Result<(Results, Report)> {
    let parts = first[1..].iter().map(|part| &part[0]);
    let all: Vec<&RunSpec> = first[0].iter().chain(parts).collect();
    let tried = services.map(&all, jobs, "candidates", |spec| {
        Ok(measured(spec, services)?.0)
    });
    let mut tried = tried?;
    let parts = tried.split_off(first[0].len());
    let mut report = tried[0].report.clone();
    for group in parts.into_iter().flat_map(|it| it.report.groups) {
        match report.groups.iter_mut().find(|it| it.name == group.name) {
            Some(known) => known.times.run += group.times.run,
            None => report.groups.push(group),
        }
    }
    Ok((Results::simulated(&first[0][0], tried), report))
}

/// So many runs of each candidate, with the same seeds.
fn by_run(first: &[RunSpec], runs: u32) -> Vec<Vec<RunSpec>> {
    let of_all: Vec<Vec<RunSpec>> = first.iter().map(|it| seeded(it, runs)).collect();
    let run = |at: usize| of_all.iter().map(|it| it[at].clone()).collect();
    (0..runs as usize).map(run).collect()
}

/// The goals of the user, or those of the load.
fn goals(request: &Choose, report: &Report, results: &Results) -> anyhow::Result<Vec<Goal>> {
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
fn others(
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
fn failure(outcome: &Outcome) -> Option<String> {
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

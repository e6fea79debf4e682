//! Runs of a workload under all candidates, and the figures that are taken of them.

use std::num::NonZeroUsize;
use std::sync::Arc;

use anyhow::bail;
use model::{Advised, Summary};
use stats::compare::{Better, Measure, MeasuredNumber, Role, Set, Settings, runs_to_decide};
use stats::{LastWork, Metrics, Report};
use workload::{RunSpec, Workload};

use super::Choose;
use super::errors::LoadClass;
use super::field::{Field, Material};
use crate::error::UsageError;
use crate::goal::{Goal, Spans, Stat, Whose, family};
use crate::outcome::{Outcome, Results};
use crate::runner::Runner;
use crate::runs::say_end;
use crate::runs::{Asked, StartJitter, number_namesakes, refuse_recordings_of_runs, seeded};
use crate::services::Services;
use crate::stated::stated;

/// Runs of each candidate, where they suffice to decide.
const RUNS: u32 = 10;
/// Fixed work varies by one part of so many: a computer repeats none to the nanosecond.
const WORK_PARTS: u64 = 100;

/// What is kept of a run.
struct Run {
    goals: Vec<MeasuredNumber>,
    rest: Vec<MeasuredNumber>,
    failure: Option<String>,
}

/// Makes all runs.
///
/// # Errors
/// When a candidate, the load or a goal is wrong.
pub fn run(
    request: &Choose,
    services: &Services<'_>,
    settings: &Settings,
) -> anyhow::Result<Field> {
    let candidates = request.candidates.clone();
    let jitter = StartJitter::asked(request.start_jitter);
    let first = differing(specs(request, services, None, jitter)?);
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
    let mut field = Field {
        load: results.workload,
        machine: results.machine,
        class: LoadClass::of(&report),
        switches: switches(&report),
        goals,
        is_asked: !request.goals.is_empty(),
        runs: specs.len(),
        seed: specs[0][0].seed,
        kernel: None,
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
    gather(&mut field, made);
    field.check_values()?;
    Ok(field)
}

/// Changes of the task in each second of a CPU.
pub(super) fn switches(report: &Report) -> f64 {
    let machine = &report.machine;
    let time = machine.elapsed.as_secs_f64() * f64::from(machine.cpus);
    if time > 0.0 {
        machine.switches as f64 / time
    } else {
        0.0
    }
}

/// Sorts runs, which come by run and then by candidate, into sets.
fn gather(field: &mut Field, made: Vec<Run>) {
    let count = field.candidates.len();
    let mut failed = vec![Vec::new(); count];
    for (at, run) in made.into_iter().enumerate() {
        let (pair, at) = (at / count, at % count);
        if let Some(why) = run.failure {
            failed[at].push(why);
            field.sets[at].void += 1;
            continue;
        }
        let pair = Some(pair as u64);
        field.sets[at].add(run.goals, pair);
        field.rest[at].add(run.rest, pair);
    }
    for (to, failed) in field.failures.iter_mut().zip(failed) {
        *to = why_failed(failed, field.runs);
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

/// As many runs as it takes to decide so many comparisons.
fn runs_for(comparisons: usize, settings: &Settings) -> u32 {
    let needed = runs_to_decide(comparisons, true, settings.level());
    u32::try_from(needed).unwrap_or(RUNS).max(RUNS)
}

/// Runs that differ with their seed as runs of a computer do, although the load may have no chance
/// in it: tasks begin by up to a tick later unless somebody says otherwise, and fixed work is up to
/// one part of [`WORK_PARTS`] longer or shorter. Else ten runs would be one.
pub fn differing(mut runs: Vec<RunSpec>) -> Vec<RunSpec> {
    let Some(first) = runs.first() else {
        return runs;
    };
    let mut load = first.workload.varied(WORK_PARTS);
    if load.start_jitter.is_zero() {
        load.start_jitter = first.machine.tick();
    }
    let load = Arc::new(load);
    for run in &mut runs {
        run.workload = Arc::clone(&load);
    }
    runs
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

#[cfg(test)]
mod tests {
    use model::{MachineSpec, Nanos};

    use super::*;
    use crate::policy;
    use crate::services::tests::FILES;

    fn spec(head: &str) -> RunSpec {
        let text = format!(
            "[workload]\nname = \"load\"\n{head}[task.a]\ncount = 3\n\
             do = \"loop(9)[ run(9985us), sleep(1ms) ]\"\n"
        );
        RunSpec {
            policy: policy::find(&FILES, "fifo").unwrap(),
            machine: MachineSpec::default(),
            workload: Arc::new(Workload::parse(&text, "load.toml").unwrap()),
            seed: 1,
            tie_seed: None,
            attach_after: Nanos::ZERO,
            duration: None,
        }
    }

    /// How long each of three runs takes that differ in their seeds.
    fn ends(spec: &RunSpec) -> Vec<Nanos> {
        let end = |spec: &RunSpec| {
            let (outcome, _) = Runner::new(spec, &FILES).measure().unwrap();
            outcome.report.machine.elapsed
        };
        seeded(spec, 3).iter().map(end).collect()
    }

    #[test]
    fn runs_of_a_load_without_chance_differ_as_those_of_a_computer_do() {
        let load = spec("");
        let mut same = ends(&load);
        same.dedup();
        assert_eq!(same.len(), 1, "there is no chance in it");
        let mut ends = ends(&differing(vec![load])[0]);
        ends.sort_unstable();
        ends.dedup();
        assert_eq!(ends.len(), 3, "{ends:?}");
    }

    #[test]
    fn tasks_begin_up_to_a_tick_later_unless_the_load_says_otherwise() {
        let jitter = |head| {
            let runs = differing(vec![spec(head), spec(head)]);
            assert!(Arc::ptr_eq(&runs[0].workload, &runs[1].workload));
            runs[0].workload.start_jitter
        };
        assert_eq!(jitter(""), MachineSpec::default().tick());
        assert_eq!(jitter("start_jitter = \"7ms\"\n"), Nanos::from_millis(7));
        assert!(differing(Vec::new()).is_empty());
    }
}

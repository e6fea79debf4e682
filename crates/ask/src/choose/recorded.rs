//! A recording under all candidates: one continuous rerun for each of them and each jitter.

use std::path::Path;

use model::{Advised, Nanos, SimTime, Sink};
use stats::compare::series::{BEYOND_MIN, BLOCKS_MIN, CellStatistic, cells_for};
use stats::compare::{MeasuredNumber, Role, Set, Settings};
use stats::{CellSpans, InputOrder, LastWork, WantedSpans};
use traces::Tee;
use workload::{RecordedCourse, RunSpec};

use super::Choose;
use super::errors::LoadClass;
use super::field::{Field, Material};
use super::reruns::{HowMeasured, Plan, Rerun, Reruns, Which, figure, points};
use super::runs::{failure, goals, others, specs, switches, why_failed};
use crate::error::UsageError;
use crate::goal::{Goal, Stat, Whose};
use crate::outcome::Results;
use crate::policy;
use crate::recording::{self, EndsWith, Recorded, Wanted};
use crate::runner::Runner;
use crate::runs::{StartJitter, say_end, seeded};
use crate::score_file;
use crate::services::Services;

/// Reruns of each candidate, where nobody says another number. Each takes the time of a run, and
/// most of what is not known is in the blocks.
const JITTERS: u32 = 4;
/// Cells of a recording: enough for blocks of any length, and few enough to be drawn often.
const CELLS: usize = 256;
/// The begin of a recording that does not count: its machine is idle and no task has a history. One
/// part of so many, and at most so long.
const WARM_UP: (u64, Nanos) = (10, Nanos::from_secs(2));
/// Figures beside the goals that are looked at.
const OTHERS: usize = 24;

/// The goals and what else is looked at, and how they are measured.
struct Measured {
    goals: Vec<Goal>,
    /// How many of them are goals of the question; the others come behind.
    asked: usize,
    order: InputOrder,
    /// Cells of the warm-up.
    warm: usize,
    /// Length of a cell.
    cell: Nanos,
    /// Whose end is that of the load.
    ends_with: EndsWith,
}

impl Measured {
    /// A goal's value in a rerun that is over, where no block has one.
    fn value(
        &self,
        goal: &Goal,
        (of_run, work, spec): (Option<f64>, &LastWork, &RunSpec),
    ) -> Option<f64> {
        let whole = Goal::End { whose: Whose::All };
        if *goal != whole {
            return of_run.or_else(|| goal.end(work, &spec.workload.groups));
        }
        let end = match self.ends_with {
            EndsWith::ChildrenOf(parent) => work.of(&|_, by| by == Some(parent)),
            EndsWith::All | EndsWith::Unknown => work.of(&|_, _| true),
        };
        end.map(|it| it.since(SimTime::ZERO).get() as f64)
    }

    /// Leaves out the recording's own goals of which nothing happened, as long as one is left.
    fn leave_out_empty(&mut self, base: &mut [Rerun]) {
        for at in (0..self.asked).rev() {
            let is_empty = match self.goals[at].statistic() {
                Some(_) => figure(base, at, usize::MAX).spans() == 0,
                None => base.iter().all(|it| it.values[at].is_none()),
            };
            if is_empty && self.asked > 1 {
                self.goals.remove(at);
                self.asked -= 1;
                for rerun in &mut *base {
                    rerun.cells.remove(at);
                    rerun.values.remove(at);
                    rerun.grown.remove(at);
                }
            }
        }
    }

    fn wanted<'a>(&'a self, spec: &RunSpec) -> Vec<WantedSpans<'a>> {
        let groups = &spec.workload.groups;
        let of = |goal: &'a Goal| {
            let spans = goal.spans();
            WantedSpans {
                kind: spans.unwrap_or(stats::SpanKind::Wakeup),
                groups: groups
                    .iter()
                    .map(|it| spans.is_some() && goal.is_of(&it.name))
                    .collect(),
            }
        };
        self.goals.iter().map(of).collect()
    }

    /// One rerun, with its spans behind the warm-up.
    fn rerun(&self, spec: &RunSpec, services: &Services<'_>) -> anyhow::Result<Rerun> {
        let wanted = self.wanted(spec);
        let mut cells = CellSpans::new(&self.order, &wanted);
        let mut work = LastWork::default();
        let mut sinks = Tee::new(vec![&mut cells as &mut dyn Sink, &mut work]);
        let runner = Runner::new(spec, services).with_sink(&mut sinks);
        let (outcome, metrics) = runner.measure()?;
        let report = &outcome.report;
        let mut cells = cells.into_found();
        for of_goal in &mut cells {
            of_goal.drain(..self.warm.min(of_goal.len()));
        }
        let goals = self.goals.iter();
        Ok(Rerun {
            cells,
            values: goals
                .clone()
                .map(|it| self.value(it, (it.value(&metrics, report), &work, spec)))
                .collect(),
            grown: goals.map(|it| it.grows(report)).collect(),
            failure: failure(&outcome),
        })
    }
}

/// Reruns the recording at `path` under all candidates.
///
/// # Errors
/// When a candidate, the recording or a goal is wrong.
pub fn run(
    request: &Choose,
    services: &Services<'_>,
    (path, wanted): (&Path, Wanted),
    settings: &Settings,
) -> anyhow::Result<Field> {
    let candidates = request.candidates.iter().map(|it| &it.found);
    let bundled = policy::bundled(candidates);
    let costs = request.machine.recorded_costs(services, bundled)?;
    let wanted = Wanted { costs, ..wanted };
    let Recorded {
        load,
        course,
        ends_with,
        kernel,
    } = recording::with_course(services, path, wanted)?;
    recording::say_score(services, path);
    let jitter = request
        .start_jitter
        .map_or(StartJitter::Tick, StartJitter::Most);
    let first = specs(request, services, Some(load), jitter)?;
    say_end(services, &first[0]);
    let jobs = services.jobs(request.jobs);
    let (outcome, _) = Runner::new(&first[0], services).measure()?;
    let report = outcome.report.clone();
    let results = Results::simulated(&first[0], vec![outcome]);
    let mut asked = goals(request, &report, &results)?;
    check_end(&mut asked, ends_with, request)?;
    let mut rest = others(&asked, &report, &results, (usize::MAX, settings));
    rest.truncate(OTHERS);
    let mut measured = measured((asked, rest), course, ends_with);
    let jitters = request.runs.unwrap_or(JITTERS);
    let reruns = |measured: &Measured, of: &[RunSpec]| {
        let all: Vec<RunSpec> = of.iter().flat_map(|it| seeded(it, jitters)).collect();
        services.map(&all, jobs, "reruns", |spec| measured.rerun(spec, services))
    };
    let mut base = reruns(&measured, &first[..1])?;
    if request.goals.is_empty() {
        measured.leave_out_empty(&mut base);
    }
    let (plan, statistics) = plan(&mut measured, &base);
    let mut made = base;
    // Where nothing can be said of any goal, nobody waits for the other candidates.
    if plan.lacks.iter().any(Option::is_none) {
        made.extend(reruns(&measured, &first[1..])?);
    }
    let names = first.iter().map(|it| it.policy.name.clone());
    let mut field = Field {
        load: results.workload,
        machine: results.machine,
        class: LoadClass::of(&report),
        switches: switches(&report),
        candidates: request.candidates.clone(),
        goals: measured.goals[..measured.asked].to_vec(),
        is_asked: !request.goals.is_empty(),
        runs: jitters as usize,
        seed: first[0].seed,
        kernel,
        identity: score_file::Identity::of(services, path).ok(),
        start_jitter: first[0].workload.start_jitter,
        sets: names.map(|it| Set::new(&it, "", "simulated")).collect(),
        rest: Vec::new(),
        failures: vec![None; request.candidates.len()],
        scored: score_file::factors(services, path),
        material: Material::Runs,
    };
    field.rest.clone_from(&field.sets);
    let found = gather(&mut field, &measured, &statistics, &made);
    field.material = Material::Reruns(Box::new((found, plan)));
    field.check_values()?;
    Ok(field)
}

/// The cells of the recorded input, at most [`CELLS`] of them.
fn measured(
    (asked, rest): (Vec<Goal>, Vec<Goal>),
    course: RecordedCourse,
    ends_with: EndsWith,
) -> Measured {
    let RecordedCourse { width, mut ends } = course;
    let last = ends.iter().flatten().map(|(_, cell)| *cell).max();
    let all = last.map_or(1, |it| it as usize + 1);
    let together = all.div_ceil(CELLS).max(1);
    let fold = u32::try_from(together).unwrap_or(u32::MAX);
    ends.iter_mut()
        .flatten()
        .for_each(|(_, cell)| *cell /= fold);
    let cells = all.div_ceil(together);
    let cell = Nanos::new(width.get().saturating_mul(together as u64));
    let warm = (cells as u64).div_ceil(WARM_UP.0);
    let warm = warm.min(WARM_UP.1.get() / cell.get().max(1)).max(1);
    Measured {
        asked: asked.len(),
        goals: asked.into_iter().chain(rest).collect(),
        order: InputOrder { ends, cells },
        warm: usize::try_from(warm).unwrap_or(usize::MAX),
        cell,
        ends_with,
    }
}

/// Refuses the end of a load of which nobody knows whose end it is: timers of the kernel go on for
/// ever. The command of a recording has an end that is a goal by itself.
fn check_end(asked: &mut Vec<Goal>, ends_with: EndsWith, request: &Choose) -> anyhow::Result<()> {
    let end = Goal::End { whose: Whose::All };
    if ends_with == EndsWith::Unknown && asked.contains(&end) {
        return Err(UsageError::new(Advised::new(
            "`time`: the recording does not say whose end counts",
            "name the tasks with `time of GROUP`; of `runslice record -- COMMAND` it is known",
        ))
        .into());
    }
    let is_command = matches!(ends_with, EndsWith::ChildrenOf(_));
    if request.goals.is_empty() && is_command && !asked.contains(&end) {
        asked.insert(0, end);
    }
    Ok(())
}

/// Of each goal the statistic that the recording is long enough for, and what it lacks. A
/// percentile with too few waits beyond it becomes the highest one that has enough.
fn plan(measured: &mut Measured, base: &[Rerun]) -> (Plan, Vec<HowMeasured>) {
    let (cell, warm) = (measured.cell.get(), measured.warm as u64);
    let length = measured.order.cells as u64 * cell;
    let mut plan = Plan {
        length: Nanos::new(length),
        warm_up: Nanos::new(warm * cell),
        blocks: Vec::new(),
        lacks: Vec::new(),
        notes: Vec::new(),
    };
    let mut statistics = Vec::new();
    for (at, goal) in measured.goals.iter_mut().enumerate() {
        let Some(statistic) = goal.statistic() else {
            statistics.push(None);
            plan.blocks.push(None);
            plan.lacks.push(None);
            continue;
        };
        let fine = figure(base, at, usize::MAX);
        let figure = figure(base, at, cells_for(fine.spans()));
        let cells = figure.cells() as f64;
        let counts = length - plan.warm_up.get().min(length);
        let span = |of: f64| Nanos::new((of / cells.max(1.0) * counts as f64) as u64);
        let enough = |it: &CellStatistic| figure.beyond(*it) >= BEYOND_MIN;
        let found = statistic.and_lower().find(enough);
        let block = figure.correlation(found.unwrap_or(statistic)).block;
        let beyond = figure.beyond(statistic);
        let more = match found {
            // A mean of nothing, or a percentile of hardly anything.
            _ if figure.value(statistic).is_none() => None,
            None => Some(span(cells * (BEYOND_MIN / beyond.max(0.5) - 1.0))),
            Some(_) if figure.cells() / block < BLOCKS_MIN => {
                Some(span((block * BLOCKS_MIN) as f64 - cells))
            }
            Some(_) => None,
        };
        if let (Some(lower), Goal::Time { stat, .. }) = (found, &mut *goal)
            && lower != statistic
        {
            let before = stat.word();
            if let CellStatistic::Permille(permille) = lower {
                *stat = Stat::Permille(permille);
            }
            if at < measured.asked {
                plan.notes.push(format!(
                    "{goal} instead of {before}: {beyond:.0} independent spans lie beyond \
                     {before}, and it takes {BEYOND_MIN:.0}."
                ));
            }
        }
        statistics.push(Some((found.unwrap_or(statistic), figure.cells())));
        plan.blocks.push(Some(span(block as f64)));
        plan.lacks
            .push(more.map(|it| it.max(Nanos::from_millis(1))));
    }
    plan.blocks.truncate(measured.asked);
    plan.lacks.truncate(measured.asked);
    (plan, statistics)
}

/// Sorts reruns, which come by candidate and then by jitter, into figures and sets.
fn gather(
    field: &mut Field,
    measured: &Measured,
    statistics: &[HowMeasured],
    made: &[Rerun],
) -> Reruns {
    let of_candidates: Vec<&[Rerun]> = made.chunks(field.runs.max(1)).collect();
    for (failure, reruns) in field.failures.iter_mut().zip(&of_candidates) {
        let failed = reruns.iter().filter_map(|it| it.failure.clone());
        *failure = why_failed(failed.collect(), reruns.len());
    }
    let mut found = Reruns::default();
    for part in &mut found.parts {
        part.figures.resize_with(field.sets.len(), Vec::new);
        part.grown.resize_with(field.sets.len(), Vec::new);
        part.few.resize_with(field.sets.len(), Vec::new);
    }
    for (at, (goal, statistic)) in measured.goals.iter().zip(statistics).enumerate() {
        let which = if at < measured.asked {
            Which::Goals
        } else {
            Which::Rest
        };
        let part = &mut found.parts[which as usize];
        part.goals.push(goal.clone());
        part.take(at, *statistic, &of_candidates, which);
        for (candidate, set) in field.sets_mut(which).iter_mut().enumerate() {
            if let Some(figure) = part.figures[candidate].last() {
                let draws = part.draws.last().and_then(Option::as_ref);
                put(set, goal, &points(figure, draws));
            }
        }
    }
    // However many blocks it has, a rerun is one run.
    for set in field.sets.iter_mut().chain(&mut field.rest) {
        (set.runs, set.differs) = (field.runs, true);
    }
    found
}

/// Adds the points of a goal to a set: a block's figure, or a jitter's.
fn put(set: &mut Set, goal: &Goal, points: &[Option<f64>]) {
    for (at, value) in points.iter().enumerate() {
        if let Some(value) = value {
            let number = MeasuredNumber {
                name: goal.to_string(),
                measure: goal.measure(),
                better: goal.better(),
                role: Role::Goal,
                value: *value,
            };
            set.add(vec![number], Some(at as u64));
        }
    }
}

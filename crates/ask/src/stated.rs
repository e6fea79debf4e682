//! What a load is for, as its runs say it.
//!
//! Goals are what a comparison tests: deadlines, spans, the time until the work is done. Counters
//! are work done, too, though only the load knows whether much of it is good. A load that states
//! nothing of the kind is judged by how long its tasks wait, and on a textbook's machine people are
//! told how long its jobs took.

use stats::compare::{Better, Reported, Set, ends_by_clock, plural};

use crate::outcome::Results;

/// Spans of which every policy has so many are judged by their 99th percentile, others by their
/// mean.
const MANY_SPANS: u64 = 100;
/// Whose goals are those of no group.
pub const ALL: &str = "all";

/// Something that the load is for.
#[derive(Clone, Debug)]
pub struct StatedGoal {
    /// Whose it is: a group of tasks, or all of them.
    pub of: String,
    /// What it is: `late moves`.
    pub what: String,
    /// The metric that is shown.
    pub shown: String,
    /// The metric that is tested.
    pub tested: String,
    /// Which way is good.
    pub better: Better,
}

impl StatedGoal {
    fn new(of: &str, what: &str, metric: String, better: Better) -> Self {
        Self {
            of: of.to_owned(),
            what: what.to_owned(),
            shown: metric.clone(),
            tested: metric,
            better,
        }
    }

    /// Whose it is and what, in one text.
    #[must_use]
    pub fn title(&self) -> String {
        match self.of.as_str() {
            ALL => self.what.clone(),
            of => format!("{of}: {}", self.what),
        }
    }
}

/// Adds the goal unless it is there: each policy's report names it.
fn add(goals: &mut Vec<StatedGoal>, goal: StatedGoal) {
    if goals.iter().all(|known| known.tested != goal.tested) {
        goals.push(goal);
    }
}

/// The metrics that decide what these runs are good for, as far as either way is good.
#[must_use]
pub fn stated(results: &Results) -> Vec<String> {
    let goals = of_load(results, &sets(results));
    let known = goals.into_iter().filter(|it| it.better != Better::Neither);
    known.map(|goal| goal.tested).collect()
}

/// What people are told of these runs first: what their load is for, or turnaround and response of
/// the jobs, where a textbook's machine did them all and the load asks nothing of a group.
#[must_use]
pub fn goals(results: &Results, sets: &[Set]) -> Vec<StatedGoal> {
    let goals = of_load(results, sets);
    let mut reports = results.outcomes.iter().map(|outcome| &outcome.report);
    let is_of_jobs = results.machine.textbook.is_some()
        && reports.all(|it| it.all.tasks > 1 && it.all.exited == it.all.tasks);
    if !is_of_jobs || goals.iter().any(|goal| goal.of != ALL) {
        return goals;
    }
    let of_jobs = ["turnaround", "response"].map(|what| {
        let metric = format!("all.{what}_ns_mean");
        StatedGoal::new(ALL, &format!("{what} mean"), metric, Better::Lower)
    });
    of_jobs.into()
}

/// What the load of these runs is for, in the order of its file.
fn of_load(results: &Results, sets: &[Set]) -> Vec<StatedGoal> {
    let reports = || results.outcomes.iter().map(|outcome| &outcome.report);
    let mut goals = Vec::new();
    for it in reports().flat_map(|report| &report.deadlines) {
        let metric = format!("deadline.{}.{}.missed", it.group, it.name);
        let goal = StatedGoal {
            shown: format!("{metric}_ppm"),
            ..StatedGoal::new(&it.group, &plural(&it.word), metric, Better::Lower)
        };
        add(&mut goals, goal);
    }
    for it in reports().flat_map(|report| &report.spans) {
        let same =
            |other: &&stats::SpanReport| (&other.group, &other.name) == (&it.group, &it.name);
        let of_all = reports().filter_map(|report| report.spans.iter().find(same));
        let figure = match of_all.map(|span| span.length.count).min() {
            Some(MANY_SPANS..) => "p99",
            _ => "mean",
        };
        let metric = format!("span.{}.{}.length_ns_{figure}", it.group, it.name);
        let what = format!("{} {figure}", it.name);
        add(
            &mut goals,
            StatedGoal::new(&it.group, &what, metric, Better::Lower),
        );
    }
    if !ends_by_clock(sets) {
        let metric = "machine.elapsed_ns".to_owned();
        add(
            &mut goals,
            StatedGoal::new(ALL, "time to end", metric, Better::Lower),
        );
    }
    if goals.is_empty() {
        for (what, path) in [
            ("wakeup p99", "wakeup_ns_p99"),
            ("delay mean", "delay_ns_mean"),
        ] {
            add(
                &mut goals,
                StatedGoal::new(ALL, what, format!("all.{path}"), Better::Lower),
            );
        }
    }
    let counters = || reports().flat_map(|report| &report.counters);
    for it in counters() {
        let same = |other: &&stats::CounterReport| {
            (&other.group, &other.name, other.total) == (&it.group, &it.name, it.total)
        };
        // Work of which there is a fixed amount is done by all, and tells nobody apart.
        let alike = counters().filter(same).count();
        if alike > 1 && alike == results.outcomes.len() {
            continue;
        }
        let metric = format!("counter.{}.{}.total", it.group, it.name);
        add(
            &mut goals,
            StatedGoal::new(&it.group, &it.name, metric, Better::Neither),
        );
    }
    goals
}

/// The runs by policy, in the order of the policies.
#[must_use]
pub fn sets(results: &Results) -> Vec<Set> {
    let mut sets: Vec<Set> = Vec::new();
    for outcome in &results.outcomes {
        if sets.last().is_none_or(|set| set.arm != outcome.policy) {
            sets.push(Set::new(&outcome.policy, "", ""));
        }
        let Some(set) = sets.last_mut() else { continue };
        if outcome.summary.error().is_some() {
            set.void += 1;
            continue;
        }
        set.add_report(&Reported::from(&outcome.report), Some(outcome.report.seed));
        set.starved += usize::from(!outcome.summary.starved.is_empty());
    }
    sets
}

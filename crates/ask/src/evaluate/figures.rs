//! The figures of an evaluation's runs, and what they break.

use model::PolicySpec;
use stats::compare::{Better, Settings};

use super::draw::Draw;
use super::limits::LimitKind;
use super::score::{self, GoalFigures, LoadFigures, SearchScore};
use super::spec::{Spec, WeightedGoal};
use super::taken::Pair;
use super::{Breach, GoalMetric};
use crate::limit;

/// The pairs of values, by load and goal.
pub fn figures(
    (spec, goals): (&Spec, &[Vec<WeightedGoal>]),
    drawn: &[Draw],
    runs: &[Pair],
) -> Vec<LoadFigures> {
    let loads = spec.loads.iter().enumerate();
    let figures = loads.map(|(at, load)| {
        let its = || {
            drawn
                .iter()
                .zip(runs)
                .filter(|(draw, _)| draw.load == Some(at))
        };
        let goals = goals[at].iter().enumerate().map(|(number, goal)| {
            let pair = |pair: &Pair| {
                let base = pair.base.goals[number]?;
                Some((base, pair.taken.goals[number]))
            };
            GoalFigures {
                goal: goal.goal.to_string(),
                measure: goal.goal.measure(),
                better: goal.goal.better(),
                weight: goal.weight,
                pairs: its().map(|(_, it)| pair(it)).collect(),
            }
        });
        LoadFigures {
            load: load.name.clone(),
            weight: load.weight,
            goals: goals.collect(),
        }
    });
    let figures = figures.filter(|it| it.goals.iter().any(|goal| !goal.pairs.is_empty()));
    figures.collect()
}

/// Limits that the figures of `policy` break: those of goals, and loads that are shown worse.
pub fn broken(
    (spec, drawn): (&Spec, &[Draw]),
    policy: &PolicySpec,
    (figures, scored): (&[LoadFigures], &SearchScore),
) -> Vec<Breach> {
    let mut broken = Vec::new();
    for load in figures {
        for goal in &load.goals {
            let stated = spec
                .goals
                .iter()
                .find(|it| it.goal.to_string() == goal.goal);
            let limit = stated.and_then(|it| it.limit);
            let mean = score::means(goal).map(|it| it.1);
            if let (Some(limit), Some(mean)) = (limit, mean)
                && passes(goal, mean, limit)
            {
                let [mean, limit] = [mean, limit].map(|it| limit::words_of(goal.measure, it));
                let words = format!("{} is {mean}, the limit is {limit}", goal.goal);
                broken.push(Breach {
                    load: Some(load.load.clone()),
                    ..Breach::of(LimitKind::Goal, words)
                });
            }
        }
    }
    for load in scored.loads.iter().filter(|it| it.is_worse) {
        let percent = (1.0 - libm::exp(load.score[0])) * 100.0;
        let words = format!("worse by {percent:.1} %, and shown worse by more than 5 %");
        let its = figures.iter().find(|it| it.load == load.load);
        let worst = its.and_then(score::worst_draw);
        let mut of_load = drawn.iter().filter(|it| it.name == load.load);
        broken.push(Breach {
            load: Some(load.load.clone()),
            draws: its.map_or([0, 0], score::worse_draws),
            case: worst
                .and_then(|at| of_load.nth(at))
                .map(|it| it.case_of(policy)),
            ..Breach::of(LimitKind::WorseLoad, words)
        });
    }
    broken
}

/// Whether a mean is on the bad side of its limit.
fn passes(goal: &GoalFigures, mean: f64, limit: f64) -> bool {
    match goal.better {
        Better::Higher => mean < limit,
        _ => mean > limit,
    }
}

/// Goal by goal.
pub fn metrics(figures: &[LoadFigures], settings: &Settings) -> Vec<GoalMetric> {
    let of = |load: &LoadFigures| {
        let goals = load.goals.iter().map(|goal| GoalMetric {
            load: load.load.clone(),
            goal: goal.goal.clone(),
            measure: goal.measure,
            better: goal.better,
            weight: goal.weight * load.weight,
            means: score::means(goal),
            gain: score::of_goal(goal, settings),
        });
        goals.collect::<Vec<_>>()
    };
    figures.iter().flat_map(of).collect()
}

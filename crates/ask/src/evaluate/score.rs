//! How good a candidate is: the weighted mean of its log ratios to the baseline.
//!
//! It knows figures and no runs. Positive is better; each draw of a load counts for at most a
//! factor of two, so that no load outweighs all others.

use stats::compare::{Better, Effect, Measure, Refusal, Settings, Values, effect, holm, least_of};

/// A load that is worse by more than this part is shown worse.
pub const WORSE: f64 = 0.05;
/// What a draw of a load counts for at most, as a log ratio.
pub const CUT: f64 = std::f64::consts::LN_2;
/// The score of a candidate that is refused: worse than any that is not.
pub const REFUSED: f64 = -1.0;

/// The figures of one load.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadFigures {
    /// The load.
    pub load: String,
    /// How much it counts.
    pub weight: f64,
    /// Its goals.
    pub goals: Vec<GoalFigures>,
}

/// The figures of one goal of a load.
#[derive(Clone, Debug, PartialEq)]
pub struct GoalFigures {
    /// The goal.
    pub goal: String,
    /// What its values are.
    pub measure: Measure,
    /// Which way is good.
    pub better: Better,
    /// How much it counts.
    pub weight: f64,
    /// By draw, the baseline's value and the candidate's; `None`: the baseline has none, or one of
    /// them says no more than how long the run was.
    pub pairs: Vec<Option<(f64, Option<f64>)>>,
}

/// What a candidate comes to.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchScore {
    /// Its score, a log ratio, and the ends of its interval, which has no end where so few draws
    /// bound nothing.
    pub score: [f64; 3],
    /// How probable so much is by chance, either way.
    pub p: f64,
    /// By load, the same.
    pub loads: Vec<ScoredLoad>,
}

impl SearchScore {
    /// The score, but not more than that of a load that is shown worse: whoever is good on the mean
    /// by being bad at one load gains nothing.
    #[must_use]
    pub fn combined(&self) -> f64 {
        self.combined_bounds()[0]
    }

    /// The same with the ends of the interval, which is that of the load where that is the score.
    #[must_use]
    pub fn combined_bounds(&self) -> [f64; 3] {
        let worse = self.loads.iter().filter(|it| it.is_worse);
        let all = worse.map(|it| it.score).chain([self.score]);
        all.min_by(|a, b| a[0].total_cmp(&b[0]))
            .unwrap_or(self.score)
    }
}

/// What a candidate comes to under one load.
#[derive(Clone, Debug, PartialEq)]
pub struct ScoredLoad {
    /// The load.
    pub load: String,
    /// The mean of its draws, and the ends of the interval.
    pub score: [f64; 3],
    /// Whether it is shown worse by more than [`WORSE`].
    pub is_worse: bool,
}

/// The log ratio of the candidate to the baseline, positive if it is better.
#[must_use]
pub fn gain(measure: Measure, better: Better, (base, other): (f64, Option<f64>)) -> f64 {
    let least = least_of(measure);
    // The candidate's tasks never came to what is measured.
    let Some(other) = other else {
        return -CUT;
    };
    let shift = libm::log(other.max(least)) - libm::log(base.max(least));
    match better {
        Better::Higher => shift,
        _ => -shift,
    }
}

/// By draw, what the load says; `None` of a draw that says nothing.
fn series(load: &LoadFigures) -> Vec<Option<f64>> {
    let draws = load
        .goals
        .iter()
        .map(|it| it.pairs.len())
        .max()
        .unwrap_or(0);
    let draw = |at: usize| {
        let said = load.goals.iter().filter_map(|goal| {
            let pair = (*goal.pairs.get(at)?)?;
            Some((
                gain(goal.measure, goal.better, pair) * goal.weight,
                goal.weight,
            ))
        });
        let (sum, weight) = said.fold((0.0, 0.0), |(sum, all), (it, weight)| {
            (sum + it, all + weight)
        });
        (weight > 0.0).then(|| (sum / weight).clamp(-CUT, CUT))
    };
    (0..draws).map(draw).collect()
}

/// The mean of log ratios with its interval; endless where nothing bounds it.
fn bounded(gains: &[f64], settings: &Settings) -> ([f64; 3], f64) {
    let mean = gains.iter().sum::<f64>() / gains.len().max(1) as f64;
    let pairs = gains.iter().map(|it| (1.0, libm::exp(*it))).collect();
    let found: Result<Effect, Refusal> =
        effect(&Values::Pairs(pairs), Measure::Thousandths, 1, settings);
    match found {
        Ok(it) => ([mean, it.low, it.high], it.p),
        Err(_) => ([mean, f64::NEG_INFINITY, f64::INFINITY], 1.0),
    }
}

/// Scores the figures of a candidate.
#[must_use]
pub fn score(loads: &[LoadFigures], settings: &Settings) -> SearchScore {
    let all: Vec<(f64, Vec<Option<f64>>)> =
        loads.iter().map(|it| (it.weight, series(it))).collect();
    let draws = all.iter().map(|(_, gains)| gains.len()).max().unwrap_or(0);
    // One number a draw, over the loads that say something in it: draws are what chance moves.
    let combined = |at: usize| {
        let said = all
            .iter()
            .filter_map(|(weight, gains)| Some((*weight, (*gains.get(at)?)?)));
        let (sum, weight) = said.fold((0.0, 0.0), |(sum, all), (weight, it)| {
            (sum + it * weight, all + weight)
        });
        (weight > 0.0).then(|| sum / weight)
    };
    let gains: Vec<f64> = (0..draws).filter_map(combined).collect();
    let (score, p) = bounded(&gains, settings);
    let by_load: Vec<([f64; 3], f64)> = all
        .iter()
        .map(|(_, gains)| {
            let gains: Vec<f64> = gains.iter().flatten().copied().collect();
            bounded(&gains, settings)
        })
        .collect();
    let chances = holm(&by_load.iter().map(|it| it.1).collect::<Vec<_>>());
    let loads = loads.iter().zip(by_load).zip(chances);
    let loads = loads.map(|((load, (score, _)), p)| ScoredLoad {
        load: load.load.clone(),
        is_worse: p < settings.level() && score[2] < -libm::log1p(WORSE),
        score,
    });
    SearchScore {
        score,
        p,
        loads: loads.collect(),
    }
}

/// In how many draws of a load the candidate is worse by more than [`WORSE`], and of how many.
#[must_use]
pub fn worse_draws(load: &LoadFigures) -> [usize; 2] {
    let gains = series(load);
    let is_worse = |gain: &&f64| **gain < -libm::log1p(WORSE);
    let worse = gains.iter().flatten().filter(is_worse).count();
    [worse, gains.iter().flatten().count()]
}

/// The number of the draw in which a load is worst.
#[must_use]
pub fn worst_draw(load: &LoadFigures) -> Option<usize> {
    let gains = series(load).into_iter().enumerate();
    let gains = gains.filter_map(|(at, gain)| Some((at, gain?)));
    gains.min_by(|a, b| a.1.total_cmp(&b.1)).map(|it| it.0)
}

/// The means of a goal's pairs over the draws that both have.
#[must_use]
pub fn means(goal: &GoalFigures) -> Option<(f64, f64)> {
    let pairs = goal.pairs.iter().flatten();
    let pairs: Vec<(f64, f64)> = pairs
        .filter_map(|(base, other)| Some((*base, (*other)?)))
        .collect();
    let count = pairs.len() as f64;
    let sum = pairs
        .iter()
        .fold((0.0, 0.0), |(a, b), (base, other)| (a + base, b + other));
    (count > 0.0).then(|| (sum.0 / count, sum.1 / count))
}

/// The mean gain of one goal with its interval.
#[must_use]
pub fn of_goal(goal: &GoalFigures, settings: &Settings) -> [f64; 3] {
    let pairs = goal.pairs.iter().flatten();
    let gains: Vec<f64> = pairs
        .map(|pair| gain(goal.measure, goal.better, *pair))
        .collect();
    bounded(&gains, settings).0
}

/// Which of several candidates are shown better, where each has this score: Holm's correction over
/// all of them.
#[must_use]
pub fn shown_better(all: &[SearchScore], settings: &Settings) -> Vec<bool> {
    let chances = holm(&all.iter().map(|it| it.p).collect::<Vec<_>>());
    let is_better = |(it, p): (&SearchScore, f64)| it.combined() > 0.0 && p < settings.level();
    all.iter().zip(chances).map(is_better).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(name: &str, pairs: &[(f64, f64)]) -> LoadFigures {
        let pairs = pairs
            .iter()
            .map(|(base, other)| Some((*base, Some(*other))));
        LoadFigures {
            load: name.to_owned(),
            weight: 1.0,
            goals: vec![GoalFigures {
                goal: "p99 wait".to_owned(),
                measure: Measure::Nanos,
                better: Better::Lower,
                weight: 1.0,
                pairs: pairs.collect(),
            }],
        }
    }

    /// Values around 1 ms that vary by some per cent; the candidate's are `ratio` times those.
    fn noisy(ratio: f64) -> Vec<(f64, f64)> {
        let value = |at: u32| 1e6 * (1.0 + f64::from(at * 7 % 12) / 100.0);
        (0..12)
            .map(|at| (value(at), value(at + 1) * ratio))
            .collect()
    }

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 0.02
    }

    #[test]
    fn a_candidate_that_is_the_baseline_has_the_score_zero() {
        let same: Vec<_> = noisy(1.0).into_iter().map(|(it, _)| (it, it)).collect();
        let scored = score(&[load("a", &same)], &Settings::default());
        assert_eq!(scored.score[0], 0.0);
        assert!(!shown_better(&[scored], &Settings::default())[0]);
    }

    #[test]
    fn shorter_waits_are_a_gain_and_more_work_is_one() {
        let scored = score(&[load("a", &noisy(0.8))], &Settings::default());
        assert!(close(scored.score[0], -libm::log(0.8)), "{scored:?}");
        assert!(scored.score[1] > 0.0 && shown_better(&[scored], &Settings::default())[0]);
        let mut work = load("a", &noisy(1.25));
        work.goals[0].better = Better::Higher;
        let scored = score(&[work], &Settings::default());
        assert!(close(scored.score[0], libm::log(1.25)), "{scored:?}");
    }

    #[test]
    fn no_load_counts_for_more_than_a_factor_of_two() {
        let loads = [load("a", &noisy(0.01)), load("b", &noisy(1.5))];
        let scored = score(&loads, &Settings::default());
        let want = (CUT - libm::log(1.5)) / 2.0;
        assert!(close(scored.score[0], want), "{scored:?}");
        let worse: Vec<bool> = scored.loads.iter().map(|it| it.is_worse).collect();
        assert_eq!(worse, [false, true], "the second is shown worse");
        assert!(close(scored.combined(), -libm::log(1.5)), "{scored:?}");
        let [score, low, high] = scored.combined_bounds();
        assert!(low <= score && score <= high, "{scored:?}");
        let wins = worse_draws(&loads[0]);
        assert_eq!((wins, worse_draws(&loads[1])[0] > 10), ([0, 12], true));
        assert!(!shown_better(&[scored], &Settings::default())[0]);
    }

    #[test]
    fn a_load_that_is_worse_by_three_per_cent_is_not_shown_worse() {
        let scored = score(&[load("a", &noisy(1.03))], &Settings::default());
        assert!(!scored.loads[0].is_worse, "{scored:?}");
    }

    #[test]
    fn weights_of_loads_and_goals_count() {
        let mut loads = [load("a", &noisy(0.8)), load("b", &noisy(1.0))];
        loads[0].weight = 3.0;
        let scored = score(&loads, &Settings::default());
        assert!(close(scored.score[0], -libm::log(0.8) * 0.75), "{scored:?}");
        let mut one = load("a", &noisy(0.8));
        let mut second = one.goals[0].clone();
        second.better = Better::Higher;
        one.goals.push(second);
        let scored = score(&[one], &Settings::default());
        assert!(close(scored.score[0], 0.0), "{scored:?}");
    }

    #[test]
    fn a_value_that_the_candidate_never_comes_to_is_the_worst_one() {
        let mut one = load("a", &noisy(0.8));
        for pair in one.goals[0].pairs.iter_mut().flatten() {
            pair.1 = None;
        }
        let scored = score(&[one], &Settings::default());
        assert_eq!(scored.score[0], -CUT);
    }

    #[test]
    fn of_several_candidates_chance_is_shared() {
        let better = score(&[load("a", &noisy(0.8))], &Settings::default());
        let SearchScore { p, .. } = better;
        assert!(p > 0.0);
        let many = vec![better; (0.05 / p) as usize + 1];
        assert!(!shown_better(&many, &Settings::default())[0]);
        assert!(shown_better(&many[..5], &Settings::default())[0]);
    }
}

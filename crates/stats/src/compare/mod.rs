//! Whether two sets of runs differ, by how much, and how sure that is.
//!
//! [`compare`] takes a [`Set`] of runs as the baseline and others to hold against it. Each metric
//! gets the ratio of the centres with an interval ([`effect()`]), and a [`Verdict`].
//! docs/comparing.md defines all of it, and says how many runs it takes.
//!
//! The one part of this crate that calculates in floating point. Logarithms are those of the crate
//! `libm`, so that the same runs give the same bytes on every computer.

mod effect;
mod measures;
mod set;
#[cfg(test)]
mod tests;
mod verdict;

pub use effect::{Effect, RUNS_MIN, effect, separation};
pub use measures::{CommandFigures, command_measures, measures, played_measures};
pub use set::{Better, Extent, Measure, Measured, Series, Set};
pub use verdict::{Doubt, Limit, Outcome, Verdict};

/// How sets are compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// Seed of the resamples.
    pub seed: u64,
    /// How often each set is drawn anew.
    pub resamples: u32,
    /// Part of the intervals that hold the true ratio, in thousandths, below 1000.
    pub confidence: u16,
    /// The smallest change that is of interest, as a part of the baseline: 0.03 is 3 %.
    pub margin: f64,
    /// Per cent of the values that are left out at either end, 0 to 40.
    pub trim: u8,
}

impl Default for Settings {
    /// 10,000 resamples, intervals of 95 %, changes from 3 %, nothing left out.
    fn default() -> Self {
        Self {
            seed: 1,
            resamples: 10_000,
            confidence: 950,
            margin: 0.03,
            trim: 0,
        }
    }
}

/// Why values cannot be compared.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum Refusal {
    /// Too few runs.
    #[error("{have} runs; it takes {need}")]
    TooFew {
        /// How many there are.
        have: usize,
        /// How many it takes.
        need: usize,
    },
    /// All values are the same, so nothing is known about chance.
    #[error("no spread: {runs} runs gave {value}; runs must differ in their seed")]
    NoSpread {
        /// The value.
        value: f64,
        /// How often it came.
        runs: usize,
    },
    /// A ratio needs positive numbers.
    #[error("no ratio can be made with {value}")]
    NoRatio {
        /// The number that is in the way.
        value: f64,
    },
    /// Only one of the sets has the metric.
    #[error("only one of the sets has it")]
    Missing,
}

/// One metric of one set against the baseline's.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The metric.
    pub metric: String,
    /// What its values are.
    pub measure: Measure,
    /// Which way is good.
    pub better: Better,
    /// The baseline.
    pub base: String,
    /// What is held against it.
    pub arm: String,
    /// What is the same on both sides.
    pub place: String,
    /// Spread of the baseline; `None` without a value.
    pub base_extent: Option<Extent>,
    /// Spread of the other set.
    pub arm_extent: Option<Extent>,
    /// What came of it.
    pub result: Result<Judged, Refusal>,
}

/// A comparison that could be made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Judged {
    /// Ratio and interval.
    pub effect: Effect,
    /// The probability after Holm's correction for the number of comparisons.
    pub p_holm: f64,
    /// Difference that two arms of the same scheduler had, as a part; `None` without such arms.
    pub floor: Option<f64>,
    /// What it says.
    pub verdict: Verdict,
}

/// What is to be compared: a baseline, others, and the baseline measured a second time.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// The baseline.
    pub base: &'a Set,
    /// What is held against it.
    pub others: &'a [Set],
    /// The baseline's scheduler once more, which gives the noise floor.
    pub again: Option<&'a Set>,
}

/// Compares every metric that `wanted` names. All comparisons of all questions are one family for
/// Holm's correction.
pub fn compare(
    questions: &[Question<'_>],
    wanted: impl Fn(&Series) -> bool,
    settings: &Settings,
) -> Vec<Row> {
    let mut rows: Vec<(Row, Option<f64>)> = Vec::new();
    for question in questions {
        let series = question.base.series.iter().filter(|it| wanted(it));
        for series in series {
            let floor = question.again.and_then(|again| floor(series, again));
            for other in question.others {
                rows.push((row(series, question.base, other, settings), floor));
            }
        }
    }
    correct(&mut rows, settings);
    rows.into_iter().map(|(row, _)| row).collect()
}

/// The difference between the centres of two sets of the same scheduler, as a part of the smaller.
fn floor(series: &Series, again: &Set) -> Option<f64> {
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let other = again.find(&series.name)?;
    let ratio = mean(&other.values) / mean(&series.values);
    let ratio = if ratio < 1.0 { 1.0 / ratio } else { ratio };
    Some(ratio - 1.0).filter(|floor| floor.is_finite())
}

fn row(series: &Series, base: &Set, other: &Set, settings: &Settings) -> Row {
    let theirs = other.find(&series.name);
    let values = theirs.map_or(&[][..], |it| &it.values);
    let stream = stream(&[&series.name, &base.arm, &other.arm, &base.place]);
    let result = match theirs {
        None => Err(Refusal::Missing),
        Some(_) => {
            let result = effect(&series.values, values, stream, settings);
            result.or_else(|refusal| apart(series, values, &[base, other]).ok_or(refusal))
        }
    };
    Row {
        metric: series.name.clone(),
        measure: series.measure,
        better: series.better,
        base: base.arm.clone(),
        arm: other.arm.clone(),
        place: base.place.clone(),
        base_extent: Extent::of(&series.values),
        arm_extent: Extent::of(values),
        result: result.map(|effect| Judged {
            effect,
            p_holm: effect.p,
            floor: None,
            verdict: Verdict::Undecided(Doubt::Spread),
        }),
    }
}

/// What can be said of values without spread, when both sets are known to differ by chance: a set
/// that repeats one run has no spread in any metric, and is refused.
fn apart(series: &Series, values: &[f64], sets: &[&Set]) -> Option<Effect> {
    let varies = |set: &&Set| {
        let varies = |it: &Series| it.values.iter().any(|value| *value != it.values[0]);
        set.series.iter().any(varies)
    };
    match sets.iter().all(varies) {
        true => separation(&series.values, values),
        false => None,
    }
}

/// Corrects the probabilities for their number, and judges.
fn correct(rows: &mut [(Row, Option<f64>)], settings: &Settings) {
    let made = rows.iter_mut().filter_map(|(row, floor)| {
        let better = row.better;
        row.result.as_mut().ok().map(|it| (it, better, *floor))
    });
    // Where all values are one and the same, nothing is tested.
    let is_same = |it: &Judged| it.effect.low == 1.0 && it.effect.high == 1.0;
    let (same, mut made): (Vec<_>, Vec<_>) = made.partition(|(it, ..)| is_same(it));
    for (judged, better, _) in same {
        judged.verdict = verdict::judge(judged, better, settings);
    }
    let chances: Vec<f64> = made.iter().map(|(it, ..)| it.effect.p).collect();
    for ((judged, better, floor), p) in made.iter_mut().zip(holm(&chances)) {
        judged.p_holm = p;
        judged.floor = *floor;
        judged.verdict = verdict::judge(judged, *better, settings);
    }
}

/// The probabilities, each so corrected that one below 5 % among any number of them is a chance of
/// 5 % as a whole.
///
/// Source: Holm (1979), "A simple sequentially rejective multiple test procedure".
#[must_use]
pub fn holm(chances: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..chances.len()).collect();
    order.sort_by(|a, b| chances[*a].total_cmp(&chances[*b]));
    let mut corrected = vec![0.0; chances.len()];
    let mut largest: f64 = 0.0;
    for (rank, at) in order.into_iter().enumerate() {
        let left = (chances.len() - rank) as f64;
        largest = largest.max((chances[at] * left).min(1.0));
        corrected[at] = largest;
    }
    corrected
}

/// The number of a comparison's stream, of what it compares: it does not change when other
/// comparisons come or go.
fn stream(words: &[&str]) -> u64 {
    let bytes = words.iter().flat_map(|word| word.bytes().chain([0]));
    model::Fnv1a::of(bytes)
}

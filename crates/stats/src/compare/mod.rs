//! Whether two sets of runs differ, by how much, and how sure that is.
//!
//! [`compare`] takes a [`Set`] of runs as the baseline and others to hold against it. Each metric
//! gets a ratio or a difference with an interval ([`effect()`]), and what the load is for gets a
//! [`Verdict`]. docs/comparing.md defines all of it, and says how many runs it takes.
//!
//! [`machines`] says how far apart two machines are that ran the same: how well one stands for the
//! other. [`skill`] says of a recording how far a simulation of it can be trusted.
//!
//! The one part of this crate that calculates in floating point. Logarithms are those of the crate
//! `libm`, so that the same runs give the same bytes on every computer.

use model::Advice;

mod answer;
#[cfg(test)]
mod calibration;
mod effect;
mod flips;
pub mod machines;
mod measures;
mod named;
mod proportion;
mod relabel;
mod reported;
mod robust;
pub mod series;
mod set;
mod shift;
pub mod skill;
#[cfg(test)]
mod tests;
mod verdict;

pub use answer::{Answered, RatioAnswer, RatioError, least_of};
pub use effect::{Effect, RUNS_MIN, Scale, Values, effect};
pub use measures::{CommandFigures, command_measures, measures, played_measures};
pub use named::{Named, plural, title_of};
pub use proportion::at_least;
pub use reported::{Reported, ReportedMetric};
pub use robust::{TRIM_PERCENT, Trimmed, fisher};
pub use set::{Better, Extent, Measure, MeasuredNumber, Role, Series, Set};
pub use shift::SAMPLES_MAX;
pub use verdict::{Doubt, Limit, LimitOutcome, Verdict};

/// How sets are compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// Seed of the relabelings that are drawn.
    pub seed: u64,
    /// Share of calls that may say something wrong: 0.05.
    pub alpha: f64,
    /// How often the runs are looked at while more are made, at least 1. Every look has the same
    /// part of `alpha`.
    pub looks: u32,
    /// The smallest change that is of interest, as a part of the baseline: 0.03 is 3 %.
    pub margin: f64,
    /// Whether intervals are wanted; without them they are endless. Verdicts do not need them, but
    /// where two arms of the same scheduler are compared, too.
    pub intervals: bool,
}

impl Default for Settings {
    /// Intervals of 95 %, one look, changes from 3 %.
    fn default() -> Self {
        Self {
            seed: 1,
            alpha: 0.05,
            looks: 1,
            margin: 0.03,
            intervals: true,
        }
    }
}

impl Settings {
    /// Share of looks that may say something wrong.
    ///
    /// Of all ways to spend `alpha` over looks this is the one that asks nothing of the runs:
    /// whatever the tests are and however the looks depend on each other, the sum is `alpha`
    /// (Bonferroni). The limits of Pocock (1977) and O'Brien and Fleming (1979) spend less, but are
    /// made for sums of normal numbers and hold only nearly for tests by relabeling.
    #[must_use]
    pub fn level(&self) -> f64 {
        self.alpha / f64::from(self.looks.max(1))
    }
}

/// Why values cannot be compared.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum Refusal {
    /// Too few runs.
    #[error("{have} run{}", if *have == 1 { "" } else { "s" })]
    TooFew {
        /// How many there are.
        have: usize,
        /// How many it takes to decide one comparison.
        need: usize,
    },
    /// All values are the same, so nothing is known about chance.
    #[error("no spread: {runs} runs gave {value}")]
    NoSpread {
        /// The value.
        value: f64,
        /// How often it came.
        runs: usize,
    },
    /// A value that cannot be calculated with.
    #[error("{value} is no number that can be compared")]
    NoNumber {
        /// The value.
        value: f64,
    },
    /// Work came faster than it was done, so that the value says how long the runs were.
    #[error(
        "this figure grows with the duration: its queue still grew at the end of {base} of the \
         baseline's runs and {arm} of the other's"
    )]
    Grows {
        /// Runs of the baseline in which the queue grew.
        base: usize,
        /// Runs of what is held against it.
        arm: usize,
    },
    /// Only one of the sets has the metric.
    #[error("only one of the sets has it")]
    Missing,
}

impl Advice for Refusal {
    fn advice(&self) -> Option<String> {
        match self {
            Self::TooFew { need, .. } => Some(format!("it takes {need}")),
            Self::NoSpread { .. } => Some("runs must differ in their seed".to_owned()),
            Self::Grows { .. } => {
                Some("give the load less work, or the machine more CPUs".to_owned())
            }
            _ => None,
        }
    }
}

/// One metric of one set against the baseline's.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricRow {
    /// The metric.
    pub metric: String,
    /// How people read it.
    pub named: Named,
    /// What its values are.
    pub measure: Measure,
    /// Which way is good.
    pub better: Better,
    /// Whether it gets a verdict.
    pub is_goal: bool,
    /// The baseline.
    pub base: String,
    /// What is held against it.
    pub arm: String,
    /// What is the same on both sides.
    pub place: String,
    /// Where the runs were made.
    pub world: String,
    /// Spread of the baseline; `None` without a value.
    pub base_extent: Option<Extent>,
    /// Spread of the other set.
    pub arm_extent: Option<Extent>,
    /// Runs that lie far from the others, of the baseline and of the other set.
    pub outliers: [Vec<Outlier>; 2],
    /// Its outcome.
    pub result: Result<JudgedSets, Refusal>,
}

/// A run that lies far from all others of its set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outlier {
    /// Its value.
    pub value: f64,
    /// What it can be repeated with.
    pub seed: Option<u64>,
}

impl From<Effect> for JudgedSets {
    /// Before it is judged.
    fn from(effect: Effect) -> Self {
        Self {
            effect,
            p_holm: effect.p,
            p_same_holm: effect.p_same,
            p_outliers: 1.0,
            floor: None,
            verdict: None,
            runs_needed: None,
        }
    }
}

/// A comparison that could be made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct JudgedSets {
    /// Shift and interval.
    pub effect: Effect,
    /// The probability after Holm's correction for the number of goals; that of a metric that is
    /// no goal is as it was.
    pub p_holm: f64,
    /// The same for the probability that the sets differ by the margin.
    pub p_same_holm: f64,
    /// How probable the numbers of outliers are if chance alone puts them into one set or the
    /// other.
    pub p_outliers: f64,
    /// Shift that two arms of the same scheduler had; `None` without such arms.
    pub floor: Option<f64>,
    /// What it says; `None` of a metric that is no goal.
    pub verdict: Option<Verdict>,
    /// Runs of each set that might decide, where these do not.
    pub runs_needed: Option<usize>,
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
    /// Only this metric, as a goal; all that are chosen if there is none.
    pub only: Option<&'a str>,
}

/// Which metrics are compared.
#[derive(Clone, Copy)]
pub enum Choice<'a> {
    /// The goals that the load states, and what describes how they came about.
    Stated,
    /// These, all of them as goals.
    Named(&'a dyn Fn(&Series) -> bool),
}

/// A row that is not yet judged, and its noise floor.
type Pending = (MetricRow, Option<f64>);

/// Compares every metric that is chosen. The goals of all questions are one family for Holm's
/// correction.
#[must_use]
pub fn compare(
    questions: &[Question<'_>],
    choice: Choice<'_>,
    settings: &Settings,
) -> Vec<MetricRow> {
    let mut rows: Vec<Pending> = Vec::new();
    for question in questions {
        let states_none = states_none(question);
        for series in &question.base.series {
            let is_goal = match choice {
                _ if question.only.is_some_and(|it| it != series.name) => continue,
                _ if question.only.is_some() => true,
                Choice::Named(wanted) if wanted(series) => true,
                Choice::Stated if series.role == Role::Goal => true,
                Choice::Stated if series.role == Role::Shown => {
                    states_none && series.better != Better::Neither
                }
                _ => continue,
            };
            for other in question.others {
                let mut row = row(series, question.base, other, settings);
                row.is_goal = is_goal;
                let again = question.again.and_then(|again| again.find(&series.name));
                let scale = row.result.as_ref().ok().map(|it| it.effect.scale);
                let floor = again
                    .zip(scale)
                    .and_then(|(it, scale)| floor(series, it, scale));
                rows.push((row, floor));
            }
        }
    }
    correct(&mut rows, settings);
    rows.into_iter().map(|(row, _)| row).collect()
}

/// Whether all runs ended at nearly the same time, as where a clock ends them and not their work.
pub fn ends_by_clock<'a>(sets: impl IntoIterator<Item = &'a Set>) -> bool {
    /// A clock does not end two runs at times that differ by more than this part.
    const CLOCK: f64 = 0.001;
    let elapsed = sets.into_iter().filter_map(|set| set.find(ELAPSED));
    let extents = elapsed.filter_map(|it| Extent::of(&it.values));
    let (least, most) = extents.fold((f64::INFINITY, 0.0_f64), |(least, most), it| {
        (least.min(it.min), most.max(it.max))
    });
    most <= least * (1.0 + CLOCK)
}

/// The metric of the time until a run ended.
const ELAPSED: &str = "machine.elapsed_ns";

/// Whether the load has neither deadlines nor spans and ends by the clock: then nothing is stated
/// that a scheduler could be better at, and what describes it is all there is.
fn states_none(question: &Question<'_>) -> bool {
    let sets = || question.others.iter().chain([question.base]);
    let has_elapsed = sets().any(|set| set.find(ELAPSED).is_some());
    let goals = question
        .base
        .series
        .iter()
        .filter(|it| it.role == Role::Goal);
    ends_by_clock(sets()) && goals.count() == usize::from(has_elapsed)
}

/// The shift between two sets of the same scheduler.
fn floor(series: &Series, again: &Series, scale: Scale) -> Option<f64> {
    let mean = |values: &[f64]| scale.on(values.iter().sum::<f64>() / values.len() as f64);
    let shift = mean(&again.values) - mean(&series.values);
    Some(shift.abs()).filter(|floor| floor.is_finite())
}

fn row(series: &Series, base: &Set, other: &Set, settings: &Settings) -> MetricRow {
    let theirs = other.find(&series.name);
    let values = theirs.map_or(&[][..], |it| &it.values);
    let stream = stream(&[&series.name, &base.arm, &other.arm, &base.place]);
    let result = theirs.ok_or(Refusal::Missing).and_then(|theirs| {
        if base.grows(&series.name) || other.grows(&series.name) {
            let [base, arm] = [base, other].map(|it| it.grown(&series.name));
            return Err(Refusal::Grows { base, arm });
        }
        let values = series.against(theirs);
        let effect = effect(&values, series.measure, stream, settings)?;
        // Sets that repeat one run say nothing of chance.
        match [(base, series), (other, theirs)]
            .iter()
            .find(|(set, _)| !set.varies())
        {
            None => Ok(effect),
            Some((_, series)) => Err(Refusal::NoSpread {
                value: series.values[0],
                runs: series.values.len(),
            }),
        }
    });
    let outliers = match (&result, theirs) {
        (Ok(effect), Some(theirs)) => [series, theirs].map(|it| outliers(it, effect)),
        _ => [Vec::new(), Vec::new()],
    };
    let chance = || {
        let both = [(&outliers[0], &series.values[..]), (&outliers[1], values)];
        let [first, second] = both.map(|(out, all)| [out.len(), all.len()]);
        fisher(first, second)
    };
    MetricRow {
        metric: series.name.clone(),
        named: Named::of(&series.name, [base, other]),
        measure: series.measure,
        better: series.better,
        is_goal: false,
        base: base.arm.clone(),
        arm: other.arm.clone(),
        place: base.place.clone(),
        world: base.world.clone(),
        base_extent: Extent::of(&series.values),
        arm_extent: Extent::of(values),
        result: result.map(|effect| JudgedSets {
            p_outliers: chance(),
            ..effect.into()
        }),
        outliers,
    }
}

/// The runs of a set that lie far from the others.
fn outliers(series: &Series, effect: &Effect) -> Vec<Outlier> {
    let values: Vec<f64> = series
        .values
        .iter()
        .map(|it| effect.scale.on(*it))
        .collect();
    let places = robust::outliers(&values, effect.margin);
    let outlier = |at: usize| Outlier {
        value: series.values[at],
        seed: series.seeds[at],
    };
    places.into_iter().map(outlier).collect()
}

/// Judges rows whose effects were found elsewhere, all of them as goals of one family.
#[must_use]
pub fn judge_rows(rows: Vec<MetricRow>, settings: &Settings) -> Vec<MetricRow> {
    let mut pending: Vec<Pending> = rows.into_iter().map(|row| (row, None)).collect();
    correct(&mut pending, settings);
    pending.into_iter().map(|(row, _)| row).collect()
}

/// Corrects the probabilities of the goals for their number, and judges them.
fn correct(rows: &mut [Pending], settings: &Settings) {
    let made = rows
        .iter_mut()
        .filter(|(row, _)| row.is_goal)
        .filter_map(|(row, floor)| {
            let better = row.better;
            row.result.as_mut().ok().map(|it| (it, better, *floor))
        });
    // Where all values are one and the same no test can find anything, whoever is better: it is
    // none of the family.
    let is_same = |it: &JudgedSets| it.effect.p_least >= 1.0;
    let (same, mut made): (Vec<_>, Vec<_>) = made.partition(|(it, ..)| is_same(it));
    for (judged, ..) in same {
        judged.verdict = Some(Verdict::NoDifference);
    }
    let of =
        |p: fn(&Effect) -> f64| -> Vec<f64> { made.iter().map(|it| p(&it.0.effect)).collect() };
    let (differ, equal) = (holm(&of(|it| it.p)), holm(&of(|it| it.p_same)));
    let comparisons = made.len();
    for ((judged, better, floor), (p, p_same)) in made.iter_mut().zip(differ.into_iter().zip(equal))
    {
        judged.p_holm = p;
        judged.p_same_holm = p_same;
        judged.floor = *floor;
        let verdict = verdict::judge(judged, *better, comparisons, settings);
        judged.verdict = Some(verdict);
        judged.runs_needed = verdict::runs_needed(judged, verdict, comparisons, settings);
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

/// The fewest runs of each set that can decide so many comparisons, if the sets are separated: 6
/// of 8 metrics, or 9 pairs.
#[must_use]
pub fn runs_to_decide(comparisons: usize, is_paired: bool, level: f64) -> usize {
    let least = |runs: usize| {
        if is_paired {
            flips::least(runs as f64)
        } else {
            2.0 / relabel::ways(2 * runs, runs)
        }
    };
    // 1,000 runs decide more comparisons than there can be.
    let enough = |runs: &usize| least(*runs) * (comparisons as f64) < level;
    (2..1000).find(enough).unwrap_or(1000)
}

/// The number of a comparison's stream, of what it compares: it does not change when other
/// comparisons come or go.
fn stream(words: &[&str]) -> u64 {
    let bytes = words.iter().flat_map(|word| word.bytes().chain([0]));
    model::Fnv1a::of(bytes)
}

//! The answer about a change: the one place that says whether one scheduler is better than another
//! when the figures come from a simulation.

use serde::Serialize;

use super::{Better, Doubt, Effect, Extent, JudgedSets, Measure, MetricRow, Refusal, Verdict};

/// What is said of a candidate at a goal. There is no other answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RatioAnswer {
    /// It is better: all of the widened interval is on the good side.
    Better,
    /// It is worse: all of the widened interval is on the bad side.
    Worse,
    /// Any difference is smaller than what is of interest.
    Alike,
    /// The runs, or the simulation's error, leave it open.
    CannotTell,
    /// The machine has what no play was made on, so that no error is known.
    NotMeasured,
}

/// How far a simulated ratio of two schedulers may be from the real one.
#[derive(Clone, Debug, PartialEq)]
pub struct RatioError {
    /// By how much an interval is widened on either side: a log ratio, at least 0.
    pub widening: f64,
    /// Whether enough loads stand behind it for something to be *shown*, and not only *likely*.
    pub is_shown: bool,
    /// Whether it was measured on such a machine at all.
    pub is_measured: bool,
    /// Where it comes from, in words.
    pub source: String,
}

/// An answer with what it follows from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Answered {
    /// The answer.
    pub answer: RatioAnswer,
    /// Whether it is *shown*; else it is *likely* at most.
    pub is_shown: bool,
    /// The shift of the ratio, and the ends of its widened interval, as logarithms. Empty where
    /// nothing could be compared.
    pub shift: Option<[f64; 3]>,
    /// Whether it is surely not worse: the whole widened interval is within the margin or better.
    pub is_not_worse: bool,
}

impl RatioError {
    /// As a factor from 1 on.
    #[must_use]
    pub fn factor(&self) -> f64 {
        libm::exp(self.widening)
    }
}

impl RatioAnswer {
    /// In documents: one word, whatever its strength.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::Worse => "worse",
            Self::Alike => "alike",
            Self::CannotTell => "cannot-tell",
            Self::NotMeasured => "not-measured",
        }
    }
}

impl Answered {
    /// For people, with its strength.
    #[must_use]
    pub const fn words(&self) -> &'static str {
        match (self.answer, self.is_shown) {
            (RatioAnswer::Better, true) => "shown better",
            (RatioAnswer::Better, false) => "likely better",
            (RatioAnswer::Worse, true) => "shown worse",
            (RatioAnswer::Worse, false) => "likely worse",
            (RatioAnswer::Alike, true) => "shown alike",
            (RatioAnswer::Alike, false) => "likely alike",
            (RatioAnswer::CannotTell, _) => "cannot tell",
            (RatioAnswer::NotMeasured, _) => "not measured on such a machine",
        }
    }

    /// The answer to a comparison of simulated runs, whose ratio may be wrong by `error`.
    ///
    /// Runs that are equal, value for value, are alike whatever the error is: there is no ratio
    /// that it could change.
    #[must_use]
    pub fn of(row: &MetricRow, error: &RatioError) -> Self {
        let of = |answer, shift, is_not_worse| Self {
            answer,
            is_shown: error.is_shown,
            shift,
            is_not_worse,
        };
        let judged = match &row.result {
            Ok(judged) => judged,
            Err(refusal) => {
                let is_one_value = matches!(refusal, Refusal::NoSpread { .. }) && is_equal(row);
                let answer = if !error.is_measured {
                    RatioAnswer::NotMeasured
                } else if is_one_value {
                    RatioAnswer::Alike
                } else {
                    RatioAnswer::CannotTell
                };
                return of(answer, None, answer == RatioAnswer::Alike);
            }
        };
        let effect = &judged.effect;
        let [low, high] = widened(effect, error.widening);
        let shift = Some([effect.shift, low, high]);
        if !error.is_measured {
            return of(RatioAnswer::NotMeasured, shift, false);
        }
        let bad = match row.better {
            Better::Higher => -low,
            _ => high,
        };
        if is_identical(effect) {
            return of(RatioAnswer::Alike, shift, true);
        }
        of(answer(judged, [low, high]), shift, bad <= effect.margin)
    }
}

impl Answered {
    /// The comparison as this answer has it: with the widened interval, and with the verdict that
    /// the answer is.
    #[must_use]
    pub fn judged(&self, row: &MetricRow) -> MetricRow {
        let mut row = row.clone();
        if let (Ok(judged), Some([_, low, high])) = (&mut row.result, self.shift) {
            (judged.effect.low, judged.effect.high) = (low, high);
            judged.verdict = Some(match self.answer {
                RatioAnswer::Better => Verdict::Faster,
                RatioAnswer::Worse => Verdict::Slower,
                RatioAnswer::Alike => Verdict::NoDifference,
                RatioAnswer::CannotTell | RatioAnswer::NotMeasured => {
                    Verdict::Undecided(Doubt::Spread)
                }
            });
        }
        row
    }
}

/// Whether all runs of both sides have one value.
fn is_equal(row: &MetricRow) -> bool {
    let value = |it: Option<Extent>| it.filter(|it| it.min == it.max).map(|it| it.min);
    value(row.base_extent).is_some() && value(row.base_extent) == value(row.arm_extent)
}

/// Whether no run of one side differs from its twin.
fn is_identical(effect: &Effect) -> bool {
    effect.shift == 0.0 && effect.low == 0.0 && effect.high == 0.0
}

/// The interval of the log ratio with the simulation's error at either end. A difference has no
/// ratio, and nothing is known of its error: it is endless unless there is no error.
fn widened(effect: &Effect, widening: f64) -> [f64; 2] {
    match effect.scale {
        super::Scale::Log => [effect.low - widening, effect.high + widening],
        super::Scale::Linear if widening <= 0.0 => [effect.low, effect.high],
        super::Scale::Linear => [f64::NEG_INFINITY, f64::INFINITY],
    }
}

fn answer(judged: &JudgedSets, [low, high]: [f64; 2]) -> RatioAnswer {
    let margin = judged.effect.margin;
    let is_apart = low > 0.0 || high < 0.0;
    match judged.verdict {
        Some(Verdict::NoDifference) if -margin <= low && high <= margin => RatioAnswer::Alike,
        Some(Verdict::Faster) if is_apart => RatioAnswer::Better,
        Some(Verdict::Slower) if is_apart => RatioAnswer::Worse,
        _ => RatioAnswer::CannotTell,
    }
}

/// The smallest value of a simulated figure that means something; smaller ones count as it, so that
/// every change is a ratio. 10 us are a few switches of a CPU, which cost nothing in a simulation
/// without a profile; a thousandth of a whole is one task in a thousand.
#[must_use]
pub const fn least_of(measure: Measure) -> f64 {
    match measure {
        Measure::Nanos => 10_000.0,
        Measure::Millionths => 1_000.0,
        Measure::Thousandths => 10.0,
        Measure::Count | Measure::Rate => 0.001,
        Measure::Bytes => 4096.0,
        Measure::Microjoules => 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::{Choice, MeasuredNumber, Question, Role, Set, Settings, compare};

    /// Twelve runs of each, as pairs; the row of the second against the first.
    fn row(base: impl Fn(u32) -> f64, other: impl Fn(u32) -> f64) -> MetricRow {
        let set = |arm: &str, value: &dyn Fn(u32) -> f64| {
            let mut set = Set::new(arm, "", "");
            for at in 0..12 {
                let number = |name: &str, role, value| MeasuredNumber {
                    name: name.to_owned(),
                    measure: Measure::Nanos,
                    better: Better::Lower,
                    role,
                    value,
                };
                let run = vec![
                    number("wait", Role::Goal, value(at)),
                    number("other", Role::Other, f64::from(at)),
                ];
                set.add(run, Some(at.into()));
            }
            set
        };
        let (base, others) = (set("a", &base), [set("b", &other)]);
        let question = Question {
            base: &base,
            others: &others,
            again: None,
            only: None,
        };
        let mut rows = compare(&[question], Choice::Stated, &Settings::default());
        rows.remove(0)
    }

    fn error(factor: f64) -> RatioError {
        RatioError {
            widening: libm::log(factor),
            is_shown: true,
            is_measured: true,
            source: String::new(),
        }
    }

    fn noise(at: u32) -> f64 {
        1e6 * (1.0 + f64::from(at * 7 % 12) / 100.0)
    }

    #[test]
    fn a_change_is_shown_only_beyond_the_error_of_the_ratio() {
        let half = row(noise, |at| noise(at + 1) / 2.0);
        assert_eq!(Answered::of(&half, &error(1.5)).words(), "shown better");
        assert_eq!(Answered::of(&half, &error(2.5)).words(), "cannot tell");
        let twice = row(noise, |at| noise(at + 1) * 2.0);
        assert_eq!(Answered::of(&twice, &error(1.5)).words(), "shown worse");
        let likely = RatioError {
            is_shown: false,
            ..error(1.5)
        };
        assert_eq!(Answered::of(&twice, &likely).words(), "likely worse");
        let elsewhere = RatioError {
            is_measured: false,
            ..error(1.5)
        };
        let said = Answered::of(&twice, &elsewhere);
        assert_eq!(said.words(), "not measured on such a machine");
        assert!(!said.is_not_worse);
    }

    #[test]
    fn what_is_equal_in_all_runs_is_alike_whether_or_not_anything_varies() {
        let pairs = row(noise, noise);
        let one = row(|_| 0.0, |_| 0.0);
        for row in [pairs, one] {
            let said = Answered::of(&row, &error(3.0));
            assert_eq!(
                (said.words(), said.is_not_worse),
                ("shown alike", true),
                "{row:?}"
            );
        }
    }

    #[test]
    fn not_worse_needs_the_whole_widened_interval() {
        let better = row(noise, |at| noise(at + 1) / 1.2);
        assert!(Answered::of(&better, &error(1.05)).is_not_worse);
        let said = Answered::of(&better, &error(1.4));
        assert_eq!(
            (said.answer, said.is_not_worse),
            (RatioAnswer::CannotTell, false)
        );
        let near = row(noise, |at| noise(at) * (1.0 + f64::from(at % 2) / 1000.0));
        assert!(Answered::of(&near, &error(1.0)).is_not_worse);
        assert_eq!(Answered::of(&near, &error(1.0)).answer, RatioAnswer::Alike);
        assert_eq!(
            Answered::of(&near, &error(1.1)).answer,
            RatioAnswer::CannotTell
        );
    }
}

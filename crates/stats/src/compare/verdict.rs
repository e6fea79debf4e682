//! What a comparison says.

use serde::Serialize;

use super::{Better, Judged, Settings};

/// What a comparison says of the second set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It is better: the metric moved the way that is good.
    Faster,
    /// It is worse.
    Slower,
    /// There is more of what is good neither way.
    More,
    /// There is less of what is good neither way.
    Less,
    /// Any difference is smaller than what is of interest.
    NoDifference,
    /// The runs do not say.
    #[serde(untagged)]
    Undecided(Doubt),
}

/// Why a comparison is undecided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Doubt {
    /// The interval holds both no difference and one that is of interest.
    #[serde(rename = "undecided")]
    Spread,
    /// It differs by itself, but not among so many comparisons.
    #[serde(rename = "undecided")]
    Many,
    /// Two arms of the same scheduler differed as much.
    #[serde(rename = "undecided")]
    Noise,
}

/// How much worse a metric may be before somebody must be told.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limit {
    /// As a part of the baseline: 0.05 is 5 %.
    pub part: f64,
}

/// How a comparison stands to a [`Limit`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is not worse than the limit, as far as is of interest.
    Kept,
    /// It is worse, for sure.
    Exceeded,
    /// It may be.
    Unknown,
}

impl Verdict {
    /// The verdict in words.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Faster => "faster",
            Self::Slower => "slower",
            Self::More => "more",
            Self::Less => "less",
            Self::NoDifference => "no difference",
            Self::Undecided(_) => "undecided",
        }
    }
}

impl Doubt {
    /// What would help, in words.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Spread => "the interval is too wide: more runs",
            Self::Many => "too many comparisons for so few runs: more runs, or fewer metrics",
            Self::Noise => "the same scheduler differed as much from itself: a quieter computer",
        }
    }
}

/// Judges a comparison whose probability is corrected.
pub fn judge(judged: &Judged, better: Better, settings: &Settings) -> Verdict {
    let (low, high) = (judged.effect.low, judged.effect.high);
    let margin = 1.0 + settings.margin;
    if high <= margin && low >= 1.0 / margin {
        return Verdict::NoDifference;
    }
    let chance = 1.0 - f64::from(settings.confidence) / 1000.0;
    if judged.effect.p >= chance {
        return Verdict::Undecided(Doubt::Spread);
    }
    if judged.p_holm >= chance {
        return Verdict::Undecided(Doubt::Many);
    }
    let is_more = judged.effect.ratio > 1.0;
    let nearest = if is_more { low } else { 1.0 / high };
    if nearest <= 1.0 + judged.floor.unwrap_or(0.0) {
        return Verdict::Undecided(Doubt::Noise);
    }
    match (better, is_more) {
        (Better::Lower, false) | (Better::Higher, true) => Verdict::Faster,
        (Better::Lower, true) | (Better::Higher, false) => Verdict::Slower,
        (Better::Neither, true) => Verdict::More,
        (Better::Neither, false) => Verdict::Less,
    }
}

impl Limit {
    /// How a comparison stands to this limit. What is good neither way keeps every limit.
    #[must_use]
    pub fn judge(self, judged: &Judged, better: Better, settings: &Settings) -> Outcome {
        let (low, high) = match better {
            Better::Lower => (judged.effect.low, judged.effect.high),
            Better::Higher => (1.0 / judged.effect.high, 1.0 / judged.effect.low),
            Better::Neither => return Outcome::Kept,
        };
        if judged.verdict == Verdict::Slower && low > 1.0 + self.part {
            return Outcome::Exceeded;
        }
        if high > 1.0 + self.part.max(settings.margin) {
            return Outcome::Unknown;
        }
        Outcome::Kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::Effect;

    fn judged(low: f64, high: f64, p_holm: f64, floor: Option<f64>) -> Judged {
        let excludes = low > 1.0 || high < 1.0;
        Judged {
            effect: Effect {
                base: 1.0,
                other: 1.0,
                ratio: (low * high).sqrt(),
                low,
                high,
                p: if excludes { 0.01 } else { 0.5 },
            },
            p_holm,
            floor,
            verdict: Verdict::Undecided(Doubt::Spread),
        }
    }

    fn verdict(low: f64, high: f64) -> Verdict {
        let judged = judged(low, high, 0.01, None);
        judge(&judged, Better::Lower, &Settings::default())
    }

    #[test]
    fn the_interval_decides() {
        assert_eq!(verdict(0.99, 1.02), Verdict::NoDifference);
        assert_eq!(verdict(1.001, 1.02), Verdict::NoDifference);
        assert_eq!(verdict(1.001, 1.08), Verdict::Slower);
        assert_eq!(verdict(0.90, 0.99), Verdict::Faster);
        assert_eq!(verdict(0.98, 1.08), Verdict::Undecided(Doubt::Spread));
    }

    #[test]
    fn the_metric_decides_what_is_good() {
        let more = judged(1.1, 1.2, 0.01, None);
        let of = |better| judge(&more, better, &Settings::default());
        assert_eq!(of(Better::Higher), Verdict::Faster);
        assert_eq!(of(Better::Lower), Verdict::Slower);
        assert_eq!(of(Better::Neither), Verdict::More);
    }

    #[test]
    fn many_comparisons_and_a_noisy_computer_are_doubts() {
        let of = |p, floor| {
            let judged = judged(1.05, 1.2, p, floor);
            judge(&judged, Better::Lower, &Settings::default())
        };
        assert_eq!(of(0.06, None), Verdict::Undecided(Doubt::Many));
        assert_eq!(of(0.01, Some(0.04)), Verdict::Slower);
        assert_eq!(of(0.01, Some(0.06)), Verdict::Undecided(Doubt::Noise));
    }

    #[test]
    fn a_limit_is_exceeded_only_when_the_whole_interval_is_beyond_it() {
        let settings = Settings::default();
        let of = |part, low, high| {
            let mut judged = judged(low, high, 0.01, None);
            judged.verdict = judge(&judged, Better::Lower, &settings);
            Limit { part }.judge(&judged, Better::Lower, &settings)
        };
        assert_eq!(of(0.0, 1.001, 1.08), Outcome::Exceeded);
        assert_eq!(of(0.05, 1.001, 1.08), Outcome::Unknown);
        assert_eq!(of(0.05, 1.06, 1.08), Outcome::Exceeded);
        assert_eq!(of(0.05, 1.01, 1.04), Outcome::Kept);
        assert_eq!(of(0.0, 0.98, 1.02), Outcome::Kept);
        assert_eq!(of(0.0, 0.9, 1.02), Outcome::Kept);
        assert_eq!(of(0.0, 0.98, 1.08), Outcome::Unknown);
    }

    #[test]
    fn every_doubt_is_written_as_one_word() {
        let written = |verdict| serde_json::to_string(&verdict).unwrap();
        assert_eq!(written(Verdict::NoDifference), "\"no-difference\"");
        for doubt in [Doubt::Spread, Doubt::Many, Doubt::Noise] {
            assert_eq!(written(Verdict::Undecided(doubt)), "\"undecided\"");
        }
    }
}

//! What a comparison says.

use serde::Serialize;

use super::{Better, JudgedSets, Settings, runs_to_decide};

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
    /// So few runs decide nothing among so many comparisons, whatever they are.
    #[serde(rename = "undecided")]
    Few,
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
pub enum LimitOutcome {
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
    /// The reason in words.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Few => "so few runs cannot decide so many comparisons",
            Self::Spread => "the interval is too wide",
            Self::Many => "not sure enough among so many comparisons",
            Self::Noise => "the same scheduler differed as much from itself: a quieter computer",
        }
    }
}

/// Judges a comparison whose probabilities are corrected for the number of `comparisons`.
pub fn judge(
    judged: &JudgedSets,
    better: Better,
    comparisons: usize,
    settings: &Settings,
) -> Verdict {
    let (effect, level) = (&judged.effect, settings.level());
    if judged.p_same_holm < level {
        return Verdict::NoDifference;
    }
    if judged.p_holm >= level {
        return Verdict::Undecided(match effect.p {
            _ if effect.p_least * comparisons as f64 >= level => Doubt::Few,
            p if p < level => Doubt::Many,
            _ => Doubt::Spread,
        });
    }
    let is_more = effect.shift > 0.0;
    let nearest = if is_more { effect.low } else { -effect.high };
    if judged.floor.is_some_and(|floor| nearest <= floor) {
        return Verdict::Undecided(Doubt::Noise);
    }
    match (better, is_more) {
        (Better::Lower, false) | (Better::Higher, true) => Verdict::Faster,
        (Better::Lower, true) | (Better::Higher, false) => Verdict::Slower,
        (Better::Neither, true) => Verdict::More,
        (Better::Neither, false) => Verdict::Less,
    }
}

/// How many runs of each set might decide; `None` where it is decided, or more runs do not help.
///
/// An interval gets narrower with the root of the number of runs, so that it is as wide as the
/// margin after n (half-width / margin)^2 of them. A probability falls by the same factor with
/// every further run.
pub fn runs_needed(
    judged: &JudgedSets,
    verdict: Verdict,
    comparisons: usize,
    settings: &Settings,
) -> Option<usize> {
    let (effect, level) = (&judged.effect, settings.level());
    let have = effect.values[0].min(effect.values[1]);
    let fewest = runs_to_decide(comparisons, effect.is_paired, level);
    let factor = match verdict {
        Verdict::Undecided(Doubt::Few) => return Some(fewest),
        Verdict::Undecided(Doubt::Spread) => {
            let half = (effect.high - effect.low) / 2.0;
            (half / effect.margin) * (half / effect.margin)
        }
        Verdict::Undecided(Doubt::Many) => {
            libm::log(level / comparisons as f64) / libm::log(effect.p)
        }
        _ => return None,
    };
    // A margin of 0 is reached by no number of runs.
    let runs = (have as f64 * factor).ceil();
    (runs < 1e9).then(|| (runs as usize).max(have + 1).max(fewest))
}

impl Limit {
    /// How a comparison stands to this limit. What is good neither way keeps every limit.
    #[must_use]
    pub fn judge(self, judged: &JudgedSets, better: Better) -> LimitOutcome {
        let effect = &judged.effect;
        let (worse, least, most) = match better {
            Better::Lower => (effect.shift_of(self.part), effect.low, effect.high),
            Better::Higher => (effect.shift_of(self.part), -effect.high, -effect.low),
            Better::Neither => return LimitOutcome::Kept,
        };
        if judged.verdict == Some(Verdict::Slower) && least > worse {
            return LimitOutcome::Exceeded;
        }
        if most > worse.max(effect.margin) {
            return LimitOutcome::Unknown;
        }
        LimitOutcome::Kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::{Effect, Scale, Trimmed};

    /// A comparison of 10 runs each, on logarithms.
    fn judged(low: f64, high: f64, p_holm: f64, p_same: f64) -> JudgedSets {
        let [low, high] = [low, high].map(libm::log);
        let shift = f64::midpoint(low, high);
        let trimmed = Trimmed { shift, low, high };
        let effect = Effect {
            scale: Scale::Log,
            is_paired: false,
            values: [10, 12],
            base: 1.0,
            other: 1.0,
            shift,
            low,
            high,
            margin: libm::log(1.03),
            p: if low > 0.0 || high < 0.0 { 0.01 } else { 0.5 },
            p_same,
            p_least: 2.0 / 184_756.0,
            trimmed,
        };
        JudgedSets {
            effect,
            p_holm,
            p_same_holm: p_same,
            p_outliers: 1.0,
            floor: None,
            verdict: None,
            runs_needed: None,
        }
    }

    fn verdict(judged: &JudgedSets) -> Verdict {
        judge(judged, Better::Lower, 4, &Settings::default())
    }

    #[test]
    fn two_one_sided_tests_say_no_difference_and_one_test_says_which() {
        assert_eq!(
            verdict(&judged(0.99, 1.02, 0.5, 0.049)),
            Verdict::NoDifference
        );
        // Also of a difference that is sure, but of no interest.
        assert_eq!(
            verdict(&judged(1.001, 1.02, 0.01, 0.049)),
            Verdict::NoDifference
        );
        assert_eq!(verdict(&judged(1.001, 1.08, 0.049, 0.05)), Verdict::Slower);
        assert_eq!(verdict(&judged(0.90, 0.99, 0.01, 0.5)), Verdict::Faster);
        let wide = verdict(&judged(0.98, 1.08, 0.05, 0.05));
        assert_eq!(wide, Verdict::Undecided(Doubt::Spread));
    }

    #[test]
    fn the_metric_decides_what_is_good() {
        let more = judged(1.1, 1.2, 0.01, 0.9);
        let of = |better| judge(&more, better, 1, &Settings::default());
        assert_eq!(of(Better::Higher), Verdict::Faster);
        assert_eq!(of(Better::Lower), Verdict::Slower);
        assert_eq!(of(Better::Neither), Verdict::More);
        let less = judged(0.8, 0.9, 0.01, 0.9);
        let of = |better| judge(&less, better, 1, &Settings::default());
        assert_eq!(of(Better::Higher), Verdict::Slower);
        assert_eq!(of(Better::Lower), Verdict::Faster);
        assert_eq!(of(Better::Neither), Verdict::Less);
    }

    #[test]
    fn few_runs_many_comparisons_and_a_noisy_computer_are_doubts() {
        let mut it = judged(1.05, 1.2, 0.05, 0.9);
        assert_eq!(verdict(&it), Verdict::Undecided(Doubt::Many));
        it.effect.p_least = 0.0125;
        assert_eq!(verdict(&it), Verdict::Undecided(Doubt::Few));
        it.p_holm = 0.04;
        it.floor = Some(libm::log(1.04));
        assert_eq!(verdict(&it), Verdict::Slower);
        it.floor = Some(libm::log(1.05));
        assert_eq!(verdict(&it), Verdict::Undecided(Doubt::Noise));
        let mut it = judged(0.8, 0.95, 0.01, 0.9);
        it.floor = Some(libm::log(1.052));
        assert_eq!(verdict(&it), Verdict::Faster);
        it.floor = Some(libm::log(1.053));
        assert_eq!(verdict(&it), Verdict::Undecided(Doubt::Noise));
    }

    #[test]
    fn each_look_has_its_part_of_the_probability() {
        let settings = Settings {
            looks: 4,
            ..Settings::default()
        };
        let of = |p, same| judge(&judged(1.05, 1.2, p, same), Better::Lower, 1, &settings);
        assert_eq!(of(0.012, 0.9), Verdict::Slower);
        assert_eq!(of(0.0125, 0.9), Verdict::Undecided(Doubt::Many));
        assert_eq!(of(0.9, 0.012), Verdict::NoDifference);
        assert_eq!(of(0.9, 0.0125), Verdict::Undecided(Doubt::Many));
    }

    #[test]
    fn it_says_how_many_runs_might_decide() {
        let of = |judged: &JudgedSets, doubt, comparisons| {
            let verdict = Verdict::Undecided(doubt);
            runs_needed(judged, verdict, comparisons, &Settings::default())
        };
        // Half as wide as 1.03 three times: 10 runs of the smaller set times 9.
        let mut it = judged(1.0 / 1.092_727, 1.092_727, 1.0, 1.0);
        assert_eq!(of(&it, Doubt::Spread, 1), Some(90));
        it.effect.values = [12, 20];
        assert_eq!(of(&it, Doubt::Spread, 1), Some(108));
        // Narrow, but not narrow enough where it is.
        let it = judged(0.99, 1.04, 1.0, 1.0);
        assert_eq!(of(&it, Doubt::Spread, 1), Some(11));
        // 0.01 of one run more or less: log(0.05 / 20) / log(0.01) is 1.301.
        let it = judged(1.05, 1.2, 0.2, 1.0);
        assert_eq!(of(&it, Doubt::Many, 20), Some(14));
        assert_eq!(of(&it, Doubt::Few, 8), Some(6));
        assert_eq!(of(&it, Doubt::Noise, 8), None);
        let mut endless = judged(0.9, 1.1, 1.0, 1.0);
        endless.effect.margin = 0.0;
        assert_eq!(of(&endless, Doubt::Spread, 1), None);
        let decided = runs_needed(&it, Verdict::Slower, 1, &Settings::default());
        assert_eq!(decided, None);
    }

    #[test]
    fn a_limit_is_exceeded_only_when_the_whole_interval_is_beyond_it() {
        let of = |part, low, high| {
            let mut judged = judged(low, high, 0.01, 0.5);
            judged.verdict = Some(verdict(&judged));
            Limit { part }.judge(&judged, Better::Lower)
        };
        assert_eq!(of(0.0, 1.001, 1.08), LimitOutcome::Exceeded);
        assert_eq!(of(0.05, 1.001, 1.08), LimitOutcome::Unknown);
        assert_eq!(of(0.05, 1.06, 1.08), LimitOutcome::Exceeded);
        assert_eq!(of(0.05, 1.01, 1.04), LimitOutcome::Kept);
        assert_eq!(of(0.0, 0.98, 1.02), LimitOutcome::Kept);
        assert_eq!(of(0.0, 0.9, 1.02), LimitOutcome::Kept);
        assert_eq!(of(0.0, 0.98, 1.08), LimitOutcome::Unknown);
    }

    #[test]
    fn a_limit_of_what_is_good_is_exceeded_by_less_of_it() {
        let of = |part, low, high| {
            let mut judged = judged(low, high, 0.01, 0.5);
            judged.verdict = Some(judge(&judged, Better::Higher, 1, &Settings::default()));
            Limit { part }.judge(&judged, Better::Higher)
        };
        assert_eq!(of(0.05, 0.90, 0.94), LimitOutcome::Exceeded);
        assert_eq!(of(0.05, 0.90, 0.97), LimitOutcome::Unknown);
        assert_eq!(of(0.05, 0.97, 1.30), LimitOutcome::Kept);
        let neither = judged(1.5, 2.0, 0.01, 0.5);
        let outcome = Limit { part: 0.0 }.judge(&neither, Better::Neither);
        assert_eq!(outcome, LimitOutcome::Kept);
    }

    #[test]
    fn a_limit_of_a_difference_is_a_part_of_the_baseline() {
        let mut it = judged(1.0, 1.0, 0.01, 0.5);
        it.effect.scale = Scale::Linear;
        (it.effect.base, it.effect.shift) = (200.0, 15.0);
        (it.effect.low, it.effect.high, it.effect.margin) = (11.0, 19.0, 1.0);
        it.verdict = Some(verdict(&it));
        let of = |part| Limit { part }.judge(&it, Better::Lower);
        assert_eq!(of(0.05), LimitOutcome::Exceeded);
        assert_eq!(of(0.06), LimitOutcome::Unknown);
        assert_eq!(of(0.10), LimitOutcome::Kept);
    }

    #[test]
    fn every_doubt_is_written_as_one_word() {
        let written = |verdict| serde_json::to_string(&verdict).unwrap();
        assert_eq!(written(Verdict::NoDifference), "\"no-difference\"");
        for doubt in [Doubt::Few, Doubt::Spread, Doubt::Many, Doubt::Noise] {
            assert_eq!(written(Verdict::Undecided(doubt)), "\"undecided\"");
        }
    }
}

//! One number of many runs against the same number of many others: how far apart, between which
//! limits, and how probable that is by chance.

use serde::Serialize;

use super::flips::Flips;
use super::relabel::Relabelings;
use super::robust::{Trimmed, trimmed, trimmed_pairs};
use super::shift::ShiftTest;
use super::{Measure, Refusal, Settings};

/// Fewer runs than this say nothing about their spread, for `claim`.
pub const RUNS_MIN: usize = 5;
/// Fewer values have no variance.
const VALUES_MIN: usize = 2;

/// On which scale values are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Scale {
    /// Natural logarithms, as all values are positive: what is compared is a ratio.
    Log,
    /// The values themselves: what is compared is a difference.
    Linear,
}

/// The values of two sets that are held against each other.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Of runs that have nothing to do with each other: the first set's and the second's.
    Apart(Vec<f64>, Vec<f64>),
    /// Of runs with the same seed, two by two.
    Pairs(Vec<(f64, f64)>),
}

/// How two sets of values relate. Shifts are the second set less the first, on `scale`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Effect {
    /// On which scale shifts are.
    pub scale: Scale,
    /// Whether runs of the same seed were compared.
    pub is_paired: bool,
    /// Values of the first set and of the second.
    pub values: [usize; 2],
    /// Mean of the first set.
    pub base: f64,
    /// Mean of the second set.
    pub other: f64,
    /// The shift: the difference of the means.
    pub shift: f64,
    /// Lower end of the shift's interval; without end when so few runs bound nothing.
    pub low: f64,
    /// Upper end of the shift's interval.
    pub high: f64,
    /// The smallest shift of interest.
    pub margin: f64,
    /// How probable a shift so far from 0, either way, is between sets that do not differ.
    pub p: f64,
    /// How probable a shift so near to 0 is between sets that differ by the margin.
    pub p_same: f64,
    /// The smallest that `p` can be with so many values; 1 when all are the same.
    pub p_least: f64,
    /// The shift of what is left without the ends.
    pub trimmed: Trimmed,
}

impl Values {
    /// All values of the first set and of the second.
    #[must_use]
    pub fn sides(&self) -> [Vec<f64>; 2] {
        match self {
            Self::Apart(base, other) => [base.clone(), other.clone()],
            Self::Pairs(pairs) => pairs.iter().copied().unzip().into(),
        }
    }
}

impl Scale {
    /// The scale for values of which the least is `least`.
    #[must_use]
    pub fn of(least: f64) -> Self {
        if least > 0.0 { Self::Log } else { Self::Linear }
    }

    /// A value on this scale.
    #[must_use]
    pub fn on(self, value: f64) -> f64 {
        match self {
            Self::Log => libm::log(value),
            Self::Linear => value,
        }
    }

    /// A shift as it is said: a ratio, or the difference itself.
    #[must_use]
    pub fn said(self, shift: f64) -> f64 {
        match self {
            Self::Log => libm::exp(shift),
            Self::Linear => shift,
        }
    }

    /// The smallest shift of interest: 3 % more is a shift of log 1.03; of differences it depends
    /// on what is measured.
    #[must_use]
    pub fn margin(self, settings: &Settings, measure: Measure) -> f64 {
        match self {
            Self::Log => libm::log1p(settings.margin),
            Self::Linear => measure.margin(),
        }
    }
}

impl Effect {
    /// The ratio of the second mean to the first, with the ends of its interval; `None` of a
    /// difference.
    #[must_use]
    pub fn ratios(&self) -> Option<[f64; 3]> {
        let shifts = [self.shift, self.low, self.high];
        (self.scale == Scale::Log).then(|| shifts.map(libm::exp))
    }

    /// The shift that `part` more of the first mean is: 0.05 is 5 %.
    #[must_use]
    pub fn shift_of(&self, part: f64) -> f64 {
        match self.scale {
            Scale::Log => libm::log1p(part),
            Scale::Linear => part * self.base.abs(),
        }
    }
}

/// Compares two sets of values. `stream` numbers the comparison: it draws its own relabelings.
///
/// The means are compared, of logarithms where all values are positive, and a shift is tested by
/// relabeling: `Relabelings` of independent runs, `Flips` of pairs. The interval has all shifts
/// that the same test does not refuse.
///
/// # Errors
/// [`Refusal`] when there are too few values, or one is no number.
pub fn effect(
    values: &Values,
    measure: Measure,
    stream: u64,
    settings: &Settings,
) -> Result<Effect, Refusal> {
    let [base, other] = values.sides();
    let is_paired = matches!(values, Values::Pairs(_));
    let have = base.len().min(other.len());
    if have < VALUES_MIN {
        return Err(Refusal::TooFew {
            have,
            need: super::runs_to_decide(1, is_paired, settings.level()),
        });
    }
    let all = base.iter().chain(&other);
    if let Some(value) = all.clone().find(|it| !it.is_finite()) {
        return Err(Refusal::NoNumber { value: *value });
    }
    let scale = Scale::of(all.copied().fold(f64::INFINITY, f64::min));
    let margin = scale.margin(settings, measure);
    let [ours, theirs] = [&base, &other].map(|it| it.iter().map(|it| scale.on(*it)).collect());
    let (ours, theirs): (Vec<f64>, Vec<f64>) = (ours, theirs);
    let level = settings.level();
    let of = |test: &dyn ShiftTest, trimmed: Trimmed| {
        let (low, high) = if settings.intervals {
            test.interval(level)
        } else {
            (f64::NEG_INFINITY, f64::INFINITY)
        };
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        Effect {
            scale,
            is_paired,
            values: [base.len(), other.len()],
            base: mean(&base),
            other: mean(&other),
            shift: test.value(),
            low,
            high,
            margin,
            p: test.p(0.0),
            p_same: test.p_same(margin),
            p_least: if test.reach() == (0.0, 0.0) {
                1.0
            } else {
                test.least()
            },
            trimmed,
        }
    };
    if is_paired {
        let differences: Vec<f64> = theirs.iter().zip(&ours).map(|(b, a)| b - a).collect();
        let flips = Flips::new(&differences, settings.seed, stream);
        return Ok(of(&flips, trimmed_pairs(&differences, level)));
    }
    let relabelings = Relabelings::new(&ours, &theirs, settings.seed, stream);
    Ok(of(&relabelings, trimmed(&ours, &theirs, level)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &Values, measure: Measure) -> Effect {
        effect(values, measure, 0, &Settings::default()).expect("can be compared")
    }

    #[track_caller]
    fn is_near(have: f64, want: f64) {
        assert!((have - want).abs() < 1e-12, "{have}, not {want}");
    }

    #[test]
    fn positive_values_have_a_ratio_of_the_means_of_logarithms() {
        let apart = Values::Apart(vec![1.0, 4.0], vec![2.0, 2.0, 16.0]);
        let it = of(&apart, Measure::Nanos);
        assert_eq!(
            (it.scale, it.is_paired, it.values),
            (Scale::Log, false, [2, 3])
        );
        // Logarithms to the base 2: 0 and 2, 1 and 1 and 4. Their means are 1 and 2.
        is_near(it.shift, libm::log(2.0));
        assert_eq!((it.base, it.other), (2.5, 20.0 / 3.0));
        is_near(it.margin, libm::log(1.03));
        // 2 of the 10 ways; nothing is refused at 5 %.
        is_near(it.p_least, 0.2);
        assert_eq!((it.low, it.high), (f64::NEG_INFINITY, f64::INFINITY));
        let [ratio, low, high] = it.ratios().expect("a ratio");
        is_near(ratio, 2.0);
        assert_eq!((low, high), (0.0, f64::INFINITY));
        is_near(it.shift_of(0.05), libm::log(1.05));
    }

    #[test]
    fn pairs_with_one_ratio_leave_nothing_open() {
        let pairs = (1..=6).map(|it| (f64::from(it), 1.5 * f64::from(it)));
        let it = of(&Values::Pairs(pairs.collect()), Measure::Nanos);
        assert_eq!((it.is_paired, it.values), (true, [6, 6]));
        is_near(it.p, 2.0 / 64.0);
        // One-sided, and of the larger side: the ratio is beyond 1.03.
        assert_eq!(it.p_same, 1.0);
        let ends = [it.shift, it.low, it.high, it.trimmed.shift];
        ends.into_iter()
            .for_each(|end| is_near(end, libm::log(1.5)));
    }

    #[test]
    fn zeros_make_it_a_difference_with_a_margin_in_the_metrics_unit() {
        let values = Values::Apart(vec![0.0, 2.0, 4.0, 6.0], vec![11.0, 12.0, 13.0, 16.0]);
        let it = of(&values, Measure::Count);
        assert_eq!((it.scale, it.margin), (Scale::Linear, 1.0));
        assert_eq!((it.base, it.other, it.shift), (3.0, 13.0, 10.0));
        assert_eq!(it.ratios(), None);
        is_near(it.p, 2.0 / 70.0);
        is_near(it.shift_of(0.05), 0.15);
        let margins = [
            (Measure::Nanos, 10_000.0),
            (Measure::Count, 1.0),
            (Measure::Rate, 1.0),
            (Measure::Millionths, 1_000.0),
            (Measure::Thousandths, 10.0),
            (Measure::Bytes, 1_048_576.0),
            (Measure::Microjoules, 1_000.0),
        ];
        for (measure, margin) in margins {
            assert_eq!(of(&values, measure).margin, margin);
        }
        let negative = Values::Apart(vec![-1.0, 1.0], vec![1.0, 2.0]);
        assert_eq!(of(&negative, Measure::Count).scale, Scale::Linear);
    }

    #[test]
    fn values_that_are_all_the_same_can_show_nothing() {
        let values = Values::Apart(vec![3.0; 6], vec![3.0; 7]);
        let it = of(&values, Measure::Count);
        assert_eq!((it.shift, it.p, it.p_least), (0.0, 1.0, 1.0));
    }

    #[test]
    fn intervals_that_nobody_wants_are_endless() {
        let values = Values::Apart(vec![1.0; 6], vec![3.0; 6]);
        let settings = Settings {
            intervals: false,
            ..Settings::default()
        };
        let it = effect(&values, Measure::Count, 0, &settings).unwrap();
        assert_eq!((it.low, it.high), (f64::NEG_INFINITY, f64::INFINITY));
        is_near(it.p, 2.0 / 924.0);
    }

    #[test]
    fn a_shift_is_said_as_a_ratio_or_as_the_difference_that_it_is() {
        is_near(Scale::Log.said(libm::log(2.5)), 2.5);
        is_near(Scale::Log.said(0.0), 1.0);
        is_near(Scale::Linear.said(-3.0), -3.0);
        is_near(Scale::Linear.said(0.0), 0.0);
        assert_eq!(Scale::of(f64::MIN_POSITIVE), Scale::Log);
        assert_eq!([0.0, -1.0].map(Scale::of), [Scale::Linear; 2]);
    }

    #[test]
    fn one_value_and_values_that_are_no_numbers_are_refused() {
        let refused = |values: &Values| {
            effect(values, Measure::Count, 0, &Settings::default()).expect_err("no answer")
        };
        let few = Values::Apart(vec![1.0], vec![1.0, 2.0, 3.0]);
        assert!(matches!(refused(&few), Refusal::TooFew { have: 1, .. }));
        let pair = Values::Pairs(vec![(1.0, 2.0)]);
        assert!(matches!(refused(&pair), Refusal::TooFew { have: 1, .. }));
        for value in [f64::NAN, f64::INFINITY] {
            let values = Values::Apart(vec![1.0, 2.0], vec![1.0, value]);
            let Refusal::NoNumber { value: told } = refused(&values) else {
                panic!("{values:?}");
            };
            assert_eq!(told.to_bits(), value.to_bits());
        }
    }
}

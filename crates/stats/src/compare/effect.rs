//! One number of many runs against the same number of many others: ratio, interval, probability.

use model::Rng;

use super::{Refusal, Settings};

/// Fewer runs than this say nothing about their spread.
pub const RUNS_MIN: usize = 5;

/// How two sets of values relate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Effect {
    /// Centre of the first set.
    pub base: f64,
    /// Centre of the second set.
    pub other: f64,
    /// `other / base`.
    pub ratio: f64,
    /// Lower end of the ratio's interval.
    pub low: f64,
    /// Upper end of the ratio's interval; infinite when the sets say nothing about it.
    pub high: f64,
    /// How probable a ratio so far from 1, either way, is between sets that do not differ.
    pub p: f64,
}

/// Centre of a set, and how far it may be off.
#[derive(Clone, Copy, Debug)]
struct Centre {
    value: f64,
    /// Its standard error.
    error: f64,
}

/// Compares `other` with `base`. `stream` numbers the comparison: it draws its own resamples.
///
/// The interval is a symmetric bootstrap-t interval of the logarithm of the ratio of the centres.
/// Each set is drawn anew from itself, with replacement, and the distance of the drawn ratio from
/// the measured one is divided by the standard error that the drawn sets have. Unlike quantiles of
/// the drawn ratios it is not too narrow for few runs.
///
/// Source: Hall (1988), "On symmetric bootstrap confidence intervals"; for trimmed means and their
/// standard error Yuen (1974), "The two-sample trimmed t for unequal population variances".
///
/// # Errors
/// [`Refusal`] when the values do not allow a ratio or have no spread.
pub fn effect(
    base: &[f64],
    other: &[f64],
    stream: u64,
    settings: &Settings,
) -> Result<Effect, Refusal> {
    let trim = settings.trim;
    let [first, second] = [check(base, trim)?, check(other, trim)?];
    let log = libm::log(second.value / first.value);
    let error = error_of(first, second);
    let mut rng = Rng::new(settings.seed, stream);
    let mut drawn = (vec![0.0; base.len()], vec![0.0; other.len()]);
    let distances = (0..settings.resamples).map(|_| {
        draw(base, &mut drawn.0, &mut rng);
        draw(other, &mut drawn.1, &mut rng);
        let [first, second] = [centre(&mut drawn.0, trim), centre(&mut drawn.1, trim)];
        let error = error_of(first, second);
        let distance = (libm::log(second.value / first.value) - log).abs();
        // Without any spread in either draw nothing is known, which is as far as can be.
        if error > 0.0 {
            distance / error
        } else {
            f64::INFINITY
        }
    });
    let mut distances: Vec<f64> = distances.collect();
    distances.sort_by(f64::total_cmp);
    let reach = quantile(&distances, settings.confidence) * error;
    let as_far = distances.len() - distances.partition_point(|it| *it < log.abs() / error);
    Ok(Effect {
        base: first.value,
        other: second.value,
        ratio: second.value / first.value,
        low: libm::exp(log - reach),
        high: libm::exp(log + reach),
        p: (as_far + 1) as f64 / (distances.len() + 1) as f64,
    })
}

/// Compares values of which one set has no spread or is zero throughout, such as deadlines that are
/// never missed, between sets that are known to differ by chance in other metrics. `None` when the
/// values do not allow it, as when they are negative.
///
/// Without resampling there is one thing to say: whether all values of one set are above all of the
/// other. The interval has the ratios of the nearest and of the farthest values. How probable that
/// is by chance is counted: of all ways to deal the values to the sets, two separate them.
#[must_use]
pub fn separation(base: &[f64], other: &[f64]) -> Option<Effect> {
    let ends = |values: &[f64]| {
        let min = values.iter().copied().fold(f64::INFINITY, f64::min);
        let max = values.iter().copied().fold(0.0, f64::max);
        (min, max)
    };
    let bad = |value: &f64| !value.is_finite() || *value < 0.0;
    let few = base.len().min(other.len()) < RUNS_MIN;
    if few || base.iter().chain(other).any(bad) {
        return None;
    }
    let (first, second) = (ends(base), ends(other));
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let ratio = |other: f64, base: f64| {
        if other == base { 1.0 } else { other / base }
    };
    let (mean_base, mean_other) = (mean(base), mean(other));
    let constant = first.0 == first.1 && second.0 == second.1;
    let (low, high, p) = if constant && first == second {
        (1.0, 1.0, 1.0)
    } else if second.0 > first.1 || second.1 < first.0 {
        let p = 2.0 / ways(base.len() + other.len(), base.len());
        (ratio(second.0, first.1), ratio(second.1, first.0), p)
    } else {
        (0.0, f64::INFINITY, 1.0)
    };
    Some(Effect {
        base: mean_base,
        other: mean_other,
        ratio: ratio(mean_other, mean_base),
        low,
        high,
        p,
    })
}

/// In how many ways `some` can be chosen of `all`.
fn ways(all: usize, some: usize) -> f64 {
    (0..some).fold(1.0, |ways, at| ways * (all - at) as f64 / (at + 1) as f64)
}

/// Centre of a set that can be compared.
fn check(values: &[f64], trim: u8) -> Result<Centre, Refusal> {
    if values.len() < RUNS_MIN {
        return Err(Refusal::TooFew {
            have: values.len(),
            need: RUNS_MIN,
        });
    }
    if let Some(value) = values.iter().find(|it| !it.is_finite() || **it < 0.0) {
        return Err(Refusal::NoRatio { value: *value });
    }
    if values.iter().all(|value| *value == values[0]) {
        return Err(Refusal::NoSpread {
            value: values[0],
            runs: values.len(),
        });
    }
    let centre = centre(&mut values.to_vec(), trim);
    if centre.value <= 0.0 {
        return Err(Refusal::NoRatio {
            value: centre.value,
        });
    }
    if centre.error <= 0.0 {
        return Err(Refusal::NoSpread {
            value: centre.value,
            runs: values.len(),
        });
    }
    Ok(centre)
}

/// The standard error of the logarithm of the ratio, to first order.
fn error_of(first: Centre, second: Centre) -> f64 {
    let square = |centre: Centre| (centre.error / centre.value) * (centre.error / centre.value);
    (square(first) + square(second)).sqrt()
}

/// The mean of what is left when `trim` per cent of the values are cut off at either end, and its
/// standard error. Sorts the values when it cuts any.
fn centre(values: &mut [f64], trim: u8) -> Centre {
    let count = values.len();
    let cut = count * usize::from(trim) / 100;
    if cut > 0 {
        values.sort_by(f64::total_cmp);
    }
    let kept = &values[cut..count - cut];
    let mean = kept.iter().sum::<f64>() / kept.len() as f64;
    // What was cut off counts with the last value that was kept (a winsorised variance).
    let ends = [kept[0], kept[kept.len() - 1]].map(|end| cut as f64 * end);
    let winsorised = (kept.iter().sum::<f64>() + ends[0] + ends[1]) / count as f64;
    let square = |value: f64| (value - winsorised) * (value - winsorised);
    let inside: f64 = kept.iter().map(|value| square(*value)).sum();
    let outside = cut as f64 * (square(kept[0]) + square(kept[kept.len() - 1]));
    let squares = if cut > 0 { inside + outside } else { inside };
    let kept = kept.len() as f64;
    Centre {
        value: mean,
        error: (squares / (kept * (kept - 1.0))).sqrt(),
    }
}

fn draw(from: &[f64], into: &mut [f64], rng: &mut Rng) {
    for value in into {
        *value = from[rng.below(from.len() as u64) as usize];
    }
}

/// The value that a share of `permille` thousandths does not exceed.
fn quantile(sorted: &[f64], permille: u16) -> f64 {
    let rank = ((sorted.len() + 1) * usize::from(permille)).div_ceil(1000);
    sorted[rank.clamp(1, sorted.len()) - 1]
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: [f64; 6] = [100.0, 101.0, 99.0, 102.0, 98.0, 100.0];

    #[test]
    fn the_ratio_of_scaled_values_is_the_scale_and_its_interval_excludes_one() {
        let other = BASE.map(|value| value * 1.2);
        let effect = effect(&BASE, &other, 0, &Settings::default()).unwrap();
        assert!((effect.ratio - 1.2).abs() < 1e-12, "{effect:?}");
        assert!(effect.low > 1.1 && effect.high < 1.3, "{effect:?}");
        assert!(effect.p < 0.001, "{effect:?}");
        let back = super::effect(&other, &BASE, 0, &Settings::default()).unwrap();
        assert!((back.ratio * effect.ratio - 1.0).abs() < 1e-12);
    }

    #[test]
    fn the_seed_decides_the_interval_and_nothing_else_does() {
        let other = BASE.map(|value| value + 3.0);
        let with = |seed, stream| {
            let settings = Settings {
                seed,
                ..Settings::default()
            };
            effect(&BASE, &other, stream, &settings).unwrap()
        };
        assert_eq!(with(1, 1), with(1, 1));
        assert_ne!(with(1, 1), with(2, 1));
        assert_ne!(with(1, 1), with(1, 2));
    }

    #[test]
    fn the_interval_excludes_one_exactly_when_the_probability_is_small() {
        for shift in 0..40 {
            let other = BASE.map(|value| value + f64::from(shift) * 0.1);
            let effect = effect(&BASE, &other, 3, &Settings::default()).unwrap();
            let excludes = effect.low > 1.0 || effect.high < 1.0;
            assert_eq!(excludes, effect.p < 0.05, "{shift}: {effect:?}");
        }
    }

    #[test]
    fn what_has_no_ratio_or_no_spread_is_refused() {
        let settings = Settings::default();
        let refusal = |values: &[f64]| effect(&BASE, values, 0, &settings).unwrap_err();
        let few = Refusal::TooFew { have: 4, need: 5 };
        assert_eq!(refusal(&BASE[..4]), few);
        let same = Refusal::NoSpread {
            value: 7.0,
            runs: 6,
        };
        assert_eq!(refusal(&[7.0; 6]), same);
        let negative = refusal(&[1.0, 2.0, -1.0, 1.0, 1.0]);
        assert_eq!(negative, Refusal::NoRatio { value: -1.0 });
        assert!(matches!(
            refusal(&[1.0, f64::NAN, 1.0, 1.0, 1.0]),
            Refusal::NoRatio { .. }
        ));
    }

    #[test]
    fn sets_apart_from_each_other_need_no_spread() {
        let apart = separation(&[50.0, 60.0, 55.0, 52.0, 54.0], &[0.0; 5]).unwrap();
        assert_eq!((apart.ratio, apart.low, apart.high), (0.0, 0.0, 0.0));
        // 10 values, 5 of each: 252 ways.
        assert!((apart.p - 2.0 / 252.0).abs() < 1e-12, "{apart:?}");
        let from_zero = separation(&[0.0; 5], &[2.0, 4.0, 3.0, 3.0, 3.0]).unwrap();
        assert_eq!(
            (from_zero.low, from_zero.high),
            (f64::INFINITY, f64::INFINITY)
        );
        let same = separation(&[0.0; 5], &[0.0; 7]).unwrap();
        assert_eq!(
            (same.ratio, same.low, same.high, same.p),
            (1.0, 1.0, 1.0, 1.0)
        );
        let mixed = separation(&[0.0; 5], &[0.0, 0.0, 0.0, 0.0, 9.0]).unwrap();
        assert_eq!((mixed.low, mixed.high, mixed.p), (0.0, f64::INFINITY, 1.0));
        let nearest = separation(&[10.0; 5], &[15.0, 20.0, 16.0, 17.0, 18.0]).unwrap();
        assert_eq!((nearest.low, nearest.high), (1.5, 2.0));
        assert_eq!(separation(&[0.0; 4], &[1.0; 5]), None);
        assert_eq!(separation(&[-1.0; 5], &[1.0; 5]), None);
    }

    #[test]
    fn a_trimmed_mean_forgets_the_ends_and_its_error_is_yuens() {
        let mut values = [2.0, 1.0, 3.0, 4.0, 1000.0];
        let centre = centre(&mut values, 20);
        assert!((centre.value - 3.0).abs() < 1e-12);
        // Winsorised: 2 2 3 4 4, mean 3, squares 4; 4 / (3 * 2).
        assert!((centre.error - (4.0_f64 / 6.0).sqrt()).abs() < 1e-12);
    }

    #[test]
    fn without_trimming_the_error_is_that_of_the_mean() {
        let centre = centre(&mut BASE.to_vec(), 0);
        let variance = (1.0 + 1.0 + 4.0 + 4.0) / 5.0;
        assert!((centre.error - (variance / 6.0_f64).sqrt()).abs() < 1e-12);
    }

    #[test]
    fn trimming_half_of_all_that_is_the_same_leaves_no_spread() {
        let settings = Settings {
            trim: 40,
            ..Settings::default()
        };
        let values = [5.0, 5.0, 5.0, 5.0, 9.0];
        let refusal = effect(&BASE, &values, 0, &settings).unwrap_err();
        assert!(matches!(refusal, Refusal::NoSpread { .. }), "{refusal}");
    }
}

//! A mean, or the ratio of two means, with its interval.

use super::contrast::{Contrast, Scale, Term};
use super::judge::{Rules, stream};

/// The mean of `values`, or its ratio to that of `base`, with the ends of its interval of 95 %:
/// value, low and high. `name` numbers the resamples. `None` where the values allow no estimate:
/// too few, or no ratio of them.
pub fn interval(
    name: &str,
    values: &[f64],
    base: Option<&[f64]>,
    rules: &Rules,
) -> Option<[f64; 3]> {
    let mut terms = vec![Term {
        weight: 1.0,
        values,
    }];
    terms.extend(base.map(|values| Term {
        weight: -1.0,
        values,
    }));
    let scale = if base.is_some() {
        Scale::Log
    } else {
        Scale::Linear
    };
    let contrast = Contrast {
        terms: &terms,
        scale,
        seed: rules.seed,
        stream: stream(name, 0),
        resamples: rules.resamples,
    };
    let it = contrast.estimate()?;
    let (low, high) = it.interval(950);
    let ends = [it.value, low, high];
    Some(match scale {
        Scale::Log => ends.map(libm::exp),
        Scale::Linear => ends,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_has_an_interval_around_the_ratio_of_the_means() {
        let (few, more) = ([9.0, 10.0, 11.0, 9.5, 10.5], [19.0, 20.0, 21.0, 19.5, 20.5]);
        let rules = Rules::default();
        let [value, low, high] = interval("t", &few, Some(&more), &rules).unwrap();
        assert!((value - 0.5).abs() < 1e-9, "{value}");
        assert!(0.4 < low && low < 0.5 && 0.5 < high && high < 0.6);
        let [mean, low, high] = interval("t", &few, None, &rules).unwrap();
        assert!((mean - 10.0).abs() < 1e-9 && low < 10.0 && high > 10.0);
        assert_eq!(interval("t", &few[..3], None, &rules), None);
        let same = interval("t", &[7.0], None, &rules).unwrap();
        assert_eq!(same, [7.0; 3], "one value is all there is");
    }
}

//! What stands beside a mean: a trimmed mean, and the runs that lie far from all others.

/// Per cent of the values that are left out at either end.
pub const TRIM_PERCENT: usize = 20;
/// How many lengths of the middle half of all values lie between that and an outlier.
const FENCE: f64 = 3.0;

/// The shift of what is left when a fifth of the values is left out at either end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trimmed {
    /// The difference of the trimmed means.
    pub shift: f64,
    /// Lower end of its interval.
    pub low: f64,
    /// Upper end of its interval.
    pub high: f64,
}

/// A trimmed mean, and how far it may be off.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Centre {
    mean: f64,
    /// The square of its standard error.
    square: f64,
    /// Number of values that were kept, less 1.
    freedom: f64,
}

/// Compares the trimmed means of independent values by Yuen's t.
///
/// Source: Yuen (1974), "The two-sample trimmed t for unequal population variances".
#[must_use]
pub fn trimmed(base: &[f64], other: &[f64], alpha: f64) -> Trimmed {
    let [first, second] = [base, other].map(centre);
    let square = first.square + second.square;
    let part = |centre: Centre| centre.square * centre.square / centre.freedom;
    let freedom = square * square / (part(first) + part(second));
    reaching(second.mean - first.mean, square, freedom, alpha)
}

/// The trimmed mean of differences.
///
/// Source: Tukey and `McLaughlin` (1963), "Less vulnerable confidence and significance procedures
/// for location based on a single sample".
#[must_use]
pub fn trimmed_pairs(differences: &[f64], alpha: f64) -> Trimmed {
    let centre = centre(differences);
    reaching(centre.mean, centre.square, centre.freedom, alpha)
}

fn reaching(shift: f64, square: f64, freedom: f64, alpha: f64) -> Trimmed {
    // Without variance the degrees of freedom are 0 by 0.
    let reach = if square > 0.0 {
        student(alpha, freedom) * square.sqrt()
    } else {
        0.0
    };
    Trimmed {
        shift,
        low: shift - reach,
        high: shift + reach,
    }
}

/// The mean of the values without a fifth at either end, and the square of its error. What is left
/// out counts there with the last value that is kept (a winsorised variance).
fn centre(values: &[f64]) -> Centre {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (count, cut) = (sorted.len(), sorted.len() * TRIM_PERCENT / 100);
    let kept = &sorted[cut..count - cut];
    let [first, last] = [kept[0], kept[kept.len() - 1]];
    let all = || {
        let ends = std::iter::repeat_n(first, cut).chain(std::iter::repeat_n(last, cut));
        kept.iter().copied().chain(ends)
    };
    let winsorised = all().sum::<f64>() / count as f64;
    let squares: f64 = all().map(|it| (it - winsorised) * (it - winsorised)).sum();
    let size = kept.len() as f64;
    Centre {
        mean: kept.iter().sum::<f64>() / size,
        square: squares / (size * (size - 1.0)),
        freedom: size - 1.0,
    }
}

/// The t that is exceeded, either way, with the probability `alpha` by Student's distribution of
/// `freedom` degrees, by halving.
pub(super) fn student(alpha: f64, freedom: f64) -> f64 {
    // See `beyond`, at freedom / (freedom + t^2).
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if beta(middle, freedom / 2.0, 0.5) < alpha {
            low = middle;
        } else {
            high = middle;
        }
    }
    (freedom * (1.0 - low) / low).sqrt()
}

/// The probability that Student's distribution of `freedom` degrees is farther from 0 than `t`.
///
/// Source: as of `beta`, 8.17(iii) and 26.7.1.
pub(super) fn beyond(t: f64, freedom: f64) -> f64 {
    if !t.is_finite() {
        return 0.0;
    }
    beta(freedom / (freedom + t * t), freedom / 2.0, 0.5)
}

/// The regularised incomplete beta function of `a` and `b` at `x`, in `0..=1`.
///
/// Source: Olver and others (2010), "NIST Handbook of Mathematical Functions", 8.17.4 and 8.17.22,
/// the latter evaluated from its end.
pub(super) fn beta(x: f64, a: f64, b: f64) -> f64 {
    /// Steps of the continued fraction; half of them are enough for 16 digits of what is asked
    /// here.
    const STEPS: u32 = 200;
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - beta(1.0 - x, b, a);
    }
    let step = |at: u32| {
        let m = f64::from(at / 2);
        match at % 2 {
            0 => m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m)),
            _ => -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0)),
        }
    };
    let fraction = (1..=STEPS)
        .rev()
        .fold(1.0, |rest, at| 1.0 + step(at) / rest);
    let scale = libm::lgamma(a + b) - libm::lgamma(a) - libm::lgamma(b);
    let front = libm::exp(a * libm::log(x) + b * libm::log1p(-x) + scale) / a;
    if x > 0.0 { front / fraction } else { 0.0 }
}

/// The places of the outliers: values farther from the middle half of all than three times its
/// length, and farther than `margin`.
///
/// Source: Tukey (1977), "Exploratory Data Analysis", 2D: what lies beyond the outer fences is
/// "far out".
#[must_use]
pub fn outliers(values: &[f64], margin: f64) -> Vec<usize> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let quarter = |number: usize| sorted[(number * sorted.len()).div_ceil(4).max(1) - 1];
    if sorted.is_empty() {
        return Vec::new();
    }
    let (low, high) = (quarter(1), quarter(3));
    let fence = (FENCE * (high - low)).max(margin);
    let is_out = |value: f64| value < low - fence || value > high + fence;
    let places = values.iter().enumerate();
    let found = places.filter(|(_, value)| is_out(**value));
    found.map(|(at, _)| at).collect()
}

/// How probable it is that so many of two sets stand out, `[standing out, all]` each, or something
/// less probable, if nothing but chance puts them into one or the other set.
///
/// Source: Fisher (1922), "On the interpretation of chi-squared from contingency tables, and the
/// calculation of P"; two-sided by the probabilities that are not larger.
///
/// # Panics
/// When more stand out than there are.
#[must_use]
pub fn fisher([first, all_first]: [usize; 2], [second, all_second]: [usize; 2]) -> f64 {
    /// Probabilities that agree to so small a part are ties.
    const TIE: f64 = 1e-7;
    assert!(first <= all_first && second <= all_second, "a part of all");
    let out = first + second;
    let ways = |all: usize, some: usize| {
        let factorial = |number: usize| libm::lgamma(number as f64 + 1.0);
        factorial(all) - factorial(some) - factorial(all - some)
    };
    let log = |first: usize| ways(all_first, first) + ways(all_second, out - first);
    // Each in units of the real one.
    let chance = |other: usize| libm::exp(log(other) - log(first));
    let possible = || (out.saturating_sub(all_second)..=out.min(all_first)).map(chance);
    let rare: f64 = possible().filter(|it| *it <= 1.0 + TIE).sum();
    rare / possible().sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn is_near(have: f64, want: f64) {
        assert!(
            (have - want).abs() < 1e-6 * want.abs().max(1e-3),
            "{have}, not {want}"
        );
    }

    #[test]
    fn students_quantiles_are_those_of_every_table() {
        for (freedom, want) in [
            (1.0, 12.706_204_736),
            (2.0, 4.302_652_730),
            (4.0, 2.776_445_105),
            (10.0, 2.228_138_852),
            (30.0, 2.042_272_456),
            (1000.0, 1.962_339_081),
        ] {
            is_near(student(0.05, freedom), want);
        }
        is_near(student(0.01, 5.0), 4.032_142_984);
        // Of 2 degrees it is (1 - alpha) * sqrt(2 / (alpha * (2 - alpha))).
        is_near(student(0.5, 2.0), 0.5 * (2.0_f64 / 0.75).sqrt());
    }

    #[test]
    fn the_incomplete_beta_function_is_a_power_when_b_is_1() {
        is_near(beta(0.3, 2.0, 1.0), 0.09);
        is_near(beta(0.9, 2.0, 1.0), 0.81);
        is_near(beta(0.5, 3.5, 3.5), 0.5);
        assert_eq!((beta(0.0, 2.0, 3.0), beta(1.0, 2.0, 3.0)), (0.0, 1.0));
    }

    #[test]
    fn a_trimmed_mean_forgets_the_ends_and_its_error_is_yuens() {
        let centre = centre(&[2.0, 1.0, 3.0, 4.0, 1000.0]);
        is_near(centre.mean, 3.0);
        // Winsorised: 2 2 3 4 4, mean 3, squares 4; 4 / (3 * 2).
        is_near(centre.square, 4.0 / 6.0);
        is_near(centre.freedom, 2.0);
    }

    #[test]
    fn yuens_interval_has_the_degrees_of_both_sets() {
        let base = [2.0, 1.0, 3.0, 4.0, 1000.0];
        let other = base.map(|value| value + 10.0);
        let it = trimmed(&base, &other, 0.05);
        // Squares 2/3 and 2/3, so 4 degrees, and the square root of 4/3 times 2.776.
        let reach = 2.776_445_105 * (4.0_f64 / 3.0).sqrt();
        is_near(it.shift, 10.0);
        is_near(it.low, 10.0 - reach);
        is_near(it.high, 10.0 + reach);
        // One set without variance: the other's 2 degrees.
        let it = trimmed(&[5.0; 5], &other, 0.05);
        is_near(it.high - it.shift, 4.302_652_730 * (2.0_f64 / 3.0).sqrt());
        let same = trimmed(&[5.0; 5], &[7.0; 6], 0.05);
        assert_eq!((same.low, same.shift, same.high), (2.0, 2.0, 2.0));
    }

    #[test]
    fn trimmed_differences_have_one_set_of_degrees() {
        let it = trimmed_pairs(&[2.0, 1.0, 3.0, 4.0, 1000.0], 0.05);
        is_near(it.shift, 3.0);
        is_near(it.high - it.shift, 4.302_652_730 * (2.0_f64 / 3.0).sqrt());
    }

    #[test]
    fn an_outlier_is_beyond_three_lengths_of_the_middle_half_and_the_margin() {
        // Quartiles 2 and 6 of 1 to 8: the fences are -10 and 18.
        let mut values: Vec<f64> = (1..=8).map(f64::from).collect();
        values[3] = 18.0;
        assert!(outliers(&values, 0.0).is_empty(), "on the fence");
        values[3] = 19.5;
        // Now the third quartile is 7 and the length 5: the fence is 22.
        assert!(outliers(&values, 0.0).is_empty());
        values[3] = 22.1;
        assert_eq!(outliers(&values, 0.0), [3]);
        assert!(outliers(&values, 15.2).is_empty(), "of no interest");
        values[0] = -13.1;
        assert_eq!(outliers(&values, 0.0), [0, 3]);
        assert_eq!(outliers(&[0.0, 0.0, 0.0, 0.0, 3.0], 1.0), [4]);
        assert!(outliers(&[], 1.0).is_empty());
    }

    #[test]
    fn fishers_tea_is_tasted() {
        // The lady who tasted tea: 3 of 4 and 1 of 4; 1 + 16 + 16 + 1 of 70 ways are as extreme.
        is_near(fisher([3, 4], [1, 4]), 34.0 / 70.0);
        is_near(fisher([4, 4], [0, 4]), 2.0 / 70.0);
        is_near(fisher([0, 20], [0, 20]), 1.0);
        // 0 of 10 and 5 of 10: 2 * 252 of 15504 ways.
        is_near(fisher([0, 10], [5, 10]), 504.0 / 15504.0);
        is_near(fisher([5, 10], [0, 10]), 504.0 / 15504.0);
        // Sets of different sizes: 2 of 2 and 0 of 3 is 1 of 10 ways, and no other is as rare.
        is_near(fisher([2, 2], [0, 3]), 0.1);
    }
}

//! A weighted sum of the means of sets of values, or of their logarithms, and how far it may be
//! off. A ratio is the difference of two logarithms; a slope is a weighted sum, too.

use model::Rng;

/// A set of values, one a run, and the weight of its mean.
#[derive(Clone, Copy, Debug)]
pub struct Term<'a> {
    /// Weight of the set's mean.
    pub weight: f64,
    /// At least one value.
    pub values: &'a [f64],
}

/// Of what the sum is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Of the means.
    Linear,
    /// Of their natural logarithms.
    Log,
}

/// What is estimated.
#[derive(Clone, Copy, Debug)]
pub struct Contrast<'a> {
    /// The sets.
    pub terms: &'a [Term<'a>],
    /// Of what the sum is made.
    pub scale: Scale,
    /// Seed of the resamples.
    pub seed: u64,
    /// Number of this contrast among those of the seed: it draws its own resamples.
    pub stream: u64,
    /// How often each set is drawn anew.
    pub resamples: u32,
}

/// A contrast's value, and how far it may be off.
#[derive(Clone, Debug, PartialEq)]
pub struct Estimate {
    /// The value; infinite for the logarithm of zero.
    pub value: f64,
    /// Its standard error; 0 when no set has any spread: then nothing was left to chance.
    pub error: f64,
    /// Distances of drawn values in standard errors, in rising order; empty without spread.
    distances: Vec<f64>,
}

/// Sets with spread must have so many values.
pub(super) const RUNS_MIN: usize = 5;

impl Contrast<'_> {
    /// Estimates it, with a symmetric bootstrap-t distribution of its error: each set is drawn anew
    /// from itself, with replacement, and the distance of the drawn value from the measured one is
    /// divided by the standard error that the drawn sets have, or, when they have none because most
    /// values are the same, by that of all.
    ///
    /// `None` when a set with spread has fewer than 5 values, and when a logarithm is asked of a
    /// negative mean, or of zero where values vary.
    ///
    /// Source: Hall (1988), "On symmetric bootstrap confidence intervals".
    ///
    /// # Panics
    /// When a set is empty.
    pub fn estimate(&self) -> Option<Estimate> {
        let few = |term: &Term<'_>| !is_constant(term.values) && term.values.len() < RUNS_MIN;
        if self.terms.iter().any(few) {
            return None;
        }
        let (value, error) = self.of(self.terms)?;
        if error == 0.0 || self.is_beyond(value) {
            return Some(Estimate {
                value,
                error: 0.0,
                distances: Vec::new(),
            });
        }
        if !value.is_finite() {
            return None;
        }
        let mut rng = Rng::new(self.seed, self.stream);
        let mut drawn: Vec<Vec<f64>> = self.terms.iter().map(|it| it.values.to_vec()).collect();
        let mut distances: Vec<f64> = (0..self.resamples)
            .map(|_| {
                for (into, term) in drawn.iter_mut().zip(self.terms) {
                    draw(term.values, into, &mut rng);
                }
                let again: Vec<Term<'_>> = drawn
                    .iter()
                    .zip(self.terms)
                    .map(|(values, term)| Term {
                        weight: term.weight,
                        values,
                    })
                    .collect();
                match self.of(&again) {
                    // Most runs gave the same: a draw of these alone has the error of all.
                    Some((drawn, own)) if drawn.is_finite() => {
                        (drawn - value).abs() / if own > 0.0 { own } else { error }
                    }
                    _ => f64::INFINITY,
                }
            })
            .collect();
        distances.sort_by(f64::total_cmp);
        Some(Estimate {
            value,
            error,
            distances,
        })
    }

    /// Whether the logarithm is that of zero and nothing else could have come of it: one set has
    /// zeros only, the others have none.
    fn is_beyond(&self, value: f64) -> bool {
        let all_or_none = |term: &Term<'_>| {
            let zeros = term.values.iter().filter(|it| **it == 0.0).count();
            zeros == 0 || zeros == term.values.len() && zeros >= RUNS_MIN
        };
        !value.is_finite() && self.terms.iter().all(all_or_none)
    }

    /// Value and standard error.
    fn of(&self, terms: &[Term<'_>]) -> Option<(f64, f64)> {
        let (mut value, mut squares) = (0.0, 0.0);
        for term in terms {
            let (sum, square) = part(term.weight, term.values, self.scale)?;
            value += sum;
            squares += square;
        }
        // The logarithms of two zeros: they are the same.
        let value = if f64::is_nan(value) { 0.0 } else { value };
        Some((value, squares.sqrt()))
    }
}

/// One set's part of the sum, and of the square of its error to first order.
fn part(weight: f64, values: &[f64], scale: Scale) -> Option<(f64, f64)> {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let square = if is_constant(values) {
        0.0
    } else {
        let squares: f64 = values.iter().map(|it| (it - mean) * (it - mean)).sum();
        squares / (count * (count - 1.0))
    };
    match scale {
        Scale::Linear => Some((weight * mean, weight * weight * square)),
        Scale::Log if mean > 0.0 => {
            let relative = square / (mean * mean);
            Some((weight * libm::log(mean), weight * weight * relative))
        }
        Scale::Log if mean == 0.0 && square == 0.0 => Some((weight * f64::NEG_INFINITY, 0.0)),
        Scale::Log => None,
    }
}

fn is_constant(values: &[f64]) -> bool {
    values.iter().all(|value| *value == values[0])
}

fn draw(from: &[f64], into: &mut [f64], rng: &mut Rng) {
    for value in into {
        *value = from[rng.below(from.len() as u64) as usize];
    }
}

impl Estimate {
    /// The interval that holds the true value in `permille` of 1000 cases.
    pub fn interval(&self, permille: u16) -> (f64, f64) {
        let Some(last) = self.distances.len().checked_sub(1) else {
            return (self.value, self.value);
        };
        let rank = ((self.distances.len() + 1) * usize::from(permille)).div_ceil(1000);
        let reach = self.distances[rank.clamp(1, last + 1) - 1] * self.error;
        (self.value - reach, self.value + reach)
    }

    /// How probable a value so far above `bound` is if the true one is not above it; 0 or 1 when
    /// nothing was left to chance.
    pub fn p_above(&self, bound: f64) -> f64 {
        if self.distances.is_empty() {
            return if self.value > bound { 0.0 } else { 1.0 };
        }
        let distance = (self.value - bound) / self.error;
        let len = self.distances.len();
        let as_far = len - self.distances.partition_point(|it| *it < distance.abs());
        let tail = (as_far + 1) as f64 / (len + 1) as f64 / 2.0;
        if distance > 0.0 { tail } else { 1.0 - tail }
    }

    /// The same below `bound`.
    pub fn p_below(&self, bound: f64) -> f64 {
        if self.distances.is_empty() {
            return if self.value < bound { 0.0 } else { 1.0 };
        }
        1.0 - self.p_above(bound)
    }

    /// How probable this is if the true value is not between `low` and `high`: two one-sided tests.
    ///
    /// Source: Schuirmann (1987), "A comparison of the two one-sided tests procedure and the power
    /// approach for assessing the equivalence of average bioavailability".
    pub fn p_between(&self, low: f64, high: f64) -> f64 {
        if self.distances.is_empty() {
            return if (low..=high).contains(&self.value) {
                0.0
            } else {
                1.0
            };
        }
        self.p_above(low).max(self.p_below(high))
    }

    /// How probable this is if the true value is between `low` and `high`.
    pub fn p_outside(&self, low: f64, high: f64) -> f64 {
        let both = 2.0 * self.p_below(low).min(self.p_above(high));
        both.min(1.0)
    }

    /// Whether nothing was left to chance.
    pub const fn is_exact(&self) -> bool {
        self.distances.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: [f64; 8] = [100.0, 101.0, 99.0, 102.0, 98.0, 100.0, 101.0, 99.0];

    fn of(terms: &[Term<'_>], scale: Scale) -> Option<Estimate> {
        let contrast = Contrast {
            terms,
            scale,
            seed: 1,
            stream: 0,
            resamples: 4_000,
        };
        contrast.estimate()
    }

    fn ratio(base: &[f64], other: &[f64]) -> Option<Estimate> {
        let terms = [(1.0, other), (-1.0, base)].map(|(weight, values)| Term { weight, values });
        of(&terms, Scale::Log)
    }

    #[test]
    fn probabilities_of_both_sides_sum_to_one_and_fall_with_the_distance() {
        let other = BASE.map(|value| value + 1.0);
        let it = ratio(&BASE, &other).unwrap();
        for bound in [-0.02, 0.0, 0.005, 0.03] {
            let sum = it.p_above(bound) + it.p_below(bound);
            assert!((sum - 1.0).abs() < 1e-12, "{bound}");
        }
        assert!(it.p_above(-0.02) < 0.001);
        assert!(it.p_above(0.0) > 0.01 && it.p_above(0.0) < 0.2);
        assert!(it.p_between(-0.05, 0.05) < 0.001);
        assert!(it.p_outside(-0.05, 0.05) > 0.99);
        assert!(it.p_outside(0.05, 0.1) < 0.01);
    }

    #[test]
    fn a_slope_is_a_contrast() {
        let sets: Vec<Vec<f64>> = (0..3_u8)
            .map(|at| BASE.iter().map(|it| it + 10.0 * f64::from(at)).collect())
            .collect();
        let terms: Vec<Term<'_>> = [-0.5, 0.0, 0.5]
            .into_iter()
            .zip(&sets)
            .map(|(weight, values)| Term { weight, values })
            .collect();
        let it = of(&terms, Scale::Linear).unwrap();
        assert!((it.value - 10.0).abs() < 1e-12);
        let (low, high) = it.interval(950);
        assert!(low > 9.0 && high < 11.0 && !it.is_exact());
    }

    /// Of one set it is that of its mean, times the weight; errors of several add up in squares.
    #[test]
    fn the_error_is_the_standard_error_of_the_sum() {
        // Variances of 10 and 2.5 between runs, so 2 and 0.5 of the means.
        let (wide, narrow) = ([1.0, 3.0, 5.0, 7.0, 9.0], [1.0, 2.0, 3.0, 4.0, 5.0]);
        // Ten values that are 2.5 off their mean each.
        let many = [0.0, 0.0, 0.0, 0.0, 0.0, 5.0, 5.0, 5.0, 5.0, 5.0];
        let error = |terms: &[(f64, &[f64])], scale| {
            let term = |&(weight, values)| Term { weight, values };
            of(&terms.iter().map(term).collect::<Vec<_>>(), scale)
                .unwrap()
                .error
        };
        let is = |found: f64, square: f64| {
            assert!((found * found - square).abs() < 1e-12, "{found} {square}");
        };
        is(error(&[(1.0, &wide)], Scale::Linear), 2.0);
        is(error(&[(-3.0, &wide)], Scale::Linear), 9.0 * 2.0);
        is(
            error(&[(2.0, &wide), (-1.0, &narrow)], Scale::Linear),
            4.0 * 2.0 + 0.5,
        );
        is(error(&[(1.0, &many)], Scale::Linear), 62.5 / 90.0);
        // That of a logarithm is the relative one.
        is(error(&[(-2.0, &wide)], Scale::Log), 4.0 * 2.0 / 25.0);
    }

    #[test]
    fn values_without_spread_leave_nothing_to_chance() {
        let it = ratio(&[4.0, 4.0], &[3.0]).unwrap();
        assert!(it.is_exact());
        assert_eq!(it.interval(950), (it.value, it.value));
        assert_eq!((it.p_below(0.0), it.p_above(0.0)), (0.0, 1.0));
        assert_eq!(ratio(&[0.0], &[0.0]).unwrap().value, 0.0);
        assert_eq!(ratio(&[0.0], &[5.0]).unwrap().value, f64::INFINITY);
        assert_eq!(ratio(&[5.0], &[0.0]).unwrap().p_below(0.0), 0.0);
        assert_eq!(it.p_between(it.value, 0.0), 0.0);
    }

    #[test]
    fn a_single_value_that_differs_is_no_reason_for_an_endless_interval() {
        let mut nearly = [100.0; 20];
        nearly[7] = 100.1;
        let it = ratio(&[110.0; 20], &nearly).unwrap();
        let (low, high) = it.interval(950);
        assert!(
            !it.is_exact() && low > -0.0964 && high < -0.0943,
            "{low} {high}"
        );
        assert!(it.p_below(0.0) < 0.001);
    }

    #[test]
    fn too_few_values_and_logarithms_of_nothing_are_refused() {
        assert_eq!(ratio(&BASE, &[1.0, 2.0, 3.0, 4.0]), None);
        assert_eq!(ratio(&BASE, &[-1.0]), None);
        assert_eq!(ratio(&BASE, &[1.0, -1.0, 0.0, 0.0, 0.0]), None);
        assert_eq!(ratio(&BASE, &[0.0]), None);
        let never = ratio(&BASE, &[0.0; 5]).unwrap();
        assert_eq!((never.value, never.p_below(0.0)), (f64::NEG_INFINITY, 0.0));
    }
}

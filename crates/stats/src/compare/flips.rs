//! Pairs of values: every way to exchange the two of a pair.

use model::Rng;

use super::shift::{EXACT_MAX, ShiftTest, samples};

/// Sums that differ by so small a part of all differences are ties: rounding must not decide.
const TIE: f64 = 1e-12;

/// What a flip takes from the sum of the differences.
#[derive(Clone, Copy, Debug, Default)]
struct Flipped {
    /// Sum of the flipped differences less their mean.
    sum: f64,
    /// How many are flipped.
    count: f64,
}

/// The test of pairs by flips of the signs of their differences.
///
/// If the two of a pair come from one distribution, a difference is as probable as its opposite, so
/// the share of flips that give a t as large is the probability. The squares of the differences do
/// not change by flips, so that their sum orders them as t does. Differences that are all above
/// the shift, or all below, are the most extreme by that.
///
/// Source: Fisher (1935), "The Design of Experiments", section 21; Konietschke and Pauly (2014),
/// "Bootstrapping and permuting paired t-test type statistics", on why it is right for many pairs
/// also when the differences are not symmetric.
#[derive(Debug)]
pub struct Flips {
    /// The mean difference.
    value: f64,
    /// Number of pairs.
    pairs: f64,
    flipped: Vec<Flipped>,
    /// Whether no flip is left out.
    is_exact: bool,
    /// The least and the largest difference.
    reach: (f64, f64),
    /// Sum of the distances of the differences from their mean.
    spread: f64,
}

impl Flips {
    /// Flips the differences, of which there is at least one. Stream `stream` of `seed` is drawn
    /// from when there are too many ways.
    pub fn new(differences: &[f64], seed: u64, stream: u64) -> Self {
        let pairs = differences.len() as f64;
        let value = differences.iter().sum::<f64>() / pairs;
        let centred: Vec<f64> = differences.iter().map(|it| it - value).collect();
        let is_exact = libm::exp2(pairs) <= EXACT_MAX;
        let flipped = if is_exact {
            every(&centred)
        } else {
            sampled(&centred, &mut Rng::new(seed, stream))
        };
        let least = differences.iter().copied().fold(f64::INFINITY, f64::min);
        let most = differences
            .iter()
            .copied()
            .fold(f64::NEG_INFINITY, f64::max);
        Self {
            value,
            pairs,
            flipped,
            is_exact,
            reach: (least, most),
            spread: centred.iter().map(|it| it.abs()).sum(),
        }
    }

    /// The probability: of all flips those that `counts`, given the sum of the flipped differences
    /// from `shift` and what counts as nothing.
    fn share(&self, shift: f64, counts: impl Fn(f64, f64) -> bool) -> f64 {
        let moved = self.value - shift;
        let tie = TIE * (self.spread + self.pairs * moved.abs());
        let sums = self.flipped.iter().map(|it| it.sum + it.count * moved);
        let number = sums.filter(|sum| counts(*sum, tie)).count() as f64;
        let all = self.flipped.len() as f64;
        if self.is_exact {
            number / all
        } else {
            (number + 1.0) / (all + 1.0)
        }
    }
}

impl ShiftTest for Flips {
    fn value(&self) -> f64 {
        self.value
    }

    fn reach(&self) -> (f64, f64) {
        self.reach
    }

    fn least(&self) -> f64 {
        least(self.pairs)
    }

    fn p_above(&self, shift: f64) -> f64 {
        if shift < self.reach.0 {
            return self.least() / 2.0;
        }
        self.share(shift, |sum, tie| sum <= tie)
    }

    fn p_below(&self, shift: f64) -> f64 {
        if shift > self.reach.1 {
            return self.least() / 2.0;
        }
        self.share(shift, |sum, tie| sum >= -tie)
    }

    fn p(&self, shift: f64) -> f64 {
        if shift < self.reach.0 || shift > self.reach.1 {
            return self.least();
        }
        // The sum is at least as far from 0 when what was flipped is of the other sign, or more
        // than all of it.
        let all = self.pairs * (self.value - shift);
        self.share(shift, |sum, tie| {
            (all - 2.0 * sum).abs() >= all.abs() - 2.0 * tie
        })
    }
}

/// The smallest probability that flips of so many pairs give.
pub fn least(pairs: f64) -> f64 {
    (2.0 * libm::exp2(-pairs)).min(1.0)
}

/// All flips.
fn every(centred: &[f64]) -> Vec<Flipped> {
    let mut found = vec![Flipped::default()];
    for value in centred {
        let with = |it: &Flipped| Flipped {
            sum: it.sum + value,
            count: it.count + 1.0,
        };
        let more: Vec<Flipped> = found.iter().map(with).collect();
        found.extend(more);
    }
    found
}

/// Flips drawn at random.
fn sampled(centred: &[f64], rng: &mut Rng) -> Vec<Flipped> {
    let draws = (0..samples(centred.len())).map(|_| {
        let mut it = Flipped::default();
        for values in centred.chunks(64) {
            let mut bits = rng.next_u64();
            for value in values {
                let chosen = (bits & 1) as f64;
                it.sum += chosen * value;
                it.count += chosen;
                bits >>= 1;
            }
        }
        it
    });
    draws.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shares of all flips with a sum as large, as small and as far from 0, one by one.
    fn by_hand(differences: &[f64], shift: f64) -> [f64; 3] {
        let moved: Vec<f64> = differences.iter().map(|it| it - shift).collect();
        let real: f64 = moved.iter().sum();
        let mut counts = [0.0; 3];
        for mask in 0_u32..1 << moved.len() {
            let signed = moved.iter().enumerate();
            let sum: f64 = signed
                .map(|(at, it)| if mask >> at & 1 == 1 { -it } else { *it })
                .sum();
            counts[0] += f64::from(u8::from(sum >= real - 1e-9));
            counts[1] += f64::from(u8::from(sum <= real + 1e-9));
            counts[2] += f64::from(u8::from(sum.abs() >= real.abs() - 1e-9));
        }
        counts.map(|count| count / f64::from(1_u32 << moved.len()))
    }

    fn asked(differences: &[f64], shift: f64) -> [f64; 3] {
        let it = Flips::new(differences, 1, 0);
        [it.p_above(shift), it.p_below(shift), it.p(shift)]
    }

    #[test]
    fn three_pairs_have_eight_flips() {
        let it = Flips::new(&[1.0, 2.0, 6.0], 1, 0);
        assert_eq!(
            (it.value(), it.reach(), it.least()),
            (3.0, (1.0, 6.0), 0.25)
        );
        assert_eq!(asked(&[1.0, 2.0, 6.0], 0.0), [0.125, 1.0, 0.25]);
        // Differences -1 0 4 have the sums 3 3 5 5 -3 -3 -5 -5: 3 is reached by four.
        assert_eq!(asked(&[1.0, 2.0, 6.0], 2.0), [0.5, 0.75, 1.0]);
        assert_eq!(asked(&[1.0, 2.0, 6.0], 7.0), [1.0, 0.125, 0.25]);
        assert_eq!([least(6.0), least(1.0)], [0.031_25, 1.0]);
    }

    #[test]
    fn the_share_of_flips_is_that_of_counting_them_one_by_one() {
        let mut rng = Rng::new(4, 0);
        for round in 0..60 {
            let differences = (0..4 + round % 5).map(|_| rng.below(9) as f64 - 3.0);
            let differences: Vec<f64> = differences.collect();
            for shift in [-4.0, -1.0, 0.0, 0.5, 2.0, 6.0] {
                let have = asked(&differences, shift);
                let want = by_hand(&differences, shift);
                for (have, want) in have.iter().zip(want) {
                    assert!(
                        (have - want).abs() < 1e-12,
                        "{differences:?} {shift}: {have} {want}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_sample_of_flips_says_nearly_the_same() {
        let mut rng = Rng::new(8, 0);
        let differences: Vec<f64> = (0..18).map(|_| rng.unit() - 0.4).collect();
        let it = Flips::new(&differences, 1, 0);
        assert!(!it.is_exact, "262,144 are too many");
        let want = by_hand(&differences, 0.0)[2];
        // Five standard errors of a share of 9,999.
        let error = 5.0 * (want * (1.0 - want) / 9_999.0).sqrt();
        assert!((it.p(0.0) - want).abs() < error, "{} {want}", it.p(0.0));
        assert_eq!(it.share(0.0, |_, _| false), 1.0 / 10_000.0);
        // The flips of more than 64 pairs take more than one word.
        let many: Vec<f64> = (0..100).map(|_| rng.unit()).collect();
        let many = Flips::new(&many, 1, 0);
        let counts = many.flipped.iter().map(|it| it.count);
        let mean = counts.sum::<f64>() / many.flipped.len() as f64;
        assert!((mean - 50.0).abs() < 0.3, "{mean}");
    }

    #[test]
    fn the_interval_has_the_shifts_that_are_not_refused() {
        let differences = [3.0, 1.0, -4.0, 1.0, 5.0, 9.0, 2.0, 6.0];
        let it = Flips::new(&differences, 1, 0);
        let (low, high) = it.interval(0.05);
        assert!(it.p(low) < 0.05 && it.p(high) < 0.05, "{low} {high}");
        assert!(
            it.p(low + 0.02) >= 0.05 && it.p(high - 0.02) >= 0.05,
            "{low} {high}"
        );
        let few = Flips::new(&differences[..5], 1, 0);
        assert_eq!(few.interval(0.05), (f64::NEG_INFINITY, f64::INFINITY));
    }
}

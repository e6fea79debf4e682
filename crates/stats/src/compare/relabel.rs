//! Two independent sets of values: every way to deal all values to two sets of the same sizes, and
//! Welch's t of each.

use model::Rng;

use super::shift::{EXACT_MAX, SAMPLES_MAX, ShiftTest, samples};

/// Products of statistics that agree to so small a part are ties: rounding must not decide.
const TIE: f64 = 1e-9;

/// Sums over the values that a relabeling deals to the first set.
#[derive(Clone, Copy, Debug, Default)]
struct Dealt {
    sum: f64,
    squares: f64,
    /// How many of the values were the second set's.
    foreign: f64,
    /// The sum of these.
    foreign_sum: f64,
}

/// Welch's t as its numerator and the square of its denominator.
#[derive(Clone, Copy, Debug)]
struct Welch {
    difference: f64,
    variance: f64,
}

/// The permutation test of Welch's t for two independent sets.
///
/// If both sets come from one distribution, every way to deal the values is as probable as any
/// other, so the share of those with a t as large is the probability: exactly, for any distribution
/// and any number of values. Dividing by Welch's standard error makes it right for many values also
/// when the sets differ in their spread.
///
/// A relabeling whose sets are separated, all values of one above all of the other, counts as more
/// extreme than any that mixes them. So does one without variance, which is separated.
///
/// Source: Janssen (1997), "Studentized permutation tests for non-i.i.d. hypotheses and the
/// generalized Behrens-Fisher problem"; the share of a sample of relabelings: Phipson and Smyth
/// (2010), "Permutation P-values should never be zero".
#[derive(Debug)]
pub struct Relabelings {
    /// The values less their mean.
    sets: [Vec<f64>; 2],
    /// Mean of the second set less that of the first.
    value: f64,
    /// Sums over all values.
    total: Dealt,
    /// Sum of the squares of both means' standard errors.
    variance: f64,
    dealt: Vec<Dealt>,
    /// Whether every relabeling stands for the one with the sets exchanged, too.
    is_half: bool,
    /// Whether no relabeling is left out.
    is_exact: bool,
    /// Number of all relabelings.
    ways: f64,
    /// Shifts below and above which the sets are separated.
    reach: (f64, f64),
}

impl Relabelings {
    /// Deals the values, both of at least two. Stream `stream` of `seed` is drawn from when there
    /// are too many ways.
    pub fn new(base: &[f64], other: &[f64], seed: u64, stream: u64) -> Self {
        let [first, second] = [base, other].map(mean);
        let centred = |values: &[f64], mean: f64| values.iter().map(|it| it - mean).collect();
        let sets: [Vec<f64>; 2] = [centred(base, first), centred(other, second)];
        let ways = ways(base.len() + other.len(), base.len());
        let is_exact = ways <= EXACT_MAX;
        let is_half = is_exact && base.len() == other.len();
        let dealt = if is_exact {
            every(&sets, is_half)
        } else {
            sampled(&sets, &mut Rng::new(seed, stream))
        };
        let both = sets[0].iter().map(|it| (*it, false));
        let total = both.chain(sets[1].iter().map(|it| (*it, true)));
        let total = total.fold(Dealt::default(), Dealt::with);
        let ends = |values: &[f64]| {
            let least = values.iter().copied().fold(f64::INFINITY, f64::min);
            (
                least,
                values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            )
        };
        let (ours, theirs) = (ends(base), ends(other));
        Self {
            variance: welch(&sets[0], &sets[1]).variance,
            sets,
            value: second - first,
            total,
            dealt,
            is_half,
            is_exact,
            ways,
            reach: (theirs.0 - ours.1, theirs.1 - ours.0),
        }
    }

    /// Welch's t, as far as it is compared, of the values that were dealt so when the second set is
    /// moved by `moved`.
    fn of(&self, dealt: &Dealt, moved: f64) -> Welch {
        let [first, second] = [0, 1].map(|at| self.sets[at].len() as f64);
        let (ours, all) = (dealt.moved(moved), self.total.moved(moved));
        let rest = (all.0 - ours.0, all.1 - ours.1);
        let part = |sums: (f64, f64), count: f64| {
            (sums.1 - sums.0 * sums.0 / count) / (count * (count - 1.0))
        };
        Welch {
            difference: rest.0 / second - ours.0 / first,
            variance: part(ours, first) + part(rest, second),
        }
    }

    /// The probability: of all relabelings those that `counts`, given both signed squares of t on
    /// one scale. Never asked of separated sets.
    fn share(&self, shift: f64, counts: impl Fn(f64, f64) -> bool) -> f64 {
        let moved = self.value - shift;
        let real = Welch {
            difference: moved,
            variance: self.variance,
        };
        let found = |it: Welch| {
            let (theirs, ours) = it.beside(real);
            counts(theirs, ours)
        };
        let mut number = 0_usize;
        for dealt in &self.dealt {
            let welch = self.of(dealt, moved);
            number += usize::from(found(welch));
            number += usize::from(self.is_half && found(welch.exchanged()));
        }
        // Separated relabelings count before all others, whatever their t.
        let apart = self.separated(moved);
        let more = apart.into_iter().flatten().filter(|it| {
            let endless = f64::INFINITY.copysign(it.difference);
            counts(endless, real.difference) && !found(*it)
        });
        let number = (number + more.count()) as f64;
        if self.is_exact {
            number / self.ways
        } else {
            ((number + 1.0) / (self.dealt.len() as f64 + 1.0)).min(1.0)
        }
    }

    /// The relabelings that separate the values, of which there are two at most.
    fn separated(&self, moved: f64) -> [Option<Welch>; 2] {
        let mut all = self.sets[0].clone();
        all.extend(self.sets[1].iter().map(|it| it + moved));
        all.sort_by(f64::total_cmp);
        let count = self.sets[0].len();
        let low = all[count - 1] < all[count];
        let low = low.then(|| welch(&all[..count], &all[count..]));
        let (rest, top) = all.split_at(all.len() - count);
        let high = rest[rest.len() - 1] < top[0];
        [low, high.then(|| welch(top, rest))]
    }
}

impl ShiftTest for Relabelings {
    fn value(&self) -> f64 {
        self.value
    }

    fn reach(&self) -> (f64, f64) {
        self.reach
    }

    fn least(&self) -> f64 {
        (2.0 / self.ways).min(1.0)
    }

    fn p_above(&self, shift: f64) -> f64 {
        if shift < self.reach.0 {
            return 1.0 / self.ways;
        }
        if shift > self.reach.1 {
            return 1.0;
        }
        self.share(shift, |theirs, ours| theirs >= ours - TIE * ours.abs())
    }

    fn p_below(&self, shift: f64) -> f64 {
        if shift > self.reach.1 {
            return 1.0 / self.ways;
        }
        if shift < self.reach.0 {
            return 1.0;
        }
        self.share(shift, |theirs, ours| theirs <= ours + TIE * ours.abs())
    }

    fn p(&self, shift: f64) -> f64 {
        if shift < self.reach.0 || shift > self.reach.1 {
            return self.least();
        }
        self.share(shift, |theirs, ours| {
            theirs.abs() >= ours.abs() * (1.0 - TIE)
        })
    }
}

impl Dealt {
    /// With one more value, of the second set or not.
    fn with(self, (value, is_foreign): (f64, bool)) -> Self {
        let foreign = if is_foreign { 1.0 } else { 0.0 };
        Self {
            sum: self.sum + value,
            squares: self.squares + value * value,
            foreign: self.foreign + foreign,
            foreign_sum: self.foreign_sum + foreign * value,
        }
    }

    /// Sum, and sum of the squares, when all values of the second set are moved by `by`.
    fn moved(&self, by: f64) -> (f64, f64) {
        let squares = self.squares + by * (2.0 * self.foreign_sum + self.foreign * by);
        (self.sum + self.foreign * by, squares)
    }
}

impl Welch {
    /// The squares of this t and of another, with their signs, both times both variances: so
    /// nothing is divided by a variance of zero.
    fn beside(self, other: Self) -> (f64, f64) {
        let square = |difference: f64| difference * difference.abs();
        (
            square(self.difference) * other.variance,
            square(other.difference) * self.variance,
        )
    }

    /// With first and second set exchanged.
    fn exchanged(self) -> Self {
        Self {
            difference: -self.difference,
            ..self
        }
    }
}

/// In how many ways `some` can be chosen of `all`.
pub fn ways(all: usize, some: usize) -> f64 {
    (0..some.min(all - some)).fold(1.0, |ways, at| ways * (all - at) as f64 / (at + 1) as f64)
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn welch(first: &[f64], second: &[f64]) -> Welch {
    let part = |values: &[f64]| {
        let (count, mean) = (values.len() as f64, mean(values));
        let squares: f64 = values.iter().map(|it| (it - mean) * (it - mean)).sum();
        (mean, squares / (count * (count - 1.0)))
    };
    let (ours, theirs) = (part(first), part(second));
    Welch {
        difference: theirs.0 - ours.0,
        variance: ours.1 + theirs.1,
    }
}

/// All relabelings; of sets of one size only those that leave the first value where it is, because
/// the others are these with the sets exchanged.
fn every(sets: &[Vec<f64>; 2], is_half: bool) -> Vec<Dealt> {
    let mut values: Vec<(f64, bool)> = sets[0].iter().map(|it| (*it, false)).collect();
    values.extend(sets[1].iter().map(|it| (*it, true)));
    let mut found = Vec::new();
    let (start, rest, choose) = if is_half {
        (
            Dealt::default().with(values[0]),
            &values[1..],
            sets[0].len() - 1,
        )
    } else {
        (Dealt::default(), &values[..], sets[0].len())
    };
    choose_from(rest, choose, start, &mut found);
    found
}

/// Every way to add `choose` of `values` to `sums`.
fn choose_from(values: &[(f64, bool)], choose: usize, sums: Dealt, found: &mut Vec<Dealt>) {
    if choose == 0 {
        found.push(sums);
        return;
    }
    for at in 0..=values.len() - choose {
        choose_from(&values[at + 1..], choose - 1, sums.with(values[at]), found);
    }
}

/// Relabelings drawn at random.
fn sampled(sets: &[Vec<f64>; 2], rng: &mut Rng) -> Vec<Dealt> {
    let mut values: Vec<(f64, bool)> = sets[0].iter().map(|it| (*it, false)).collect();
    values.extend(sets[1].iter().map(|it| (*it, true)));
    let (all, count) = (values.len(), sets[0].len());
    let draws = (0..samples(all)).map(|_| {
        // The first steps of a shuffle by Fisher and Yates.
        for at in 0..count {
            let other = at + rng.below((all - at) as u64) as usize;
            values.swap(at, other);
        }
        let chosen = values[..count].iter();
        chosen.fold(Dealt::default(), |sums, value| sums.with(*value))
    });
    let mut found = Vec::with_capacity(SAMPLES_MAX);
    found.extend(draws);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// t of two sets, endless when they are separated.
    fn t(first: &[f64], second: &[f64]) -> f64 {
        let least = |values: &[f64]| values.iter().copied().fold(f64::INFINITY, f64::min);
        let most = |values: &[f64]| values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if most(first) < least(second) {
            return f64::INFINITY;
        }
        if most(second) < least(first) {
            return f64::NEG_INFINITY;
        }
        let part = |values: &[f64]| {
            let (count, mean) = (values.len() as f64, mean(values));
            let squares: f64 = values.iter().map(|it| (it - mean).powi(2)).sum();
            (mean, squares / (count - 1.0) / count)
        };
        let (ours, theirs) = (part(first), part(second));
        match theirs.0 - ours.0 {
            0.0 => 0.0,
            difference => difference / (ours.1 + theirs.1).sqrt(),
        }
    }

    /// Shares of all relabelings with a t as large, as small and as far from 0, one by one.
    fn by_hand(base: &[f64], other: &[f64], shift: f64) -> [f64; 3] {
        let moved: Vec<f64> = other.iter().map(|it| it - shift).collect();
        let all = [base, &moved].concat();
        let real = t(base, &moved);
        let (mut ways, mut counts) = (0.0, [0.0; 3]);
        for mask in 0_u32..1 << all.len() {
            if mask.count_ones() as usize != base.len() {
                continue;
            }
            let dealt = |to_first: bool| {
                let is_of = |at: &usize| (mask >> at & 1 == 1) == to_first;
                let values = (0..all.len()).filter(is_of).map(|at| all[at]);
                values.collect::<Vec<f64>>()
            };
            let it = t(&dealt(true), &dealt(false));
            ways += 1.0;
            // Equal but for rounding.
            let near = |a: f64, b: f64| a == b || (a - b).abs() < 1e-9 * b.abs().max(1e-3);
            counts[0] += f64::from(u8::from(it > real || near(it, real)));
            counts[1] += f64::from(u8::from(it < real || near(it, real)));
            let is_far = it.abs() > real.abs() || near(it.abs(), real.abs());
            counts[2] += f64::from(u8::from(is_far));
        }
        counts.map(|count| count / ways)
    }

    fn asked(base: &[f64], other: &[f64], shift: f64) -> [f64; 3] {
        let it = Relabelings::new(base, other, 1, 0);
        [it.p_above(shift), it.p_below(shift), it.p(shift)]
    }

    #[test]
    fn four_values_have_six_relabelings() {
        let (base, other) = ([1.0, 2.0], [3.0, 5.0]);
        assert_eq!(asked(&base, &other, 0.0), [1.0 / 6.0, 1.0, 2.0 / 6.0]);
        // 1 2 and 1 3: of t = 0.447, and as large for 2 1 and 1 3; larger for 1 1 and 2 3.
        assert_eq!(asked(&base, &other, 2.0), [0.5, 5.0 / 6.0, 1.0]);
        assert_eq!(asked(&base, &other, 9.0), [1.0, 1.0 / 6.0, 2.0 / 6.0]);
        let it = Relabelings::new(&base, &other, 1, 0);
        assert_eq!(
            (it.value(), it.reach(), it.least()),
            (2.5, (1.0, 4.0), 2.0 / 6.0)
        );
    }

    #[test]
    fn the_share_of_relabelings_is_that_of_counting_them_one_by_one() {
        let mut rng = Rng::new(4, 0);
        for round in 0_u64..60 {
            let mut some = |count: u64| -> Vec<f64> {
                // Small whole numbers, so that there are ties; in each third round one far out.
                let values = (0..count).map(|_| rng.below(7) as f64);
                let mut values: Vec<f64> = values.collect();
                values[0] += if round % 3 == 0 { 40.0 } else { 0.0 };
                values
            };
            let (base, other) = (some(3 + round % 3), some(3 + round / 3 % 3));
            for shift in [-3.0, 0.0, 0.5, 2.0, 4.25] {
                let (have, want) = (asked(&base, &other, shift), by_hand(&base, &other, shift));
                let place = format!("{base:?} {other:?} {shift}: {have:?} {want:?}");
                // Separated sets of different sizes may have no opposite.
                let least = Relabelings::new(&base, &other, 1, 0).least();
                let is_least = (have[2] - least).abs() < 1e-12 && want[2] <= least;
                assert!(is_least || (have[2] - want[2]).abs() < 1e-12, "{place}");
                for side in [0, 1] {
                    assert!((have[side] - want[side]).abs() < 1e-12, "{place}");
                }
            }
        }
    }

    #[test]
    fn a_sample_of_relabelings_says_nearly_the_same() {
        let mut rng = Rng::new(6, 0);
        let mut some = |mean: f64| (0..11).map(|_| mean + rng.unit()).collect();
        let (base, other): (Vec<f64>, Vec<f64>) = (some(0.0), some(0.2));
        let it = Relabelings::new(&base, &other, 1, 0);
        assert!(!it.is_exact, "705,432 are too many");
        assert_eq!(it.dealt.len(), SAMPLES_MAX);
        let want = by_hand(&base, &other, 0.0)[2];
        // Five standard errors of a share of 9,999.
        let error = 5.0 * (want * (1.0 - want) / 9_999.0).sqrt();
        assert!((it.p(0.0) - want).abs() < error, "{} {want}", it.p(0.0));
        // It is never 0, and of separated sets it is known without a sample.
        assert!(it.share(it.reach.0, |_, _| false) == 1.0 / 10_000.0);
        assert_eq!(it.p(9.0), 2.0 / 705_432.0);
    }

    #[test]
    fn the_interval_has_the_shifts_that_are_not_refused() {
        let base = [3.0, 1.0, 4.0, 1.0, 5.0, 9.0];
        let other = [8.0, 9.0, 7.0, 9.0, 3.0, 12.0];
        let it = Relabelings::new(&base, &other, 1, 0);
        let (low, high) = it.interval(0.05);
        assert!(it.p(low) < 0.05 && it.p(high) < 0.05, "{low} {high}");
        assert!(
            it.p(low + 0.02) >= 0.05 && it.p(high - 0.02) >= 0.05,
            "{low} {high}"
        );
        // The interval excludes 0 exactly when the test refuses it.
        for step in 0..40 {
            let other = other.map(|value| value - f64::from(step) / 4.0);
            let it = Relabelings::new(&base, &other, 1, 0);
            let (low, high) = it.interval(0.05);
            assert_eq!(
                low >= 0.0 || high <= 0.0,
                it.p(0.0) < 0.05,
                "{step}: {low} {high}"
            );
        }
        let few = Relabelings::new(&base[..3], &other[..3], 1, 0);
        assert_eq!(few.interval(0.05), (f64::NEG_INFINITY, f64::INFINITY));
        assert_eq!(few.interval(0.11), (3.0, 8.0));
    }

    #[test]
    fn two_one_sided_tests_ask_for_both_margins() {
        let it = Relabelings::new(&[1.0, 2.0, 3.0], &[2.0, 3.0, 4.0], 1, 0);
        let sides = [it.p_above(-4.0), it.p_below(4.0)];
        assert_eq!(sides, [1.0 / 20.0, 1.0 / 20.0]);
        assert_eq!(it.p_same(4.0), 1.0 / 20.0);
        assert_eq!(it.p_same(2.5), it.p_below(2.5));
        assert!(it.p_below(2.5) > it.p_above(-2.5));
    }

    #[test]
    fn ways_are_binomial_coefficients() {
        assert_eq!(ways(20, 10), 184_756.0);
        assert_eq!([ways(7, 3), ways(7, 4), ways(7, 0)], [35.0, 35.0, 1.0]);
    }
}

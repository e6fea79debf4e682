//! Distributions in memory that does not grow with the number of values.

use model::Nanos;

/// Buckets of one octave (the values from one power of two to the next).
const OCTAVE: usize = 1 << OCTAVE_BITS;
const OCTAVE_BITS: u32 = 7;

/// Octave 0 holds the values under 128, one bucket each; the last one those from `2^63`.
const OCTAVES: usize = (u64::BITS - OCTAVE_BITS + 1) as usize;

/// A distribution of spans of time, counted in log-linear buckets.
///
/// Quantiles are measured values: each bucket remembers the largest value that it was given, and
/// a quantile is that value of the bucket which holds the nearest rank. It is never below the
/// exact quantile, and above it by less than 1/128 of it. Values under 256 ns, the extremes, the
/// count and the sum are exact.
///
/// Memory: 2 KiB for each octave that has a value, so at most 116 KiB. Merging is exact: the
/// order in which values and histograms are put together does not change the result.
///
/// Source of the bucket layout: Tene's `HdrHistogram`; of the quantile: Hyndman and Fan (1996),
/// "Sample Quantiles in Statistical Packages", definition 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram {
    octaves: Vec<Option<Box<[Bucket; OCTAVE]>>>,
    count: u64,
    sum: u128,
    /// The longest span that there is while `count` is 0, so that every value is less or equal.
    min: Nanos,
}

impl Default for Histogram {
    fn default() -> Self {
        Self {
            octaves: Vec::new(),
            count: 0,
            sum: 0,
            min: Nanos::MAX,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Bucket {
    count: u64,
    /// Meaningless while `count` is 0.
    max: u64,
}

/// The octave of `value`, and its bucket there.
#[inline(always)]
const fn place(value: u64) -> (usize, usize) {
    // The highest bit, or that below the second octave's. Without a case for the first octave, and
    // with a bucket that the compiler sees to be one: a switch puts three values into
    // distributions.
    let top = (value | (OCTAVE as u64 >> 1)).ilog2();
    let bucket = value >> top.saturating_sub(OCTAVE_BITS);
    ((top - (OCTAVE_BITS - 1)) as usize, bucket as usize % OCTAVE)
}

impl Histogram {
    /// A distribution without values.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds one value.
    #[inline]
    pub fn record(&mut self, value: Nanos) {
        let (octave, bucket) = place(value.get());
        let bucket = match self.octaves.get_mut(octave) {
            Some(Some(octave)) => &mut octave[bucket],
            _ => &mut self.octave(octave)[bucket],
        };
        bucket.count += 1;
        // Extremes change seldom: a test that is nearly always the same, and no store.
        if bucket.max < value.get() {
            bucket.max = value.get();
        }
        if self.min > value {
            self.min = value;
        }
        self.count += 1;
        self.sum += u128::from(value.get());
    }

    /// Adds one value `times` times.
    pub fn record_times(&mut self, value: Nanos, times: u64) {
        let Some(more) = times.checked_sub(1) else {
            return;
        };
        self.record(value);
        let (octave, bucket) = place(value.get());
        self.octave(octave)[bucket].count += more;
        self.count += more;
        self.sum += u128::from(value.get()) * u128::from(more);
    }

    /// Adds all values of `other`.
    pub fn merge(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        for (octave, theirs) in other.octaves.iter().enumerate() {
            let Some(theirs) = theirs else { continue };
            for (ours, theirs) in self.octave(octave).iter_mut().zip(theirs.iter()) {
                ours.count += theirs.count;
                ours.max = ours.max.max(theirs.max);
            }
        }
        self.min = self.min.min(other.min);
        self.count += other.count;
        self.sum += other.sum;
    }

    /// The largest value of each bucket that has values, in rising order, and how many it has.
    pub fn values(&self) -> impl Iterator<Item = (u64, u64)> {
        let filled = self.buckets().filter(|bucket| bucket.count > 0);
        filled.map(|bucket| (bucket.max, bucket.count))
    }

    /// How many values there are.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// The sum of the values, in nanoseconds; exact.
    #[must_use]
    pub const fn sum(&self) -> u128 {
        self.sum
    }

    /// The mean, rounded down; `None` if there are no values.
    #[must_use]
    pub fn mean(&self) -> Option<Nanos> {
        let mean = self.sum.checked_div(u128::from(self.count))?;
        // A mean is not above the maximum, so it fits.
        u64::try_from(mean).ok().map(Nanos::new)
    }

    /// The smallest value; `None` if there are none.
    #[must_use]
    pub fn min(&self) -> Option<Nanos> {
        (self.count > 0).then_some(self.min)
    }

    /// The largest value; `None` if there are none.
    #[must_use]
    pub fn max(&self) -> Option<Nanos> {
        let last = self.buckets().rfind(|bucket| bucket.count > 0)?;
        Some(Nanos::new(last.max))
    }

    /// A value that at least `permille` thousandths of the values do not exceed (nearest rank);
    /// `None` if there are no values. The median is 500 and p99.9 is 999.
    ///
    /// # Panics
    /// If `permille` exceeds 1000.
    #[must_use]
    pub fn quantile(&self, permille: u64) -> Option<Nanos> {
        let rank = model::nearest_rank(self.count, permille);
        if permille == 0 {
            return self.min();
        }
        let mut seen = 0;
        let holder = self.buckets().find(|bucket| {
            seen += bucket.count;
            bucket.count > 0 && seen >= rank
        })?;
        Some(Nanos::new(holder.max))
    }

    /// Buckets of the octaves that have any, in the order of their values.
    fn buckets(&self) -> impl DoubleEndedIterator<Item = &Bucket> {
        self.octaves
            .iter()
            .flatten()
            .flat_map(|octave| octave.iter())
    }

    #[cold]
    #[inline(never)]
    fn octave(&mut self, octave: usize) -> &mut [Bucket; OCTAVE] {
        debug_assert!(octave < OCTAVES, "octave {octave} is beyond 64 bits");
        if self.octaves.len() <= octave {
            self.octaves.resize(octave + 1, None);
        }
        self.octaves[octave].get_or_insert_with(|| Box::new([Bucket::default(); OCTAVE]))
    }
}

#[cfg(test)]
mod tests {
    use model::Rng;

    use super::*;

    fn histogram(values: &[u64]) -> Histogram {
        let mut histogram = Histogram::new();
        values
            .iter()
            .for_each(|&value| histogram.record(Nanos::new(value)));
        histogram
    }

    /// The definition, on the sorted values.
    fn exact(values: &[u64], permille: u64) -> u64 {
        let mut sorted = values.to_vec();
        sorted.sort_unstable();
        let rank = (permille as usize * sorted.len()).div_ceil(1000).max(1);
        sorted[rank - 1]
    }

    /// Values of all magnitudes: the number of bits is uniform.
    fn random_values(rng: &mut Rng) -> Vec<u64> {
        let count = 1 + rng.below(500);
        let bits = 1 + rng.below(64);
        (0..count)
            .map(|_| rng.next_u64() >> (63 - rng.below(bits)))
            .collect()
    }

    #[test]
    fn without_values_there_is_no_quantile() {
        let none = Histogram::new();
        assert_eq!(
            (none.quantile(500), none.min(), none.max(), none.mean()),
            (None, None, None, None)
        );
    }

    #[test]
    fn a_quantile_is_measured_and_within_a_128th_above_the_exact_one() {
        for seed in 0..300 {
            let mut rng = Rng::new(seed, 0);
            let values = random_values(&mut rng);
            let histogram = histogram(&values);
            for permille in [0, 1, 10, 250, 500, 501, 900, 990, 999, 1000] {
                let exact = exact(&values, permille);
                let got = histogram.quantile(permille).unwrap().get();
                assert!(
                    values.contains(&got),
                    "seed {seed}: {got} was never measured"
                );
                assert!(got >= exact, "seed {seed}: {got} is below {exact}");
                assert!(
                    u128::from(got - exact) * 128 < u128::from(exact) || got == exact,
                    "seed {seed}, {permille} per mille: {got} is too far from {exact}"
                );
            }
        }
    }

    #[test]
    fn small_values_and_extremes_are_exact() {
        let values: Vec<u64> = (0..256).chain([1_000_003, u64::MAX]).collect();
        let histogram = histogram(&values);
        for permille in 0..=992 {
            assert_eq!(
                histogram.quantile(permille).unwrap().get(),
                exact(&values, permille)
            );
        }
        assert_eq!(histogram.min().unwrap().get(), 0);
        assert_eq!(histogram.max().unwrap().get(), u64::MAX);
        assert_eq!(histogram.quantile(1000).unwrap().get(), u64::MAX);
    }

    #[test]
    fn every_power_of_two_and_its_neighbours_have_a_place_in_order() {
        let mut before = None;
        for bits in 0..64 {
            let power = 1_u64 << bits;
            for value in [power - 1, power, power + (power >> 1)] {
                let place = place(value);
                assert!(place.0 < OCTAVES && place.1 < OCTAVE, "{value}: {place:?}");
                assert!(
                    before <= Some(place),
                    "{value} sorts before a smaller value"
                );
                before = Some(place);
            }
        }
        assert_eq!(place(u64::MAX), (OCTAVES - 1, OCTAVE - 1));
    }

    #[test]
    fn merging_parts_gives_the_histogram_of_the_whole() {
        for seed in 0..50 {
            let mut rng = Rng::new(seed, 1);
            let (left, right) = (random_values(&mut rng), random_values(&mut rng));
            let whole = histogram(&[left.clone(), right.clone()].concat());
            let mut merged = histogram(&left);
            merged.merge(&histogram(&right));
            let mut reversed = histogram(&right);
            reversed.merge(&histogram(&left));
            assert_eq!(merged, whole, "seed {seed}");
            assert_eq!(reversed, whole, "seed {seed}");
        }
    }

    #[test]
    fn merging_with_an_empty_histogram_changes_nothing() {
        let some = histogram(&[5, 700, 12_000]);
        let mut merged = some.clone();
        merged.merge(&Histogram::new());
        let mut from_empty = Histogram::new();
        from_empty.merge(&some);
        assert_eq!((&merged, &from_empty), (&some, &some));
    }

    #[test]
    fn a_value_that_is_added_several_times_at_once_is_there_as_often() {
        let mut at_once = histogram(&[5, 700]);
        at_once.record_times(Nanos::new(700), 3);
        at_once.record_times(Nanos::new(9), 0);
        at_once.record_times(Nanos::new(2), 1);
        assert_eq!(at_once, histogram(&[5, 700, 700, 700, 700, 2]));
    }

    #[test]
    fn the_mean_is_exact_beyond_64_bits_of_sum() {
        let histogram = histogram(&[u64::MAX, u64::MAX, u64::MAX - 3]);
        assert_eq!(histogram.mean().unwrap().get(), u64::MAX - 1);
        assert_eq!(histogram.sum(), 3 * u128::from(u64::MAX) - 3);
    }

    #[test]
    fn two_values_have_the_lower_one_as_median() {
        assert_eq!(histogram(&[10, 20]).quantile(500), Some(Nanos::new(10)));
        assert_eq!(histogram(&[10, 20]).quantile(501), Some(Nanos::new(20)));
    }
}

//! What `record.bpf.c` counts and measures in the kernel.

use std::collections::BTreeMap;

use model::Nanos;

/// Makes the structure and the list of its fields from one list.
macro_rules! totals {
    ($(#[$about:meta])* $name:ident { $($(#[$field_about:meta])* $field:ident,)* }) => {
        $(#[$about])*
        pub struct $name {
            $($(#[$field_about])* pub $field: u64,)*
        }

        impl $name {
            /// Its fields, in their order.
            #[cfg(test)]
            const FIELDS: &[&str] = &[$(stringify!($field)),*];

            fn fields_mut(&mut self) -> impl Iterator<Item = &mut u64> {
                [$(&mut self.$field),*].into_iter()
            }
        }
    };
}

totals! {
    /// Numbers over all CPUs: `enum total` in record.bpf.c.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    Totals {
        /// Changes of a CPU's task, to and from idle included.
        switches,
        /// Wakeups, without starts. Includes those of tasks that have not left their CPU yet.
        wakeups,
        /// Starts of new tasks.
        starts,
        /// Changes of a task's CPU.
        migrations,
        /// Tasks created.
        forks,
        /// Programs started.
        execs,
        /// Tasks that left for good.
        exits,
        /// Switches away from a task that was runnable.
        preempted,
        /// Events for which there was no room.
        lost,
        /// Tasks that could not be measured.
        unknown,
    }
}

impl Totals {
    /// The sum of one array a CPU.
    pub(super) fn sum(cpus: &[Vec<u8>]) -> Self {
        let mut sums = Self::default();
        for bytes in cpus {
            for (sum, word) in sums.fields_mut().zip(bytes.chunks_exact(8)) {
                *sum += u64::from_ne_bytes(word.try_into().expect("a chunk of 8 bytes"));
            }
        }
        sums
    }
}

/// Buckets for each power of two.
const BUCKET_BITS: u32 = 4;
/// Buckets of a histogram, as in record.bpf.c.
const BUCKETS: usize = 38 << BUCKET_BITS;
/// Bytes of a histogram: count, sum, maximum, buckets.
const HISTOGRAM_SIZE: usize = 3 * 8 + BUCKETS * 4;

/// A distribution of spans. Percentiles are the largest value that their bucket can hold, and
/// never above the largest that was measured: at most 1/16 too long.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Distribution {
    /// How many spans.
    pub count: u64,
    /// Their sum.
    pub sum: u128,
    /// The longest.
    pub max: u64,
    /// How many in each bucket.
    buckets: BTreeMap<u32, u64>,
}

impl Distribution {
    fn add(&mut self, bytes: &[u8]) {
        let long = |at: usize| -> u64 {
            u64::from_ne_bytes(bytes[at..at + 8].try_into().expect("a range of 8 bytes"))
        };
        self.count += long(0);
        self.sum += u128::from(long(8));
        self.max = self.max.max(long(16));
        for (bucket, word) in (0..).zip(bytes[24..].chunks_exact(4)) {
            let count = u32::from_ne_bytes(word.try_into().expect("a chunk of 4 bytes"));
            if count > 0 {
                *self.buckets.entry(bucket).or_default() += u64::from(count);
            }
        }
    }

    fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.sum += other.sum;
        self.max = self.max.max(other.max);
        for (bucket, count) in &other.buckets {
            *self.buckets.entry(*bucket).or_default() += count;
        }
    }

    /// The value that stands for each bucket, in rising order, and how many values it has:
    /// quantiles are made of the same.
    pub fn values(&self) -> impl Iterator<Item = (Nanos, u64)> {
        let buckets = self.buckets.iter();
        buckets.map(|(bucket, count)| (Nanos::new(largest_of(*bucket).min(self.max)), *count))
    }

    /// The mean, rounded down; `None` without values.
    #[must_use]
    pub fn mean(&self) -> Option<Nanos> {
        let mean = self.sum.checked_div(u128::from(self.count))?;
        Some(Nanos::new(u64::try_from(mean).unwrap_or(u64::MAX)))
    }

    /// The longest; `None` without values.
    #[must_use]
    pub fn max(&self) -> Option<Nanos> {
        (self.count > 0).then_some(Nanos::new(self.max))
    }

    /// Value that at least `permille` thousandths of the values do not exceed, by nearest rank.
    ///
    /// # Panics
    /// If `permille` exceeds 1000.
    #[must_use]
    pub fn quantile(&self, permille: u64) -> Option<Nanos> {
        let mut left = model::nearest_rank(self.buckets.values().sum(), permille);
        for (bucket, count) in &self.buckets {
            if left <= *count {
                return Some(Nanos::new(largest_of(*bucket).min(self.max)));
            }
            left -= *count;
        }
        None
    }
}

/// The largest value of a bucket, the inverse of `bucket_of()` in record.bpf.c.
fn largest_of(bucket: u32) -> u64 {
    let per_power = 1 << BUCKET_BITS;
    if bucket < per_power {
        return bucket.into();
    }
    if bucket as usize == BUCKETS - 1 {
        return u64::MAX;
    }
    let shift = (bucket >> BUCKET_BITS) - 1;
    let step = u64::from(bucket & (per_power - 1)) + u64::from(per_power);
    ((step + 1) << shift) - 1
}

/// What the tasks of one name experienced.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MeasuredTask {
    /// From a wakeup until the task got a CPU.
    pub wakeup: Distribution,
    /// From losing the CPU while runnable until getting one.
    pub preempt: Distribution,
    /// From getting a CPU to leaving it.
    pub runslice: Distribution,
    /// Tasks that began to run for the first time.
    pub starts: u64,
    /// Changes of a task's CPU.
    pub migrations: u64,
}

impl MeasuredTask {
    /// The sum over CPUs; values of another size are left out.
    pub(super) fn sum(cpus: &[Vec<u8>]) -> Self {
        let mut measured = Self::default();
        for bytes in cpus {
            let Some(tail) = bytes.get(3 * HISTOGRAM_SIZE..3 * HISTOGRAM_SIZE + 16) else {
                continue;
            };
            measured.wakeup.add(&bytes[..HISTOGRAM_SIZE]);
            measured
                .preempt
                .add(&bytes[HISTOGRAM_SIZE..2 * HISTOGRAM_SIZE]);
            measured
                .runslice
                .add(&bytes[2 * HISTOGRAM_SIZE..3 * HISTOGRAM_SIZE]);
            let (starts, migrations) = tail.split_at(8);
            let number =
                |bytes: &[u8]| u64::from_ne_bytes(bytes.try_into().expect("a slice of 8 bytes"));
            measured.starts += number(starts);
            measured.migrations += number(migrations);
        }
        measured
    }

    /// Adds what others experienced.
    pub fn merge(&mut self, other: &Self) {
        self.wakeup.merge(&other.wakeup);
        self.preempt.merge(&other.preempt);
        self.runslice.merge(&other.runslice);
        self.starts += other.starts;
        self.migrations += other.migrations;
    }

    /// Whether nothing was measured.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The waits of both kinds together: field 2 of `/proc/<pid>/schedstat`, but for starts.
    #[must_use]
    pub fn delay(&self) -> Distribution {
        let mut delay = self.wakeup.clone();
        delay.merge(&self.preempt);
        delay
    }
}

#[cfg(test)]
mod tests {
    use libbpf_rs::btf::Btf;

    use super::*;
    use crate::record::OBJECT;
    use crate::variables;

    #[test]
    fn totals_have_the_places_that_the_object_counts_in() {
        let btf = Btf::from_raw("record", OBJECT).unwrap().unwrap();
        let mut names: Vec<&str> = Totals::FIELDS.to_vec();
        names.push("nr_totals");
        let ours = names
            .iter()
            .zip(0..)
            .map(|(name, at)| ((*name).to_owned(), at));
        assert_eq!(
            variables::enumerators(&btf, "total"),
            ours.collect::<Vec<_>>()
        );
    }

    /// As `bucket_of()` in record.bpf.c.
    fn bucket_of(value: u64) -> u32 {
        let log = value.checked_ilog2().unwrap_or(0);
        if log < BUCKET_BITS {
            return u32::try_from(value).unwrap();
        }
        let shift = log - BUCKET_BITS;
        let step = u32::try_from((value >> shift) & 15).unwrap();
        (((shift + 1) << BUCKET_BITS) + step).min(BUCKETS as u32 - 1)
    }

    fn bytes(values: &[u64]) -> Vec<u8> {
        let mut buckets = vec![0_u32; BUCKETS];
        for value in values {
            buckets[bucket_of(*value) as usize] += 1;
        }
        let head = [
            values.len() as u64,
            values.iter().sum(),
            values.iter().copied().max().unwrap_or(0),
        ];
        let head = head.into_iter().flat_map(u64::to_ne_bytes);
        head.chain(buckets.into_iter().flat_map(u32::to_ne_bytes))
            .collect()
    }

    #[test]
    fn a_percentile_is_at_most_a_sixteenth_above_the_exact_one() {
        let values: Vec<u64> = (0..1000).map(|i| i * i * 37 + i).collect();
        let mut distribution = Distribution::default();
        distribution.add(&bytes(&values));
        for permille in [1, 10, 500, 990, 1000] {
            let exact = values[(values.len() * permille).div_ceil(1000).max(1) - 1];
            let found = distribution.quantile(permille as u64).unwrap().get();
            assert!(
                found >= exact && found <= exact + exact / 16,
                "{exact} {found}"
            );
        }
        assert_eq!(distribution.max().unwrap().get(), *values.last().unwrap());
        assert_eq!(Distribution::default().quantile(500), None);
    }

    #[test]
    fn the_values_are_those_that_percentiles_are_made_of() {
        let mut distribution = Distribution::default();
        distribution.add(&bytes(&[3, 3, 1000, 5000]));
        let values: Vec<_> = distribution.values().collect();
        assert_eq!(values[0], (Nanos::new(3), 2));
        assert_eq!(Some(values[1].0), distribution.quantile(750));
        assert_eq!(
            values[2],
            (Nanos::new(5000), 1),
            "none is above the largest"
        );
        assert_eq!(values.len(), 3);
    }

    #[test]
    fn every_bucket_ends_where_the_next_begins() {
        for bucket in 0..BUCKETS as u32 - 2 {
            let last = largest_of(bucket);
            assert_eq!(bucket_of(last), bucket);
            assert_eq!(bucket_of(last + 1), bucket + 1);
        }
    }

    #[test]
    fn cpus_are_added_up() {
        let one: Vec<u8> = [bytes(&[5, 1000]), bytes(&[]), bytes(&[7])].concat();
        let cpu = [
            one,
            3_u64.to_ne_bytes().to_vec(),
            4_u64.to_ne_bytes().to_vec(),
        ]
        .concat();
        let measured = MeasuredTask::sum(&[cpu.clone(), cpu]);
        assert_eq!(measured.wakeup.count, 4);
        assert_eq!(measured.wakeup.mean().unwrap().get(), 502);
        assert_eq!(measured.runslice.max().unwrap().get(), 7);
        assert_eq!(measured.preempt.count, 0);
        assert_eq!((measured.starts, measured.migrations), (6, 8));
        let totals: Vec<u8> = (1..=10_u64).flat_map(u64::to_ne_bytes).collect();
        let totals = Totals::sum(&[totals.clone(), totals]);
        assert_eq!((totals.switches, totals.lost, totals.unknown), (2, 18, 20));
    }
}

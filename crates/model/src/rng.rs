//! The one random generator.

/// A seeded generator: `SplitMix64`, chosen because a stream can be drawn for each task from the
/// run's seed alone, so what one task draws never depends on when another task runs.
///
/// Source: Steele, Lea and Flood (2014), "Fast Splittable Pseudorandom Number Generators".
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// The stream number `stream` of `seed`.
    #[must_use]
    pub const fn new(seed: u64, stream: u64) -> Self {
        // Two rounds of the mixer keep neighbouring streams apart.
        Self(mix(mix(seed).wrapping_add(stream.wrapping_mul(GAMMA))))
    }

    /// The stream of what a workload's task draws: by group and index in the group, so that it
    /// depends on nothing else.
    #[must_use]
    pub const fn of_task(seed: u64, group: u32, index: u32) -> Self {
        Self::new(seed, (group as u64) << 32 | index as u64)
    }

    /// The stream from which a task's start is drawn.
    #[must_use]
    pub const fn of_start(seed: u64, group: u32, index: u32) -> Self {
        Self::new(seed, STREAM_START | (group as u64) << 32 | index as u64)
    }

    /// The stream of a workload's interrupt source.
    #[must_use]
    pub const fn of_interrupt(seed: u64, source: u32) -> Self {
        Self::new(seed, STREAM_IRQ + source as u64)
    }

    /// The stream of the times at which requests from outside come.
    #[must_use]
    pub const fn of_arrival(seed: u64, arrival: u32) -> Self {
        Self::new(seed, STREAM_ARRIVAL + arrival as u64)
    }

    /// The stream of the spans that the users of requests think.
    #[must_use]
    pub const fn of_think(seed: u64, arrival: u32) -> Self {
        Self::new(seed, STREAM_THINK + arrival as u64)
    }

    /// The stream of what a disk draws.
    #[must_use]
    pub const fn of_disk(seed: u64, disk: u32) -> Self {
        Self::new(seed, STREAM_DISK + disk as u64)
    }

    /// The next 64 random bits.
    pub const fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GAMMA);
        mix(self.0)
    }

    /// A number in `0..bound`, every one equally likely; 0 when `bound` is 0.
    pub const fn below(&mut self, bound: u64) -> u64 {
        // Multiply-shift (Lemire 2019) without rejection: the bias is below bound / 2^64.
        ((self.next_u64() as u128 * bound as u128) >> 64) as u64
    }

    /// A number in `[0, 1)` with 53 random bits.
    #[expect(clippy::cast_precision_loss, reason = "53 bits fit a double exactly")]
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// These bits keep the other streams apart from those of tasks.
const STREAM_START: u64 = 1 << 63;
const STREAM_IRQ: u64 = 1 << 62;
const STREAM_ARRIVAL: u64 = STREAM_IRQ | 1 << 32;
const STREAM_THINK: u64 = STREAM_IRQ | 2 << 32;
const STREAM_DISK: u64 = STREAM_IRQ | 3 << 32;

const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

const fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_streams_of_one_seed_differ_and_each_repeats() {
        let draw = |stream| {
            let mut rng = Rng::new(7, stream);
            [(); 4].map(|()| rng.next_u64())
        };
        assert_eq!(draw(0), draw(0));
        assert_ne!(draw(0), draw(1));
    }

    #[test]
    fn numbers_stay_below_their_bound() {
        let mut rng = Rng::new(1, 0);
        assert!((0..1000).all(|_| rng.below(7) < 7));
        assert!((0..1000).all(|_| (0.0..1.0).contains(&rng.unit())));
        assert_eq!(rng.below(0), 0);
    }
}

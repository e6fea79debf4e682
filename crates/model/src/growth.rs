//! Whether a queue still grew when a run ended.
//!
//! Where work comes faster than it is done, every wait grows as long as the run: its mean and its
//! percentiles say how long the run was, and not how good the scheduler is. docs/events.md states
//! the rule and its reasons.

use crate::SimTime;

/// Most blocks of a run. Two become one when there would be more.
const BLOCKS: u64 = 64;
/// Length of a block of a run that is not longer than [`BLOCKS`] of them, in nanoseconds.
const SHORTEST: u64 = 1 << 20;
/// Fewest blocks with a value in the second half, and in its own second half.
const FEWEST: [usize; 2] = [12, 4];
/// Bits of a block's mean that enter the sums of squares, so that these fit 128 bits.
const BITS: u32 = 20;

/// What was measured in a part of the run.
#[derive(Clone, Copy, Debug, Default)]
struct Cell {
    count: u64,
    sum: u128,
    least: u64,
}

impl Cell {
    fn add(&mut self, other: Self) {
        if other.count == 0 {
            return;
        }
        self.least = if self.count == 0 {
            other.least
        } else {
            self.least.min(other.least)
        };
        self.count += other.count;
        self.sum += other.sum;
    }
}

/// How a figure went over a run, in at most 64 blocks of time, however long the run is.
#[derive(Clone, Debug)]
pub struct Course {
    width: u64,
    cells: Vec<Cell>,
}

impl Default for Course {
    fn default() -> Self {
        Self {
            width: SHORTEST,
            cells: Vec::new(),
        }
    }
}

impl Course {
    /// Length of a block in nanoseconds; it doubles as the run goes on.
    #[must_use]
    pub const fn width(&self) -> u64 {
        self.width
    }

    /// The figure was `value` at `time`. Times never fall.
    ///
    /// # Panics
    /// Never: a block is as long as it must be.
    pub fn add(&mut self, time: SimTime, value: u64) {
        let time = time.as_nanos();
        while time / self.width >= BLOCKS {
            self.width = self.width.saturating_mul(2);
            let pair = |both: &[Cell]| {
                let mut sum = Cell::default();
                both.iter().for_each(|it| sum.add(*it));
                sum
            };
            self.cells = self.cells.chunks(2).map(pair).collect();
        }
        let at = usize::try_from(time / self.width).expect("fewer than 64 blocks");
        if self.cells.len() <= at {
            self.cells.resize(at + 1, Cell::default());
        }
        self.cells[at].add(Cell {
            count: 1,
            sum: value.into(),
            least: value,
        });
    }

    /// The least value of the last quarter of a run that ended at `end`, if the figure still grew
    /// in its second half.
    ///
    /// It did if three things hold. A line through the means of the blocks rises, and explains
    /// half of their variance. A line through those of the last quarter rises, so that a single
    /// step is no growth. And no value of the last quarter is below the mean of the third: a queue
    /// that becomes empty now and then does not grow, however it wanders.
    #[must_use]
    pub fn grown_to(&self, end: SimTime) -> Option<u64> {
        let from = |quarters: u64| {
            let first = u128::from(end.as_nanos()) * u128::from(quarters) / 4;
            let first = first.div_ceil(u128::from(self.width));
            usize::try_from(first).unwrap_or(usize::MAX)
        };
        let half = self.points(from(2));
        let last = self.points(from(3));
        if half.len() < FEWEST[0] || last.len() < FEWEST[1] || last.len() >= half.len() {
            return None;
        }
        let third = &self.cells[from(2)..from(3)];
        let (sum, count) = third
            .iter()
            .fold((0, 0), |(sum, count), it| (sum + it.sum, count + it.count));
        let last_cells = &self.cells[from(3)..];
        let least = last_cells.iter().filter(|it| it.count > 0);
        let least = least.map(|it| it.least).min()?;
        let is_above = u128::from(least) * u128::from(count) > sum;
        let line = Line::through(&half);
        let grows = is_above && line.rises() && line.explains_half();
        (grows && Line::through(&last).rises()).then_some(least)
    }

    /// The blocks with a value from number `from` on, each with its mean, in so few bits that
    /// squares can be summed.
    fn points(&self, from: usize) -> Vec<(i128, i128)> {
        let cells = self.cells.iter().enumerate().skip(from);
        let means = cells.filter_map(|(at, it)| {
            let mean = it.sum.checked_div(it.count.into())?;
            Some((at as i128, mean))
        });
        let means: Vec<(i128, u128)> = means.collect();
        let most = means.iter().map(|it| it.1).max().unwrap_or(0);
        // More bits where the values are small: a queue of three jobs is a number, too.
        let bits = 128 - most.leading_zeros();
        let scaled = |mean: u128| {
            let scaled = match bits {
                BITS.. => mean >> (bits - BITS),
                _ => mean << (BITS - bits),
            };
            i128::try_from(scaled).expect("few bits")
        };
        means.into_iter().map(|(at, it)| (at, scaled(it))).collect()
    }
}

/// A number that goes up and down, as the course of its means over time.
#[derive(Clone, Debug, Default)]
pub struct Level {
    value: u64,
    since: SimTime,
    /// Of the value times nanoseconds, since `noted`.
    sum: u128,
    noted: SimTime,
    course: Course,
}

impl Level {
    /// The number goes up by one, or down.
    ///
    /// # Panics
    /// If time falls.
    pub fn step(&mut self, now: SimTime, goes_up: bool) {
        self.settle(now);
        self.value = if goes_up {
            self.value + 1
        } else {
            self.value.saturating_sub(1)
        };
    }

    /// The least mean length of a block in the last quarter of a run that ended at `end`, if the
    /// number still grew in its second half.
    ///
    /// # Panics
    /// If `end` is before the last step.
    pub fn grown_to(&mut self, end: SimTime) -> Option<u64> {
        self.settle(end);
        self.course.grown_to(end)
    }

    fn settle(&mut self, now: SimTime) {
        self.sum += u128::from(now.since(self.since).get()) * u128::from(self.value);
        self.since = now;
        let span = now.since(self.noted).get();
        if span >= self.course.width() {
            let mean = u64::try_from(self.sum / u128::from(span)).unwrap_or(u64::MAX);
            self.course.add(now, mean);
            (self.noted, self.sum) = (now, 0);
        }
    }
}

/// The sums of least squares, each times the number of points.
struct Line {
    xx: i128,
    xy: i128,
    yy: i128,
}

impl Line {
    fn through(points: &[(i128, i128)]) -> Self {
        let n = points.len() as i128;
        let sum = |of: fn(&(i128, i128)) -> i128| points.iter().map(of).sum::<i128>();
        let (x, y) = (sum(|it| it.0), sum(|it| it.1));
        Self {
            xx: n * sum(|it| it.0 * it.0) - x * x,
            xy: n * sum(|it| it.0 * it.1) - x * y,
            yy: n * sum(|it| it.1 * it.1) - y * y,
        }
    }

    const fn rises(&self) -> bool {
        self.xy > 0
    }

    /// Whether the square of the correlation is at least a half.
    const fn explains_half(&self) -> bool {
        2 * self.xy * self.xy >= self.xx * self.yy
    }
}

#[cfg(test)]
mod tests {
    use crate::Rng;

    use super::*;

    /// Nanoseconds that a request takes on average.
    const WORK: f64 = 1e6;

    fn drawn(rng: &mut Rng, mean: f64) -> u64 {
        let uniform = (rng.below(1 << 52) + 1) as f64 / (1_u64 << 52) as f64;
        (-uniform.ln() * mean) as u64
    }

    /// Whether answers of a queue with one server are said to grow, of so many requests that come
    /// at random and take exponential times (M/M/1).
    fn grows(load: f64, requests: usize, seed: u64) -> bool {
        let mut rng = Rng::new(seed, 0);
        let (mut came, mut free) = (0, 0);
        let mut answers = Vec::new();
        for _ in 0..requests {
            came += drawn(&mut rng, WORK / load);
            free = came.max(free) + drawn(&mut rng, WORK);
            answers.push((free, free - came));
        }
        course(&answers, came)
    }

    fn course(answers: &[(u64, u64)], end: u64) -> bool {
        let mut course = Course::default();
        for (at, length) in answers.iter().filter(|it| it.0 <= end) {
            course.add(SimTime::from_nanos(*at), *length);
        }
        assert!(course.cells.len() <= 64);
        course.grown_to(SimTime::from_nanos(end)).is_some()
    }

    #[test]
    fn a_queue_of_nine_tenths_of_a_server_does_not_grow_in_any_of_forty_runs() {
        for seed in 0..40 {
            assert!(!grows(0.9, 10_000, seed), "seed {seed}");
        }
    }

    #[test]
    fn a_queue_of_more_than_a_server_grows() {
        for seed in 0..40 {
            assert!(grows(1.2, 3_000, seed), "seed {seed}");
        }
        // Of 2 % too much a queue of 100,000 grows by 2,000, give or take the root of 200,000.
        let found = (0..20).filter(|seed| grows(1.02, 100_000, *seed)).count();
        assert!(found >= 18, "{found} of 20");
    }

    #[test]
    fn bursts_that_become_empty_are_no_growth_and_bursts_that_do_not_are() {
        let bursts = |work: u64| {
            let (mut free, mut answers) = (0, Vec::new());
            for burst in 0..40_u64 {
                let came = burst * 250_000_000;
                for _ in 0..100 {
                    free = came.max(free) + work;
                    answers.push((free, free - came));
                }
            }
            course(&answers, 10_000_000_000)
        };
        assert!(!bursts(1_000_000), "100 ms of work each 250 ms");
        assert!(!bursts(2_400_000), "240 ms of work each 250 ms");
        assert!(bursts(2_800_000), "280 ms of work each 250 ms");
    }

    #[test]
    fn a_level_grows_if_more_comes_than_goes() {
        let grows = |done: u64| {
            let mut level = Level::default();
            for ms in 0..2_000_u64 {
                level.step(SimTime::from_nanos(ms * 1_000_000), true);
                if ms % 10 < done {
                    level.step(SimTime::from_nanos(ms * 1_000_000 + 500_000), false);
                }
            }
            level.grown_to(SimTime::from_nanos(2_000_000_000))
        };
        assert_eq!(grows(10), None);
        // Of each ten two stay: 300 after three quarters.
        assert!(grows(8).is_some_and(|it| (290..=310).contains(&it)));
    }

    #[test]
    fn a_step_and_a_constant_are_no_growth() {
        let step = |at: u64| -> Vec<(u64, u64)> {
            let value = |now: u64| if now < at { 1 } else { 500 };
            (0..1000).map(|ms| (ms * 1_000_000, value(ms))).collect()
        };
        for at in [0, 300, 600, 740, 800, 950] {
            assert!(!course(&step(at), 1_000_000_000), "{at} ms");
        }
    }

    #[test]
    fn an_empty_or_a_short_course_does_not_grow_and_the_longest_run_fits() {
        assert!(!course(&[], 0));
        assert!(!course(&[(5, 1), (6, 2)], 10));
        let mut course = Course::default();
        course.add(SimTime::from_nanos(u64::MAX), u64::MAX);
        course.add(SimTime::from_nanos(u64::MAX), u64::MAX);
        assert_eq!(course.grown_to(SimTime::from_nanos(u64::MAX)), None);
    }
}

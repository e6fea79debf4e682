//! Run-queue lengths, waiting tasks and imbalance, averaged over time.

use model::growth::Course;
use model::{CpuId, SimTime};

/// Follows how many tasks are runnable or running at each CPU. Every change costs the same,
/// however many CPUs and tasks there are.
#[derive(Clone, Debug)]
pub(super) struct Queues {
    lengths: Vec<u32>,
    /// How many CPUs have a queue of each length.
    cpus_with: Vec<u32>,
    shortest: usize,
    longest: usize,
    /// Tasks that are runnable or running.
    runnable: u64,
    /// CPUs with a task.
    busy: u64,
    settled: SimTime,
    sums: QueueSums,
    /// How many tasks are runnable or running, over time.
    course: Course,
    /// When `course` got its last value, when it wants the next one, and the integral then.
    noted: SimTime,
    next_note: SimTime,
    noted_sum: u128,
}

/// Integrals over time, in task-nanoseconds, and the extreme.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct QueueSums {
    pub runnable: u128,
    pub waiting: u128,
    pub imbalance: u128,
    pub idle_while_waiting: u128,
    pub longest: u32,
}

impl Queues {
    pub fn new(cpus: u16) -> Self {
        Self {
            lengths: vec![0; usize::from(cpus)],
            cpus_with: vec![u32::from(cpus), 0],
            shortest: 0,
            longest: 0,
            runnable: 0,
            busy: 0,
            settled: SimTime::ZERO,
            sums: QueueSums::default(),
            course: Course::default(),
            noted: SimTime::ZERO,
            next_note: SimTime::ZERO,
            noted_sum: 0,
        }
    }

    /// Adds the time since the last change to the integrals. To be called before each change.
    #[inline]
    pub fn settle(&mut self, now: SimTime) {
        let span = u128::from(now.since(self.settled).get());
        if span == 0 {
            return;
        }
        self.settled = now;
        self.sums.runnable += span * u128::from(self.runnable);
        let waiting = self.runnable.saturating_sub(self.busy);
        // Often nobody waits, and often all CPUs have as many.
        if waiting > 0 {
            let idle = (self.lengths.len() as u64).saturating_sub(self.busy);
            self.sums.waiting += span * u128::from(waiting);
            self.sums.idle_while_waiting += span * u128::from(waiting.min(idle));
        }
        if self.longest > self.shortest {
            self.sums.imbalance += span * (self.longest - self.shortest) as u128;
        }
        if now >= self.next_note {
            self.note(now);
        }
    }

    /// Gives the course the mean length since its last value.
    #[inline(never)]
    fn note(&mut self, now: SimTime) {
        let span = u128::from(now.since(self.noted).get());
        let sum = self.sums.runnable - self.noted_sum;
        let mean = u64::try_from(sum.checked_div(span).unwrap_or(0)).unwrap_or(u64::MAX);
        self.course.add(now, mean);
        (self.noted, self.noted_sum) = (now, self.sums.runnable);
        let next = now.as_nanos().saturating_add(self.course.width());
        self.next_note = SimTime::from_nanos(next);
    }

    /// What the queues of all CPUs together have grown to, if they still grew at `end`.
    pub fn grown_to(&self, end: SimTime) -> Option<u64> {
        self.course.grown_to(end)
    }

    /// The integrals up to the last call of [`Self::settle`].
    pub const fn sums(&self) -> QueueSums {
        self.sums
    }

    /// A task at `cpu` became runnable.
    #[inline]
    pub fn add(&mut self, cpu: CpuId) {
        self.runnable += 1;
        let lengths = &mut self.lengths[cpu.index()];
        let length = *lengths as usize;
        *lengths += 1;
        // In this order one look finds out that both are there.
        self.cpus_with[length + 1] += 1;
        self.cpus_with[length] -= 1;
        if self.longest <= length {
            self.lengthen();
        }
        if length == self.shortest && self.cpus_with[length] == 0 {
            self.shortest += 1;
        }
    }

    /// The longest queue has become longer by one.
    #[inline(never)]
    fn lengthen(&mut self) {
        self.longest += 1;
        self.sums.longest = self.sums.longest.max(self.longest as u32);
        // There is always a place for one task more.
        if self.cpus_with.len() <= self.longest + 1 {
            self.cpus_with.push(0);
        }
    }

    /// A task at `cpu` is no longer runnable.
    ///
    /// # Panics
    /// If no task is there.
    #[inline]
    pub fn remove(&mut self, cpu: CpuId) {
        let length = self.lengths[cpu.index()] as usize;
        assert!(length > 0, "no runnable task is at CPU {cpu}");
        self.runnable -= 1;
        self.lengths[cpu.index()] -= 1;
        self.cpus_with[length] -= 1;
        self.cpus_with[length - 1] += 1;
        self.shortest = self.shortest.min(length - 1);
        if length == self.longest && self.cpus_with[length] == 0 {
            self.longest -= 1;
        }
    }

    /// A CPU without a task got one.
    pub const fn take(&mut self) {
        self.busy += 1;
    }

    /// A CPU with a task lost it.
    pub const fn release(&mut self) {
        self.busy -= 1;
    }
}

#[cfg(test)]
mod tests {
    use model::Rng;

    use super::*;

    #[test]
    fn the_extremes_follow_every_change() {
        for seed in 0..100 {
            let mut rng = Rng::new(seed, 0);
            let cpus = 1 + rng.below(5) as u16;
            let mut queues = Queues::new(cpus);
            for _ in 0..200 {
                let cpu = CpuId(rng.below(u64::from(cpus)) as u16);
                if rng.below(2) == 0 || queues.lengths[cpu.index()] == 0 {
                    queues.add(cpu);
                } else {
                    queues.remove(cpu);
                }
                let longest = queues.lengths.iter().max().copied().unwrap();
                let shortest = queues.lengths.iter().min().copied().unwrap();
                let found = (queues.longest as u32, queues.shortest as u32);
                assert_eq!(found, (longest, shortest), "seed {seed}: {queues:?}");
                assert_eq!(
                    queues.runnable,
                    queues.lengths.iter().map(|&n| u64::from(n)).sum::<u64>()
                );
            }
        }
    }

    #[test]
    fn integrals_weigh_lengths_by_time() {
        let mut queues = Queues::new(2);
        let at = SimTime::from_nanos;
        queues.add(CpuId(0));
        queues.take();
        queues.settle(at(10)); // One runs on CPU 0; CPU 1 idles.
        queues.add(CpuId(0));
        queues.add(CpuId(0));
        queues.settle(at(15)); // Two wait at CPU 0 while CPU 1 idles.
        queues.remove(CpuId(0));
        queues.add(CpuId(1));
        queues.take();
        queues.settle(at(17)); // One runs on each; one waits.
        let sums = queues.sums();
        assert_eq!(sums.runnable, 10 + 3 * 5 + 3 * 2);
        assert_eq!(sums.waiting, 2 * 5 + 2);
        assert_eq!(sums.imbalance, 10 + 3 * 5 + 2);
        assert_eq!(sums.idle_while_waiting, 5);
        assert_eq!(sums.longest, 3);
    }
}

//! What is known of tasks and of groups of them.

use std::collections::BTreeMap;

use model::{MachineSpec, Nanos, SimTime, TaskGroup};

use crate::CpuSet;

/// Lengths of time, by powers of two in quarters: how many, and their sum.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LengthHistogram(pub BTreeMap<u32, (u64, u128)>);

impl LengthHistogram {
    pub fn add(&mut self, length: Nanos) {
        let ns = length.get().max(1);
        let power = ns.ilog2();
        // The two bits after the first.
        let quarter = if power >= 2 { ns >> (power - 2) & 3 } else { 0 };
        let bucket = power * 4 + u32::try_from(quarter).expect("two bits");
        let (many, sum) = self.0.entry(bucket).or_default();
        *many += 1;
        *sum += u128::from(ns);
    }

    pub fn append(&mut self, other: &Self) {
        for (bucket, (many, sum)) in &other.0 {
            let own = self.0.entry(*bucket).or_default();
            own.0 += many;
            own.1 += sum;
        }
    }

    pub fn many(&self) -> u64 {
        self.0.values().map(|(many, _)| many).sum()
    }

    pub fn sum(&self) -> u128 {
        self.0.values().map(|(_, sum)| sum).sum()
    }
}

/// History of a task.
#[derive(Clone, Debug, Default)]
pub struct TaskHistory {
    pub group: usize,
    /// Its parent, if that task is part of the recording.
    pub parent: Option<usize>,
    /// Whether it ran before anything woke it.
    pub ran_first: bool,
    pub running: Option<SimTime>,
    pub burst: Nanos,
    pub asleep: SimTime,
    pub started: bool,
    pub has_run: bool,
    /// Its run times from a wakeup to the next sleep.
    pub bursts: LengthHistogram,
    /// How long it slept until a task woke it, or work from outside.
    pub waits: LengthHistogram,
    pub by_outside: u64,
    /// How often who woke it was about to sleep.
    pub synchronously: u64,
    /// Sleeps that a clock or a device ended.
    pub clocks: LengthHistogram,
    pub devices: LengthHistogram,
    /// How often it woke which task, and which tasks it forked.
    pub wakes: BTreeMap<usize, u64>,
    pub forks: BTreeMap<usize, u64>,
}

impl TaskHistory {
    pub fn settle(&mut self, now: SimTime) {
        if let Some(since) = self.running.filter(|since| *since < now) {
            self.burst += now.since(since);
            self.running = Some(now);
        }
    }

    pub fn end_burst(&mut self) {
        let burst = std::mem::replace(&mut self.burst, Nanos::ZERO);
        if !burst.is_zero() {
            self.bursts.add(burst);
        }
    }
}

/// Wishes for the file.
#[derive(Clone, Copy, Debug)]
pub struct AsFile<'a> {
    /// Name of the workload.
    pub name: &'a str,
    /// The recorded tasks' names and nice values.
    pub groups: &'a [TaskGroup],
    /// The machine.
    pub machine: &'a MachineSpec,
    /// How long the recording is.
    pub length: Nanos,
    /// Whether names are left out.
    pub anonymous: bool,
}

/// Facts about a task that its events do not say.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct KnownTask {
    /// Its real-time priority, 1 to 99; `None` for other tasks.
    pub realtime: Option<u8>,
    /// The CPUs that it is bound to; `None`: all.
    pub cpus: Option<CpuSet>,
}

/// History of one group's tasks together.
#[derive(Clone, Debug, Default)]
pub struct GroupHistory {
    /// Its name in the file, and what its tasks were called.
    pub name: String,
    pub called: String,
    pub nice: i8,
    pub known: KnownTask,
    pub forked: bool,
    pub tasks: u64,
    pub ran_first: u64,
    pub sum: TaskHistory,
    /// By the number of another kind.
    pub wakes: BTreeMap<usize, u64>,
    pub forks: BTreeMap<usize, u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_kept_in_rising_quarters_of_powers_of_two() {
        let mut lengths = LengthHistogram::default();
        let quarters = [8_u64, 10, 12, 14, 16, 20, 24, 28, 1 << 40, 3 << 39];
        for length in quarters.into_iter().chain([9, 15]).rev() {
            lengths.add(Nanos::new(length));
        }
        let sums: Vec<(u64, u128)> = lengths.0.values().copied().collect();
        let want = [(2, 17), (1, 10), (1, 12), (2, 29)].into_iter();
        let want = want.chain(quarters[4..].iter().map(|it| (1, (*it).into())));
        assert_eq!(sums, want.collect::<Vec<_>>());
        assert_eq!(lengths.many(), 12);
    }
}

//! Counters of a run at one moment, for those who want to see them grow.

use crate::{SimTime, Sink};

/// Counters of one CPU's scheduler since the run began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuCounts {
    /// Calls of `schedule()`.
    pub schedules: u64,
    /// Calls that ended with a task and not with idling, those that kept the task included.
    pub picks: u64,
    /// Calls that kept the running task.
    pub kept: u64,
    /// Calls of `sched_yield()`.
    pub yields: u64,
}

/// All counters at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// The moment. Every event before it has been sent.
    pub time: SimTime,
    /// One entry a CPU.
    pub cpus: Vec<CpuCounts>,
    /// The policy's own counters (report.bpf.h), by name, with one value a CPU.
    pub policy: Vec<(String, Vec<u64>)>,
}

impl Sample {
    /// The policy's counter `name` on `cpu`; `None` if it has no such counter.
    #[must_use]
    pub fn policy_count(&self, name: &str, cpu: usize) -> Option<u64> {
        let (_, counts) = self.policy.iter().find(|(known, _)| known == name)?;
        counts.get(cpu).copied()
    }
}

/// A sink that is also shown the counters, at moments that it has asked for.
pub trait Sampler: Sink {
    /// Takes the counters.
    fn sample(&mut self, sample: &Sample);
}

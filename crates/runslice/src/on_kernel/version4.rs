//! Version 4 from the policy that runs: its counters, and the kernel's own statistics.

use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, bail};
use live::pins;
use model::Advised;
use stats::schedstat::{Interval, Layout, MachineCounts, Snapshot, version_4};

use crate::exit::UnsupportedError;
use crate::on_kernel::session::{RunningProcess, SessionPaths, SessionRecord};

/// The policy that runs, and where its counters and the kernel's stood at the begin.
pub struct Version4 {
    place: SessionPaths,
    record: Box<SessionRecord>,
    begin: Instant,
    first: Option<Reading>,
}

/// All counters at one moment.
struct Reading {
    /// By name, one value a CPU.
    policy: Vec<Vec<u64>>,
    kernel: Snapshot,
}

impl Version4 {
    /// Of the policy that runslice runs on this machine.
    ///
    /// # Errors
    /// When there is none.
    pub fn of_this_machine() -> anyhow::Result<Self> {
        let place = SessionPaths::below(Path::new("/"));
        let RunningProcess::Running(record) = place.find()? else {
            let message = Advised::new(
                "version 4 is made of a policy's counters, and runslice runs none here",
                "start one with `runslice run POLICY`",
            );
            return Err(UnsupportedError::new(message).into());
        };
        Ok(Self {
            place,
            record,
            begin: Instant::now(),
            first: None,
        })
    }

    /// The counters since the first call, with `kernel`'s of this moment.
    ///
    /// # Errors
    /// When the policy has gone.
    pub fn snapshot(
        &mut self,
        read: impl FnOnce() -> anyhow::Result<Snapshot>,
    ) -> anyhow::Result<Snapshot> {
        // The policy first: what the kernel counts is then never older than its parts.
        let policy = pins::counters_by_cpu(&self.place.pins(), self.record.counters.len());
        let elapsed = self.begin.elapsed();
        let policy = policy.with_context(|| format!("{} has gone", self.record.policy))?;
        let now = Reading {
            policy,
            kernel: read()?,
        };
        let first = self.first.get_or_insert_with(|| Reading {
            policy: now.policy.clone(),
            kernel: now.kernel.clone(),
        });
        let jiffies = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
        since(first, &now, &self.record, jiffies)
    }
}

/// Version 4 of what happened between two readings, which are `jiffies` milliseconds apart.
fn since(
    first: &Reading,
    now: &Reading,
    record: &SessionRecord,
    jiffies: u64,
) -> anyhow::Result<Snapshot> {
    let interval = Interval::new(&first.kernel, &now.kernel)?;
    let layout = interval.layout();
    let mut snapshot = Snapshot::new(Layout::of(4).expect("a version with a table"), jiffies);
    for cpu in &interval.cpus {
        let policy = |name: &str| {
            let index = record.counters.iter().position(|known| known == name)?;
            let of = |reading: &Reading| reading.policy.get(index)?.get(cpu.cpu as usize).copied();
            Some((of(first)?, of(now)?))
        };
        if let Some((before, after)) = record
            .counters
            .iter()
            .filter_map(|name| policy(name))
            .find(|(before, after)| after < before)
        {
            bail!(Advised::new(
                format!(
                    "{} was loaded again: a counter fell from {before} to {after}",
                    record.policy
                ),
                "record again"
            ));
        }
        let policy = |name: &str| policy(name).map(|(before, after)| after - before);
        let kernel = |name| {
            let count = cpu.get(layout, name).with_context(|| {
                format!(
                    "version {} of /proc/schedstat has no {name}",
                    layout.version
                )
            })?;
            anyhow::Ok(u64::try_from(count).unwrap_or(u64::MAX))
        };
        let ms = |name| anyhow::Ok(kernel(name)? / 1_000_000);
        // The kernel counts a task that it keeps neither as a pick nor as a turn.
        let picks = kernel("pcnt")? + policy("kept").unwrap_or(0);
        let cpu_time = ms("cpu_time")?;
        let machine = MachineCounts {
            yields: kernel("yld_cnt")?,
            picks,
            schedules: kernel("sched_cnt")?,
            idle_jiffies: jiffies.saturating_sub(cpu_time),
            cpu_time,
            run_delay: ms("run_delay")?,
            pcnt: picks,
        };
        snapshot.push_cpu(cpu.cpu, &version_4(&machine, policy, interval.cpus.len()));
    }
    snapshot.sum_totals();
    Ok(snapshot)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One CPU's line of version 17: yields, calls, idle, and the three times.
    fn kernel(timestamp: u64, [yields, calls, run, wait, pcnt]: [u64; 5]) -> Snapshot {
        let mut snapshot = Snapshot::new(Layout::of(17).unwrap(), timestamp);
        snapshot.push_cpu(0, &[yields, 0, calls, 0, 0, 0, run, wait, pcnt]);
        snapshot.push_cpu(1, &[0; 9]);
        snapshot
    }

    fn record() -> SessionRecord {
        let names = [
            "kept",
            "array_switches",
            "lb_busy",
            "lb_not_found",
            "pulled",
            "pulled_from",
        ];
        SessionRecord {
            counters: names.map(str::to_owned).to_vec(),
            ..SessionRecord::of_this_process("o1")
        }
    }

    fn policy(values: [u64; 6]) -> Vec<Vec<u64>> {
        values.into_iter().map(|value| vec![value, 0]).collect()
    }

    #[test]
    fn counters_are_those_since_the_begin() {
        let first = Reading {
            policy: policy([1, 1, 1, 1, 1, 1]),
            kernel: kernel(100, [5, 50, 1_000_000, 0, 10]),
        };
        let now = Reading {
            policy: policy([4, 3, 6, 2, 2, 1]),
            kernel: kernel(350, [7, 150, 401_000_000, 30_500_000, 40]),
        };
        let snapshot = since(&first, &now, &record(), 1_000).unwrap();
        let cpu = snapshot.cpu(0).unwrap();
        let names = [
            "yld_cnt",
            "sched_noswitch",
            "sched_switch",
            "sched_cnt",
            "lb_idle",
            "lb_busy",
            "lb_cnt",
            "lb_nobusy",
            "pt_gained",
            "pt_lost",
            "cpu_time",
            "run_delay",
            "pcnt",
        ];
        let want = [2, 33, 2, 100, 600, 5, 605, 601, 1, 0, 400, 30, 33];
        assert_eq!(names.map(|name| cpu.get(name).unwrap()), want);
        assert_eq!(snapshot.timestamp(), 1_000);
    }

    #[test]
    fn a_policy_that_was_loaded_again_is_told() {
        let reading = |values, timestamp| Reading {
            policy: policy(values),
            kernel: kernel(timestamp, [0; 5]),
        };
        let error = since(&reading([9; 6], 1), &reading([2; 6], 2), &record(), 1).unwrap_err();
        assert!(error.to_string().contains("o1 was loaded again"), "{error}");
    }
}

//! Reads what is said about cgroups and about deadline tasks.

use super::{Failure, Parser, range};
use crate::{Bandwidth, Budget, CgroupOp, ROOT_CGROUP};
use model::Nanos;
use model::file::Problem;

/// Limits of `cpu.max`, microseconds (`min_bw_quota_period_us`, `max_bw_quota_period_us`, kernel
/// 6.18).
const PERIOD_US: std::ops::RangeInclusive<u64> = 1_000..=1_000_000;
/// Least runtime of a deadline task (`1 << DL_SCALE`, kernel 6.18), and its least and greatest
/// period (`sysctl_sched_dl_period_min` and `_max`).
const RUNTIME_MIN: Nanos = Nanos::new(1 << 10);
const DL_PERIOD_MIN: Nanos = Nanos::from_micros(100);
const DL_PERIOD_MAX: Nanos = Nanos::from_micros(1 << 22);

impl Parser<'_> {
    /// A task, a cgroup, and whether the whole process moves.
    pub fn cgroup_move(&mut self) -> Result<CgroupOp, Failure> {
        let target = self.first_target()?;
        let to = self.cgroup()?;
        let process = self.accept(",");
        if process {
            self.word(&["process"])?;
        }
        Ok(CgroupOp::Move {
            target,
            to,
            process,
        })
    }

    /// The number of a cgroup that is named as its table.
    fn cgroup(&mut self) -> Result<u32, Failure> {
        let (name, at) = self.name("the name of a cgroup")?;
        if name == "root" {
            return Ok(ROOT_CGROUP);
        }
        let names = self.names.cgroups.iter().map(|(name, _)| name.as_str());
        let found = super::names::find("cgroup", &name, names);
        found
            .map(|index| index + 1)
            .map_err(|problem| (problem, at))
    }

    /// A cgroup whose files can be written, and the comma behind it.
    pub fn limited_cgroup(&mut self) -> Result<u32, Failure> {
        let at = self.offset();
        let number = self.cgroup()?;
        if number == ROOT_CGROUP {
            let expected = "another cgroup: the root has no weight and no limit";
            return Err((Problem::unexpected("`root`", expected), at));
        }
        self.expect(",")?;
        Ok(number)
    }

    /// `20ms/100ms`, or `inf`.
    pub fn bandwidth(&mut self) -> Result<Bandwidth, Failure> {
        let mut max = Bandwidth::default();
        if self.accept("inf") {
            return Ok(max);
        }
        let at = self.offset();
        let quota = self.micros()?;
        if self.accept("/") {
            let at = self.offset();
            max.period_us = self.micros()?;
            if !PERIOD_US.contains(&max.period_us) {
                let found = i64::try_from(max.period_us).unwrap_or(i64::MAX);
                return Err((range("the period in us", found, "1000 to 1000000"), at));
            }
        }
        if quota < *PERIOD_US.start() {
            let found = i64::try_from(quota).unwrap_or(i64::MAX);
            return Err((range("the quota in us", found, "1000 or more"), at));
        }
        max.quota_us = Some(quota);
        Ok(max)
    }

    /// A span of whole microseconds.
    pub fn micros(&mut self) -> Result<u64, Failure> {
        let at = self.offset();
        let span = self.span()?.get();
        if span.is_multiple_of(1_000) {
            return Ok(span / 1_000);
        }
        let found = format!("`{span}ns`");
        Err((Problem::unexpected(found, "whole microseconds"), at))
    }

    /// `RUNTIME/DEADLINE`, `RUNTIME/DEADLINE/PERIOD`: what the kernel accepts of a deadline task.
    ///
    /// Source: `__checkparam_dl()`, kernel 6.18.
    pub fn budget(&mut self) -> Result<Budget, Failure> {
        let at = self.offset();
        let runtime = self.span()?;
        self.expect("/")?;
        let deadline = self.span()?;
        let period = if self.accept("/") {
            self.span()?
        } else {
            deadline
        };
        let wrong = |what: &str, span: Nanos, expected: &str| {
            let found = i64::try_from(span.get()).unwrap_or(i64::MAX);
            Err((range(what, found, expected), at))
        };
        if runtime < RUNTIME_MIN {
            return wrong("the runtime in ns", runtime, "1024 or more");
        }
        if runtime > deadline {
            return wrong("the runtime in ns", runtime, "at most the deadline");
        }
        if deadline > period {
            return wrong("the deadline in ns", deadline, "at most the period");
        }
        if !(DL_PERIOD_MIN..=DL_PERIOD_MAX).contains(&period) {
            return wrong("the period in ns", period, "100000 to 4194304000");
        }
        Ok(Budget {
            runtime,
            deadline,
            period,
        })
    }
}

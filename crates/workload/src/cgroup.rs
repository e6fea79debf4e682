//! Cgroups, as far as schedulers see them. docs/workload.md has the exact meaning.

use crate::{Expr, Target};

/// The root cgroup's number. The others are numbered from 1 in the order of the file.
pub const ROOT_CGROUP: u32 = 0;

/// Most ancestors of a cgroup, the root included: so many can a policy see.
pub const CGROUP_DEPTH_MAX: usize = 15;

/// The least and the greatest `cpu.weight` (`CGROUP_WEIGHT_MIN` and `_MAX`, kernel 6.18).
pub const CGROUP_WEIGHTS: std::ops::RangeInclusive<i64> = 1..=10_000;

/// `[cgroup.G]`: a cgroup with the controller `cpu`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cgroup {
    /// Its name.
    pub name: String,
    /// Where it is, as `/a/b`.
    pub path: String,
    /// Number of its parent, which is less than its own.
    pub parent: u32,
    /// `cpu.weight`, one of [`CGROUP_WEIGHTS`].
    pub weight: u32,
    /// `cpu.max`.
    pub max: Bandwidth,
    /// `cpu.idle`.
    pub idle: bool,
}

/// `cpu.max` and `cpu.max.burst`, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bandwidth {
    /// CPU time in a period, 1000 or more; `None`: no limit.
    pub quota_us: Option<u64>,
    /// The period, 1000 to 1,000,000.
    pub period_us: u64,
    /// Burst that may be saved up, at most the quota.
    pub burst_us: u64,
}

impl Default for Bandwidth {
    /// No limit, in periods of 100 ms (`default_bw_period_us()`, kernel 6.18).
    fn default() -> Self {
        Self {
            quota_us: None,
            period_us: 100_000,
            burst_us: 0,
        }
    }
}

/// Operation on cgroups.
#[derive(Clone, Debug, PartialEq)]
pub enum CgroupOp {
    /// Moves a task.
    Move {
        /// Whom.
        target: Target,
        /// Number of the new cgroup.
        to: u32,
        /// All tasks that share its address space with it.
        process: bool,
    },
    /// Writes `cpu.weight`.
    Weight {
        /// Number of the cgroup, not the root's.
        of: u32,
        /// The new weight, one of [`CGROUP_WEIGHTS`].
        weight: Expr,
    },
    /// Writes `cpu.max`; the burst stays.
    Max {
        /// Number of the cgroup, not the root's.
        of: u32,
        /// Quota and period.
        max: Bandwidth,
    },
    /// Writes `cpu.idle`.
    Idle {
        /// Number of the cgroup, not the root's.
        of: u32,
        /// 0 or 1.
        idle: Expr,
    },
}

impl CgroupOp {
    /// The expressions that it evaluates.
    #[must_use]
    pub fn exprs(&self) -> Vec<&Expr> {
        match self {
            Self::Move { target, .. } => target.index().into_iter().collect(),
            Self::Weight { weight: value, .. } | Self::Idle { idle: value, .. } => vec![value],
            Self::Max { .. } => Vec::new(),
        }
    }
}

//! How grave a finding is, and by which right a share is judged.

use model::{CpuId, Nanos, SimTime, TaskId};

use super::measure::Measured;

/// What makes a finding a fault. The tiers are never mixed: a finding has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tier {
    /// The kernel forbids it or ends it: an error exit, a runnable task in no queue, or one in a
    /// queue that no CPU of its mask reads.
    Contract,
    /// A CPU that the task may use idles: it could run, and nobody would have to wait for it.
    NoRival,
    /// Others have the task's CPUs, and it lags behind its right by more than its bound.
    Share,
}

impl Tier {
    /// A word for scripts.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Contract => "contract",
            Self::NoRival => "no-rival",
            Self::Share => "share",
        }
    }
}

/// The right by which a policy shares the CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Right {
    /// By the weight of each task.
    Weight,
    /// By `cpu.weight` of each cgroup, and in it by the weight of each task.
    Cgroup,
    /// A task of higher rank goes first for as long as it wants.
    Rank,
    /// The task with the earliest deadline goes first.
    Deadline,
    /// Nobody has a right to a share.
    Nothing,
}

impl Right {
    /// Every right.
    pub const ALL: [Self; 5] = [
        Self::Weight,
        Self::Cgroup,
        Self::Rank,
        Self::Deadline,
        Self::Nothing,
    ];

    /// As a policy declares it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Weight => "weight",
            Self::Cgroup => "cgroup",
            Self::Rank => "rank",
            Self::Deadline => "deadline",
            Self::Nothing => "none",
        }
    }

    /// The right of this word; `None` if there is none.
    #[must_use]
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.word() == word)
    }

    /// Whether a task that only lags may have something to complain of.
    #[must_use]
    pub const fn has_shares(self) -> bool {
        matches!(self, Self::Weight | Self::Cgroup)
    }
}

/// A share that is broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Share {
    /// The right that the policy declares; `None`: it declares none, so nothing is promised.
    pub right: Option<Right>,
    /// CPU time that the victim had a right to in its wait, by the weights of all tasks.
    pub lag: Nanos,
    /// The same by cgroup; `None` if the load has none.
    pub lag_by_cgroup: Option<Nanos>,
    /// The lag above which the share is broken.
    pub bound: Nanos,
}

/// A lock that a task waits for, and who has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldLock {
    /// The lock.
    pub name: String,
    /// The task that has it.
    pub task: TaskId,
    /// The same as `name[pid]`.
    pub holder: String,
    /// Since when that is runnable and does not run.
    pub since: Option<SimTime>,
    /// A task that runs meanwhile, of less weight than the one that waits.
    pub runs: String,
}

/// A right on a CPU that a scheduler below the root lacks, so that a local queue turned its task
/// away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingRight {
    /// The CPU.
    pub cpu: CpuId,
    /// Names of it: the second one would do for an insert with `SCX_ENQ_IMMED`. None: the run does
    /// not tell.
    pub rights: &'static [&'static str],
}

/// Why a finding counts as a fault, or does not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Its tier, unless an error exit makes it a broken contract; `None`: no fault of a policy.
    pub tier: Option<Tier>,
    /// Of [`Tier::Share`]: by how much.
    pub share: Option<Share>,
    /// Of a lock that is held: the one for which the victim sleeps.
    pub lock: Option<HeldLock>,
    /// Of a task that was turned away in its wait: what its scheduler lacked.
    pub missing: Option<MissingRight>,
    /// Of a property that is broken: what was measured of the run.
    pub measured: Option<Measured>,
    /// Of a wait behind higher classes: the kernel has a server that keeps CPU time for the
    /// policy's tasks (`ext_server`, kernel 7.0, kernel/sched/ext.c).
    pub has_server: bool,
}

/// How far a task lags behind what it has a right to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lag {
    /// The task's number in the run.
    pub task: TaskId,
    /// Its name from the workload.
    pub name: String,
    /// CPU time that it had a right to in its present wait. It got none of that.
    pub lag: Nanos,
    /// The lag above which its share is broken: one round, at least 100 ms.
    pub bound: Nanos,
}

//! How grave a finding is, and by which right a share is judged.

use model::{Nanos, TaskId};

use super::finding::{Fault, Finding};

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

impl Fault {
    /// The tier of the class; `None` if it is no fault of a policy. A class that an error exit
    /// ended is [`Tier::Contract`] whatever it is: see [`Finding::tier`].
    #[must_use]
    pub const fn tier(self) -> Option<Tier> {
        match self {
            Self::Lost
            | Self::InsertIgnored
            | Self::UnreadQueue
            | Self::UnreachableQueue
            | Self::CpuNotAllowed
            | Self::NoSuchCpu
            | Self::NoSuchQueue
            | Self::InsertedTwice
            | Self::EndlessLoop
            | Self::WildAccess
            | Self::Misuse
            | Self::Stall
            | Self::OwnError
            | Self::Restart => Some(Tier::Contract),
            Self::Skipped | Self::ForgottenKick | Self::StuckInQueue => Some(Tier::NoRival),
            Self::PassedOver | Self::CpuHeld | Self::UnfairShare => Some(Tier::Share),
            Self::Outranked | Self::Waited | Self::Unknown => None,
        }
    }
}

impl Finding {
    /// The tier of the finding; `None` if it is no fault of a policy.
    #[must_use]
    pub const fn tier(&self) -> Option<Tier> {
        match self.message {
            Some(_) => Some(Tier::Contract),
            None => self.fault.tier(),
        }
    }
}

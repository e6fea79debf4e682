//! What is kept of schedulers below the root; see [`crate::sub`], which alone changes it.

use model::{Advised, SubSpec};

use crate::Error;
use crate::cids::ArenaMasks;
use crate::dsq::DsqIndex;
use crate::mask::Mask;
use crate::rescues::Rescues;
use crate::schedulers::SchedId;

/// Why `policy` cannot be attached at `cgroup`.
pub(crate) fn refused((policy, cgroup): (&str, &str), problem: Advised) -> Advised {
    problem.at(format_args!("`{policy}` at cgroup `{cgroup}`"))
}

/// As [`refused`], of what was asked for.
pub(crate) fn refused_sub(sub: &SubSpec, problem: Advised) -> Error {
    Error::Sub(refused((&sub.policy.name, &sub.cgroup), problem))
}

/// A set of rights.
pub(crate) type CapSet = u8;

/// Inserting tasks that run at once or come back. Who lacks it is not asked for work.
pub(crate) const ENQ_IMMED: CapSet = 1;
/// Inserting any task.
pub(crate) const ENQ: CapSet = 2;
/// Preempting tasks of other schedulers.
pub(crate) const PREEMPT: CapSet = 4;
/// Choosing the speed of the CPU.
pub(crate) const PERF: CapSet = 8;
/// `__SCX_CAP_ALL`.
pub(crate) const ALL_CAPS: CapSet = 0xf;

/// Rights of one scheduler.
#[derive(Clone, Debug)]
pub(crate) struct Caps {
    /// As they were granted, by cid.
    pub granted: Vec<CapSet>,
    /// Those in effect, by CPU.
    pub in_effect: Vec<CapSet>,
    /// Those of which the scheduler was told last, by CPU.
    pub told: Vec<CapSet>,
    /// What has changed since the scheduler was told of grants last, by cid.
    pub changed: Vec<CapSet>,
}

impl Caps {
    /// None.
    pub fn new(cpus: u16) -> Self {
        let none = vec![0; usize::from(cpus)];
        Self {
            granted: none.clone(),
            in_effect: none.clone(),
            told: none.clone(),
            changed: none,
        }
    }
}

/// What is kept of a scheduler below another one.
#[derive(Clone, Debug)]
pub(crate) struct Sub {
    /// Its place among those that were planned.
    pub plan: usize,
    /// Number of the cgroup whose tasks it schedules.
    pub cgroup: u32,
    pub parent: SchedId,
    /// How many are above it.
    pub level: u8,
    /// The kernel's masks in its arena.
    pub masks: Option<ArenaMasks>,
    pub caps: Caps,
    /// Its global queue of each node.
    pub globals: Vec<DsqIndex>,
    /// CPUs of which it is told that they idle, at their next look, although nothing has changed.
    pub owed_idle: Mask,
    /// Its `ops.dispatch()` executes.
    pub dispatches: bool,
    /// Its parent has accepted it.
    pub accepted: bool,
    /// Tasks that came to it.
    pub tasks: u64,
    /// CPU time of tasks that have left it, nanoseconds.
    pub ran: u64,
    /// Addresses of the argument of `ops.sub_attach()` and `ops.sub_detach()`.
    pub args: u64,
}

/// Schedulers below the root, and what they share.
#[derive(Clone, Debug, Default)]
pub(crate) struct Subs {
    /// Those that are attached, each before those below it.
    pub order: Vec<SchedId>,
    /// For each CPU, where tasks wait that were not admitted to its local queue.
    pub rejects: Vec<DsqIndex>,
    /// For each CPU, where tasks wait for a rescue, and what is kept of those.
    pub parked: Vec<DsqIndex>,
    pub rescues: Vec<Rescues>,
    /// CPUs on which rights have changed without having taken effect.
    pub stale: Option<Mask>,
    /// Why one that was planned could not be attached, so that its loader gives up.
    pub failure: Option<Advised>,
}

impl Subs {
    /// Whether `dsq` holds tasks that were not admitted to a local queue.
    pub fn is_reject(&self, dsq: DsqIndex) -> bool {
        // They were made in one go.
        let first = self.rejects.first();
        let nth = first.and_then(|first| dsq.0.checked_sub(first.0));
        nth.is_some_and(|nth| (nth as usize) < self.rejects.len())
    }
}

//! The request: what a run is made of.

use std::sync::Arc;

use model::{Header, MachineSpec, Nanos, PolicySpec};

use crate::Workload;

/// Everything that a run is a function of. The same spec gives the same bytes on every machine.
#[derive(Clone, Debug)]
pub struct RunSpec {
    /// The policy.
    pub policy: PolicySpec,
    /// The load.
    pub workload: Arc<Workload>,
    /// The machine.
    pub machine: MachineSpec,
    /// Seed of every random choice that the workload makes.
    pub seed: u64,
    /// Permutes what the kernel leaves open between simultaneous events; `None` keeps the
    /// canonical order.
    pub tie_seed: Option<u64>,
    /// When the policy is attached; before, tasks run in the kernel's fair class.
    pub attach_after: Nanos,
    /// Ends the run at this time at the latest; `None`: when the workload ends.
    pub duration: Option<Nanos>,
}

impl RunSpec {
    /// The header of the events that the run sends, if it ends after `duration`.
    #[must_use]
    pub fn header(&self, duration: Option<Nanos>) -> Header {
        let workload = &self.workload;
        workload.header(&self.policy.name, &self.machine, self.seed, duration)
    }
}

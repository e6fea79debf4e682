//! What experiments name and only the program that reads them has.

use model::{MachineSpec, PolicySpec};
use workload::Workload;

use crate::experiments::error::Cause;

/// Finds what experiments name.
pub trait Catalog {
    /// The policy that these words name, with its knobs: `mlfq:queues=10`.
    ///
    /// # Errors
    /// When there is none.
    fn policy(&self, words: &str) -> Result<PolicySpec, Cause>;

    /// The workload of this name, with these parameters.
    ///
    /// # Errors
    /// When there is none, or it lacks a parameter.
    fn workload(&self, name: &str, scale: &[(String, i64)]) -> Result<Workload, Cause>;

    /// Whether this machine can be simulated.
    ///
    /// # Errors
    /// Why not.
    fn check(&self, machine: &MachineSpec) -> Result<(), Cause>;
}

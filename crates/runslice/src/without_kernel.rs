//! Stands in the place of `on_kernel` in a program that was built without the feature `live`: the
//! verbs that take a kernel are not there, and options that ask for one end in an error.

use std::convert::Infallible;
use std::io::Write;
use std::sync::Arc;

use explain::trace::Tracer;
use model::{Advised, Nanos};
use stats::schedstat::Snapshot;
use workload::Workload;

use crate::exit::{Status, UnsupportedError};
use crate::fidelity::{Brought, Errand, KernelPlace};

/// There are none.
pub type KernelVerb = Infallible;

/// Never called.
///
/// # Errors
/// None.
pub fn run(verb: KernelVerb) -> anyhow::Result<u8> {
    match verb {}
}

/// The error for somebody who asks for a kernel; `way` is what can be done without one.
///
/// # Errors
/// Always.
pub fn lacks<T>(way: &str) -> anyhow::Result<T> {
    let message = Advised::new(
        "this runslice was built without what takes a real kernel",
        format!("{way}, or build one that has it with `make release`"),
    );
    Err(UnsupportedError::new(message).into())
}

/// The running kernel cannot be traced.
///
/// # Errors
/// Always.
pub fn trace(_: &str, _: Option<Nanos>, _: &mut Tracer) -> anyhow::Result<()> {
    lacks("give --sim or --from")
}

/// There is no virtual machine whose verifier could be asked.
///
/// # Errors
/// Always.
pub fn ask(_: &str, _: &[String], _: &mut dyn Write) -> anyhow::Result<Status> {
    lacks("leave out --vm")
}

/// The running kernel cannot be asked.
///
/// # Errors
/// Always.
pub fn ask_here(_: &str, _: &Arc<[u8]>, _: &mut dyn Write) -> anyhow::Result<Status> {
    lacks("leave out --here")
}

/// Never asked: there is no kernel that could play.
pub const fn cpus() -> u16 {
    0
}

/// No kernel can play.
///
/// # Errors
/// Always.
pub fn kernel_of_plays(_: KernelPlace, _: &str) -> anyhow::Result<String> {
    lacks("give --from")
}

/// Nothing is refused by nobody.
pub const fn refusals(_: &Workload, _: u16) -> Vec<String> {
    Vec::new()
}

/// No command is run on a kernel.
///
/// # Errors
/// Always.
pub fn perform(_: &Errand) -> anyhow::Result<Vec<Brought>> {
    lacks("give --from")
}

/// Nothing of the kernel is switched on.
///
/// # Errors
/// When that was asked for.
pub fn count(enable: bool, as_version: Option<u32>) -> anyhow::Result<Option<Infallible>> {
    match (enable, as_version) {
        (false, None) => Ok(None),
        (true, _) => lacks("leave out --enable"),
        (_, Some(_)) => lacks("leave out --as-version"),
    }
}

/// No policy runs.
pub const fn policy_counters() -> Option<(String, Vec<(String, u64)>)> {
    None
}

/// Signals are not caught: they end the program.
pub const fn is_interrupted() -> bool {
    false
}

/// The running kernel is not asked.
pub const fn hz() -> Option<u32> {
    None
}

/// There are no counters of an attached policy.
pub enum Version4 {}

impl Version4 {
    /// Never of this machine.
    ///
    /// # Errors
    /// Always.
    pub fn of_this_machine() -> anyhow::Result<Self> {
        lacks("leave out --as-version")
    }

    /// Never called.
    ///
    /// # Errors
    /// None.
    pub fn snapshot(
        &mut self,
        _: impl FnOnce() -> anyhow::Result<Snapshot>,
    ) -> anyhow::Result<Snapshot> {
        match *self {}
    }
}

//! What takes a real kernel: this computer's, or that of a virtual machine. It is there with the
//! feature `live`; without it `without_kernel.rs` stands in for it, with the same names.

mod attach;
mod command;
mod dumps;
mod fidelity;
pub mod guest;
mod loader;
pub mod running;
pub mod series;
mod session;
mod switch;
mod trace;
mod tunables;
mod verb;
mod verifier;
mod version4;

use std::path::Path;

pub use fidelity::{cpus, kernel as kernel_of_plays, perform, refusals};
use model::Advised;
pub use running::hz;
pub use switch::SwitchedOn;
pub use trace::record as trace;
pub use verb::{KernelVerb, run};
pub use verifier::{ask, ask_here};
pub use version4::Version4;

use crate::exit::UnsupportedError;

/// Prepares the kernel for a recording of its statistics: switches the counters on if `enable` says
/// so, as long as the answer lives. From then on signals are caught.
///
/// # Errors
/// When it cannot switch them on, or `as_version` needs counters that are off.
pub fn count(enable: bool, as_version: Option<u32>) -> anyhow::Result<Option<SwitchedOn>> {
    let root = Path::new("/");
    if enable {
        // From here on a signal must not end the process before the switch is back.
        live::process::catch_signals();
        return SwitchedOn::now(root).map(Some);
    }
    if as_version.is_some() && switch::is_on(root) == Some(false) {
        let message = Advised::new(
            "kernel.sched_schedstats is 0, and version 4 needs what the kernel counts with it",
            "--enable switches it on for the time of the recording",
        );
        return Err(UnsupportedError::new(message).into());
    }
    Ok(None)
}

/// The policy that runslice runs on this machine, and what it counts; `None` when there is none or
/// its counters may not be read.
pub fn policy_counters() -> Option<(String, Vec<(String, u64)>)> {
    let place = session::SessionPaths::below(Path::new("/"));
    let session::RunningProcess::Running(record) = place.find().ok()? else {
        return None;
    };
    let counters = record.counted(&place).ok()?;
    Some((record.policy, counters))
}

/// Whether a signal came that is caught.
pub fn is_interrupted() -> bool {
    live::process::signal().is_some()
}

//! Policies on the running kernel: attached, looked at and recorded.
//!
//! [`Policy`] takes an object through libbpf to an attached scheduler and back. [`preflight`]
//! says beforehand what the kernel lacks, and [`record`] traces what the scheduler does.
//!
//! **Invariant:** an attached policy lives as long as the [`Attached`] that holds its link, which
//! is never pinned. The kernel drops the link with the last process that has it open, so the
//! default scheduler returns after an exit, a panic and a kill alike.

mod attached;
mod dump;
mod ending;
mod error;
mod holder;
mod kernel_log;
mod libbpf_log;
mod patience;
pub mod pins;
mod policy;
pub mod preflight;
pub mod process;
pub mod record;
mod scx;
pub mod snapshot;
mod timed;
pub mod tracefs;
mod tree;
mod variables;

pub use attached::{Attached, Loaded};
pub use dump::Dump;
pub use ending::PolicyEnding;
pub use error::Error;
pub use holder::Holder;
pub use policy::Policy;
pub use scx::{ClassState, SchedExt};
pub use timed::{Timed, TimedEnd};
pub use tree::{ProcessTree, TaskCounts, TreeCounts};

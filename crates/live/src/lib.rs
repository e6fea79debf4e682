//! The real machine: policies on the running kernel, and a virtual machine to try them in.
//!
//! [`Policy`] takes an object through libbpf to an attached scheduler and back. [`preflight`]
//! says beforehand what the kernel lacks. [`vm`] boots another kernel and runs a command in it.
//!
//! **Invariant:** an attached policy lives as long as the [`Attached`] that holds its link, which
//! is never pinned. The kernel drops the link with the last process that has it open, so the
//! default scheduler returns after an exit, a panic and a kill alike.

mod error;
mod kernel_log;
mod libbpf_log;
pub mod play;
mod policy;
pub mod preflight;
pub mod process;
pub mod record;
mod scx;
mod variables;
pub mod vm;

pub use error::Error;
pub use policy::{Attached, Ending, Loaded, Policy};
pub use scx::{SchedExt, State};

//! Workloads: what tasks do, as a typed tree, and the TOML front end that reads it.
//!
//! docs/workload.md is the reference of the file format. Start at [`Workload::parse`].

mod code;
mod cpuset;
mod device;
mod dist;
pub(crate) mod error;
mod expr;
mod file;
mod irq;
mod names;
mod operations;
mod parser;
mod recorded;
mod release;
pub mod rtapp;
mod storage;
pub(crate) mod table;
#[cfg(test)]
mod tests;
mod token;
mod tree;

pub use code::{Code, Instr};
pub use cpuset::{CPUS_MAX, CpuSet};
pub use device::*;
pub use dist::{DRAW_MAX, Dist};
pub use error::{Problem, WorkloadError};
pub use expr::{Binary, EvalError, Expr, Scope};
pub use irq::Source;
pub use recorded::{CostScale, Recorded, Wakeups};
pub use release::Releases;
pub use storage::*;
pub use tree::*;

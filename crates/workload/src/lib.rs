//! Workloads: what tasks do, as a typed tree, and the TOML front end that reads it.
//!
//! docs/workload.md is the reference of the file format. Start at [`Workload::parse`]. A workload,
//! a policy and a machine together are the request for a run, [`RunSpec`].

#![forbid(unsafe_code)]

mod background;
mod cgroup;
mod code;
mod cpuset;
mod device;
mod dist;
mod empty_turn;
mod expr;
mod file;
pub mod generate;
mod grouped;
mod growing;
mod irq;
mod names;
mod omission;
mod operations;
mod parser;
mod played;
mod recorded;
mod release;
mod request;
pub mod rtapp;
mod script;
mod stepper;
mod storage;
#[cfg(test)]
mod tests;
mod token;
mod tree;
mod varied;

pub use cgroup::*;
pub use code::{Code, Instr, message_deadlines, message_takers, receivers};
pub use cpuset::CpuSet;
pub use device::*;
pub use dist::{DRAW_MAX, Dist};
pub use empty_turn::EmptyTurn;
pub use expr::{Binary, Expr, Scope};
pub use file::MachineFiles;
pub use grouped::{AsFile, Grouped, KnownTask};
pub use growing::{growing_queues, may_grow};
pub use irq::Source;
pub use omission::LateSpan;
pub use operations::{Info, OPERATIONS, Played};
pub use played::{FORK_GAP, INTERRUPT_PRIORITY};
pub use recorded::{CostScale, RecordedCosts, RecordedCourse, RecordedLoad, Wakeups};
pub use release::{latest, overdue};
pub use request::RunSpec;
pub use script::{Script, Scripted};
pub(crate) use stepper::Placed;
pub use stepper::{
    CgroupChange, Command, FOREVER, Quick, ResourceInstance, Stepper, TIME_MAX, TaskFault, TaskRef,
    World,
};
pub use storage::*;
pub use tree::*;

//! The words that every part of runslice speaks: units, ids, machines, policies, events, exits.
//!
//! Nothing here runs anything. The simulated machine and the real one both take a request
//! (`workload::RunSpec`), send [`Event`]s to a [`Sink`], and return a [`Summary`].

#![forbid(unsafe_code)]

mod event;
mod exit;
pub mod file;
mod id;
mod machine;
mod profile;
mod rng;
mod sample;
mod spec;
mod units;

pub use event::{
    EVENT_FORMAT_VERSION, Event, EventKind, EventMask, Header, Op, PrevState, Sink, TaskGroup,
};
pub use exit::{Exit, ExitKind};
pub use id::{CpuId, PerCpu, TaskId};
pub use machine::{Kernel, MachineSpec};
pub use profile::{Costs, OwnProfile, Profile, RunQueueLock};
pub use rng::Rng;
pub use sample::{CpuCounts, Sample, Sampler};
pub use spec::{CpuTimes, PolicySpec, SetUp, SetUpTime, Starved, Summary, TaskTimes};
pub use units::{Nanos, Picos, SimTime};

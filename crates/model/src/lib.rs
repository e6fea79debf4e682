//! The words that every part of runslice speaks: units, ids, machines, policies, events, exits.
//!
//! Nothing here runs anything. The simulated machine and the real one both take a request
//! (`workload::RunSpec`), send [`Event`]s to a [`Sink`], and return a [`Summary`].

#![forbid(unsafe_code)]

mod advice;
mod event;
mod exit;
pub mod file;
mod fnv;
pub mod growth;
mod hardware;
mod id;
mod interleave;
mod kernel_config;
mod machine;
mod places;
pub mod plain;
mod profile;
mod quantile;
mod rng;
mod sample;
pub mod seeds;
pub mod snapshot;
pub mod source;
pub mod span;
mod spec;
pub mod suggest;
mod task_counters;
mod textbook;
mod units;
pub mod user_space;

pub use advice::{Advice, Advised, CannotRead, CannotWrite, to_read, to_write};
pub use event::{
    Caller, Cause, Change, EVENT_FORMAT_VERSION, EVENT_FORMAT_VERSIONS, Event, EventKind,
    EventMask, EventWords, Header, IdleChange, InQueue, Kicked, Looked, NOWHERE, Op, PrevState,
    Removed, SYNC_BIT, Sink, Sliced, TaskClass, TaskGroup, Text, Until, WakeCause, Wakeup, What,
    insert, report,
};
pub use exit::{Exit, ExitKind};
pub use fnv::Fnv1a;
pub use hardware::{
    CAPACITY_ONE, Ceiling, ClusterPower, CpuClass, Governor, Hardware, HardwarePlaces, IdleState,
    Opp, RATE_ONE, SmtShare, SmtTimings, Sysfs,
};
pub use id::{CpuId, PerCpu, TaskId};
pub use interleave::{Interleave, Stall};
pub use kernel_config::{ConfigError, KernelConfig};
pub use machine::{CPUS_MAX, Kernel, MachineSpec};
pub use places::{CpuGroups, CpuPlaces};
pub use profile::{Background, Costs, OwnProfile, Profile, RunQueueLock};
pub use quantile::{nearest_rank, quantile};
pub use rng::Rng;
pub use sample::{CpuCounts, Sample, Sampler};
pub use snapshot::Snapshot;
pub use spec::{
    Blocked, ClassUse, CpuTimes, CpuUse, Excused, FrequencyUse, GrowingQueue, HardwareUse,
    PolicySpec, Program, Recorded, SetUp, SetUpTime, Starved, SubSpec, SubSummary, Summary,
    TaskTimes,
};
pub use task_counters::{TaskCounters, TaskCountersError};
pub use textbook::Textbook;
pub use units::{Nanos, Picos, SimTime};

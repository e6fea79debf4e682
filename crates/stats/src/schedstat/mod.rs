//! `/proc/schedstat` in every version that is documented.
//!
//! [`SchedstatReader`] takes snapshots from a file or from a log of many, [`Interval`] is what
//! happened between two of them, [`Figures`] are the derived numbers: latency, runslice and
//! imbalance as "The Cursor Wiggles Faster" (2004) defines them. [`Snapshot::write`] writes each
//! version again. [`Bookkeeper`] writes version 4 from a simulated run.
//! [`TaskCounters`] are the three numbers of one task.
//!
//! docs/schedstat.md lists the fields of each version and where their order comes from.

mod bookkeeper;
mod hz;
mod interval;
mod layout;
mod reader;
mod snapshot;
#[cfg(test)]
mod tests;
mod version4;

pub use model::{TaskCounters, TaskCountersError};

pub use bookkeeper::Bookkeeper;
pub use hz::{HzEvidence, HzFound};
pub use interval::{
    Counted, CpuInterval, DomainInterval, Figures, Imbalance, Interval, IntervalError,
};
pub use layout::{FieldUnit, Layout, LayoutField, TimeUnit, VERSIONS};
pub use reader::{SchedstatError, SchedstatReader};
pub use snapshot::{CpuCounters, DomainCounters, Snapshot};
pub use version4::{Bookkeeping, HZ as HZ_OF_4, MachineCounts, version_4};

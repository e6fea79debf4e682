//! Requests of the command line, for programs that have values where it has files: what the Python
//! package is made of.
//!
//! Options are words of the command line, so that each has one name, one range and one message.
//! Results have the bytes that the command line writes, and name the command that writes them.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

mod chosen;
mod compared;
mod explained;
mod failure;
mod given;
mod plan;
mod run;
mod scored;

pub use bpf::Knob;
pub use traces::EventColumns;

pub use crate::export::{ExportTable, Kind};

pub use self::chosen::{Choosing, Chosen, choose};
pub use self::compared::{Set, Verdict, compare, judge};
pub use self::explained::{Explained, explain};
pub use self::failure::{Answer, Failure, Why};
pub use self::given::{Load, Parameters, Policy};
pub use self::plan::{Cell, Plan, Store};
pub use self::run::{End, Request, Run, Shape, goal, simulate};
pub use self::scored::{Scored, score};

/// Does `work` of this library, which ends in a failure that says so soon after `flag` became true.
pub fn cancellable<T>(flag: &Arc<AtomicBool>, work: impl FnOnce() -> T) -> T {
    crate::cancel::cancellable(Some(Arc::clone(flag)), work)
}

/// The version of this program.
pub const VERSION: &str = crate::about::About::VERSION;

/// The built-in policies, the lessons last: name and summary.
#[must_use]
pub fn policies() -> Vec<(&'static str, &'static str)> {
    let all = policies::ALL.iter().chain(policies::LESSONS);
    all.map(|it| (it.name, it.summary)).collect()
}

/// The built-in workloads: name and summary.
#[must_use]
pub fn workloads() -> Vec<(&'static str, String)> {
    let all = crate::workload_arg::SHIPPED.iter();
    all.map(|it| (it.name, it.summary())).collect()
}

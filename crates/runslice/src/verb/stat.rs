//! `runslice stat`: the kernel's own scheduler statistics, recorded and reported.

mod export;
mod processes;
mod record;
mod report;
mod rows;
mod task;
mod top;

use clap::{Args, Subcommand};

use crate::exit::Status;

/// Arguments of `runslice stat`.
#[derive(Debug, Args)]
pub struct Stat {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Write snapshots of /proc/schedstat to a file.
    Record(record::StatRecord),
    /// Print latency, runslice and imbalance from a recording of any version.
    Report(report::StatReport),
    /// Print the changes from the first snapshot of one file to the last of another.
    Diff(report::StatDiff),
    /// Follow one task: its average wait and time on the CPU in each interval.
    Task(task::StatTask),
    /// Watch CPUs and tasks, or a recording: which tasks run, which wait, and how long.
    Top(top::Top),
    /// Serve all counters to Prometheus.
    Export(export::Export),
}

/// Does what the user asked for.
///
/// # Errors
/// When a file cannot be read or written, or does not hold scheduler statistics.
pub fn run(request: &Stat) -> anyhow::Result<Status> {
    match &request.what {
        What::Record(request) => record::run(request),
        What::Report(request) => report::run(request),
        What::Diff(request) => report::diff(request),
        What::Task(request) => task::run(request),
        What::Top(request) => top::run(request),
        What::Export(request) => export::run(request),
    }
}

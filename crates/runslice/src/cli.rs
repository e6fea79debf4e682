//! What the command line accepts.

use std::path::PathBuf;

use clap::{Parser, Subcommand};
use clap_complete::Shell;

use crate::exit::EXIT_STATUSES;
use crate::on_kernel;
use crate::verb::bundle::BundleOf;
use crate::verb::check::Check;
use crate::verb::compare::Compare;
use crate::verb::convert::Convert;
use crate::verb::list::List;
use crate::verb::report::Report;
use crate::verb::reproduce::Reproduce;
use crate::verb::sim::Sim;
use crate::verb::stat::Stat;
use crate::verb::sweep::Sweep;
use crate::verb::trace::Trace;

/// Run, simulate and measure Linux CPU schedulers.
#[derive(Debug, Parser)]
#[command(name = "runslice", version, after_help = EXIT_STATUSES, max_term_width = 100)]
pub struct Cli {
    /// Command to run.
    #[command(subcommand)]
    pub verb: Verb,
}

/// Commands of runslice.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Run policies on a simulated machine and print latency, CPU time and other results.
    #[command(after_help = EXIT_STATUSES)]
    Sim(Box<Sim>),

    /// Save a policy with its variables, set-up and machine in one file for `sim`.
    #[command(after_help = EXIT_STATUSES)]
    Bundle(Box<BundleOf>),

    /// Follow a task: its waits, its run queues and where the policy puts it.
    #[command(after_help = EXIT_STATUSES)]
    Trace(Box<Trace>),

    #[command(flatten)]
    OnKernel(on_kernel::Verb),

    /// Record and report the kernel's scheduler statistics, /proc/schedstat of any version.
    #[command(after_help = EXIT_STATUSES)]
    Stat(Stat),

    /// Simulate every combination of the policies, workloads, knobs and machines in a file.
    #[command(after_help = EXIT_STATUSES)]
    Sweep(Box<Sweep>),

    /// Compare sets of runs: whether they differ, by how much, and how certain that is.
    #[command(after_help = EXIT_STATUSES)]
    Compare(Box<Compare>),

    /// Draw latency, runslice, imbalance, priorities and CPUs of runs, as a page or as files.
    #[command(after_help = EXIT_STATUSES)]
    Report(Report),

    /// Rerun published experiments and check their statements.
    #[command(after_help = EXIT_STATUSES)]
    Reproduce(Box<Reproduce>),

    /// List the built-in policies and workloads.
    List(List),

    /// Show what an object needs from a kernel, and what is missing.
    Check(Check),

    /// Convert an rt-app configuration to a workload file, or a workload to rt-app.
    #[command(after_help = EXIT_STATUSES)]
    Convert(Convert),

    /// Print completions for a shell.
    Completions {
        /// Shell to complete for.
        shell: Shell,
    },

    /// Write the manual pages.
    Man {
        /// Folder for the pages. It must exist.
        folder: PathBuf,
    },
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::exit::Status;

    #[test]
    fn every_verb_and_option_has_help() {
        Cli::command().help_expected(true).debug_assert();
    }

    #[test]
    fn the_help_lists_the_statuses() {
        let help = Cli::command().render_long_help().to_string();
        for status in [
            Status::Done,
            Status::Failure,
            Status::Usage,
            Status::Ejected,
            Status::Unsupported,
            Status::Exceeded,
            Status::Inconclusive,
            Status::Interrupted,
        ] {
            let line = format!("\n  {:<5}", status as u8);
            assert!(help.contains(&line), "{status:?}");
        }
    }
}

//! What the command line accepts.

use std::path::PathBuf;

use clap::{Parser, Subcommand};
use clap_complete::Shell;

#[cfg(feature = "live")]
use crate::verb::bench::Bench;
use crate::verb::bundle::BundleOf;
use crate::verb::check::Check;
use crate::verb::compare::Compare;
use crate::verb::convert::Convert;
#[cfg(feature = "live")]
use crate::verb::doctor::Doctor;
use crate::verb::list::List;
#[cfg(feature = "live")]
use crate::verb::load::Load;
#[cfg(feature = "live")]
use crate::verb::play::Play;
use crate::verb::report::Report;
use crate::verb::reproduce::Reproduce;
#[cfg(feature = "live")]
use crate::verb::run::Run;
#[cfg(feature = "live")]
use crate::verb::set::Set;
use crate::verb::sim::Sim;
use crate::verb::stat::Stat;
#[cfg(feature = "live")]
use crate::verb::status::StatusOf;
#[cfg(feature = "live")]
use crate::verb::stop::Stop;
use crate::verb::sweep::Sweep;
use crate::verb::trace::Trace;
#[cfg(feature = "live")]
use crate::verb::vm::Vm;

const EXIT_STATUSES: &str = "\
Exit status:
  0    success
  1    failure: a bad file, or the computer refused something
  2    usage: an unknown option, policy, knob or workload
  3    a policy misbehaved: it was ejected, and the results up to then are printed, or in a
       simulated run a task starved to the end
  4    this computer lacks what the verb needs; the message says what to do
  5    a comparison exceeded the limit of --fail-if
  6    inconclusive: a virtual machine gave no result, or the runs do not decide
  130  interrupted, after everything was put back";

#[cfg(feature = "live")]
const VM_EXIT_STATUSES: &str = "\
Exit status: that of the command, and without one
  1    failure: a bad file, or the computer refused something
  2    usage: an unknown option or program
  4    this computer lacks what a virtual machine needs; the message says what to do
  6    inconclusive: the command ran out of time, or the guest gave no result";

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

    /// Attach a policy to this machine for a time, or while a command runs.
    #[cfg(feature = "live")]
    #[command(after_help = EXIT_STATUSES)]
    Run(Box<Run>),

    /// Change knobs of the attached policy.
    #[cfg(feature = "live")]
    #[command(after_help = EXIT_STATUSES)]
    Set(Set),

    /// Show the scheduler of this machine, with its knobs and counters.
    #[cfg(feature = "live")]
    #[command(after_help = EXIT_STATUSES)]
    Status(StatusOf),

    /// Detach the policy and check that the kernel's own scheduler is back.
    #[cfg(feature = "live")]
    #[command(after_help = EXIT_STATUSES)]
    Stop(Stop),

    /// Run a workload with real processes and print latency, CPU time and other results.
    #[cfg(feature = "live")]
    #[command(after_help = EXIT_STATUSES)]
    Play(Box<Play>),

    /// Run a standard load, such as hackbench or a kernel build, and print its results.
    #[cfg(feature = "live")]
    #[command(after_help = EXIT_STATUSES)]
    Load(Box<Load>),

    /// Run a command on another kernel, in a VM.
    #[cfg(feature = "live")]
    #[command(after_help = VM_EXIT_STATUSES)]
    Vm(Vm),

    /// Check whether this machine can run policies, and say what to do if not.
    #[cfg(feature = "live")]
    Doctor(Doctor),

    /// Record and report the kernel's scheduler statistics, /proc/schedstat of any version.
    #[command(after_help = EXIT_STATUSES)]
    Stat(Stat),

    /// Simulate every combination of the policies, workloads, knobs and machines in a file.
    #[command(after_help = EXIT_STATUSES)]
    Sweep(Box<Sweep>),

    /// Run a command under several schedulers in turn and compare its time and latency.
    #[cfg(feature = "live")]
    #[command(after_help = EXIT_STATUSES)]
    Bench(Box<Bench>),

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

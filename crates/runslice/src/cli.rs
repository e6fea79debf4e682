//! What the command line accepts.

use std::path::PathBuf;

use clap::{Parser, Subcommand};
use clap_complete::Shell;

use crate::exit::Status;
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

/// The exit statuses of a command: those that every command has, and `others`.
fn statuses(others: &[Status]) -> String {
    let all = [Status::Done, Status::Failure, Status::Usage];
    let mut text = "Exit status:".to_owned();
    for status in all.iter().chain(others) {
        let words = match status {
            Status::Done => "success",
            Status::Failure => "failure: a bad file, or the computer refused something",
            Status::Usage => "usage: an unknown option, policy, knob or workload",
            Status::Ejected => {
                "a policy misbehaved and was ejected; the results up to then are printed"
            }
            Status::Unsupported => {
                "this computer lacks something that is needed; the message says what to do"
            }
            Status::Exceeded => "a comparison exceeded the limit of --fail-if",
            Status::Inconclusive => {
                "inconclusive: the runs do not decide, or a virtual machine gave no result"
            }
            Status::Interrupted => "interrupted, after everything was put back",
        };
        text += &format!("\n  {:<5}{words}", *status as u8);
    }
    text
}

#[cfg(feature = "live")]
const VM_EXIT_STATUSES: &str = "\
Exit status: that of the command, and without one
  1    failure: a bad file, or the computer refused something
  2    usage: an unknown option or program
  4    this computer lacks what a virtual machine needs; the message says what to do
  6    inconclusive: the command ran out of time, or the guest gave no result";

/// Run, simulate and measure Linux CPU schedulers.
#[derive(Debug, Parser)]
#[command(name = "runslice", version, after_help = statuses(&Status::OTHERS), max_term_width = 100)]
pub struct Cli {
    /// Command to run.
    #[command(subcommand)]
    pub verb: Verb,
}

/// Commands of runslice.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Run policies on a simulated machine and print latency, CPU time and other results.
    #[command(after_help = statuses(&[Status::Ejected]))]
    Sim(Box<Sim>),

    /// Save a policy with its variables, set-up and machine in one file for `sim`.
    #[command(after_help = statuses(&[]))]
    Bundle(Box<BundleOf>),

    /// Follow a task: its waits, its run queues and where the policy puts it.
    #[command(after_help = statuses(&[Status::Ejected, Status::Unsupported]))]
    Trace(Box<Trace>),

    /// Attach a policy to this machine for a time, or while a command runs.
    #[cfg(feature = "live")]
    #[command(after_help = statuses(&[Status::Ejected, Status::Unsupported, Status::Interrupted]))]
    Run(Box<Run>),

    /// Change knobs of the attached policy.
    #[cfg(feature = "live")]
    #[command(after_help = statuses(&[Status::Unsupported]))]
    Set(Set),

    /// Show the scheduler of this machine, with its knobs and counters.
    #[cfg(feature = "live")]
    #[command(after_help = statuses(&[Status::Unsupported]))]
    Status(StatusOf),

    /// Detach the policy and check that the kernel's own scheduler is back.
    #[cfg(feature = "live")]
    #[command(after_help = statuses(&[Status::Unsupported]))]
    Stop(Stop),

    /// Run a workload with real processes and print latency, CPU time and other results.
    #[cfg(feature = "live")]
    #[command(after_help = statuses(&[Status::Ejected, Status::Unsupported, Status::Interrupted]))]
    Play(Box<Play>),

    /// Run a benchmark on this machine, such as hackbench or a build, and print its results.
    ///
    /// It runs under the scheduler that is active. To choose a policy, write `runslice run POLICY
    /// -- runslice load NAME`; to compare several, use `bench`.
    #[cfg(feature = "live")]
    #[command(after_help = statuses(&[Status::Unsupported, Status::Interrupted]))]
    Load(Box<Load>),

    /// Run a command on another kernel, in a VM.
    #[cfg(feature = "live")]
    #[command(after_help = VM_EXIT_STATUSES)]
    Vm(Vm),

    /// Check whether this machine can run policies, and say what to do if not.
    #[cfg(feature = "live")]
    #[command(after_help = statuses(&[Status::Unsupported]))]
    Doctor(Doctor),

    /// Record and report the kernel's scheduler statistics, /proc/schedstat of any version.
    #[command(after_help = statuses(&[Status::Unsupported, Status::Interrupted]))]
    Stat(Stat),

    /// Simulate every combination of the policies, workloads, knobs and machines in a file.
    #[command(after_help = statuses(&[Status::Ejected]))]
    Sweep(Box<Sweep>),

    /// Run a command under several schedulers in turn and compare its time and latency.
    #[cfg(feature = "live")]
    #[command(after_help = statuses(&[
        Status::Ejected,
        Status::Unsupported,
        Status::Inconclusive,
        Status::Interrupted,
    ]))]
    Bench(Box<Bench>),

    /// Compare sets of runs: whether they differ, by how much, and how certain that is.
    #[command(after_help = statuses(&[Status::Exceeded, Status::Inconclusive]))]
    Compare(Box<Compare>),

    /// Draw latency, runslice, imbalance, priorities and CPUs of runs, as a page or as files.
    #[command(after_help = statuses(&[]))]
    Report(Report),

    /// Rerun published experiments and check their statements.
    #[command(after_help = statuses(&[Status::Ejected, Status::Unsupported]))]
    Reproduce(Box<Reproduce>),

    /// List the built-in policies and workloads.
    List(List),

    /// Show what an object needs from a kernel, and what is missing.
    #[command(after_help = statuses(&[Status::Ejected, Status::Unsupported, Status::Inconclusive]))]
    Check(Check),

    /// Convert an rt-app configuration to a workload file, or a workload to rt-app.
    #[command(after_help = statuses(&[]))]
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

    #[test]
    fn every_verb_and_option_has_help() {
        Cli::command().help_expected(true).debug_assert();
    }

    #[test]
    fn the_help_lists_the_statuses() {
        let help = Cli::command().render_long_help().to_string();
        for status in 0..=6 {
            assert!(help.contains(&format!("\n  {status:<5}")), "{status}");
        }
        assert!(help.contains("\n  130  "));
    }

    #[test]
    fn a_command_lists_the_statuses_that_it_has() {
        let mut cli = Cli::command();
        let mut help = |name: &str| {
            let command = cli.find_subcommand_mut(name).expect("a command");
            command.render_long_help().to_string()
        };
        let (sim, compare) = (help("sim"), help("compare"));
        assert!(
            sim.contains("\n  3    ") && !sim.contains("--fail-if"),
            "{sim}"
        );
        assert!(compare.contains("\n  5    ") && !compare.contains("\n  3    "));
    }
}

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
  3    a policy misbehaved and was ejected; the results up to then are printed
  4    this computer lacks what the verb needs; the message names the way out
  5    a comparison exceeded the limit of --fail-if
  6    inconclusive: a virtual machine gave no result, or the runs do not decide
  130  interrupted, after everything was put back";

#[cfg(feature = "live")]
const VM_EXIT_STATUSES: &str = "\
Exit status: that of the command, and without one
  1    failure: a bad file, or the computer refused something
  2    usage: an unknown option or program
  4    this computer lacks what a virtual machine needs; the message names the way out
  6    inconclusive: the command ran out of time, or the guest gave no result";

/// Runs, simulates and measures Linux CPU schedulers.
#[derive(Debug, Parser)]
#[command(name = "runslice", version, after_help = EXIT_STATUSES, max_term_width = 100)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
}

/// What runslice can do.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Run policies on a simulated machine and print what tasks experienced.
    #[command(after_help = EXIT_STATUSES)]
    Sim(Box<Sim>),

    /// Keep a policy, its variables, its set-up and its machine in one file that `sim` runs.
    #[command(after_help = EXIT_STATUSES)]
    Bundle(Box<BundleOf>),

    /// Follow a task: its waits, the queues it stands in, where the policy puts it.
    #[command(after_help = EXIT_STATUSES)]
    Trace(Box<Trace>),

    /// Make a policy this machine's scheduler, for a time or for a command.
    #[cfg(feature = "live")]
    #[command(after_help = EXIT_STATUSES)]
    Run(Box<Run>),

    /// Change tunables of the policy that runs.
    #[cfg(feature = "live")]
    #[command(after_help = EXIT_STATUSES)]
    Set(Set),

    /// Say what schedules this machine, with tunables and counters.
    #[cfg(feature = "live")]
    #[command(after_help = EXIT_STATUSES)]
    Status(StatusOf),

    /// End the policy that runs, and see that the kernel's own scheduler is back.
    #[cfg(feature = "live")]
    #[command(after_help = EXIT_STATUSES)]
    Stop(Stop),

    /// Play a workload with real processes and print what they experienced.
    #[cfg(feature = "live")]
    #[command(after_help = EXIT_STATUSES)]
    Play(Box<Play>),

    /// Run one of the loads that schedulers are judged by, and print its figures.
    #[cfg(feature = "live")]
    #[command(after_help = EXIT_STATUSES)]
    Load(Box<Load>),

    /// Run a command on another kernel, in a virtual machine.
    #[cfg(feature = "live")]
    #[command(after_help = VM_EXIT_STATUSES)]
    Vm(Vm),

    /// Say whether this machine can run policies, and what to do if not.
    #[cfg(feature = "live")]
    Doctor(Doctor),

    /// Record and report the kernel's scheduler statistics, /proc/schedstat of any version.
    #[command(after_help = EXIT_STATUSES)]
    Stat(Stat),

    /// Simulate every combination of policies, workloads, knobs and machines of a file.
    #[command(after_help = EXIT_STATUSES)]
    Sweep(Box<Sweep>),

    /// Run a command under several schedulers in turn and say which is better for it.
    #[cfg(feature = "live")]
    #[command(after_help = EXIT_STATUSES)]
    Bench(Box<Bench>),

    /// Say whether sets of runs differ, by how much, and how sure that is.
    #[command(after_help = EXIT_STATUSES)]
    Compare(Box<Compare>),

    /// Draw runs: latency, runslice, imbalance, priorities, CPUs, as one page or as single files.
    #[command(after_help = EXIT_STATUSES)]
    Report(Report),

    /// Rerun published experiments, and say which of their statements hold here.
    #[command(after_help = EXIT_STATUSES)]
    Reproduce(Box<Reproduce>),

    /// List the policies and workloads that are built in.
    List(List),

    /// Say what an object needs of a kernel, and what of it is missing.
    Check(Check),

    /// Turn a configuration of rt-app into a workload file, or a workload into one of rt-app's.
    #[command(after_help = EXIT_STATUSES)]
    Convert(Convert),

    /// Print the completions for a shell.
    Completions {
        /// Shell to complete for.
        shell: Shell,
    },

    /// Write the manual pages.
    Man {
        /// Folder to write them into; it must exist.
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

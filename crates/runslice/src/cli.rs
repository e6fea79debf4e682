//! What the command line accepts, and the statuses that it ends with.

use std::path::PathBuf;

use clap::{Parser, Subcommand};
use clap_complete::Shell;

use crate::verb::check::Check;
use crate::verb::list::List;
use crate::verb::sim::Sim;

/// How the process ends. The numbers are an interface: scripts test for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Status {
    /// All went well.
    Done = 0,
    /// A bad file, or the computer refused something.
    Failure = 1,
    /// The command line asks for something that does not exist.
    Usage = 2,
    /// A policy misbehaved and was ejected. Its table is printed up to then.
    Ejected = 3,
}

/// The command line asks for something that does not exist.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct UsageError(pub String);

const EXIT_STATUSES: &str = "\
Exit status:
  0    success
  1    failure: a bad file, or the computer refused something
  2    usage: an unknown option, policy, knob or workload
  3    a policy misbehaved and was ejected; the results up to then are printed
  130  interrupted";

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

    /// List the policies and workloads that are built in.
    List(List),

    /// Say what an object needs of a kernel, and what of it is missing.
    Check(Check),

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
        ] {
            let line = format!("\n  {}  ", status as u8);
            assert!(help.contains(&line), "{status:?}");
        }
    }
}

//! `runslice reproduce`: the words of a program of its own. They stand here, so that help, manual,
//! completions and refusals are those of the command line, also where the program is missing.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use show::format::EXPERIMENTS;

use crate::about::About;
use crate::programs;
use crate::report::{Format, format_of};

/// Arguments of `runslice reproduce`.
#[derive(Debug, Args)]
pub struct Reproduce {
    /// Experiments to rerun, such as 002-response, or an author, such as torrey, for all of a
    /// document. Without a name, --document, --table or --all, list the experiments.
    pub experiment: Vec<String>,

    /// Rerun the experiments of this document: 000 to 004, or an author. May be repeated.
    #[arg(long, value_name = "DOCUMENT")]
    pub document: Vec<String>,

    /// Show this table of the documents, such as VI, and make only the runs that it needs.
    #[arg(long, value_name = "NUMBER")]
    pub table: Option<String>,

    /// Rerun all experiments.
    #[arg(long)]
    pub all: bool,

    /// Where to run: `sim` simulates; `vm` and `host` run real programs on a kernel. Several, such
    /// as `sim,vm`, are shown side by side.
    #[arg(long, value_enum, value_delimiter = ',', default_value = "sim")]
    pub machine: Vec<ExperimentMachine>,

    /// Make only 3 runs of each kind, on a kernel only one. The strongest verdict is then "same
    /// direction".
    #[arg(long)]
    pub quick: bool,

    /// Instead of results, tell which statements would notice: judge each with other seeds, a part
    /// of the time, a knob that makes it wrong, and another scheduler. Simulates; writes CSV.
    #[arg(long, conflicts_with_all = ["table", "format"])]
    pub mutants: bool,

    /// Folder for the results. Runs that are already there are not made again, so an interrupted
    /// reproduction continues.
    #[arg(
        short = 'd',
        long,
        value_name = "DIR",
        default_value = "reproduce.results"
    )]
    pub folder: PathBuf,

    /// Read experiments from this folder instead of the built-in ones.
    #[arg(long, value_name = "DIR")]
    pub experiments: Option<PathBuf>,

    /// Threads, or VMs at a time with `--machine vm`. The number does not change the results.
    /// Default: one for each CPU; fewer VMs if memory is short.
    #[arg(long, value_name = "NUMBER")]
    pub jobs: Option<NonZeroUsize>,

    /// Output format. Default: what the ending of the output file stands for (.html, .json), else
    /// `human`.
    #[arg(long, value_parser = format_of(EXPERIMENTS))]
    pub format: Option<Format>,

    /// Write the results to this file instead of standard output.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// Where experiments run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum ExperimentMachine {
    /// The simulated machine.
    Sim,
    /// Real programs on a real kernel, in counting VMs.
    Vm,
    /// Real programs on this computer's kernel (needs root and sched_ext).
    Host,
}

/// Goes on as the program that reruns experiments, which reads the same words again.
///
/// # Errors
/// When it is not installed or cannot be started.
pub fn run() -> anyhow::Result<u8> {
    // Before them stand the program's name and the verb.
    let words = About::raw_words().split_off(2);
    programs::go_on_as(programs::REPRODUCE, &words)
}

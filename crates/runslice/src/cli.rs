//! What the command line accepts.

use std::any::TypeId;
use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::{OsStringValueParser, TypedValueParser as _};
use clap::{Args as _, Command, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use clap_complete::Shell;

use crate::choose::Choose;
use crate::exit::{Status, statuses};
use crate::files;
use crate::help::arranged;
use crate::on_kernel;
use crate::score::Score;
use crate::verb::build::Build;
use crate::verb::bundle::BundleOf;
use crate::verb::calibrate::Calibrate;
use crate::verb::cases::Cases;
use crate::verb::check::Check;
use crate::verb::compare::Compare;
use crate::verb::convert::Convert;
use crate::verb::diff::Diff;
use crate::verb::evaluate::Evaluate;
use crate::verb::explain::Explain;
use crate::verb::fidelity::Fidelity;
use crate::verb::gate::Gate;
use crate::verb::hunt::Hunt;
use crate::verb::lab::Lab;
use crate::verb::list::List;
use crate::verb::report::Report;
use crate::verb::reproduce::Reproduce;
use crate::verb::sim::Sim;
use crate::verb::stat::Stat;
use crate::verb::sweep::Sweep;
use crate::verb::trace::Trace;
use crate::verb::tune::Tune;

/// Run, simulate and measure Linux CPU schedulers.
#[derive(Debug, Parser)]
#[command(name = "runslice", version, after_help = statuses(&Status::OTHERS), max_term_width = 100)]
pub struct Cli {
    /// Command to run.
    #[command(subcommand)]
    pub verb: Verb,
}

impl Cli {
    /// What these words ask for; the first is the program's name.
    ///
    /// # Errors
    /// When they ask for something that does not exist, or for help.
    pub fn of<Word: Into<OsString> + Clone>(
        words: impl IntoIterator<Item = Word>,
    ) -> Result<Self, clap::Error> {
        let words: Vec<OsString> = words.into_iter().map(Into::into).collect();
        if let Some(cli) = Self::of_simulation(&words) {
            return Ok(cli);
        }
        let mut command = arranged(with_negative_numbers(Self::command()));
        let matches = command.try_get_matches_from_mut(words)?;
        Self::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
    }
}

impl Cli {
    /// A request for a simulation, which is read without describing all other verbs first: that
    /// takes longer than many a run. `None` for anything else, also for what is wrong with it,
    /// so that whoever knows the whole command line answers.
    fn of_simulation(words: &[OsString]) -> Option<Self> {
        let (_, words) = words.split_first()?;
        if words.first()? != "sim" {
            return None;
        }
        let command = with_negative_numbers(Sim::augment_args(Command::new("sim")));
        let matches = command.try_get_matches_from(words).ok()?;
        let sim = Sim::from_arg_matches(&matches).ok()?;
        Some(Self {
            verb: Verb::Sim(Box::new(sim)),
        })
    }
}

/// Arguments that name a file or something that is built in, and commands of programs. A file's
/// name may be no text, which clap would refuse.
const NAMES_OF_FILES: [&str; 16] = [
    "candidates",
    "command",
    "commands",
    "scheduler",
    "schedulers",
    "sub",
    "policy",
    "policies",
    "workload",
    "old",
    "new",
    "object",
    "sim",
    "profile",
    "recorded_under",
    "play",
];

/// A number below zero is a value that is out of range. Without this it would be an option that is
/// unknown, and the message would not name the option that got it.
fn with_negative_numbers(command: Command) -> Command {
    let command = command.mut_args(|arg| {
        let arg = if arg.get_action().takes_values() {
            arg.allow_negative_numbers(true)
        } else {
            arg
        };
        if NAMES_OF_FILES.contains(&arg.get_id().as_str())
            && arg.get_value_parser().type_id() == TypeId::of::<String>()
        {
            let parser = OsStringValueParser::new();
            arg.value_parser(parser.map(|word| files::text_of(&word)))
        } else {
            arg
        }
    });
    command.mut_subcommands(with_negative_numbers)
}

/// Commands of runslice.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Run policies on a simulated machine; print latency and CPU time.
    #[command(after_help = statuses(&[Status::Ejected]))]
    Sim(Box<Sim>),

    /// Say which scheduler suits a load, by your goals.
    #[command(after_help = statuses(&[Status::Inconclusive]))]
    Choose(Box<Choose>),

    /// Measure a kernel's own threads or costs, for a machine's profile.
    #[command(after_help = statuses(&[]))]
    Calibrate(Calibrate),

    /// Say how far a simulated recording can be trusted, and for what.
    #[command(after_help = statuses(&[Status::Inconclusive]))]
    Score(Box<Score>),

    /// Compile a policy from its C source, with the headers inside.
    #[command(after_help = statuses(&[]))]
    Build(Build),

    /// Save a policy or a recorded scheduler in one file for `sim`.
    ///
    /// A policy is saved with its variables, set-up and machine, a scheduler's own program as what
    /// it did.
    #[command(after_help = statuses(&[Status::Ejected]))]
    Bundle(Box<BundleOf>),

    /// Follow a task: its waits, its run queues, and who puts it there.
    #[command(after_help = statuses(&[Status::Ejected, Status::Unsupported]))]
    Trace(Box<Trace>),

    /// Say why a task waited or a policy was ejected, with the line.
    #[command(after_help = statuses(&[Status::Ejected]))]
    Explain(Box<Explain>),

    /// Find where two policies first decide differently; what follows.
    #[command(after_help = statuses(&[]))]
    Diff(Box<Diff>),

    /// Search loads and machines for a run in which a policy fails.
    #[command(after_help = statuses(&[Status::Ejected]))]
    Hunt(Box<Hunt>),

    /// Show known bugs of published schedulers in their versions.
    #[command(after_help = statuses(&[Status::Unsupported, Status::Exceeded]))]
    Cases(Cases),

    /// Say whether a new version of a policy may replace an old one.
    #[command(after_help = statuses(&[
        Status::Ejected,
        Status::Unsupported,
        Status::Inconclusive,
    ]))]
    Gate(Box<Gate>),

    /// Make questions about a run for students, or grade their policies.
    #[command(after_help = statuses(&[Status::Exceeded]))]
    Lab(Box<Lab>),

    #[command(flatten)]
    OnKernel(on_kernel::KernelVerb),

    /// Record and report the counters of /proc/schedstat, any version.
    #[command(after_help = statuses(&[Status::Unsupported, Status::Interrupted]))]
    Stat(Stat),

    /// Simulate all combinations of policies, loads, knobs in a file.
    #[command(after_help = statuses(&[Status::Ejected]))]
    Sweep(Box<Sweep>),

    /// Search a policy's knobs for a goal (takes the Python package).
    #[command(after_help = statuses(&[Status::Unsupported, Status::Inconclusive]))]
    Tune(Tune),

    /// Score policies that programs write; limits come first.
    #[command(after_help = statuses(&[Status::Ejected, Status::Inconclusive]))]
    Evaluate(Box<Evaluate>),

    /// Say whether sets of runs differ, by how much, how certainly.
    #[command(after_help = statuses(&[Status::Exceeded, Status::Inconclusive]))]
    Compare(Box<Compare>),

    /// Draw latency, runslice, priorities and CPUs of runs, as a page.
    #[command(after_help = statuses(&[]))]
    Report(Report),

    /// Rerun published experiments and check their statements.
    #[command(after_help = statuses(&[Status::Ejected, Status::Unsupported]))]
    Reproduce(Box<Reproduce>),

    /// Play loads on a kernel, simulate them, and compare the two.
    #[command(after_help = statuses(&[
        Status::Unsupported,
        Status::Exceeded,
        Status::Inconclusive,
    ]))]
    Fidelity(Box<Fidelity>),

    /// List the built-in policies and workloads.
    List(List),

    /// Show what an object needs from a kernel, and what is missing.
    #[command(after_help = statuses(&[Status::Ejected, Status::Unsupported, Status::Inconclusive]))]
    Check(Check),

    /// Convert between rt-app, traces and workload files.
    #[command(after_help = statuses(&[]))]
    Convert(Convert),

    /// Print completions for a shell.
    Completions {
        /// Shell to complete for.
        shell: Shell,
    },

    /// Write the manual pages.
    Man {
        /// Folder for the pages. It is made if it is missing.
        folder: PathBuf,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_verb_and_option_has_help() {
        Cli::command().help_expected(true).debug_assert();
    }

    #[test]
    fn a_simulation_is_read_alike_with_and_without_the_other_verbs() {
        let all = |words: &[&str]| {
            let command = with_negative_numbers(Cli::command());
            let matches = command.try_get_matches_from(words).ok()?;
            Cli::from_arg_matches(&matches).ok()
        };
        let short = |words: &[&str]| {
            let words: Vec<OsString> = words.iter().map(Into::into).collect();
            Cli::of_simulation(&words)
        };
        let good: [&[&str]; 4] = [
            &["runslice", "sim", "fifo", "mlfq:a=1", "-w", "desk"],
            &[
                "runslice",
                "sim",
                "o1",
                "--cpus",
                "8",
                "--seed=7",
                "--duration",
                "5s",
            ],
            &[
                "runslice", "sim", "--format", "json", "-o", "x.json", "--", "fifo",
            ],
            &[
                "runslice",
                "sim",
                "fifo",
                "--from",
                "e.jsonl",
                "--cost-scale",
                "0.5",
            ],
        ];
        for words in good {
            let [all, short] = [all(words), short(words)].map(|cli| cli.expect("a good request"));
            assert_eq!(format!("{all:?}"), format!("{short:?}"), "{words:?}");
        }
        let others: [&[&str]; 5] = [
            &["runslice"],
            &["runslice", "sim", "--help"],
            &["runslice", "sim", "fifo", "--no-such-option"],
            &["runslice", "sims", "fifo"],
            &["runslice", "list"],
        ];
        for words in others {
            assert!(short(words).is_none(), "{words:?}");
        }
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

//! `runslice gate NEW --against OLD`: whether a new version of a policy may replace an old one.

mod bisect;

use std::io::Write as _;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use ask::evaluate::gate::{Passage, VersionGate};
use ask::policy::{self, FoundPolicy};
use clap::Args;
use show::Format;
use show::format::MEASURED;
use show::gate::{self, GateFrame};

use crate::computer::COMPUTER;
use crate::exit::{Status, UsageError};
use crate::report::format_of;
use crate::{look, output, store};

/// Arguments of `runslice gate`.
#[derive(Debug, Args)]
pub struct Gate {
    /// New version: a built-in name, a BPF object or a C source, with knobs after a colon. With
    /// --bisect, where the build puts it, seen from the repository.
    new: String,

    /// Old version, which the new one is to replace.
    #[arg(long, value_name = "POLICY", required_unless_present = "bisect")]
    against: Option<String>,

    /// Look for the commit between these two that the gate refuses against the first, in the git
    /// repository of this folder.
    #[arg(long, num_args = 2, value_names = ["GOOD", "BAD"], conflicts_with = "against")]
    bisect: Option<Vec<String>>,

    /// Bundle of a run, such as `hunt` writes, by which commits are judged instead: a commit is bad
    /// if this run shows under it what it shows under BAD.
    #[arg(long, value_name = "CAPSULE", requires = "bisect",
        conflicts_with_all = ["against", "workloads", "trials"])]
    by: Option<PathBuf>,

    /// Command that builds NEW in a copy of each commit, behind `--`. A commit whose build fails is
    /// passed over. Default: nothing is built.
    #[arg(
        last = true,
        requires = "bisect",
        conflicts_with = "against",
        value_name = "BUILD-COMMAND"
    )]
    build: Vec<String>,

    /// Workload to run: a built-in name or a TOML file. May be repeated. Default: all that are
    /// built in.
    #[arg(short, long = "workload", value_name = "WORKLOAD")]
    workloads: Vec<String>,

    /// Trials of the hunt for faults that the old version does not show.
    #[arg(long, value_name = "NUMBER", default_value_t = 200,
        value_parser = clap::value_parser!(u64).range(0..=1_000_000))]
    trials: u64,

    /// Seed of all draws.
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,

    /// Folder for runs that show what is worse. Default: `gate`. It is made if it is needed.
    #[arg(short = 'd', long, value_name = "DIR", default_value = "gate")]
    folder: PathBuf,

    /// Threads. The number does not change the answer. Default: one for each CPU.
    #[arg(long, value_name = "NUMBER")]
    jobs: Option<NonZeroUsize>,

    /// Output format. Default: what the ending of the output file stands for (.json), else `human`.
    #[arg(long, value_parser = format_of(MEASURED))]
    format: Option<Format>,

    /// Write the answer to this file instead of standard output.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Asks the gate, or looks for a commit.
///
/// # Errors
/// When a version cannot be read or run, or git or the folder refuses something.
pub fn run(request: &Gate) -> anyhow::Result<Status> {
    let form = output::form(request.format, request.output.as_deref(), MEASURED)?;
    if let Some(ends) = &request.bisect {
        return bisect::run(request, ends, form);
    }
    let Some(against) = &request.against else {
        return Err(UsageError::new("give --against or --bisect").into());
    };
    let [new, old] = [&request.new, against].map(|word| policy::open(&COMPUTER, word));
    let question = request.question(new?, old?);
    let gated = question.ask(&COMPUTER).map_err(ask::Error::into_cause)?;
    let capsules = store::keep_breaches(&request.folder, &gated.breaches, |at, limit| {
        format!("{limit}-{}.bundle", at + 1)
    })?;
    let frame = GateFrame {
        new: request.new.clone(),
        old: against.clone(),
        seed: request.seed,
    };
    let mut to = output::open(request.output.as_deref())?;
    match form {
        Format::Json => {
            let document = gate::document(&frame, &gated, &capsules);
            writeln!(to, "{document:#}")?;
        }
        _ => gate::text(&frame, (&gated, &capsules), look::width(), &mut to)?,
    }
    to.flush()?;
    Ok(status(gated.passage))
}

/// The status that a gate ends with.
const fn status(passage: Passage) -> Status {
    match passage {
        Passage::Passed => Status::Done,
        Passage::Refused => Status::Ejected,
        Passage::NotDecided => Status::Inconclusive,
    }
}

impl Gate {
    fn question(&self, new: FoundPolicy, old: FoundPolicy) -> VersionGate {
        VersionGate {
            new,
            old,
            seed: self.seed,
            trials: self.trials,
            loads: self.workloads.clone(),
            jobs: self.jobs,
        }
    }
}

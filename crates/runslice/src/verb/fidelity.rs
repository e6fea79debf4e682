//! `runslice fidelity [POLICY...]`: how well the simulated machine stands for a kernel.

mod errors;
mod make;

use std::io::Write as _;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use ask::choose::errors::LoadClass;
use ask::fidelity::asked::{PlaysRequest, TIMES};
use ask::fidelity::least::Least;
use ask::fidelity::{self, Lacking};
use ask::machine_file::file_of;
use clap::{Args, ValueEnum};
use model::{Nanos, Profile, span};
use show::fidelity as shown;
use show::format::FIDELITY;

use crate::about::About;
use crate::computer::COMPUTER;
use crate::exit::Status;
use crate::output;
use crate::report::{Format, format_of};
use crate::say::say;

/// Arguments of `runslice fidelity`.
#[derive(Debug, Args)]
pub struct Fidelity {
    /// Policies to run: built-in names, sources or objects, with knobs after a colon.
    /// Default: fifo, mlfq, o1 and staircase.
    policy: Vec<String>,

    /// Workload to play: a built-in name or a TOML file. May be repeated. Default: generated ones.
    #[arg(short, long, value_name = "WORKLOAD")]
    workload: Vec<String>,

    /// Number of workloads to generate from the seed. Default: 4, or 0 with --workload.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(0..=1000))]
    generate: Option<u64>,

    /// Generate only workloads in which many tasks are forked (`forks`), or none such (`steady`);
    /// with --errors, only these get into the table.
    #[arg(long, value_name = "CLASS", hide = true)]
    class: Option<LoadClass>,

    /// Seed of the generated workloads, and of the choices of all. Each workload is played with
    /// this seed and with others.
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,

    /// Plays of each workload under each policy, each with its own seed. With one there is no
    /// ceiling: nothing shows what the seed alone changes.
    #[arg(long, value_name = "NUMBER", default_value_t = TIMES)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=100))]
    times: u32,

    /// Length of each run.
    #[arg(long = "for", value_name = "TIME", default_value = "5s", value_parser = span::parse)]
    duration: Nanos,

    /// Kernel that plays: one in counting VMs, or this computer's (needs root and `sched_ext`).
    #[arg(long, value_enum, default_value_t = Machine::Vm)]
    machine: Machine,

    /// Kernel that a VM boots: 6.16 to 7.3, or the path of a vmlinuz.
    #[arg(long, value_name = "KERNEL", default_value = "6.18")]
    kernel: String,

    /// CPUs of the VM. On a host they are those that it has.
    #[arg(long, value_name = "NUMBER", default_value_t = 2)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=255))]
    cpus: u16,

    /// Also simulate with this profile: a name or a file, see docs/profiles.md. May be repeated.
    /// `ideal`, whose kernel takes no time, is always there.
    #[arg(long, value_name = "NAME|FILE")]
    profile: Vec<String>,

    /// Record every event and keep the files, so that the first differing turn of a CPU can be
    /// named. Without this the kernel keeps only histograms, which costs less CPU time.
    #[arg(long)]
    events: bool,

    /// Folder for the plays. Plays that are already there are not made again, so an interrupted
    /// command continues.
    #[arg(
        short = 'd',
        long,
        value_name = "DIR",
        default_value = "fidelity.results"
    )]
    folder: PathBuf,

    /// Compare the plays of this folder again, without a kernel.
    #[arg(long, value_name = "DIR", conflicts_with_all = [
        "policy", "workload", "generate", "seed", "times", "duration", "machine", "kernel",
        "cpus", "events", "folder",
    ])]
    from: Option<PathBuf>,

    /// File with the scores that must be reached. If one is not, the exit status is 5. See
    /// docs/fidelity.md.
    #[arg(long, value_name = "FILE")]
    least: Option<PathBuf>,

    /// Write into this table how far ratios to the first policy lie outside of the simulated
    /// intervals, with the last profile: what widens the intervals of `choose`. Its other loads
    /// stay.
    #[arg(long, value_name = "FILE", hide = true, conflicts_with_all = ["least", "output"])]
    errors: Option<PathBuf>,

    /// Number of figures to show that are farthest apart.
    #[arg(long, value_name = "NUMBER", default_value_t = 10)]
    worst: usize,

    /// Threads that simulate. The number does not change the results. Default: one for each CPU.
    #[arg(long, value_name = "NUMBER")]
    jobs: Option<NonZeroUsize>,

    /// Output format. Default: what the ending of the output file stands for (.json, .md), else
    /// `human`.
    #[arg(long, value_parser = format_of(FIDELITY))]
    format: Option<Format>,

    /// Write the results to this file instead of standard output.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Whose kernel plays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Machine {
    /// That of counting VMs.
    Vm,
    /// This computer's.
    Host,
}

/// Plays what is not there yet, compares, and writes the tables.
///
/// # Errors
/// When something that was asked for does not exist, this computer cannot play, or a file is bad.
pub fn run(request: &Fidelity) -> anyhow::Result<Status> {
    let format = output::form(request.format, request.output.as_deref(), FIDELITY)?;
    let least = request.least.as_deref();
    let mut read: Vec<(&str, Option<&Path>)> = vec![("--least", least)];
    let profiles = request.profile.iter();
    read.extend(profiles.map(|name| ("--profile", file_of::<Profile>(name))));
    output::spare(&read, &[("--output", request.output.as_deref())])?;
    let least = least.map(|it| Least::read(&COMPUTER, it)).transpose()?;
    let profiles = fidelity::profiles(&COMPUTER, &request.profile)?;
    let (plays, lacking) = match &request.from {
        Some(folder) => (PlaysRequest::read(&COMPUTER, folder)?, Lacking::default()),
        None => make::plays(request)?,
    };
    let question = fidelity::Fidelity {
        plays: &plays,
        lacking: &lacking,
        profiles,
        least,
        worst: request.worst,
        jobs: request.jobs,
    };
    if let Some(table) = &request.errors {
        return errors::write(&question, table, request.class);
    }
    let judged = question.ask(&COMPUTER)?;
    let mut to = output::open(request.output.as_deref())?;
    match format {
        Format::Markdown => shown::markdown(&judged, &mut to)?,
        Format::Json => shown::json(&judged, &plays.asked, &About::origin(), &mut to)?,
        _ => shown::human(&judged, &mut to)?,
    }
    to.flush()?;
    let missed = judged.missed.iter();
    missed.for_each(|sentence| say("fidelity", sentence));
    Ok(if !judged.missed.is_empty() {
        Status::Exceeded
    } else if judged.is_empty() {
        say("fidelity", "there is no play to compare");
        Status::Inconclusive
    } else if !judged.missing.is_empty() {
        // A job that runs every night must not pass because its worst plays are not there.
        let count = judged.missing.len() as u64;
        let runs = crate::report::counted(count, "run");
        say(
            "fidelity",
            &format!("{runs} could not be compared; the end of the tables says why"),
        );
        Status::Inconclusive
    } else {
        Status::Done
    })
}

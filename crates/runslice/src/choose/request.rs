//! What `choose` is asked, and the candidates that this names.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use ask::choose::{BASELINE, Candidate, Choose as Question, RUNS_MAX, candidates};
use ask::load_source::LoadSource;
use clap::Args;
use model::Nanos;
use show::format::COMPARISONS;

use crate::comparison::{form_of, parse_percent};
use crate::computer::COMPUTER;
use crate::goal::Goal;
use crate::machine_options::MachineOptions;
use crate::policy::{self, FoundPolicy};
use crate::recording_options::RecordingOptions;
use crate::report::{Format, format_of};
use crate::scheduler::{LoaderOptions, Schedulers};
use crate::{output, workload_arg};

/// Arguments of `runslice choose`.
#[derive(Debug, Args)]
pub struct Choose {
    /// Candidates: policies as `sim` takes them, with knobs after a colon. Default: every built-in
    /// policy, unless --scheduler or --knobs name some.
    pub policy: Vec<String>,

    /// What is to become better, for example 'p99 wait of nginx'. May be repeated. Default: the
    /// goals of the workload.
    ///
    /// p50, p90, p99, p99.9, max or mean of wait, delay, slice, sleep or `span NAME`; `late
    /// DEADLINE`, `work COUNTER`, `throughput`, `cpu`, `time` or, with --hardware, `energy` or
    /// `work per joule`; then `of GROUP`, where `*` stands for any text. `time of GROUP` ends with
    /// these tasks and those that they forked. `wait` follows a wakeup; `delay` is every wait for a
    /// CPU. Long slices are good and all other spans bad, unless `lower` or `higher` stands first.
    #[arg(long, value_name = "GOAL")]
    pub goal: Vec<Goal>,

    /// Workload: a built-in name, a TOML file, an rt-app configuration, or a trace as for --from.
    /// Both take a folder with a recording of each of many machines, too.
    #[arg(short, long, required_unless_present_any = ["from", "again"])]
    pub workload: Option<String>,

    #[command(flatten)]
    pub recording: RecordingOptions,

    /// A scheduler's own program as a candidate, for example `scx_lavd --performance`. May be
    /// repeated. The program has your rights.
    #[arg(long = "scheduler", value_name = "COMMAND")]
    pub schedulers: Vec<String>,

    #[command(flatten)]
    pub loader: LoaderOptions,

    /// Take `policy`, `scheduler` and `[knobs]` of a sweep's file: every combination of knobs is a
    /// candidate. docs/sweep.md describes the file.
    #[arg(long, value_name = "FILE")]
    pub knobs: Option<PathBuf>,

    /// The candidate that the others are held against. Default: the scheduler of today's kernels.
    #[arg(long, value_name = "POLICY", default_value = BASELINE)]
    pub baseline: String,

    /// Number of runs of each candidate, each with its own seed. Default: 10, or as many as it
    /// takes to decide all comparisons; of a recording 4 reruns.
    #[arg(long, value_name = "NUMBER",
        value_parser = clap::value_parser!(u32).range(1..=RUNS_MAX.into()))]
    pub runs: Option<u32>,

    /// State the error of a simulated ratio of two candidates, in per cent, which widens intervals.
    /// Default: the error that was measured against kernels (docs/choose.md).
    #[arg(long, value_name = "PERCENT", value_parser = parse_percent)]
    pub not_modelled: Option<f64>,

    #[command(flatten)]
    pub machine: MachineOptions,

    /// Ask again at every end of what is uncertain about the hardware: shares of threads, powers,
    /// speeds of small CPUs. A scheduler is only named if it is named at all of them. See
    /// docs/hardware.md.
    #[arg(long)]
    pub hardware_spread: bool,

    /// Seed of the first run. The others are derived from it. Default: the seed of the workload.
    #[arg(long, value_name = "NUMBER")]
    pub seed: Option<u64>,

    /// Longest simulated time of a run, such as 10s. Default: until the workload ends.
    #[arg(long, value_name = "TIME", value_parser = workload_arg::parse_duration)]
    pub duration: Option<Nanos>,

    /// Let each task begin by up to so much later than the load says, drawn for each from the run's
    /// seed. Default: as in the workload; of a recording 1/HZ.
    #[arg(long, value_name = "TIME", value_parser = workload_arg::parse_jitter)]
    pub start_jitter: Option<Nanos>,

    /// Set a parameter of the workload, one that its file lists under `scale`. May be repeated.
    #[arg(long, value_name = "NAME=VALUE", value_parser = workload_arg::parse_scale)]
    pub scale: Vec<(String, i64)>,

    /// Threads. The number does not change the results. Default: one for each CPU.
    #[arg(long, value_name = "NUMBER")]
    pub jobs: Option<NonZeroUsize>,

    /// Ask again what the decision in this file (`-o FILE.bundle`) asked, where it was asked, and
    /// say whether the answer is the same, byte for byte. What has changed since is named.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["policy", "goal", "workload", "from",
        "schedulers", "knobs", "runs", "not_modelled", "seed", "duration", "start_jitter",
        "scale", "hardware_spread", "format"])]
    pub again: Option<PathBuf>,

    /// Output format. Default: what the ending of the output file stands for (.html, .json, .csv,
    /// .parquet), else `human`. A .bundle is JSON: with command, hashes, seed and errors it repeats
    /// the decision.
    #[arg(long, value_parser = format_of(COMPARISONS))]
    pub format: Option<Format>,

    /// Write the answer to this file instead of standard output.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

impl Choose {
    /// The candidates, the baseline first.
    fn candidates(&self) -> anyhow::Result<Vec<Candidate>> {
        let named = |word: &String| Ok(Candidate::named(word, policy::open(&COMPUTER, word)?));
        let first = named(&self.baseline)?;
        let words = policy::list(&COMPUTER, &self.policy);
        let words = words.iter().map(named).collect::<anyhow::Result<_>>()?;
        let programs = Schedulers {
            commands: self.schedulers.clone(),
            loader: self.loader.clone(),
            ..Schedulers::default()
        };
        let programs = programs.policies()?.into_iter();
        let programs = programs.map(|it| Candidate::of(FoundPolicy::of_policy(it)));
        candidates(
            &COMPUTER,
            (&self.baseline, first),
            (words, programs.collect()),
            (self.knobs.as_deref(), &self.loader.asked()),
        )
    }

    /// As a question has it.
    ///
    /// # Errors
    /// When a candidate cannot be found, or there is no other than the baseline.
    pub fn asked(&self) -> anyhow::Result<Question> {
        let load = match self.recording.asked().source()? {
            Some(load) => load,
            None => LoadSource::Named(self.workload.as_deref().unwrap_or_default().into()),
        };
        Ok(Question {
            candidates: self.candidates()?,
            goals: self.goal.clone(),
            load,
            files: self.knobs.iter().cloned().collect(),
            scale: self.scale.clone(),
            runs: self.runs,
            not_modelled: self.not_modelled,
            machine: self.machine.asked(),
            spread: self.hardware_spread,
            seed: self.seed,
            duration: self.duration,
            start_jitter: self.start_jitter,
            jobs: self.jobs,
        })
    }

    /// The form of the answer, after what does not fit together was refused.
    ///
    /// # Errors
    /// When two options contradict each other.
    pub fn check(&self) -> anyhow::Result<Format> {
        let workload = self.workload.as_deref().and_then(workload_arg::file_of);
        let policies = policy::list(&COMPUTER, &self.policy);
        let policies = policies.iter().map(|it| policy::file_of(&COMPUTER, it));
        let mut read: Vec<_> = policies.map(|file| ("a policy", file)).collect();
        read.push(("--from", self.recording.from.as_deref()));
        read.push(("--workload", workload));
        read.push(("--knobs", self.knobs.as_deref()));
        read.push(("--profile", self.machine.profile_file()));
        read.push(("--hardware", self.machine.hardware_file()));
        output::spare(&read, &[("--output", self.output.as_deref())])?;
        // A decision that somebody else can repeat is the document with everything in it.
        let ending = self.output.as_deref().and_then(Path::extension);
        if self.format.is_none() && ending.is_some_and(|it| it == "bundle") {
            return Ok(Format::Json);
        }
        Ok(form_of(self.format, self.output.as_deref())?)
    }
}

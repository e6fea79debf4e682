//! What `choose` is asked, and the candidates that this names.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use ask::choose::{Candidate, Choose as Question};
use clap::Args;
use model::{Advised, Nanos};
use workload::Workload;

use crate::comparison::{Form, form_of, parse_percent};
use crate::computer::COMPUTER;
use crate::exit::UsageError;
use crate::goal::Goal;
use crate::machine_options::MachineOptions;
use crate::policy::{self, Found};
use crate::recording_options::RecordingOptions;
use crate::scheduler::{LoaderOptions, Schedulers};
use crate::{output, plan, workload_arg};

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
    /// DEADLINE`, `work COUNTER`, `throughput`, `cpu` or `time`; then `of GROUP`, where `*` stands
    /// for any text. `wait` follows a wakeup; `delay` is every wait for a CPU. Long slices are good
    /// and all other spans bad, unless `lower` or `higher` stands first.
    #[arg(long, value_name = "GOAL")]
    pub goal: Vec<Goal>,

    /// Workload: a built-in name, a TOML file, an rt-app configuration, or a trace as for --from.
    #[arg(short, long, required_unless_present = "from")]
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
    #[arg(long, value_name = "POLICY", default_value = "eevdf")]
    pub baseline: String,

    /// Number of runs of each candidate, each with its own seed; of a trace the number of parts
    /// that it is cut into. Default: 10, or as many as it takes to decide all comparisons.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub runs: Option<u32>,

    /// Refuse to prefer a candidate whose change may be smaller than so many per cent, because so
    /// much is not modelled. Default: the largest error of such a figure that was measured against
    /// a kernel (docs/fidelity.md); the answer names it.
    #[arg(long, value_name = "PERCENT", value_parser = parse_percent)]
    pub not_modelled: Option<f64>,

    #[command(flatten)]
    pub machine: MachineOptions,

    /// Seed of the first run. The others are derived from it. Default: the seed of the workload.
    #[arg(long, value_name = "NUMBER")]
    pub seed: Option<u64>,

    /// Longest simulated time of a run, such as 10s. Default: until the workload ends.
    #[arg(long, value_name = "TIME", value_parser = workload_arg::parse_duration)]
    pub duration: Option<Nanos>,

    /// Let each task begin by up to so much later than the load says, drawn for each from the run's
    /// seed. Default: as in the workload; of a recording that is not cut into parts 1/HZ.
    #[arg(long, value_name = "TIME", value_parser = workload_arg::parse_jitter)]
    pub start_jitter: Option<Nanos>,

    /// Set a parameter of the workload, one that its file lists under `scale`. May be repeated.
    #[arg(long, value_name = "NAME=VALUE", value_parser = workload_arg::parse_scale)]
    pub scale: Vec<(String, i64)>,

    /// Threads. The number does not change the results. Default: one for each CPU.
    #[arg(long, value_name = "NUMBER")]
    pub jobs: Option<NonZeroUsize>,

    /// Output format. Default: what the ending of the output file stands for (.html, .json, .csv,
    /// .parquet), else `human`.
    #[arg(long, value_enum)]
    pub format: Option<Form>,

    /// Write the answer to this file instead of standard output.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// A policy that need not be read: the argument that names it, and what it is.
pub type Given = (String, Found);

fn candidate(argument: &str, given: &[Given]) -> anyhow::Result<Candidate> {
    let known = given.iter().find(|(name, _)| name == argument);
    Ok(Candidate {
        found: match known {
            Some((_, found)) => found.clone(),
            None => policy::open(argument)?,
        },
        call: quoted(argument),
    })
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let quoted = shlex::try_quote(word);
    quoted.map_or_else(|_| word.to_owned(), Into::into)
}

impl Choose {
    /// The candidates, each once, the baseline first. Those in `given` are not looked for.
    ///
    /// # Errors
    /// When one cannot be found, or there is no other than the baseline.
    pub fn candidates(&self, given: &[Given]) -> anyhow::Result<Vec<Candidate>> {
        let mut all = vec![candidate(&self.baseline, given)?];
        let mut named = policy::list(&self.policy);
        if named.is_empty() && self.schedulers.is_empty() && self.knobs.is_none() {
            named = policies::ALL.iter().map(|it| it.name.to_owned()).collect();
        }
        for argument in &named {
            if *argument != self.baseline {
                all.push(candidate(argument, given)?);
            }
        }
        let in_file = match &self.knobs {
            Some(file) => plan::candidates(&COMPUTER, file, &self.loader.asked())?,
            None => Vec::new(),
        };
        let programs = Schedulers {
            commands: self.schedulers.clone(),
            loader: self.loader.clone(),
            ..Schedulers::default()
        };
        let programs = programs.policies()?.into_iter().map(Found::of_policy);
        for found in in_file.into_iter().chain(programs) {
            let call = match &found.policy.program {
                Some(program) => {
                    let words = program.command.iter().map(String::as_str);
                    let command = shlex::try_join(words).unwrap_or_default();
                    format!("--scheduler {}", quoted(&command))
                }
                None => quoted(&found.policy.name),
            };
            all.push(Candidate { found, call });
        }
        let mut seen = Vec::new();
        all.retain(|it| {
            let is_new = !seen.contains(&it.call);
            seen.push(it.call.clone());
            is_new
        });
        if all.len() < 2 {
            let message = Advised::new(
                format!("there is only {} to choose from", self.baseline),
                "name other candidates",
            );
            return Err(UsageError::new(message).into());
        }
        Ok(all)
    }

    /// As a question has it, with the candidates that are named here or in `given`, under `load` if
    /// it is not to be found by its name.
    ///
    /// # Errors
    /// As [`Choose::candidates`].
    pub fn asked(&self, given: &[Given], load: Option<Workload>) -> anyhow::Result<Question> {
        Ok(Question {
            candidates: self.candidates(given)?,
            goals: self.goal.clone(),
            load,
            workload: self.workload.clone(),
            recording: self.recording.asked(),
            scale: self.scale.clone(),
            runs: self.runs,
            not_modelled: self.not_modelled,
            machine: self.machine.asked(),
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
    pub fn check(&self) -> anyhow::Result<Form> {
        let workload = self.workload.as_deref().and_then(workload_arg::file_of);
        let policies = policy::list(&self.policy);
        let policies = policies.iter().map(|it| policy::file_of(it));
        let mut read: Vec<_> = policies.map(|file| ("a policy", file)).collect();
        read.push(("--from", self.recording.from.as_deref()));
        read.push(("--workload", workload));
        read.push(("--knobs", self.knobs.as_deref()));
        read.push(("--profile", self.machine.profile_file()));
        output::spare(&read, &[("--output", self.output.as_deref())])?;
        let form = form_of(self.format, self.output.as_deref())?;
        Ok(form)
    }
}

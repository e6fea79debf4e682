//! `runslice explain POLICY -w WORKLOAD`, or of a finished run, or of a kernel's dump.

mod json;
mod text;

use std::fs::File;
use std::io::{BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use clap::Args;
use model::{Nanos, span};
use stats::why::{Finding, Observer, Wait, explain_dump};
use workload::RunSpec;

use crate::exit::{Status, UsageError};
use crate::machine_options::MachineOptions;
use crate::prepare::Prepare;
use crate::{input, output, policy, simulate, workload_arg};

/// Arguments of `runslice explain`.
#[derive(Debug, Args)]
pub struct Explain {
    /// Policy to run: a built-in name or a BPF object, with knobs after a colon, or a bundle.
    #[arg(required_unless_present_any = ["events", "dump"],
        conflicts_with_all = ["events", "dump"], requires = "workload")]
    policy: Option<String>,

    /// Workload to run: a built-in name or a TOML file.
    #[arg(short, long)]
    workload: Option<String>,

    /// Explain the run in this file, which `sim --events FILE --decisions` wrote.
    #[arg(long, value_name = "FILE")]
    events: Option<PathBuf>,

    /// Explain a kernel's debug dump: the text that a kernel prints when it ejects a policy.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["events", "task", "worst"])]
    dump: Option<PathBuf>,

    /// Explain the waits of this task: a name, or a group's name for all its tasks.
    #[arg(long, value_name = "NAME")]
    task: Option<String>,

    /// Explain so many of the longest waits. Default: 1 with --task, else none.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(1..=1000))]
    worst: Option<u16>,

    #[command(flatten)]
    machine: MachineOptions,

    /// Options that prepare the policy.
    #[command(flatten)]
    prepare: Prepare,

    /// Seed of every random choice. Default: the seed of the workload.
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,

    /// Longest simulated time, such as 10s or 1.5ms. Default: until the workload ends.
    #[arg(long, value_name = "TIME", value_parser = span::parse)]
    duration: Option<Nanos>,

    /// Set a parameter of the workload, one that its file lists under `scale`. May be repeated.
    #[arg(long, value_name = "NAME=VALUE", value_parser = workload_arg::parse_scale)]
    scale: Vec<(String, i64)>,

    /// Print JSON.
    #[arg(long)]
    json: bool,

    /// Write the explanation to this file instead of standard output.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// What is printed.
#[derive(Debug, Default)]
pub struct Explanation {
    /// About the run as a whole.
    pub finding: Option<Finding>,
    /// Single waits that were asked for.
    pub waits: Vec<Wait>,
    /// What the source does not tell.
    pub missing: Vec<String>,
    /// The command that shows it again.
    pub again: Option<String>,
    /// It comes from a dump, which has no times of the run.
    pub is_dump: bool,
}

/// Explains.
///
/// # Errors
/// When a policy, a workload or a file is bad.
pub fn run(request: &Explain) -> anyhow::Result<Status> {
    let explanation = match (&request.dump, &request.events) {
        (Some(path), _) => of_dump(path)?,
        (None, Some(path)) => of_events(request, path)?,
        (None, None) => of_run(request)?,
    };
    let mut to = output::open(request.output.as_deref())?;
    if request.json {
        writeln!(to, "{}", json::of(&explanation))?;
    } else {
        write!(to, "{}", text::of(&explanation))?;
    }
    to.flush()?;
    let is_found = explanation.finding.is_some();
    Ok(if is_found {
        Status::Ejected
    } else {
        Status::Done
    })
}

fn of_dump(path: &Path) -> anyhow::Result<Explanation> {
    let bytes = input::bytes(path, input::OBJECT)?;
    let text = String::from_utf8_lossy(&bytes);
    let (finding, missing) = explain_dump(&text).with_context(|| path.display().to_string())?;
    Ok(Explanation {
        finding: Some(finding),
        missing,
        is_dump: true,
        ..Explanation::default()
    })
}

impl Explain {
    fn observer(&self) -> Observer {
        let worst = self.worst.unwrap_or_else(|| u16::from(self.task.is_some()));
        Observer::new(worst.into(), self.task.clone())
    }

    fn explanation(&self, observer: &Observer, again: Option<String>) -> Explanation {
        let mut missing = Vec::new();
        if !observer.has_decisions() {
            missing.push(
                "these events have no decisions, so they do not tell why: make the run again with \
                 `sim --events FILE --decisions`"
                    .to_owned(),
            );
        }
        Explanation {
            finding: observer.finding(),
            waits: observer.worst(),
            missing,
            again,
            is_dump: false,
        }
    }

    fn spec(&self) -> anyhow::Result<RunSpec> {
        let (Some(argument), Some(name)) = (&self.policy, &self.workload) else {
            let message = "give a policy and --workload, or --events, or --dump";
            return Err(UsageError(message.to_owned()).into());
        };
        let workload = Arc::new(workload_arg::find(name, &self.scale)?);
        let mut found = policy::open(argument)?;
        self.prepare.apply(&mut found.policy);
        let machine = found.machine.as_ref().unwrap_or(&workload.machine);
        Ok(RunSpec {
            machine: self.machine.change(machine)?,
            policy: found.policy,
            seed: self.seed.unwrap_or(workload.seed),
            workload,
            tie_seed: None,
            attach_after: Nanos::ZERO,
            duration: self.duration,
        })
    }
}

fn of_events(request: &Explain, path: &Path) -> anyhow::Result<Explanation> {
    let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    let mut observer = request.observer();
    let read = stats::replay(BufReader::new(file), &mut observer);
    read.with_context(|| path.display().to_string())?;
    Ok(request.explanation(&observer, None))
}

fn of_run(request: &Explain) -> anyhow::Result<Explanation> {
    let spec = request.spec()?;
    simulate::say_end(&spec);
    let mut observer = request.observer();
    simulate::run(&spec, &mut observer)?;
    Ok(request.explanation(&observer, Some(command())))
}

/// The command line that was given, for a shell.
fn command() -> String {
    let words = std::env::args().skip(1);
    let words = words.map(|word| {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@+%".contains(c);
        match !word.is_empty() && word.chars().all(is_plain) {
            true => word,
            false => format!("'{}'", word.replace('\'', r"'\''")),
        }
    });
    let words: Vec<_> = words.collect();
    format!("runslice {}", words.join(" "))
}

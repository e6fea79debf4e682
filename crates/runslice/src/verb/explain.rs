//! `runslice explain POLICY -w WORKLOAD`, or of a finished run, or of a kernel's dump.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use ask::explain::{Explain as Question, ExplainOf};
use ask::shrink::Case;
use clap::Args;
use explain::why::{Fault, Finding, Right};
use model::{Advised, Nanos, SimTime};
use show::format;
use workload::RunSpec;

use crate::about::About;
use crate::computer::COMPUTER;
use crate::confirm::Confirm;
use crate::exit::{Status, UsageError};
use crate::explanation::{Explanation, json, text};
use crate::machine_options::MachineOptions;
use crate::policy::FoundPolicy;
use crate::prepare::Prepare;
use crate::report::Format;
use crate::run_options::Limits;
use crate::runs::{Asked, StartJitter};
use crate::say::say;
use crate::scheduler::Schedulers;
use crate::shrink::shrink;
use crate::violation::{self, Property};
use crate::workload_arg::Written;
use crate::{look, output, policy, workload_arg};

/// Arguments of `runslice explain`.
#[derive(Debug, Args)]
pub struct Explain {
    /// Policy to run: a built-in name or a BPF object, with knobs after a colon, or a bundle.
    ///
    /// A bundle that `--shrink` or `hunt` wrote brings its workload.
    #[arg(required_unless_present_any = ["commands", "events", "dump"],
        conflicts_with_all = ["events", "dump"])]
    policy: Option<String>,

    #[command(flatten)]
    schedulers: Schedulers,

    /// Workload to run: a built-in name or a TOML file. The bundle of a recorded run has its own.
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
    #[arg(long, value_name = "TIME", value_parser = workload_arg::parse_duration)]
    duration: Option<Nanos>,

    /// Set a parameter of the workload, one that its file lists under `scale`. May be repeated.
    #[arg(long, value_name = "NAME=VALUE", value_parser = workload_arg::parse_scale)]
    scale: Vec<(String, i64)>,

    /// Make the run as small as it still shows the same fault, and write it into this file: fewer
    /// tasks, operations and CPUs, a shorter time.
    ///
    /// The file is a bundle with the policy, the workload and the seed. `runslice sim FILE` and
    /// `runslice explain FILE` repeat the run. It takes 10 minutes at most.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["task", "worst", "events", "dump"])]
    shrink: Option<PathBuf>,

    #[command(flatten)]
    confirm: Confirm,

    #[command(flatten)]
    limits: Limits,

    /// Right by which shares of the CPUs are judged: weight, cgroup, rank, deadline or none.
    /// Default: the one that the policy declares in its section `right`.
    #[arg(long, value_name = "RIGHT", value_parser = ask::right::parse, conflicts_with = "dump")]
    right: Option<Right>,

    /// Print JSON.
    #[arg(long)]
    json: bool,

    /// Write the explanation to this file instead of standard output; as JSON, if it ends in .json.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Explains.
///
/// # Errors
/// When a policy, a workload or a file is bad.
pub fn run(request: &Explain) -> anyhow::Result<Status> {
    request.check()?;
    let is_json = request.is_json()?;
    let explanation = match (&request.dump, &request.events) {
        (Some(path), _) => request.question(ExplainOf::Dump(path.clone()))?,
        (None, Some(path)) => request.question(ExplainOf::Events(path.clone()))?,
        (None, None) => of_run(request)?,
    };
    let mut to = output::open(request.output.as_deref())?;
    if is_json {
        writeln!(to, "{}", json::of(&explanation))?;
    } else {
        write!(to, "{}", text::of(&explanation, look::width()))?;
    }
    to.flush()?;
    Ok(if explanation.accuses() {
        Status::Ejected
    } else {
        Status::Done
    })
}

impl Explain {
    fn question(&self, of: ExplainOf) -> anyhow::Result<Explanation> {
        let question = Question {
            of,
            task: self.task.clone(),
            worst: self.worst,
            right: self.right,
        };
        question.ask(&COMPUTER).map_err(ask::Error::into_cause)
    }

    fn found(&self) -> anyhow::Result<FoundPolicy> {
        let mut found = match (&self.policy, self.schedulers.one()?) {
            (Some(policy), None) => policy::open(&COMPUTER, policy)?,
            (None, Some(program)) => FoundPolicy::of_policy(program),
            _ => {
                let message = "give a policy or --scheduler, or --events, or --dump";
                return Err(UsageError::new(message).into());
            }
        };
        self.prepare.apply(&mut found.policy)?;
        Ok(found)
    }

    fn spec(&self, found: FoundPolicy) -> anyhow::Result<RunSpec> {
        let asked = Asked {
            workload: self.workload.as_deref(),
            scale: &self.scale,
            machine: &self.machine.asked(),
            seed: self.seed,
            duration: self.duration,
            start_jitter: StartJitter::OfLoad,
        };
        let specs = asked.specs(&COMPUTER, vec![found], None)?;
        specs.into_iter().next().context("one policy is one run")
    }

    /// Whether JSON is asked for, or the file's ending stands for it.
    fn is_json(&self) -> Result<bool, UsageError> {
        let ending = output::ending(self.output.as_deref(), format::MEASURED).map_err(|_| {
            UsageError::new(Advised::new(
                "an explanation is text or JSON",
                "name a file that ends in .txt or .json",
            ))
        })?;
        Ok(self.json || ending == Some(Format::Json))
    }

    /// Refuses options of a program where none is run, and one file for two outputs.
    fn check(&self) -> anyhow::Result<()> {
        let is_read = self.events.is_some() || self.dump.is_some();
        let is_other = is_read || self.shrink.is_some() || self.confirm.is_asked();
        if is_other && self.limits.is_set() {
            let message = "--memory and --budget are of the run that is explained: leave out \
                           --events, --dump, --shrink and --confirm";
            return Err(UsageError::new(message).into());
        }
        if is_read && !self.schedulers.commands.is_empty() {
            let message = "--events and --dump are of a run that is over: leave out --scheduler";
            return Err(UsageError::new(message).into());
        }
        let [printed, metrics] = self.schedulers.files();
        let policy = self
            .policy
            .as_deref()
            .and_then(|it| policy::file_of(&COMPUTER, it));
        let workload = self.workload.as_deref().and_then(workload_arg::file_of);
        output::spare(
            &[
                ("the policy", policy),
                ("--workload", workload),
                ("--events", self.events.as_deref()),
                ("--dump", self.dump.as_deref()),
                ("--profile", self.machine.profile_file()),
                ("--hardware", self.machine.hardware_file()),
            ],
            &[
                ("--output", self.output.as_deref()),
                ("--shrink", self.shrink.as_deref()),
                printed,
                metrics,
            ],
        )?;
        Ok(())
    }

    /// The run as one that can be made smaller: its workload is a text.
    fn case(&self, found: &FoundPolicy, spec: &RunSpec, end: Nanos) -> anyhow::Result<Case> {
        let bound = found.bound.as_ref();
        let (workload, scale) = match (&self.workload, bound) {
            (Some(name), _) => (Written::find(&COMPUTER, name)?, self.scale.clone()),
            (None, Some(bound)) => (bound.workload.clone(), bound.scale.clone()),
            (None, None) => {
                let message = "--shrink and --confirm need a workload: give --workload";
                return Err(UsageError::new(message).into());
            }
        };
        let program = spec.policy.program.as_ref();
        if program.is_some_and(|it| it.recorded.is_some()) || workload.is_import() {
            let message = "--shrink and --confirm need an object or --scheduler, and a workload \
                           file (.toml): a recording of a program fits no other run";
            return Err(UsageError::new(message).into());
        }
        Ok(Case {
            policy: spec.policy.clone(),
            machine: spec.machine.clone(),
            workload,
            scale,
            seed: spec.seed,
            duration: Some(end),
        })
    }
}

fn of_run(request: &Explain) -> anyhow::Result<Explanation> {
    let found = request.found()?;
    let spec = request.spec(found.clone())?;
    let of = ExplainOf::Run(Box::new(spec.clone()), request.limits.options());
    let explanation = request.question(of)?;
    if let (Some(path), Some(finding), Some(end)) =
        (&request.shrink, &explanation.finding, explanation.end)
    {
        // An ejection ends the run within its last millisecond.
        let end = end.since(SimTime::ZERO);
        let end = match finding.message {
            Some(_) => Nanos::from_millis(end.get() / 1_000_000 + 1),
            None => end,
        };
        let case = request.case(&found, &spec, end)?;
        return smallest(case, finding.clone(), (path, request));
    }
    Ok(Explanation {
        again: Some(About::again()),
        played: played(request, (&found, &spec), &explanation)?,
        ..explanation
    })
}

/// What plays on a kernel say of a run that was not made smaller.
fn played(
    request: &Explain,
    (found, spec): (&FoundPolicy, &RunSpec),
    explanation: &Explanation,
) -> anyhow::Result<Option<String>> {
    let finding = explanation.finding.as_ref();
    let asked = finding.zip(explanation.end);
    let Some((finding, end)) = asked.filter(|_| request.confirm.is_asked()) else {
        return Ok(None);
    };
    match request.case(found, spec, end.since(SimTime::ZERO)) {
        Ok(case) => request.confirm.of(&case, finding),
        Err(error) => Ok(Some(format!("cannot be played: {error:#}"))),
    }
}

/// Makes the run as small as it shows the same, writes that into `path`, and explains it.
fn smallest(
    case: Case,
    finding: Finding,
    (path, request): (&Path, &Explain),
) -> anyhow::Result<Explanation> {
    let right = request.right;
    let own = match finding.fault {
        Fault::UnfairShare => Property::Weights,
        _ => Property::Share,
    };
    let properties: Vec<_> = [own]
        .into_iter()
        .chain(right.map(Property::Right))
        .collect();
    let before = case.size(&COMPUTER)?;
    let shrunk = shrink((case, finding), (&properties, None), COMPUTER.jobs(None))?;
    let (after, runs) = (shrunk.case.size(&COMPUTER)?, shrunk.runs);
    let mut to = output::create(path)?;
    let written = to.write_all(&shrunk.case.capsule(&COMPUTER)?.write());
    let written = written.and_then(|()| to.flush());
    written.map_err(model::CannotWrite::at(path.display()))?;
    say("explain", &format!("from {before}"));
    say("explain", &format!("to {after}, after {runs} runs"));
    if shrunk.is_cut {
        say("explain", "the time was over: a smaller run may exist");
    }
    let explanation = Explanation {
        played: request.confirm.of(&shrunk.case, &shrunk.finding)?,
        finding: Some(shrunk.finding),
        again: Some(violation::explains(path, &properties)),
        ..Explanation::default()
    };
    let spec = shrunk.case.spec(&COMPUTER)?;
    explanation.tried(&COMPUTER, &spec, sim::Options::default())
}

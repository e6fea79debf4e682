//! `runslice trace pid|queue|status TASK`.

mod decided;
mod human;
mod rows;

use std::io::{BufReader, Write as _};
use std::path::PathBuf;

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use explain::trace::{Decider, Scope, Selection, TracedTasks, Tracer};
use model::{Advised, Exit, Nanos, Sink};
use traces::Tee;
use workload::RunSpec;

use crate::computer::COMPUTER;
use crate::exit::{Status, UsageError};
use crate::machine_options::MachineOptions;
use crate::output::To;
use crate::policy::FoundPolicy;
use crate::prepare::Prepare;
use crate::report::{Format, ejection};
use crate::runner::Runner;
use crate::runs::{Asked, StartJitter};
use crate::say::say;
use crate::scheduler::Schedulers;
use crate::{files, on_kernel, output, policy, workload_arg};
use model::{span, suggest};

/// What the events of a traced kernel call its load.
const RUNNING_SYSTEM: &str = "running system";

/// What to show of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TraceCall {
    /// Each wait from run queue to CPU, and what the task waited behind.
    Pid,
    /// The run queue each time the task enters one, and the events until it runs.
    Queue,
    /// Where the policy has put the task, at each run.
    Status,
}

/// Arguments of `runslice trace`.
#[derive(Debug, Args)]
pub struct Trace {
    /// What to show of the task.
    call: TraceCall,

    /// Task to follow: a pid, a name, or a group's name for all its tasks.
    task: String,

    /// Simulate this policy: a built-in name or a BPF object, with knobs after a colon. Without
    /// --sim, --scheduler or --from, trace the running kernel (needs root).
    #[arg(long, value_name = "POLICY", conflicts_with = "from")]
    sim: Option<String>,

    #[command(flatten)]
    schedulers: Schedulers,

    /// Workload to simulate: a built-in name or a TOML file. The bundle of a recorded run has its
    /// own.
    #[arg(short, long)]
    workload: Option<String>,

    /// Read events from this file, which `--events` wrote, and run nothing.
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,

    #[command(flatten)]
    machine: MachineOptions,

    /// Options that prepare the simulated policy.
    #[command(flatten)]
    prepare: Prepare,

    /// Seed of every random choice of the simulated run. Default: the seed of the workload.
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,

    /// Set a parameter of the workload, one that its file lists under `scale`. May be repeated.
    #[arg(long, value_name = "NAME=VALUE", value_parser = workload_arg::parse_scale)]
    scale: Vec<(String, i64)>,

    /// Longest duration, such as 10s or 1.5ms. Default: until the workload ends; on the running
    /// kernel, until Ctrl-C.
    #[arg(long = "for", value_name = "TIME", value_parser = span::parse, conflicts_with = "from")]
    length: Option<Nanos>,

    /// Also follow the task's children, and their children.
    #[arg(long)]
    follow: bool,

    /// Treat all waiting tasks of the machine as one run queue, for a policy with a shared queue.
    /// Default: only tasks that wait at the task's CPU.
    #[arg(long)]
    all_cpus: bool,

    /// Also list what was decided about the task: who put it into which queue, who took it out,
    /// and its slices, each with the callback and its line in the source. Simulated runs have it,
    /// and files of `sim --events FILE --decisions`.
    #[arg(long)]
    decisions: bool,

    #[command(flatten)]
    to: To,
}

impl Trace {
    fn selection(&self) -> Selection {
        let which = match self.task.parse() {
            Ok(pid) => TracedTasks::Pid(pid),
            Err(_) => TracedTasks::Name(self.task.clone()),
        };
        let scope = if self.all_cpus {
            Scope::Machine
        } else {
            Scope::Cpu
        };
        Selection {
            which,
            children: self.follow,
            queues: (self.call == TraceCall::Queue).then_some(scope),
        }
    }

    /// The simulated policy, if one is asked for.
    fn policy(&self) -> anyhow::Result<Option<FoundPolicy>> {
        let program = self.schedulers.one()?;
        let found = match (&self.sim, program) {
            (Some(_), Some(_)) => {
                let message = "--sim and --scheduler each name a policy: give one";
                return Err(UsageError::new(message).into());
            }
            (Some(policy), None) => Some(policy::open(&COMPUTER, policy)?),
            (None, program) => program.map(FoundPolicy::of_policy),
        };
        found
            .map(|mut found| {
                self.prepare.apply(&mut found.policy)?;
                Ok(found)
            })
            .transpose()
    }

    /// Whether options say what a simulated run is to be like.
    fn describes_a_run(&self) -> bool {
        self.machine != MachineOptions::default()
            || self.prepare != Prepare::default()
            || self.workload.is_some()
            || self.seed.is_some()
            || !self.scale.is_empty()
    }

    fn spec(&self, found: FoundPolicy) -> anyhow::Result<RunSpec> {
        let asked = Asked {
            workload: self.workload.as_deref(),
            scale: &self.scale,
            machine: &self.machine.asked(),
            seed: self.seed,
            duration: self.length,
            start_jitter: StartJitter::OfLoad,
        };
        let specs = asked.specs(&COMPUTER, vec![found], None)?;
        specs.into_iter().next().context("one policy is one run")
    }
}

/// Follows a task and writes what became of it.
///
/// # Errors
/// When a policy, a workload or a file is bad, or there is no such task.
pub fn run(request: &Trace) -> anyhow::Result<Status> {
    let format = check(request)?;
    let mut tracer = Tracer::new(request.selection());
    let mut decider = request.decisions.then(|| Decider::new(request.selection()));
    let exit = fill(request, &mut tracer, decider.as_mut())?;
    if tracer.traced().next().is_none() {
        return Err(nobody(request, &tracer).into());
    }
    let mut to = output::open_form(format.export(), request.to.output.as_deref())?;
    match (format, format.export()) {
        (_, Some(form)) => rows::export(request.call, &tracer).write(form, &mut to)?,
        (Format::Json, _) => {
            let decisions = decider.as_ref().map(|it| decided::json(it, &tracer));
            rows::write_json(request.call, &tracer, decisions, &mut to)?;
        }
        _ => {
            human::write(request.call, &tracer, &mut to)?;
            if let Some(decider) = &decider {
                decided::write(decider, &tracer, &mut to)?;
            }
        }
    }
    to.flush()?;
    if tracer.turns().is_empty() {
        let text = format!(
            "{} was there and never ran or waited: record for longer, or trace another",
            request.task
        );
        say("runslice", &text);
    }
    if tracer.left_out() > 0 {
        say("runslice", &left_out(tracer.left_out()));
    }
    if request.length.is_some() && on_kernel::is_interrupted() {
        return Ok(Status::Interrupted);
    }
    let Some(exit) = exit.filter(|exit| exit.kind.is_error()) else {
        return Ok(Status::Done);
    };
    let policy = tracer.header().map_or("", |header| &header.policy);
    if let Some(line) = ejection(policy, &exit) {
        say("runslice", &line);
    }
    Ok(Status::Ejected)
}

/// Refuses what does not fit together, before the work. Returns the format of the results.
fn check(request: &Trace) -> anyhow::Result<Format> {
    let format = request.to.format()?;
    if request.all_cpus && request.call != TraceCall::Queue {
        let message = Advised::new(
            "--all-cpus chooses the tasks of a queue",
            "only `trace queue` tells of queues",
        );
        return Err(UsageError::new(message).into());
    }
    let is_simulated = request.sim.is_some() || !request.schedulers.commands.is_empty();
    if !is_simulated && request.describes_a_run() {
        let message = "options of a machine, a policy and a workload are for a simulated run: give \
                       --sim or --scheduler";
        return Err(UsageError::new(message).into());
    }
    if request.decisions
        && (format.export().is_some() || !is_simulated)
        && (format.export().is_some() || request.from.is_none())
    {
        let message = "--decisions adds a table to a simulated run or its file: give --sim or \
                       --from, and no --format of one table";
        return Err(UsageError::new(message).into());
    }
    if request.from.is_some() && is_simulated {
        let message = "--from reads the events of a run that is over: leave out --scheduler";
        return Err(UsageError::new(message).into());
    }
    let (from, to) = (request.from.as_deref(), request.to.output.as_deref());
    let [printed, metrics] = request.schedulers.files();
    let policy = request
        .sim
        .as_deref()
        .and_then(|it| policy::file_of(&COMPUTER, it));
    let workload = request.workload.as_deref().and_then(workload_arg::file_of);
    output::spare(
        &[
            ("--from", from),
            ("--sim", policy),
            ("--workload", workload),
            ("--profile", request.machine.profile_file()),
            ("--hardware", request.machine.hardware_file()),
        ],
        &[("--output", to), printed, metrics],
    )?;
    Ok(format)
}

/// Sends the events of the run, or of the file, to the tracer and to the one of decisions.
fn fill(
    request: &Trace,
    tracer: &mut Tracer,
    decider: Option<&mut Decider>,
) -> anyhow::Result<Option<Exit>> {
    let found = match request.from {
        Some(_) => None,
        None => request.policy()?,
    };
    if request.from.is_none() && found.is_none() {
        on_kernel::trace(RUNNING_SYSTEM, request.length, tracer)?;
        return Ok(None);
    }
    let mut sinks: Vec<&mut dyn Sink> = vec![tracer];
    sinks.extend(decider.map(|it| it as &mut dyn Sink));
    let mut to = Tee::new(sinks);
    if let Some(path) = &request.from {
        let file = files::open(path).map_err(model::CannotRead::at(path.display()))?;
        traces::replay(BufReader::new(file), &mut to)
            .with_context(|| path.display().to_string())?;
        return Ok(None);
    }
    let spec = request.spec(found.context("a policy is simulated")?)?;
    let summary = Runner::new(&spec, &COMPUTER).with_sink(&mut to).start()?;
    Ok(Some(summary.exit))
}

fn nobody(request: &Trace, tracer: &Tracer) -> UsageError {
    let names = tracer.names();
    let names = names.iter().map(String::as_str);
    match request.selection().which {
        TracedTasks::Pid(pid) => UsageError::new(Advised::new(
            format!("no task of the run had the pid {pid}"),
            suggest::hint("", names),
        )),
        TracedTasks::Name(name) => ask::explain::nobody(&name, names),
    }
}

fn left_out(count: u64) -> String {
    format!(
        "{count} waits and steps were too many to keep and are not shown; trace one task instead \
         of a group, or a shorter time"
    )
}

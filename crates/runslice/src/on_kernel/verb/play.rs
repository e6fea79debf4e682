//! `runslice play WORKLOAD`.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use ask::outcome::mark_growing;
use clap::Args;
use live::pins::Pins;
use live::record::{self, Depth, Mended};
use live::{Attached, Dump, Loaded, process};
use load::play::{self, AsItIs, Detached, OfKernel, PlayOptions, PlayScheduler};
use model::{MachineSpec, Nanos, PolicySpec, Sink, Summary};
use stats::compare::machines;
use stats::{Metrics, Report, Tails};
use traces::{JsonLines, Perfetto, Tee};
use workload::{RunSpec, Workload};

use crate::computer::COMPUTER;
use crate::exit::{Status, UnsupportedError, UsageError};
use crate::look::LookOptions;
use crate::on_kernel::attach::{self, AttachArgs, Attaching, cause};
use crate::on_kernel::session::{Session, SessionPaths, SessionRecord};
use crate::on_kernel::{dumps, running};
use crate::output::To;
use crate::report;
use crate::report::{Outcome, Results, Shape, TableName, World};
use crate::{interrupt, output, policy, workload_arg};
use model::span;

mod against;
mod measured;
mod overhead;

/// How tables call the kernel's own scheduler.
const OWN: &str = "kernel";

/// Arguments of `runslice play`.
#[derive(Debug, Args)]
pub struct Play {
    /// Workload to run: a built-in name or a TOML file, as for `sim`.
    #[arg(value_name = "WORKLOAD")]
    workload: String,

    /// Policy to attach during the run: a built-in name or a BPF object, with knobs after a colon.
    /// Default: the current scheduler stays.
    #[arg(long, value_name = "POLICY")]
    policy: Option<String>,

    /// Longest duration, such as 10s. Default: until the workload ends.
    #[arg(long = "for", value_name = "TIME", value_parser = span::parse)]
    duration: Option<Nanos>,

    /// Seed of every random choice. Default: the seed of the workload.
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,

    /// Set a parameter of the workload, one that its file lists under `scale`. May be repeated.
    #[arg(long, value_name = "NAME=VALUE", value_parser = workload_arg::parse_scale)]
    scale: Vec<(String, i64)>,

    /// Record every event and write it to this file as JSON lines. Without this and --trace, the
    /// kernel keeps only histograms, which costs less CPU time.
    #[arg(long, value_name = "FILE")]
    events: Option<PathBuf>,

    /// Record every event and write a trace for Perfetto (ui.perfetto.dev) to this file.
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,

    /// Also simulate the workload, with the same policy and number of CPUs, and compare the
    /// results.
    #[arg(long, requires = "policy", conflicts_with = "overhead")]
    against_sim: bool,

    /// Measure the cost of recording, as a part of the CPU time. Runs the workload three times:
    /// with counters, with histograms and with every event.
    #[arg(long, conflicts_with_all = ["events", "trace"])]
    overhead: bool,

    #[command(flatten)]
    to: To,

    /// Table to write as CSV or Parquet.
    #[arg(long, value_name = "TABLE",
        default_value = "groups", value_parser = report::table_name())]
    table: TableName,

    #[command(flatten)]
    how: AttachArgs,

    #[command(flatten)]
    look: LookOptions,
}

/// Plays the workload and writes what its tasks experienced.
///
/// # Errors
/// When the workload cannot be played, the machine is unsuitable, or a file cannot be written.
pub fn run(request: &Play) -> anyhow::Result<Status> {
    let format = request.to.format()?;
    if request.table != TableName::Groups && format.export().is_none() {
        return Err(report::table_of_csv().into());
    }
    let policy = request
        .policy
        .as_deref()
        .and_then(|it| policy::file_of(&COMPUTER, it));
    let workload = workload_arg::file_of(&request.workload);
    output::spare(
        &[("--policy", policy), ("the workload", workload)],
        &[
            ("--events", request.events.as_deref()),
            ("--trace", request.trace.as_deref()),
            ("--output", request.to.output.as_deref()),
        ],
    )?;
    let load = workload_arg::find(&COMPUTER, &request.workload, &request.scale)?;
    let cpus = record::cpus();
    let refusals = play::refusals(&load, cpus);
    if !refusals.is_empty() {
        let list = refusals.join("\n");
        return Err(UsageError::new(format!("this workload cannot be played:\n{list}")).into());
    }
    let policy = request
        .policy
        .as_deref()
        .map(|it| policy::find(&COMPUTER, it))
        .transpose()?;
    check_machine(request, policy.as_ref())?;
    play::notes(&load).iter().for_each(|note| say(note));
    process::catch_signals();
    let spec = request.spec(load, policy, cpus);
    if request.overhead {
        return overhead::run(request, &spec);
    }
    let depth = if request.events.is_some() || request.trace.is_some() {
        Depth::Events
    } else {
        Depth::Histograms
    };
    let (mut report, mut waits, summary, take) = request.report(&spec, depth)?;
    if depth == Depth::Histograms {
        measured::fill(&mut report, &spec.workload, &take);
        waits = measured::waits(&spec.workload, &take);
    }
    warn(&take);
    mark_growing(&spec.workload, &summary.growing, (&mut report, &mut []));
    let outcome = Outcome {
        policy: spec.policy.name.clone(),
        set: spec.policy.set.clone(),
        compared: Some(machines::MachineRun {
            before_ns: take.before.get(),
            ..machines::MachineRun::new(&report, &waits)
        }),
        report,
        families: Vec::new(),
        summary,
    };
    request.publish(&spec, outcome, &take)
}

/// What a play needs besides a workload.
fn check_machine(request: &Play, spec: Option<&PolicySpec>) -> anyhow::Result<()> {
    if !process::is_root() {
        let way = "playing creates a namespace of processes and loads tracing programs, which \
                   takes root: try sudo, or `runslice vm -- runslice play ...`";
        return Err(UnsupportedError::new(way).into());
    }
    let Some(spec) = spec else { return Ok(()) };
    let attaching = request.attaching();
    attaching.clean(&SessionPaths::below(&request.how.root))?;
    attaching.preflight(spec)?;
    Ok(())
}

/// A policy that is attached for a play, and what others are told of it. Dropped in this order.
struct Held<'a> {
    pins: Option<Pins>,
    attached: Option<Attached>,
    /// Until it is attached.
    loaded: Option<Loaded>,
    dump: Option<Dump>,
    session: Session,
    request: &'a Play,
    spec: &'a PolicySpec,
}

impl PlayScheduler for Held<'_> {
    fn attach(&mut self) -> Result<(), load::Error> {
        let Some(loaded) = self.loaded.take() else {
            return Ok(());
        };
        let attaching = self.request.attaching();
        self.dump = dumps::listen(&attaching);
        let attached = self.attached.insert(loaded.attach()?);
        let mut record = SessionRecord {
            set: self.spec.set.clone(),
            ..SessionRecord::of_this_process(&self.spec.name)
        };
        self.pins = attaching.share(attached, &self.session, &mut record, self.spec);
        Ok(())
    }

    fn is_alive(&self) -> bool {
        self.attached.as_ref().is_some_and(Attached::is_alive)
    }

    fn detach(&mut self) -> Result<Detached, load::Error> {
        let ejected = !self.is_alive();
        let Some(attached) = self.attached.take() else {
            return Ok(Detached::default());
        };
        let mut counters = attached.counters()?;
        counters.extend(attached.events());
        self.pins = None;
        let ending = attached.detach()?;
        let attaching = self.request.attaching();
        if let (true, Some(dump)) = (ejected, &self.dump) {
            dumps::keep(&attaching, dump, &self.request.how.dumps, &self.spec.name);
        }
        dumps::forget(&attaching, self.dump.take());
        // Whoever simulates the same behind it reserves more than there may be.
        if let Err(error) = process::unlock_memory() {
            attaching.say(&format!("its memory stays locked: {error}"));
        }
        Ok(Detached { ending, counters })
    }
}

impl Play {
    fn attaching(&self) -> Attaching<'_> {
        self.how.attaching("play", false)
    }

    /// What is to be played; under the scheduler that is there, it has its name only.
    fn spec(&self, load: Workload, policy: Option<PolicySpec>, cpus: u16) -> RunSpec {
        let as_it_is = || {
            PolicySpec::of_object(
                scheduler_name(&SessionPaths::below(&self.how.root)),
                Vec::new().into(),
            )
        };
        RunSpec {
            policy: policy.unwrap_or_else(as_it_is),
            machine: MachineSpec {
                cpus,
                kernel: running::kernel(),
                ..MachineSpec::default()
            },
            seed: self.seed.unwrap_or(load.seed),
            tie_seed: None,
            attach_after: Nanos::ZERO,
            duration: self.duration,
            workload: Arc::new(load),
        }
    }

    /// Loads a policy, which is most of the work; the play attaches it.
    fn load<'a>(&'a self, spec: &'a PolicySpec) -> anyhow::Result<Held<'a>> {
        let attaching = self.attaching();
        // What the player forks does not inherit it.
        attaching.stay_in_memory();
        let session = Session::begin(&SessionPaths::below(&self.how.root))?;
        let policy = attach::open(spec, &attaching.knobs(spec)?)?;
        Ok(Held {
            pins: None,
            attached: None,
            loaded: Some(policy.load()?),
            dump: None,
            session,
            request: self,
            spec,
        })
    }

    /// Plays once. Everything that was changed is put back, however it ends.
    fn play(
        &self,
        spec: &RunSpec,
        depth: Depth,
        sink: &mut dyn Sink,
    ) -> anyhow::Result<(Summary, OfKernel)> {
        let mut held = match self.policy {
            Some(_) => Some(self.load(&spec.policy)?),
            None => None,
        };
        let mut as_it_is = AsItIs;
        let how = PlayOptions {
            depth,
            measure_cost: self.overhead,
            scheduler: match &mut held {
                Some(held) => held,
                None => &mut as_it_is,
            },
            stop: &mut || process::signal().is_some(),
        };
        Ok(load::play(spec, how, sink)?)
    }

    /// Plays it for statistics and files.
    fn report(
        &self,
        spec: &RunSpec,
        depth: Depth,
    ) -> anyhow::Result<(Report, Tails, Summary, OfKernel)> {
        let create = |path: &Option<PathBuf>| -> anyhow::Result<_> {
            let Some(path) = path else { return Ok(None) };
            Ok(Some((output::create(path)?, path.clone())))
        };
        let mut metrics = Metrics::of_every_turn();
        let mut events = create(&self.events)?.map(|(to, path)| (JsonLines::new(to), path));
        let mut trace = create(&self.trace)?.map(|(to, path)| (Perfetto::new(to), path));
        let mut sinks: Vec<&mut dyn Sink> = vec![&mut metrics];
        sinks.extend(events.as_mut().map(|(sink, _)| sink as &mut dyn Sink));
        sinks.extend(trace.as_mut().map(|(sink, _)| sink as &mut dyn Sink));
        let (summary, take) = self.play(spec, depth, &mut Tee::new(sinks))?;
        let written = |path: &Path| format!("cannot write {}", path.display());
        if let Some((sink, path)) = events {
            sink.close().with_context(|| written(&path))?;
        }
        if let Some((sink, path)) = trace {
            sink.close().with_context(|| written(&path))?;
        }
        Ok((metrics.report(), metrics.waits(), summary, take))
    }

    /// Writes tables.
    fn publish(&self, spec: &RunSpec, outcome: Outcome, take: &OfKernel) -> anyhow::Result<Status> {
        let shape = Shape {
            format: self.to.format()?,
            table: self.table,
            look: self.look,
        };
        let files = [self.events.as_deref(), self.trace.as_deref()];
        let is_taken = files.into_iter().flatten().any(output::is_standard);
        let mut to: Box<dyn std::io::Write> = if is_taken && self.to.output.is_none() {
            say("the results are not printed: -o writes them to a file");
            Box::new(std::io::sink())
        } else {
            output::open_shape(shape, self.to.output.as_deref())?
        };
        if self.against_sim {
            let mut same = RunSpec {
                machine: take.machine.clone(),
                ..spec.clone()
            };
            if let Some(argument) = &self.policy {
                let argument = policy::as_on_kernel(&COMPUTER, argument, same.machine.kernel)?;
                same.policy = policy::find(&COMPUTER, &argument)?;
            }
            let simulated = against::run(&same, take.before)?;
            let played = outcome.compared.as_ref().context("a play is compared")?;
            against::write(played, &simulated, shape.format, &mut to)?;
        } else {
            let results = Results {
                world: World::Played,
                workload: spec.workload.name.clone(),
                is_rerun: spec.workload.is_recorded(),
                machine: take.machine.clone(),
                seed: spec.seed,
                outcomes: vec![outcome],
                spread: Vec::new(),
            };
            report::write(&results, shape, &mut to)?;
        }
        to.flush()?;
        Ok(status(&spec.policy.name, take))
    }
}

/// How tables call the scheduler that is there: by the attached policy's name, or `kernel`.
fn scheduler_name(place: &SessionPaths) -> String {
    place.scheduler().unwrap_or_else(|| OWN.to_owned())
}

/// Says what makes the numbers less than they seem.
fn warn(take: &OfKernel) {
    let totals = &take.totals;
    if totals.lost > 0 {
        say(&format!(
            "{} events were lost: the numbers have holes",
            totals.lost
        ));
    }
    if take.extras.is_some_and(|extras| !extras.interrupts) {
        say("this kernel does not say what is an interrupt: some wakers are tasks that were there");
    }
    if take.extras.is_some_and(|extras| !extras.changes) {
        say(
            "this kernel does not let changes of nice values and affinities be recorded, nor \
             which wakers are about to sleep",
        );
    }
    if take.lost > 0 {
        say(&format!(
            "{} spans, deadlines or counts were lost",
            take.lost
        ));
    }
    if totals.unknown > 0 {
        say(&format!("{} tasks could not be measured", totals.unknown));
    }
    let mended = take.mended;
    if mended != Mended::default() {
        say(&format!(
            "{} switches, {} wakeups and {} migrations were not recorded and had to be inferred",
            mended.switches, mended.wakeups, mended.migrations
        ));
    }
}

fn status(name: &str, take: &OfKernel) -> Status {
    if take.ejected {
        say(&format!(
            "{name} was ejected: {}",
            cause(take.ending.as_ref())
        ));
        return Status::Ejected;
    }
    match process::signal() {
        Some(_) => {
            interrupt::keeps_results();
            Status::Interrupted
        }
        None => Status::Done,
    }
}

fn say(text: &str) {
    crate::say::say("play", text);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scheduler_that_is_there_has_the_attached_policys_name() {
        let root = folder::OwnFolder::new().unwrap();
        let place = SessionPaths::below(root.path());
        assert_eq!(scheduler_name(&place), "kernel");
        let ops = root.join("sys/kernel/sched_ext/root");
        std::fs::create_dir_all(&ops).unwrap();
        std::fs::write(ops.join("ops"), "mlfq\n").unwrap();
        assert_eq!(scheduler_name(&place), "mlfq");
    }
}

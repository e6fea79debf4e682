//! `runslice play WORKLOAD`.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use live::pins::Pins;
use live::play::{self, Played, Player};
use live::record::{
    self, Cost, Depth, Mended, Others, ProgramCost, Recorder, Recording, Records, Story,
};
use live::{Attached, Dump, Ending, process};
use model::{
    Exit, ExitKind, Header, MachineSpec, Nanos, PolicySpec, SimTime, Sink, Summary, TaskGroup,
};
use stats::{JsonLines, Metrics, Perfetto, Report, Tee};
use workload::Workload;

use crate::attach::{self, AttachArgs, Attaching, cause};
use crate::cli::{Status, UnsupportedError, UsageError};
use crate::report::{Format, Outcome, Results, TableName, World};
use crate::session::{Place, Record, Session};
use crate::verb::sim;
use crate::{dumps, kernel, output, policy, span, workload_arg};

mod against;
mod measured;
mod overhead;

/// How tables call the kernel's own scheduler.
const OWN: &str = "kernel";

/// What `runslice play` is asked.
#[derive(Debug, Args)]
pub struct Play {
    /// Load to play: a built-in name or a TOML file, the same that `sim` takes.
    #[arg(value_name = "WORKLOAD")]
    workload: String,

    /// Policy under which it is played, attached for that time: a built-in name or a BPF object,
    /// with knobs behind a colon. Default: the scheduler that is there.
    #[arg(long, value_name = "POLICY")]
    policy: Option<String>,

    /// Ends it after so much time at the latest. Default: when the workload ends.
    #[arg(long = "for", value_name = "SPAN", value_parser = span::parse)]
    duration: Option<Nanos>,

    /// Seed of every random choice. Default: the workload's.
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,

    /// Sets a parameter of the workload, one of `scale` in its file. May be repeated.
    #[arg(long, value_name = "NAME=VALUE", value_parser = sim::parse_scale)]
    scale: Vec<(String, i64)>,

    /// Records every event and writes them to this file as JSON lines. Otherwise the kernel only
    /// keeps histograms, which disturbs less.
    #[arg(long, value_name = "FILE")]
    events: Option<PathBuf>,

    /// Records every event and writes a trace for Perfetto (ui.perfetto.dev) to this file.
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,

    /// Also simulates the workload under the same policy on as many CPUs, and compares.
    #[arg(long, requires = "policy", conflicts_with = "overhead")]
    against_sim: bool,

    /// Plays it once with counters, once with histograms and once with every event, and says what
    /// part of the CPU time each kind of recording took.
    #[arg(long, conflicts_with_all = ["events", "trace"])]
    overhead: bool,

    /// How results are written.
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,

    /// Which table CSV holds; it can hold one.
    #[arg(long, value_enum, value_name = "TABLE", default_value_t = TableName::Groups)]
    table: TableName,

    #[command(flatten)]
    how: AttachArgs,

    /// Writes the results to this file instead of standard output.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// A play that is over.
struct Take {
    played: Played,
    recording: Recording,
    costs: Vec<ProgramCost>,
    /// CPU time that all tasks of the machine used meanwhile.
    busy: Nanos,
    hz: Option<u32>,
    ending: Option<Ending>,
    counters: Vec<(String, u64)>,
    ejected: bool,
    interrupted: bool,
}

/// Plays the workload and writes what its tasks experienced.
///
/// # Errors
/// When the workload cannot be played, the machine is unsuitable, or a file cannot be written.
pub fn run(request: &Play) -> anyhow::Result<Status> {
    if request.table != TableName::Groups && request.format.sheet().is_none() {
        return Err(UsageError(sim::TABLE_OF_CSV.to_owned()).into());
    }
    output::check(request.format.sheet(), request.output.as_deref())?;
    let load = workload_arg::find(&request.workload, &request.scale)?;
    let cpus = record::cpus();
    let refusals = play::refusals(&load, cpus);
    if !refusals.is_empty() {
        let list = refusals.join("\n");
        return Err(UsageError(format!("this workload cannot be played:\n{list}")).into());
    }
    let spec = request.policy.as_deref().map(policy::find).transpose()?;
    check_machine(request, spec.as_ref())?;
    play::notes(&load).iter().for_each(|note| say(note));
    process::catch_signals();
    if request.overhead {
        return overhead::run(request, &load, spec.as_ref());
    }
    let depth = match request.events.is_some() || request.trace.is_some() {
        true => Depth::Events,
        false => Depth::Histograms,
    };
    let take = request.take(&load, spec.as_ref(), depth)?;
    if let Some(failure) = &take.played.failure {
        anyhow::bail!("{failure}");
    }
    request.publish(&load, spec.as_ref(), depth, &take)
}

/// What a play needs besides a workload.
fn check_machine(request: &Play, spec: Option<&PolicySpec>) -> anyhow::Result<()> {
    if !process::is_root() {
        let way = "playing creates a namespace of processes and loads tracing programs, which \
                   takes root: try sudo, or `runslice vm -- runslice play ...`";
        return Err(UnsupportedError(way.to_owned()).into());
    }
    let Some(spec) = spec else { return Ok(()) };
    let attaching = request.attaching();
    attaching.clean(&Place::below(&request.how.root))?;
    attaching.preflight(spec)?;
    Ok(())
}

/// A policy that is attached for a play, and what others are told of it. Dropped in this order.
struct Held {
    pins: Option<Pins>,
    attached: Attached,
    dump: Option<Dump>,
    _session: Session,
}

impl Play {
    fn attaching(&self) -> Attaching<'_> {
        self.how.attaching("play", false)
    }

    fn attach(&self, spec: &PolicySpec) -> anyhow::Result<Held> {
        let attaching = self.attaching();
        // What the player forks does not inherit it.
        attaching.stay_in_memory();
        let session = Session::begin(&Place::below(&self.how.root))?;
        let policy = attach::open(spec, &attaching.knobs(spec)?)?;
        let loaded = policy.load()?;
        let dump = dumps::listen(&attaching);
        let mut attached = loaded.attach()?;
        let mut record = Record {
            set: spec.set.clone(),
            ..Record::of_this_process(&spec.name)
        };
        let pins = attaching.share(&mut attached, &session, &mut record, spec);
        Ok(Held {
            pins,
            attached,
            dump,
            _session: session,
        })
    }

    fn seed(&self, load: &Workload) -> u64 {
        self.seed.unwrap_or(load.seed)
    }

    fn limit(&self, load: &Workload) -> Option<Nanos> {
        [self.duration, load.stop.after].into_iter().flatten().min()
    }

    /// Plays once. Everything that was changed is put back, however it ends.
    fn take(
        &self,
        load: &Workload,
        spec: Option<&PolicySpec>,
        depth: Depth,
    ) -> anyhow::Result<Take> {
        let cost = self.overhead.then(Cost::measure).transpose()?;
        // Tasks are forked before anything makes a second thread.
        let held = spec.map(|spec| self.attach(spec)).transpose()?;
        let tell_counts = depth == Depth::Events;
        let mut player = Player::prepare(load, self.seed(load), record::cpus(), tell_counts)?;
        // The tasks exist; from here on nobody may keep the player from ending them in time.
        record::be_urgent();
        let mut recorder = Recorder::start(depth, held.is_some())?;
        let before = (record::schedstat(), record::clock());
        player.start();
        let is_alive = || held.as_ref().is_none_or(|held| held.attached.is_alive());
        player.wait(self.limit(load), || {
            process::signal().is_some() || !is_alive()
        });
        // Ending a recording takes a while, in which tasks would go on.
        recorder.pause()?;
        let after = (record::schedstat(), record::clock());
        let costs = cost.as_ref().map(|_| recorder.cost()).unwrap_or_default();
        let ejected = !is_alive();
        let played = player.stop();
        let recording = recorder.stop()?;
        let (mut ending, mut counters) = (None, Vec::new());
        if let Some(held) = held {
            counters = held.attached.counters()?;
            counters.extend(held.attached.events());
            drop(held.pins);
            ending = held.attached.detach()?;
            if let (true, Some(dump), Some(spec)) = (ejected, &held.dump, spec) {
                dumps::keep(&self.attaching(), dump, &self.how.dumps, &spec.name);
            }
            dumps::forget(&self.attaching(), held.dump);
        }
        let passed = Duration::from_nanos(after.1.saturating_sub(before.1));
        Ok(Take {
            played,
            recording,
            costs,
            busy: overhead::busy_between(&before.0, &after.0),
            hz: record::hz_between(&before.0, &after.0, passed),
            ending,
            counters,
            ejected,
            interrupted: process::signal().is_some(),
        })
    }

    /// Writes tables and files, and says what has to be said about them.
    fn publish(
        &self,
        load: &Workload,
        spec: Option<&PolicySpec>,
        depth: Depth,
        take: &Take,
    ) -> anyhow::Result<Status> {
        let name = spec.map_or(OWN, |spec| &spec.name);
        let machine = machine(take);
        let groups = load.header(name, &machine, self.seed(load), None).groups;
        let story = story(take, &groups);
        let mut header = load.header(name, &machine, self.seed(load), self.limit(load));
        header.groups.clone_from(&story.groups);
        let mut report = self.tell(&header, &story)?;
        if depth == Depth::Histograms {
            measured::fill(&mut report, load, take);
        }
        warn(take, story.mended);
        let outcome = Outcome {
            policy: name.to_owned(),
            set: spec.map_or_else(Vec::new, |spec| spec.set.clone()),
            report,
            summary: summary(take, story.end),
        };
        let mut to = output::open(self.output.as_deref())?;
        if let (true, Some(spec)) = (self.against_sim, spec) {
            let simulated = against::simulate(load, spec, &machine, self)?;
            against::write(&outcome.report, &simulated, self.format, &mut to)?;
        } else {
            let results = Results {
                world: World::Played,
                workload: load.name.clone(),
                machine,
                seed: self.seed(load),
                outcomes: vec![outcome],
            };
            results.write(self.format, self.table, &mut to)?;
        }
        to.flush()?;
        Ok(status(name, take))
    }

    /// Sends the story to statistics and files.
    fn tell(&self, header: &Header, story: &Story) -> anyhow::Result<Report> {
        let create = |path: &Option<PathBuf>| -> anyhow::Result<_> {
            let Some(path) = path else { return Ok(None) };
            Ok(Some((output::create(path)?, path.clone())))
        };
        let mut metrics = Metrics::new();
        let mut events = create(&self.events)?.map(|(to, path)| (JsonLines::new(to), path));
        let mut trace = create(&self.trace)?.map(|(to, path)| (Perfetto::new(to), path));
        let mut sinks: Vec<&mut dyn Sink> = vec![&mut metrics];
        sinks.extend(events.as_mut().map(|(sink, _)| sink as &mut dyn Sink));
        sinks.extend(trace.as_mut().map(|(sink, _)| sink as &mut dyn Sink));
        let mut tee = Tee::new(sinks);
        tee.begin(header);
        tee.events(&story.events);
        tee.finish(story.end);
        let written = |path: &Path| format!("cannot write {}", path.display());
        if let Some((sink, path)) = events {
            sink.close().with_context(|| written(&path))?;
        }
        if let Some((sink, path)) = trace {
            sink.close().with_context(|| written(&path))?;
        }
        Ok(metrics.report())
    }
}

/// The machine as the header of the events tells it.
fn machine(take: &Take) -> MachineSpec {
    let default = MachineSpec::default();
    MachineSpec {
        cpus: record::cpus(),
        hz: take.hz.unwrap_or(default.hz),
        kernel: kernel::running(),
        ..default
    }
}

/// What was recorded and what tasks said, as events from the begin of the play to its end.
fn story(take: &Take, groups: &[TaskGroup]) -> Story {
    let mut records = Records {
        began: take.played.began,
        ended: take.played.ended,
        cpus: record::cpus(),
        ..take.recording.records.clone()
    };
    records.raws.extend(&take.played.said);
    record::convert(&records, groups, Others::Together)
}

fn summary(take: &Take, end: SimTime) -> Summary {
    let kinds = [
        ExitKind::Unreg,
        ExitKind::UnregBpf,
        ExitKind::UnregKern,
        ExitKind::Sysrq,
        ExitKind::Error,
        ExitKind::ErrorBpf,
        ExitKind::ErrorStall,
    ];
    let ending = take.ending.clone().unwrap_or_default();
    let kind = kinds
        .into_iter()
        .find(|kind| i64::from(*kind as u32) == ending.kind);
    Summary {
        end,
        exit: Exit {
            kind: kind.unwrap_or(ExitKind::Unreg),
            code: ending.code,
            message: ending.message,
            time: end,
            fault: None,
        },
        cpus: Vec::new(),
        tasks: Vec::new(),
        counters: Vec::new(),
        spent: Vec::new(),
        policy_counters: take.counters.clone(),
        printed: String::new(),
        instructions: 0,
        callbacks: 0,
        starved: Vec::new(),
        notes: Vec::new(),
    }
}

/// Says what makes the numbers less than they seem.
fn warn(take: &Take, mended: Mended) {
    let totals = &take.recording.totals;
    if totals.lost > 0 {
        say(&format!(
            "{} events were lost: the numbers have holes",
            totals.lost
        ));
    }
    let whole = take.recording.records.raws.is_empty();
    if !whole && !take.recording.extras.interrupts {
        say("this kernel does not say what is an interrupt: some wakers are tasks that were there");
    }
    if !whole && !take.recording.extras.changes {
        say("this kernel does not let changes of nice values and affinities be recorded");
    }
    if take.played.lost > 0 {
        say(&format!(
            "{} spans, deadlines or counts were lost",
            take.played.lost
        ));
    }
    if totals.unknown > 0 {
        say(&format!("{} tasks could not be measured", totals.unknown));
    }
    if mended != Mended::default() {
        say(&format!(
            "{} switches, {} wakeups and {} migrations were not recorded and had to be inferred",
            mended.switches, mended.wakeups, mended.migrations
        ));
    }
}

fn status(name: &str, take: &Take) -> Status {
    if take.ejected {
        say(&format!(
            "{name} was ejected: {}",
            cause(take.ending.as_ref())
        ));
        return Status::Ejected;
    }
    match take.interrupted {
        true => Status::Interrupted,
        false => Status::Done,
    }
}

fn say(text: &str) {
    // Nobody can be told when standard error is closed too.
    let _ = writeln!(io::stderr(), "play: {text}");
}

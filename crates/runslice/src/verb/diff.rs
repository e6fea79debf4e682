//! `runslice diff OLD NEW -w WORKLOAD`.

mod text;

use std::io::Write as _;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use clap::Args;
use explain::why::{Act, Follower, Scene};
use model::{Event, EventMask, Header, Nanos, SimTime, Sink, Text};
use stats::{Metrics, Report};
use traces::Tee;
use workload::RunSpec;

use crate::computer::COMPUTER;
use crate::exit::Status;
use crate::machine_options::MachineOptions;
use crate::prepare::Prepare;
use crate::runner::Runner;
use crate::runs::{Asked, StartJitter};
use crate::{output, policy, report, workload_arg};

/// Arguments of `runslice diff`.
#[derive(Debug, Args)]
pub struct Diff {
    /// The policy as it was: a built-in name or a BPF object, with knobs after a colon, or a
    /// bundle.
    old: String,

    /// The policy as it is.
    new: String,

    /// Workload to run: a built-in name or a TOML file.
    #[arg(short, long)]
    workload: Option<String>,

    #[command(flatten)]
    machine: MachineOptions,

    /// Options that prepare both policies.
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

    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Decisions behind the first difference that are shown of each run.
const SHOWN: usize = 5;
/// Batches of events that a run may be ahead of the comparison.
const AHEAD: usize = 16;

/// A decision in words, and who made it.
type Told = (String, Act);

/// Outcome for one kernel version.
#[derive(Debug)]
pub struct Side {
    /// The policy's name.
    pub policy: String,
    /// The decision that differs and those behind it; nothing if the run was over.
    pub told: Vec<Told>,
    /// The state before it.
    pub scene: Scene,
    /// The run's figures.
    pub report: Report,
    /// How it ended, if it was ejected.
    pub ejection: Option<String>,
}

/// Compares two versions.
#[derive(Debug)]
pub struct Difference {
    /// Decisions that were alike.
    pub alike: u64,
    /// Whether one differs.
    pub differs: bool,
    /// Old and new.
    pub sides: [Side; 2],
}

/// Runs both and writes where they part.
///
/// # Errors
/// When a policy or the workload is bad.
pub fn run(request: &Diff) -> anyhow::Result<Status> {
    let found = [&request.old, &request.new].map(|name| {
        let mut found = policy::open(name)?;
        request.prepare.apply(&mut found.policy);
        anyhow::Ok(found)
    });
    let [old, new] = found;
    let asked = Asked {
        workload: request.workload.as_deref(),
        scale: &request.scale,
        machine: &request.machine.asked(),
        seed: request.seed,
        duration: request.duration,
        start_jitter: StartJitter::OfLoad,
    };
    let specs = asked.specs(&COMPUTER, vec![old?, new?], None)?;
    let [old, mut new] = specs.try_into().expect("two policies are two runs");
    // A bundle of one version decides about the machine of both: they would differ otherwise.
    new.machine = old.machine.clone();
    let difference = compare([&old, &new])?;
    let mut to = output::open(None)?;
    if request.json {
        writeln!(to, "{:#}", text::json(&difference))?;
    } else {
        text::write(&difference, &mut to)?;
    }
    to.flush()?;
    Ok(Status::Done)
}

/// What a run sends to the comparison.
enum Batch {
    Begin(Box<Header>),
    Events(Vec<Event>),
    Text(Text),
}

/// Sends on what a run tells.
struct Sender(SyncSender<Batch>);

impl Sender {
    fn send(&self, batch: Batch) {
        // Nobody listens any more when the comparison has failed; the run goes on alone.
        let _ = self.0.send(batch);
    }
}

impl Sink for Sender {
    fn wants(&self) -> EventMask {
        Follower::wants()
    }

    fn begin(&mut self, header: &Header) {
        self.send(Batch::Begin(Box::new(header.clone())));
    }

    fn events(&mut self, events: &[Event]) {
        self.send(Batch::Events(events.to_vec()));
    }

    fn text(&mut self, text: &Text) {
        self.send(Batch::Text(text.clone()));
    }

    fn finish(&mut self, _: SimTime) {}
}

/// The events of a run, one by one.
struct Reader {
    from: Receiver<Batch>,
    follower: Follower,
    events: std::vec::IntoIter<Event>,
    /// The event that was given last, which the follower has not seen.
    last: Option<Event>,
}

impl Reader {
    fn new(from: Receiver<Batch>) -> Self {
        Self {
            from,
            follower: Follower::default(),
            events: Vec::new().into_iter(),
            last: None,
        }
    }

    /// The next decision. What stands before it has been followed.
    fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(last) = self.last.take() {
                self.follower.apply(&last);
            }
            let Some(event) = self.events.next() else {
                match self.from.recv().ok()? {
                    Batch::Begin(header) => self.follower.begin(&header),
                    Batch::Events(events) => self.events = events.into_iter(),
                    Batch::Text(text) => self.follower.text(&text),
                }
                continue;
            };
            self.last = Some(event);
            if self.follower.key(&event).is_some() {
                return Some(event);
            }
        }
    }

    fn told(&mut self, first: Option<Event>) -> Vec<Told> {
        let mut told = Vec::new();
        let mut next = first;
        while let Some(event) = next
            && told.len() < SHOWN
        {
            told.push(self.follower.describe(&event));
            next = self.next();
        }
        told
    }

    /// Lets the run come to its end.
    fn drain(&self) {
        while self.from.recv().is_ok() {}
    }
}

fn compare(specs: [&RunSpec; 2]) -> anyhow::Result<Difference> {
    let (alike, parts, ends) = thread::scope(|scope| {
        let [(old, one), (new, other)] = specs.map(|spec| {
            let (to, from) = sync_channel(AHEAD);
            let made = scope.spawn(move || make(spec, Sender(to)));
            (Reader::new(from), made)
        });
        let (alike, parts) = part([old, new]);
        let ends = [one, other].map(|made| match made.join() {
            Ok(end) => end,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        (alike, parts, ends)
    });
    let differs = parts.iter().any(|(told, _)| !told.is_empty());
    let mut sides = Vec::new();
    for ((spec, (told, scene)), end) in specs.into_iter().zip(parts).zip(ends) {
        let (report, ejection) = end?;
        sides.push(Side {
            policy: spec.policy.name.clone(),
            told,
            scene,
            report,
            ejection,
        });
    }
    Ok(Difference {
        alike,
        differs,
        sides: sides.try_into().expect("two runs"),
    })
}

/// One run, its figures and its end.
fn make(spec: &RunSpec, mut sender: Sender) -> anyhow::Result<(Report, Option<String>)> {
    let mut metrics = Metrics::new();
    let mut sinks = Tee::new(vec![&mut metrics, &mut sender]);
    let summary = Runner::new(spec, &COMPUTER).with_sink(&mut sinks).start()?;
    let ejection = report::ejection(&spec.policy.name, &summary.exit);
    Ok((metrics.report(), ejection))
}

type Part = (Vec<Told>, Scene);

/// Goes on until two decisions differ: how many were alike, and each side from there on.
fn part([mut old, mut new]: [Reader; 2]) -> (u64, [Part; 2]) {
    let mut alike = 0;
    loop {
        let (one, other) = (old.next(), new.next());
        let key = |reader: &Reader, event: &Option<Event>| {
            event.as_ref().and_then(|event| reader.follower.key(event))
        };
        if one.is_some() && key(&old, &one) == key(&new, &other) {
            alike += 1;
            continue;
        }
        let scenes = [old.follower.scene(), new.follower.scene()];
        let told = match (one, other) {
            (None, None) => [Vec::new(), Vec::new()],
            (one, other) => [old.told(one), new.told(other)],
        };
        // Each waits for the other otherwise.
        thread::scope(|scope| {
            scope.spawn(move || old.drain());
            new.drain();
        });
        let [first, second] = told;
        let [seen, seen_too] = scenes;
        return (alike, [(first, seen), (second, seen_too)]);
    }
}

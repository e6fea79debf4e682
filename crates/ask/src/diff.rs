//! Where two versions of a policy part: the first decision that differs, and what it led to.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use explain::why::{Act, Follower, Scene};
use model::{Advised, Event, EventMask, Header, SimTime, Sink, Text};
use stats::{Metrics, Report};
use traces::Tee;
use workload::RunSpec;

use crate::error::{Error, UnsupportedError};
use crate::outcome::ejection_in;
use crate::runner::Runner;
use crate::services::Services;

/// Decisions behind the first difference that are shown of each run.
const SHOWN: usize = 5;
/// Batches of events that a run may be ahead of the comparison.
const AHEAD: usize = 16;

/// A decision in words, and who made it.
pub type Told = (String, Act);

/// Runs two policies under the same load side by side, up to the first decision that differs.
#[derive(Clone, Debug)]
pub struct Diff {
    /// The old version and the new one, on the same machine under the same load.
    pub runs: [RunSpec; 2],
}

/// Two versions of a policy, compared.
#[derive(Debug)]
pub struct Difference {
    /// Decisions that were alike.
    pub alike: u64,
    /// Whether one differs.
    pub differs: bool,
    /// Old and new.
    pub sides: [Side; 2],
}

/// One of the versions.
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

impl Diff {
    /// Makes both runs at the same time, and compares them as they go on.
    ///
    /// # Errors
    /// When a machine is bad, or the caller lends no threads.
    pub fn ask(&self, services: &Services<'_>) -> Result<Difference, Error> {
        Ok(self.difference(services)?)
    }

    fn difference(&self, services: &Services<'_>) -> anyhow::Result<Difference> {
        let Some(workers) = services.workers else {
            return Err(UnsupportedError::new(Advised::new(
                "two runs side by side take threads, and there are none here",
                "use the program `runslice diff`",
            ))
            .into());
        };
        let [(to_old, old), (to_new, new)] = [(); 2].map(|()| sync_channel(AHEAD));
        let (mut parted, [mut one, mut other]) = (None, [None, None]);
        workers.beside(
            [
                Box::new(|| one = Some(made(services, &self.runs[0], to_old))),
                Box::new(|| other = Some(made(services, &self.runs[1], to_new))),
            ],
            Box::new(|| parted = Some(part([old, new].map(Reader::new)))),
        )?;
        let (alike, parts) = parted.expect("the comparison was made");
        let differs = parts.iter().any(|(told, _)| !told.is_empty());
        let mut sides = Vec::new();
        for ((spec, (told, scene)), end) in self.runs.iter().zip(parts).zip([one, other]) {
            let (report, ejection) = end.expect("both runs were made")?;
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
}

/// One run, its figures and its end.
fn made(
    services: &Services<'_>,
    spec: &RunSpec,
    to: SyncSender<Batch>,
) -> anyhow::Result<(Report, Option<String>)> {
    let (mut metrics, mut sender) = (Metrics::new(), Sender(to));
    let mut sinks = Tee::new(vec![&mut metrics, &mut sender]);
    let summary = Runner::new(spec, services).with_sink(&mut sinks).start()?;
    Ok((metrics.report(), ejection_in(&spec.policy.name, &summary)))
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

    /// Decisions from `first` on, in words.
    fn describe(&mut self, first: Option<Event>) -> Vec<Told> {
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
}

/// The decisions of a run from where it parts, and the state before.
type Parting = (Vec<Told>, Scene);

/// Goes on until two decisions differ: how many were alike, and each side from there on.
fn part([mut old, mut new]: [Reader; 2]) -> (u64, [Parting; 2]) {
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
            (one, other) => [old.describe(one), new.describe(other)],
        };
        let [first, second] = told;
        let [seen, seen_too] = scenes;
        return (alike, [(first, seen), (second, seen_too)]);
    }
}

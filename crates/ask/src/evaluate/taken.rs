//! What is taken of a run: the goals, and what the limits ask about.

use std::collections::BTreeMap;
use std::sync::Arc;

use explain::why::{Fault, Finding, Observer, Right};
use model::{Event, EventMask, Header, Nanos, PolicySpec, SimTime, Sink, Text};
use stats::{GroupReport, LastWork, Metrics, Report};
use traces::Tee;
use workload::Group;

use super::draw::{Disguised, Draw};
use super::spec::Spec;
use crate::error::Cancelled;
use crate::goal::{Goal, family};
use crate::outcome::ejection_in;
use crate::right;
use crate::runner::Runner;
use crate::services::Services;

/// What a run came to.
#[derive(Clone, Debug)]
pub struct Taken {
    /// By goal its value; `None` if the run has none, or it says no more than how long the run was.
    pub goals: Vec<Option<f64>>,
    /// How the policy was ejected, or why its run could not be made.
    pub ejection: Option<String>,
    /// What is wrong with the run, if anything is.
    pub finding: Option<Finding>,
    /// What was found first, also if it breaks no right that the policy declares.
    pub seen: Option<Finding>,
    /// The part of all CPU time that idled beside waiting tasks.
    pub idle: f64,
    /// By the groups' own names, without their numbers.
    pub groups: BTreeMap<String, GroupTaken>,
    /// What a wait of any task takes on average.
    pub usual_wait: Nanos,
    /// BPF instructions.
    pub instructions: u64,
    /// Time that was simulated.
    pub simulated: Nanos,
}

/// What a group of tasks got.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupTaken {
    /// Its part of all CPU time, in millionths.
    pub share: u64,
    /// Its longest wait for a CPU, an open one at the end included.
    pub longest: Nanos,
    /// How long its tasks wait from a wakeup to the next sleep on average; the longest time if some
    /// never sleep.
    pub turn: Option<Nanos>,
    /// How long a round of all tasks that want a CPU is for one of these, by weight.
    pub round: Nanos,
    /// Its nice value at the start.
    pub nice: i8,
    /// CPU time of each of its tasks, if none ever slept and all could run anywhere with one
    /// weight; zero otherwise.
    pub hungry: Nanos,
}

/// The baseline's run and the candidate's.
pub struct Pair {
    /// The baseline's, which many candidates are held against.
    pub base: Arc<Taken>,
    /// The candidate's.
    pub taken: Taken,
}

/// What all runs of an evaluation are asked for.
#[derive(Clone, Copy)]
pub struct Taking<'a> {
    /// What is lent.
    pub services: &'a Services<'a>,
    /// The file.
    pub spec: &'a Spec,
    /// The right by which shares are judged.
    pub right: Option<Right>,
}

/// Gives groups their own names again before anybody measures.
struct Named<'a> {
    own: &'a [String],
    inner: &'a mut dyn Sink,
}

impl Sink for Named<'_> {
    fn wants(&self) -> EventMask {
        self.inner.wants()
    }

    fn begin(&mut self, header: &Header) {
        let mut header = header.clone();
        for (group, own) in header.groups.iter_mut().zip(self.own) {
            group.name.clone_from(own);
        }
        self.inner.begin(&header);
    }

    fn events(&mut self, events: &[Event]) {
        self.inner.events(events);
    }

    fn text(&mut self, text: &Text) {
        self.inner.text(text);
    }

    fn has_enough(&self) -> bool {
        self.inner.has_enough()
    }

    fn finish(&mut self, end: SimTime) {
        self.inner.finish(end);
    }
}

impl Taking<'_> {
    /// Makes the run of `policy` in `draw`, and takes what is asked for.
    ///
    /// # Errors
    /// When the load is bad, the run cannot be made, or nobody waits for it any more.
    pub fn take(&self, draw: &Draw, policy: &PolicySpec, goals: &[Goal]) -> anyhow::Result<Taken> {
        let run = draw.run(self.services, policy)?;
        let Disguised { spec, own } = &run;
        let mut metrics = Metrics::new();
        let mut work = LastWork::default();
        let observer = Observer::new(0, None).with_measures();
        let mut observer = right::observer(spec, self.right, observer);
        let summary = {
            let mut all = Tee::new(vec![&mut metrics, &mut work, &mut observer]);
            let mut named = Named {
                own,
                inner: &mut all,
            };
            Runner::new(spec, self.services)
                .with_options(self.options())
                .with_sink(&mut named)
                .start()?
        };
        observer.set_blocked(&summary.blocked);
        let report = metrics.report();
        let mut groups = spec.workload.groups.clone();
        for (group, own) in groups.iter_mut().zip(own) {
            group.name.clone_from(own);
        }
        let value = |goal: &Goal| {
            let value = goal.value(&metrics, &report);
            let value = value.or_else(|| goal.end(&work, &groups));
            value.filter(|_| !goal.grows(&report))
        };
        let seen = observer.finding();
        Ok(Taken {
            goals: goals.iter().map(value).collect(),
            ejection: ejection_in(&policy.name, &summary),
            finding: seen.clone().filter(is_counted),
            seen,
            idle: observer.measured().map_or(0.0, |it| it.idle_share()),
            usual_wait: report.all.delay.mean.unwrap_or(Nanos::ZERO),
            groups: groups_of(&report, draw, &groups),
            instructions: summary.instructions,
            simulated: summary.end.since(SimTime::ZERO),
        })
    }

    /// As [`Taking::take`]; a run that cannot be made is what the candidate has done.
    ///
    /// # Errors
    /// When nobody waits for the run any more.
    pub fn take_of_candidate(
        &self,
        draw: &Draw,
        policy: &PolicySpec,
        goals: &[Goal],
    ) -> anyhow::Result<Taken> {
        let error = match self.take(draw, policy, goals) {
            Err(error) if !error.is::<Cancelled>() => error,
            taken => return taken,
        };
        Ok(Taken {
            goals: vec![None; goals.len()],
            ejection: Some(crate::error::words(&error)),
            finding: None,
            seen: None,
            idle: 0.0,
            groups: BTreeMap::new(),
            usual_wait: Nanos::ZERO,
            instructions: 0,
            simulated: Nanos::ZERO,
        })
    }

    /// How runs are computed.
    pub fn options(&self) -> sim::Options {
        options(self.spec)
    }
}

/// How runs are computed that `spec` asks for. Where the clock stood still within callbacks, a
/// policy could see that no kernel runs it, and be good there alone.
pub fn options(spec: &Spec) -> sim::Options {
    sim::Options {
        total_budget: Some(spec.instructions),
        moving_clock: true,
        ..sim::Options::default()
    }
}

/// What says something about the policy: not that others outranked it, or that it was the turn of
/// somebody else.
fn is_counted(finding: &Finding) -> bool {
    finding.is_fault() || finding.fault == Fault::UnfairShare
}

/// Operations after which a task's weight or place is not what it was born with.
const CHANGES: [&str; 4] = ["setnice", "setpolicy", "setaffinity", "cgroup"];

/// A task runs for so long at once if its policy does not say otherwise (`SCX_SLICE_DFL`).
const SLICE: Nanos = Nanos::from_millis(20);

/// What a nice value weighs: a quarter more each step.
fn weight(nice: i8) -> f64 {
    libm::pow(1.25, -f64::from(nice))
}

/// For how long its tasks wanted a CPU, each by its weight.
fn wanted(row: &GroupReport) -> f64 {
    (row.times.run.get() + row.times.wait.get()) as f64 * weight(row.nice)
}

/// How long its tasks wait from a wakeup to the next sleep; the longest time if they never sleep.
fn turn(row: &GroupReport) -> Nanos {
    if row.sleep.count == 0 {
        return Nanos::new(u64::MAX);
    }
    let wakeups = row.wakeup.count + row.start.count;
    Nanos::new(row.times.wait.get() / wakeups.max(1))
}

fn groups_of(report: &Report, draw: &Draw, born: &[Group]) -> BTreeMap<String, GroupTaken> {
    let text = &draw.case.workload.text;
    let stays = !CHANGES.iter().any(|it| text.contains(it));
    let is_free = |name: &str| {
        let mut named = born.iter().filter(|it| it.name == name);
        named.all(|it| it.cpus.is_none() && !it.one_each_cpu)
    };
    let mut groups: BTreeMap<String, GroupTaken> = BTreeMap::new();
    let is_decoy = |row: &&GroupReport| draw.decoys.contains(&row.name);
    let rows = || report.groups.iter().filter(|it| !is_decoy(it));
    let sum: f64 = rows().map(wanted).sum();
    let all = f64::from(report.machine.cpus) * report.machine.elapsed.get() as f64;
    for row in rows() {
        let group = groups.entry(family(&row.name).to_owned()).or_default();
        let round = SLICE.get() as f64 * sum / (weight(row.nice) * all.max(1.0));
        group.round = group.round.max(Nanos::new(round as u64));
        group.turn = group.turn.max(Some(turn(row)));
        let ended = row.delay.max.unwrap_or(Nanos::ZERO);
        let open = row.waiting_at_end_max.unwrap_or(Nanos::ZERO);
        group.share += row.share.0;
        group.nice = row.nice;
        if row.sleep.count == 0 && row.tasks > 0 && stays && is_free(&row.name) {
            group.hungry = Nanos::new(row.times.run.get() / row.tasks);
        }
        group.longest = group.longest.max(ended).max(open);
    }
    groups
}

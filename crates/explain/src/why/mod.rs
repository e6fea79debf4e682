//! Why a task waits: follows a stream with decisions, and says what it finds.
//!
//! [`Observer`] keeps for every task, queue and CPU what was decided about it last. At the end of
//! the run, and at the end of each long wait, `judge` looks at that and names the fault, who
//! suffers from it and which line of the policy made it. docs/explain.md says how.

mod caps;
mod classes;
mod culprit;
mod deed;
mod dump;
mod early;
mod fill;
mod finding;
mod follow;
mod higher;
mod judge;
mod lock;
mod log;
mod measure;
mod message;
mod queue;
mod right;
mod schedulers;
mod state;
mod stint;
#[cfg(test)]
mod tests;
mod trial;
mod turn;
mod verdict;
mod weights;

pub use dump::{DumpError, DumpShape, Dumped, Dumps, explain_dumps};
pub use early::OpenWait;
pub use finding::{
    Act, Fault, Finding, Holder, IdleCpu, Places, PolicyLine, QueueView, Standing, Victim, Wait,
};
pub use follow::{Follower, Key, Scene};
pub use measure::{Idling, Measured};
pub use right::CgroupWeights;
pub use schedulers::QueueName;
pub(crate) use schedulers::SchedulerNames;
pub use trial::{End, Look, Situation};
pub use verdict::{HeldLock, Lag, MissingRight, Right, Share, Tier, Verdict};

use std::collections::BTreeMap;

use model::{
    Blocked, Cause, Event, EventKind, EventMask, Exit, ExitKind, Header, Nanos, PrevState, SimTime,
    Sink, TaskId, Text, What,
};

use measure::Meter;
use state::State;

/// A slice above this is called long, whoever waits: ten times the default (kernel 6.18),
/// nanoseconds.
const OVERLONG: u64 = 200_000_000;
/// Waits of a second or more that have ended and are judged, in all.
const JUDGED: usize = 1024;

/// Follows a run and explains its waits.
#[derive(Debug, Default)]
pub struct Observer {
    state: State,
    places: Places,
    exit: Option<Exit>,
    /// How schedulers below the root ended, by their numbers.
    below: BTreeMap<u32, Exit>,
    /// What there was to see when the kernel ended one of these: the run goes on.
    fallen: BTreeMap<u32, Box<State>>,
    /// What is measured besides, if that is asked for.
    meter: Option<Meter>,
    /// Tasks that wait for locks at the end.
    blocked: Vec<Blocked>,
    /// What the policy declares.
    right: Option<Right>,
    /// Of waits that have ended, the longest are kept, the longest first.
    keep: usize,
    /// Of these tasks only: a task's name, or its group's.
    of: Option<String>,
    worst: Vec<Wait>,
    /// Of tasks that are about to run: their longest stay in one queue, and what was seen at its
    /// end.
    stays: BTreeMap<TaskId, (Nanos, Finding)>,
    /// Of long waits that have ended: the longest that was not the task's turn.
    starved: Option<(Nanos, Finding)>,
    /// Long waits that were judged for that.
    judged: usize,
    end: SimTime,
}

impl Observer {
    /// Follows a run and remembers its `keep` longest waits, those of the task or group `of` if
    /// that is given.
    #[must_use]
    pub fn new(keep: usize, of: Option<String>) -> Self {
        Self {
            keep,
            of,
            ..Self::default()
        }
    }

    /// The policy promises this right; without it no share is one that it breaks.
    #[must_use]
    pub const fn with_right(mut self, right: Option<Right>) -> Self {
        self.right = right;
        self
    }

    /// Measures besides what [`Observer::measured`] gives.
    #[must_use]
    pub fn with_measures(mut self) -> Self {
        self.meter = Some(Meter::default());
        self
    }

    /// At the end these tasks wait for locks, as the run's summary says.
    pub fn set_blocked(&mut self, blocked: &[Blocked]) {
        self.blocked = blocked.to_vec();
    }

    /// What was measured; `None` if that was not asked for.
    #[must_use]
    pub fn measured(&self) -> Option<Measured> {
        let meter = self.meter.as_ref()?;
        Some(meter.end(&self.state, self.end))
    }

    /// The load has these cgroups.
    #[must_use]
    pub fn with_cgroups(mut self, cgroups: CgroupWeights) -> Self {
        self.state.set_cgroups(cgroups);
        self
    }

    /// The finding about the run: why the policy was ejected; or why the task waits that has
    /// waited longest at the end; or of waits of a second and more that have ended, the longest
    /// that was not the task's turn. `None` if nothing is wrong.
    #[must_use]
    pub fn finding(&self) -> Option<Finding> {
        match self.forced_end() {
            Some((scheduler, exit)) => {
                let fallen = self.fallen.get(&scheduler);
                let judge = judge::Judge {
                    state: fallen.map_or(&self.state, Box::as_ref),
                    // The kernel asks for no right, so whatever explains the end counts.
                    right: None,
                    is_ejected: true,
                    now: fallen.map_or(self.end, |_| exit.time),
                    ..self.judge()
                };
                Some(judge.ejection(scheduler, exit))
            }
            None => {
                let judge = self.judge();
                let open = judge.longest_open();
                let lock = judge.lock_held(&self.blocked);
                let open = match (lock, open) {
                    (Some((holder, lock)), Some(open)) if open.is_of(holder) => Some(lock),
                    (Some((_, lock)), open) if !open.as_ref().is_some_and(Finding::is_fault) => {
                        Some(lock)
                    }
                    (_, open) => open,
                };
                let (outranked, open) = match open {
                    Some(open) if open.fault == Fault::Outranked => (Some(open), None),
                    open => (None, open),
                };
                let starved = || self.starved.as_ref().map(|(_, finding)| finding.clone());
                let own = open.or_else(starved).or_else(|| judge.unfairness());
                own.or(outranked)
            }
        }
    }

    /// The end that the kernel forced, with the number of the scheduler: the root's, else the first
    /// of one below it, while the others went on.
    fn forced_end(&self) -> Option<(u32, &Exit)> {
        let root = self.exit.as_ref().map(|exit| (0, exit));
        let below = self.below.iter().map(|(number, exit)| (*number, exit));
        let is_forced =
            |it: &(u32, &Exit)| !matches!(it.1.kind, ExitKind::Unreg | ExitKind::Parent);
        root.filter(is_forced)
            .or_else(|| below.filter(is_forced).min_by_key(|(_, exit)| exit.time))
    }

    /// A finding of class `fault` about the whole run: a property of what was measured is broken.
    #[must_use]
    pub fn broken(&self, fault: Fault) -> Finding {
        let mut finding = self.judge().nothing();
        finding.fault = fault;
        finding.verdict.measured = self.measured();
        finding
    }

    /// The longest waits, those that are open at the end included, the longest first.
    #[must_use]
    pub fn worst(&self) -> Vec<Wait> {
        let judge = self.judge();
        let open = self.state.waiting();
        let open = open.into_iter().filter(|&task| self.is_of(task));
        let mut waits: Vec<_> = open.map(|task| judge.wait(task)).collect();
        waits.extend(self.worst.iter().cloned());
        waits.sort_by_key(|wait| std::cmp::Reverse(wait.span));
        waits.truncate(self.keep);
        waits
    }

    /// CPU time that `task` had a right to in its present wait, of which it got none; zero while it
    /// runs or sleeps. `None`: there is no such task.
    #[must_use]
    pub fn lag(&self, task: TaskId) -> Option<Nanos> {
        let known = self.state.tasks.get(task.index())?;
        let waits = known.runnable_since.is_some() && known.on.is_none();
        let lag = || self.state.lag(task, self.end);
        Some(if waits { lag() } else { Nanos::ZERO })
    }

    /// The lag above which the share of `task` is broken: one round, at least 100 ms.
    #[must_use]
    pub fn bound(&self, task: TaskId) -> Nanos {
        self.state.round(task)
    }

    /// The lags of all tasks that wait, in the order of their births.
    #[must_use]
    pub fn lags(&self) -> Vec<Lag> {
        let waiting = self.state.waiting().into_iter();
        let lags = waiting.map(|task| Lag {
            task,
            name: self.state.name(task),
            lag: self.state.lag(task, self.end),
            bound: self.bound(task),
        });
        lags.collect()
    }

    /// Whether the stream has decisions. Without them hardly anything can be said.
    #[must_use]
    pub const fn has_decisions(&self) -> bool {
        self.state.has_decisions()
    }

    fn judge(&self) -> judge::Judge<'_> {
        judge::Judge {
            state: &self.state,
            places: &self.places,
            right: self.right,
            inherits: None,
            is_ejected: false,
            now: self.end,
        }
    }

    /// Whether the run has a task or a group of the name that was asked for.
    #[must_use]
    pub fn has_asked(&self) -> bool {
        let is_asked = |group| self.of.as_deref() == Some(group);
        let mut tasks = (0..self.state.tasks.len() as u32).map(TaskId);
        self.of.is_none() || self.state.groups().any(is_asked) || tasks.any(|task| self.is_of(task))
    }

    /// Names of all groups of tasks, those of a single task among them.
    pub fn groups(&self) -> impl Iterator<Item = &str> {
        self.state.groups()
    }

    fn is_of(&self, task: TaskId) -> bool {
        let Some(of) = &self.of else { return true };
        let name = self.state.name(task);
        name == *of || name.rsplit_once('.').is_some_and(|(group, _)| group == of)
    }

    /// How long `task` has waited now, if that is to be kept.
    fn kept(&self, task: TaskId) -> Option<Nanos> {
        let span = self.state.waited(task, self.end)?;
        let least = self.worst.get(self.keep.saturating_sub(1));
        let is_short = least.is_some_and(|least| span <= least.span);
        (self.keep > 0 && !is_short && self.is_of(task)).then_some(span)
    }

    /// How long `task` has waited now, if that is to be kept or to be judged. Of many long waits
    /// the first ones tell about the others.
    fn noted(&self, task: TaskId) -> Option<Nanos> {
        let long = || {
            self.state
                .waited(task, self.end)
                .filter(|span| *span >= judge::LONG)
        };
        let long = || long().filter(|_| self.judged < JUDGED);
        self.kept(task).or_else(long)
    }

    /// Keeps what there is to see if `event` is the end of a scheduler below the root.
    fn note_end(&mut self, event: &Event) {
        let scheduler = self.state.scheduler();
        if event.kind == EventKind::Failed && scheduler > 0 {
            let kept = self.fallen.entry(scheduler);
            kept.or_insert_with(|| Box::new(self.state.clone()));
        }
    }

    /// Looks at the task of `event` before it leaves its queue: once it runs, nothing tells where
    /// it was.
    fn note_stay(&mut self, event: &Event, by: Cause) {
        let task = event.task;
        if self.noted(task).is_none() {
            return;
        }
        let judge = self.judge();
        let Some(stay) = judge.stay(task) else { return };
        if self
            .stays
            .get(&task)
            .is_some_and(|(other, _)| stay <= *other)
        {
            return;
        }
        let mut finding = judge.leaving(task);
        if let Some(queue) = finding
            .queue
            .as_mut()
            .filter(|_| event.kind == EventKind::Look)
        {
            queue.add_look(Act {
                time: event.time,
                cpu: event.cpu,
                callback: by.caller.name(),
                place: self.places.get(by.place).cloned(),
            });
        }
        self.stays.insert(task, (stay, finding));
    }

    /// Keeps what was found about a wait that ends, if that is the longest that is a fault.
    fn note_starved(&mut self, span: Nanos, finding: &Finding) {
        self.judged += 1;
        // Who has a CPU when the wait ends says little of who had it before.
        let is_fault = finding.fault == Fault::PassedOver;
        let is_longest = self.starved.as_ref().is_none_or(|(other, _)| span > *other);
        if is_fault && is_longest {
            self.starved = Some((span, finding.clone()));
        }
    }

    /// Keeps the wait of `task`, which ends now, if it is one of the longest.
    fn note_wait(&mut self, task: TaskId) {
        let stay = self.stays.remove(&task);
        let Some(span) = self.noted(task) else { return };
        let mut wait = self.judge().wait(task);
        if let Some((_, mut finding)) = stay {
            if let Some(victim) = &mut finding.victim {
                victim.waited = span;
            }
            finding.time = self.end;
            if span >= judge::LONG {
                self.note_starved(span, &finding);
            }
            wait.finding = finding;
        }
        if self.kept(task).is_none() {
            return;
        }
        let at = self.worst.partition_point(|other| other.span >= span);
        self.worst.insert(at, wait);
        self.worst.truncate(self.keep);
    }
}

impl Sink for Observer {
    fn wants(&self) -> EventMask {
        EventMask::ALL.union(EventMask::DECISIONS)
    }

    fn begin(&mut self, header: &Header) {
        self.state.begin(header);
        if let Some(meter) = &mut self.meter {
            meter.begin(header);
        }
    }

    fn events(&mut self, events: &[Event]) {
        for event in events {
            self.end = event.time;
            match event.what() {
                _ if event.task == TaskId::NONE => {}
                What::Switch { .. } => self.note_wait(event.task),
                What::Look { by, .. } | What::Remove { by, .. } => self.note_stay(event, by),
                What::Wakeup(_) | What::Exit => {
                    self.stays.remove(&event.task);
                }
                _ => {}
            }
            if let Some(meter) = &mut self.meter {
                meter.advance(&self.state, event.time);
                match event.what() {
                    What::Switch {
                        prev,
                        state: PrevState::Runnable,
                        ..
                    } => {
                        meter.switched(&self.state, prev, event.task, event.time);
                    }
                    What::Migrate { from } => meter.migrated(from, event.cpu),
                    _ => {}
                }
            }
            self.state.take(event);
            self.note_end(event);
        }
    }

    fn text(&mut self, text: &Text) {
        self.places.take(text);
        self.state.schedulers.take(text);
        match text {
            Text::Exit(exit) => self.exit = Some(exit.clone()),
            Text::SubExit { scheduler, exit } => {
                self.below.insert(*scheduler, exit.clone());
            }
            _ => {}
        }
    }

    fn finish(&mut self, end: SimTime) {
        self.end = end;
    }
}

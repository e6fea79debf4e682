//! What is known of one task, and of a group of tasks.

use std::collections::BTreeMap;

use model::growth::Course;
use model::{CpuId, Event, Nanos, SimTime, TaskTimes};

use super::{NICE_LEVELS, NICE_MIN};
use crate::Histogram;
use crate::ledger::Portion;

/// Why a task waits for a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    /// It was woken.
    Wakeup,
    /// It is new.
    Start,
    /// It lost its CPU while it was runnable.
    Preempted,
}

/// Where a task is in its life (rule 5 of docs/events.md).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LifeState {
    /// Not runnable. `fell_asleep`: it was on a CPU before.
    Asleep { since: SimTime, fell_asleep: bool },
    /// Waits for a CPU.
    Runnable { since: SimTime, why: Wait },
    /// Holds a CPU.
    Running(CpuId),
    /// Left its CPU for the last time.
    Dead,
}

/// The phase that a task is in.
#[derive(Clone, Copy, Debug)]
pub(super) struct InPhase {
    pub phase: u32,
    pub since: SimTime,
    /// Run time of the task when it entered.
    pub run_before: Nanos,
}

/// The account of a task.
///
/// What events of each turn change stands first, in two lines of a cache: of 10,000 tasks nothing
/// stays there until their next turn.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub(super) struct TaskMetrics {
    pub state: LifeState,
    pub times: TaskTimes,
    /// Its run time since it got its CPU.
    pub turn: Nanos,
    pub runs: u64,
    pub wakeups: u64,
    pub wait_max: Nanos,
    /// The wait that ended when it got its CPU, until its turn has shown that it is not empty.
    pub waited: Option<(Nanos, Wait)>,
    pub group: u32,
    pub place: CpuId,
    nice: i8,
    /// It did something in its turn that events tell of.
    pub has_acted: bool,
    /// It had a turn that was not empty, or that it has not left yet.
    has_begun: bool,
    pub exited: Option<SimTime>,
    /// What it had run when it got its nice value.
    run_before: Nanos,
    pub migrations: u64,
    pub born: SimTime,
    /// When it became runnable for its first turn that was not empty, and when that began.
    pub came: Option<[SimTime; 2]>,
    pub index: u32,
    pub pid: u32,
    /// In a place of its own: few tasks have phases, and ten thousand have none.
    pub phase: Option<Box<InPhase>>,
}

impl TaskMetrics {
    /// The task that `event`, a `New`, speaks of; `nice` is its group's.
    pub fn new(event: &Event, [group, index, pid]: [u32; 3], nice: i8) -> Self {
        Self {
            group,
            index,
            pid,
            nice,
            run_before: Nanos::ZERO,
            born: event.time,
            came: None,
            exited: None,
            place: event.cpu,
            state: LifeState::Asleep {
                since: event.time,
                fell_asleep: false,
            },
            times: TaskTimes::default(),
            turn: Nanos::ZERO,
            runs: 0,
            wakeups: 0,
            migrations: 0,
            wait_max: Nanos::ZERO,
            waited: None,
            has_acted: false,
            has_begun: false,
            phase: None,
        }
    }

    /// Whether the turn that ends, and leaves it in its present state, was empty: it was woken, ran
    /// nothing and did nothing, and sleeps again or is gone.
    #[inline]
    pub const fn had_empty_turn(&self) -> bool {
        // Most ran for some time, and nothing else is asked of them.
        self.turn.is_zero() && self.was_woken_for_nothing()
    }

    #[cold]
    const fn was_woken_for_nothing(&self) -> bool {
        let was_woken = matches!(self.waited, Some((_, Wait::Wakeup | Wait::Start)));
        was_woken && !self.has_acted && !self.is_queued()
    }

    /// It got a CPU at `now`. Until it has done something it may only be on its way to its work, as
    /// a task that sleeps first.
    #[inline]
    pub fn begin_turn(&mut self, now: SimTime) {
        self.has_acted = false;
        self.runs += 1;
        if !self.has_begun {
            let wait = self.waited.map_or(Nanos::ZERO, |(wait, _)| wait);
            let came = now.as_nanos().saturating_sub(wait.get());
            self.came = Some([SimTime::from_nanos(came), now]);
        }
    }

    /// Its turn is over; `was_empty` says whether it was empty.
    #[inline]
    pub const fn end_turn(&mut self, was_empty: bool) {
        self.has_begun |= !was_empty;
    }

    /// How long it took from when it came to work until it exited, and until it first ran.
    pub fn turnaround(&self) -> Option<[Nanos; 2]> {
        let ([came, began], exited) = (self.came?, self.exited?);
        // A stream that breaks the rules may say that it ran after its end.
        (began <= exited).then(|| [exited.since(came), began.since(came)])
    }

    /// Books what it got of a stretch of time.
    #[inline]
    pub fn book(&mut self, portion: Portion) {
        self.times.run += portion.run;
        self.times.stolen += portion.stolen;
        self.turn += portion.run;
    }

    /// Its nice value.
    pub const fn nice(&self) -> i8 {
        self.nice
    }

    /// It has another nice value from now on. Returns what [`TaskMetrics::run_with_nice`] said
    /// before.
    pub fn set_nice(&mut self, nice: i8) -> (usize, Nanos) {
        let before = self.run_with_nice();
        (self.nice, self.run_before) = (nice, self.times.run);
        before
    }

    /// Which nice value it has, counted from the least, and what it has run with it.
    pub fn run_with_nice(&self) -> (usize, Nanos) {
        (level_of(self.nice), self.times.run - self.run_before)
    }

    /// Whether it counts in a run queue.
    pub const fn is_queued(&self) -> bool {
        matches!(
            self.state,
            LifeState::Runnable { .. } | LifeState::Running(_)
        )
    }

    /// Books the time of a state that ends at `now`, and returns it if it was a wait.
    #[inline]
    pub fn leave_state(&mut self, now: SimTime) -> Option<(Nanos, Wait)> {
        match self.state {
            LifeState::Asleep { since, .. } => self.times.sleep += now.since(since),
            LifeState::Runnable { since, why } => {
                let wait = now.since(since);
                self.times.wait += wait;
                self.wait_max = self.wait_max.max(wait);
                return Some((wait, why));
            }
            LifeState::Running(_) | LifeState::Dead => {}
        }
        None
    }
}

/// Which nice value `nice` is, counted from the least.
fn level_of(nice: i8) -> usize {
    let level = i64::from(nice) - NICE_MIN;
    level.clamp(0, NICE_LEVELS as i64 - 1) as usize
}

/// What happened to the tasks of a group.
#[derive(Clone, Debug, Default)]
pub(super) struct Group {
    pub wakeup: Histogram,
    pub start: Histogram,
    pub preempt: Histogram,
    pub runslice: Histogram,
    pub sleep: Histogram,
    /// The waits before empty turns, which are in no distribution.
    pub empty: Option<Box<Empty>>,
    /// Lengths of waits that were open at the end.
    pub waiting: Histogram,
    pub deadlines: BTreeMap<u32, Deadline>,
    pub spans: BTreeMap<u32, Ended>,
    pub counters: BTreeMap<u32, u64>,
    pub phases: BTreeMap<u32, Phase>,
    /// Another task forked one of them.
    pub has_forked: bool,
}

impl Group {
    #[inline(always)]
    pub fn record_wait(&mut self, (wait, why): (Nanos, Wait)) {
        match why {
            Wait::Wakeup => self.wakeup.record(wait),
            Wait::Start => self.start.record(wait),
            Wait::Preempted => self.preempt.record(wait),
        }
    }

    /// A turn without work ended, for which a task had waited so long.
    #[inline(never)]
    pub fn record_empty(&mut self, (wait, why): (Nanos, Wait)) {
        let empty = self.empty.get_or_insert_default();
        match why {
            Wait::Start => empty.start.record(wait),
            Wait::Wakeup | Wait::Preempted => empty.wakeup.record(wait),
        }
    }

    /// Lets empty turns count where there are no others, `run` being what the group's `tasks` ran:
    /// tasks that only wake and sleep are a load of wakeups. Up to one turn for each task is how
    /// jobs come.
    pub fn settle_empty(&mut self, run: u128, tasks: u64) {
        let turns = |it: &Empty| it.start.count() + it.wakeup.count();
        let counts = |it: &Empty| run == 0 && turns(it) > tasks;
        if !self.empty.as_deref().is_some_and(counts) {
            return;
        }
        let empty = self.empty.take().unwrap_or_default();
        for _ in 0..turns(&empty) {
            self.runslice.record(Nanos::ZERO);
        }
        self.wakeup.merge(&empty.wakeup);
        self.start.merge(&empty.start);
    }

    /// Adds the distributions of `other`; deadlines too, but nothing else that has a name.
    pub fn merge(&mut self, other: &Self) {
        self.wakeup.merge(&other.wakeup);
        self.start.merge(&other.start);
        self.preempt.merge(&other.preempt);
        self.runslice.merge(&other.runslice);
        self.sleep.merge(&other.sleep);
        self.waiting.merge(&other.waiting);
        self.has_forked |= other.has_forked;
        for (&index, theirs) in &other.deadlines {
            let ours = self.deadlines.entry(index).or_default();
            ours.met += theirs.met;
            ours.skipped = ours.skipped.saturating_add(theirs.skipped);
            ours.lateness.merge(&theirs.lateness);
        }
    }
}

/// Waits before turns in which a task ran nothing, and did nothing that events tell of.
#[derive(Clone, Debug, Default)]
pub(super) struct Empty {
    pub wakeup: Histogram,
    start: Histogram,
}

/// Spans that ended.
#[derive(Clone, Debug, Default)]
pub(super) struct Ended {
    pub lengths: Histogram,
    /// The same over time.
    pub course: Course,
    /// A task ended one that it did not begin. Its own spans end before it begins the next ones, so
    /// that nothing queues up before them.
    pub has_queue: bool,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Deadline {
    pub met: u64,
    pub skipped: u64,
    pub lateness: Histogram,
    /// By how much each was late, 0 where it was met, over time: periods may pile up.
    pub course: Course,
}

impl Deadline {
    pub const fn missed(&self) -> u64 {
        self.lateness.count().saturating_add(self.skipped)
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Phase {
    pub entries: u64,
    pub time: Nanos,
    pub run: Nanos,
}

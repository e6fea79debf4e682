//! From records of a kernel to events that keep every rule of docs/events.md. Pure.
//!
//! Three passes: order and cut the records, find out which tasks there are and what each did when
//! the recording began, then make the events. What the records do not explain (a ring buffer that
//! overflowed leaves holes) is mended with events of the same moment, and counted.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use model::{
    Change, CpuId, Event, EventKind, EventMask, NOWHERE, Nanos, PrevState, SimTime, TaskClass,
    TaskGroup, TaskId, Text, WakeCause, Wakeup, What,
};

use super::decided::{Decided, RecordedDecisions};
use super::raw::{self, READER, Raw, RecordFacts, RecordKind};
use decide::Decider;
use early::Early;

mod decide;
mod early;

/// What a recording has: records in any order, and what belongs to them.
#[derive(Clone, Debug, Default)]
pub struct Records {
    /// The records.
    pub raws: Vec<Raw>,
    /// What [`RecordKind::Fork`], [`RecordKind::Rename`] and [`RecordKind::Snapshot`] refer to.
    pub facts: Vec<RecordFacts>,
    /// `CLOCK_MONOTONIC` when the events begin, nanoseconds. Earlier records tell how it begins.
    pub began: u64,
    /// And when it ends.
    pub ended: u64,
    /// CPUs of the machine when it ended: one that was there may have gone offline.
    pub cpus: u16,
    /// What the policy decided, if that was recorded.
    pub decisions: RecordedDecisions,
}

impl Records {
    /// One more than the highest number of a CPU.
    fn all_cpus(&self) -> u16 {
        let number = |word: u32| u16::try_from(word).unwrap_or(0);
        let raws = self.raws.iter().map(|raw| match raw.kind {
            // Where the task is woken or goes to, and came from.
            RecordKind::Wakeup | RecordKind::Start => raw.cpu.max(number(raw.a)),
            RecordKind::Migrate => raw.cpu.max(number(raw.a)).max(number(raw.b)),
            _ => raw.cpu,
        });
        let decisions = self.decisions.records.iter().map(|it| it.cpu);
        let highest = raws.chain(decisions).max();
        highest.map_or(self.cpus, |cpu| self.cpus.max(cpu.saturating_add(1)))
    }
}

/// How tasks that the player has not created are put into groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Others {
    /// One group for each name, up to a dot, slash or colon.
    ByName,
    /// Three groups: `kernel` for kernel threads, `recorder` for the thread that reads events, and
    /// `system`.
    Together,
}

/// Counts of gaps in the records; all 0 when no event was lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mended {
    /// A CPU had another task than the switch says.
    pub switches: u64,
    /// A task ran without having been woken.
    pub wakeups: u64,
    /// A task was elsewhere.
    pub migrations: u64,
}

/// Events that keep the rules.
#[derive(Clone, Debug)]
pub struct Converted {
    /// Groups: those that were given, then those of other tasks.
    pub groups: Vec<TaskGroup>,
    /// The places that decisions name.
    pub places: Vec<Text>,
    /// The events, in the order of time.
    pub events: Vec<Event>,
    /// The last moment.
    pub end: SimTime,
    /// CPUs of the machine, also those that were offline at the end.
    pub cpus: u16,
    /// Count of mended records.
    pub mended: Mended,
}

/// Makes the events of `records`. `groups` are those of the player's workload.
#[must_use]
pub fn convert(records: &Records, groups: &[TaskGroup], others: Others) -> Converted {
    let mut raws = records.raws.clone();
    // Records of one CPU are in order; a stable sort keeps them so.
    raws.sort_by_key(|raw| raw.time);
    let early = raws.partition_point(|raw| raw.time < records.began);
    let mut raws = Early::fold(&raws[..early]).apply(&raws);
    raws.retain(|raw| {
        let facts = matches!(raw.kind, RecordKind::Born | RecordKind::Snapshot);
        facts || (records.began..=records.ended).contains(&raw.time)
    });
    for raw in &mut raws {
        raw.time = raw.time.clamp(records.began, records.ended);
    }
    let tasks = Tasks::of(&raws, records);
    let names = Names::of(&tasks, &records.facts, groups, others);
    let cpus = records.all_cpus();
    let mut converter = Converter::new(records, cpus, tasks, names);
    converter.begin();
    let mut decided = records.decisions.records.clone();
    decided.sort_by_key(|decided| decided.time);
    let mut decided = decided.iter().peekable();
    for raw in &raws {
        while let Some(earlier) = decided.next_if(|decided| decided.time <= raw.time) {
            converter.decided(earlier);
        }
        converter.convert(raw);
    }
    decided.for_each(|decided| converter.decided(decided));
    Converted {
        places: named(&records.decisions.places, &converter.events),
        groups: converter.names.groups,
        events: converter.events,
        end: SimTime::from_nanos(records.ended - records.began),
        cpus,
        mended: converter.mended,
    }
}

/// Those of `places` that a decision among `events` names.
fn named(places: &[Text], events: &[Event]) -> Vec<Text> {
    let decisions = events
        .iter()
        .filter(|event| EventMask::DECISIONS.has(event.kind));
    let named: BTreeSet<u32> = decisions
        .filter_map(Event::cause)
        .map(|by| by.place)
        .collect();
    let named = named.into_iter().filter(|place| *place != NOWHERE);
    let named = named.filter_map(|place| places.get(place as usize));
    named.cloned().collect()
}

/// What a task did when the events began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum First {
    Asleep,
    Runnable(u16),
    Running(u16),
}

/// A task; a pid that is used again is another one.
#[derive(Clone, Debug)]
struct SeenTask {
    pid: u32,
    /// Index of the latest facts.
    facts: Option<usize>,
    /// Whether it was forked during the recording.
    forked: bool,
    first: Option<First>,
    /// The CPU that a migration before anything else took it from.
    from: Option<u16>,
    /// Group and index, if the player created it.
    part: Option<(u32, u32)>,
}

/// The tasks of the records. Existing tasks stand before forked ones.
struct Tasks {
    seen: Vec<SeenTask>,
}

impl Tasks {
    fn of(raws: &[Raw], records: &Records) -> Self {
        let mut first_kind: HashMap<u32, RecordKind> = HashMap::new();
        for raw in raws.iter().filter(|raw| raw.kind != RecordKind::Snapshot) {
            first_kind.entry(raw.pid).or_insert(raw.kind);
            if raw.kind == RecordKind::Switch {
                first_kind.entry(raw.a).or_insert(raw.kind);
            }
        }
        let mut tasks = Self { seen: Vec::new() };
        let mut who = HashMap::new();
        for raw in raws.iter().filter(|raw| raw.kind == RecordKind::Snapshot) {
            let facts = records.facts.get(facts_index(raw));
            let exiting = facts.is_some_and(|facts| facts.flags & raw::PF_EXITING != 0);
            let first = first_kind.get(&raw.pid);
            // Forked while the snapshot was taken, or as good as gone.
            if raw.pid == 0 || first == Some(&RecordKind::Fork) || (exiting && first.is_none()) {
                continue;
            }
            let at = tasks.place_of(&mut who, raw.pid);
            tasks.seen[at].facts = Some(facts_index(raw));
            // Its first event says what it did; without any event it has not changed.
            if first.is_none() {
                tasks.seen[at].first = Some(match raw.flags {
                    flags if flags & raw::FLAG_ON_CPU != 0 => First::Running(raw.cpu),
                    flags if flags & raw::FLAG_QUEUED != 0 => First::Runnable(raw.cpu),
                    _ => First::Asleep,
                });
            }
        }
        for raw in raws {
            tasks.look(&mut who, raw);
        }
        tasks
    }

    fn place_of(&mut self, who: &mut HashMap<u32, usize>, pid: u32) -> usize {
        *who.entry(pid).or_insert_with(|| {
            self.seen.push(SeenTask {
                pid,
                facts: None,
                forked: false,
                first: None,
                from: None,
                part: None,
            });
            self.seen.len() - 1
        })
    }

    fn look(&mut self, who: &mut HashMap<u32, usize>, raw: &Raw) {
        match raw.kind {
            RecordKind::Switch => {
                if raw.a != 0 {
                    self.reveal(who, raw.a, First::Running(raw.cpu));
                    if is_last(raw) {
                        who.remove(&raw.a);
                    }
                }
                if raw.pid != 0 {
                    self.reveal(who, raw.pid, First::Runnable(raw.cpu));
                }
            }
            RecordKind::Wakeup | RecordKind::Start => self.reveal(who, raw.pid, First::Asleep),
            RecordKind::Migrate => {
                let at = self.place_of(who, raw.pid);
                let one = &mut self.seen[at];
                if one.first.is_none() && one.from.is_none() {
                    one.from = u16::try_from(raw.b).ok();
                }
            }
            RecordKind::Fork => {
                who.remove(&raw.pid);
                let at = self.place_of(who, raw.pid);
                self.seen[at].forked = true;
                self.seen[at].first = Some(First::Asleep);
                self.seen[at].facts = Some(facts_index(raw));
            }
            RecordKind::Rename => {
                let at = self.place_of(who, raw.pid);
                self.seen[at].facts = Some(facts_index(raw));
            }
            RecordKind::Born => {
                let at = self.place_of(who, raw.pid);
                self.seen[at].part = Some((raw.a, raw.b));
            }
            RecordKind::Change | RecordKind::Report | RecordKind::Mark => {
                self.place_of(who, raw.pid);
            }
            RecordKind::Snapshot | RecordKind::Waking => {}
        }
    }

    fn reveal(&mut self, who: &mut HashMap<u32, usize>, pid: u32, first: First) {
        let at = self.place_of(who, pid);
        let one = &mut self.seen[at];
        one.first.get_or_insert(match (first, one.from) {
            // It was moved before it was seen.
            (First::Runnable(_), Some(from)) => First::Runnable(from),
            (first, _) => first,
        });
    }
}

/// Groups, and everybody's place in them.
struct Names {
    groups: Vec<TaskGroup>,
    /// By task: group and index.
    parts: Vec<(u32, u32)>,
}

impl Names {
    fn of(tasks: &Tasks, facts: &[RecordFacts], groups: &[TaskGroup], others: Others) -> Self {
        let mut names = Self {
            groups: groups.to_vec(),
            parts: Vec::new(),
        };
        let mut known: BTreeMap<String, u32> = BTreeMap::new();
        for one in &tasks.seen {
            let part = one
                .part
                .filter(|(group, _)| (*group as usize) < groups.len());
            let part = part.unwrap_or_else(|| {
                let facts = one.facts.and_then(|at| facts.get(at));
                names.other(&mut known, facts, others)
            });
            names.parts.push(part);
        }
        names
    }

    fn other(
        &mut self,
        known: &mut BTreeMap<String, u32>,
        facts: Option<&RecordFacts>,
        others: Others,
    ) -> (u32, u32) {
        let comm = facts.map_or("", |facts| facts.comm.as_str());
        let kernel = facts.is_some_and(|facts| facts.flags & raw::PF_KTHREAD != 0);
        let name = match others {
            Others::Together if kernel => "kernel",
            // Only a recording with events has it.
            Others::Together if comm == READER => "recorder",
            Others::Together => "system",
            Others::ByName => stem(comm),
        };
        let next = self.groups.len();
        let group = *known.entry(name.to_owned()).or_insert_with(|| {
            self.groups.push(TaskGroup {
                name: name.to_owned(),
                nice: facts.map_or(0, |facts| facts.nice),
                count: 0,
            });
            u32::try_from(next).expect("a recording has fewer than 2^32 groups")
        });
        let members = &mut self.groups[group as usize].count;
        *members += 1;
        (group, *members - 1)
    }
}

/// A name up to a dot, slash or colon, as `slot_of()` of record.bpf.c has it.
fn stem(comm: &str) -> &str {
    match comm.split(['.', '/', ':']).next() {
        None | Some("") => "unnamed",
        Some(stem) => stem,
    }
}

fn facts_index(raw: &Raw) -> usize {
    usize::try_from(raw.c).unwrap_or(usize::MAX)
}

/// Whether a switch is the last of its previous task.
fn is_last(raw: &Raw) -> bool {
    let preempted = raw.flags & 1 != 0;
    !preempted && raw.b & raw::TASK_DEAD != 0
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ThreadState {
    Asleep,
    Runnable,
    Running(u16),
}

/// A task that has come to be.
struct Told {
    state: ThreadState,
    /// Its CPU; `None` before the first wakeup.
    place: Option<u16>,
    forked: bool,
    /// Who began the wakeup that is under way, as its event says it.
    waker: Option<Wakeup>,
}

struct Converter<'a> {
    records: &'a Records,
    tasks: Tasks,
    names: Names,
    /// Forked tasks that are still to come, by pid, the next one last.
    waiting: HashMap<u32, Vec<usize>>,
    who: HashMap<u32, TaskId>,
    told: Vec<Told>,
    /// What each CPU runs.
    on: Vec<Option<TaskId>>,
    now: SimTime,
    events: Vec<Event>,
    mended: Mended,
    decider: Decider,
}

impl<'a> Converter<'a> {
    fn new(records: &'a Records, cpus: u16, tasks: Tasks, names: Names) -> Self {
        let mut waiting: HashMap<u32, Vec<usize>> = HashMap::new();
        for (at, one) in tasks.seen.iter().enumerate().rev() {
            if one.forked {
                waiting.entry(one.pid).or_default().push(at);
            }
        }
        Self {
            waiting,
            who: HashMap::new(),
            told: Vec::new(),
            on: vec![None; usize::from(cpus)],
            now: SimTime::ZERO,
            events: Vec::with_capacity(records.raws.len()),
            mended: Mended::default(),
            decider: Decider::default(),
            records,
            tasks,
            names,
        }
    }

    fn push(&mut self, task: TaskId, cpu: u16, what: What) {
        let event = Event::new(self.now, CpuId(cpu), task, what);
        self.events.push(event);
    }

    /// Who was there, and what they did.
    fn begin(&mut self) {
        let mut existing: Vec<usize> = (0..self.tasks.seen.len())
            .filter(|at| !self.tasks.seen[*at].forked)
            .collect();
        existing.sort_by_key(|at| (self.names.parts[*at], self.tasks.seen[*at].pid));
        let ids: Vec<(TaskId, Option<First>)> = existing
            .iter()
            .map(|at| (self.born(*at, 0, TaskId::NONE), self.tasks.seen[*at].first))
            .collect();
        let mut taken = HashSet::new();
        for &(task, first) in &ids {
            let (First::Runnable(cpu) | First::Running(cpu)) = first.unwrap_or(First::Asleep)
            else {
                continue;
            };
            self.wake(task, cpu);
            // Two tasks that ran on one CPU at once: an event was lost.
            if matches!(first, Some(First::Running(_))) && taken.insert(cpu) {
                self.switch_to(cpu, Some(task), PrevState::Idle);
            }
        }
    }

    fn born(&mut self, at: usize, cpu: u16, parent: TaskId) -> TaskId {
        let task = TaskId(u32::try_from(self.told.len()).expect("task numbers have 32 bits"));
        let one = &self.tasks.seen[at];
        let (pid, forked) = (one.pid, one.forked);
        let (group, index) = self.names.parts[at];
        self.who.insert(pid, task);
        self.told.push(Told {
            state: ThreadState::Asleep,
            place: None,
            forked,
            waker: None,
        });
        let new = What::New {
            group,
            index,
            pid,
            parent,
        };
        self.push(task, cpu, new);
        for change in [self.outranking(at), self.bound(at)].into_iter().flatten() {
            self.push(task, cpu, What::Change(change));
        }
        task
    }

    /// The class of a task, if it goes before all tasks of a policy.
    fn outranking(&self, at: usize) -> Option<Change> {
        let facts = self.records.facts.get(self.tasks.seen[at].facts?)?;
        match facts.policy {
            raw::SCHED_FIFO | raw::SCHED_RR => Some(Change::class(TaskClass::RealTime)),
            raw::SCHED_DEADLINE => Some(Change::class(TaskClass::Deadline)),
            _ => None,
        }
    }

    /// The affinity of a task that may not use all CPUs.
    fn bound(&self, at: usize) -> Option<Change> {
        let facts = self.records.facts.get(self.tasks.seen[at].facts?)?;
        let cpus = u64::from(facts.cpus_allowed);
        let is_bound = cpus > 0 && cpus < self.on.len() as u64;
        is_bound.then_some(Change::Affinity(cpus))
    }

    fn convert(&mut self, raw: &Raw) {
        self.now = SimTime::from_nanos(raw.time - self.records.began);
        if usize::from(raw.cpu) >= self.on.len() {
            return;
        }
        match raw.kind {
            RecordKind::Fork => {
                let one = self.waiting.get_mut(&raw.pid).and_then(Vec::pop);
                let parent = self.who.get(&raw.a).copied().unwrap_or(TaskId::NONE);
                if let Some(one) = one {
                    self.born(one, raw.cpu, parent);
                }
                return;
            }
            RecordKind::Switch => return self.switched(raw),
            RecordKind::Snapshot | RecordKind::Rename | RecordKind::Born => return,
            _ => {}
        }
        let Some(&task) = self.who.get(&raw.pid) else {
            return;
        };
        match raw.kind {
            RecordKind::Waking => {
                let in_interrupt = raw.flags & (raw::FLAG_HARDIRQ | raw::FLAG_SOFTIRQ) != 0;
                let waker = self.who.get(&raw.b).filter(|_| !in_interrupt);
                let waker = waker.copied().unwrap_or(TaskId::NONE);
                let sync = !in_interrupt && raw.flags & raw::FLAG_SYNC != 0;
                self.told[task.index()].waker = Some(wakeup(waker, raw.cpu, sync));
            }
            RecordKind::Wakeup | RecordKind::Start => {
                if let Some(cpu) = self.cpu(raw.a) {
                    self.woken(task, cpu);
                }
            }
            RecordKind::Migrate => {
                if let Some(cpu) = self.cpu(raw.a) {
                    self.migrated(task, cpu);
                }
            }
            RecordKind::Change => {
                let change = match raw.a {
                    raw::CHANGE_NICE => Change::Nice(raw.b.cast_signed().into()),
                    _ => Change::Affinity(raw.b.into()),
                };
                self.push(task, raw.cpu, What::Change(change));
            }
            RecordKind::Report => {
                let report = What::Report {
                    priority: raw.a,
                    level: raw.b,
                    flags: raw.c,
                };
                self.push(task, raw.cpu, report);
            }
            RecordKind::Mark => self.marked(task, raw),
            _ => {}
        }
    }

    /// What was decided before the events begin tells where tasks were then, and is told as of
    /// their begin; what comes after their end is left out.
    fn decided(&mut self, decided: &Decided) {
        if decided.time > self.records.ended || usize::from(decided.cpu) >= self.on.len() {
            return;
        }
        let since = decided.time.saturating_sub(self.records.began);
        self.now = self.now.max(SimTime::from_nanos(since));
        let task = self
            .who
            .get(&decided.pid)
            .copied()
            .filter(|_| decided.pid != 0);
        let events = self.decider.decide(decided, task, self.now);
        self.events.extend(events);
    }

    /// A CPU of the machine.
    fn cpu(&self, number: u32) -> Option<u16> {
        let cpu = u16::try_from(number).ok()?;
        (usize::from(cpu) < self.on.len()).then_some(cpu)
    }

    fn marked(&mut self, task: TaskId, raw: &Raw) {
        let kind = EventKind::ALL.get(raw.b as usize);
        let what = kind.and_then(|kind| What::of_workload(*kind, raw.a, raw.c));
        let cpu = self.told[task.index()].place.unwrap_or(raw.cpu);
        if let Some(what) = what {
            self.push(task, cpu, what);
        }
    }

    fn woken(&mut self, task: TaskId, cpu: u16) {
        // The kernel also reports a wakeup of a task that has not left its CPU yet.
        if self.told[task.index()].state == ThreadState::Asleep {
            if self.told[task.index()]
                .place
                .is_some_and(|place| place != cpu)
            {
                self.mended.migrations += 1;
                self.migrated(task, cpu);
            }
            self.wake(task, cpu);
        }
    }

    fn wake(&mut self, task: TaskId, cpu: u16) {
        let told = &mut self.told[task.index()];
        let is_start = told.forked && told.place.is_none();
        let nobody = wakeup(TaskId::NONE, cpu, false);
        let waker = told.waker.take().unwrap_or(nobody);
        told.state = ThreadState::Runnable;
        told.place = Some(cpu);
        let wakeup = Wakeup {
            new: is_start,
            ..waker
        };
        self.push(task, cpu, What::Wakeup(wakeup));
    }

    fn migrated(&mut self, task: TaskId, cpu: u16) {
        let told = &mut self.told[task.index()];
        // Before its first wakeup a task is nowhere.
        let Some(from) = told.place.filter(|place| *place != cpu) else {
            return;
        };
        if matches!(told.state, ThreadState::Running(_)) {
            return;
        }
        told.place = Some(cpu);
        self.push(task, cpu, What::Migrate { from: CpuId(from) });
    }

    fn switched(&mut self, raw: &Raw) {
        let known = |who: &HashMap<u32, TaskId>, pid: u32| who.get(&pid).copied();
        let prev = (raw.a != 0).then(|| known(&self.who, raw.a)).flatten();
        let next = (raw.pid != 0).then(|| known(&self.who, raw.pid)).flatten();
        if self.on[usize::from(raw.cpu)] != prev {
            self.mended.switches += 1;
            self.make_ready(prev, raw.cpu);
            self.switch_to(raw.cpu, prev, PrevState::Runnable);
        }
        let preempted = raw.flags & 1 != 0;
        let left = match raw.b {
            _ if prev.is_none() => PrevState::Idle,
            0 => PrevState::Runnable,
            _ if preempted => PrevState::Runnable,
            state if state & raw::TASK_DEAD != 0 => PrevState::Dead,
            _ => PrevState::Sleeping,
        };
        if prev == next {
            return;
        }
        self.make_ready(next, raw.cpu);
        self.switch_to(raw.cpu, next, left);
        if let (Some(prev), PrevState::Dead) = (prev, left) {
            self.push(prev, raw.cpu, What::Exit);
            self.who.remove(&raw.a);
        }
    }

    /// Mends what keeps `task` from being picked on `cpu`.
    fn make_ready(&mut self, task: Option<TaskId>, cpu: u16) {
        let Some(task) = task else { return };
        if let ThreadState::Running(elsewhere) = self.told[task.index()].state {
            self.mended.switches += 1;
            self.switch_to(elsewhere, None, PrevState::Runnable);
        }
        if self.told[task.index()].state == ThreadState::Asleep {
            self.mended.wakeups += 1;
            self.woken(task, cpu);
        }
        if self.told[task.index()].place != Some(cpu) {
            self.mended.migrations += 1;
            self.migrated(task, cpu);
        }
    }

    /// Gives `cpu` to `next`; whoever is there leaves in the state `left`.
    fn switch_to(&mut self, cpu: u16, next: Option<TaskId>, left: PrevState) {
        let prev = self.on[usize::from(cpu)];
        if prev == next {
            return;
        }
        let left = if prev.is_none() {
            PrevState::Idle
        } else {
            left
        };
        if let Some(prev) = prev {
            self.told[prev.index()].state = match left {
                PrevState::Runnable => ThreadState::Runnable,
                _ => ThreadState::Asleep,
            };
        }
        if let Some(next) = next {
            self.told[next.index()].state = ThreadState::Running(cpu);
        }
        self.on[usize::from(cpu)] = next;
        let [prev, next] = [prev, next].map(|task| task.unwrap_or(TaskId::NONE));
        let switch = What::Switch {
            prev,
            state: left,
            overhead: Nanos::ZERO,
        };
        self.push(next, cpu, switch);
    }
}

const fn wakeup(waker: TaskId, cpu: u16, sync: bool) -> Wakeup {
    Wakeup {
        waker,
        waker_cpu: CpuId(cpu),
        sync,
        new: false,
        cause: WakeCause::Unsaid,
    }
}

/// The length of what was recorded.
impl Converted {
    /// From its begin to its end.
    #[must_use]
    pub fn length(&self) -> Nanos {
        self.end.since(SimTime::ZERO)
    }
}

#[cfg(test)]
mod tests;

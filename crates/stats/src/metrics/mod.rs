//! Events in, numbers out: the metrics of docs/events.md.

mod queues;
mod summing;
mod tasks;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use model::{
    Change, CpuId, Event, EventKind, EventMask, Header, Nanos, PrevState, SimTime, Sink, TaskId,
    What,
};

use crate::ledger::{CpuLedger, Portion};
use crate::siblings::Siblings;
use crate::{GroupReport, Histogram, Report, Tails};
use queues::Queues;
use tasks::{Group, InPhase, LifeState, TaskMetrics, Wait};

/// The accounts that so many events need are loaded together: of 10,000 tasks nothing is in the
/// processor's cache when its turn comes, and it takes hardly longer to wait for many than for one.
const BLOCK: usize = 64;

/// Accounts of fewer tasks stay in a processor's cache.
const MANY_TASKS: usize = 300;

/// Nice values, -20 to 19.
const NICE_LEVELS: usize = 40;
const NICE_MIN: i64 = -20;

/// The kinds of spans of time that [`Metrics::pooled`] gives; docs/events.md defines them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanKind<'a> {
    /// From a wakeup until the task got a CPU.
    Wakeup,
    /// All waits for a CPU: after wakeups, of new tasks, after preemptions.
    Delay,
    /// Time on a CPU from getting to leaving it.
    Runslice,
    /// From falling asleep until the wakeup.
    Sleep,
    /// Lengths of the span of this name.
    Span(&'a str),
}

/// Computes the metrics of a run, in memory that grows with the number of tasks and groups but
/// not with the number of events.
///
/// It takes the stream as it comes: where one breaks the rules of docs/events.md, the numbers of
/// the tasks concerned are wrong, and [`Conservation`](crate::Conservation) says where.
#[derive(Debug, Default)]
pub struct Metrics {
    run: Option<MeasuredRun>,
    /// Turns without work are in the distributions, too.
    has_every_turn: bool,
}

/// The state of one run.
#[derive(Debug)]
struct MeasuredRun {
    header: Header,
    cpus: Vec<CpuLedger>,
    tasks: Vec<TaskMetrics>,
    groups: Vec<Group>,
    /// What happened to no task: deadlines and counters of the workload's interrupts.
    nobody: Group,
    queues: Queues,
    /// What tasks ran with each nice value that they have no more; see
    /// [`MeasuredRun::run_by_nice`]. Summed at changes and at the end, because nice values change
    /// seldom and switches are many.
    nice_run: [Nanos; NICE_LEVELS],
    kicks: u64,
    /// Tasks that nobody forked.
    roots: u64,
    /// Who has begun which span.
    begun: BTreeSet<(u32, TaskId)>,
    has_every_turn: bool,
    /// Cores whose threads do not slow each other down.
    siblings: Option<Box<Siblings>>,
    /// Set when the run is over.
    end: Option<SimTime>,
}

impl Metrics {
    /// Metrics of a run that has not begun.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            run: None,
            has_every_turn: false,
        }
    }

    /// The same, with turns without work in the distributions: as a kernel's histograms have them,
    /// which are held against these.
    #[must_use]
    pub const fn of_every_turn() -> Self {
        Self {
            run: None,
            has_every_turn: true,
        }
    }

    /// The numbers of the run.
    ///
    /// # Panics
    /// If the run is not over: [`Sink::finish`] was not called.
    #[must_use]
    pub fn report(&self) -> Report {
        let run = self.run.as_ref().filter(|run| run.end.is_some());
        run.expect("a report needs a run that is over").report()
    }

    /// The groups of the report put together by what `family` makes of their names, in the order
    /// of the first of each. What has several groups has their number behind its name.
    ///
    /// # Panics
    /// As [`Self::report`].
    #[must_use]
    pub fn families(&self, family: &dyn Fn(&str) -> &str) -> Vec<GroupReport> {
        let run = self.run.as_ref().filter(|run| run.end.is_some());
        run.expect("families need a run that is over")
            .families(family)
    }

    /// How long the tasks of each group waited for a CPU: after wakeups, at the start, after
    /// preemptions. Waits that were open at the end count with what they had reached.
    ///
    /// # Panics
    /// As [`Self::report`].
    #[must_use]
    pub fn tails(&self) -> Tails {
        let run = self.run.as_ref().filter(|run| run.end.is_some());
        run.expect("tails need a run that is over").tails()
    }

    /// Waits after wakeups and preemptions that were over at the end, before empty turns too: those
    /// that a kernel's histograms have.
    ///
    /// # Panics
    /// As [`Self::report`].
    #[must_use]
    pub fn waits(&self) -> Tails {
        let run = self.run.as_ref().filter(|run| run.end.is_some());
        run.expect("waits need a run that is over").waits()
    }

    /// The spans of one kind of all tasks whose group's name is `wanted`, together.
    ///
    /// # Panics
    /// As [`Self::report`].
    #[must_use]
    pub fn pooled(&self, kind: SpanKind<'_>, wanted: &dyn Fn(&str) -> bool) -> Histogram {
        let run = self.run.as_ref().filter(|run| run.end.is_some());
        run.expect("a distribution needs a run that is over")
            .pooled(kind, wanted)
    }

    fn run(&mut self) -> &mut MeasuredRun {
        self.run.as_mut().expect("a header comes before the events")
    }
}

impl Sink for Metrics {
    fn wants(&self) -> EventMask {
        EventMask::SCHED.without(EventKind::Report)
    }

    fn begin(&mut self, header: &Header) {
        self.run = Some(MeasuredRun::new(header, self.has_every_turn));
    }

    fn events(&mut self, events: &[Event]) {
        let run = self.run();
        for block in events.chunks(BLOCK) {
            if run.tasks.len() >= MANY_TASKS {
                run.load(block);
            }
            // The only call of it, so that it is built in.
            block.iter().for_each(|event| run.take(event));
        }
    }

    fn finish(&mut self, end: SimTime) {
        self.run().finish(end);
    }
}

impl MeasuredRun {
    fn new(header: &Header, has_every_turn: bool) -> Self {
        let cpus = header.machine.cpus;
        Self {
            header: header.clone(),
            cpus: vec![CpuLedger::default(); usize::from(cpus)],
            tasks: Vec::new(),
            groups: vec![Group::default(); header.groups.len()],
            nobody: Group::default(),
            queues: Queues::new(cpus),
            nice_run: [Nanos::ZERO; NICE_LEVELS],
            kicks: 0,
            roots: 0,
            begun: BTreeSet::new(),
            has_every_turn,
            siblings: Siblings::of(header),
            end: None,
        }
    }

    /// Loads both lines of the accounts that `events` need. No load waits for another one.
    #[inline(never)]
    fn load(&self, events: &[Event]) {
        let accounts = events
            .iter()
            .map(|event| self.tasks.get(event.task.index()));
        let loaded = accounts
            .flatten()
            .fold(0, |sum, task| sum ^ task.turn.get() ^ task.wakeups);
        std::hint::black_box(loaded);
    }

    #[inline(always)]
    fn take(&mut self, event: &Event) {
        // By the kind first: of one that is known all else is found without a jump.
        if event.kind == EventKind::Switch
            && let What::Switch {
                state, overhead, ..
            } = event.what()
        {
            self.switched(event, state, overhead);
        } else if event.kind == EventKind::Wakeup
            && let What::Wakeup(wakeup) = event.what()
        {
            self.acted(wakeup.waker);
            self.woken(event, wakeup.new);
        } else if event.kind == EventKind::Migrate {
            self.migrated(event);
        } else if event.kind != EventKind::Callback {
            // Who wants to hear of calls makes most of all events such ones.
            self.take_other(event);
        }
    }

    /// What happens less often than a switch, or takes time: then each tick is such an event.
    #[inline(never)]
    fn take_other(&mut self, event: &Event) {
        match event.what() {
            What::Steal { span } => self.stolen(event, span),
            _ => self.take_rare(event),
        }
    }

    #[inline(never)]
    fn take_rare(&mut self, event: &Event) {
        match event.what() {
            What::New {
                group,
                index,
                pid,
                parent,
            } => {
                self.born(event, [group, index, pid]);
                self.acted(parent);
                self.groups[group as usize].has_forked |= parent != TaskId::NONE;
                self.roots += u64::from(parent == TaskId::NONE);
            }
            What::Exit => self.exited(event),
            What::SpanBegin { span } => {
                self.begun.insert((span, event.task));
            }
            What::SpanEnd { span, length } => {
                self.acted(event.task);
                let is_own = self.begun.contains(&(span, event.task));
                let ended = self.group_of(event).spans.entry(span).or_default();
                ended.has_queue |= !is_own;
                ended.lengths.record(length);
                ended.course.add(event.time, length.get());
            }
            What::Deadline { deadline, late } => {
                self.acted(event.task);
                let deadline = self.group_of(event).deadlines.entry(deadline).or_default();
                deadline.course.add(event.time, late.get());
                if late.is_zero() {
                    deadline.met += 1;
                } else {
                    deadline.lateness.record(late);
                }
            }
            What::Skipped { deadline, periods } => {
                let deadline = self.group_of(event).deadlines.entry(deadline).or_default();
                deadline.skipped = deadline.skipped.saturating_add(periods);
            }
            What::Count { counter, by } => {
                self.acted(event.task);
                let total = self.group_of(event).counters.entry(counter).or_default();
                *total = total.saturating_add(by);
            }
            What::Phase { phase } => self.entered_phase(event, phase),
            What::Kick { .. } => self.kicks += 1,
            What::Change(Change::Nice(nice)) => self.reniced(event, nice),
            What::Wakeup(_)
            | What::Switch { .. }
            | What::Migrate { .. }
            | What::Steal { .. }
            | What::Callback { .. } => {
                unreachable!("{:?} is taken by the caller", event.kind)
            }
            What::Report { .. } | What::Change(_) => {}
            // Decisions.
            _ => {}
        }
    }

    #[inline(always)]
    fn stolen(&mut self, event: &Event, span: Nanos) {
        let ledger = &mut self.cpus[event.cpu.index()];
        let portion = ledger.settle_all(event.time);
        ledger.steal(span);
        if let Some(id) = ledger.task() {
            self.tasks[id.index()].book(portion);
        }
    }

    /// `task`, if it is one, did something that others see, though it may take no time.
    #[inline]
    fn acted(&mut self, task: TaskId) {
        if let Some(task) = self.tasks.get_mut(task.index()) {
            task.has_acted = true;
        }
    }

    #[inline]
    fn task(&mut self, task: TaskId) -> &mut TaskMetrics {
        &mut self.tasks[task.index()]
    }

    /// The group of the task that `event` happened to.
    fn group_of(&mut self, event: &Event) -> &mut Group {
        if event.task == TaskId::NONE {
            return &mut self.nobody;
        }
        let group = self.task(event.task).group;
        &mut self.groups[group as usize]
    }

    fn born(&mut self, event: &Event, [group, index, pid]: [u32; 3]) {
        assert_eq!(
            event.task.index(),
            self.tasks.len(),
            "tasks are numbered without gaps"
        );
        let nice = self.header.groups[group as usize].nice;
        self.tasks
            .push(TaskMetrics::new(event, [group, index, pid], nice));
    }

    fn exited(&mut self, event: &Event) {
        let (id, now) = (event.task, event.time);
        if let LifeState::Running(cpu) = self.task(id).state {
            self.settle_cpu(cpu, now);
        }
        self.leave_phase(id, now);
        let task = self.task(id);
        task.leave_state(now);
        task.exited = Some(now);
        let (queued, place) = (task.is_queued(), task.place);
        if !matches!(task.state, LifeState::Running(_)) {
            task.state = LifeState::Dead;
            if queued {
                self.queues.settle(now);
                self.queues.remove(place);
            }
        }
    }

    #[inline(always)]
    fn woken(&mut self, event: &Event, is_new: bool) {
        let now = event.time;
        let task = &mut self.tasks[event.task.index()];
        let LifeState::Asleep { since, fell_asleep } = task.state else {
            return;
        };
        task.leave_state(now);
        task.wakeups += 1;
        task.place = event.cpu;
        let why = if is_new { Wait::Start } else { Wait::Wakeup };
        task.state = LifeState::Runnable { since: now, why };
        let group = task.group;
        if fell_asleep {
            let slept = now.since(since);
            self.groups[group as usize].sleep.record(slept);
        }
        self.queues.settle(now);
        self.queues.add(event.cpu);
    }

    #[inline(always)]
    fn switched(&mut self, event: &Event, state: PrevState, overhead: Nanos) {
        let (cpu, now) = (event.cpu, event.time);
        let ledger = &mut self.cpus[cpu.index()];
        let portion = ledger.settle(now);
        let prev = ledger.task();
        ledger.switch(event.task, overhead);
        self.queues.settle(now);
        if let Some(siblings) = &mut self.siblings {
            let is_busy = (prev.is_some(), event.task != TaskId::NONE);
            siblings.switched(cpu, is_busy, now);
        }
        if let Some(prev) = prev {
            self.switched_out(prev, portion, (state, now));
        }
        if event.task != TaskId::NONE {
            self.switched_in(event.task, cpu, now);
        }
    }

    #[inline]
    fn switched_out(&mut self, prev: TaskId, portion: Portion, left: (PrevState, SimTime)) {
        let (state, now) = left;
        self.queues.release();
        let task = &mut self.tasks[prev.index()];
        task.book(portion);
        let (group, place) = (task.group, task.place);
        let was_queued = task.is_queued();
        task.state = if state == PrevState::Runnable {
            LifeState::Runnable {
                since: now,
                why: Wait::Preempted,
            }
        } else if state == PrevState::Dead || task.exited.is_some() {
            LifeState::Dead
        } else {
            LifeState::Asleep {
                since: now,
                fell_asleep: true,
            }
        };
        match (was_queued, task.is_queued()) {
            (true, false) => self.queues.remove(place),
            (false, true) => self.queues.add(place),
            _ => {}
        }
        let is_empty = task.had_empty_turn() && !self.has_every_turn;
        task.end_turn(is_empty);
        let (turn, waited) = (std::mem::take(&mut task.turn), task.waited.take());
        let group = &mut self.groups[group as usize];
        match waited {
            Some(waited) if is_empty => return group.record_empty(waited),
            Some(waited) => group.record_wait(waited),
            None => {}
        }
        group.runslice.record(turn);
    }

    #[inline]
    fn switched_in(&mut self, next: TaskId, cpu: CpuId, now: SimTime) {
        let task = self.task(next);
        let (was_queued, place) = (task.is_queued(), task.place);
        task.waited = task.leave_state(now);
        task.state = LifeState::Running(cpu);
        task.place = cpu;
        task.begin_turn(now);
        if !was_queued {
            self.queues.add(cpu);
        } else if place != cpu {
            self.queues.remove(place);
            self.queues.add(cpu);
        }
        self.queues.take();
    }

    fn migrated(&mut self, event: &Event) {
        let task = self.task(event.task);
        let (queued, place) = (task.is_queued(), task.place);
        // A new task's first placement is no migration.
        task.migrations += u64::from(task.wakeups > 0);
        task.place = event.cpu;
        if queued {
            self.queues.settle(event.time);
            self.queues.remove(place);
            self.queues.add(event.cpu);
        }
    }

    fn reniced(&mut self, event: &Event, nice: i64) {
        // What it ran so far it ran with the old value.
        self.settle_task(event.task, event.time);
        let nice = nice.clamp(NICE_MIN, -NICE_MIN - 1);
        let nice = i8::try_from(nice).expect("clamped to a nice value");
        let (level, run) = self.task(event.task).set_nice(nice);
        self.nice_run[level] += run;
    }

    fn entered_phase(&mut self, event: &Event, phase: u32) {
        self.settle_task(event.task, event.time);
        self.leave_phase(event.task, event.time);
        self.group_of(event)
            .phases
            .entry(phase)
            .or_default()
            .entries += 1;
        let task = self.task(event.task);
        let run_before = task.times.run;
        task.phase = Some(Box::new(InPhase {
            phase,
            since: event.time,
            run_before,
        }));
    }

    /// Books the phase of a settled task up to `now`.
    fn leave_phase(&mut self, id: TaskId, now: SimTime) {
        let task = self.task(id);
        let Some(left) = task.phase.take() else {
            return;
        };
        let (group, run) = (task.group, task.times.run - left.run_before);
        let phase = self.groups[group as usize]
            .phases
            .entry(left.phase)
            .or_default();
        phase.time += now.since(left.since);
        phase.run += run;
    }

    fn settle_task(&mut self, id: TaskId, now: SimTime) {
        if let LifeState::Running(cpu) = self.task(id).state {
            self.settle_cpu(cpu, now);
        }
    }

    /// Books the time of `cpu` up to `now`, for the CPU and for the task that holds it.
    #[inline]
    fn settle_cpu(&mut self, cpu: CpuId, now: SimTime) {
        let ledger = &mut self.cpus[cpu.index()];
        let portion = ledger.settle(now);
        let Some(id) = ledger.task() else { return };
        self.tasks[id.index()].book(portion);
    }

    fn settle_empty_turns(&mut self) {
        let mut members = vec![(0, 0); self.groups.len()];
        for task in &self.tasks {
            let (run, tasks) = &mut members[task.group as usize];
            *run += u128::from(task.times.run.get());
            *tasks += 1;
        }
        for (group, (run, tasks)) in self.groups.iter_mut().zip(members) {
            group.settle_empty(run, tasks);
        }
    }

    fn finish(&mut self, end: SimTime) {
        for cpu in 0..self.header.machine.cpus {
            self.settle_cpu(CpuId(cpu), end);
        }
        self.queues.settle(end);
        for index in 0..self.tasks.len() {
            let id = TaskId(u32::try_from(index).expect("task numbers have 32 bits"));
            self.leave_phase(id, end);
            let task = &mut self.tasks[index];
            let group = &mut self.groups[task.group as usize];
            if let Some((wait, _)) = task.leave_state(end) {
                group.waiting.record(wait);
            }
            // It still has its CPU: what it does there is no empty turn.
            if let Some(waited) = task.waited.take() {
                group.record_wait(waited);
            }
        }
        self.settle_empty_turns();
        self.end = Some(end);
    }
}

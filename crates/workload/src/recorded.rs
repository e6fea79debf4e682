//! A workload made of a recording: what each task ran, what it waited for, and whom it woke.

mod clocked;
mod course;
mod period;
#[cfg(test)]
pub(crate) mod tests;

use std::cell::Cell;
use std::mem;

use crate::{
    Capacity, Channel, ChannelKind, CpuSet, Dist, Group, INTERRUPT_PRIORITY, Operation,
    SchedPolicy, Scripted, Step, TaskKind, UtilClamps, Workload,
};
use clocked::Stints;
use course::Course;
pub use course::RecordedCourse;
use model::{
    Change, Costs, Event, EventMask, Header, Nanos, Op, PrevState, Profile, SimTime, Sink,
    TaskClass, TaskId, WakeCause, Wakeup, What,
};

/// Picoseconds of a nanosecond.
const PICOSECONDS: u64 = 1000;

/// The flag of a wakeup whose waker is about to sleep (`WF_SYNC`, kernel/sched/sched.h, 6.18).
const WF_SYNC: u64 = 0x10;

/// Collects the events of a run and makes a workload of them.
///
/// Time on a CPU becomes `run`. A task that slept and was woken by a task of the recording waits
/// for a message instead, which that task sends where it woke it. One that work from outside woke
/// sleeps until that moment of the recording, and so does one whose sleeps by the clock end at a
/// steady period, also until the ends of periods that it was too late for; all other sleeps keep
/// their length. A fork stays a fork. Who was bound to one CPU
/// from the begin stays bound, until it may use more. Synchronous wakeups stay so where the
/// recording tells them, and yields where callbacks were recorded. Spans,
/// counters and phases stay. Policies and affinities are set by whoever knows them. What a
/// recording does not have (deadlines, disks, locks as such) the workload does not have either.
#[derive(Debug, Default)]
pub struct RecordedLoad {
    header: Option<Header>,
    tasks: Vec<RecordedTask>,
    wakeups: Wakeups,
    acts: u64,
    end: SimTime,
    costs: RecordedCosts,
}

/// What the kernel's own work took of the recorded CPU time of tasks. A rerun on a machine that
/// charges for such work would have it twice; and without either a scheduler that switches less
/// would save nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordedCosts {
    /// A switch between two tasks, taken off the one that gets the CPU.
    pub switch: Nanos,
    /// A switch from the idle task, likewise.
    pub switch_idle: Nanos,
    /// Waking a task, taken off the waker.
    pub wakeup: Nanos,
}

impl RecordedCosts {
    /// What a machine with this profile charges for such work.
    #[must_use]
    pub fn of(profile: &Profile) -> Self {
        let of = |pick: fn(&Costs) -> u64| {
            let picoseconds = profile.costs().map_or(0, pick);
            Nanos::new(picoseconds / PICOSECONDS)
        };
        Self {
            switch: of(|it| it.switch),
            switch_idle: of(|it| it.switch_idle),
            wakeup: of(|it| it.wakeup),
        }
    }
}

/// Where the wakeups of a recording came from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wakeups {
    /// From tasks of the recording: they stay dependent on them.
    pub by_tasks: u64,
    /// From elsewhere: interrupts, timers, devices. They come after as long a sleep as recorded.
    pub by_timers: u64,
    /// Work from outside, as far as the recording tells it apart. It comes when it came.
    pub from_outside: u64,
}

/// Factor on the recorded CPU time of tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CostScale(u32);

impl CostScale {
    /// As much as recorded.
    pub const ONE: Self = Self(1_000_000);

    /// So many millionths of what was recorded.
    #[must_use]
    pub const fn millionths(millionths: u32) -> Self {
        Self(millionths)
    }

    fn of(self, span: Nanos) -> Nanos {
        let scaled = u128::from(span.get()) * u128::from(self.0) / 1_000_000;
        Nanos::new(u64::try_from(scaled).unwrap_or(u64::MAX))
    }
}

#[derive(Debug)]
struct RecordedTask {
    group: u32,
    index: u32,
    policy: SchedPolicy,
    /// The CPUs that it is bound to; `None`: all.
    cpus: Option<CpuSet>,
    /// Whether it may use one CPU only, which is the one where it runs first.
    is_bound: bool,
    /// Whether a task of the recording forks it.
    forked: bool,
    /// When it first became runnable, unless it was forked.
    start: Nanos,
    awake: bool,
    /// Since when it is on a CPU.
    running: Option<SimTime>,
    /// What it has run since its last operation.
    burst: Nanos,
    /// Since when it sleeps; its birth counts as falling asleep.
    asleep: SimTime,
    has_run: bool,
    /// Spans that have begun.
    spans: Vec<u32>,
    /// How the wakeup that is under way wakes it.
    waking: Waking,
    script: Vec<Act>,
    stints: Stints,
    course: Course,
    /// When it exited.
    ended: Option<SimTime>,
    /// Whether it computes until an alarm, and keeps when that is.
    polls: bool,
}

/// What a task does. Bursts are scaled when the workload is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    Run(Nanos),
    /// Computes until so long after its begin, by the clock.
    Poll(Nanos),
    /// Sleeps for so long; [`Act::Woken`] follows.
    Sleep(Nanos),
    /// The clock woke it at this time after the begin. It stands by itself, so that no act is
    /// larger than it must be: a recording has millions.
    Woken(Nanos),
    /// Sleeps until so long after the begin.
    SleepUntil(Nanos),
    /// Waits to be woken by a task of the recording.
    Await(Waking),
    /// Wakes a task that waits.
    Wake(TaskId, Waking),
    Fork(TaskId),
    /// What is the same in the load.
    Does(Scripted),
}

const _: () = assert!(size_of::<Act>() == 16);

/// How a task wakes another one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Waking {
    #[default]
    Plain,
    /// As one that is about to sleep.
    Sync,
}

impl RecordedTask {
    /// Books what it has run until `now`.
    fn settle(&mut self, now: SimTime) {
        if let Some(since) = self.running.filter(|since| *since < now) {
            self.burst += now.since(since);
            self.course.add(since, now);
            self.stints.add(since, now, self.script.len());
            self.running = Some(now);
        }
    }

    /// Ends the burst, if it has run at all.
    fn flush(&mut self) {
        if !self.burst.is_zero() {
            let burst = mem::replace(&mut self.burst, Nanos::ZERO);
            self.script.push(Act::Run(burst));
        }
    }

    fn act(&mut self, now: SimTime, act: Act) {
        self.settle(now);
        self.flush();
        self.script.push(act);
    }
}

impl RecordedLoad {
    /// A recording of which nothing is known.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Where the wakeups came from.
    #[must_use]
    pub const fn wakeups(&self) -> Wakeups {
        self.wakeups
    }

    /// How many operations the workload will have, about. Memory grows with them.
    #[must_use]
    pub const fn operations(&self) -> u64 {
        self.acts
    }

    /// How long the recording lasted; nothing before it is over.
    #[must_use]
    pub const fn lasted(&self) -> Nanos {
        self.end.since(SimTime::ZERO)
    }

    /// Takes this off what is recorded from now on. Of a turn that was shorter nothing is left.
    pub const fn set_costs(&mut self, costs: RecordedCosts) {
        self.costs = costs;
    }

    /// Gives a task another policy than the normal one.
    pub fn set_policy(&mut self, task: TaskId, policy: SchedPolicy) {
        if let Some(task) = self.task(task) {
            task.policy = policy;
        }
    }

    /// Binds a task to CPUs.
    pub fn set_cpus(&mut self, task: TaskId, cpus: CpuSet) {
        if let Some(task) = self.task(task) {
            task.cpus = Some(cpus);
        }
    }

    /// Lets a task that only computed stop when its alarm clock rings, and not when it has had its
    /// recorded CPU time. Says whether it did so: what others wait for cannot be cut off. Nothing
    /// of the recording may come after that.
    pub fn set_alarm(&mut self, task: TaskId, alarm: SimTime) -> bool {
        self.task(task).is_some_and(|it| it.stop_by(alarm))
    }

    /// The tasks that only computed and ended within `tick` of each other although they had
    /// computed for times that differ by more: most at one moment, with that moment. They may stop
    /// by the clock, which no event of the scheduler tells.
    #[must_use]
    pub fn end_together(&self, tick: Nanos) -> Option<(usize, SimTime)> {
        let mut ends: Vec<(SimTime, Nanos)> = self
            .tasks
            .iter()
            .filter_map(RecordedTask::computed_until)
            .collect();
        ends.sort_unstable();
        let groups = (0..ends.len()).filter_map(|first| {
            let (begin, _) = ends[first];
            let is_near = |it: &&(SimTime, Nanos)| it.0.since(begin) <= tick;
            let near: Vec<_> = ends[first..].iter().take_while(is_near).collect();
            let computed = near.iter().map(|it| it.1.get());
            let (least, most) = (computed.clone().min()?, computed.max()?);
            let differs = most - least > tick.get();
            differs.then_some((near.len(), near[near.len() - 1].0))
        });
        groups.max_by_key(|it| it.0)
    }

    /// The group that a task will be in the workload; `None` if it did not run.
    #[must_use]
    pub fn group_of(&self, task: TaskId) -> Option<u32> {
        self.tasks.get(task.index()).filter(|it| it.has_run)?;
        let before = self.tasks[..task.index()].iter().filter(|it| it.has_run);
        u32::try_from(before.count()).ok()
    }

    fn task(&mut self, task: TaskId) -> Option<&mut RecordedTask> {
        self.tasks.get_mut(task.index())
    }

    fn take(&mut self, event: &Event) {
        let &Event { time, task, .. } = event;
        match event.what() {
            What::New {
                group,
                index,
                parent,
                ..
            } => self.born(event, (group, index), parent),
            What::Wakeup(wakeup) => self.woken(event, wakeup),
            What::Switch {
                prev,
                state,
                overhead,
            } => {
                self.left(prev, state, time);
                let cost = match prev {
                    TaskId::NONE => self.costs.switch_idle,
                    _ => self.costs.switch,
                };
                self.runs(event, overhead.max(cost));
            }
            What::Steal { span } => {
                if let Some(running) = self.task(task) {
                    running.settle(time);
                    // What is stolen is not the task's own work.
                    let until = time + span;
                    running.running = running.running.map(|since| since.max(until));
                }
            }
            What::Count { counter, by } => {
                let by = i64::try_from(by).unwrap_or(i64::MAX);
                self.say(event, Scripted::Count(counter, by));
            }
            What::SpanBegin { span } => self.say(event, Scripted::SpanBegin(span)),
            What::SpanEnd { span, .. } => self.say(event, Scripted::SpanEnd(span)),
            What::Phase { phase } => self.say(event, Scripted::Phase(phase)),
            // `prev_state` has a yield look like a preemption: only a callback tells them apart.
            What::Callback { op: Op::Yield, .. } => self.say(event, Scripted::Yield),
            // Events of earlier versions have the flag here only.
            What::Callback {
                op: Op::SelectCpu,
                a: flags,
                ..
            } => {
                if let Some(task) = self.task(task).filter(|_| flags & WF_SYNC != 0) {
                    task.waking = Waking::Sync;
                }
            }
            What::Change(change) => self.changed(event, change),
            _ => {}
        }
    }

    fn changed(&mut self, event: &Event, change: Change) {
        match change {
            Change::Nice(nice) => self.say(event, Scripted::Nice(nice.clamp(-20, 19))),
            Change::Affinity(cpus) => self.allowed(event, cpus),
            Change::Class {
                class: TaskClass::RealTime,
                priority,
            } => {
                // Our own recorder does not tell which priority it has.
                let priority = match priority {
                    0 => INTERRUPT_PRIORITY,
                    told => told.min(99),
                };
                match self.task(event.task) {
                    Some(task) if !task.has_run => task.policy = SchedPolicy::Fifo(priority),
                    _ => self.say(event, Scripted::Realtime(priority)),
                }
            }
            Change::Class {
                class: TaskClass::Fair | TaskClass::Policy,
                ..
            } => self.say(event, Scripted::Fair),
            Change::Class { .. } => {}
        }
    }

    /// It may use so many CPUs from now on. Which ones is not told: of one, its first turn says it.
    fn allowed(&mut self, event: &Event, cpus: u64) {
        let Some(task) = self.task(event.task) else {
            return;
        };
        if !task.has_run {
            task.is_bound = cpus == 1;
        } else if task.is_bound && cpus > 1 {
            task.is_bound = false;
            self.say(event, Scripted::Unbind);
        }
    }

    fn say(&mut self, event: &Event, does: Scripted) {
        let Some(task) = self.task(event.task) else {
            return;
        };
        match does {
            Scripted::SpanBegin(span) => task.spans.push(span),
            Scripted::SpanEnd(span) => {
                // It may have begun before the recording did.
                let Some(at) = task.spans.iter().position(|open| *open == span) else {
                    return;
                };
                task.spans.swap_remove(at);
            }
            _ => {}
        }
        task.act(event.time, Act::Does(does));
    }

    fn born(&mut self, event: &Event, (group, index): (u32, u32), parent: TaskId) {
        // A root task is there from the begin, whenever the recording first sees it.
        let asleep = match parent {
            TaskId::NONE => SimTime::ZERO,
            _ => event.time,
        };
        let parent = self.task(parent).filter(|parent| parent.has_run);
        let forked = parent.is_some();
        if let Some(parent) = parent {
            parent.act(event.time, Act::Fork(event.task));
        }
        self.tasks.push(RecordedTask {
            group,
            index,
            policy: SchedPolicy::Normal,
            cpus: None,
            is_bound: false,
            forked,
            start: Nanos::ZERO,
            awake: false,
            running: None,
            burst: Nanos::ZERO,
            asleep,
            has_run: false,
            spans: Vec::new(),
            waking: Waking::Plain,
            script: Vec::new(),
            stints: Stints::default(),
            course: Course::default(),
            ended: None,
            polls: false,
        });
    }

    fn woken(&mut self, event: &Event, wakeup: Wakeup) {
        let waker = wakeup.waker;
        // The waker may have left its CPU by now: another CPU took the wakeup from a list. Then it
        // wakes as the last thing that it did.
        let by_task = waker != event.task && self.task(waker).is_some_and(|waker| waker.has_run);
        let waking = self
            .task(event.task)
            .map(|task| mem::take(&mut task.waking));
        let waking = if wakeup.sync {
            Waking::Sync
        } else {
            waking.unwrap_or_default()
        };
        let first = self.task(event.task).is_some_and(|task| !task.awake);
        let forked = self.task(event.task).is_some_and(|task| task.forked);
        // A forked task starts because it was forked; one that was awake when the recording
        // began was woken before.
        let before = wakeup.cause == WakeCause::Before;
        let is_start = first && (forked || before || event.time == SimTime::ZERO);
        let outside = wakeup.cause == WakeCause::Outside;
        self.acts += 3;
        if by_task && !is_start {
            self.wakeups.by_tasks += 1;
            let cost = self.costs.wakeup;
            if let Some(waker) = self.task(waker) {
                waker.act(event.time, Act::Wake(event.task, waking));
                waker.running = waker.running.map(|since| since + cost);
            }
        } else if outside && !is_start {
            self.wakeups.from_outside += 1;
        } else if !is_start {
            self.wakeups.by_timers += 1;
        }
        let Some(task) = self.task(event.task) else {
            return;
        };
        task.awake = true;
        if is_start {
            return;
        }
        let slept = event.time.since(task.asleep);
        let came = event.time.since(SimTime::ZERO);
        match (by_task, first) {
            (true, _) => task.script.push(Act::Await(waking)),
            (false, true) => task.start = slept,
            (false, false) if outside => task.script.push(Act::SleepUntil(came)),
            (false, false) => task.script.extend([Act::Sleep(slept), Act::Woken(came)]),
        }
    }

    /// `prev` left its CPU.
    fn left(&mut self, prev: TaskId, state: PrevState, now: SimTime) {
        if let Some(prev) = self.task(prev) {
            prev.settle(now);
            prev.running = None;
            if state != PrevState::Runnable {
                prev.flush();
                prev.asleep = now;
                prev.ended = (state == PrevState::Dead).then_some(now);
            }
        }
    }

    /// The task of a switch got a CPU.
    fn runs(&mut self, event: &Event, overhead: Nanos) {
        if let Some(next) = self.task(event.task) {
            next.running = Some(event.time + overhead);
            if next.is_bound && !next.has_run {
                next.cpus = Some(CpuSet::single(event.cpu));
            }
            next.has_run = true;
        }
    }

    /// The workload as of [`Self::into_workload`], and where its tasks stand in the recording.
    #[must_use]
    pub fn with_course(
        mut self,
        file: &str,
        scale: CostScale,
    ) -> Option<(Workload, RecordedCourse)> {
        let tasks = self.tasks.iter_mut().filter(|task| task.has_run);
        let courses = tasks.map(|task| mem::take(&mut task.course)).collect();
        let workload = self.into_workload(file, scale)?;
        Some((workload, Course::together(courses, scale)))
    }

    /// The workload: a group for each task that ran, with `scale` of its CPU time. `None` if
    /// nothing was recorded. `file` is what messages call the recording.
    #[must_use]
    pub fn into_workload(self, file: &str, scale: CostScale) -> Option<Workload> {
        let header = self.header?;
        // A task that never ran woke nobody, and neither is anybody missed that it would wake.
        let numbers: Vec<Option<u32>> = self
            .tasks
            .iter()
            .scan(0, |next, task| {
                let number = task.has_run.then_some(*next);
                *next += u32::from(task.has_run);
                Some(number)
            })
            .collect();
        let mut tasks = self.tasks;
        tasks.retain(|task| task.has_run);
        let maker = Maker {
            numbers,
            scale,
            tasks: u32::try_from(tasks.len()).unwrap_or(u32::MAX),
            spare: Cell::new(MISSED),
        };
        let groups: Vec<Group> = (0..)
            .zip(&mut tasks)
            .map(|(own, task)| Group {
                name: name(&header, task),
                count: u32::from(!task.forked),
                nice: header
                    .groups
                    .get(task.group as usize)
                    .map_or(0, |group| group.nice),
                policy: task.policy,
                cgroup: None,
                cpus: task.cpus.clone(),
                start: Dist::Const(task.start),
                kind: TaskKind::Process,
                migration_disabled: false,
                one_each_cpu: false,
                free_elsewhere: true,
                background: false,
                footprint: None,
                mem: 0,
                clamps: UtilClamps::default(),
                // Nothing of a task is there twice at any time, but of one.
                body: maker.body(own, mem::take(&mut task.script)),
                variables: u32::from(task.polls),
            })
            .collect();
        // Of the kinds of channels a queue wakes plainly, a socket as one that is about to sleep.
        let kinds = [
            (ChannelKind::Queue, "wakes"),
            (ChannelKind::Unix, "wakes synchronously"),
        ];
        let channels = kinds
            .into_iter()
            .flat_map(|(kind, verb)| tasks.iter().map(move |task| (kind, verb, task)));
        let channels = channels.map(|(kind, verb, task)| Channel {
            name: format!("{verb} {}", name(&header, task)),
            kind,
            count: 1,
            capacity: Capacity::Unbounded,
            msg: 1,
        });
        Some(Workload {
            name: header.workload.clone(),
            file: file.to_owned(),
            seed: header.seed,
            machine: header.machine.clone(),
            channels: channels.collect(),
            groups,
            spans: header.spans,
            counters: header.counters,
            phases: header.phases,
            ..Workload::default()
        })
    }
}

/// The recorded task's name.
fn name(header: &Header, task: &RecordedTask) -> String {
    let Some(group) = header.groups.get(task.group as usize) else {
        return format!("task.{}", task.index);
    };
    match group.count {
        1 if task.index == 0 => group.name.clone(),
        _ => format!("{}.{}", group.name, task.index),
    }
}

/// At most so many sleeps are added to a load, so that no recording makes one without bound.
const MISSED: u64 = 1_000_000;

/// Turns acts into operations.
struct Maker {
    /// By recorded task: its group and its first channel in the workload.
    numbers: Vec<Option<u32>>,
    /// Tasks of the workload: a task's second channel is so many behind its first one.
    tasks: u32,
    scale: CostScale,
    /// How many missed sleeps may still be added.
    spare: Cell<u64>,
}

impl Maker {
    /// What the task of group and first channel `own` does.
    fn body(&self, own: u32, script: Vec<Act>) -> Vec<Step> {
        let acts = match period::kept(&script) {
            Some(period) => period::with_missed(&script, period, &self.spare),
            None => script,
        };
        let script: Vec<Scripted> = acts
            .into_iter()
            .filter_map(|act| self.scripted(own, act))
            .collect();
        let op = Operation::Script(script.into());
        vec![Step { op, line: 1 }]
    }

    /// What the task of group and channel `own` does; `None` for what has no effect.
    fn scripted(&self, own: u32, act: Act) -> Option<Scripted> {
        let number = |task: TaskId| *self.numbers.get(task.index())?;
        let channel = |task: u32, waking| match waking {
            Waking::Plain => task,
            Waking::Sync => self.tasks + task,
        };
        Some(match act {
            Act::Run(span) => Scripted::Run(self.scale.of(span)),
            Act::Poll(span) => Scripted::Poll(span),
            Act::Sleep(span) => Scripted::Sleep(span),
            Act::Woken(_) => return None,
            Act::SleepUntil(span) => Scripted::SleepUntil(span),
            Act::Await(waking) => Scripted::Recv(channel(own, waking)),
            Act::Wake(task, waking) => Scripted::Send(channel(number(task)?, waking)),
            Act::Fork(task) => Scripted::Fork(number(task)?),
            Act::Does(scripted) => scripted,
        })
    }
}

impl Sink for RecordedLoad {
    fn wants(&self) -> EventMask {
        EventMask::ALL
    }

    fn begin(&mut self, header: &Header) {
        self.header = Some(header.clone());
    }

    fn events(&mut self, events: &[Event]) {
        events.iter().for_each(|event| self.take(event));
    }

    fn finish(&mut self, end: SimTime) {
        self.end = end;
        for task in &mut self.tasks {
            task.settle(end);
            task.flush();
            task.script.shrink_to_fit();
        }
    }
}

//! What is wrong with a run, counted without a line of code that explains runs.
//!
//! A policy states what it keeps, as a bound on the wait of a task and by whether a CPU may idle
//! beside one. [`Truth`] follows the bare events and counts: waits against ten times that bound,
//! idle CPUs beside tasks that may use them, and ejections. What a judge says of the same run is
//! held against it.

use model::{
    Change, CpuId, Event, EventKind, EventMask, Header, Nanos, PrevState, SimTime, Sink, Summary,
    TaskClass, TaskId, What,
};
use workload::{RunSpec, SchedPolicy};

/// How long a task may wait under a policy, at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// One quantum of each that wants the CPU.
    Round(Nanos),
    /// As long as it takes until its weight has earned one quantum.
    Weight(Nanos),
    /// For ever, if others want the CPU: by design.
    None,
}

/// What a policy states about itself.
#[derive(Clone, Copy, Debug)]
pub struct Stated {
    /// Its name.
    pub policy: &'static str,
    /// How long a task may wait.
    pub bound: Bound,
    /// Whether a CPU may idle beside a task that waits and may use it.
    pub may_idle: bool,
}

const fn stated(policy: &'static str, bound: Bound, may_idle: bool) -> Stated {
    Stated {
        policy,
        bound,
        may_idle,
    }
}

const fn round(ms: u64) -> Bound {
    Bound::Round(Nanos::from_millis(ms))
}

const fn weight(ms: u64) -> Bound {
    Bound::Weight(Nanos::from_millis(ms))
}

/// Sound policies. The quanta are those of the policies' own knobs and heads: the longest that one
/// task gets in a round.
pub const SOUND: &[Stated] = &[
    stated("fifo", round(20), false),
    stated("vtime", weight(20), false),
    stated("fair", weight(4), false),
    stated("stride", weight(10), false),
    stated("lottery", weight(10), false),
    stated("cfs", weight(10), false),
    stated("eevdf", weight(10), false),
    stated("goodness", round(420), false),
    stated("elsc", round(420), false),
    stated("o1", round(800), false),
    stated("mlfq", round(1_000), false),
    // The best stair goes first for as long as there is somebody, without a guard.
    stated("staircase", Bound::None, false),
    stated("staircase5", Bound::None, false),
    stated("sjf", Bound::None, false),
    stated("srtf", Bound::None, false),
    stated("feedback", Bound::None, false),
    stated("design-rank", Bound::None, false),
    stated("design-lifo", Bound::None, false),
    stated("design-deadline", Bound::None, false),
    stated("design-wakers", Bound::None, false),
    stated("design-background", Bound::None, false),
    stated("design-partition", round(5), true),
    stated("design-compact", round(45), true),
    stated("design-batch", round(40), true),
    stated("design-budget", round(105), true),
    stated("design-reserved", round(5), true),
];

/// Every policy has so much more: ticks, real-time tasks between, the kernel's own work.
const SLACK: Nanos = Nanos::from_millis(100);
/// A wait counts beyond so many bounds.
const BOUNDS: u64 = 10;
/// A CPU that idles for so long beside a task that may use it is no matter of a moment.
const IDLE: Nanos = Nanos::from_millis(200);

/// What was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// Nothing.
    Nothing,
    /// The kernel ended the policy: its message.
    Ejected(String),
    /// A task waited longer than ten bounds: its name, how long, and the bound.
    Waited(String, Nanos, Nanos),
    /// A CPU idled for so long beside a task that may use it.
    Idled(String, Nanos),
    /// A task waited for so long that only real-time tasks may explain it, or not.
    CannotSay(String),
}

/// Follows a run.
#[derive(Debug)]
pub struct Truth {
    stated: Stated,
    /// By group: whether its tasks are above the policy from birth.
    high: Vec<bool>,
    names: Vec<String>,
    nice: Vec<i8>,
    tasks: Vec<Follow>,
    cpus: Vec<Cpu>,
    /// CPU time of tasks above the policy so far.
    above: Nanos,
    /// Weight of the runnable tasks now, how many they are, and the most of each so far.
    runnable: (u64, u64),
    most: (u64, u64),
    worst: Option<Seen>,
    doubt: Option<Seen>,
}

#[derive(Clone, Debug)]
struct Follow {
    name: String,
    is_high: bool,
    nice: i64,
    mask: u64,
    is_runnable: bool,
    /// Since when it waits, with `above` as it was then.
    waits: Option<(SimTime, Nanos)>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Cpu {
    runs: Option<TaskId>,
    since: SimTime,
}

impl Truth {
    /// For a run of `spec` under a policy that states this.
    #[must_use]
    pub fn new(stated: Stated, spec: &RunSpec) -> Self {
        let above = |policy: &SchedPolicy| {
            matches!(
                policy,
                SchedPolicy::Fifo(_) | SchedPolicy::RoundRobin(_) | SchedPolicy::Deadline(_)
            )
        };
        let groups = spec.workload.groups.iter();
        Self {
            stated,
            high: groups.map(|group| above(&group.policy)).collect(),
            names: Vec::new(),
            nice: Vec::new(),
            tasks: Vec::new(),
            cpus: vec![Cpu::default(); spec.machine.cpus.into()],
            above: Nanos::ZERO,
            runnable: (0, 0),
            most: (0, 0),
            worst: None,
            doubt: None,
        }
    }

    /// What was seen in the run that `summary` is of.
    #[must_use]
    pub fn seen(self, summary: &Summary) -> Seen {
        if summary.exit.kind.is_error() {
            return Seen::Ejected(summary.exit.message.clone());
        }
        self.worst.or(self.doubt).unwrap_or(Seen::Nothing)
    }

    fn bound(&self, task: &Follow) -> Option<Nanos> {
        let (weights, tasks) = self.most;
        let own = match self.stated.bound {
            Bound::None => return None,
            Bound::Round(quantum) => quantum.get() * tasks,
            Bound::Weight(quantum) => quantum.get() * weights / weight_of(task.nice),
        };
        Some(Nanos::new(own + SLACK.get()))
    }

    fn set_runnable(&mut self, id: TaskId, is: bool) {
        let task = &mut self.tasks[id.index()];
        if task.is_runnable == is || task.is_high {
            task.is_runnable = is;
            return;
        }
        task.is_runnable = is;
        let weight = weight_of(task.nice);
        if is {
            self.runnable = (self.runnable.0 + weight, self.runnable.1 + 1);
        } else {
            let (weights, tasks) = self.runnable;
            self.runnable = (weights.saturating_sub(weight), tasks.saturating_sub(1));
        }
        self.most = (
            self.most.0.max(self.runnable.0),
            self.most.1.max(self.runnable.1),
        );
    }

    fn begin_wait(&mut self, id: TaskId, now: SimTime) {
        let above = self.above;
        let task = &mut self.tasks[id.index()];
        if !task.is_high {
            task.waits = Some((now, above));
        }
    }

    fn end_wait(&mut self, id: TaskId, now: SimTime) {
        self.beside(Some(id), None, now);
        let Some((since, above)) = self.tasks[id.index()].waits.take() else {
            return;
        };
        let task = &self.tasks[id.index()];
        let Some(bound) = self.bound(task) else {
            return;
        };
        let (waited, limit) = (now.since(since), bound.get() * BOUNDS);
        let taken = self.above.get() - above.get();
        if waited.get().saturating_sub(taken) > limit {
            let seen = Seen::Waited(task.name.clone(), waited, bound);
            self.worst.get_or_insert(seen);
        } else if waited.get() > limit {
            let seen = Seen::CannotSay(task.name.clone());
            self.doubt.get_or_insert(seen);
        }
    }

    /// How long idle CPUs have stood beside waiting tasks that may use them: all, or those of one
    /// task or CPU, whose state ends now.
    fn beside(&mut self, task: Option<TaskId>, cpu: Option<CpuId>, now: SimTime) {
        if self.stated.may_idle {
            return;
        }
        let idle = (0u16..).map(CpuId).zip(&self.cpus);
        let idle = idle.filter(|(number, state)| {
            state.runs.is_none() && cpu.is_none_or(|only| only == *number)
        });
        for (number, state) in idle {
            let all = 0..self.tasks.len();
            let waiting = all.filter(|at| task.is_none_or(|only| only.index() == *at));
            for at in waiting {
                let own = &self.tasks[at];
                let Some((since, _)) = own.waits else {
                    continue;
                };
                let span = now.since(since.max(state.since).min(now));
                if own.mask >> number.0 & 1 != 0 && span > IDLE {
                    let seen = Seen::Idled(own.name.clone(), span);
                    self.worst.get_or_insert(seen);
                    return;
                }
            }
        }
    }

    fn switch(&mut self, event: &Event, prev: TaskId, state: PrevState) {
        let (cpu, now) = (event.cpu, event.time);
        let before = self.cpus[cpu.index()];
        match before.runs {
            None => self.beside(None, Some(cpu), now),
            Some(ran) if self.tasks[ran.index()].is_high => {
                self.above += now.since(before.since);
            }
            Some(_) => {}
        }
        if prev != TaskId::NONE {
            match state {
                PrevState::Runnable => self.begin_wait(prev, now),
                _ => self.set_runnable(prev, false),
            }
        }
        let next = Some(event.task).filter(|task| *task != TaskId::NONE);
        if let Some(next) = next {
            self.end_wait(next, now);
        }
        self.cpus[cpu.index()] = Cpu {
            runs: next,
            since: now,
        };
    }

    /// A change begins a wait anew.
    fn changed(&mut self, id: TaskId, change: Change, now: SimTime) {
        let was = self.tasks[id.index()].is_runnable;
        let waits = self.tasks[id.index()].waits.is_some();
        self.end_wait(id, now);
        self.set_runnable(id, false);
        let task = &mut self.tasks[id.index()];
        match change {
            Change::Nice(nice) => task.nice = nice,
            Change::Class { class, .. } => {
                task.is_high = matches!(
                    class,
                    TaskClass::RealTime | TaskClass::Deadline | TaskClass::Stop
                );
            }
            Change::Affinity(_) => {}
        }
        self.set_runnable(id, was);
        if waits {
            self.begin_wait(id, now);
        }
    }

    fn born(&mut self, group: u32, index: u32) {
        let group = group as usize;
        self.tasks.push(Follow {
            name: format!("{}.{index}", self.names[group]),
            is_high: self.high.get(group).copied().unwrap_or(false),
            nice: self.nice[group].into(),
            mask: u64::MAX,
            is_runnable: false,
            waits: None,
        });
    }
}

impl Sink for Truth {
    fn wants(&self) -> EventMask {
        EventMask::NONE
            .with(EventKind::New)
            .with(EventKind::Wakeup)
            .with(EventKind::Switch)
            .with(EventKind::Change)
            .with(EventKind::Allowed)
    }

    fn begin(&mut self, header: &Header) {
        let groups = || header.groups.iter();
        self.names = groups().map(|group| group.name.clone()).collect();
        self.nice = groups().map(|group| group.nice).collect();
    }

    fn events(&mut self, events: &[Event]) {
        for event in events {
            match event.what() {
                What::New { group, index, .. } => self.born(group, index),
                What::Wakeup(_) => {
                    self.set_runnable(event.task, true);
                    self.begin_wait(event.task, event.time);
                }
                What::Switch { prev, state, .. } => self.switch(event, prev, state),
                What::Change(change) => self.changed(event.task, change, event.time),
                What::Allowed { mask, .. } => {
                    let waits = self.tasks[event.task.index()].waits.is_some();
                    self.end_wait(event.task, event.time);
                    self.tasks[event.task.index()].mask = mask;
                    if waits {
                        self.begin_wait(event.task, event.time);
                    }
                }
                _ => {}
            }
        }
    }

    fn finish(&mut self, end: SimTime) {
        for at in 0..self.tasks.len() {
            self.end_wait(TaskId(u32::try_from(at).expect("a task number")), end);
        }
    }
}

/// What a nice value weighs: a quarter more each step, 1024 at 0 (`sched_prio_to_weight`, kernel
/// 6.18, kernel/sched/core.c, to within a hundredth).
fn weight_of(nice: i64) -> u64 {
    let steps = i32::try_from(-nice).expect("a nice value");
    (1024.0 * 1.25_f64.powi(steps)) as u64
}

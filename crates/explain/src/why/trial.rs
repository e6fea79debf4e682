//! Looks at one task's wait in a run that is repeated to try something (docs/explain.md, Trials).

use std::collections::BTreeMap;

use model::{CpuId, Event, EventKind, EventMask, Header, Nanos, SimTime, Sink, TaskId, What};

use super::OVERLONG;
use super::finding::Standing;
use super::state::{GLOBAL, Kind, State, Where};
use super::turn::SLICE_DFL;
use super::verdict::Right;

/// A cure must not make others lag by the weights of all, whatever the policy promises.
const BY_WEIGHT: Option<Right> = Some(Right::Weight);

/// What there was to see when the task waited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Situation {
    /// Where the task was.
    pub standing: Standing,
    /// The CPUs that it may use.
    pub usable: Vec<CpuId>,
    /// Those of them that idled.
    pub idle: Vec<CpuId>,
    /// Those of them that a task of the policy's had.
    pub held: Vec<CpuId>,
    /// Queues of the policy's at which one of them has ever looked.
    pub read: Vec<u64>,
    /// Other tasks of the policy's that waited.
    pub others: Vec<TaskId>,
    /// CPUs of the machine.
    pub cpus: u16,
    /// A round of the task: docs/explain.md.
    pub round: Nanos,
}

/// What became of the wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// When the task ran.
    pub time: SimTime,
    /// Where.
    pub cpu: CpuId,
    /// By how much the lag of another task has grown most, since the moment.
    pub grown: Nanos,
    /// The longest slice.
    pub slice: Nanos,
    /// The lag of another task has passed a round of that task, since the moment.
    pub passes: bool,
}

/// Follows a run until a task comes to run at or after a moment.
#[derive(Clone, Debug)]
pub struct Look {
    state: State,
    task: TaskId,
    at: SimTime,
    /// The moment has come, and is over.
    has_come: bool,
    is_over: bool,
    situation: Option<Situation>,
    /// Of other tasks that waited at the moment: the lag, and whether it was beyond a round.
    lags: BTreeMap<TaskId, (Nanos, bool)>,
    /// The scheduler whose queue the task was in when the moment came, and was in last.
    waited_for: Option<u32>,
    waits_for: Option<u32>,
    /// The task has run because its scheduler has ended, or it has another one.
    is_lost: bool,
    ended: Option<End>,
}

impl Look {
    /// At `task` from `at` on.
    #[must_use]
    pub fn new(task: TaskId, at: SimTime) -> Self {
        Self {
            state: State::default(),
            task,
            at,
            has_come: false,
            is_over: false,
            situation: None,
            lags: BTreeMap::new(),
            waited_for: None,
            waits_for: None,
            is_lost: false,
            ended: None,
        }
    }

    /// What there was to see at the moment; `None` if the task did not wait, or the run was over.
    #[must_use]
    pub fn situation(&self) -> Option<&Situation> {
        self.situation.as_ref()
    }

    /// How the wait ended, if it did.
    #[must_use]
    pub const fn ended(&self) -> Option<End> {
        self.ended
    }

    /// Something happens at `time`, or the run ends.
    fn come_to(&mut self, time: SimTime) {
        if time >= self.at && !self.has_come {
            self.has_come = true;
            self.note_lags();
        }
        if time > self.at && !self.is_over {
            self.is_over = true;
            self.see();
        }
    }

    /// The scheduler in whose own queue the task is: that of a CPU is nobody's.
    fn queues_scheduler(&self) -> Option<u32> {
        let (queue, _) = self.state.entry(self.task)?;
        let is_own = State::kind_of(queue.id) == Kind::Policy || queue.id == GLOBAL;
        is_own.then_some(queue.of)
    }

    /// The moment comes.
    fn note_lags(&mut self) {
        self.waited_for = self.queues_scheduler();
        let (state, now) = (&self.state, self.at);
        let waiting = state.waiting().into_iter();
        let others = waiting.filter(|id| *id != self.task && !state.tasks[id.index()].outranks());
        self.lags = others
            .map(|id| (id, (state.lag(id, now), state.is_owed(id, now, BY_WEIGHT))))
            .collect();
    }

    /// The moment is over.
    fn see(&mut self) {
        if self.state.waited(self.task, self.at).is_some() {
            self.situation = Some(self.situation_now());
        }
    }

    fn situation_now(&self) -> Situation {
        let (state, task) = (&self.state, self.task);
        let usable = state.usable(task);
        let of = |cpu: &CpuId| state.cpus[cpu.index()].task;
        let is_held = |cpu: &CpuId| {
            let holder = of(cpu).and_then(|task| state.tasks.get(task.index()));
            holder.is_some_and(|holder| !holder.outranks())
        };
        let own = state.entry(task).map(|(queue, _)| queue.of);
        let read = state.queues.values().filter(|queue| {
            State::kind_of(queue.id) == Kind::Policy
                && own.is_none_or(|own| own == queue.of)
                && usable.iter().any(|cpu| queue.is_read_by(*cpu))
        });
        let waiting = state.waiting().into_iter();
        let others = waiting.filter(|id| *id != task && !state.tasks[id.index()].outranks());
        Situation {
            standing: self.standing(),
            idle: usable
                .iter()
                .copied()
                .filter(|cpu| of(cpu).is_none())
                .collect(),
            held: usable.iter().copied().filter(is_held).collect(),
            read: read.map(|queue| queue.id).collect(),
            others: others.collect(),
            cpus: state.cpus.len() as u16,
            round: state.round(task),
            usable,
        }
    }

    fn standing(&self) -> Standing {
        let task = &self.state.tasks[self.task.index()];
        match (task.place, self.state.entry(self.task)) {
            (Where::Kept, _) => Standing::Nowhere,
            (Where::Queue(_), Some((queue, _))) => match State::kind_of(queue.id) {
                Kind::Local(cpu) => Standing::Local(cpu),
                Kind::Global => Standing::Global,
                Kind::Policy => Standing::Queue(queue.id),
            },
            _ => Standing::Unknown,
        }
    }

    /// The task runs now.
    fn end(&self, event: &Event) -> End {
        let (state, now) = (&self.state, event.time);
        let (mut grown, mut passes) = (Nanos::ZERO, false);
        for id in state.waiting() {
            if id == self.task || state.tasks[id.index()].outranks() {
                continue;
            }
            let (before, was_owed) = self.lags.get(&id).copied().unwrap_or_default();
            let lag = state.lag(id, now).get();
            // A wait that has begun since begins with no lag.
            grown = grown.max(Nanos::new(lag.saturating_sub(before.get())));
            passes |= !was_owed && state.is_owed(id, now, BY_WEIGHT);
        }
        let slices = state.tasks.iter().filter_map(|task| task.slice);
        let slices = slices.map(|(slice, _)| slice.min(OVERLONG));
        End {
            time: now,
            cpu: event.cpu,
            grown,
            slice: Nanos::new(slices.max().unwrap_or(SLICE_DFL).max(SLICE_DFL)),
            passes,
        }
    }
}

impl Sink for Look {
    fn wants(&self) -> EventMask {
        EventMask::ALL.union(EventMask::DECISIONS)
    }

    fn begin(&mut self, header: &Header) {
        self.state.begin(header);
    }

    fn events(&mut self, events: &[Event]) {
        for event in events {
            if self.has_enough() {
                return;
            }
            self.come_to(event.time);
            let runs = event.task == self.task && matches!(event.what(), What::Switch { .. });
            self.state.take(event);
            if event.task == self.task && event.kind == EventKind::Insert {
                self.waits_for = self.queues_scheduler().or(self.waits_for);
            }
            if runs && event.time >= self.at {
                let both = self.waited_for.zip(self.waits_for);
                self.is_lost = both.is_some_and(|(then, now)| then != now);
                self.ended = (!self.is_lost).then(|| self.end(event));
            }
        }
    }

    fn has_enough(&self) -> bool {
        self.ended.is_some() || self.is_lost
    }

    fn finish(&mut self, end: SimTime) {
        if self.ended.is_none() && end >= self.at {
            // The run may end in the very moment.
            self.come_to(end);
            self.come_to(end + Nanos::new(1));
        }
    }
}

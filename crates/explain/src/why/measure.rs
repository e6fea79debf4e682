//! What a policy does at the expense of throughput, in numbers: CPUs that idle beside waiting
//! tasks, preemptions, and tasks that wander. None of it is a fault by itself.

use model::{CpuId, Header, MachineSpec, Nanos, SimTime, TaskId};

use super::state::{Kind, State, Where};

/// The state is looked at so often: between two looks it counts as it was at the later one.
const EVERY: Nanos = Nanos::from_micros(100);
/// A task that waits for less may be on its way to a CPU. Short waits count, too: without a kick
/// each wakeup may wait for the next end of a slice, and none of them for long.
const SETTLED: Nanos = Nanos::from_micros(100);
/// Waiting tasks that a look takes in at most.
const MOST_TASKS: usize = 1_000;

/// Why a CPU idles while tasks wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Idling {
    /// It was not asked for work since the task came.
    Unasked,
    /// It was asked for work, and no `dispatch` of it ever took from the task's queue: the policy
    /// parts its CPUs, or saves power.
    Apart,
    /// It was asked since the task came and serves its queue, or the policy keeps the task.
    Throttled,
    /// None of the tasks may use it.
    NotAllowed,
}

impl Idling {
    /// Every cause.
    pub const ALL: [Self; 4] = [
        Self::Unasked,
        Self::Apart,
        Self::Throttled,
        Self::NotAllowed,
    ];

    /// What people read.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Unasked => "not asked for work",
            Self::Apart => "never takes from that queue",
            Self::Throttled => "asked, and took nobody",
            Self::NotAllowed => "no task may use it",
        }
    }
}

/// What was measured of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Measured {
    /// CPU time of the machine.
    pub whole: Nanos,
    /// CPU time that idled beside waiting tasks, in the order of [`Idling::ALL`].
    pub idle: [Nanos; 4],
    /// Turns that ended while the task could have gone on with its slice, for a task of the policy;
    /// one that yields ends its turn so, too.
    pub preemptions: u64,
    /// Changes of a task's CPU: within a cache, to another cache of a node, to another node.
    pub migrations: [u64; 3],
}

impl Measured {
    /// The part of the machine's CPU time that idled beside tasks which could have had it,
    /// 0 to 1.
    #[must_use]
    pub fn idle_share(&self) -> f64 {
        let could = Idling::ALL.iter().zip(&self.idle);
        let could = could.filter(|(cause, _)| **cause != Idling::NotAllowed);
        let could: u64 = could.map(|(_, time)| time.get()).sum();
        could as f64 / self.whole.get().max(1) as f64
    }

    /// Preemptions in a second of CPU time.
    #[must_use]
    pub fn preemption_rate(&self) -> f64 {
        self.rate(self.preemptions)
    }

    /// Changes of a task's CPU in a second of CPU time.
    #[must_use]
    pub fn migration_rate(&self) -> f64 {
        self.rate(self.migrations.iter().sum())
    }

    fn rate(&self, count: u64) -> f64 {
        count as f64 * 1e9 / self.whole.get().max(1) as f64
    }
}

/// Measures a run that somebody else follows.
#[derive(Debug, Default)]
pub(super) struct Meter {
    machine: MachineSpec,
    measured: Measured,
    looked: SimTime,
}

impl Meter {
    pub fn begin(&mut self, header: &Header) {
        self.machine = header.machine.clone();
    }

    /// Goes on to `now`; `state` is what was so until then.
    pub fn advance(&mut self, state: &State, now: SimTime) {
        if now.since(self.looked.min(now)) >= EVERY {
            self.look(state, now);
        }
    }

    /// What was measured until `end`.
    pub fn end(&self, state: &State, end: SimTime) -> Measured {
        let mut rest = Self {
            machine: self.machine.clone(),
            measured: self.measured.clone(),
            looked: self.looked,
        };
        rest.look(state, end);
        let cpus = u64::from(self.machine.cpus);
        rest.measured.whole = Nanos::new(end.since(SimTime::ZERO).get().saturating_mul(cpus));
        rest.measured
    }

    /// A task leaves its CPU while it is runnable, for another task of the policy.
    pub fn switched(&mut self, state: &State, prev: TaskId, next: TaskId, now: SimTime) {
        let Some(task) = state.tasks.get(prev.index()) else {
            return;
        };
        let ran = task.switched_in.map(|since| now.since(since).get());
        let is_cut = task.slice.is_some_and(|(slice, _)| ran < Some(slice));
        let next = state.tasks.get(next.index());
        if is_cut && next.is_some_and(|next| !next.outranks()) {
            self.measured.preemptions += 1;
        }
    }

    /// A task's CPU changes.
    pub fn migrated(&mut self, from: CpuId, to: CpuId) {
        let part = |cpu: CpuId, size: u16| cpu.0.checked_div(size).unwrap_or(0);
        let (node, llc) = (self.machine.node, self.machine.llc);
        let distance = if part(from, node) != part(to, node) {
            2
        } else {
            usize::from(part(from, llc) != part(to, llc))
        };
        self.measured.migrations[distance] += 1;
    }

    fn look(&mut self, state: &State, now: SimTime) {
        let span = now.since(self.looked.min(now));
        self.looked = now;
        let idle = (0u16..).map(CpuId).zip(&state.cpus);
        let idle = idle.filter(|(_, cpu)| cpu.task.is_none() && !cpu.is_offline);
        let mut idle = idle.map(|(number, _)| number).peekable();
        if idle.peek().is_none() {
            return;
        }
        let mut waiting = state.settled(now, SETTLED, MOST_TASKS);
        let waits = !waiting.is_empty();
        for cpu in idle.filter(|_| waits) {
            let at = waiting.iter().position(|task| state.may_run(*task, cpu));
            let cause = match at {
                // Each task could use one CPU only.
                Some(at) => idling(state, cpu, waiting.remove(at)),
                None if waiting.is_empty() => continue,
                None => Idling::NotAllowed,
            };
            self.measured.idle[cause as usize] += span;
        }
    }
}

/// Why `cpu` idles while `id` waits.
fn idling(state: &State, cpu: CpuId, id: TaskId) -> Idling {
    let task = &state.tasks[id.index()];
    let asked = state.cpus[cpu.index()].dispatch;
    let put = task.put.map_or(0, |put| put.number);
    let Some((queue, _)) = state.entry(id) else {
        return match task.place {
            Where::Kept => Idling::Throttled,
            _ => Idling::Unasked,
        };
    };
    let serves = match State::kind_of(queue.id) {
        Kind::Local(own) => own == cpu,
        Kind::Global => true,
        Kind::Policy => queue.takers.contains_key(&cpu),
    };
    match asked {
        None => Idling::Unasked,
        Some(_) if !serves => Idling::Apart,
        Some(asked) if asked > put => Idling::Throttled,
        Some(_) => Idling::Unasked,
    }
}

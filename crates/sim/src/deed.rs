//! What a trial does to a run, and what of it goes on. [`crate::intervention`] does it.

use std::collections::BTreeMap;

use model::{CpuId, Nanos, SimTime, TaskId};

/// What is done, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Intervention {
    /// When: behind all else that the moment leads to, but for ticks.
    pub at: SimTime,
    /// What.
    pub deed: Deed,
}

/// What is done. A deed about a task that does not wait, or about a CPU that is not there or that
/// the task may not use, has no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed {
    /// A CPU is kicked.
    Kick(CpuId),
    /// A task that waits, wherever it is, becomes the first in the local queue of a CPU, and that
    /// CPU is kicked. `None`: an idle CPU that it may use, else its own.
    Put {
        /// The task.
        task: TaskId,
        /// The CPU.
        cpu: Option<CpuId>,
    },
    /// A task that waits goes to the end of a queue of the policy's, and an idle CPU that it may
    /// use is kicked.
    Insert {
        /// The task.
        task: TaskId,
        /// The number of the queue, as the policy has it.
        queue: u64,
    },
    /// The next `dispatch` of the CPU takes the task, if it waits then.
    Take {
        /// The task.
        task: TaskId,
        /// The CPU.
        cpu: CpuId,
    },
    /// The slice of the policy's task that holds the CPU is over.
    EndSlice(CpuId),
    /// Wherever the policy inserts the task next, it goes to the local queue of the CPU where it
    /// is now.
    Keep(TaskId),
    /// From now on a rule holds.
    Rule(Rule),
    /// Each CPU is interrupted for at most 50 us, which this seed draws, and from now on so is the
    /// order of events that the kernel leaves open.
    Jitter(u64),
}

/// What holds from a moment on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// What `select_cpu` and `enqueue` insert into a local queue goes into this queue of the
    /// policy's instead.
    NoDirect(u64),
    /// No task has a CPU for longer without a choice, however often its slice is renewed.
    SliceAtMost(Nanos),
    /// The policy's queues in order of virtual times are in the order of CPU time divided by
    /// weight, which counts from now on.
    ByWeight,
    /// The policy's queues in order of virtual times are in the order of arrival.
    InOrder,
    /// After each insert into a queue that is no local one, an idle CPU that the task may use is
    /// kicked.
    KickIdle,
}

/// The interventions of a run, and what of them goes on.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interventions {
    pub planned: Vec<Intervention>,
    /// The task that the next `dispatch` of a CPU takes.
    pub takes: Vec<(CpuId, TaskId)>,
    /// The task whose next insert goes to a CPU.
    pub keeps: Vec<(TaskId, CpuId)>,
    pub rules: Rules,
}

/// The rules that hold.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rules {
    /// Where direct inserts go.
    pub no_direct: Option<u64>,
    /// The longest turn.
    pub slice: Option<Nanos>,
    /// The CPU time, nanoseconds, that each task had when its turn began.
    pub turns: BTreeMap<TaskId, u64>,
    pub order: Option<QueueOrder>,
    /// See [`Rule::KickIdle`].
    pub kicks_idle: bool,
}

/// How queues that the policy orders by virtual time are ordered instead.
#[derive(Clone, Debug)]
pub(crate) enum QueueOrder {
    /// By arrival.
    Arrival,
    /// By time divided by weight.
    Weight(BTreeMap<TaskId, Account>),
}

/// What a task has had, divided by its weight.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Account {
    /// Its CPU time when it was looked at last, nanoseconds.
    pub seen: u64,
    /// Nanoseconds of a task of weight 100.
    pub used: u64,
}

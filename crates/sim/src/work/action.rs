//! What tasks and interrupts ask of the machine.

use model::{CpuId, EventKind, Nanos, SimTime, TaskId};
use workload::{CgroupChange, CpuSet, SchedPolicy};

/// Next action of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Computes for so long, never zero; [`Work::step`](super::Work::step) is called again when
    /// that is done.
    Run(Nanos),
    /// Becomes another program, which computes for so long at first; then as [`Action::Run`].
    Exec(Nanos),
    /// Leaves the CPU until this time, which is later than now.
    SleepUntil(SimTime),
    /// Leaves the CPU until some task or interrupt wakes it.
    Block,
    /// `sched_yield()`.
    Yield,
    /// `migrate_disable()`.
    MigrateDisable,
    /// `migrate_enable()`.
    MigrateEnable,
    /// Leaves for good.
    Exit,
    /// An interrupt source fires at this time, not earlier than now. Nothing else happens.
    Interrupt {
        /// Number of the source, as in [`Work::interrupts`](super::Work::interrupts).
        source: usize,
        /// The CPU that takes it.
        cpu: CpuId,
        /// When.
        at: SimTime,
    },
    /// Wakes another task, from this task's context.
    Wake {
        /// Whom.
        task: TaskId,
        /// Whether the waker says that it is about to sleep (`WF_SYNC`).
        sync: bool,
    },
    /// Creates a task. The machine calls [`Work::born`](super::Work::born) if it can, and
    /// [`Work::forked`](super::Work::forked) in either case.
    Fork(Birth),
    /// Changes a nice value.
    SetNice {
        /// Whose.
        task: TaskId,
        /// The new value, -20 to 19.
        nice: i8,
    },
    /// Changes the CPUs that a task may run on.
    SetAffinity {
        /// Whose.
        task: TaskId,
        /// The new set; at least one of its CPUs exists.
        cpus: CpuSet,
    },
    /// Changes a scheduling policy.
    SetPolicy {
        /// Whose.
        task: TaskId,
        /// The new policy.
        policy: SchedPolicy,
    },
    /// Moves a task to a cgroup.
    MoveCgroup {
        /// Whom.
        task: TaskId,
        /// Number of the cgroup; 0 is the root.
        to: u32,
        /// With all that share its address space.
        process: bool,
    },
    /// Writes into a cgroup's files.
    SetCgroup {
        /// Number of the cgroup, not the root's.
        number: u32,
        /// What is written.
        change: CgroupChange,
    },
}

/// A task to create.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Birth {
    /// Index of its group in the workload.
    pub group: u32,
    /// Index within its group.
    pub index: u32,
    /// Nice value.
    pub nice: i8,
    /// Scheduling policy.
    pub policy: SchedPolicy,
    /// Number of its cgroup; `None`: its parent's, or the root.
    pub cgroup: Option<u32>,
    /// CPUs that it may run on; `None`: all.
    pub cpus: Option<CpuSet>,
    /// When it becomes runnable.
    pub start: SimTime,
    /// Whether it is a process of its own rather than a thread of its parent's.
    pub process: bool,
    /// Whether it is a kernel thread.
    pub kernel: bool,
    /// Whether it must stay on the CPU where it is born.
    pub migration_disabled: bool,
}

/// Something that the workload wants recorded. `kind` fixes the words, as in [`model::Event`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkEvent {
    /// What happened.
    pub kind: EventKind,
    /// First payload word.
    pub a: u64,
    /// Second payload word.
    pub b: u64,
}

/// Effects of an interrupt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterruptWork {
    /// CPU time that it takes.
    pub steal: Nanos,
    /// Tasks that it wakes, in this order, from interrupt context.
    pub wakes: Vec<TaskId>,
    /// When the same source interrupts again; never earlier than now.
    pub next: Vec<SimTime>,
}

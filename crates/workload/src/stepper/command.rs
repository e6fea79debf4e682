//! What the stepper asks of a machine.

use crate::{Bandwidth, CpuSet, SchedPolicy};
use model::{EventKind, Nanos, SimTime};

/// What a task does next. Everything in it is resolved: spans are drawn, indices exist, conditions
/// and loops are behind it. The operations are those of docs/workload.md.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// Computes for so long, never zero.
    Run(Nanos),
    /// Starts another program, which computes for so long, possibly zero.
    Exec(Nanos),
    /// Sleeps until this time, which is later than now.
    SleepUntil(SimTime),
    /// Puts a message into a channel.
    Send {
        /// The channel.
        to: Instance,
        /// Bytes, 1 or more.
        bytes: u64,
        /// What the receiver sees as `got`.
        value: i64,
    },
    /// Takes a message out of a channel; then [`Stepper::received`](crate::Stepper::received).
    Recv(Instance),
    /// Takes a lock.
    Lock(Instance),
    /// Takes a read-write lock for reading.
    LockShared(Instance),
    /// Takes a lock unless tasks would then wait for each other in a circle; then
    /// [`Stepper::answer`](crate::Stepper::answer).
    TryLock {
        /// The lock.
        lock: Instance,
        /// Variable to set: 1 if the lock was refused, else 0.
        failed: u32,
    },
    /// Gives a lock back.
    Unlock(Instance),
    /// Gives back everything that the task holds of this lock declaration.
    UnlockAll(u32),
    /// Takes a token of a semaphore.
    SemWait(Instance),
    /// Gives a semaphore a token.
    SemPost(Instance),
    /// Gives the lock back, waits for a signal, takes the lock again.
    CondWait {
        /// The condition variable.
        cond: Instance,
        /// The lock.
        lock: Instance,
    },
    /// Wakes one task that waits for a condition.
    Signal(Instance),
    /// Wakes all of them.
    Broadcast(Instance),
    /// Connects to a listening socket.
    Connect {
        /// The socket.
        to: Instance,
        /// What the accepting task sees as `got`.
        value: i64,
    },
    /// Accepts a connection; then [`Stepper::received`](crate::Stepper::received).
    Accept(Instance),
    /// A request from outside is done.
    Done {
        /// Index of the arrivals' declaration.
        arrival: u32,
        /// Its number.
        request: i64,
    },
    /// Reads pages of a disk.
    Read {
        /// Index of the disk.
        disk: u32,
        /// The first page.
        page: u64,
        /// How many.
        pages: u64,
    },
    /// Writes pages of a disk.
    Write {
        /// Index of the disk.
        disk: u32,
        /// The first page.
        page: u64,
        /// How many.
        pages: u64,
    },
    /// Waits until what was written is on this disk.
    Sync(u32),
    /// Writes the dirty pages of this disk's cache.
    WriteBack(u32),
    /// Uses pages of the task's memory.
    Touch {
        /// How many.
        pages: u64,
        /// Draw each from so many; `None`: from the first page on, in order.
        of: Option<u64>,
    },
    /// Waits until memory is short, and makes room.
    Reclaim,
    /// Waits for the other parties of a barrier.
    Barrier(Instance),
    /// `sched_yield()`.
    Yield,
    /// Sleeps until resumed.
    Suspend,
    /// Resumes a task.
    Resume(TaskRef),
    /// Creates one task of this group.
    Fork(u32),
    /// Ends the task. It has no next command.
    Exit,
    /// Waits for one child to exit, or for all.
    Wait {
        /// For all.
        all: bool,
    },
    /// Waits for one child to exit. There is one that has not.
    AwaitChild,
    /// Changes a nice value.
    SetNice {
        /// Whose.
        task: TaskRef,
        /// -20 to 19.
        nice: i8,
    },
    /// Changes the CPUs that a task may run on.
    SetAffinity {
        /// Whose.
        task: TaskRef,
        /// CPUs of the machine.
        cpus: CpuSet,
    },
    /// Changes a scheduling policy.
    SetPolicy {
        /// Whose.
        task: TaskRef,
        /// The new policy.
        policy: SchedPolicy,
    },
    /// Moves a task to a cgroup.
    MoveCgroup {
        /// Whom.
        task: TaskRef,
        /// Number of the cgroup; 0 is the root.
        to: u32,
        /// With all tasks that share its address space.
        process: bool,
    },
    /// Writes into a cgroup's files.
    SetCgroup {
        /// Number of the cgroup, not the root's.
        number: u32,
        /// What is written.
        change: CgroupChange,
    },
    /// Records an event of this kind about the task.
    Record {
        /// What happened.
        kind: EventKind,
        /// Number of the phase, span, counter or deadline.
        number: u32,
        /// Second word of the event.
        value: u64,
    },
    /// Begins a span that any task may end.
    SpanBegin {
        /// Which.
        span: u32,
        /// Which one of them.
        key: i64,
    },
    /// Ends a span that any task has begun.
    SpanEnd {
        /// Which.
        span: u32,
        /// Which one of them.
        key: i64,
    },
}

/// An instance of something declared; it exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instance {
    /// Index of the declaration.
    pub of: u32,
    /// Index of the instance, below the declared count.
    pub index: u32,
}

/// A task that a command acts on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskRef {
    /// The acting task itself.
    Me,
    /// A member of a group. Only the machine knows whether it exists.
    Member {
        /// Index of the group.
        group: u32,
        /// Index within the group.
        index: i64,
    },
}

/// What is written into a cgroup's files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CgroupChange {
    /// `cpu.weight`, one of [`CGROUP_WEIGHTS`](crate::CGROUP_WEIGHTS).
    Weight(u32),
    /// `cpu.max`; the burst stays.
    Max(Bandwidth),
    /// `cpu.idle`.
    Idle(bool),
}

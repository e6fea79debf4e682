//! Numbers of the kernel's interface, as 6.18 has them; `kernels` translates to those of others.
//!
//! Source: BTF of Debian's 6.18.15 (`enum scx_enq_flags` and its neighbours) and
//! `kernel/sched/sched.h` for the core's own bits.

/// How long the machine was up when the run began, seconds.
pub const UPTIME_S: u64 = 3_600;
/// The same, nanoseconds.
pub const UPTIME_NS: u64 = UPTIME_S * 1_000_000_000;

/// Bits of the `enq_flags` that `ops.enqueue` and `ops.runnable` get.
pub mod enq {
    /// The task was woken.
    pub const WAKEUP: u64 = 0x1;
    /// Half of a property change (`ENQUEUE_RESTORE`).
    pub const RESTORE: u64 = 0x2;
    /// Class or cgroup change (`ENQUEUE_MOVE`).
    pub const MOVE: u64 = 0x4;
    /// The run queue's clock is current already.
    pub const NOCLOCK: u64 = 0x8;
    /// Insert at the front.
    pub const HEAD: u64 = 0x10;
    /// The task comes from another run queue.
    pub const MIGRATED: u64 = 0x40;
    /// First enqueue of a new task.
    pub const INITIAL: u64 = 0x80;
    /// The task's class changes; told from 7.2 on (`ENQUEUE_CLASS`). The bit is the machine's own.
    pub const CLASS: u64 = 1 << 30;
    /// `ops.select_cpu` ran (`ENQUEUE_RQ_SELECTED`).
    pub const CPU_SELECTED: u64 = 0x400;
    /// Preempt what runs on the target CPU.
    pub const PREEMPT: u64 = 1 << 32;
    /// Run at once or come back; from 7.1 on.
    pub const IMMED: u64 = 1 << 33;
    /// Run for a while also without the right to the CPU; from 7.3 on.
    pub const RESCUE: u64 = 1 << 34;
    /// Enqueued again by `scx_bpf_reenqueue_local()`.
    pub const REENQ: u64 = 1 << 40;
    /// The only runnable task of its CPU.
    pub const LAST: u64 = 1 << 41;
    /// Bits that only the kernel may set.
    pub const INTERNAL: u64 = 0xff << 56;
    /// Internal: whatever rights its scheduler has (`SCX_ENQ_IGNORE_CAPS`).
    pub const IGNORE_CAPS: u64 = 1 << 60;
    /// Internal: insert ordered by vtime.
    pub const DSQ_PRIQ: u64 = 1 << 57;
}

/// Bits of the `deq_flags` that `ops.quiescent` and `ops.dequeue` get.
pub mod deq {
    /// The task goes to sleep.
    pub const SLEEP: u64 = 0x1;
    /// Half of a property change (`DEQUEUE_SAVE`).
    pub const SAVE: u64 = 0x2;
    /// Class or cgroup change (`DEQUEUE_MOVE`).
    pub const MOVE: u64 = 0x4;
    /// The run queue's clock is current already.
    pub const NOCLOCK: u64 = 0x8;
    /// A task leaves its queue and comes back, perhaps as another class's, cgroup's or
    /// scheduler's: no clock is read in between.
    pub const CYCLE: u64 = SAVE | MOVE | NOCLOCK;
    /// The task leaves for good (`DEQUEUE_SPECIAL`).
    pub const SPECIAL: u64 = 0x10;
    /// The task's class changes; told from 7.2 on (`DEQUEUE_CLASS`). The bit is the machine's own.
    pub const CLASS: u64 = super::enq::CLASS;
    /// The task is about to run: `SCX_DEQ_CORE_SCHED_EXEC`.
    pub const CORE_SCHED_EXEC: u64 = 1 << 32;
}

/// Who wakes a task.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waker {
    /// An interrupt, a timer or the begin of the run. Whichever task was interrupted did nothing.
    Nobody,
    /// The current task.
    Current,
    /// The current task, which tells the kernel that it is about to sleep (`WF_SYNC`).
    Sleeper,
}

/// Flags of `ops.select_cpu`.
pub mod wake {
    /// A new task.
    pub const FORK: u64 = 4;
    /// A wakeup.
    pub const TTWU: u64 = 8;
    /// The waker is about to sleep.
    pub const SYNC: u64 = 0x10;
}

/// Flags of `scx_bpf_kick_cpu()`.
pub mod kick {
    /// Only if the CPU idles.
    pub const IDLE: u64 = 1;
    /// End the current task's slice.
    pub const PREEMPT: u64 = 2;
    /// Wait until the CPU has rescheduled.
    pub const WAIT: u64 = 4;
}

/// Flags in `sched_ext_ops.flags`.
pub mod ops {
    /// Keep built-in idle tracking although `update_idle` is defined.
    pub const KEEP_BUILTIN_IDLE: u64 = 1;
    /// Enqueue the last runnable task of a CPU too.
    pub const ENQ_LAST: u64 = 2;
    /// Enqueue exiting tasks too.
    pub const ENQ_EXITING: u64 = 4;
    /// Only tasks of class `SCHED_EXT`.
    pub const SWITCH_PARTIAL: u64 = 8;
    /// Enqueue tasks with migration disabled too.
    pub const ENQ_MIGRATION_DISABLED: u64 = 16;
    /// One pair of idle masks for each NUMA node.
    pub const BUILTIN_IDLE_PER_NODE: u64 = 64;
    /// Insert into local queues with [`super::enq::IMMED`]; from 7.1 on.
    pub const ALWAYS_ENQ_IMMED: u64 = 128;
    /// Tasks are found by their number; from 7.2 on.
    pub const TID_TO_TASK: u64 = 256;
    /// Without meaning since 6.15, gone with 7.1.
    pub const HAS_CGROUP_WEIGHT: u64 = 1 << 16;
    /// All flags that 6.18 and 7.2 have.
    pub const ALL: u64 = 127;
}

/// Numbers of dispatch queues.
pub mod dsq {
    /// The bit of all built-in queues.
    pub const BUILTIN: u64 = 1 << 63;
    /// The global queue.
    pub const GLOBAL: u64 = BUILTIN | 1;
    /// The local queue of the CPU in question.
    pub const LOCAL: u64 = BUILTIN | 2;
    /// The local queue of the CPU in the low 32 bits.
    pub const LOCAL_ON: u64 = 3 << 62;
    /// Mask of the CPU number in [`LOCAL_ON`].
    pub const CPU_MASK: u64 = 0xffff_ffff;
    /// Iterate from the back.
    pub const ITER_REV: u64 = 1 << 16;
}

/// Reasons of `ops.cpu_release` (`enum scx_cpu_preempt_reason`).
pub mod preempt {
    /// A real-time task.
    pub const RT: u32 = 0;
    /// A deadline task.
    pub const DL: u32 = 1;
    /// The stopper.
    pub const STOP: u32 = 2;
    /// Anything else, a fair task in partial mode.
    pub const UNKNOWN: u32 = 3;
}

/// Where a function may be called from (`enum scx_kf_mask`).
pub mod kf {
    /// Sleepable operations and timers: no lock is held.
    pub const UNLOCKED: u32 = 0;
    /// `ops.cpu_release`.
    pub const CPU_RELEASE: u32 = 1;
    /// `ops.dispatch`.
    pub const DISPATCH: u32 = 2;
    /// `ops.enqueue`.
    pub const ENQUEUE: u32 = 4;
    /// `ops.select_cpu`.
    pub const SELECT_CPU: u32 = 8;
    /// Every other operation that holds a run queue's lock.
    pub const REST: u32 = 16;
}

/// `SCX_SLICE_DFL`, nanoseconds.
pub const SLICE_DFL: u64 = 20_000_000;
/// `SCX_SLICE_INF`.
pub const SLICE_INF: u64 = u64::MAX;
/// `SCX_DSP_DFL_MAX_BATCH`.
pub const DSP_DFL_MAX_BATCH: u32 = 32;
/// `SCX_DSP_MAX_LOOPS`.
pub const DSP_MAX_LOOPS: u32 = 32;
/// `SCX_WATCHDOG_MAX_TIMEOUT`, milliseconds.
pub const WATCHDOG_MAX_TIMEOUT_MS: u64 = 30_000;
/// `SCX_EXIT_MSG_LEN`, bytes.
pub const EXIT_MSG_LEN: usize = 1024;
/// `SCX_TASK_QUEUED` of `p->scx.flags`.
pub const TASK_QUEUED: u32 = 1;
/// `SCX_TASK_IN_CUSTODY` of `p->scx.flags`, from 7.2 on.
pub const TASK_IN_CUSTODY: u32 = 2;
/// `SCX_TASK_IMMED` of `p->scx.flags`, from 7.1 on.
pub const TASK_IMMED: u32 = 1 << 5;
/// `SCX_TASK_REENQ_REASON_SHIFT` of `p->scx.flags`, from 7.1 on.
pub const TASK_REENQ_REASON_SHIFT: u32 = 12;
/// `SCX_TASK_STATE_SHIFT` of `p->scx.flags`.
pub const TASK_STATE_SHIFT: u32 = 8;
/// `PF_EXITING` of `p->flags`.
pub const PF_EXITING: u32 = 0x4;
/// `PF_KTHREAD` of `p->flags`.
pub const PF_KTHREAD: u32 = 0x0020_0000;

/// Error numbers of the kernel's interface (`include/uapi/asm-generic/errno-base.h`).
pub mod errno {
    /// Operation not permitted.
    pub const EPERM: i64 = -1;
    /// No such entry.
    pub const ENOENT: i64 = -2;
    /// Out of memory.
    pub const ENOMEM: i64 = -12;
    /// Permission denied.
    pub const EACCES: i64 = -13;
    /// Busy.
    pub const EBUSY: i64 = -16;
    /// Exists already.
    pub const EEXIST: i64 = -17;
    /// No such device.
    pub const ENODEV: i64 = -19;
    /// Invalid argument.
    pub const EINVAL: i64 = -22;
    /// Not supported.
    pub const EOPNOTSUPP: i64 = -95;
}

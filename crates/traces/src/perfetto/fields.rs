//! Field numbers and values of Perfetto's trace format, for its reader and its writer.
//!
//! Source: `protos/perfetto/trace/**/*.proto` of the Perfetto project, 0.59. Field numbers of
//! protobuf never change their meaning.

/// `Trace.packet`.
pub const TRACE_PACKET: u64 = 1;

/// `TracePacket`.
pub mod packet {
    pub const FTRACE_EVENTS: u64 = 1;
    pub const PROCESS_TREE: u64 = 2;
    pub const CLOCK_SNAPSHOT: u64 = 6;
    pub const TIMESTAMP: u64 = 8;
    pub const TRUSTED_PACKET_SEQUENCE_ID: u64 = 10;
    pub const TRACK_EVENT: u64 = 11;
    pub const SEQUENCE_FLAGS: u64 = 13;
    pub const SYSTEM_INFO: u64 = 45;
    pub const COMPRESSED_PACKETS: u64 = 50;
    pub const TRACK_DESCRIPTOR: u64 = 60;
    /// `SequenceFlags.SEQ_INCREMENTAL_STATE_CLEARED`.
    pub const INCREMENTAL_STATE_CLEARED: u64 = 1;
}

/// `ClockSnapshot` and `ClockSnapshot.Clock`.
pub mod clocks {
    pub const CLOCKS: u64 = 1;
    pub const PRIMARY_TRACE_CLOCK: u64 = 2;
    pub const CLOCK_ID: u64 = 1;
    pub const TIMESTAMP: u64 = 2;
    /// `BuiltinClock.BUILTIN_CLOCK_MONOTONIC`.
    pub const MONOTONIC: u64 = 3;
    /// `BuiltinClock.BUILTIN_CLOCK_BOOTTIME`: the clock of ftrace events.
    pub const BOOTTIME: u64 = 6;
}

/// `ProcessTree`, its `Process` and its `Thread`.
pub mod tree {
    pub const PROCESSES: u64 = 1;
    pub const THREADS: u64 = 2;
    pub const PROCESS_PID: u64 = 1;
    pub const PROCESS_PPID: u64 = 2;
    pub const PROCESS_CMDLINE: u64 = 3;
    pub const THREAD_TID: u64 = 1;
    pub const THREAD_NAME: u64 = 2;
    pub const THREAD_TGID: u64 = 3;
}

/// `SystemInfo` and its `Utsname`.
pub mod system {
    pub const UTSNAME: u64 = 1;
    pub const RELEASE: u64 = 3;
}

/// `FtraceEventBundle` and `FtraceEvent`.
pub mod ftrace {
    pub const CPU: u64 = 1;
    pub const EVENT: u64 = 2;
    pub const LOST_EVENTS: u64 = 3;
    pub const COMPACT_SCHED: u64 = 4;
    pub const FTRACE_CLOCK: u64 = 5;
    pub const TIMESTAMP: u64 = 1;
    pub const PID: u64 = 2;
    pub const COMMON_FLAGS: u64 = 5;
    pub const SCHED_SWITCH: u64 = 4;
    pub const SCHED_WAKEUP: u64 = 17;
    pub const SCHED_WAKING: u64 = 20;
    pub const SOFTIRQ_ENTRY: u64 = 24;
    pub const SOFTIRQ_EXIT: u64 = 25;
    pub const IRQ_HANDLER_ENTRY: u64 = 36;
    pub const IRQ_HANDLER_EXIT: u64 = 37;
    pub const SCHED_WAKEUP_NEW: u64 = 114;
    pub const TASK_RENAME: u64 = 236;
    pub const SCHED_PROCESS_EXEC: u64 = 237;
    pub const SCHED_PROCESS_EXIT: u64 = 238;
    pub const SCHED_PROCESS_FORK: u64 = 239;
    pub const SCHED_MIGRATE_TASK: u64 = 491;
    pub const HRTIMER_EXPIRE_ENTRY: u64 = 553;
    pub const HRTIMER_EXPIRE_EXIT: u64 = 554;
    pub const TIMER_EXPIRE_ENTRY: u64 = 557;
    pub const TIMER_EXPIRE_EXIT: u64 = 558;
    pub const LOCAL_TIMER_ENTRY: u64 = 559;
    pub const LOCAL_TIMER_EXIT: u64 = 560;
}

/// `FtraceEventBundle.CompactSched`: columns of switches and of wakings.
pub mod compact {
    pub const SWITCH_TIMESTAMP: u64 = 1;
    pub const SWITCH_PREV_STATE: u64 = 2;
    pub const SWITCH_NEXT_PID: u64 = 3;
    pub const SWITCH_NEXT_PRIO: u64 = 4;
    pub const INTERN_TABLE: u64 = 5;
    pub const SWITCH_NEXT_COMM_INDEX: u64 = 6;
    pub const WAKING_TIMESTAMP: u64 = 7;
    pub const WAKING_PID: u64 = 8;
    pub const WAKING_TARGET_CPU: u64 = 9;
    pub const WAKING_PRIO: u64 = 10;
    pub const WAKING_COMM_INDEX: u64 = 11;
    pub const WAKING_COMMON_FLAGS: u64 = 12;
}

/// `SchedSwitchFtraceEvent`, whose first three fields are those of [`sched`], of the previous task.
pub mod switch {
    pub const PREV_STATE: u64 = 4;
    pub const NEXT_COMM: u64 = 5;
    pub const NEXT_PID: u64 = 6;
    pub const NEXT_PRIO: u64 = 7;
    /// `TASK_RUNNING`, `TASK_INTERRUPTIBLE` and `EXIT_DEAD` of the kernel (6.18,
    /// `include/linux/sched.h`).
    pub const RUNNABLE: u64 = 0;
    pub const SLEEPING: u64 = 1;
    pub const DEAD: u64 = 16;
}

/// `SchedWakingFtraceEvent`, those of wakeups, `SchedMigrateTaskFtraceEvent` and [`switch`], which
/// begin alike.
pub mod sched {
    pub const COMM: u64 = 1;
    pub const PID: u64 = 2;
    pub const PRIO: u64 = 3;
    pub const WAKING_SUCCESS: u64 = 4;
    pub const WAKING_TARGET_CPU: u64 = 5;
    pub const MIGRATE_ORIG_CPU: u64 = 4;
    pub const MIGRATE_DEST_CPU: u64 = 5;
}

/// `SchedProcessForkFtraceEvent`, those of an exec and of an exit, and `TaskRenameFtraceEvent`.
pub mod process {
    pub const FORK_PARENT_PID: u64 = 2;
    pub const FORK_CHILD_COMM: u64 = 3;
    pub const FORK_CHILD_PID: u64 = 4;
    pub const EXEC_PID: u64 = 2;
    pub const EXEC_OLD_PID: u64 = 3;
    pub const EXIT_PID: u64 = 2;
    pub const RENAME_PID: u64 = 1;
    pub const RENAME_NEWCOMM: u64 = 3;
}

/// `IrqHandlerEntryFtraceEvent`, and the events of softirqs.
pub mod interrupt {
    pub const IRQ_NAME: u64 = 2;
    pub const SOFTIRQ_VEC: u64 = 1;
}

/// `TrackDescriptor`, its `ThreadDescriptor` and its `CounterDescriptor`.
pub mod track {
    pub const UUID: u64 = 1;
    pub const NAME: u64 = 2;
    pub const THREAD: u64 = 4;
    pub const PARENT_UUID: u64 = 5;
    pub const COUNTER: u64 = 8;
    pub const THREAD_PID: u64 = 1;
    pub const THREAD_TID: u64 = 2;
    pub const THREAD_NAME: u64 = 5;
    pub const COUNTER_UNIT: u64 = 3;
    /// `CounterDescriptor.Unit.UNIT_COUNT`.
    pub const UNIT_COUNT: u64 = 2;
}

/// `TrackEvent` and its `DebugAnnotation`.
pub mod event {
    pub const DEBUG_ANNOTATIONS: u64 = 4;
    pub const TYPE: u64 = 9;
    pub const TRACK_UUID: u64 = 11;
    pub const NAME: u64 = 23;
    pub const COUNTER_VALUE: u64 = 30;
    pub const SLICE_BEGIN: u64 = 1;
    pub const SLICE_END: u64 = 2;
    pub const INSTANT: u64 = 3;
    pub const COUNTER: u64 = 4;
    pub const ANNOTATION_UINT_VALUE: u64 = 3;
    pub const ANNOTATION_STRING_VALUE: u64 = 6;
    pub const ANNOTATION_NAME: u64 = 10;
}

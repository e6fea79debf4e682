//! The messages of Perfetto, declared apart from the numbers that the reader has, so that a wrong
//! one is found. Names are bytes: a thread may have any.

use prost::{Message, Oneof};

/// `SystemInfo`.
#[derive(Clone, PartialEq, Message)]
pub struct SystemInfo {
    #[prost(message, optional, tag = "1")]
    pub utsname: Option<Utsname>,
}

/// `Utsname`.
#[derive(Clone, PartialEq, Message)]
pub struct Utsname {
    #[prost(string, optional, tag = "3")]
    pub release: Option<String>,
}

/// `FtraceEvent`.
#[derive(Clone, PartialEq, Message)]
pub struct Event {
    #[prost(uint64, optional, tag = "1")]
    pub timestamp: Option<u64>,
    #[prost(uint32, optional, tag = "2")]
    pub pid: Option<u32>,
    #[prost(uint32, optional, tag = "5")]
    pub common_flags: Option<u32>,
    #[prost(
        oneof = "event::Event",
        tags = "4, 17, 20, 24, 25, 36, 37, 114, 236, 237, 238, 239, 491, 553, 554, 557, 558, \
                559, 560"
    )]
    pub event: Option<event::Event>,
}

/// Kinds of events.
pub mod event {
    use super::{
        Comm, Empty, Exec, Fork, IrqEntry, Migrate, Oneof, Pid, Rename, SchedSwitch, Softirq,
    };

    #[derive(Clone, PartialEq, Oneof)]
    pub enum Event {
        #[prost(message, tag = "4")]
        SchedSwitch(SchedSwitch),
        #[prost(message, tag = "17")]
        SchedWakeup(Comm),
        #[prost(message, tag = "20")]
        SchedWaking(Comm),
        #[prost(message, tag = "24")]
        SoftirqEntry(Softirq),
        #[prost(message, tag = "25")]
        SoftirqExit(Softirq),
        #[prost(message, tag = "36")]
        IrqHandlerEntry(IrqEntry),
        #[prost(message, tag = "37")]
        IrqHandlerExit(Empty),
        #[prost(message, tag = "114")]
        SchedWakeupNew(Comm),
        #[prost(message, tag = "236")]
        TaskRename(Rename),
        #[prost(message, tag = "237")]
        SchedProcessExec(Exec),
        #[prost(message, tag = "238")]
        SchedProcessExit(Pid),
        #[prost(message, tag = "239")]
        SchedProcessFork(Fork),
        #[prost(message, tag = "491")]
        SchedMigrateTask(Migrate),
        #[prost(message, tag = "553")]
        HrtimerExpireEntry(Empty),
        #[prost(message, tag = "554")]
        HrtimerExpireExit(Empty),
        #[prost(message, tag = "557")]
        TimerExpireEntry(Empty),
        #[prost(message, tag = "558")]
        TimerExpireExit(Empty),
        #[prost(message, tag = "559")]
        LocalTimerEntry(Empty),
        #[prost(message, tag = "560")]
        LocalTimerExit(Empty),
    }
}

/// `SchedSwitchFtraceEvent`.
#[derive(Clone, PartialEq, Message)]
pub struct SchedSwitch {
    #[prost(bytes = "vec", optional, tag = "1")]
    pub prev_comm: Option<Vec<u8>>,
    #[prost(int32, optional, tag = "2")]
    pub prev_pid: Option<i32>,
    #[prost(int32, optional, tag = "3")]
    pub prev_prio: Option<i32>,
    #[prost(int64, optional, tag = "4")]
    pub prev_state: Option<i64>,
    #[prost(bytes = "vec", optional, tag = "5")]
    pub next_comm: Option<Vec<u8>>,
    #[prost(int32, optional, tag = "6")]
    pub next_pid: Option<i32>,
    #[prost(int32, optional, tag = "7")]
    pub next_prio: Option<i32>,
}

/// `SchedWakingFtraceEvent`, `SchedWakeupFtraceEvent`, `SchedWakeupNewFtraceEvent`.
#[derive(Clone, PartialEq, Message)]
pub struct Comm {
    #[prost(bytes = "vec", optional, tag = "1")]
    pub comm: Option<Vec<u8>>,
    #[prost(int32, optional, tag = "2")]
    pub pid: Option<i32>,
    #[prost(int32, optional, tag = "3")]
    pub prio: Option<i32>,
    #[prost(int32, optional, tag = "5")]
    pub target_cpu: Option<i32>,
}

/// `SchedMigrateTaskFtraceEvent`.
#[derive(Clone, PartialEq, Message)]
pub struct Migrate {
    #[prost(bytes = "vec", optional, tag = "1")]
    pub comm: Option<Vec<u8>>,
    #[prost(int32, optional, tag = "2")]
    pub pid: Option<i32>,
    #[prost(int32, optional, tag = "3")]
    pub prio: Option<i32>,
    #[prost(int32, optional, tag = "4")]
    pub orig_cpu: Option<i32>,
    #[prost(int32, optional, tag = "5")]
    pub dest_cpu: Option<i32>,
}

/// `SchedProcessForkFtraceEvent`.
#[derive(Clone, PartialEq, Message)]
pub struct Fork {
    #[prost(int32, optional, tag = "2")]
    pub parent_pid: Option<i32>,
    #[prost(bytes = "vec", optional, tag = "3")]
    pub child_comm: Option<Vec<u8>>,
    #[prost(int32, optional, tag = "4")]
    pub child_pid: Option<i32>,
}

/// `SchedProcessExecFtraceEvent`.
#[derive(Clone, PartialEq, Message)]
pub struct Exec {
    #[prost(int32, optional, tag = "2")]
    pub pid: Option<i32>,
    #[prost(int32, optional, tag = "3")]
    pub old_pid: Option<i32>,
}

/// `SchedProcessExitFtraceEvent`.
#[derive(Clone, PartialEq, Message)]
pub struct Pid {
    #[prost(int32, optional, tag = "2")]
    pub pid: Option<i32>,
}

/// `TaskRenameFtraceEvent`.
#[derive(Clone, PartialEq, Message)]
pub struct Rename {
    #[prost(int32, optional, tag = "1")]
    pub pid: Option<i32>,
    #[prost(bytes = "vec", optional, tag = "3")]
    pub newcomm: Option<Vec<u8>>,
}

/// `IrqHandlerEntryFtraceEvent`.
#[derive(Clone, PartialEq, Message)]
pub struct IrqEntry {
    #[prost(bytes = "vec", optional, tag = "2")]
    pub name: Option<Vec<u8>>,
}

/// `SoftirqEntryFtraceEvent` and `SoftirqExitFtraceEvent`.
#[derive(Clone, PartialEq, Message)]
pub struct Softirq {
    #[prost(uint32, optional, tag = "1")]
    pub vec: Option<u32>,
}

/// An event of which only the kind counts.
#[derive(Clone, PartialEq, Message)]
pub struct Empty {}

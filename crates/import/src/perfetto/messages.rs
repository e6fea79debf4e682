//! The messages, with the fields that are needed.

use prost::{Message, Oneof};

/// Several packets, as in a compressed one.
#[derive(Clone, PartialEq, Message)]
pub struct Trace {
    #[prost(message, repeated, tag = "1")]
    pub packet: Vec<Packet>,
}

/// `TracePacket`.
#[derive(Clone, PartialEq, Message)]
pub struct Packet {
    #[prost(message, optional, tag = "1")]
    pub ftrace_events: Option<Bundle>,
    #[prost(bytes = "vec", tag = "50")]
    pub compressed_packets: Vec<u8>,
    #[prost(message, optional, tag = "45")]
    pub system_info: Option<SystemInfo>,
}

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

/// `FtraceEventBundle`: what one CPU reported.
#[derive(Clone, PartialEq, Message)]
pub struct Bundle {
    #[prost(uint32, optional, tag = "1")]
    pub cpu: Option<u32>,
    #[prost(message, repeated, tag = "2")]
    pub event: Vec<Event>,
    #[prost(bool, optional, tag = "3")]
    pub lost_events: Option<bool>,
    #[prost(message, optional, tag = "4")]
    pub compact_sched: Option<CompactSched>,
    #[prost(int32, optional, tag = "5")]
    pub ftrace_clock: Option<i32>,
}

impl Bundle {
    /// The clock, if it is another than the usual `boot` (`FtraceClock`).
    pub fn clock(&self) -> Option<&'static str> {
        match self.ftrace_clock? {
            2 => Some("global"),
            3 => Some("local"),
            4 => Some("mono_raw"),
            _ => Some("another than boot"),
        }
    }
}

/// `FtraceEventBundle.CompactSched`: switches and wakings in columns.
#[derive(Clone, PartialEq, Message)]
pub struct CompactSched {
    #[prost(uint64, repeated, tag = "1")]
    pub switch_timestamp: Vec<u64>,
    #[prost(int64, repeated, tag = "2")]
    pub switch_prev_state: Vec<i64>,
    #[prost(int32, repeated, tag = "3")]
    pub switch_next_pid: Vec<i32>,
    #[prost(int32, repeated, tag = "4")]
    pub switch_next_prio: Vec<i32>,
    #[prost(string, repeated, tag = "5")]
    pub intern_table: Vec<String>,
    #[prost(uint32, repeated, tag = "6")]
    pub switch_next_comm_index: Vec<u32>,
    #[prost(uint64, repeated, tag = "7")]
    pub waking_timestamp: Vec<u64>,
    #[prost(int32, repeated, tag = "8")]
    pub waking_pid: Vec<i32>,
    #[prost(int32, repeated, tag = "9")]
    pub waking_target_cpu: Vec<i32>,
    #[prost(int32, repeated, tag = "10")]
    pub waking_prio: Vec<i32>,
    #[prost(uint32, repeated, tag = "11")]
    pub waking_comm_index: Vec<u32>,
    #[prost(uint32, repeated, tag = "12")]
    pub waking_common_flags: Vec<u32>,
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

/// What an event can be.
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
    #[prost(string, optional, tag = "1")]
    pub prev_comm: Option<String>,
    #[prost(int32, optional, tag = "2")]
    pub prev_pid: Option<i32>,
    #[prost(int32, optional, tag = "3")]
    pub prev_prio: Option<i32>,
    #[prost(int64, optional, tag = "4")]
    pub prev_state: Option<i64>,
    #[prost(string, optional, tag = "5")]
    pub next_comm: Option<String>,
    #[prost(int32, optional, tag = "6")]
    pub next_pid: Option<i32>,
    #[prost(int32, optional, tag = "7")]
    pub next_prio: Option<i32>,
}

/// `SchedWakingFtraceEvent`, `SchedWakeupFtraceEvent`, `SchedWakeupNewFtraceEvent`.
#[derive(Clone, PartialEq, Message)]
pub struct Comm {
    #[prost(string, optional, tag = "1")]
    pub comm: Option<String>,
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
    #[prost(string, optional, tag = "1")]
    pub comm: Option<String>,
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
    #[prost(string, optional, tag = "3")]
    pub child_comm: Option<String>,
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
    #[prost(string, optional, tag = "3")]
    pub newcomm: Option<String>,
}

/// `IrqHandlerEntryFtraceEvent`.
#[derive(Clone, PartialEq, Message)]
pub struct IrqEntry {
    #[prost(string, optional, tag = "2")]
    pub name: Option<String>,
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

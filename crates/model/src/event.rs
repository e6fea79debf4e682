//! What a machine says about a run, one fixed-size record at a time.
//!
//! docs/events.md fixes for every kind and every metric the exact start and stop rule, the
//! simulated source and the live source. The records carry numbers only; names stand once, in the
//! [`Header`].

mod pack;
mod what;

use crate::{CpuId, MachineSpec, Nanos, SimTime, TaskId};
pub use pack::EventWords;
pub use what::{Cause, Change, IdleChange, InQueue, Removed, TaskClass, Wakeup, What};

/// Version of the event format that is written.
pub const EVENT_FORMAT_VERSION: u32 = 4;

/// Versions of the event format that are read. 1 and 3, without and with decisions
/// ([`EventMask::DECISIONS`]), lack the kinds from [`EventKind::Suspend`] on.
pub const EVENT_FORMAT_VERSIONS: [u32; 3] = [1, 3, EVENT_FORMAT_VERSION];

/// One thing that happened. 32 bytes, `Copy`. [`Event::what`] says what, [`Event::new`] makes one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Event {
    /// When it happened.
    pub time: SimTime,
    /// The task that it happened to, or [`TaskId::NONE`].
    pub task: TaskId,
    /// The CPU that it happened on.
    pub cpu: CpuId,
    /// What happened; fixes the meaning of the words below.
    pub kind: EventKind,
    /// Sub-kind: an [`Op`] for [`EventKind::Callback`], a [`PrevState`] for
    /// [`EventKind::Switch`], a [`WakeCause`] for [`EventKind::Wakeup`], the [`Caller`] for
    /// decisions, else 0.
    detail: u8,
    /// First payload word.
    a: u64,
    /// Second payload word.
    b: u64,
}

const _: () = assert!(size_of::<Event>() == 32);

/// Bit of [`EventKind::Wakeup`]'s first word: the waker told the kernel that it is about to sleep
/// (`WF_SYNC`, kernel/sched/sched.h, 6.18), as pipes and sockets do. Never set by an interrupt.
pub const SYNC_BIT: u32 = 48;

/// First word of [`EventKind::Change`]: what changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Changed {
    /// Its nice value.
    Nice = 0,
    /// The CPUs that it may use.
    Affinity = 1,
    /// Its class.
    Class = 2,
}

/// What happened. The comments give `task`, `cpu`, `detail`, `a` and `b`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum EventKind {
    /// A task came to be. `cpu`: where its parent ran; `a`: index of its [`TaskGroup`] in the low
    /// 32 bits, its index within the group above; `b`: pid in the low 32 bits, parent's
    /// [`TaskId`] above.
    New,
    /// A task left its CPU for the last time. `cpu`: that CPU.
    Exit,
    /// A task became runnable by a wakeup or as a new task (the tracepoints `sched_wakeup` and
    /// `sched_wakeup_new`). `cpu`: the CPU whose run queue took it; `a`: the waker's [`TaskId`]
    /// in the low 32 bits (`NONE`: an interrupt or the start of the run), the waker's CPU in bits
    /// 32 to 47, and in bit 48 ([`SYNC_BIT`]) whether the waker told the kernel that it is about
    /// to sleep; `b`: 1 for a new task, else 0; `detail`: [`WakeCause`].
    Wakeup,
    /// A CPU changed its task (tracepoint `sched_switch`). `task`: the next task, `NONE` for
    /// idle; `detail`: [`PrevState`]; `a`: the previous [`TaskId`] in the low 32 bits; `b`:
    /// nanoseconds of overhead before the next task's first instruction.
    Switch,
    /// A task's CPU changed (tracepoint `sched_migrate_task`). `cpu`: the new CPU; `a`: the old.
    Migrate,
    /// A callback of the policy was called. `cpu`: the executing CPU; `detail`: [`Op`]; `a`, `b`:
    /// see [`Op`].
    Callback,
    /// An interrupt or a kernel activity took time from the CPU. `task`: the interrupted task or
    /// `NONE`; `a`: nanoseconds taken.
    Steal,
    /// The policy reported on a task at `running` (report.bpf.h). `a`: priority in the low 32
    /// bits, level above; `b`: flags (bit 0: labelled interactive).
    Report,
    /// A named span of the workload began. `a`: index into [`Header::spans`].
    SpanBegin,
    /// A named span ended. `a`: index into [`Header::spans`]; `b`: its length in nanoseconds.
    SpanEnd,
    /// Work with a deadline was done. `a`: index into [`Header::deadlines`]; `b`: nanoseconds
    /// after the deadline, 0 when it was met.
    Deadline,
    /// Deadlines passed whose work is never done: periods that were given up, or what was due and
    /// not done when the run ended. `a`: index into [`Header::deadlines`]; `b`: how many.
    Skipped,
    /// A workload counter was raised. `a`: index into [`Header::counters`]; `b`: by how much.
    Count,
    /// A task entered a named phase. `a`: index into [`Header::phases`].
    Phase,
    /// A CPU was kicked by the policy. `cpu`: the target; `a`: kick flags; `b`: the calling CPU.
    Kick,
    /// A task's nice value, affinity or class changed. `a`: 0 nice, 1 affinity, 2 class; `b`: the
    /// new nice value (as `i64`), the number of allowed CPUs, or the class: 1 real-time, 2 fair,
    /// 3 the policy's, 5 deadline.
    Change,
    /// A decision: a dispatch queue came to be or was destroyed. `a`: its id; `b`: its index in
    /// the low 32 bits, above it 1 if it came to be.
    Queue,
    /// A decision: a task came into a queue, or `ops.enqueue` kept it. `a`: the queue's index in
    /// the low 32 bits (`u32::MAX`: kept by the policy), its depth after it above; `b`: place in
    /// the low 32 bits, [`insert`] bits above.
    Insert,
    /// A decision: a queue was looked at, from `cpu`. `task`: the one that was taken or seen, or
    /// `NONE`; `a`: as for [`EventKind::Insert`]; `b`: place in the low 32 bits, [`Looked`] above.
    Look,
    /// A decision: a task left its queue, not for another one. `a`: as for
    /// [`EventKind::Insert`]; `b`: place in the low 32 bits, above it 0 if the task begins to
    /// run, 1 if it does not want to run or is taken out for a change.
    Remove,
    /// A decision: an insert of a task that the policy did not hold, which the kernel ignores.
    /// `a`: the queue's id; `b`: place in the low 32 bits.
    Ignored,
    /// A decision: what became of a kick of `cpu`. `a`: [`Kicked`]; `b`: place in the low 32
    /// bits, the CPU that kicks above.
    KickEnd,
    /// A decision: the tracking of idle CPUs. `a`: 0 `cpu` was claimed, 1 it idles, 2 it leaves
    /// idle; `b`: place in the low 32 bits.
    Idle,
    /// A decision: a task got another slice. `a`: nanoseconds; `b`: place in the low 32 bits,
    /// [`Sliced`] above.
    Slice,
    /// With decisions: the CPUs that a task may use. `a`: how many; `b`: the lowest 64 bits of the
    /// mask.
    Allowed,
    /// A decision: what ended the policy's time. `task`: the one that the callback was about;
    /// `a`: exit kind; `b`: place in the low 32 bits.
    Failed,
    /// Reserved. A decision: the callback that `cpu` executes is put off in its middle. `task`: the
    /// one that it is about, or `NONE`; `a`: see [`Until`]; `b`: place in the low 32 bits,
    /// [`Until`] above.
    Suspend,
    /// Reserved. A decision: the callback on `cpu` that was put off goes on. `task`, `b`: as for
    /// [`EventKind::Suspend`], without [`Until`]; `a`: for how many nanoseconds it was put off.
    Resume,
    /// With decisions, where there are several schedulers: what follows is another one's. `a`: its
    /// number in the low 32 bits, 0 for the root's; `b`: id of its cgroup. See
    /// [`What::Scheduler`].
    Scheduler,
    /// The frequency of a domain of CPUs at the begin of the run, and when it has changed, on
    /// machines whose CPUs have some. `cpu`: the first one of the domain; `a`: kHz; `b`: the rate
    /// at which it works in the low 32 bits, in 2^-20 of the fastest CPU's, 0 if that is not told.
    Frequency,
    /// A decision, which [`EventMask::DECISIONS`] leaves out: the virtual time by which the insert
    /// in front of it ordered a task. `a`: the vtime; `b`: place in the low 32 bits.
    Vtime,
}

impl EventKind {
    /// Every kind, in the order of the declaration.
    pub const ALL: [Self; 31] = [
        Self::New,
        Self::Exit,
        Self::Wakeup,
        Self::Switch,
        Self::Migrate,
        Self::Callback,
        Self::Steal,
        Self::Report,
        Self::SpanBegin,
        Self::SpanEnd,
        Self::Deadline,
        Self::Skipped,
        Self::Count,
        Self::Phase,
        Self::Kick,
        Self::Change,
        Self::Queue,
        Self::Insert,
        Self::Look,
        Self::Remove,
        Self::Ignored,
        Self::KickEnd,
        Self::Idle,
        Self::Slice,
        Self::Allowed,
        Self::Failed,
        Self::Suspend,
        Self::Resume,
        Self::Scheduler,
        Self::Frequency,
        Self::Vtime,
    ];
}

/// Flags of [`EventKind::Insert`].
pub mod insert {
    /// Ordered by vtime.
    pub const VTIME: u32 = 1;
    /// In front of the others.
    pub const HEAD: u32 = 2;
    /// It preempts what runs on the queue's CPU.
    pub const PREEMPT: u32 = 4;
    /// It comes from another queue.
    pub const MOVED: u32 = 8;
    /// The kernel put it there by a rule of its own, without asking the policy.
    pub const KERNEL: u32 = 16;
}

/// What is in the flags of [`EventKind::Report`].
pub mod report {
    /// The policy takes the task for interactive.
    pub const INTERACTIVE: u64 = 1;
    /// The task waits until the others have had their turn.
    pub const EXPIRED: u64 = 2;
}

/// How a queue was looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Looked {
    /// `scx_bpf_dsq_move_to_local()`.
    MoveToLocal,
    /// An iterator began.
    Iterate,
    /// `scx_bpf_dsq_move()` of this task.
    Move,
    /// The kernel's own look at the global queue.
    Kernel,
    /// No queue in particular: `ops.dispatch` has ended and neither moved nor inserted a task.
    Nothing,
    /// No queue: a program had a task in hand that the policy keeps, and let it go without an
    /// insert.
    LetGo,
}

/// Outcome of a kick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Kicked {
    /// It was asked for.
    Asked,
    /// An earlier one of the same CPU was still to be carried out: they become one.
    Coalesced,
    /// Nothing: the CPU did not idle, or the policy was not heard.
    Dropped,
    /// The CPU was told to schedule.
    Taken,
}

/// Why a task got another slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Sliced {
    /// The program set it.
    Set,
    /// An insert gave it.
    Insert,
    /// The kernel refilled it with the default.
    Default,
    /// A kick, a preempting insert or a yield ended it.
    Cut,
}

/// Condition that ends the suspension of a callback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Until {
    /// A moment; the word is nanoseconds since the run began.
    Time,
    /// A lock becomes free; the word tells locks apart.
    Lock,
    /// So many events of other CPUs have happened; the word is how many.
    Events,
}

/// Maker of a decision: the `detail` of decisions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caller {
    /// A callback.
    Callback(Op),
    /// The kernel, outside of callbacks.
    Kernel,
    /// A program outside of callbacks: a timer's, or one that user space runs.
    Program,
}

impl Caller {
    /// Number of the kernel: behind the callbacks that there were when numbers were given out.
    const KERNEL: u8 = 35;
    /// Number of a program.
    const PROGRAM: u8 = Self::KERNEL + 1;
    /// What is added to the number of a callback that came later.
    const LATER: u8 = 2;

    /// Its number in `detail`.
    #[must_use]
    pub const fn number(self) -> u8 {
        match self {
            Self::Callback(op) if (op as u8) < Self::KERNEL => op as u8,
            Self::Callback(op) => op as u8 + Self::LATER,
            Self::Kernel => Self::KERNEL,
            Self::Program => Self::PROGRAM,
        }
    }

    /// The caller that has this number.
    const fn numbered(number: u8) -> Self {
        let later = number.saturating_sub(Self::LATER) as usize;
        if number < Self::KERNEL {
            Self::Callback(Op::ALL[number as usize])
        } else if number == Self::PROGRAM {
            Self::Program
        } else if number > Self::PROGRAM && later < Op::ALL.len() {
            Self::Callback(Op::ALL[later])
        } else {
            Self::Kernel
        }
    }

    /// The caller of a decision.
    #[must_use]
    pub const fn of(event: &Event) -> Self {
        Self::numbered(event.detail)
    }

    /// Its name in files and texts.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Callback(op) => op.name(),
            Self::Kernel => "kernel",
            Self::Program => "program",
        }
    }
}

/// No place, or no queue.
pub const NOWHERE: u32 = u32::MAX;

/// What a record of 32 bytes has no room for. Only with decisions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Text {
    /// A place in a program's source, before the first event that names it.
    Place {
        /// Its number in events.
        place: u32,
        /// The function of the object.
        function: String,
        /// The source file, if the object has line information.
        file: Option<String>,
        /// The line, from 1; 0 without line information.
        line: u32,
    },
    /// How the policy's time ended; before the end of the run.
    Exit(crate::Exit),
    /// A scheduler below the root, before the first event that names it.
    Scheduler {
        /// Its number in events.
        scheduler: u32,
        /// The policy's name.
        policy: String,
        /// Path of its cgroup.
        cgroup: String,
    },
    /// How the time of a scheduler below the root ended; before the end of the run.
    SubExit {
        /// Its number.
        scheduler: u32,
        /// Its end.
        exit: crate::Exit,
    },
}

/// A set of [`EventKind`]s.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventMask(u32);

impl EventMask {
    /// No kind at all.
    pub const NONE: Self = Self(0);
    /// Decisions of the policy, the kernel's part in them, and whose they are. They must be asked
    /// for, because they cost time.
    pub const DECISIONS: Self = Self::NONE
        .with(EventKind::Queue)
        .with(EventKind::Insert)
        .with(EventKind::Look)
        .with(EventKind::Remove)
        .with(EventKind::Ignored)
        .with(EventKind::KickEnd)
        .with(EventKind::Idle)
        .with(EventKind::Slice)
        .with(EventKind::Allowed)
        .with(EventKind::Failed)
        .with(EventKind::Suspend)
        .with(EventKind::Resume)
        .with(EventKind::Scheduler);
    /// Every kind but those.
    pub const ALL: Self = Self(!Self::DECISIONS.0).without(EventKind::Vtime);
    /// Every kind but the policy's callbacks, which are the most numerous.
    pub const SCHED: Self = Self::ALL.without(EventKind::Callback);

    /// The set with `kind` added.
    #[must_use]
    pub const fn with(self, kind: EventKind) -> Self {
        Self(self.0 | 1 << kind as u32)
    }

    /// The set with `kind` taken out.
    #[must_use]
    pub const fn without(self, kind: EventKind) -> Self {
        Self(self.0 & !(1 << kind as u32))
    }

    /// Whether `kind` is in the set.
    #[must_use]
    pub const fn has(self, kind: EventKind) -> bool {
        self.0 & 1 << kind as u32 != 0
    }

    /// The kinds of either set.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The kinds of both sets.
    #[must_use]
    pub const fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

/// In which state a task left its CPU; the `detail` of [`EventKind::Switch`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum PrevState {
    /// The CPU was idle before.
    Idle,
    /// The task still is runnable: its slice ended, it yielded, or it was preempted.
    Runnable,
    /// The task sleeps.
    Sleeping,
    /// The task has exited.
    Dead,
}

/// Cause of a wakeup; the `detail` of [`EventKind::Wakeup`]. Only imported traces say it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum WakeCause {
    /// Nothing is said; a waker that is named woke it.
    #[default]
    Unsaid,
    /// It was runnable when the recording began.
    Before,
    /// A clock that the task itself had set.
    Clock,
    /// A device that the task waited for.
    Device,
    /// An interrupt: work that came from outside.
    Outside,
}

/// A callback of `struct sched_ext_ops` (kernel 6.18). The comments give the words `a` and `b` of
/// [`EventKind::Callback`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Op {
    /// `a`: wake flags; `b`: previous CPU.
    SelectCpu,
    /// `a`: enqueue flags; `b`: the task's CPU.
    Enqueue,
    /// `a`: dequeue flags.
    Dequeue,
    /// Event's `task`: the previous task or `NONE`; `a`: the CPU; `b`: 1 if the previous task is
    /// still queued.
    Dispatch,
    /// `a`: slice left, nanoseconds.
    Tick,
    /// `a`: enqueue flags.
    Runnable,
    /// `a`: slice, nanoseconds; `b`: the task's CPU.
    Running,
    /// `a`: 1 if the task stays runnable; `b`: slice left, nanoseconds.
    Stopping,
    /// `a`: dequeue flags.
    Quiescent,
    /// `a`: [`TaskId`] yielded to, or `NONE`.
    Yield,
    /// Core scheduling; not modelled.
    CoreSchedBefore,
    /// `a`: new weight.
    SetWeight,
    /// `a`: number of allowed CPUs; `b`: the lowest 64 bits of the mask.
    SetCpumask,
    /// `a`: 1 if the CPU goes idle, 0 if it leaves idle; `b`: the CPU.
    UpdateIdle,
    /// `a`: the CPU.
    CpuAcquire,
    /// `a`: the CPU; `b`: reason.
    CpuRelease,
    /// `a`: 1 at fork.
    InitTask,
    /// `a`: 1 if the fork was cancelled.
    ExitTask,
    /// `a`: weight.
    Enable,
    /// No words.
    Disable,
    /// `a`: the CPU.
    CpuOnline,
    /// `a`: the CPU.
    CpuOffline,
    /// No words.
    Init,
    /// `a`: exit kind.
    ExitPolicy,
    /// Dump callbacks.
    Dump,
    /// `a`: the CPU.
    DumpCpu,
    /// No words.
    DumpTask,
    /// Cgroup callbacks; `a`: cgroup id.
    CgroupInit,
    /// `a`: cgroup id.
    CgroupExit,
    /// `a`: id of the new cgroup; `b`: of the old one.
    CgroupPrepMove,
    /// `a`: id of the new cgroup; `b`: of the old one.
    CgroupMove,
    /// `a`: id of the new cgroup; `b`: of the old one.
    CgroupCancelMove,
    /// `a`: cgroup id; `b`: weight.
    CgroupSetWeight,
    /// `a`: cgroup id; `b`: quota in microseconds, all bits set without one.
    CgroupSetBandwidth,
    /// `a`: cgroup id; `b`: 1 if it idles. Since 6.19.
    CgroupSetIdle,
    /// No words. Of policies in cid form, since 7.3.
    InitCids,
    /// A scheduler below this one comes; `a`: its cgroup's id. Since 7.1; not modelled.
    SubAttach,
    /// It goes; `a`: its cgroup's id. Since 7.1; not modelled.
    SubDetach,
    /// Rights on CPUs were given or taken; `a`: which. Since 7.3; not modelled.
    SubCapsUpdated,
    /// They hold on a CPU from now on; `a`: the CPU; `b`: which. Since 7.3; not modelled.
    SubEcapsUpdated,
}

impl Op {
    /// Every callback, in the order of the declaration.
    pub const ALL: [Self; 40] = [
        Self::SelectCpu,
        Self::Enqueue,
        Self::Dequeue,
        Self::Dispatch,
        Self::Tick,
        Self::Runnable,
        Self::Running,
        Self::Stopping,
        Self::Quiescent,
        Self::Yield,
        Self::CoreSchedBefore,
        Self::SetWeight,
        Self::SetCpumask,
        Self::UpdateIdle,
        Self::CpuAcquire,
        Self::CpuRelease,
        Self::InitTask,
        Self::ExitTask,
        Self::Enable,
        Self::Disable,
        Self::CpuOnline,
        Self::CpuOffline,
        Self::Init,
        Self::ExitPolicy,
        Self::Dump,
        Self::DumpCpu,
        Self::DumpTask,
        Self::CgroupInit,
        Self::CgroupExit,
        Self::CgroupPrepMove,
        Self::CgroupMove,
        Self::CgroupCancelMove,
        Self::CgroupSetWeight,
        Self::CgroupSetBandwidth,
        Self::CgroupSetIdle,
        Self::InitCids,
        Self::SubAttach,
        Self::SubDetach,
        Self::SubCapsUpdated,
        Self::SubEcapsUpdated,
    ];

    /// The member's name in `struct sched_ext_ops`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::SelectCpu => "select_cpu",
            Self::Enqueue => "enqueue",
            Self::Dequeue => "dequeue",
            Self::Dispatch => "dispatch",
            Self::Tick => "tick",
            Self::Runnable => "runnable",
            Self::Running => "running",
            Self::Stopping => "stopping",
            Self::Quiescent => "quiescent",
            Self::Yield => "yield",
            Self::CoreSchedBefore => "core_sched_before",
            Self::SetWeight => "set_weight",
            Self::SetCpumask => "set_cpumask",
            Self::UpdateIdle => "update_idle",
            Self::CpuAcquire => "cpu_acquire",
            Self::CpuRelease => "cpu_release",
            Self::InitTask => "init_task",
            Self::ExitTask => "exit_task",
            Self::Enable => "enable",
            Self::Disable => "disable",
            Self::CpuOnline => "cpu_online",
            Self::CpuOffline => "cpu_offline",
            Self::Init => "init",
            Self::ExitPolicy => "exit",
            Self::Dump => "dump",
            Self::DumpCpu => "dump_cpu",
            Self::DumpTask => "dump_task",
            Self::CgroupInit => "cgroup_init",
            Self::CgroupExit => "cgroup_exit",
            Self::CgroupPrepMove => "cgroup_prep_move",
            Self::CgroupMove => "cgroup_move",
            Self::CgroupCancelMove => "cgroup_cancel_move",
            Self::CgroupSetWeight => "cgroup_set_weight",
            Self::CgroupSetBandwidth => "cgroup_set_bandwidth",
            Self::CgroupSetIdle => "cgroup_set_idle",
            Self::InitCids => "init_cids",
            Self::SubAttach => "sub_attach",
            Self::SubDetach => "sub_detach",
            Self::SubCapsUpdated => "sub_caps_updated",
            Self::SubEcapsUpdated => "sub_ecaps_updated",
        }
    }

    /// The callback of this name, in `struct sched_ext_ops` or in `struct sched_ext_ops_cid`.
    #[must_use]
    pub fn named(name: &str, cid_form: bool) -> Option<Self> {
        let name = match name.strip_prefix("cpuctl_") {
            Some(rest) if cid_form => &format!("cgroup_{rest}"),
            _ => name,
        };
        let by_form = [
            (Self::SelectCpu, "select_cid"),
            (Self::SetCpumask, "set_cmask"),
            (Self::CpuOnline, "cid_online"),
            (Self::CpuOffline, "cid_offline"),
            (Self::DumpCpu, "dump_cid"),
        ];
        let own = by_form.into_iter().find(|(_, own)| *own == name);
        match own {
            Some((op, _)) => cid_form.then_some(op),
            None => Self::ALL.into_iter().find(|op| op.name() == name),
        }
    }
}

/// Tasks that a workload declares together. Member `i` of group `shell` is called `shell`
/// when the group has one member, else `shell.i`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskGroup {
    /// The group's name in the workload file.
    pub name: String,
    /// Nice value of its tasks at their start.
    pub nice: i8,
    /// How many the file declares; forks may add more.
    pub count: u32,
}

/// The names and the machine that a stream of events speaks of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// Name of the policy.
    pub policy: String,
    /// Name of the workload.
    pub workload: String,
    /// The machine.
    pub machine: MachineSpec,
    /// Seed of the run.
    pub seed: u64,
    /// When the run will end at the latest.
    pub duration: Option<Nanos>,
    /// Groups, in the order of the file.
    pub groups: Vec<TaskGroup>,
    /// Names of spans.
    pub spans: Vec<String>,
    /// Names of deadlines, with the word for a miss ("late", "underrun", "missed frame").
    pub deadlines: Vec<(String, String)>,
    /// Names of counters.
    pub counters: Vec<String>,
    /// Names of phases.
    pub phases: Vec<String>,
}

/// Takes the events of a run.
pub trait Sink {
    /// Which kinds this sink wants. A kind that no sink wants is never built.
    fn wants(&self) -> EventMask;

    /// The names that the events speak of. Called once, before any event.
    fn begin(&mut self, header: &Header);

    /// Takes the next events, in the order of time. May get kinds that it did not want.
    fn events(&mut self, events: &[Event]);

    /// Says what the events from here on need beside their records. Only a sink that wants
    /// decisions gets any.
    fn text(&mut self, _text: &Text) {}

    /// Whether the run may end here, because nobody wants to know more of it. Asked after each call
    /// of [`Sink::events`].
    fn has_enough(&self) -> bool {
        false
    }

    /// The run is over. `end` is the time of the last moment simulated.
    fn finish(&mut self, end: SimTime);
}

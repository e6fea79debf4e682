//! What a workload is once it has been read: counts are numbers, names are indices, spans of
//! time are integer nanoseconds. docs/workload.md has the meaning of every table and operation.

use crate::{
    Cgroup, Condition, CpuSet, DRAW_MAX, DeviceOp, Disk, Dist, Expr, Listener, Lock, Memory,
    Requests, Script, Semaphore,
};
use model::{CpuId, Header, MachineSpec, Nanos, Rng, TaskGroup};

/// Most tasks that exist at once.
pub const TASKS_MAX: u32 = 100_000;

/// A load: who runs, what they do, and what they share.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Workload {
    /// Its name.
    pub name: String,
    /// The file it was read from, for messages.
    pub file: String,
    /// Seed of its random choices, unless the command line gives another.
    pub seed: u64,
    /// When it is over.
    pub stop: StopRule,
    /// The machine that the file asks for, unless the command line asks for another.
    pub machine: MachineSpec,
    /// Each task that exists from the start begins by up to so much later, drawn evenly for each.
    pub start_jitter: Nanos,
    /// How the run begins, unless that is when the machine begins.
    pub begin: Option<Begin>,
    /// Its parameters with the values in force.
    pub scale: Vec<(String, i64)>,
    /// Cgroups besides the root, in the order of the file: a parent before its children.
    pub cgroups: Vec<Cgroup>,
    /// Channels, in the order of the file.
    pub channels: Vec<Channel>,
    /// Locks, in the order of the file.
    pub locks: Vec<Lock>,
    /// Barriers, in the order of the file.
    pub barriers: Vec<Barrier>,
    /// Semaphores, in the order of the file.
    pub semaphores: Vec<Semaphore>,
    /// Condition variables, in the order of the file.
    pub conditions: Vec<Condition>,
    /// Listening sockets, in the order of the file.
    pub listeners: Vec<Listener>,
    /// Requests from outside, in the order of the file.
    pub requests: Vec<Requests>,
    /// Interrupt sources, in the order of the file.
    pub interrupts: Vec<Interrupt>,
    /// Disks, in the order of the file.
    pub disks: Vec<Disk>,
    /// Memory, if it is limited.
    pub memory: Option<Memory>,
    /// CPUs that go offline, in the order of the file.
    pub hotplugs: Vec<Hotplug>,
    /// Deadlines, in the order of the file.
    pub deadlines: Vec<Deadline>,
    /// Groups of tasks, in the order of the file.
    pub groups: Vec<Group>,
    /// Names of spans, in the order of their first use.
    pub spans: Vec<String>,
    /// Names of counters, in the order of their first use.
    pub counters: Vec<String>,
    /// Names of phases, in the order of their first use.
    pub phases: Vec<String>,
}

impl Workload {
    /// Whether it is a recording, whose tasks do one thing after the other as they did.
    #[must_use]
    pub fn is_recorded(&self) -> bool {
        let mut steps = self.groups.iter().flat_map(|group| &group.body);
        steps.any(|step| matches!(step.op, Operation::Script(_)))
    }

    /// The header of the events that a run of this workload under `policy` sends.
    #[must_use]
    pub fn header(
        &self,
        policy: &str,
        machine: &MachineSpec,
        seed: u64,
        duration: Option<Nanos>,
    ) -> Header {
        let group = |g: &Group| TaskGroup {
            name: g.name.clone(),
            nice: g.nice,
            count: g.count,
        };
        Header {
            policy: policy.to_owned(),
            workload: self.name.clone(),
            machine: machine.clone(),
            seed,
            duration,
            groups: self.groups.iter().map(group).collect(),
            spans: self.spans.clone(),
            deadlines: self
                .deadlines
                .iter()
                .map(|d| (d.name.clone(), d.miss.clone()))
                .collect(),
            counters: self.counters.clone(),
            phases: self.phases.clone(),
        }
    }

    /// When the member `index` of `group`, which exists from the start, becomes runnable.
    ///
    /// # Panics
    /// If the workload has no such group.
    #[must_use]
    pub fn start(&self, seed: u64, group: u32, index: u32) -> Nanos {
        let mut rng = Rng::of_start(seed, group, index);
        let declared = self.groups[group as usize].start.sample(&mut rng);
        match self.start_jitter {
            // Nothing is drawn, as before there was a jitter.
            Nanos::ZERO => declared,
            most => {
                let later = Dist::Uniform(Nanos::ZERO, most.min(DRAW_MAX)).sample(&mut rng);
                (declared + later).min(DRAW_MAX)
            }
        }
    }

    /// Name of a group's member: `shell` when the group declares one task, else `shell.i`.
    ///
    /// # Panics
    /// If the workload has no such group.
    #[must_use]
    pub fn task_name(&self, group: u32, index: u32) -> String {
        let group = &self.groups[group as usize];
        match group.count {
            1 if index == 0 => group.name.clone(),
            _ => format!("{}.{index}", group.name),
        }
    }
}

/// A run that begins when the machine has run for a while. Until then the tasks that exist from the
/// start wait, asleep, as those of `runslice play` do while it prepares. All times of the workload
/// count from there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Begin {
    /// When, on the machine's clock.
    pub at: Nanos,
    /// The barrier at which they wait; one party more opens it.
    pub gate: u32,
}

/// When a workload is over: at the first of these. It always is over when every task has exited.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StopRule {
    /// After this much time.
    pub after: Option<Nanos>,
    /// When every task of one of these groups has exited, and at least one had begun.
    pub groups: Vec<u32>,
    /// When every request of one of these arrivals is done.
    pub requests: Vec<u32>,
}

/// The kernel object that a channel imitates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChannelKind {
    /// A stream socket of the family `AF_UNIX`.
    Unix,
    /// A pipe.
    Pipe,
    /// A TCP connection over the loopback device.
    Tcp,
    /// A queue within one process, guarded by a lock and a condition variable.
    Queue,
}

/// How much a channel holds before its writers block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capacity {
    /// What the kernel's own accounting allows.
    Kernel,
    /// So many messages.
    Messages(u64),
    /// So many bytes.
    Bytes(u64),
    /// Without limit.
    Unbounded,
}

/// `[chan.X]`: messages in order, from any task to any task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Channel {
    /// Its name.
    pub name: String,
    /// The kernel object that it imitates.
    pub kind: ChannelKind,
    /// How many there are.
    pub count: u32,
    /// How much each holds.
    pub capacity: Capacity,
    /// Bytes of a message that says no other size.
    pub msg: u64,
}

/// Action of an unlock on waiting tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handoff {
    /// Gives the lock to the first of them.
    Fifo,
    /// Frees the lock and wakes the first of them; whoever runs first takes it.
    Barge,
}

/// `[barrier.B]`: opens when all its parties have come, and closes again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Barrier {
    /// Its name.
    pub name: String,
    /// How many there are.
    pub count: u32,
    /// How many tasks it waits for.
    pub parties: u32,
}

/// When interrupts arrive.
#[derive(Clone, Debug, PartialEq)]
pub enum Arrival {
    /// At `start` and every `period` after it, each late by a draw of `jitter`.
    Periodic {
        /// From one to the next.
        period: Nanos,
        /// How late each one is, drawn anew; must stay below the period.
        jitter: Option<Dist>,
    },
    /// With exponential gaps of this mean.
    Poisson {
        /// Mean gap.
        mean: Nanos,
    },
    /// Once, at `start`.
    Once,
}

/// Effect of an interrupt besides taking time.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Nothing.
    None,
    /// Sends one message to a channel; lost when the channel is full. The index is a number.
    Send(IndexedResource),
    /// Resumes a task, as the operation `resume` does. A member whose index is a number.
    Resume(Target),
}

/// `[irq.I]`: a source of interrupts.
#[derive(Clone, Debug, PartialEq)]
pub struct Interrupt {
    /// Its name.
    pub name: String,
    /// The CPU that takes them.
    pub cpu: CpuId,
    /// Earliest arrival, from the start of the run.
    pub start: Nanos,
    /// When they arrive.
    pub arrival: Arrival,
    /// CPU time that each takes.
    pub cost: Dist,
    /// What each does.
    pub effect: Effect,
    /// Line in the file, from one.
    pub line: u32,
}

/// `[hotplug.H]`: a CPU goes offline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hotplug {
    /// Its name.
    pub name: String,
    /// The CPU, not CPU 0.
    pub cpu: CpuId,
    /// When it goes.
    pub offline: Nanos,
    /// When it comes back, if it does; later than it goes.
    pub online: Option<Nanos>,
    /// Line in the file, from one.
    pub line: u32,
}

/// `[deadline.D]`: work that must be done in time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deadline {
    /// Its name.
    pub name: String,
    /// From one release to the next; `None`: the task's last received message is the release.
    pub period: Option<Nanos>,
    /// The first release of every task, from the begin of the run; `None`: a task's first call.
    /// Only with a period.
    pub begins: Option<Nanos>,
    /// Time from a release to its deadline.
    pub slack: Nanos,
    /// Whether periods that passed before the task came back are given up (`true`) or made up
    /// for one after the other.
    pub skip: bool,
    /// The word for one that was missed.
    pub miss: String,
}

/// A thread of its parent's process, a process, or a thread of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskKind {
    /// A thread.
    Thread,
    /// A process.
    Process,
    /// A kernel thread: `PF_KTHREAD`, and no address space.
    Kernel,
}

/// The kernel's scheduling policy of a task (`sched(7)`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SchedPolicy {
    /// `SCHED_OTHER`.
    #[default]
    Normal,
    /// `SCHED_BATCH`.
    Batch,
    /// `SCHED_IDLE`.
    Idle,
    /// `SCHED_FIFO` with a real-time priority, 1 to 99, 99 most urgent.
    Fifo(u8),
    /// `SCHED_RR` with a real-time priority, 1 to 99, 99 most urgent.
    RoundRobin(u8),
    /// `SCHED_DEADLINE`.
    Deadline(Budget),
}

/// Budget of a deadline task, as the kernel accepts it: runtime <= deadline <= period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// CPU time in each period, 1024 ns or more.
    pub runtime: Nanos,
    /// Time from the begin of a period until it must have had it.
    pub deadline: Nanos,
    /// From one period to the next, 100 us to 4.194304 s.
    pub period: Nanos,
}

/// Limits on the speed of a task's CPU while the task is runnable, of 1024 (`util_min` and
/// `util_max` of `sched_setattr()`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UtilClamps {
    /// At least that; `None`: 0, and 1024 of a real-time task.
    pub min: Option<u16>,
    /// At most that; `None`: 1024.
    pub max: Option<u16>,
}

impl UtilClamps {
    /// Whether something is said.
    #[must_use]
    pub const fn is_set(&self) -> bool {
        self.min.is_some() || self.max.is_some()
    }
}

/// `[task.T]`: tasks that do the same.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// Its name.
    pub name: String,
    /// How many exist from the start; 0 for a group that is only forked.
    pub count: u32,
    /// Nice value at birth, -20 to 19.
    pub nice: i8,
    /// Policy at birth.
    pub policy: SchedPolicy,
    /// Number of its cgroup at birth; `None`: the parent's, or the root of a task without parent.
    pub cgroup: Option<u32>,
    /// CPUs allowed at birth; `None`: all.
    pub cpus: Option<CpuSet>,
    /// When the tasks that exist from the start become runnable; drawn for each.
    pub start: Dist,
    /// Thread, process or kernel thread.
    pub kind: TaskKind,
    /// Born inside a section of the kernel that forbids migration, and stays there.
    pub migration_disabled: bool,
    /// Whether member `i` may run on CPU `i` only; then `cpus` says nothing.
    pub one_each_cpu: bool,
    /// Whether a machine without those `cpus` lets the tasks use all, as a kernel lets a task
    /// whose CPUs have all gone (`select_fallback_rq()`, kernel/sched/core.c, Linux 6.18): a
    /// recording may be of a larger machine. Otherwise such a machine is refused.
    pub free_elsewhere: bool,
    /// Whether these tasks go on as long as the machine does: no run waits for their end.
    pub background: bool,
    /// Bytes that each uses of a cache; `None`: as the machine's profile says.
    pub footprint: Option<u64>,
    /// Percent of its work that waits for memory, on a machine whose CPUs differ.
    pub mem: u8,
    /// Limits on the speed of its CPU, on a machine whose CPUs differ.
    pub clamps: UtilClamps,
    /// What each does, before it exits.
    pub body: Vec<Step>,
    /// How many variables the body has.
    pub variables: u32,
}

impl Group {
    /// A process that no run waits for, under the fair class on any CPU from the begin on; it does
    /// nothing yet.
    #[must_use]
    pub fn background(name: String) -> Self {
        Self {
            name,
            count: 1,
            nice: 0,
            policy: SchedPolicy::Normal,
            cgroup: None,
            cpus: None,
            start: Dist::Const(Nanos::ZERO),
            kind: TaskKind::Process,
            migration_disabled: false,
            one_each_cpu: false,
            free_elsewhere: false,
            background: true,
            footprint: None,
            mem: 0,
            clamps: UtilClamps::default(),
            body: Vec::new(),
            variables: 0,
        }
    }
}

/// One resource of an indexed table: `c[i]`.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexedResource {
    /// Index of the table's entry: which channel, lock or barrier declaration.
    pub of: u32,
    /// Which of its instances.
    pub index: Expr,
}

/// A task that an operation acts on.
#[derive(Clone, Debug, PartialEq)]
pub enum Target {
    /// The acting task itself.
    Me,
    /// A member of a group.
    Member {
        /// Index of the group.
        group: u32,
        /// Index within the group.
        index: Expr,
    },
}

impl Target {
    /// The expression that says which member of a group it is.
    #[must_use]
    pub fn index(&self) -> Option<&Expr> {
        match self {
            Self::Me => None,
            Self::Member { index, .. } => Some(index),
        }
    }
}

/// A drawn span, taken so many times.
#[derive(Clone, Debug, PartialEq)]
pub struct Amount {
    /// The distribution that is drawn from, once.
    pub dist: Dist,
    /// Factor on the draw.
    pub times: Expr,
}

impl Amount {
    /// A draw as it is.
    #[must_use]
    pub const fn once(dist: Dist) -> Self {
        Self {
            dist,
            times: Expr::Number(1),
        }
    }
}

/// The points of a timer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Grid {
    /// It begins when the task begins, and not at the timer's first turn.
    pub from_start: bool,
    /// When a point has passed, the grid begins anew at that moment.
    pub moves: bool,
}

/// An operation, and where the file has it.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// The operation.
    pub op: Operation,
    /// Its line, counted from one.
    pub line: u32,
}

/// An operation of a task. docs/workload.md has the exact meaning.
#[derive(Clone, Debug, PartialEq)]
pub enum Operation {
    /// Computes for so long; `None`: for ever.
    Run(Option<Amount>),
    /// Starts another program, which costs this much CPU time.
    Exec(Amount),
    /// Computes in steps until so long after its begin.
    Poll {
        /// How long, in time of the clock.
        span: Amount,
        /// Computed between two looks at the clock, never zero.
        step: Nanos,
        /// Variable that remembers when the poll ends; 0 before the first step.
        slot: u32,
    },
    /// Sleeps for so long.
    Sleep(Amount),
    /// Sleeps until so long after the begin of the run.
    SleepUntil(Amount),
    /// Sleeps until the next point of a grid.
    Timer {
        /// How far the next point is from the last one.
        period: Nanos,
        /// Where the grid begins, and whether it moves.
        grid: Grid,
        /// Variable that remembers the last point, plus 1 ns; 0 before the first turn.
        slot: u32,
        /// The work since the last point has this deadline.
        deadline: Option<u32>,
    },
    /// Puts one message into a channel; blocks while the channel is full.
    Send {
        /// The channel.
        to: IndexedResource,
        /// Bytes; `None`: the channel's own message size.
        bytes: Option<Expr>,
        /// What the receiver sees as `got`; `None`: the sender's index.
        value: Option<Expr>,
    },
    /// Takes one message out of a channel; blocks while it is empty.
    Recv(IndexedResource),
    /// Sends one message to each instance of a channel in `first..end`, but not to `except`.
    Broadcast {
        /// Index of the channel's declaration.
        of: u32,
        /// First instance.
        first: Expr,
        /// One past the last instance.
        end: Expr,
        /// Instance left out.
        except: Option<Expr>,
        /// Variable that counts through the instances.
        slot: u32,
    },
    /// Takes a lock.
    Lock(IndexedResource),
    /// Gives a lock back.
    Unlock(IndexedResource),
    /// Waits for the barrier's other parties.
    Barrier(IndexedResource),
    /// `sched_yield()`.
    Yield,
    /// Begins a section in which the task may not leave its CPU.
    MigrateDisable,
    /// Ends such a section.
    MigrateEnable,
    /// Sleeps until resumed.
    Suspend,
    /// Ends another task's `suspend`, or its next one.
    Resume(Target),
    /// Creates one task of a group.
    Fork(u32),
    /// Ends the task.
    Exit,
    /// Waits for one child to exit, or for all.
    Wait {
        /// For all.
        all: bool,
    },
    /// Forks `total` tasks of a group, at most `width` at a time, and waits for all.
    Pool {
        /// Index of the group.
        group: u32,
        /// At most so many at a time.
        width: Expr,
        /// So many in all.
        total: Expr,
        /// Variable that counts those forked.
        slot: u32,
    },
    /// Does one of several things, drawn by weight.
    Choose(Vec<(u64, Vec<Step>)>),
    /// Does one thing or the other.
    If {
        /// Not zero: the first.
        cond: Expr,
        /// The first.
        then: Vec<Step>,
        /// The other.
        otherwise: Vec<Step>,
    },
    /// Repeats; `None`: for ever.
    Loop {
        /// How often.
        count: Option<Expr>,
        /// Variable that counts from zero.
        slot: u32,
        /// What is repeated.
        body: Vec<Step>,
    },
    /// Repeats while the condition is not zero.
    While {
        /// The condition.
        cond: Expr,
        /// What is repeated.
        body: Vec<Step>,
    },
    /// Gives a variable a value.
    Let {
        /// The variable.
        slot: u32,
        /// The value.
        value: Expr,
    },
    /// Changes a task's nice value.
    SetNice {
        /// Whose.
        target: Target,
        /// The new value; must be -20 to 19.
        nice: Expr,
    },
    /// Changes the CPUs that a task may run on.
    SetAffinity {
        /// Whose.
        target: Target,
        /// The new set; `None`: all CPUs.
        cpus: Option<CpuSet>,
    },
    /// Changes a task's scheduling policy.
    SetPolicy {
        /// Whose.
        target: Target,
        /// The new policy.
        policy: SchedPolicy,
    },
    /// Enters a named phase.
    Phase(u32),
    /// Begins a named span.
    SpanBegin(u32),
    /// Ends a named span.
    SpanEnd(u32),
    /// Raises a named counter.
    Count {
        /// Which.
        counter: u32,
        /// By how much.
        by: Expr,
    },
    /// Waits for a deadline's next release.
    Release(u32),
    /// The work that the last release asked for is done.
    Complete(u32),
    /// Uses something shared.
    Device(DeviceOp),
    /// Uses something shared, and does something else if that was refused.
    Attempt {
        /// What is tried.
        op: DeviceOp,
        /// Variable that is 1 if it was refused, else 0.
        failed: u32,
        /// What is done then.
        otherwise: Vec<Step>,
    },
    /// Does what a task of a recording did.
    Script(Script),
}

impl Operation {
    /// The expressions that it evaluates itself, in no particular order; those of operations in it
    /// are not among them.
    #[must_use]
    pub fn exprs(&self) -> Vec<&Expr> {
        match self {
            Self::Run(Some(amount))
            | Self::Exec(amount)
            | Self::Poll { span: amount, .. }
            | Self::Sleep(amount)
            | Self::SleepUntil(amount) => vec![&amount.times],
            Self::Send { to, bytes, value } => {
                let given = bytes.iter().chain(value);
                std::iter::once(&to.index).chain(given).collect()
            }
            Self::Recv(place) | Self::Lock(place) | Self::Unlock(place) | Self::Barrier(place) => {
                vec![&place.index]
            }
            Self::Broadcast {
                first, end, except, ..
            } => [first, end].into_iter().chain(except).collect(),
            Self::Resume(target)
            | Self::SetAffinity { target, .. }
            | Self::SetPolicy { target, .. } => target.index().into_iter().collect(),
            Self::SetNice { target, nice } => target.index().into_iter().chain([nice]).collect(),
            Self::Pool { width, total, .. } => vec![width, total],
            Self::Count { by: value, .. } | Self::Let { value, .. } => vec![value],
            Self::If { cond, .. } | Self::While { cond, .. } => vec![cond],
            Self::Loop { count, .. } => count.iter().collect(),
            Self::Device(op) | Self::Attempt { op, .. } => op.exprs(),
            Self::Run(None)
            | Self::Timer { .. }
            | Self::Yield
            | Self::MigrateDisable
            | Self::MigrateEnable
            | Self::Suspend
            | Self::Fork(_)
            | Self::Exit
            | Self::Wait { .. }
            | Self::Choose(_)
            | Self::Phase(_)
            | Self::SpanBegin(_)
            | Self::SpanEnd(_)
            | Self::Release(_)
            | Self::Complete(_)
            | Self::Script(_) => Vec::new(),
        }
    }

    /// Its name in the table of [`OPERATIONS`](crate::OPERATIONS). A `for` is a loop.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Run(_) => "run",
            Self::Exec(_) => "exec",
            Self::Poll { .. } => "poll",
            Self::Sleep(_) => "sleep",
            Self::SleepUntil(_) => "sleepuntil",
            Self::Timer { .. } => "timer",
            Self::Send { .. } => "send",
            Self::Recv(_) => "recv",
            Self::Broadcast { .. } => "bcast",
            Self::Lock(_) => "lock",
            Self::Unlock(_) => "unlock",
            Self::Barrier(_) => "barrier",
            Self::Yield => "yield",
            Self::MigrateDisable => "migrate_disable",
            Self::MigrateEnable => "migrate_enable",
            Self::Suspend => "suspend",
            Self::Resume(_) => "resume",
            Self::Fork(_) => "fork",
            Self::Exit => "exit",
            Self::Wait { .. } => "waitpid",
            Self::Pool { .. } => "pool",
            Self::Choose(_) => "choose",
            Self::If { .. } => "if",
            Self::Let { .. } => "let",
            Self::While { .. } => "while",
            Self::SetNice { .. } => "setnice",
            Self::SetAffinity { .. } => "setaffinity",
            Self::SetPolicy { .. } => "setpolicy",
            Self::Phase(_) => "phase",
            Self::SpanBegin(_) => "span_begin",
            Self::SpanEnd(_) => "span_end",
            Self::Count { .. } => "count",
            Self::Release(_) => "release",
            Self::Complete(_) => "complete",
            Self::Loop { .. } => "loop",
            Self::Script(_) => "script",
            Self::Device(op) | Self::Attempt { op, .. } => op.name(),
        }
    }
}

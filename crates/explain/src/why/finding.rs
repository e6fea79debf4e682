//! What can be said about a wait.

use std::collections::BTreeMap;

use model::{CpuId, Nanos, SimTime, TaskId, Text};

use super::schedulers::QueueName;
use super::verdict::{Tier, Verdict};

/// What went wrong, told by how it came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Fault {
    /// `ops.enqueue` kept the task, and no insert followed.
    Lost,
    /// The policy inserted the task when it did not hold it, and the kernel ignored that.
    InsertIgnored,
    /// The task is in a queue of the policy that nobody looks at, although CPUs ask for work.
    UnreadQueue,
    /// The task is in a queue that only CPUs look at where it may not run.
    UnreachableQueue,
    /// The CPUs that would look at the queue are never asked for work: the policy inserts other
    /// tasks into their local queues.
    LocalRefilled,
    /// A CPU looked at the queue of the task, took nobody, and ended its `dispatch`.
    Skipped,
    /// Others that came later, or from other queues, are always taken first.
    PassedOver,
    /// The task is in a queue, CPUs idle, and nobody told one to look.
    ForgottenKick,
    /// The task is in a queue, and a dump does not tell who looks there.
    StuckInQueue,
    /// A task holds the CPU that the waiting one needs, and does not give it back.
    CpuHeld,
    /// A task waits for a lock whose holder does not get a CPU, while tasks of less weight run.
    LockHeld,
    /// Tasks of a higher class had the CPUs that the waiting one may use, or the CPU in whose
    /// local queue it was already: the policy had nothing to decide.
    Outranked,
    /// An insert into the local queue of a CPU that the task may not use.
    CpuNotAllowed,
    /// A CPU that does not exist.
    NoSuchCpu,
    /// A queue that does not exist.
    NoSuchQueue,
    /// The task was inserted twice in one callback.
    InsertedTwice,
    /// The kernel sent the task back from local queues, again and again, until it ended the
    /// scheduler.
    Reenqueued,
    /// A callback did not end.
    EndlessLoop,
    /// Scheduling goes on without end, and no time passes.
    Livelock,
    /// A program touched memory that is not its own, or was gone.
    WildAccess,
    /// Calls nested deeper, or stacks grew larger, than a kernel's verifier allows.
    TooDeep,
    /// A limit of the run was spent: memory, or instructions.
    OverLimit,
    /// A callback that sets something up returned an error.
    InitFailed,
    /// Another misuse of the kernel's interface.
    Misuse,
    /// The watchdog ended the policy, and no decision explains why.
    Stall,
    /// The policy ended itself, or the one above ended it.
    OwnError,
    /// The kernel detached the policy, without an error: a CPU came or went, and the policy has no
    /// callback for that.
    Restart,
    /// Heavier tasks got less CPU time than lighter ones that wanted it as much.
    UnfairShare,
    /// CPUs idle beside waiting tasks for longer than a property allows.
    IdleBesideWaiting,
    /// Tasks are preempted more often than a property allows.
    Preemptions,
    /// Tasks change their CPU more often than a property allows.
    Migrations,
    /// The task has waited, and nothing is wrong: it was not its turn.
    Waited,
    /// The events do not tell.
    Unknown,
}

impl Fault {
    /// Whether it names no cause.
    pub(super) const fn is_no_cause(self) -> bool {
        matches!(self, Self::Waited | Self::Unknown)
    }

    /// A word for scripts.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Lost => "lost",
            Self::InsertIgnored => "insert-ignored",
            Self::UnreadQueue => "unread-queue",
            Self::UnreachableQueue => "unreachable-queue",
            Self::LocalRefilled => "local-refilled",
            Self::Skipped => "skipped",
            Self::PassedOver => "passed-over",
            Self::ForgottenKick => "forgotten-kick",
            Self::StuckInQueue => "stuck-in-queue",
            Self::CpuHeld => "cpu-held",
            Self::LockHeld => "lock-held",
            Self::Outranked => "outranked",
            Self::CpuNotAllowed => "cpu-not-allowed",
            Self::NoSuchCpu => "no-such-cpu",
            Self::NoSuchQueue => "no-such-queue",
            Self::InsertedTwice => "inserted-twice",
            Self::Reenqueued => "reenqueued",
            Self::EndlessLoop => "endless-loop",
            Self::Livelock => "livelock",
            Self::WildAccess => "wild-access",
            Self::TooDeep => "too-deep",
            Self::OverLimit => "over-limit",
            Self::InitFailed => "init-failed",
            Self::Misuse => "misuse",
            Self::Stall => "stall",
            Self::OwnError => "own-error",
            Self::Restart => "restart",
            Self::UnfairShare => "unfair-share",
            Self::IdleBesideWaiting => "idle-beside-waiting",
            Self::Preemptions => "preemptions",
            Self::Migrations => "migrations",
            Self::Waited => "waited",
            Self::Unknown => "unknown",
        }
    }

    /// What happened, for people.
    #[must_use]
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::Lost => "the policy kept a runnable task and never inserted it into a queue",
            Self::InsertIgnored => {
                "the policy inserted a task that it did not hold, so the kernel ignored it"
            }
            Self::UnreadQueue => "a runnable task is in a queue that nobody looks at",
            Self::UnreachableQueue => {
                "a runnable task is in a queue that only CPUs look at where it may not run"
            }
            Self::LocalRefilled => {
                "the CPUs that a runnable task waits for are not asked for work, because the \
                 policy fills their local queues itself"
            }
            Self::Skipped => "a CPU that may run the task looked at its queue and took nobody",
            Self::PassedOver => "others are always taken before a runnable task",
            Self::ForgottenKick => {
                "a runnable task is in a queue, CPUs idle, and none of them was kicked"
            }
            Self::StuckInQueue => "a runnable task stays in a queue",
            Self::CpuHeld => "a task holds the CPU that a runnable one waits for",
            Self::LockHeld => {
                "a task waits for a lock whose holder does not run, while lighter tasks do"
            }
            Self::Outranked => {
                "a task of a higher class (real-time, deadline) has the CPU that a runnable one \
                 waits for"
            }
            Self::CpuNotAllowed => "a task was sent to a CPU that it may not use",
            Self::NoSuchCpu => "the policy named a CPU that does not exist",
            Self::NoSuchQueue => "the policy named a queue that does not exist",
            Self::InsertedTwice => "a task was inserted twice in one callback",
            Self::Reenqueued => {
                "a task was inserted into local queues that do not take it, again and again"
            }
            Self::EndlessLoop => "a callback did not end",
            Self::Livelock => "the policy and the kernel schedule without end, and no task runs",
            Self::WildAccess => "a program touched memory that is not its own, or is gone",
            Self::TooDeep => "the calls of a program nest too deeply",
            Self::OverLimit => "the policy needs more than this run allows it",
            Self::InitFailed => "a callback that sets the policy up returned an error",
            Self::Misuse => "the policy misused a function of the kernel",
            Self::Stall => "the watchdog ended the policy, and the cause was not found",
            Self::OwnError => "the policy ended itself, or the one above ended it",
            Self::Restart => "the kernel detached the policy, which is to be started anew",
            Self::UnfairShare => {
                "a task of more weight got less CPU time than one of less that wanted as much"
            }
            Self::IdleBesideWaiting => "CPUs idle beside waiting tasks",
            Self::Preemptions => "tasks are often preempted",
            Self::Migrations => "tasks often change their CPU",
            Self::Waited => "a task has waited for its turn",
            Self::Unknown => "the events do not tell why",
        }
    }

    /// What to look at next.
    #[must_use]
    pub const fn advice(self) -> &'static str {
        match self {
            Self::Lost => {
                "Follow every way through `enqueue`: each must insert the task, or remember it \
                 where `dispatch` or a timer finds it. A task that is dequeued and enqueued \
                 again (affinity, nice value, a real-time task, hotplug) comes through `enqueue` \
                 once more."
            }
            Self::InsertIgnored => {
                "The task has been dequeued, dispatched or inserted since the policy remembered \
                 it. Forget tasks in `dequeue`, and remember them again in `enqueue`."
            }
            Self::UnreadQueue => {
                "Compare the queue's id with those that `dispatch` gives to \
                 `scx_bpf_dsq_move_to_local()`, and the conditions before that call."
            }
            Self::UnreachableQueue => {
                "Choose the queue by a CPU of `p->cpus_ptr`, and let `set_cpumask` move what \
                 waits there already."
            }
            Self::LocalRefilled => {
                "`dispatch` of a CPU is called only when its local queue is empty. Insert into it \
                 directly only if no task waits in a queue that this CPU serves, or look there \
                 in `tick`."
            }
            Self::Skipped => {
                "Look at what ends the walk through the queue: a task at its head that may not \
                 run here must not hide those behind it."
            }
            Self::PassedOver => {
                "Compare the order of the queue (vtime compares by the sign of the difference) \
                 and the order in which `dispatch` looks at queues: each needs a bound on how \
                 long others may go first."
            }
            Self::ForgottenKick => {
                "After an insert into a queue of the policy, pick an idle CPU that the task may \
                 use and call `scx_bpf_kick_cpu()`."
            }
            Self::StuckInQueue => {
                "Look for who takes tasks from it, on which CPUs, and who kicks an idle one \
                 after an insert. `runslice explain POLICY -w LOAD` has the history that a dump \
                 lacks."
            }
            Self::CpuHeld => {
                "Give a finite slice, or end the slice of what runs: an insert with \
                 `SCX_ENQ_PREEMPT`, or a kick with `SCX_KICK_PREEMPT`."
            }
            Self::LockHeld => {
                "Give the holder of a lock a CPU before tasks that weigh less than its waiters: \
                 bound how long a rank may starve, or let it inherit the waiter's."
            }
            Self::Outranked => {
                "Look at the task of the higher class. Where other CPUs are free, `cpu_release` \
                 can take back a local queue (`scx_bpf_reenqueue_local()`)."
            }
            Self::UnfairShare => {
                "Divide the time that a task has used by `p->scx.weight` before it is compared, \
                 or scale slices by the weight."
            }
            rest => rest.other_advice(),
        }
    }

    /// What to look at next, where nobody need wait.
    const fn other_advice(self) -> &'static str {
        match self {
            Self::CpuNotAllowed => {
                "Test `p->cpus_ptr` when the task is inserted: its affinity may have changed \
                 since the CPU was chosen."
            }
            Self::NoSuchCpu => "CPUs are numbered from 0 to `scx_bpf_nr_cpu_ids()` - 1.",
            Self::NoSuchQueue => "Create the queue in `init`; destroy it when nothing names it.",
            Self::InsertedTwice => {
                "One callback inserts a task once: return after the insert, and insert in \
                 `select_cpu` only if `enqueue` need not be called."
            }
            Self::Reenqueued => {
                "A local queue takes a task of a scheduler that has the right `SCX_CAP_ENQ` on \
                 that CPU, or with `SCX_ENQ_IMMED` one that can run at once. Keep others in a \
                 queue of the policy until `p->scx.reenq_reason_caps` are granted."
            }
            Self::EndlessLoop => "Bound the loop at that line.",
            Self::Livelock => "Look for a slice of 0, or a kick of the own CPU, again and again.",
            Self::WildAccess => "Look at where the pointer at that line came from.",
            Self::TooDeep => {
                "A kernel's verifier allows 8 frames with stacks of 512 bytes: make a loop of \
                 the recursion, and keep large values in maps."
            }
            Self::OverLimit => {
                "The limit is this run's (`--memory`, `--budget`). Look for what the policy \
                 creates and never frees, or does again and again."
            }
            Self::InitFailed => {
                "The number in the message is what the callback returned (-12: no memory). Look \
                 at what it calls for that."
            }
            Self::Misuse => "The message says which function and why.",
            Self::Stall => {
                "Follow the task: `runslice trace pid TASK --sim POLICY -w LOAD --decisions`."
            }
            Self::OwnError => "The message is of the policy itself, or of the one above.",
            Self::Restart => {
                "Define `cpu_online` and `cpu_offline`, or let the loader start the policy anew."
            }
            Self::IdleBesideWaiting => {
                "Kick a CPU that idles after each insert, and let `dispatch` take from the queues \
                 of busy CPUs when its own is empty."
            }
            Self::Preemptions => {
                "Preempt (`SCX_KICK_PREEMPT`, `SCX_ENQ_PREEMPT`) only for a task that must run \
                 before the one that runs."
            }
            Self::Migrations => {
                "Let a task that wakes stay at its CPU if that idles, and else choose one that \
                 shares its cache."
            }
            Self::Waited => "Compare the wait with the number of tasks and their slices.",
            Self::Unknown => {
                "Make the run again with decisions: `runslice sim POLICY -w LOAD --events FILE \
                 --decisions`."
            }
            // The others are of tasks that wait.
            _ => "",
        }
    }
}

/// A place in a policy's source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyLine {
    /// The function.
    pub function: String,
    /// The file, if the object has line information.
    pub file: Option<String>,
    /// The line, from 1; 0 without line information.
    pub line: u32,
}

/// The places in a policy's source that a run has told so far, by the numbers that events have.
#[derive(Clone, Debug, Default)]
pub struct Places(BTreeMap<u32, PolicyLine>);

impl Places {
    /// Without a place.
    #[must_use]
    pub const fn new() -> Self {
        Self(BTreeMap::new())
    }

    /// Keeps the place, if the text is one.
    pub fn take(&mut self, text: &Text) {
        if let Text::Place {
            place,
            function,
            file,
            line,
        } = text
        {
            let described = PolicyLine {
                function: function.clone(),
                file: file.clone(),
                line: *line,
            };
            self.0.insert(*place, described);
        }
    }

    /// The place of this number; `None` if the run has not told it.
    #[must_use]
    pub fn get(&self, number: u32) -> Option<&PolicyLine> {
        self.0.get(&number)
    }
}

/// Something that was done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Act {
    /// When.
    pub time: SimTime,
    /// On which CPU.
    pub cpu: CpuId,
    /// The callback, `kernel` or `program`.
    pub callback: &'static str,
    /// The line that did it; `None`: the kernel did it.
    pub place: Option<PolicyLine>,
}

/// Where a runnable task is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// In no queue: the policy has it.
    Nowhere,
    /// In a queue of the policy.
    Queue(u64),
    /// In the global queue.
    Global,
    /// In the local queue of a CPU.
    Local(CpuId),
    /// Not the policy's: it is of another class.
    Elsewhere,
    /// The events do not tell.
    Unknown,
}

/// Who waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Victim {
    /// Number in the run.
    pub task: TaskId,
    /// Name from the workload.
    pub name: String,
    /// The kernel's number.
    pub pid: u32,
    /// Since when; `None`: it does not wait.
    pub since: Option<SimTime>,
    /// For how long.
    pub waited: Nanos,
    /// Where it is.
    pub standing: Standing,
    /// What put it there.
    pub put: Option<Act>,
    /// Change at the same moment: of its nice value, affinity or class, or a CPU that went offline.
    pub trigger: Option<&'static str>,
}

/// The queue in which a task waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueView {
    /// Its id.
    pub id: u64,
    /// The cgroup of its scheduler, if that is below the root.
    pub of: Option<String>,
    /// That one got no CPU from the one above since the task came.
    pub is_passed_by: bool,
    /// Tasks in it.
    pub depth: u32,
    /// The last look at it.
    pub last_look: Option<Act>,
    /// Looks since the task came, and those that took a task.
    pub looks: (u64, u64),
    /// Tasks taken since that came later than the one that waits.
    pub overtaken: u64,
    /// CPUs that have looked at it since the task came.
    pub readers: Vec<CpuId>,
    /// The last `dispatch` since the task came that ended without work.
    pub empty_dispatch: Option<Act>,
    /// The last look since the task came that took a task from another queue, and that queue.
    pub other_look: Option<(Act, QueueName)>,
}

impl QueueView {
    /// A look that takes the task itself.
    pub(super) fn add_look(&mut self, look: Act) {
        self.looks = (self.looks.0 + 1, self.looks.1 + 1);
        if !self.readers.contains(&look.cpu) {
            self.readers.push(look.cpu);
        }
        self.last_look = Some(look);
    }
}

/// A CPU that idles while a task waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdleCpu {
    /// Which.
    pub cpu: CpuId,
    /// Since when.
    pub since: SimTime,
    /// When it was told to look for work last.
    pub kicked: Option<SimTime>,
    /// What has claimed it since, and has not used it.
    pub claimed: Option<Act>,
}

/// A task that holds a CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The CPU.
    pub cpu: CpuId,
    /// The task.
    pub name: String,
    /// Since when.
    pub since: SimTime,
    /// The slice that it got last, nanoseconds; `u64::MAX` never ends.
    pub slice: Option<u64>,
    /// What gave it.
    pub given: Option<Act>,
}

/// All that there is to say about one fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What went wrong.
    pub fault: Fault,
    /// Whether and why that is a fault.
    pub verdict: Verdict,
    /// When this was seen.
    pub time: SimTime,
    /// The scheduler below the root that the kernel ended, while the others went on.
    pub scheduler: Option<String>,
    /// The kernel's message, if the policy was ejected.
    pub message: Option<String>,
    /// Where the object machine stopped a program.
    pub stopped: Option<String>,
    /// Who suffers.
    pub victim: Option<Victim>,
    /// The line to look at first.
    pub culprit: Option<Act>,
    /// Another line that decided the same: who chose, where the first line inserted.
    pub also: Option<Act>,
    /// Where the victim waits.
    pub queue: Option<QueueView>,
    /// CPUs that idle meanwhile.
    pub idle: Vec<IdleCpu>,
    /// Who holds the others.
    pub holders: Vec<Holder>,
    /// Who had a CPU before for half of the wait or longer, and for how long.
    pub longest: Option<(Holder, Nanos)>,
    /// Runnable tasks that wait, the victim included.
    pub waiting: usize,
}

/// A wait that has ended, or was open at the end of the run.
#[derive(Clone, Debug)]
pub struct Wait {
    /// How long.
    pub span: Nanos,
    /// What there is to say about it.
    pub finding: Finding,
}

impl Fault {
    /// The tier of the class; `None` if it is no fault of a policy. A class that an error exit
    /// ended is [`Tier::Contract`] whatever it is: see [`Finding::tier`].
    #[must_use]
    pub const fn tier(self) -> Option<Tier> {
        match self {
            Self::Lost
            | Self::InsertIgnored
            | Self::UnreadQueue
            | Self::UnreachableQueue
            | Self::LocalRefilled
            | Self::CpuNotAllowed
            | Self::NoSuchCpu
            | Self::NoSuchQueue
            | Self::InsertedTwice
            | Self::Reenqueued
            | Self::EndlessLoop
            | Self::Livelock
            | Self::WildAccess
            | Self::TooDeep
            | Self::OverLimit
            | Self::InitFailed
            | Self::Misuse
            | Self::Stall
            | Self::OwnError
            | Self::Restart => Some(Tier::Contract),
            Self::Skipped | Self::ForgottenKick | Self::StuckInQueue => Some(Tier::NoRival),
            Self::PassedOver | Self::CpuHeld | Self::LockHeld | Self::UnfairShare => {
                Some(Tier::Share)
            }
            Self::Outranked
            | Self::IdleBesideWaiting
            | Self::Preemptions
            | Self::Migrations
            | Self::Waited
            | Self::Unknown => None,
        }
    }
}

impl Finding {
    /// Of this class, seen at `time`, about nobody yet and without a verdict.
    #[must_use]
    pub fn blank(fault: Fault, time: SimTime) -> Self {
        Self {
            fault,
            verdict: Verdict::default(),
            time,
            scheduler: None,
            message: None,
            stopped: None,
            victim: None,
            culprit: None,
            also: None,
            queue: None,
            idle: Vec::new(),
            holders: Vec::new(),
            longest: None,
            waiting: 0,
        }
    }

    /// The tier of the finding; `None` if it is no fault of a policy. The watchdog's end behind a
    /// higher class is none: that is the kernel's rule before 7.0, and later its server's debt.
    #[must_use]
    pub const fn tier(&self) -> Option<Tier> {
        match (self.fault, &self.message) {
            (Fault::Outranked, _) => None,
            (_, Some(_)) => Some(Tier::Contract),
            (_, None) => self.verdict.tier,
        }
    }

    /// Whether it is a fault. A broken share is one only if the policy declares the right that it
    /// breaks.
    #[must_use]
    pub fn is_fault(&self) -> bool {
        let share = self.verdict.share.as_ref();
        match self.tier() {
            None => false,
            Some(Tier::Contract | Tier::NoRival) => true,
            Some(Tier::Share) => share.is_some_and(|it| it.right.is_some()),
        }
    }
}

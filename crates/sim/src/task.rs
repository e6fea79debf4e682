//! A task as the simulated kernel sees it. What the policy sees is a mirror in BPF memory.

use model::{Cause, CpuId, Nanos, SimTime, TaskTimes};
use workload::{ROOT_CGROUP, SchedPolicy};

use crate::dsq::DsqIndex;
use crate::flags::{self, enq};
use crate::mask::MaskId;
use crate::schedulers::SchedId;
use crate::speeds::TaskPace;

/// Scheduling classes, most urgent first (`kernel/sched/sched.h`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// The migration thread.
    Stop,
    /// `SCHED_DEADLINE`.
    Dl,
    /// `SCHED_FIFO` and `SCHED_RR`.
    Rt,
    /// The default class; empty while a policy has switched all tasks.
    Fair,
    /// The policy's.
    Ext,
    /// Nothing to run.
    Idle,
}

/// Whether a task wants the CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunState {
    /// Created, not started.
    New,
    /// Waits for an event.
    Sleeping,
    /// On a run queue or running.
    Runnable,
    /// Has exited.
    Dead,
}

/// `enum scx_task_state`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ScxState {
    /// Unknown to the policy.
    None = 0,
    /// `init_task` is being called: `SCX_TASK_NONE`, since 7.1 `SCX_TASK_INIT_BEGIN`.
    Begin = 1,
    /// `init_task` succeeded: it could be enabled.
    Ready = 2,
    /// In the policy's class.
    Enabled = 3,
}

/// Owner of a task that waits (`enum scx_ops_state`, with the sequence number that makes an old
/// entry of a policy's own queue harmless).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpsState {
    /// The kernel: the task runs, sleeps, or sits in a dispatch queue.
    None,
    /// `ops.enqueue` is being called.
    Queueing(u64),
    /// The policy: `ops.enqueue` kept it.
    Queued(u64),
}

/// Why a task is enqueued again (`SCX_TASK_REENQ_*` of `p->scx.flags`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reenqueued {
    /// It is not.
    #[default]
    No = 0,
    /// The policy asked for it.
    Kfunc = 1,
    /// It could not run at once.
    Immed = 2,
    /// A higher class took the CPU from it.
    Preempted = 3,
    /// Its scheduler lacks a right on the CPU.
    Cap = 4,
}

/// A dispatch verdict of `ops.select_cpu` or `ops.enqueue`, not carried out yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Direct {
    /// Queue.
    pub dsq_id: u64,
    /// Enqueue flags.
    pub flags: u64,
    /// Slice and key.
    pub carried: Carried,
    /// Cause of the verdict, if anybody listens.
    pub cause: Cause,
}

/// Slice and vtime that an insert gives a task. Used where they are written with the insert
/// ([`crate::kernels::KernelRules::inserts_slice`]); else they were written before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Carried {
    /// Nanoseconds; 0: the slice that the task has.
    pub slice: u64,
    /// Key in a queue in order of keys; without meaning elsewhere.
    pub vtime: u64,
}

/// What a task has left.
#[derive(Clone, Copy, Debug)]
pub struct Left {
    /// The queue that it was in.
    pub dsq: Option<DsqIndex>,
    /// It is on a CPU's list of deferred inserts.
    pub deferred: bool,
}

/// State in which a task spends its time; the most frequent first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Executes.
    Run,
    /// Runnable, not on a CPU.
    Wait,
    /// Not runnable.
    Sleep,
    /// On the CPU, but the CPU does something else.
    Stolen,
    /// Over.
    Over,
}

/// The place of a task that does not wait among those that the watchdog watches.
pub(crate) const NOWHERE: u32 = u32::MAX;

/// How many phases there are.
const PHASES: usize = Phase::Over as usize + 1;

/// The place of a task among its relatives (family.rs). Lists, so that a task that ends finds its
/// children among a million tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Family {
    /// Its parent; `None`: the machine's first process, which is no task of a load.
    pub parent: Option<model::TaskId>,
    /// The first thread of its process; `None`: itself.
    pub leader: Option<model::TaskId>,
    /// Its newest child.
    pub child: Option<model::TaskId>,
    /// The next older child of its parent.
    pub older: Option<model::TaskId>,
    /// The next newer one.
    pub newer: Option<model::TaskId>,
}

/// Parts of a task that its turns do not need.
#[derive(Clone)]
pub struct Seldom {
    /// The kernel's `comm`: at most 15 bytes. Boxed, because each task keeps one and none grows.
    pub comm: Box<str>,
    /// Its policy and real-time priority.
    pub policy: SchedPolicy,
    /// `cpus_mask`: its affinity, where it may run when nothing keeps it from migrating.
    pub affinity: MaskId,
    /// It has been in the policy's class. `scx.weight` is 0 before (`init_scx_entity()`, 6.18).
    pub weighed: bool,
    /// Its relatives.
    pub family: Family,
    /// Its last report: priority, level, flags.
    pub reported: Option<Box<(u32, u32, u64)>>,
    /// The CPU whose caches have what it uses, under a profile with costs.
    pub warm_on: Option<CpuId>,
    /// Bytes that it uses of a cache.
    pub footprint: u64,
    /// Time charged before it got the scheduler that it has, nanoseconds.
    pub ran_before: u64,
    /// Its work in detail, on a machine whose CPUs differ.
    pub pace: Option<Box<TaskPace>>,
}

/// A task.
///
/// What each of its turns needs stands in the first three lines of a cache: with 1,000 tasks
/// nothing of one is still in the nearest cache when its turn comes.
#[repr(C, align(64))]
#[derive(Clone)]
pub struct Task {
    /// Address of its `task_struct` mirror; 0 when it has been reaped.
    pub address: u64,
    /// Rest of its slice, nanoseconds.
    pub slice: u64,
    /// Key in vtime-ordered queues.
    pub vtime: u64,
    /// Task clock at the last charge, nanoseconds.
    pub exec_start: u64,
    /// Total time charged, nanoseconds.
    pub sum_exec: u64,
    /// Rest of its current work.
    pub work_left: Nanos,
    /// The queue it sits in.
    pub dsq: Option<DsqIndex>,
    /// `cpus_ptr`: where it may run now. One CPU while it must not migrate, else its affinity.
    pub cpus: MaskId,
    /// `task_cpu()`: where it runs, or ran last.
    pub cpu: CpuId,
    /// `migration_disabled`, without what callbacks add.
    pub migration_disabled: u16,
    /// Its class now.
    pub class: Class,
    /// Whether it wants the CPU.
    pub state: RunState,
    /// What it does now.
    pub phase: Phase,
    /// `SCX_TASK_QUEUED`: runnable in the policy's class, running included.
    pub queued: bool,
    /// Parts of its mirror that are out of date ([`crate::mirror::stale`]).
    pub stale: u8,
    /// It has run since, so the next wait starts afresh.
    pub reset_runnable_at: bool,
    /// `PF_EXITING`.
    pub exiting: bool,
    /// The policy has it in custody (7.2).
    pub in_custody: bool,
    /// State of its sched_ext entity.
    pub scx_state: ScxState,
    /// It sleeps for a disk or for memory, which no signal ends.
    pub deep: bool,
    /// `SCX_TASK_IMMED`: it came into a local queue to run at once.
    pub immed: bool,
    /// Why it is being enqueued again.
    pub reenqueued: Reenqueued,
    /// It is being woken: from the choice of its CPU until it is in a queue.
    pub waking: bool,
    /// CPU that `ops.select_cpu` chose last.
    pub selected_cpu: CpuId,
    /// Where it stands among those that the watchdog watches.
    pub watch_place: u32,
    /// It waits on this CPU's list of deferred local inserts.
    pub deferred_on: Option<CpuId>,
    /// Since when it does what it does.
    pub phase_since: SimTime,
    /// Jiffy since when it has waited, as the watchdog sees it.
    pub runnable_at: u64,
    /// Counts its sleeps, so that a timer of an earlier one is recognised.
    pub sleep_generation: u64,
    /// Owner of the task while it waits.
    pub ops_state: OpsState,
    /// Verdict of a direct dispatch.
    pub direct: Option<Direct>,
    /// How it spent its life, by [`Phase`]; see [`Task::times`]. The last two are beyond the three
    /// lines.
    spent: [Nanos; PHASES],
    /// The rest of it.
    pub seldom: Box<Seldom>,
    /// Address of its `mm_struct`, which tells programs who shares an address space.
    pub mm: u64,
    /// The kernel's pid; never reused within a run.
    pub pid: u32,
    /// Thread group: the pid of the process.
    pub tgid: u32,
    /// Weight on the policy's scale, `1..=10_000`.
    pub weight: u32,
    /// Number of the cgroup whose time it takes (`sched_task_group`).
    pub cgroup: u32,
    /// The scheduler that is asked about it (`scx.sched`): that of the cgroup.
    pub owner: SchedId,
    /// Number of the cgroup that its `css_set` says; another one while it is born or moved.
    pub css_set: u32,
    /// References that programs hold.
    pub references: u32,
    /// Nice value, `-20..=19`.
    pub nice: i8,
    /// `PF_KTHREAD`.
    pub kernel: bool,
    /// The kernel has dropped its last reference.
    pub reaped: bool,
    /// The kernel has warned about its zero slice.
    pub warned_zero_slice: bool,
}

const _: () = assert!(
    size_of::<Task>() == 256,
    "a power of two finds a task by a shift"
);

impl Task {
    /// `__state`: `TASK_RUNNING`, `TASK_INTERRUPTIBLE`, `TASK_UNINTERRUPTIBLE`, `TASK_DEAD`,
    /// `TASK_WAKING`, `TASK_NEW` (include/linux/sched.h, 6.18). `try_to_wake_up()` sets the last
    /// but one before a CPU is chosen, and `TASK_RUNNING` when the task is in a queue;
    /// `wake_up_new_task()` begins with `TASK_RUNNING`.
    pub fn kernel_state(&self) -> u32 {
        match self.state {
            RunState::New if self.waking => 0,
            RunState::New => 0x800,
            RunState::Runnable | RunState::Sleeping if self.waking => 0x200,
            RunState::Runnable => 0,
            RunState::Dead => 0x80,
            RunState::Sleeping => 1 + u32::from(self.deep),
        }
    }

    /// A task that has not started.
    pub fn new(comm: String, pid: u32, cpu: CpuId, now: SimTime) -> Self {
        let seldom = Seldom {
            comm: comm.into(),
            policy: SchedPolicy::Normal,
            affinity: MaskId::ALL,
            weighed: false,
            family: Family::default(),
            reported: None,
            warm_on: None,
            footprint: 0,
            ran_before: 0,
            pace: None,
        };
        Self {
            seldom: Box::new(seldom),
            pid,
            tgid: pid,
            mm: 0,
            address: 0,
            reaped: false,
            references: 0,
            cpu,
            cpus: MaskId::ALL,
            migration_disabled: 0,
            class: Class::Fair,
            nice: 0,
            weight: 100,
            state: RunState::New,
            deep: false,
            immed: false,
            reenqueued: Reenqueued::No,
            waking: false,
            exiting: false,
            kernel: false,
            cgroup: ROOT_CGROUP,
            owner: SchedId::ROOT,
            css_set: ROOT_CGROUP,
            scx_state: ScxState::None,
            in_custody: false,
            queued: false,
            ops_state: OpsState::None,
            direct: None,
            deferred_on: None,
            slice: flags::SLICE_DFL,
            vtime: 0,
            dsq: None,
            selected_cpu: cpu,
            runnable_at: 0,
            watch_place: NOWHERE,
            reset_runnable_at: true,
            exec_start: 0,
            sum_exec: 0,
            sleep_generation: 0,
            work_left: Nanos::ZERO,
            spent: [Nanos::ZERO; PHASES],
            phase: Phase::Sleep,
            phase_since: now,
            warned_zero_slice: false,
            stale: 0,
        }
    }

    /// Charges it for the time until `clock`. Returns that time, nanoseconds.
    ///
    /// Source: `update_curr_scx()`, kernel 6.18.
    #[inline(always)]
    pub fn charge(&mut self, clock: u64) -> u64 {
        let delta = clock - self.exec_start;
        self.exec_start = clock;
        self.sum_exec += delta;
        if self.class == Class::Ext && self.slice != flags::SLICE_INF {
            self.slice = self.slice.saturating_sub(delta);
        }
        delta
    }

    /// How it spent its life.
    pub fn times(&self) -> TaskTimes {
        let spent = |phase: Phase| self.spent[phase as usize];
        TaskTimes {
            run: spent(Phase::Run),
            stolen: spent(Phase::Stolen),
            wait: spent(Phase::Wait),
            sleep: spent(Phase::Sleep),
        }
    }

    /// Takes the slice and, with [`enq::DSQ_PRIQ`], the key of an insert.
    ///
    /// Source: `scx_dsq_insert_commit()`, kernel 6.18, and `apply_slice_vtime()`, kernel 7.3.
    #[inline(always)]
    pub fn take_carried(&mut self, carried: Carried, flags: u64) {
        self.slice = match carried.slice {
            0 => self.slice.max(1),
            slice => slice,
        };
        if flags & enq::DSQ_PRIQ != 0 {
            self.vtime = carried.vtime;
        }
    }

    /// It leaves whatever it waits in: a queue, or a list of deferred inserts. The caller takes it
    /// out of that.
    #[inline(always)]
    pub const fn leave(&mut self) -> Left {
        Left {
            dsq: self.dsq.take(),
            deferred: self.deferred_on.is_some(),
        }
    }

    /// Whether the policy has it, and must be told when it is taken back.
    #[inline(always)]
    pub const fn is_held(&self) -> bool {
        self.in_custody || matches!(self.ops_state, OpsState::Queued(_))
    }

    /// It waits no longer. Returns where it stood among those that the watchdog watches.
    #[inline(always)]
    pub fn stop_waiting(&mut self) -> u32 {
        std::mem::replace(&mut self.watch_place, NOWHERE)
    }

    /// Books the time since the last change and begins `phase`.
    #[inline]
    pub fn enter(&mut self, phase: Phase, now: SimTime) {
        // By number, so that finding the account is no jump.
        self.spent[self.phase as usize] += now.since(self.phase_since);
        self.phase = phase;
        self.phase_since = now;
    }
}

/// The weight of a nice value on the policy's scale of `1..=10_000`.
///
/// Source: `sched_prio_to_weight` times 100 / 1024, rounded (`kernel/sched/core.c`,
/// `sched_weight_to_cgroup`, kernel 6.18). `SCHED_IDLE` weighs 3 there, which rounds to 0 and is
/// raised to 1.
pub fn weight_of(policy: SchedPolicy, nice: i8) -> u32 {
    const WEIGHTS: [u32; 40] = [
        8668, 7007, 5516, 4519, 3544, 2847, 2271, 1827, 1460, 1164, // -20
        932, 744, 596, 479, 381, 305, 244, 194, 155, 125, // -10
        100, 80, 64, 51, 41, 33, 27, 21, 17, 13, // 0
        11, 8, 7, 5, 4, 4, 3, 2, 2, 1, // 10
    ];
    match policy {
        SchedPolicy::Idle => 1,
        // A real-time task keeps its nice value, which sets the weight it would have.
        _ => WEIGHTS[(nice.clamp(-20, 19) + 20) as usize],
    }
}

/// The class that a policy belongs to, with or without a sched_ext policy that takes all tasks.
pub fn class_of(policy: SchedPolicy, attached: bool, partial: bool) -> Class {
    match policy {
        SchedPolicy::Fifo(_) | SchedPolicy::RoundRobin(_) => Class::Rt,
        SchedPolicy::Deadline(_) => Class::Dl,
        _ if attached && !partial => Class::Ext,
        _ => Class::Fair,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_those_that_a_kernel_showed() {
        let weights = [-20, 0, 3, 5, 19].map(|nice| weight_of(SchedPolicy::Normal, nice));
        assert_eq!(weights, [8668, 100, 51, 33, 1]);
        assert_eq!(weight_of(SchedPolicy::Idle, 0), 1);
    }

    #[test]
    fn a_life_is_the_sum_of_its_phases() {
        let at = SimTime::from_nanos;
        let mut task = Task::new("a".into(), 1, CpuId(0), at(10));
        task.enter(Phase::Wait, at(13));
        task.enter(Phase::Run, at(20));
        task.enter(Phase::Stolen, at(50));
        task.enter(Phase::Over, at(51));
        let TaskTimes {
            run,
            stolen,
            wait,
            sleep,
        } = task.times();
        assert_eq!([sleep, wait, run, stolen].map(Nanos::get), [3, 7, 30, 1]);
    }
}

//! The policy comes and goes.
//!
//! Source: `scx_enable()` and `scx_disable_workfn()`, kernel 6.18. Both take place in one moment
//! of simulated time; a kernel needs milliseconds.

use model::{CpuId, Exit, ExitKind, Op, SetUpTime, SimTime, TaskId};

use crate::counters::{Counter, Counters};
use crate::flags::{self, deq, enq};
use crate::machine::{Machine, Vm};
use crate::ops::{Call, CallOwner, Ops};
use crate::schedulers::SchedId;
use crate::subs::Sub;
use crate::task::{Class, OpsState, RunState, class_of};

/// How far the policy has come, and how its time has ended. Only this module changes it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Attachment {
    enabling: bool,
    attached: bool,
    bypass: bool,
    /// The policy is being taken off: it cannot be ejected any more, but it can still fail.
    detaching: bool,
    /// It has been taken off.
    detached: bool,
    /// How often a CPU came or went (`scx_hotplug_seq`).
    hotplugs: u64,
    /// When the policy got the tasks.
    since: SimTime,
    exit: Option<Exit>,
}

impl Attachment {
    /// Whether kernel functions find a policy: it is being attached, or is attached.
    #[inline]
    pub const fn is_enabling(&self) -> bool {
        self.enabling
    }

    /// Whether tasks belong to the policy's class.
    #[inline]
    pub const fn is_attached(&self) -> bool {
        self.attached
    }

    /// Whether tasks are scheduled in turn without asking the policy (`scx_rq_bypassing()`).
    #[inline]
    pub const fn bypasses(&self) -> bool {
        self.bypass
    }

    /// Whether the policy has been ejected.
    #[inline]
    pub const fn has_ended(&self) -> bool {
        self.exit.is_some()
    }

    /// How often a CPU came or went: `/sys/kernel/sched_ext/hotplug_seq`.
    pub const fn hotplugs(&self) -> u64 {
        self.hotplugs
    }

    /// A CPU comes or goes.
    pub const fn count_hotplug(&mut self) {
        self.hotplugs += 1;
    }

    /// When the policy got the tasks; meaningless before.
    pub const fn since(&self) -> SimTime {
        self.since
    }

    /// Whether a program has faulted, or something else showed that the policy cannot go on.
    #[inline]
    pub fn has_failed(&self) -> bool {
        self.exit.as_ref().is_some_and(|exit| exit.fault.is_some())
    }

    /// How its time has ended, if it has.
    pub const fn exit(&self) -> Option<&Exit> {
        self.exit.as_ref()
    }

    // ---- Of a scheduler below another one; see `sub` ----

    /// Kernel functions find it from now on.
    pub const fn begin_enabling(&mut self) {
        self.enabling = true;
    }

    /// Its tasks belong to it, since `now`.
    pub const fn finish_enabling(&mut self, now: SimTime) {
        (self.attached, self.since) = (true, now);
    }

    /// It is being taken off.
    pub const fn begin_detaching(&mut self) {
        (self.detaching, self.attached) = (true, false);
    }

    /// It has been taken off, and kernel functions find it no more.
    pub const fn finish_detaching(&mut self) {
        (self.enabling, self.detached) = (false, true);
    }
}

/// A scheduler.
#[derive(Clone, Debug)]
pub(crate) struct Scheduler {
    /// Its table. Nobody writes it once it is attached.
    pub ops: Ops,
    /// How far it has come.
    pub attachment: Attachment,
    /// The kernel's event counters. Whoever does what one counts adds to it.
    pub counters: Counters,
    /// What is kept of one that is below another one.
    pub sub: Option<Box<Sub>>,
}

impl Scheduler {
    /// One that is not attached yet.
    pub fn new(ops: Ops) -> Self {
        Self {
            ops,
            attachment: Attachment::default(),
            counters: Counters::default(),
            sub: None,
        }
    }
}

impl Machine {
    // ---- Who is asked ----

    /// The scheduler that owns `task`: its cgroup's.
    #[inline(always)]
    pub(crate) fn owner(&self, task: TaskId) -> SchedId {
        if self.scheds.is_alone() {
            SchedId::ROOT
        } else {
            self.owner_among(task)
        }
    }

    #[cold]
    fn owner_among(&self, task: TaskId) -> SchedId {
        self.task(task).owner
    }

    /// The same, with all that is kept for it.
    #[inline(always)]
    pub(crate) fn scheduler_of(&self, task: TaskId) -> &Scheduler {
        &self.scheds[self.owner(task)]
    }

    /// Whether any scheduler may define `op`: a call finds out whether its own does.
    #[inline(always)]
    pub(crate) fn may_define(&self, op: Op) -> bool {
        self.scheds.root.ops.has(op) || !self.scheds.is_alone()
    }

    /// The scheduler whose program executes; outside of programs the root.
    #[inline]
    pub(crate) fn caller(&self) -> SchedId {
        self.turn.contexts.scheduler()
    }

    /// Counts one more for the scheduler that owns `task`.
    #[inline]
    pub(crate) fn count(&mut self, task: TaskId, counter: Counter) {
        let owner = self.owner(task);
        self.scheds[owner].counters.count(counter);
    }

    // ---- Failures of the policy ----

    /// Ends the time of the scheduler `who` with the kernel's kind and message. The first exit
    /// wins.
    #[cold]
    pub(crate) fn eject(
        &mut self,
        who: SchedId,
        kind: ExitKind,
        code: i64,
        message: impl Into<String>,
    ) {
        if self.scheds[who].attachment.has_ended() {
            return;
        }
        let mut message = message.into();
        let mut end = message.len().min(flags::EXIT_MSG_LEN - 1);
        while !message.is_char_boundary(end) {
            end -= 1;
        }
        message.truncate(end);
        let exit = Exit {
            kind,
            code,
            message,
            time: self.now,
            fault: None,
        };
        if who != SchedId::ROOT {
            if !matches!(kind, ExitKind::Unreg | ExitKind::Parent) {
                self.tell_failed(who, kind);
            }
            self.scheds[who].attachment.exit = Some(exit);
            return self.leave_soon(who);
        }
        self.halt_if(true);
        self.tell_failed(who, kind);
        self.scheds[who].attachment.exit = Some(exit);
    }

    /// A misuse of the kernel's interface by the program that executes.
    #[cold]
    pub(crate) fn error(&mut self, message: impl Into<String>) {
        self.error_of(self.caller(), message);
    }

    /// A misuse of the kernel's interface by the scheduler `who`, told when its program has ended.
    #[cold]
    pub(crate) fn error_of(&mut self, who: SchedId, message: impl Into<String>) {
        // Before a policy is attached, `scx_error()` has none to end.
        if self.scheds[who].attachment.enabling {
            self.eject(who, ExitKind::Error, 0, message);
        }
    }

    /// A program of `who` has faulted, or does not end: the policy ends with an error, and `fault`
    /// says where it was. One that is being taken off has its exit turned into an error, unless it
    /// is one, and is not called again.
    #[cold]
    pub(crate) fn fail(&mut self, who: SchedId, message: &str, fault: String) {
        self.turn.decisions.decide_at_last();
        self.eject(who, ExitKind::Error, 0, message);
        let Attachment {
            detaching, exit, ..
        } = &mut self.scheds[who].attachment;
        let Some(exit) = exit else { return };
        if *detaching && exit.fault.is_none() && !exit.kind.is_error() {
            exit.kind = ExitKind::Error;
            message.clone_into(&mut exit.message);
        }
        exit.fault.get_or_insert(fault);
    }

    // ---- Bypass ----

    /// Whether `task` is scheduled in turn without asking its scheduler.
    #[inline(always)]
    pub(crate) fn bypasses(&self, task: TaskId) -> bool {
        self.bypassing != 0 && self.is_bypassed_by(self.owner(task))
    }

    /// Whether nobody asks the scheduler `who`.
    #[cold]
    pub(crate) fn is_bypassed_by(&self, who: SchedId) -> bool {
        self.scheds[who].attachment.bypasses()
    }

    pub(crate) fn set_bypass(&mut self, who: SchedId, bypass: bool) {
        let before = std::mem::replace(&mut self.scheds[who].attachment.bypass, bypass);
        self.bypassing = self.bypassing + u8::from(bypass) - u8::from(before);
    }

    // ---- Attaching ----

    /// Attaches the policy to the running system.
    pub(crate) fn attach(&mut self, vm: &mut Vm) {
        if !self.set_up(vm, SetUpTime::Loaded) {
            return;
        }
        // What the loader ran took time of its own.
        self.moment.begin(vm);
        // A kernel has no policy before; see `create_dsq` and `error`.
        self.scheds.root.attachment.enabling = true;
        self.forget_targets();
        if self.rules.has_cids && !self.give_cids(vm) {
            return;
        }
        let result = self.call(
            vm,
            &Call {
                op: Op::Init,
                locked: None,
                asked: CallOwner::Root,
                subject: None,
                args: [],
                words: (0, 0),
            },
        );
        self.end_unless_well(SchedId::ROOT, Op::Init, result);
        // Source: validate_ops(), kernel 6.18.
        if self.scheds.root.ops.flag(flags::ops::ENQ_LAST) && !self.scheds.root.ops.has(Op::Enqueue)
        {
            self.error("SCX_OPS_ENQ_LAST requires ops.enqueue() to be implemented");
        }
        let ops = &self.scheds.root.ops;
        let takes_subs = ops.has(Op::SubAttach) || ops.has(Op::SubDetach);
        if takes_subs && self.rules.has_cids && !self.is_cid_form() {
            self.error("sub_attach/sub_detach requires cid-form struct_ops");
        }
        if self.scheds.root.attachment.has_ended() {
            return;
        }
        if self.scheds.root.ops.flag(flags::ops::HAS_CGROUP_WEIGHT) {
            self.note("SCX_OPS_HAS_CGROUP_WEIGHT is deprecated and a noop".to_owned());
        }
        self.arm_watchdog();
        self.set_bypass(SchedId::ROOT, true);
        self.scheds.root.counters.count(Counter::BypassActivate);
        if !self.init_cgroups(vm) {
            return;
        }
        for id in self.living() {
            let error = self.init_task(vm, id, false);
            self.moment.grant();
            self.check_moment(vm, self.turn.exec);
            if error != 0 {
                let name = self.name(id);
                self.error(format!("ops.init_task() failed ({error}) for {name}"));
            }
            if self.scheds.root.attachment.has_ended() {
                return;
            }
        }
        self.scheds.root.attachment.attached = true;
        self.scheds.root.attachment.since = self.now;
        self.living()
            .into_iter()
            .for_each(|id| self.switch_in(vm, id));
        self.set_bypass(SchedId::ROOT, false);
        self.cycle_waiting(vm);
        (0..self.spec.cpus).for_each(|cpu| self.resched(CpuId(cpu)));
        self.set_up(vm, SetUpTime::Attached);
        self.moment.begin(vm);
    }

    /// Does what `cpu` does in a time of its own: a loader's, which attaches or takes off.
    pub(crate) fn outside_time(&mut self, cpu: CpuId, body: impl FnOnce(&mut Self)) {
        let kinds = self.ledger.kinds();
        body(self);
        self.cpus[cpu].forgive_debt();
        self.ledger.set_kinds(kinds);
        self.locks.forget();
    }

    /// Moves a task from its class into the policy's, if it belongs there.
    fn switch_in(&mut self, vm: &mut Vm, id: TaskId) {
        self.set_slice(id, flags::SLICE_DFL);
        let new = class_of(self.task(id).seldom.policy, true, self.is_partial());
        if new != Class::Ext {
            return;
        }
        let cpu = self.task(id).cpu;
        let queued = self.task(id).state == RunState::Runnable;
        let running = self.is_running(id);
        let flags = deq::CYCLE | self.rules.class_bit;
        if queued {
            self.dequeue_task(vm, id, flags);
        }
        if running {
            self.update_curr(cpu);
        }
        self.task_mut(id).class = Class::Ext;
        self.enable_task(vm, id);
        self.tell_mask_at_switch(vm, id);
        if queued {
            self.enqueue_task(vm, id, flags);
        }
        if running {
            self.set_next_task(vm, cpu, id);
        }
    }

    /// Takes every waiting task out of its queue and offers it again.
    fn cycle_waiting(&mut self, vm: &mut Vm) {
        for id in self.living().into_iter().rev() {
            self.cycle_if_waiting(vm, id);
        }
    }

    /// Takes a task that waits out of its queue and offers it again.
    pub(crate) fn cycle_if_waiting(&mut self, vm: &mut Vm, id: TaskId) {
        let task = self.task(id);
        let waits = task.state == RunState::Runnable && task.class == Class::Ext;
        if waits && !self.is_running(id) {
            self.dequeue_task(vm, id, deq::CYCLE);
            self.enqueue_task(vm, id, enq::RESTORE | enq::MOVE | enq::NOCLOCK);
        }
    }

    /// Tasks that exist, in the order of their creation.
    pub(crate) fn living(&self) -> Vec<TaskId> {
        (0..self.tasks.len() as u32)
            .map(TaskId)
            .filter(|&id| self.task(id).state != RunState::Dead)
            .collect()
    }

    /// Ends the policy's time: the tasks leave its class, and it is told why. Without a cause the
    /// policy was detached from user space. A policy that fails meanwhile is not called again, and
    /// one that has been taken off is not taken off again.
    pub(crate) fn detach(&mut self, vm: &mut Vm) -> Exit {
        self.eject(SchedId::ROOT, ExitKind::Unreg, 0, "");
        let was_detached = std::mem::replace(&mut self.scheds.root.attachment.detached, true);
        let has_failed = self.scheds.root.attachment.has_failed();
        if self.has_subs && !was_detached {
            self.end_subs(vm, !has_failed);
        }
        if !was_detached && !has_failed {
            self.scheds.root.attachment.detaching = true;
            self.take_off(vm);
        }
        let exit = self.scheds.root.attachment.exit.clone();
        exit.expect("the policy has just been ejected")
    }

    /// Why the policy's time has ended sooner than the run, if nothing else is said of its end.
    pub(crate) fn note_early_end(&mut self, why: &str) {
        if let Some(exit) = &mut self.scheds.root.attachment.exit {
            exit.fault.get_or_insert_with(|| why.to_owned());
        }
    }

    fn take_off(&mut self, vm: &mut Vm) {
        self.set_bypass(SchedId::ROOT, true);
        self.exit_cgroups(vm);
        if self.scheds.root.attachment.attached {
            let living = self.living().into_iter();
            let dead = (0..self.tasks.len() as u32).map(TaskId);
            let steps = living
                .map(|id| (id, true))
                .chain(dead.map(|id| (id, false)));
            self.moment.begin(vm);
            for (id, lives) in steps {
                if self.scheds.root.attachment.has_failed() {
                    return;
                }
                if lives {
                    self.switch_out(vm, id);
                } else {
                    self.exit_task(vm, id);
                }
                self.moment.grant();
                self.check_moment(vm, self.turn.exec);
            }
            self.scheds.root.attachment.attached = false;
        }
        if self.scheds.root.attachment.has_failed() {
            return;
        }
        let exit = self.scheds.root.attachment.exit.clone();
        let exit = exit.expect("the policy has just been ejected");
        let info = self.mirror.exit_info(vm, &exit);
        let kind = exit.kind as u64;
        self.call(
            vm,
            &Call {
                op: Op::ExitPolicy,
                locked: None,
                asked: CallOwner::Root,
                subject: None,
                args: [info],
                words: (kind, 0),
            },
        );
    }

    /// Moves a task out of the policy's class.
    fn switch_out(&mut self, vm: &mut Vm, id: TaskId) {
        let task = self.task(id);
        if task.class == Class::Ext {
            let cpu = task.cpu;
            if task.state == RunState::Runnable {
                self.dequeue_task(vm, id, deq::CYCLE | self.rules.class_bit);
            }
            if self.is_running(id) {
                self.update_curr(cpu);
            }
            let task = self.task_mut(id);
            task.class = Class::Fair;
            task.ops_state = OpsState::None;
        }
        self.exit_task(vm, id);
    }
}

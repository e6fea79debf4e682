//! Tasks and cgroups that come to another scheduler.
//!
//! Source: `scx_sub_enable_workfn()`, `scx_sub_disable()` and `scx_cgroup_move_task()`, kernel 7.3.

use model::{ExitKind, Op, TaskId};

use crate::counters::Counter;
use crate::flags::deq;
use crate::machine::{Machine, Vm};
use crate::ops::{Call, CallOwner};
use crate::schedulers::SchedId;
use crate::subs::ENQ_IMMED;
use crate::task::{Class, RunState, ScxState};

impl Machine {
    /// The cgroup of `who` and all below it, and their tasks, come to it from `parent`. Whether it
    /// went well: else `who` has ended, and what is half done stays to be undone.
    pub(super) fn take_over(&mut self, vm: &mut Vm, who: SchedId, parent: SchedId) -> bool {
        let start = self.sub_mut(who).cgroup;
        if !self.pass_cgroups(vm, start, (parent, who)) {
            return false;
        }
        let tasks = self.tasks_below(start);
        for (number, &id) in tasks.iter().enumerate() {
            let error = self.init_task_by(vm, who, (id, false), self.task(id).cgroup);
            self.moment.grant();
            if error != 0 {
                let name = self.name(id);
                self.error_of(who, format!("ops.init_task() failed ({error}) for {name}"));
            }
            if self.scheds[who].attachment.has_ended() {
                for &prepared in &tasks[..number] {
                    self.cancel_task(vm, who, prepared);
                }
                return false;
            }
        }
        for id in tasks {
            self.rehome(vm, id, who);
        }
        true
    }

    /// All that `who` has goes back to `parent`.
    pub(super) fn give_back(&mut self, vm: &mut Vm, who: SchedId, parent: SchedId) {
        let start = self.sub_mut(who).cgroup;
        self.return_cgroups(vm, start, (who, parent));
        for id in self.tasks_below(start) {
            if self.task(id).owner != who {
                continue;
            }
            let error = self.init_task_by(vm, parent, (id, false), self.task(id).cgroup);
            self.moment.grant();
            if error != 0 {
                let name = self.name(id);
                let what = "while disabling a sub-scheduler";
                let message = format!("ops.init_task() failed ({error}) for {name} {what}");
                self.eject(parent, ExitKind::Error, 0, message);
            }
            self.rehome(vm, id, parent);
        }
    }

    /// Tasks in the cgroup `start` and below it, in the order of their creation.
    fn tasks_below(&self, start: u32) -> Vec<TaskId> {
        let is_below = |cgroup| self.cgroups.ancestors(cgroup).any(|it| it == start);
        let all = (0..self.tasks.len() as u32).map(TaskId);
        all.filter(|&id| {
            let task = self.task(id);
            task.state != RunState::Dead && is_below(task.cgroup)
        })
        .collect()
    }

    /// `to` is told of the cgroups from `start` down, parents first, then `from` that they are not
    /// its own any more, children first. Whether `to` takes them all.
    fn pass_cgroups(&mut self, vm: &mut Vm, start: u32, (from, to): (SchedId, SchedId)) -> bool {
        if !self.init_cgroups_of(vm, start, to) {
            return false;
        }
        self.exit_cgroups_of(vm, start, from);
        self.cgroups.set_owner(start, to);
        true
    }

    /// As [`Machine::pass_cgroups`], where the one that has them ends: it hears of it first.
    fn return_cgroups(&mut self, vm: &mut Vm, start: u32, (from, to): (SchedId, SchedId)) {
        if self.cgroups.owner(start) != from {
            return;
        }
        self.exit_cgroups_of(vm, start, from);
        self.cgroups.set_owner(start, to);
        self.init_cgroups_of(vm, start, to);
    }

    fn exit_cgroups_of(&mut self, vm: &mut Vm, start: u32, who: SchedId) {
        let mut next = Some(self.cgroups.first_post(start));
        while let Some(number) = next {
            self.call_cgroup_exit(vm, number, who);
            next = self.cgroups.next_post(number, start);
        }
    }

    /// Whether `who` accepts every cgroup from `start` down; else it hears of the end of those that
    /// it has accepted, and ends.
    fn init_cgroups_of(&mut self, vm: &mut Vm, start: u32, who: SchedId) -> bool {
        let (mut next, mut done) = (Some(start), Vec::new());
        while let Some(number) = next {
            let error = self.call_cgroup_init(vm, number, who);
            if error != 0 {
                self.error_of(who, format!("ops.cgroup_init() failed ({error})"));
            }
            if self.scheds[who].attachment.has_ended() && self.sub(who).is_some() {
                for number in done.into_iter().rev() {
                    self.call_cgroup_exit(vm, number, who);
                }
                return false;
            }
            done.push(number);
            next = self.cgroups.next_pre(number, start);
        }
        true
    }

    // ---- Tasks ----

    /// Whether the scheduler whose program executes owns `id`.
    #[cold]
    pub(crate) fn is_callers(&self, id: TaskId) -> bool {
        self.owner(id) == self.caller()
    }

    /// Whether the scheduler whose program executes may set the slice of `id`: of its own tasks,
    /// and a longer one only where it has the CPU.
    #[cold]
    pub(crate) fn may_set_slice(&mut self, id: TaskId, slice: u64) -> bool {
        if !self.is_callers(id) {
            return false;
        }
        let (caller, cpu) = (self.caller(), self.task(id).cpu);
        let is_denied = slice > self.task(id).slice && self.caps_on(caller, cpu) & ENQ_IMMED == 0;
        if is_denied {
            self.scheds[caller].counters.count(Counter::SliceDenied);
        }
        !is_denied
    }

    /// Tells `who` that a task exists which it will own, in `cgroup`. Its verdict: 0, or a negative
    /// error number.
    pub(crate) fn init_task_by(
        &mut self,
        vm: &mut Vm,
        who: SchedId,
        (id, fork): (TaskId, bool),
        cgroup: u32,
    ) -> i32 {
        let address = self.task(id).address;
        let args = self.mirror.init_task_args(vm, fork, cgroup);
        let call = Call {
            op: Op::InitTask,
            locked: None,
            asked: CallOwner::The(who),
            subject: Some(id),
            args: [address, args],
            words: (u64::from(fork), 0),
        };
        let result = self.call(vm, &call);
        self.errno_of_by(who, Op::InitTask, result.unwrap_or(0))
    }

    /// Tells `who` that it will not own a task of which it was told.
    pub(crate) fn cancel_task(&mut self, vm: &mut Vm, who: SchedId, id: TaskId) {
        self.call_exit_task(vm, CallOwner::The(who), id, true);
    }

    /// A task leaves its scheduler for `to`, which has been told of it.
    pub(crate) fn rehome(&mut self, vm: &mut Vm, id: TaskId, to: SchedId) {
        if self.task(id).class != Class::Ext {
            self.exit_task(vm, id);
            self.set_owner(id, to);
            return self.set_scx_state(id, ScxState::Ready);
        }
        self.change(vm, id, deq::CYCLE, |machine, vm| {
            machine.exit_task(vm, id);
            machine.set_owner(id, to);
            machine.set_scx_state(id, ScxState::Ready);
            machine.enable_task(vm, id);
        });
    }

    fn set_owner(&mut self, id: TaskId, to: SchedId) {
        self.settle_ran(id);
        self.task_mut(id).owner = to;
        if self.sub(to).is_some() {
            self.sub_mut(to).tasks += 1;
        }
    }

    /// A task that is born is the next of its scheduler.
    pub(crate) fn count_born(&mut self, id: TaskId) {
        let owner = self.task(id).owner;
        if self.sub(owner).is_some() {
            self.sub_mut(owner).tasks += 1;
        }
    }

    /// Books what a task has run since it got its scheduler, for that one.
    pub(crate) fn settle_ran(&mut self, id: TaskId) {
        let task = self.task_mut(id);
        let ran = task.sum_exec - std::mem::replace(&mut task.seldom.ran_before, task.sum_exec);
        let owner = task.owner;
        if let Some(sub) = self.scheds[owner].sub.as_deref_mut() {
            sub.ran += ran;
        }
    }

    /// Takes every waiting task of `who` out of its queue and offers it again.
    pub(super) fn cycle_waiting_of(&mut self, vm: &mut Vm, who: SchedId) {
        for id in self.living().into_iter().rev() {
            if self.task(id).owner == who {
                self.cycle_if_waiting(vm, id);
            }
        }
    }

    /// A task moves to the cgroup `to`, of another scheduler, which has been told of it: first
    /// under the scheduler that it has.
    pub(crate) fn move_to_owner(&mut self, vm: &mut Vm, id: TaskId, to: u32) {
        self.task_mut(id).cgroup = to;
        self.change(vm, id, deq::CYCLE, |machine, vm| {
            machine.mirror_cgroup(vm, id);
        });
        self.rehome(vm, id, self.cgroups.owner(to));
    }
}

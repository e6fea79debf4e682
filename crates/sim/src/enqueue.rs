//! How a runnable task gets into a queue, and out again.
//!
//! Source: `enqueue_task_scx()`, `do_enqueue_task()`, `dequeue_task_scx()`, `dispatch_enqueue()`
//! and `direct_dispatch()`, kernel 6.18 as Debian patches it (6.18.15).

use bpf::Memory;
use model::{Cause, CpuId, Op, Sliced, TaskId};

use crate::counters::Counter;
use crate::cpu::{Occupant, Todo};
use crate::dsq::{DsqIndex, Mixed};
use crate::flags::{self, enq};
use crate::interleave::state::LockKey;
use crate::lock::WhichLock;
use crate::machine::{Machine, Vm};
use crate::mirror::stale;
use crate::ops::{Call, CallOwner};
use crate::task::{Carried, Class, Direct, Left, OpsState};

impl Machine {
    /// Puts a task on the run queue of its CPU, in its class.
    #[inline(never)]
    pub(crate) fn enqueue_task(&mut self, vm: &mut Vm, id: TaskId, flags: u64) {
        self.enqueue_task_here(vm, id, flags);
    }

    /// As [`Machine::enqueue_task`], built in where a wakeup needs it.
    #[inline(always)]
    pub(crate) fn enqueue_task_here(&mut self, vm: &mut Vm, id: TaskId, flags: u64) {
        let task = &mut self.tasks[id.index()];
        if task.class != Class::Ext {
            let class = task.class;
            return self.enqueue_other(class, id, flags);
        }
        let cpu = task.cpu;
        let fell_back = flags & enq::CPU_SELECTED != 0 && task.selected_cpu != cpu;
        let was_queued = std::mem::replace(&mut task.queued, true);
        self.watchdog.watch(task, id, self.now);
        assert!(!was_queued, "{} is enqueued twice", self.name(id));
        self.enqueue_ext(vm, id, cpu, flags);
        if fell_back {
            self.count(id, Counter::SelectCpuFallback);
        }
    }

    #[cold]
    fn enqueue_other(&mut self, class: Class, id: TaskId, flags: u64) {
        let cpu = self.task(id).cpu;
        match class {
            Class::Rt => self.enqueue_rt(id, flags),
            Class::Dl => self.enqueue_dl(id, flags),
            Class::Fair => self.cpus[cpu].others_mut().fair.push(id),
            Class::Ext | Class::Stop | Class::Idle => unreachable!("{class:?} is no such class"),
        }
    }

    /// Takes a task off the run queue of its CPU.
    #[inline(never)]
    pub(crate) fn dequeue_task(&mut self, vm: &mut Vm, id: TaskId, flags: u64) {
        self.dequeue_task_here(vm, id, flags);
    }

    /// As [`Machine::dequeue_task`], built in where a task falls asleep.
    #[inline(always)]
    pub(crate) fn dequeue_task_here(&mut self, vm: &mut Vm, id: TaskId, flags: u64) {
        let task = &self.tasks[id.index()];
        if task.class != Class::Ext {
            return self.dequeue_other(task.class, id, flags);
        }
        if task.queued {
            let (cpu, is_held) = (task.cpu, task.is_held());
            self.dequeue_ext(vm, (id, cpu), is_held, flags);
        }
    }

    #[cold]
    fn dequeue_other(&mut self, class: Class, id: TaskId, flags: u64) {
        let cpu = self.task(id).cpu;
        match class {
            Class::Rt => self.cpus[cpu].others_mut().rt.retain(|&other| other != id),
            Class::Dl => self.dequeue_dl(id, flags),
            Class::Fair => self.cpus[cpu]
                .others_mut()
                .fair
                .retain(|&other| other != id),
            Class::Ext | Class::Stop | Class::Idle => unreachable!("{class:?} is no such class"),
        }
    }

    /// A task of the policy's class has come to the run queue of `cpu`.
    #[inline(always)]
    fn enqueue_ext(&mut self, vm: &mut Vm, id: TaskId, cpu: CpuId, flags: u64) {
        let restored = flags & enq::RESTORE != 0 && self.cpus[cpu].occupant == id.into();
        if flags & enq::WAKEUP != 0 {
            self.cpus[cpu].wakes = true;
        }
        self.touch(id, stale::FLAGS | stale::STATE);
        if self.may_define(Op::Runnable) {
            let more = if restored { self.rules.restored_bit } else { 0 };
            self.call_runnable(vm, id, self.rules.enq_out(flags) | more);
        }
        self.choose_queue(vm, id, flags, restored);
        self.tell_released(vm);
        self.cpus[cpu].wakes = false;
    }

    /// `flags`: in the kernel's own numbers.
    #[inline(never)]
    fn call_runnable(&mut self, vm: &mut Vm, id: TaskId, flags: u64) {
        let cpu = self.task(id).cpu;
        self.call(
            vm,
            &Call {
                op: Op::Runnable,
                locked: Some(cpu),
                asked: CallOwner::Owner,
                subject: Some(id),
                args: [self.task(id).address, flags],
                words: (flags, 0),
            },
        );
    }

    #[inline(always)]
    fn dequeue_ext(&mut self, vm: &mut Vm, (id, cpu): (TaskId, CpuId), is_held: bool, flags: u64) {
        if is_held {
            self.take_back(vm, id, flags);
        }
        let state = &self.cpus[cpu];
        if state.occupant == id.into() {
            let clock = state.task_clock(self.now);
            self.charge_now(vm, id, clock);
            self.call_stopping(vm, id, false);
        }
        if self.may_define(Op::Quiescent) {
            self.call_quiescent(vm, (id, cpu), flags);
        }
        // All that changes of it is written at once.
        let task = &mut self.tasks[id.index()];
        task.direct = None;
        task.queued = false;
        task.ops_state = OpsState::None;
        let (left, place) = (task.leave(), task.stop_waiting());
        self.watchdog.forget(&mut self.tasks, place);
        self.take_out(id, left);
        self.touch(id, stale::FLAGS | stale::STATE);
        self.tell_removed(id, false);
    }

    #[inline(never)]
    fn call_quiescent(&mut self, vm: &mut Vm, (id, cpu): (TaskId, CpuId), flags: u64) {
        self.call(
            vm,
            &Call {
                op: Op::Quiescent,
                locked: Some(cpu),
                asked: CallOwner::Owner,
                subject: Some(id),
                args: [self.task(id).address, self.rules.deq_out(flags)],
                words: (self.rules.deq_out(flags), 0),
            },
        );
    }

    #[inline(always)]
    pub(crate) fn call_stopping(&mut self, vm: &mut Vm, id: TaskId, runnable: bool) {
        let task = self.task(id);
        let (cpu, address, slice) = (task.cpu, task.address, task.slice);
        self.call(
            vm,
            &Call {
                op: Op::Stopping,
                locked: Some(cpu),
                asked: CallOwner::Owner,
                subject: Some(id),
                args: [address, u64::from(runnable)],
                words: (u64::from(runnable), slice),
            },
        );
    }

    /// Decides where a runnable task waits. `sticky`: it goes to the local queue with the slice
    /// it has, because it only changes queues or is the restored current task.
    #[inline(never)]
    pub(crate) fn do_enqueue(&mut self, vm: &mut Vm, id: TaskId, flags: u64, sticky: bool) {
        self.choose_queue(vm, id, flags, sticky);
        self.tell_released(vm);
    }

    #[inline(always)]
    fn choose_queue(&mut self, vm: &mut Vm, id: TaskId, flags: u64, sticky: bool) {
        let task = self.task(id);
        let (cpu, has_verdict, immed) = (task.cpu, task.direct.is_some(), task.immed);
        if sticky {
            let rights = if self.has_subs { enq::IGNORE_CAPS } else { 0 };
            return self.insert_local(cpu, id, flags | rights);
        }
        if immed {
            self.task_mut(id).immed = false;
            self.touch(id, stale::FLAGS);
        }
        if !self.is_online(cpu) {
            return self.enqueue_with_new_slice(self.dsqs.local(cpu), id, flags);
        }
        if self.bypasses(id) {
            self.count(id, Counter::BypassDispatch);
            return self.enqueue_with_new_slice(self.global_queue(cpu), id, flags);
        }
        if has_verdict || self.ask_for_queue(vm, id, flags) {
            self.direct_dispatch(id, flags);
        }
    }

    /// Asks the policy where a task shall wait; whether it has given a verdict.
    #[inline(always)]
    fn ask_for_queue(&mut self, vm: &mut Vm, id: TaskId, flags: u64) -> bool {
        let task = self.task(id);
        let cpu = task.cpu;
        if task.exiting && !self.scheduler_of(id).ops.flag(flags::ops::ENQ_EXITING) {
            self.count(id, Counter::EnqSkipExiting);
            self.enqueue_with_new_slice(self.dsqs.local(cpu), id, flags);
            return false;
        }
        let skips = self.rules.skips_immovable && self.cannot_migrate(id);
        if skips
            && !self
                .scheduler_of(id)
                .ops
                .flag(flags::ops::ENQ_MIGRATION_DISABLED)
        {
            self.count(id, Counter::EnqSkipMigrationDisabled);
            self.enqueue_with_new_slice(self.dsqs.local(cpu), id, flags);
            return false;
        }
        if !self.scheduler_of(id).ops.has(Op::Enqueue) {
            self.enqueue_with_new_slice(self.own_global_queue(id), id, flags);
            return false;
        }
        let qseq = &mut self.cpus[cpu].qseq;
        *qseq += 1;
        let qseq = *qseq - 1;
        let task = &mut self.tasks[id.index()];
        task.ops_state = OpsState::Queueing(qseq);
        let address = task.address;
        let locked = self.interleaves() && self.lock(vm, LockKey::Enqueue(id));
        self.call(
            vm,
            &Call {
                op: Op::Enqueue,
                locked: Some(cpu),
                asked: CallOwner::Owner,
                subject: Some(id),
                args: [address, self.rules.enq_out(flags)],
                words: (self.rules.enq_out(flags), u64::from(cpu.0)),
            },
        );
        if locked {
            self.unlock(LockKey::Enqueue(id));
        }
        let task = &mut self.tasks[id.index()];
        if task.direct.is_some() {
            return true;
        }
        // A nested callback may have taken the task already.
        if task.ops_state == OpsState::Queueing(qseq) {
            task.ops_state = OpsState::Queued(qseq);
            self.set_custody(id, true);
            self.tell_kept(id);
        }
        false
    }

    #[inline(never)]
    pub(crate) fn enqueue_with_new_slice(&mut self, dsq: DsqIndex, id: TaskId, flags: u64) {
        self.refill_slice(id);
        self.dispatch_enqueue(dsq, id, flags);
    }

    /// Gives the task the default slice.
    pub(crate) fn refill_slice(&mut self, id: TaskId) {
        self.count(id, Counter::RefillSliceDfl);
        self.set_slice(id, flags::SLICE_DFL);
        self.tell_slice(id, Sliced::Default);
    }

    /// Carries out a verdict that `select_cpu` or `enqueue` gave.
    #[inline(always)]
    fn direct_dispatch(&mut self, id: TaskId, flags: u64) {
        let task = self.task(id);
        let cpu = task.cpu;
        let direct = task.direct.expect("the caller has seen a verdict");
        let flags = flags | direct.flags;
        self.turn.decisions.decide_for(direct.cause);
        if direct.dsq_id == flags::dsq::LOCAL && flags & enq::DSQ_PRIQ == 0 {
            self.carry(id, direct.carried, flags);
            self.insert_local_here(cpu, id, flags);
        } else if direct.dsq_id & flags::dsq::BUILTIN == 0
            && let Some(dsq) = self.dsqs.user(self.owner(id), direct.dsq_id)
        {
            self.carry(id, direct.carried, flags);
            self.insert_shared(dsq, id, flags);
        } else {
            self.direct_dispatch_elsewhere(id, cpu, flags);
        }
        self.turn.decisions.decide_for(Cause::KERNEL);
    }

    /// As [`Machine::direct_dispatch`], with all `flags`, neither into the local queue nor into one
    /// of the policy's.
    #[inline(never)]
    fn direct_dispatch_elsewhere(&mut self, id: TaskId, cpu: CpuId, flags: u64) {
        let direct = self.task(id).direct;
        let direct = direct.expect("the caller has seen a verdict");
        let dsq = self.verdict_queue(cpu, direct.dsq_id, id);
        if self.dsqs.owner(dsq).is_some_and(|owner| owner != cpu) {
            // Another CPU's lock cannot be taken here; the insert is done a little later.
            let task = self.task_mut(id);
            task.ops_state = OpsState::None;
            task.direct = Some(Direct { flags, ..direct });
            task.deferred_on = Some(cpu);
            self.deferred.push(cpu, id);
            self.schedule_deferred(cpu);
            return;
        }
        self.task_mut(id).direct = None;
        self.carry(id, direct.carried, flags);
        self.dispatch_enqueue(dsq, id, flags);
    }

    /// Writes the slice and the key that an insert carried, where the kernel does it now.
    #[inline]
    pub(crate) fn carry(&mut self, id: TaskId, carried: Carried, flags: u64) {
        if self.rules.inserts_slice {
            self.write_carried(id, carried, flags);
        }
    }

    /// Source: `scx_dsq_insert_commit()`, kernel 6.18, and `apply_slice_vtime()`, kernel 7.3.
    fn write_carried(&mut self, id: TaskId, carried: Carried, flags: u64) {
        self.task_mut(id).take_carried(carried, flags);
        self.touch(id, stale::SLICE);
        self.tell_slice(id, Sliced::Insert);
    }

    /// As [`Machine::write_carried`], with its mirror: the program that inserts goes on and may
    /// look.
    #[inline(always)]
    pub(crate) fn write_carried_now(
        &mut self,
        memory: &mut Memory,
        id: TaskId,
        carried: Carried,
        flags: u64,
    ) {
        let task = &mut self.tasks[id.index()];
        task.take_carried(carried, flags);
        self.mirror.write_slice(memory, task);
        self.tell_slice(id, Sliced::Insert);
    }

    fn schedule_deferred(&mut self, cpu: CpuId) {
        // A wakeup ends by carrying out what was deferred; balance does so at its end.
        let state = &mut self.cpus[cpu];
        if !state.wakes && !state.balances {
            state.todo.add(Todo::DEFERRED);
            self.poke(cpu);
        }
    }

    /// Carries out the inserts deferred on `cpu`.
    pub(crate) fn run_deferred(&mut self, vm: &mut Vm, cpu: CpuId) {
        if self.interleaves() {
            self.reach_deferred(vm, cpu);
        }
        while let Some(id) = self.deferred.pop(cpu) {
            let task = self.task_mut(id);
            task.deferred_on = None;
            let Some(direct) = task.direct.take() else {
                continue;
            };
            self.turn.decisions.decide_for(direct.cause);
            self.turn.decisions.turn_to(id);
            let dsq = self.verdict_queue(cpu, direct.dsq_id, id);
            self.carry(id, direct.carried, direct.flags);
            self.dispatch_to_local(cpu, dsq, id, direct.flags);
            self.turn.decisions.decide_for(Cause::KERNEL);
            if self.interleaves() {
                self.reach_deferred(vm, cpu);
            }
        }
    }

    /// Waits for the run queues that the first insert deferred on `cpu` needs.
    #[cold]
    fn reach_deferred(&mut self, vm: &mut Vm, cpu: CpuId) {
        while let Some(id) = self.deferred.first(cpu)
            && let Some(direct) = self.task(id).direct
            && self.reach_verdict(vm, (cpu, id), direct.dsq_id)
        {}
    }

    /// The queue that a verdict names, seen from `cpu`; the global one after an error.
    ///
    /// Source: `find_dsq_for_dispatch()`, kernel 6.18.
    pub(crate) fn verdict_queue(&mut self, cpu: CpuId, dsq_id: u64, id: TaskId) -> DsqIndex {
        match dsq_id {
            flags::dsq::LOCAL => self.dsqs.local(cpu),
            flags::dsq::GLOBAL => self.own_global_queue(id),
            on if on & flags::dsq::LOCAL_ON == flags::dsq::LOCAL_ON => {
                let target = (on & flags::dsq::CPU_MASK) as u32 as i32;
                if let Some(cpu) = self.cpu_meant_by(self.owner(id), i64::from(target)) {
                    self.dsqs.local(cpu)
                } else {
                    let what = "in SCX_DSQ_LOCAL_ON dispatch verdict";
                    let message = format!("invalid CPU {target} {what}");
                    self.error_of(self.owner(id), message);
                    self.own_global_queue(id)
                }
            }
            user => self.dsqs.user(self.owner(id), user).unwrap_or_else(|| {
                let name = self.name(id);
                let whose = if self.rules.names_task_without_dsq {
                    format!(" for {name}")
                } else {
                    String::new()
                };
                let message = format!("non-existent DSQ 0x{user:x}{whose}");
                self.error_of(self.owner(id), message);
                self.own_global_queue(id)
            }),
        }
    }

    /// Inserts a task into the local queue of `cpu`, at its end or its front.
    #[inline(never)]
    pub(crate) fn insert_local(&mut self, cpu: CpuId, id: TaskId, flags: u64) {
        self.insert_local_here(cpu, id, flags);
    }

    /// As [`Machine::insert_local`], built in where a wakeup or `ops.dispatch` needs it.
    #[inline(always)]
    pub(crate) fn insert_local_here(&mut self, cpu: CpuId, id: TaskId, mut flags: u64) {
        if self.has_subs {
            if !self.admits(cpu, id, flags) {
                return self.reject_from_cpu(cpu, id, flags);
            }
            flags = self.admitted_flags(cpu, id, flags);
        }
        let local = self.dsqs.local(cpu);
        let front = flags & (enq::HEAD | enq::PREEMPT) != 0;
        self.dsqs.push(local, id, front);
        let task = &mut self.tasks[id.index()];
        let before = task.dsq.replace(local);
        task.direct = None;
        task.ops_state = OpsState::None;
        assert!(before.is_none(), "{} is in two queues", self.name(id));
        self.note_custody(local, id);
        self.tell_insert(local, id, flags);
        self.local_inserted(cpu, id, flags);
        if self.has_immed {
            self.inserted_immed(cpu, id, flags);
        }
    }

    /// Inserts a task into a queue.
    pub(crate) fn dispatch_enqueue(&mut self, dsq: DsqIndex, id: TaskId, flags: u64) {
        if let Some(owner) = self.dsqs.owner(dsq)
            && flags & enq::DSQ_PRIQ == 0
        {
            return self.insert_local(owner, id, flags);
        }
        self.insert_shared(dsq, id, flags);
    }

    /// As [`Machine::dispatch_enqueue`], into a queue in which order may matter.
    #[inline(always)]
    fn insert_shared(&mut self, dsq: DsqIndex, id: TaskId, flags: u64) {
        let mut by_vtime = flags & enq::DSQ_PRIQ != 0;
        if !self.dsqs.takes(dsq, by_vtime) {
            by_vtime = self.refuse_order(dsq, by_vtime);
        }
        let task = &mut self.tasks[id.index()];
        let before = task.dsq.replace(dsq);
        task.direct = None;
        task.ops_state = OpsState::None;
        if by_vtime {
            self.dsqs.insert(dsq, id, task.vtime);
        } else {
            self.dsqs
                .push_shared(dsq, id, flags & (enq::HEAD | enq::PREEMPT) != 0);
        }
        assert!(before.is_none(), "{} is in two queues", self.name(id));
        self.note_custody(dsq, id);
        self.tell_insert(dsq, id, flags);
        match self.dsqs.owner(dsq) {
            Some(owner) => self.local_inserted(owner, id, flags),
            None => self.hold(WhichLock::Queue(dsq), |costs| costs.call_insert),
        }
    }

    /// An insert into `dsq` was ordered as that queue cannot be. Whether it is done by vtime.
    #[cold]
    #[inline(never)]
    fn refuse_order(&mut self, dsq: DsqIndex, mut by_vtime: bool) -> bool {
        let number = self.dsqs.id(dsq);
        if number & flags::dsq::BUILTIN != 0 && by_vtime {
            self.error("cannot use vtime ordering for built-in DSQs");
            by_vtime = false;
        }
        let Some(mixed) = self.dsqs.clash(dsq, by_vtime) else {
            return by_vtime;
        };
        let kind = if mixed == Mixed::Fifo { "FIFO" } else { "PRIQ" };
        self.error(format!(
            "DSQ ID 0x{number:016x} already had {kind}-enqueued tasks"
        ));
        // The kernel inserts all the same; the run ends before anybody can tell how.
        mixed == Mixed::Priq
    }

    /// A task has come into the local queue of `cpu`.
    ///
    /// Source: `local_dsq_post_enq()`, Debian 6.18.15; nothing happens while the CPU balances.
    #[inline(always)]
    pub(crate) fn local_inserted(&mut self, cpu: CpuId, id: TaskId, flags: u64) {
        let state = &mut self.cpus[cpu];
        if state.balances {
            return;
        }
        if state.occupant == Occupant::IDLE {
            state.todo.add(Todo::RESCHED);
            return self.poke(cpu);
        }
        self.inserted_behind(cpu, id, flags);
    }

    /// As [`Machine::local_inserted`], where something runs on `cpu`.
    #[inline(never)]
    fn inserted_behind(&mut self, cpu: CpuId, id: TaskId, flags: u64) {
        let state = &self.cpus[cpu];
        let mut preempt = false;
        if let Some(curr) = state.occupant.task()
            && flags & enq::PREEMPT != 0
            && curr != id
            && self.task(curr).class == Class::Ext
            && !state.is_put_back
        {
            self.update_curr(cpu);
            self.set_slice(curr, 0);
            self.tell_slice(curr, Sliced::Cut);
            preempt = true;
        }
        if preempt || self.class_on(cpu) > Class::Ext {
            self.resched(cpu);
        }
    }

    /// Takes a task out of whatever queue it is in, or from a list of deferred inserts.
    #[inline(always)]
    pub(crate) fn leave_dsq(&mut self, id: TaskId) {
        let left = self.tasks[id.index()].leave();
        self.take_out(id, left);
    }

    /// Takes a task out of what it has left.
    #[inline(always)]
    pub(crate) fn take_out(&mut self, id: TaskId, left: Left) {
        if let Some(dsq) = left.dsq {
            self.dsqs.remove(dsq, id);
            self.turn.decisions.note_left(dsq);
        }
        if left.deferred {
            self.leave_deferred(id);
        }
    }

    #[cold]
    #[inline(never)]
    fn leave_deferred(&mut self, id: TaskId) {
        if let Some(cpu) = self.task_mut(id).deferred_on.take() {
            self.deferred.remove(cpu, id);
        }
    }

    /// Takes a task back from the policy, if the policy holds it.
    ///
    /// Source: `ops_dequeue()`, kernel 6.18.
    #[inline(always)]
    pub(crate) fn leave_custody(&mut self, vm: &mut Vm, id: TaskId, flags: u64) {
        if self.task(id).is_held() {
            self.take_back(vm, id, flags);
        }
    }

    #[inline(never)]
    fn take_back(&mut self, vm: &mut Vm, id: TaskId, flags: u64) {
        self.set_custody(id, false);
        let flags = self.rules.deq_out(flags);
        self.call_dequeue(vm, id, flags);
        self.task_mut(id).ops_state = OpsState::None;
    }

    /// Tells the policy that a task is not in its custody any more.
    pub(crate) fn call_dequeue(&mut self, vm: &mut Vm, id: TaskId, flags: u64) {
        let (cpu, address) = (self.task(id).cpu, self.task(id).address);
        self.call(
            vm,
            &Call {
                op: Op::Dequeue,
                locked: Some(cpu),
                asked: CallOwner::Owner,
                subject: Some(id),
                args: [address, flags],
                words: (flags, 0),
            },
        );
    }
}

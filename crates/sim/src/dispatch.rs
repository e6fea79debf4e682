//! What `ops.dispatch` asks for, and how tasks move from queue to queue.
//!
//! Source: `finish_dispatch()`, `consume_dispatch_q()`, `dispatch_to_local_dsq()`,
//! `move_task_between_dsqs()` and `task_can_run_on_remote_rq()`, kernel 6.18.

use model::{Cause, CpuId, Looked, TaskId};

use crate::buffer::Buffered;
use crate::counters::Counter;
use crate::dsq::DsqIndex;
use crate::flags::enq;
use crate::lock::WhichLock;
use crate::machine::{Machine, Vm};
use crate::task::{Class, OpsState};

impl Machine {
    /// Carries out the dispatch buffer of `cpu`, in order.
    #[inline(always)]
    pub(crate) fn flush_buffer(&mut self, vm: &mut Vm, cpu: CpuId) {
        if self.turn.buffer.len() > 0 {
            self.flush_filled_buffer(vm, cpu);
        }
    }

    #[inline(never)]
    fn flush_filled_buffer(&mut self, vm: &mut Vm, cpu: CpuId) {
        let mut entries = self.turn.buffer.take();
        for entry in entries.drain(..) {
            self.turn.buffer.count_moved(1);
            self.turn.decisions.decide_for(entry.cause);
            self.turn.decisions.turn_to(entry.task);
            self.finish_dispatch(vm, cpu, entry);
        }
        self.turn.decisions.decide_for(Cause::KERNEL);
        self.turn.buffer.give_back(entries);
    }

    /// Carries out one entry, if the policy still owns the task as it did at the insert.
    fn finish_dispatch(&mut self, vm: &mut Vm, cpu: CpuId, entry: Buffered) {
        let Buffered {
            task: id,
            qseq: Some(qseq),
            dsq_id,
            flags,
            carried,
            ..
        } = entry
        else {
            return self.tell_ignored(&entry);
        };
        if self.interleaves() {
            self.reach_dispatched(vm, (cpu, id), &entry);
        }
        if self.task(id).ops_state != OpsState::Queued(qseq) {
            return self.tell_ignored(&entry);
        }
        let dsq = self.verdict_queue(cpu, dsq_id, id);
        self.carry(id, carried, flags);
        self.dispatch_to_local(cpu, dsq, id, flags);
    }

    /// Waits until nobody else is in the middle of what moving a task by `entry` needs.
    ///
    /// Source: `finish_dispatch()` and `dispatch_to_local_dsq()`, kernel 6.18.
    #[cold]
    fn reach_dispatched(&mut self, vm: &mut Vm, (cpu, id): (CpuId, TaskId), entry: &Buffered) {
        loop {
            self.await_enqueue(vm, id);
            let is_held = entry.qseq.map(OpsState::Queued) == Some(self.task(id).ops_state);
            if !is_held || !self.reach_verdict(vm, (cpu, id), entry.dsq_id) {
                return;
            }
        }
    }

    /// Waits for the run queues between which `id` moves by a verdict; whether it had to.
    pub(crate) fn reach_verdict(
        &mut self,
        vm: &mut Vm,
        (cpu, id): (CpuId, TaskId),
        dsq_id: u64,
    ) -> bool {
        let dsq = self.verdict_queue(cpu, dsq_id, id);
        let from = self.task(id).cpu;
        let target = self.dsqs.owner(dsq);
        target.is_some_and(|target| self.reach_run_queues(vm, [from, target]))
    }

    /// Inserts a task that the policy owned, from the context of `cpu`, into any queue.
    pub(crate) fn dispatch_to_local(&mut self, cpu: CpuId, dsq: DsqIndex, id: TaskId, flags: u64) {
        let from = self.task(id).cpu;
        match self.dsqs.owner(dsq) {
            None => self.dispatch_enqueue(dsq, id, flags),
            Some(target) if target == from => {
                self.dispatch_enqueue(dsq, id, flags);
                self.wake_if_below(target, cpu);
            }
            Some(target) if !self.can_migrate(id, target, true) => {
                let global = self.own_global_queue(id);
                self.dispatch_enqueue(global, id, flags & !enq::DSQ_PRIQ);
            }
            Some(target) => {
                self.migrate_to_local(id, target, flags);
                self.wake_if_below(target, cpu);
            }
        }
    }

    /// A CPU that runs a class below the policy's looks again after an insert by another one.
    fn wake_if_below(&mut self, target: CpuId, cpu: CpuId) {
        if target != cpu && self.class_on(target) > Class::Ext {
            self.resched(target);
        }
    }

    /// Moves a waiting task to `target`'s run queue and its local queue. No callback is called.
    pub(crate) fn migrate_to_local(&mut self, id: TaskId, target: CpuId, flags: u64) {
        self.charge(|costs| costs.migration);
        let from = self.task(id).cpu;
        if from != self.turn.exec {
            self.hold(WhichLock::RunQueue(from), |costs| costs.migration);
        }
        if self.interleaves() {
            self.order_by_move(from, target);
        }
        self.leave_dsq(id);
        self.set_task_cpu(id, target);
        let local = self.dsqs.local(target);
        self.moves_to_local(true);
        self.dispatch_enqueue(local, id, flags);
        self.moves_to_local(false);
    }

    /// Whether a task that sits on another CPU's run queue may be taken to `cpu`. `enforce`: a
    /// policy that asks for what may not be is ejected.
    #[inline]
    pub(crate) fn can_migrate(&mut self, id: TaskId, cpu: CpuId, enforce: bool) -> bool {
        let task = self.task(id);
        let from = task.cpu;
        if self.cannot_migrate(id) {
            if enforce {
                let name = self.name(id);
                let message = format!(
                    "SCX_DSQ_LOCAL[_ON] cannot move migration disabled {name} from CPU {from} \
                     to {cpu}"
                );
                self.error_of(self.owner(id), message);
            }
            return false;
        }
        if !self.masks.has(task.cpus, cpu) {
            if enforce {
                let name = self.name(id);
                let message = format!("SCX_DSQ_LOCAL[_ON] target CPU {cpu} not allowed for {name}");
                self.error_of(self.owner(id), message);
            }
            return false;
        }
        if !self.is_online(cpu) {
            if enforce {
                self.count(id, Counter::DispatchLocalDsqOffline);
            }
            return false;
        }
        true
    }

    /// Takes the first task of `dsq` that may run on `cpu` to the local queue of `cpu`, with the
    /// flags of an insert. Whether there is one, and how many were passed over.
    #[inline(always)]
    pub(crate) fn consume(
        &mut self,
        vm: &mut Vm,
        cpu: CpuId,
        dsq: DsqIndex,
        flags: u64,
    ) -> (bool, u64) {
        if self.interleaves() {
            self.reach_first(vm, cpu, dsq);
        }
        match self.dsqs.first(dsq) {
            Some(first) => self.consume_from(cpu, (dsq, first), flags),
            None => {
                self.tell_look(dsq, None, self.who_looks());
                (false, 0)
            }
        }
    }

    /// Waits until nobody else is in the middle of something with the task that `cpu` will take
    /// from `dsq`.
    ///
    /// Source: `consume_dispatch_q()` and `consume_remote_task()`, kernel 6.18.
    #[cold]
    fn reach_first(&mut self, vm: &mut Vm, cpu: CpuId, dsq: DsqIndex) {
        loop {
            let mut next = self.dsqs.first(dsq);
            while let Some(id) = next {
                let from = self.task(id).cpu;
                if from == cpu || self.can_migrate(id, cpu, false) {
                    break;
                }
                next = self.dsqs.after(dsq, id);
            }
            let from = next.map(|id| self.task(id).cpu);
            if !from.is_some_and(|from| self.reach_run_queues(vm, [from, from])) {
                return;
            }
        }
    }

    /// Why a queue is looked at now: a program asks for it, or the kernel does.
    fn who_looks(&self) -> Looked {
        if self.turn.contexts.depth() > 0 {
            Looked::MoveToLocal
        } else {
            Looked::Kernel
        }
    }

    /// As [`Machine::consume`], of a queue with a `first` task.
    #[inline(always)]
    fn consume_from(
        &mut self,
        cpu: CpuId,
        (dsq, first): (DsqIndex, TaskId),
        flags: u64,
    ) -> (bool, u64) {
        let looked = self.who_looks();
        let mut passed = 0;
        self.hold(WhichLock::Queue(dsq), |costs| costs.call_move);
        let mut next = Some(first);
        while let Some(id) = next {
            if self.task(id).cpu == cpu {
                self.leave_dsq(id);
                self.tell_look(dsq, Some(id), looked);
                match flags & enq::DSQ_PRIQ {
                    0 => self.insert_local_here(cpu, id, flags),
                    _ => self.dispatch_enqueue(self.dsqs.local(cpu), id, flags),
                }
                return (true, passed);
            }
            if self.can_migrate(id, cpu, false) {
                self.tell_look(dsq, Some(id), looked);
                self.migrate_to_local(id, cpu, flags);
                return (true, passed);
            }
            passed += 1;
            next = self.dsqs.after(dsq, id);
        }
        self.tell_look(dsq, None, looked);
        (false, passed)
    }

    /// Takes a task from the global queue to the local queue of `cpu`.
    #[inline]
    pub(crate) fn consume_global(&mut self, vm: &mut Vm, cpu: CpuId) -> bool {
        self.dsqs.any_in_globals() && self.consume_filled_global(vm, cpu)
    }

    #[inline(never)]
    fn consume_filled_global(&mut self, vm: &mut Vm, cpu: CpuId) -> bool {
        let global = self.global_queue(cpu);
        !self.dsqs.is_empty(global) && self.consume(vm, cpu, global, 0).0
    }

    /// Moves a task from the queue it sits in to another, at once.
    pub(crate) fn move_between(&mut self, cpu: CpuId, id: TaskId, dsq: DsqIndex, flags: u64) {
        let from = self.task(id).cpu;
        if let Some(source) = self
            .task(id)
            .dsq
            .filter(|dsq| self.dsqs.owner(*dsq).is_none())
        {
            self.hold(WhichLock::Queue(source), |costs| costs.call_move);
        }
        let target = match self.dsqs.owner(dsq) {
            Some(target) if target != from && !self.can_migrate(id, target, true) => None,
            other => other,
        };
        let refused = target.is_none() && self.dsqs.owner(dsq).is_some();
        match target {
            Some(target) if target != from => {
                self.tell_move(id);
                self.migrate_to_local(id, target, flags);
                self.wake_if_below(target, cpu);
            }
            _ => {
                self.tell_move(id);
                let dsq = if refused {
                    self.own_global_queue(id)
                } else {
                    dsq
                };
                self.leave_dsq(id);
                self.dispatch_enqueue(dsq, id, flags);
            }
        }
    }
}

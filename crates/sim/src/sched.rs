//! `schedule()`: who runs next.
//!
//! Source: `__schedule()`, `balance_one()`, `pick_task_scx()`, `put_prev_task_scx()` and
//! `set_next_task_scx()`, kernel 6.18. There, balancing comes before the choice of the class, so
//! `ops.dispatch` may be called although a real-time task is about to run; with
//! [`crate::kernels::KernelRules::balances_before_pick`] off it is not.

use model::{CpuId, EventKind, Op, TaskId, What};

use crate::counters::Counter;
use crate::cpu::{Curr, Occupant, Todo};
use crate::fetched::{Fetched, Prev};
use crate::flags::{self, enq, preempt};
use crate::machine::{Machine, Vm};
use crate::ops::{Call, CallOwner};
use crate::pending::Pending;
use crate::task::{Class, Reenqueued, RunState};

impl Machine {
    /// Chooses what `cpu` runs. `asleep` gives the dequeue flags if the current task leaves.
    pub(crate) fn schedule(&mut self, vm: &mut Vm, cpu: CpuId, asleep: Option<u64>) {
        let state = &self.cpus[cpu];
        let (before, ticks) = (state.occupant, state.tick_at.is_some());
        self.stop_executing_here(cpu);
        if self.spec.textbook.is_some() && asleep.is_none() {
            self.put_back(vm, cpu);
        }
        if !self.unbound.is_empty() {
            self.bind(vm, before, true);
        }
        let held = self.take_run_queue(vm, cpu);
        if let (Some(flags), Some(id)) = (asleep, before.task())
            && self.leaves_run_queue(id)
        {
            self.dequeue_task_here(vm, id, flags);
        }
        if self.pass(vm, cpu) {
            self.pass_again(vm, cpu);
        }
        if self.deferred.any() {
            self.run_deferred(vm, cpu);
            self.reenqueue_deferred(vm, cpu);
        }
        self.give_run_queue(held);
        self.end_switch(cpu);
        if self.deadlines.any() {
            self.after_schedule_dl(cpu, before.curr());
        }
        if !ticks {
            self.arm_tick(cpu);
        }
    }

    /// Chooses once. Whether that must be repeated: the stopper has done its work, or a task was
    /// chosen that must leave the CPU.
    #[inline(always)]
    fn pass(&mut self, vm: &mut Vm, cpu: CpuId) -> bool {
        let (prev, next) = self.pick(vm, cpu);
        if next != prev {
            self.put_prev(vm, cpu, prev, next);
            self.set_next(vm, cpu, prev, next);
            if !self.unbound.is_empty() {
                self.bind(vm, prev, false);
            }
            if self.hooked.any() {
                let state = &mut self.cpus[cpu];
                (state.executes, state.leaves) = (next.id(), None);
                self.trace_switch(vm, cpu, prev);
            }
            self.switched(cpu, prev, next);
        } else {
            self.charge(|costs| costs.keep);
            match next.curr() {
                Curr::Task(id) => {
                    if self.cpus[cpu].is_put_back {
                        self.take_again(vm, cpu, id);
                    }
                    let counts = &mut self.cpus[cpu].counts;
                    counts.picks += 1;
                    counts.kept += 1;
                    self.sample_report(vm, id, cpu);
                }
                Curr::Idle => self.idle_again(vm, cpu),
                Curr::Stopper => {}
            }
        }
        if next.task().is_some() {
            return self.push_away(vm, cpu);
        }
        let is_stopper = next == Occupant::STOPPER;
        if is_stopper {
            self.run_stopper(vm, cpu);
        }
        is_stopper
    }

    #[cold]
    #[inline(never)]
    fn pass_again(&mut self, vm: &mut Vm, cpu: CpuId) {
        while self.pass(vm, cpu) {}
    }

    /// Gives each class from the previous task's downward its chance to fetch work, and takes the
    /// task of the highest class that has one. Returns what the CPU runs, and what it shall run.
    #[inline(always)]
    fn pick(&mut self, vm: &mut Vm, cpu: CpuId) -> (Occupant, Occupant) {
        let state = &mut self.cpus[cpu];
        state.counts.schedules += 1;
        state.todo.strike(Todo::RESCHED);
        let (prev, released) = (state.occupant, state.released);
        // Who is back in a queue is one of those to choose from.
        let before = if state.is_put_back {
            Occupant::IDLE
        } else {
            prev
        };
        // No program can change whether a class above the policy's has something to run.
        let has_others = state.has_others();
        let fetches = self.scheds.root.attachment.is_attached()
            && !(has_others && self.higher_class_has_task(cpu));
        let fetched = if fetches {
            self.balance_ext(vm, cpu, (before, released))
        } else {
            self.first_local(cpu)
        };
        // Somebody may have come in between while the lock was dropped.
        if has_others || self.interleaves() && self.cpus[cpu].has_others() {
            return (prev, self.cpus[cpu].first_of_others());
        }
        let next = match fetched {
            Fetched::Nothing => Occupant::IDLE,
            Fetched::Local(id) | Fetched::Kept(id) => {
                if self.task(id).slice == 0 {
                    self.warn_zero_slice(id, matches!(fetched, Fetched::Kept(_)));
                    self.refill_slice(id);
                }
                id.into()
            }
        };
        (prev, next)
    }

    /// What waits in the local queue of `cpu`.
    #[inline(always)]
    pub(crate) fn first_local(&self, cpu: CpuId) -> Fetched {
        let first = self.dsqs.first_local(cpu);
        first.map_or(Fetched::Nothing, Fetched::Local)
    }

    /// Whether a class above the policy's, from the previous task's downward, has a task.
    #[cold]
    fn higher_class_has_task(&self, cpu: CpuId) -> bool {
        let start = if self.rules.balances_before_pick {
            self.class_on(cpu).min(Class::Ext)
        } else {
            Class::Stop
        };
        self.any_class_has_task(cpu, start)
    }

    /// Whether a class above the policy's, from `start` downward, has a task on `cpu`.
    pub(crate) fn any_class_has_task(&self, cpu: CpuId, start: Class) -> bool {
        let others = self.cpus[cpu].others();
        let has = |class: Class| match class {
            Class::Stop => !others.to_move.is_empty(),
            // Deadline tasks are in the same list.
            Class::Dl | Class::Rt => !others.rt.is_empty(),
            Class::Fair => !others.fair.is_empty(),
            Class::Ext | Class::Idle => false,
        };
        let above = [Class::Stop, Class::Dl, Class::Rt, Class::Fair];
        above.into_iter().any(|class| class >= start && has(class))
    }

    /// Fetches work for the policy's class.
    #[inline(always)]
    fn balance_ext(
        &mut self,
        vm: &mut Vm,
        cpu: CpuId,
        (prev, released): (Occupant, bool),
    ) -> Fetched {
        if released {
            self.call_cpu_acquire(vm, cpu);
        }
        let prev = prev.task().map_or(Prev::NONE, |id| self.prev_ext(id));
        if self.has_subs {
            self.turn.prev = prev;
            self.sync_caps(vm, cpu);
        }
        if prev.queued {
            // One that has left the run queue was charged when it did.
            self.update_curr_now(vm, cpu);
            if self.has_slice_left(prev.id) {
                return Fetched::Kept(prev.id);
            }
        }
        let local = self.first_local(cpu);
        if local != Fetched::Nothing {
            return local;
        }
        self.cpus[cpu].balances = true;
        let fetched = self.fetch(vm, cpu, prev);
        self.cpus[cpu].balances = false;
        fetched
    }

    /// What the policy needs to know of a task that has had the CPU.
    #[inline(always)]
    fn prev_ext(&self, id: TaskId) -> Prev {
        let task = self.task(id);
        match task.class {
            Class::Ext => Prev {
                id,
                address: task.address,
                queued: task.queued,
            },
            _ => Prev::NONE,
        }
    }

    /// Fetches work for the policy's class where none waits in the local queue.
    #[inline(always)]
    fn fetch(&mut self, vm: &mut Vm, cpu: CpuId, prev: Prev) -> Fetched {
        if self.has_subs {
            return self.fetch_among(vm, cpu, prev);
        }
        if self.consume_global(vm, cpu) {
            return self.first_local(cpu);
        }
        if self.scheds.root.ops.has(Op::Dispatch)
            && !self.scheds.root.attachment.bypasses()
            && self.is_online(cpu)
        {
            match self.ask_for_work(vm, cpu, prev) {
                Fetched::Nothing if self.turn.buffer.has_moved() => {
                    let fetched = self.ask_again(vm, cpu, prev);
                    if fetched != Fetched::Nothing {
                        return fetched;
                    }
                }
                Fetched::Nothing => {}
                fetched => return fetched,
            }
        }
        if prev.queued && self.keeps_last(prev.id) {
            self.count(prev.id, Counter::DispatchKeepLast);
            return Fetched::Kept(prev.id);
        }
        Fetched::Nothing
    }

    /// Whether a task goes on because nothing else is there to run.
    #[inline(always)]
    pub(crate) fn keeps_last(&self, id: TaskId) -> bool {
        self.bypasses(id) || !self.scheduler_of(id).ops.flag(flags::ops::ENQ_LAST)
    }

    /// Asks the policy for work once.
    #[inline(always)]
    fn ask_for_work(&mut self, vm: &mut Vm, cpu: CpuId, prev: Prev) -> Fetched {
        self.call_dispatch(vm, cpu, prev, CallOwner::Root);
        if prev.queued && self.has_slice_left(prev.id) {
            return Fetched::Kept(prev.id);
        }
        match self.first_local(cpu) {
            Fetched::Nothing if self.consume_global(vm, cpu) => self.first_local(cpu),
            first => first,
        }
    }

    /// Asks again, because the policy has moved tasks, but none that this CPU got.
    #[cold]
    #[inline(never)]
    fn ask_again(&mut self, vm: &mut Vm, cpu: CpuId, prev: Prev) -> Fetched {
        for _ in 1..flags::DSP_MAX_LOOPS {
            let fetched = self.ask_for_work(vm, cpu, prev);
            if fetched != Fetched::Nothing || !self.turn.buffer.has_moved() {
                return fetched;
            }
        }
        self.kick_self(cpu);
        Fetched::Nothing
    }

    /// Whether a task of the policy's goes on because its slice is not over.
    #[inline(always)]
    pub(crate) fn has_slice_left(&self, id: TaskId) -> bool {
        self.task(id).slice > 0 && !self.bypasses(id)
    }

    /// Tells the policy that it has the CPU again.
    #[cold]
    fn call_cpu_acquire(&mut self, vm: &mut Vm, cpu: CpuId) {
        let number = u64::from(cpu.0);
        let state = &mut self.cpus[cpu];
        (state.released, state.balances) = (false, true);
        self.call(
            vm,
            &Call {
                op: Op::CpuAcquire,
                locked: Some(cpu),
                asked: CallOwner::Root,
                subject: None,
                args: [number, 0],
                words: (number, 0),
            },
        );
        self.cpus[cpu].balances = false;
    }

    /// Asks a scheduler for work for `cpu`, and carries out what it has inserted.
    #[inline(always)]
    pub(crate) fn call_dispatch(&mut self, vm: &mut Vm, cpu: CpuId, prev: Prev, asked: CallOwner) {
        self.turn.buffer.begin();
        let (number, told) = (u64::from(cpu.0), self.number_of(cpu));
        self.call(
            vm,
            &Call {
                op: Op::Dispatch,
                locked: Some(cpu),
                asked,
                subject: prev.subject(),
                args: [told, prev.address],
                words: (number, u64::from(prev.queued)),
            },
        );
        self.tell_nothing();
        self.flush_buffer(vm, cpu);
        self.tell_released(vm);
    }

    #[cold]
    fn warn_zero_slice(&mut self, id: TaskId, kept: bool) {
        if !kept
            && !self.bypasses(id)
            && !std::mem::replace(&mut self.task_mut(id).warned_zero_slice, true)
        {
            let name = self.name(id);
            self.note(format!(
                "{name} has zero slice in the local queue; the kernel warns once"
            ));
        }
    }

    /// The previous task gives the CPU up.
    #[inline(always)]
    fn put_prev(&mut self, vm: &mut Vm, cpu: CpuId, prev: Occupant, next: Occupant) {
        match prev.curr() {
            Curr::Idle => self.leave_idle(vm, cpu),
            Curr::Stopper => {}
            Curr::Task(id) => {
                let task = self.task(id);
                let is_ext = task.class == Class::Ext;
                let queued = task.queued;
                if !is_ext || queued {
                    self.update_curr(cpu);
                }
                if is_ext {
                    let next_class = match next.curr() {
                        Curr::Idle => Class::Idle,
                        Curr::Stopper => Class::Stop,
                        Curr::Task(id) => self.task(id).class,
                    };
                    let is_put_back = self.spec.textbook.is_some()
                        && std::mem::take(&mut self.cpus[cpu].is_put_back);
                    if queued && !is_put_back {
                        self.put_prev_ext(vm, cpu, id, next_class);
                    }
                    if next_class < Class::Ext {
                        self.switch_class(vm, cpu, next.curr(), next_class);
                    }
                }
            }
        }
    }

    /// The previous task of the policy's class, which is runnable, gives the CPU up.
    #[inline(always)]
    fn put_prev_ext(&mut self, vm: &mut Vm, cpu: CpuId, id: TaskId, next: Class) {
        self.call_stopping(vm, id, true);
        self.watch(id);
        if self.has_slice_left(id) {
            // Only a higher class takes a CPU from a task that has slice left.
            if self.task(id).immed {
                self.enqueue_again(vm, id, Reenqueued::Preempted);
            } else {
                self.insert_local(cpu, id, enq::HEAD);
            }
        } else if next > Class::Ext {
            // Of several schedulers one may be asked that keeps the last task by itself, but lacks
            // the right to that.
            let is_told = !self.has_subs || self.scheduler_of(id).ops.flag(flags::ops::ENQ_LAST);
            self.do_enqueue(vm, id, if is_told { enq::LAST } else { 0 }, false);
            if self.rules.last_goes_on && self.task(id).dsq == Some(self.dsqs.local(cpu)) {
                self.resched(cpu);
            }
        } else {
            self.do_enqueue(vm, id, 0, false);
        }
    }

    /// Tells the policy that it loses the CPU to a higher class.
    ///
    /// Source: `switch_class()`, kernel 6.18.
    fn switch_class(&mut self, vm: &mut Vm, cpu: CpuId, next: Curr, class: Class) {
        let listens =
            self.scheds.root.ops.has(Op::CpuAcquire) || self.scheds.root.ops.has(Op::CpuRelease);
        if !listens || self.cpus[cpu].released {
            return;
        }
        let reason = match class {
            Class::Rt => preempt::RT,
            Class::Dl => preempt::DL,
            Class::Stop => preempt::STOP,
            _ => preempt::UNKNOWN,
        };
        let task = next.task().map_or(0, |id| self.task(id).address);
        let args = self.mirror.release_args(vm, reason, task);
        let number = u64::from(cpu.0);
        self.call(
            vm,
            &Call {
                op: Op::CpuRelease,
                locked: Some(cpu),
                asked: CallOwner::Root,
                subject: None,
                args: [number, args],
                words: (number, u64::from(reason)),
            },
        );
        self.cpus[cpu].released = true;
    }

    /// The next task takes the CPU. What is called meanwhile is executed by the previous one.
    ///
    /// Source: `__schedule()`, kernel 6.18: `pick_next_task()` comes before `context_switch()`.
    #[inline(always)]
    fn set_next(&mut self, vm: &mut Vm, cpu: CpuId, prev: Occupant, next: Occupant) {
        let state = &mut self.cpus[cpu];
        state.occupant = next;
        state.leaves = Some(prev);
        state.executes = TaskId::NONE;
        let clock = state.task_clock(self.now);
        match next.curr() {
            Curr::Idle if prev != Occupant::IDLE => self.enter_idle(vm, cpu),
            Curr::Idle | Curr::Stopper => {}
            Curr::Task(id) => self.start_task(vm, cpu, id, clock),
        }
    }

    /// The task that runs on `cpu` goes on after a property change.
    pub(crate) fn set_next_task(&mut self, vm: &mut Vm, cpu: CpuId, id: TaskId) {
        let clock = self.cpus[cpu].task_clock(self.now);
        self.start_task(vm, cpu, id, clock);
    }

    /// A task is on its CPU from now on, by whose `clock` it is charged.
    #[inline(always)]
    fn start_task(&mut self, vm: &mut Vm, cpu: CpuId, id: TaskId, clock: u64) {
        // What it does next is asked when all of this is done.
        self.work.prefetch(id);
        let task = &mut self.tasks[id.index()];
        task.exec_start = clock;
        if task.class != Class::Ext {
            return;
        }
        // All that changes of it is written at once.
        let (queued, in_custody) = (task.queued, task.in_custody);
        let (address, slice) = (task.address, task.slice);
        let (cpus, left) = (task.cpus, task.leave());
        // Its next wait starts afresh.
        task.reset_runnable_at = true;
        let place = task.stop_waiting();
        self.watchdog.forget(&mut self.tasks, place);
        if !self.masks.has(cpus, cpu) {
            self.check_leaving(cpu, id);
        }
        self.take_out(id, left);
        self.tell_removed(id, true);
        if queued {
            if self.rules.tells_moved_late && in_custody {
                self.tell_moved(vm, id);
            }
            self.call(
                vm,
                &Call {
                    op: Op::Running,
                    locked: Some(cpu),
                    asked: CallOwner::Owner,
                    subject: Some(id),
                    args: [address],
                    words: (slice, u64::from(cpu.0)),
                },
            );
        }
        self.sample_report(vm, id, cpu);
    }

    /// A task that may not run on `cpu` got it: only while it waits to be moved away.
    #[cold]
    #[inline(never)]
    fn check_leaving(&self, cpu: CpuId, id: TaskId) {
        let leaving = &self.cpus[cpu].others().to_move;
        assert!(
            leaving.iter().any(|&(other, _)| other == id),
            "{} runs on CPU {cpu}, where it may not",
            self.name(id)
        );
    }

    /// The migration thread moves away the tasks that may not run here any more.
    ///
    /// Source: `migration_cpu_stop()` and `__migrate_task()`, kernel 6.18.
    #[cold]
    fn run_stopper(&mut self, vm: &mut Vm, cpu: CpuId) {
        for (id, target) in std::mem::take(&mut self.cpus[cpu].others_mut().to_move) {
            let task = self.task(id);
            let stays = task.cpu != cpu || self.masks.has(task.cpus, cpu) && self.is_online(cpu);
            if stays || task.state != RunState::Runnable {
                continue;
            }
            self.move_queued_task(vm, id, target);
        }
    }

    /// Arms the tick of `cpu`, which stops while the CPU idles.
    #[inline(always)]
    pub(crate) fn arm_tick(&mut self, cpu: CpuId) {
        let state = &self.cpus[cpu];
        if state.occupant != Occupant::IDLE && state.tick_at.is_none() {
            self.arm_next_tick(cpu);
        }
    }

    #[inline(never)]
    fn arm_next_tick(&mut self, cpu: CpuId) {
        if self.spec.textbook.is_some() && self.class_on(cpu) == Class::Ext {
            return;
        }
        let tick = self.spec.tick().get();
        let skew = u64::from(cpu.0) * self.spec.tick_skew_ns % tick;
        let now = self.now.as_nanos();
        // Ticks stand at skew + n * tick, and the next one is later than now.
        let next = if now < skew {
            skew
        } else {
            skew + ((now - skew) / tick + 1) * tick
        };
        self.arm_tick_at(cpu, model::SimTime::from_nanos(next));
    }

    #[inline]
    pub(crate) fn arm_tick_at(&mut self, cpu: CpuId, when: model::SimTime) {
        self.cpus[cpu].tick_at = Some(when);
        self.queue.push(when, cpu, Pending::Tick);
    }

    /// Reads what the policy reports about a task that begins to run or goes on after a choice.
    #[inline]
    fn sample_report(&mut self, vm: &mut Vm, id: TaskId, cpu: CpuId) {
        if self.wants(EventKind::Report) {
            self.take_report(vm, id, cpu);
        }
    }

    #[cold]
    fn take_report(&mut self, vm: &mut Vm, id: TaskId, cpu: CpuId) {
        let Some(report) = self.mirror.report(vm, self.task(id).address) else {
            return;
        };
        if self.task(id).seldom.reported.as_deref() == Some(&report) {
            return;
        }
        **self.task_mut(id).seldom.reported.get_or_insert_default() = report;
        let (priority, level, flags) = report;
        let report = What::Report {
            priority,
            level,
            flags,
        };
        self.emit(id, cpu, report);
    }
}

//! The tick, and ticks that pass without anything else happening.
//!
//! A tick takes time from the task that runs, where things cost time: an interrupt begins, and ends
//! some microseconds later. Both ends and the next tick are events. Where no other event lies
//! before them, they happen in one piece here, as they would have happened one by one.

use model::{CpuId, Op, SimTime, TaskId, What};

use crate::cpu::{Mode, Todo};
use crate::drive::PORTION;
use crate::machine::{Machine, Vm};
use crate::ops::{Call, CallOwner};
use crate::pending::Pending;
use crate::queue::Planned;
use crate::task::{Class, Phase};

impl Machine {
    /// A tick of `cpu` has come, and with it those behind it before which nothing else happens.
    /// Whether nothing is left to do at this moment.
    #[inline(never)]
    pub(crate) fn take_tick(&mut self, vm: &mut Vm, cpu: CpuId) -> bool {
        let period = self.watchdog.tick();
        loop {
            let (now, state) = (self.now, &mut self.cpus[cpu]);
            let due = state.tick_at.take();
            let mut next = None;
            if let Some(id) = state.occupant.task() {
                if due == Some(now) {
                    // It came in time, so the next stands one period later.
                    let when = now + period;
                    state.tick_at = Some(when);
                    next = Some(self.queue.plan(when, cpu, Pending::Tick));
                } else {
                    self.arm_tick(cpu);
                }
                self.tick(vm, cpu, id);
            }
            let is_plain = self.ticks_pass && self.is_plain_interrupt(cpu);
            let has_passed = is_plain && self.pass_interrupt(vm, cpu);
            match next {
                Some(next) if has_passed && self.comes_next(&next) => {
                    self.pass_to(vm, next.time());
                }
                next => {
                    match next {
                        // It would have come in the middle of this one.
                        Some(next) if next.time() <= self.now => {
                            self.cpus[cpu].tick_at = None;
                            self.arm_tick(cpu);
                        }
                        Some(next) => self.queue.push_planned(next),
                        None => {}
                    }
                    if is_plain && !has_passed {
                        // Nothing else is to be done.
                        let span = self.cpus[cpu].take_debt();
                        self.steal(cpu, span);
                    }
                    return is_plain;
                }
            }
        }
    }

    /// What the kernel does at a tick of `cpu`, which runs a task.
    ///
    /// Source: `sched_tick()` and `task_tick_scx()`, kernel 6.18.
    #[inline(always)]
    pub(crate) fn tick(&mut self, vm: &mut Vm, cpu: CpuId, id: TaskId) {
        self.charge_tick(cpu);
        let held = self.take_own(vm, cpu);
        self.update_rq_clock(cpu);
        match self.task(id).class {
            Class::Ext => self.tick_ext(vm, cpu, id),
            Class::Rt => self.tick_rt(cpu, id),
            Class::Dl => self.tick_dl(cpu, id),
            Class::Fair => self.tick_fair(cpu),
            Class::Stop | Class::Idle => {}
        }
        if self.hooked.any() {
            self.trace_tick(vm, cpu);
        }
        self.give_run_queue(held);
    }

    #[inline(always)]
    fn tick_ext(&mut self, vm: &mut Vm, cpu: CpuId, id: TaskId) {
        let clock = self.cpus[cpu].task_clock(self.now);
        self.charge_now(vm, id, clock);
        if self.bypasses(id) {
            self.set_slice(id, 0);
        } else {
            let task = self.task(id);
            let (address, slice) = (task.address, task.slice);
            self.call_often_priced(
                vm,
                &Call {
                    op: Op::Tick,
                    locked: Some(cpu),
                    asked: CallOwner::Owner,
                    subject: Some(id),
                    args: [address],
                    words: (slice, 0),
                },
            );
        }
        if self.task(id).slice == 0 {
            self.resched(cpu);
        }
    }

    /// Whether all that is left to do at a tick of `cpu` is to take its time from the task.
    #[inline(always)]
    fn is_plain_interrupt(&self, cpu: CpuId) -> bool {
        let state = &self.cpus[cpu];
        state.todo == Todo::DEBT && state.mode == Mode::Run && !self.is_halted()
    }

    /// Lets the interrupt that the tick has been, which is plain, end if nothing happens before
    /// that. Whether it did; the task executes again then.
    ///
    /// It is [`Machine::steal`] with what follows from the event that it adds.
    #[inline(always)]
    fn pass_interrupt(&mut self, vm: &Vm, cpu: CpuId) -> bool {
        let (now, state) = (self.now, &self.cpus[cpu]);
        let (Some(id), Some(since)) = (state.occupant.task(), state.executing_since) else {
            return false;
        };
        // Events are handed over as if both ends of the interrupt had been events.
        if self.has_recorded(PORTION - 1) {
            return false;
        }
        let (done, until) = (now.since(since), now + state.debt());
        if until >= self.idleness.due()
            || self.task(id).work_left <= done
            || !self.queue.is_quiet_until(until)
        {
            return false;
        }
        let state = &mut self.cpus[cpu];
        let span = state.take_debt();
        (state.busy_until, state.resume_pending) = (until, false);
        state.stolen_ns += span.get();
        state.executing_since = None;
        state.enter(Mode::Stolen, now);
        state.enter(Mode::Run, until);
        let task = self.task_mut(id);
        task.work_left -= done;
        task.enter(Phase::Stolen, now);
        task.enter(Phase::Run, until);
        let left = task.work_left;
        self.emit(id, cpu, What::Steal { span });
        self.pass_to(vm, until);
        self.start_executing(cpu, left);
        true
    }

    /// Lets the task of `cpu` execute again if an interrupt has just ended, and nothing else is to
    /// be done. Whether it does.
    ///
    /// It is [`Machine::end_interrupt`] with what follows from it nearly always.
    #[inline(never)]
    pub(crate) fn goes_on(&mut self, cpu: CpuId) -> bool {
        let (now, state) = (self.now, &mut self.cpus[cpu]);
        let is_plain = state.todo == Todo::BUSY && state.mode == Mode::Stolen;
        let (Some(id), None) = (state.occupant.task(), state.executing_since) else {
            return false;
        };
        let task = &mut self.tasks[id.index()];
        if !is_plain || now < state.busy_until || task.work_left.is_zero() {
            return false;
        }
        state.todo.strike(Todo::BUSY);
        state.resume_pending = false;
        state.enter(Mode::Run, now);
        task.enter(Phase::Run, now);
        let left = task.work_left;
        self.start_executing(cpu, left);
        true
    }

    /// Whether `planned` is what happens next, and nobody looks at the machine before.
    #[inline(always)]
    fn comes_next(&mut self, planned: &Planned) -> bool {
        planned.time() < self.idleness.due() && self.queue.comes_first(planned)
    }

    /// It is `time` now; nothing has happened meanwhile.
    #[inline(always)]
    fn pass_to(&mut self, vm: &Vm, time: SimTime) {
        self.queue.pass_to(time);
        self.set_time(time);
        self.moment.begin(vm);
    }
}

//! The order within an instant on a machine as textbooks have it, which has one CPU.
//!
//! Whatever comes in an instant comes before the choice of who runs: the running task's work ends;
//! then tasks arrive and its slice ends, in the order that [`Textbook`] says; then, if its work has
//! ended, the task does what is left to do in no time, such as going to sleep. A task whose slice
//! has ended is back in the policy's queue by then, so that the policy chooses among all that are
//! runnable. A kernel asks `ops.dispatch` while that task is in no queue yet, and lets it go on
//! with a slice of its own length if nobody else is there.
//!
//! Slices end to the nanosecond. Tasks of other classes keep the tick.

use model::{CpuId, Nanos, TaskId, Textbook};

use crate::cpu::Todo;
use crate::flags::SLICE_INF;
use crate::machine::{Machine, Vm};
use crate::pending::{Packed, Pending};
use crate::task::Class;
use crate::work::QuickStep;

/// Slices that end in one instant before time passes: a policy may give slices of no length.
const ENDS_MAX: u32 = 1_000;
/// Time that passes then.
const ENDS_PAUSE: Nanos = Nanos::from_micros(1);

impl Machine {
    /// As [`Machine::handle_apart`], with the choice of who runs at the end of the instant.
    #[cold]
    pub(crate) fn handle_by_the_book(
        &mut self,
        vm: &mut Vm,
        cpu: CpuId,
        what: Packed,
    ) -> Result<(), bpf::OutOfMemory> {
        if self.moment.book.time != self.now {
            (self.moment.book.time, self.moment.book.ends) = (self.now, 0);
        }
        self.turn.exec = cpu;
        if what.variant() == Packed::RESUME {
            self.cpus[cpu].todo.strike(Todo::CHOICE);
            self.end_work(vm, cpu)?;
            self.handle_apart(vm, cpu, what)?;
        } else {
            // Has the CPU do nothing but what the event itself does.
            self.cpus[cpu].todo.add(Todo::CHOICE);
            if !matches!(what.variant(), Packed::TICK | Packed::SLICE_END) {
                self.handle_apart(vm, cpu, what)?;
            } else if self.cpus[cpu].tick_at != Some(self.now) {
                // It was put off.
            } else if self.moment.book.ends_slice {
                self.take_slice_end(vm, cpu);
            } else {
                self.handle_apart(vm, cpu, what)?;
            }
            if what.variant() == Packed::WORK_DONE {
                self.begin_next_work(cpu);
            }
            self.plan_choice(cpu);
        }
        self.arm_slice_end(cpu);
        Ok(())
    }

    /// Plans the choice for the end of this instant, if there is anything to do on `cpu` by then.
    fn plan_choice(&mut self, cpu: CpuId) {
        let state = &mut self.cpus[cpu];
        state.todo.strike(Todo::CHOICE);
        let stands = state.occupant.task().is_some() && state.executing_since.is_none();
        if state.todo.has(Todo::BUSY) || state.todo.is_empty() && !stands {
            return;
        }
        state.todo.add(Todo::CHOICE);
        if !std::mem::replace(&mut state.resume_pending, true) {
            self.queue.push(self.now, cpu, Pending::Resume);
        }
    }

    /// The running task, if its work has ended, goes on with what it does next, as far as that is
    /// known at once.
    fn begin_next_work(&mut self, cpu: CpuId) {
        let Some(id) = self.ended_on(cpu) else {
            return;
        };
        match self.work.step_quickly(id, self.now) {
            QuickStep::Run(span) => {
                self.task_mut(id).work_left = span;
                self.start_executing(cpu, span);
            }
            QuickStep::SleepUntil(time) => self.moment.book.sleeps_until = Some(time),
            QuickStep::Unknown => {}
        }
    }

    /// The task on `cpu` whose work has ended.
    fn ended_on(&self, cpu: CpuId) -> Option<TaskId> {
        let state = &self.cpus[cpu];
        let stands = state.executing_since.is_none() && !state.todo.has(Todo::BUSY);
        let id = state.occupant.task().filter(|_| stands)?;
        self.task(id).work_left.is_zero().then_some(id)
    }

    /// Lets the running task, if its work has ended, do what takes no time: up to its next work or
    /// sleep.
    fn end_work(&mut self, vm: &mut Vm, cpu: CpuId) -> Result<(), bpf::OutOfMemory> {
        let ended = self.ended_on(cpu);
        while let Some(id) = ended
            && ended == self.ended_on(cpu)
            && !self.is_halted()
        {
            match self.moment.book.sleeps_until.take() {
                Some(time) => self.sleep_until(vm, cpu, id, time),
                None => {
                    self.step(vm, cpu, id)?;
                }
            }
        }
        Ok(())
    }

    /// The slice of the policy's task on `cpu` ends.
    fn take_slice_end(&mut self, vm: &mut Vm, cpu: CpuId) {
        let state = &mut self.cpus[cpu];
        state.tick_at = None;
        let (occupant, todo) = (state.occupant, state.todo);
        let Some(id) = occupant.task() else {
            return;
        };
        let is_there = self.task(id).class == Class::Ext && self.task(id).queued;
        if todo.has(Todo::BUSY) || !is_there || self.cpus[cpu].is_put_back {
            return;
        }
        self.moment.book.ends += 1;
        self.tick(vm, cpu, id);
        // One whose work has ended may be about to sleep.
        if self.ended_on(cpu).is_none() {
            self.put_back(vm, cpu);
        }
    }

    /// Puts the policy's task on `cpu`, if its slice has ended, back into the policy's queue.
    #[cold]
    pub(crate) fn put_back(&mut self, vm: &mut Vm, cpu: CpuId) {
        let Some(id) = self.cpus[cpu].occupant.task() else {
            return;
        };
        let task = self.task(id);
        if task.class != Class::Ext || !task.queued || self.bypasses(id) {
            return;
        }
        self.update_curr_now(vm, cpu);
        if self.task(id).slice > 0 || self.cpus[cpu].is_put_back {
            return;
        }
        let held = self.take_run_queue(vm, cpu);
        self.cpus[cpu].is_put_back = true;
        self.call_stopping(vm, id, true);
        self.watch(id);
        self.do_enqueue(vm, id, 0, false);
        self.give_run_queue(held);
    }

    /// The task that was put back is chosen again.
    #[cold]
    pub(crate) fn take_again(&mut self, vm: &mut Vm, cpu: CpuId, id: TaskId) {
        self.cpus[cpu].is_put_back = false;
        self.set_next_task(vm, cpu, id);
    }

    /// Plans the end of the slice of what runs on `cpu`.
    fn arm_slice_end(&mut self, cpu: CpuId) {
        let state = &self.cpus[cpu];
        let Some(id) = state.occupant.task() else {
            return;
        };
        if state.todo.has(Todo::WAITS) {
            return;
        }
        let (task, clock) = (self.task(id), state.task_clock(self.now));
        if task.class != Class::Ext {
            if std::mem::take(&mut self.moment.book.ends_slice) {
                self.cpus[cpu].tick_at = None;
            }
            return self.arm_tick(cpu);
        }
        if task.slice == SLICE_INF {
            self.cpus[cpu].tick_at = None;
            return;
        }
        let left = task
            .slice
            .saturating_sub(clock.saturating_sub(task.exec_start));
        let mut end = self.now + Nanos::new(left);
        if self.moment.book.ends >= ENDS_MAX {
            end = end.max(self.now + ENDS_PAUSE);
        }
        if state.tick_at != Some(end) {
            self.cpus[cpu].tick_at = Some(end);
            self.moment.book.ends_slice = true;
            let what = match self.spec.textbook {
                Some(Textbook::ArrivalsLast) => Pending::SliceEnd,
                _ => Pending::Tick,
            };
            self.queue.push(end, cpu, what);
        }
    }
}

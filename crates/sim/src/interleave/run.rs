//! The event loop of a run in which CPUs come in between.

use bpf::{OutOfMemory, TurnStacks};
use model::{CpuId, Sink as _};

use super::state::{TurnState, TurnWait};
use super::turn_of;
use crate::cpu::Cpu;
use crate::drive::PORTION;
use crate::machine::{Machine, Vm};
use crate::pending::{Packed, Pending};
use crate::view::Audience;

impl Machine {
    /// Runs until the workload, the policy or the time ends.
    pub(crate) fn run_interleaved(
        &mut self,
        vm: &mut Vm,
        audience: &mut Audience<'_>,
    ) -> Result<(), OutOfMemory> {
        // One for each CPU, and one for who drives them.
        let mut turns = TurnStacks::new(vm, usize::from(self.spec.cpus) + 1)?;
        while let Some(event) = self.queue.advance() {
            let (cpu, now, what) = (event.cpu(), event.time(), event.what);
            if now > self.now {
                audience.sample_before(self, vm, now);
                if now >= self.idleness.due() {
                    self.look_at_idle_cpus(now);
                }
                self.set_time(now);
                self.moment.begin(vm);
            }
            if what.variant() == Packed::END || self.is_halted() {
                break;
            }
            self.take_event(&mut turns, vm, (cpu, what))?;
            audience.look(self, vm);
            if self.has_recorded(PORTION) {
                self.hand_over(vm, audience);
                if audience.has_enough() {
                    break;
                }
            }
            if self.is_halted() {
                break;
            }
        }
        self.end_turns(&mut turns, vm);
        audience.sample_at_end(self, vm);
        Ok(())
    }

    /// Handles an event, or puts it off if its CPU is in the middle of something.
    fn take_event(
        &mut self,
        turns: &mut TurnStacks<Self>,
        vm: &mut Vm,
        (wanted, what): (CpuId, Packed),
    ) -> Result<(), OutOfMemory> {
        let cpu = self.serving_cpu(wanted, what);
        let Some(all) = self.interleaving.as_deref_mut() else {
            return Ok(());
        };
        match what.unpacked() {
            Pending::Turn { number } => self.resume_turn(turns, vm, number as usize),
            Pending::Watchdog => self.watch_over(),
            // The task goes on when the turn has ended, and has another timer then.
            Pending::WorkDone if !all.alone.is_empty() || all.on_cpu[cpu].is_some() => {
                let state = &mut self.cpus[cpu];
                if state.work_timer == self.now {
                    state.work_timer = Cpu::NO_TIMER;
                }
            }
            _ if !all.alone.is_empty() => all.later.push((wanted, what)),
            _ if all.on_cpu[cpu].is_some() => all.put_off[cpu].push((wanted, what)),
            _ => {
                let number = all.begin_turn(cpu);
                all.current = number;
                let ended = turns.begin(number, (self, vm), move |machine: &mut Self, vm| {
                    machine.take_turn(vm, cpu, (wanted, what));
                });
                self.leave_turn(number, ended);
            }
        }
        self.let_alone(turns, vm);
        let failed = self
            .interleaving
            .as_deref_mut()
            .and_then(|all| all.failed.take());
        failed.map_or(Ok(()), Err)
    }

    /// The turn of an event on `cpu`.
    fn take_turn(&mut self, vm: &mut Vm, cpu: CpuId, (wanted, what): (CpuId, Packed)) {
        let is_exclusive = matches!(
            what.unpacked(),
            Pending::Attach
                | Pending::Hotplug { .. }
                | Pending::Intervene { .. }
                | Pending::Seat { .. }
                | Pending::Program
        );
        self.turn.exec = cpu;
        if is_exclusive {
            self.wait_alone(vm);
        }
        let mut result = self.handle_apart(vm, wanted, what);
        if is_exclusive {
            self.leave_alone();
        }
        let turn = turn_of(&mut self.interleaving);
        let has_stopped = turn.is_some_and(|turn| std::mem::take(&mut turn.has_stopped));
        if has_stopped && self.cpus[cpu].executing_since.is_none() && result.is_ok() {
            result = self.drive_apart(vm, cpu);
        }
        if let (Err(error), Some(all)) = (result, self.interleaving.as_deref_mut()) {
            all.failed = Some(error);
        }
    }

    fn resume_turn(&mut self, turns: &mut TurnStacks<Self>, vm: &mut Vm, number: usize) {
        if let Some(all) = self.interleaving.as_deref_mut() {
            all.current = number;
        }
        let ended = turns.resume(number, (self, vm));
        self.leave_turn(number, ended);
    }

    /// A turn waits or has `ended`.
    fn leave_turn(&mut self, number: usize, ended: bool) {
        let now = self.now;
        let Some(all) = self.interleaving.as_deref_mut() else {
            return;
        };
        let Some(cpu) = all.turns[number].as_ref().map(|turn| turn.cpu) else {
            return;
        };
        if !ended {
            all.on_cpu[cpu] = Some(number);
            return;
        }
        all.turns[number] = None;
        all.on_cpu[cpu] = None;
        let put_off = std::mem::take(&mut all.put_off[cpu]);
        let (is_over, have_stopped) = (all.is_over, all.have_stopped);
        if have_stopped {
            // Nor does this one's task go on before the others' do.
            self.stop_executing(cpu);
        }
        self.release_rest(number);
        if is_over {
            return;
        }
        for (wanted, what) in put_off {
            self.queue.push(now, wanted, what.unpacked());
        }
    }

    /// Lets go on who waited to be alone, and is.
    fn let_alone(&mut self, turns: &mut TurnStacks<Self>, vm: &mut Vm) {
        while let Some(number) = self.next_alone() {
            self.resume_turn(turns, vm, number);
        }
    }

    /// The turn that waits to be alone and is.
    fn next_alone(&self) -> Option<usize> {
        let all = self.interleaving.as_deref()?;
        let number = *all.alone.front()?;
        let waits = all.turns[number].as_ref()?.waits == Some(TurnWait::Alone);
        (waits && all.busy() == 0).then_some(number)
    }

    /// The run is over: turns that wait come to their ends, at this moment and in the order of
    /// their numbers. In a kernel, too, callbacks that have begun are not cut off.
    fn end_turns(&mut self, turns: &mut TurnStacks<Self>, vm: &mut Vm) {
        let was_halted = self.is_halted();
        self.set_halted(true);
        if let Some(all) = self.interleaving.as_deref_mut() {
            all.is_over = true;
        }
        while let Some(number) = self.next_to_end() {
            self.resume_turn(turns, vm, number);
            self.let_alone(turns, vm);
        }
        self.set_halted(was_halted);
    }

    /// A turn that waits for nothing but time.
    fn next_to_end(&mut self) -> Option<usize> {
        let all = self.interleaving.as_deref_mut()?;
        let can = |turn: &Option<TurnState>| {
            let turn = turn.as_ref();
            turn.is_some_and(|turn| matches!(turn.waits, Some(TurnWait::Until(_))))
        };
        // Each in its turn, so that none waits for ever in a loop for another one.
        let behind = all.current + 1;
        let later = all.turns.iter().skip(behind).position(can);
        later
            .map(|at| at + behind)
            .or_else(|| all.turns.iter().position(can))
    }
}

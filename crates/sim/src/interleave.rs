//! CPUs that come in between while a policy's program runs on another one.
//!
//! Without it a callback is atomic: nothing else happens while it runs. With it an event is handled
//! in a turn of its own ([`bpf::TurnStacks`]), which can wait in the middle: before an access of a
//! program to memory that others have too, before a call of the kernel, and for a lock. Other
//! events are handled meanwhile, those of other CPUs: what is due on the CPU of a turn that waits
//! is put off to its end, because its code is in the middle of something (a virtual CPU that is
//! taken away, an interrupt of the firmware, or just the time that a program takes).
//!
//! The kernel's locks are real ones then ([`locks`]): they are what keeps callbacks apart in a
//! kernel, and nothing else does. What has no lock in this machine is done by a turn that is alone
//! ([`Machine::wait_alone`]).
//!
//! The end of a wait is an event of the queue. So a run stays a function of its request, and memory
//! is sequentially consistent: the order of accesses is that of the events.

mod locks;
pub(crate) mod races;
mod run;
pub(crate) mod state;
mod table;

use std::collections::BTreeSet;

use bpf::{Access, AccessKind};
use model::{CpuId, Interleave, Nanos, Stall, TaskId};

use races::{MOST_RANGES, Races};
use state::{Interleaving, LockKey, TurnState, TurnWait};

use crate::cpu::PS;
use crate::machine::{Machine, Vm};
use crate::pending::Pending;
use crate::turn::Turn;

/// Stalls that are kept by name at most.
const MOST_STALLS: usize = 1_000_000;
/// Accesses after which a turn lets the others go on when the run is over.
const LAST_ACCESSES: u32 = 10_000;
/// Bytes of a callback's arguments that the kernel keeps for it.
const ARGUMENTS: usize = 64;

/// The turn that goes on, where turns come in between each other. It takes the field alone, so that
/// the rest of the machine is at hand meanwhile.
fn turn_of(all: &mut Option<Box<Interleaving>>) -> Option<&mut TurnState> {
    all.as_deref_mut().and_then(Interleaving::turn)
}

impl Machine {
    /// Whether CPUs can come in between.
    #[inline]
    pub(crate) const fn interleaves(&self) -> bool {
        self.interleaving.is_some()
    }

    /// A program is about to do `access`.
    pub(crate) fn pass_point(&mut self, vm: &mut Vm, access: &Access) {
        let Some(all) = self.interleaving.as_deref_mut() else {
            return;
        };
        if all.still > 0 || !vm.is_in_turn() {
            return;
        }
        if all.is_over {
            return self.let_others_end(vm);
        }
        debug_assert!(access.bytes <= 8, "an access is to a word at most");
        all.points += 1;
        if all.races.is_some() {
            self.look_for_races(vm, access);
        }
        let Some(all) = self.interleaving.as_deref_mut() else {
            return;
        };
        if all.asked == Interleave::Timed {
            return self.let_time_pass(vm);
        }
        if all.points != all.next {
            return;
        }
        let span = all.length();
        all.plan();
        if span.is_zero() {
            return;
        }
        let point = all.points;
        if all.stalls.len() < MOST_STALLS {
            all.stalls.push(Stall { point, span });
        }
        let number = all.current;
        if let Some(races) = &mut all.races {
            races.now = self.now;
            races.pause(number, access, (self.turn.exec, point));
        }
        self.wait(vm, TurnWait::Until(self.now + span));
        if let Some(races) = self
            .interleaving
            .as_deref_mut()
            .and_then(|all| all.races.as_mut())
        {
            races.go_on(number);
        }
    }

    /// Lets happen what is due before the time that the program has taken so far is over.
    fn let_time_pass(&mut self, vm: &mut Vm) {
        let spent = self.spent(vm);
        let owed = self.cpus[self.turn.exec].owed_ps();
        let Some(turn) = turn_of(&mut self.interleaving) else {
            return;
        };
        let began = *turn.spent.get_or_insert(spent);
        let taken = (owed + (spent - began)).saturating_sub(turn.passed) / PS;
        let until = self.now + Nanos::new(taken);
        if taken == 0 || self.queue.is_quiet_until(until) {
            return;
        }
        turn.passed += taken * PS;
        self.wait(vm, TurnWait::Until(until));
    }

    /// The outermost call of a program has ended and is charged for: the part of it that has passed
    /// as time is paid.
    pub(crate) fn settle_passed(&mut self) {
        let exec = self.turn.exec;
        let Some(turn) = turn_of(&mut self.interleaving) else {
            return;
        };
        turn.spent = None;
        turn.passed -= self.cpus[exec].pay(turn.passed);
    }

    /// When the run is over, turns take their steps in turn, so that one that waits in a loop for
    /// another one's comes to its end.
    fn let_others_end(&mut self, vm: &mut Vm) {
        let Some(turn) = turn_of(&mut self.interleaving) else {
            return;
        };
        turn.accesses += 1;
        if turn.accesses >= LAST_ACCESSES {
            turn.accesses = 0;
            self.wait(vm, TurnWait::Until(self.now));
        }
    }

    /// Lets other turns go on until `wait` is over.
    fn wait(&mut self, vm: &mut Vm, wait: TurnWait) {
        let (now, exec) = (self.now, self.turn.exec);
        let executes = self.cpus[exec].executing_since.is_some();
        self.stop_executing(exec);
        let idle = self.turn.another();
        let arguments = self.mirror.call_arguments(vm, ARGUMENTS);
        let Some(all) = self.interleaving.as_deref_mut() else {
            return;
        };
        let number = all.current;
        match wait {
            TurnWait::Until(time) if !all.is_over => {
                let what = Pending::Turn {
                    number: number as u32,
                };
                self.queue.push(time.max(now), exec, what);
            }
            TurnWait::Lock(key) => all.queue.push_back((key, number)),
            TurnWait::Until(_) | TurnWait::Alone => {}
        }
        let still = std::mem::take(&mut all.still);
        if let Some(turn) = all.turn() {
            turn.waits = Some(wait);
            turn.has_stopped |= executes;
        }
        let mine = std::mem::replace(&mut self.turn, idle);
        vm.suspend(self);
        self.turn = mine;
        let Some(all) = self.interleaving.as_deref_mut() else {
            return;
        };
        (all.current, all.still) = (number, still);
        if let Some(turn) = all.turn() {
            turn.waits = None;
        }
        self.mirror.put_call_arguments(vm, &arguments);
        if self.turn.contexts.depth() > 0 {
            self.show_guard(vm);
            self.flush_mirrors(vm);
        }
    }

    // ---- Alone ----

    /// Waits until no other turn waits in the middle of something. From then on nobody comes in
    /// between, until [`Machine::leave_alone`]: for what takes no lock here and many in a kernel.
    pub(crate) fn wait_alone(&mut self, vm: &mut Vm) {
        let Some(all) = self.interleaving.as_deref_mut() else {
            return;
        };
        let number = all.current;
        all.alone.push_back(number);
        if all.alone.len() == 1 && all.busy() > 0 {
            all.have_stopped = true;
            self.stop_all();
        }
        while let Some(all) = self.interleaving.as_deref_mut() {
            let is_next = all.alone.front() == Some(&number) && all.busy() == 0;
            if is_next || !vm.is_in_turn() {
                all.still += 1;
                all.races.iter_mut().for_each(Races::meet);
                return;
            }
            self.wait(vm, TurnWait::Alone);
        }
    }

    /// Undoes [`Machine::wait_alone`].
    pub(crate) fn leave_alone(&mut self) {
        let now = self.now;
        let Some(all) = self.interleaving.as_deref_mut() else {
            return;
        };
        all.still -= 1;
        all.races.iter_mut().for_each(Races::meet);
        all.alone.pop_front();
        if !all.alone.is_empty() || all.is_over || !std::mem::take(&mut all.have_stopped) {
            return;
        }
        for (cpu, what) in std::mem::take(&mut all.later) {
            self.queue.push(now, cpu, what.unpacked());
        }
        for cpu in (0..self.spec.cpus).map(CpuId) {
            let state = &self.cpus[cpu];
            let rests = state.occupant.task().is_some() && state.executing_since.is_none();
            if rests && cpu != self.turn.exec {
                self.queue.push(now, cpu, Pending::Resume);
            }
        }
    }

    /// Stops the tasks of all CPUs: nothing of theirs happens as long as somebody is alone.
    fn stop_all(&mut self) {
        for cpu in (0..self.spec.cpus).map(CpuId) {
            if cpu != self.turn.exec {
                self.stop_executing(cpu);
            }
        }
    }

    // ---- Tasks between two states ----

    /// `id` has said that it sleeps, and leaves its run queue when its CPU has the lock of that.
    pub(crate) fn note_falling_asleep(&mut self, id: TaskId) {
        if let Some(all) = self.interleaving.as_deref_mut() {
            all.falls_asleep.insert(id);
        }
    }

    /// The run queue of `id` is locked, and it leaves it now, unless somebody has woken it since it
    /// said that it sleeps. Whether it does.
    ///
    /// Source: `__schedule()`, kernel 6.18: `try_to_block_task()` looks at the state again.
    pub(crate) fn leaves_run_queue(&mut self, id: TaskId) -> bool {
        let Some(all) = self.interleaving.as_deref_mut() else {
            return true;
        };
        all.falls_asleep.remove(&id);
        self.task(id).state != crate::task::RunState::Runnable
    }

    /// Whether `id` sleeps and is still on its run queue.
    pub(crate) fn is_falling_asleep(&self, id: TaskId) -> bool {
        let all = self.interleaving.as_deref();
        all.is_some_and(|all| all.falls_asleep.contains(&id))
    }

    /// Whether programs that wait may still have the address of `id`, of which the policy has been
    /// told that it is gone: its memory is kept a grace period longer then, as RCU has it.
    pub(crate) fn keeps_for_others(&mut self, id: TaskId) -> bool {
        let Some(all) = self.interleaving.as_deref_mut() else {
            return false;
        };
        let waiting = all.turns.iter().flatten().any(|turn| turn.waits.is_some());
        waiting && all.gone.insert(id)
    }
}

impl Machine {
    /// A task is moved between these run queues, whose locks a kernel takes for that.
    pub(crate) fn order_by_move(&mut self, from: CpuId, target: CpuId) {
        let exec = self.turn.exec;
        if let Some(races) = self
            .interleaving
            .as_deref_mut()
            .and_then(|all| all.races.as_mut())
        {
            races.pass(exec, LockKey::RunQueue(from));
            races.pass(exec, LockKey::RunQueue(target));
        }
    }

    /// Lets the detectors look at an access of the turn that goes on.
    #[cold]
    fn look_for_races(&mut self, vm: &mut Vm, access: &Access) {
        if access.kind == AccessKind::Call {
            if let Some(all) = self.interleaving.as_deref_mut()
                && let Some(races) = &mut all.races
            {
                races.call(all.points);
            }
            return;
        }
        if vm.is_of_kernel(access.address) {
            return;
        }
        let (cpu, call) = (self.turn.exec, self.calls.count());
        let subject = self.turn.contexts.innermost().subject;
        let Some(all) = self.interleaving.as_deref_mut() else {
            return;
        };
        let (turn, point) = (all.current, all.points);
        let mut held: BTreeSet<LockKey> = (all.locks.iter())
            .filter(|(_, holder)| **holder == turn)
            .map(|(key, _)| *key)
            .collect();
        if subject != TaskId::NONE {
            // Callbacks about a task mostly have its run queue's lock, whichever that is then.
            held.insert(LockKey::Task(subject));
        }
        let Some(races) = &mut all.races else {
            return;
        };
        races.now = self.now;
        let address = access.address;
        if !races.names.contains_key(&address) && races.names.len() < MOST_RANGES {
            races.names.insert(address, vm.name_of(address));
        }
        races.look(access, (cpu, point), (turn, call), &held);
    }
}

impl Turn {
    /// A turn that is in the middle of nothing, of who has listened to this one.
    fn another(&self) -> Self {
        Self::new(self.contexts.another(), self.decisions.another())
    }
}

#[cfg(test)]
mod tests;

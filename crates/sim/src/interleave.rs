//! CPUs that come in between while a policy's program runs on another one.
//!
//! Without it a callback is atomic: nothing else happens while it runs. With it an event is handled
//! in a turn of its own ([`bpf::Turns`]), which can wait in the middle: before an access of a
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
mod races;
mod run;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bpf::Access;
use model::{CpuId, Interleave, Nanos, PerCpu, Rng, SimTime, Stall, TaskId};

pub(crate) use locks::LockKey;
pub use races::{FoundRace, RaceClass};

use crate::cpu::PS;
use crate::machine::{Machine, Vm};
use crate::pending::{Packed, Pending};
use crate::turn::Turn;

/// Stream of draws that no load and no policy has.
const STREAM: u64 = u64::MAX - 2;
/// Stalls that are kept by name at most.
const MOST_STALLS: usize = 1_000_000;
/// Accesses after which a turn lets the others go on when the run is over.
const LAST_ACCESSES: u32 = 10_000;
/// Bytes of a callback's arguments that the kernel keeps for it.
const ARGUMENTS: usize = 64;

/// What a turn waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wait {
    /// A moment.
    Until(SimTime),
    /// Somebody to release a lock, or to say that something is over.
    Lock(LockKey),
    /// All other turns to end.
    Alone,
}

/// A turn that has begun.
#[derive(Clone, Debug)]
struct TurnState {
    cpu: CpuId,
    /// It waits, and for what.
    waits: Option<Wait>,
    /// The CPU's task was executing when the turn began to wait.
    has_stopped: bool,
    /// What the object had cost when the call in progress came to its first point, and how much of
    /// that has passed as time, picoseconds.
    spent: Option<u64>,
    passed: u64,
    /// Accesses since the run was over.
    accesses: u32,
}

/// Who waits, and who comes in between. Only this module and those below it change it.
#[derive(Clone, Debug)]
pub(crate) struct Interleaving {
    asked: Interleave,
    cpus: u16,
    rng: Rng,
    /// Accesses so far, and the one before which the next stall comes.
    points: u64,
    next: u64,
    /// Stalls that there were.
    stalls: Vec<Stall>,
    /// Sections of the turn that goes on in which nobody comes in between.
    still: u32,
    /// The turn that goes on.
    current: usize,
    turns: Vec<Option<TurnState>>,
    on_cpu: PerCpu<Option<usize>>,
    /// Events of CPUs whose turn waits: CPU as wanted, and what.
    put_off: PerCpu<Vec<(CpuId, Packed)>>,
    /// Who holds which lock.
    locks: BTreeMap<LockKey, usize>,
    /// Who waits for one, first come first served.
    queue: VecDeque<(LockKey, usize)>,
    /// Turns that want to be alone. The first of them is, or is the next to be.
    alone: VecDeque<usize>,
    /// The tasks of all CPUs were stopped for who is alone.
    have_stopped: bool,
    /// Events that wait until nobody is alone.
    later: Vec<(CpuId, Packed)>,
    /// Tasks that have said that they sleep and are still on their run queue.
    falls_asleep: BTreeSet<TaskId>,
    /// Tasks of which the policy has been told that they are gone.
    gone: BTreeSet<TaskId>,
    /// The run is over, and turns come to their ends.
    is_over: bool,
    failed: Option<bpf::OutOfMemory>,
    /// Whoever looks for races.
    races: Option<races::Races>,
}

impl Interleaving {
    pub fn new(asked: &Interleave, cpus: u16) -> Self {
        let seed = match asked {
            Interleave::Seeded { seed, .. } => *seed,
            Interleave::Timed | Interleave::At(_) => 0,
        };
        let mut made = Self {
            asked: asked.clone(),
            cpus,
            rng: Rng::new(seed, STREAM),
            points: 0,
            next: 0,
            stalls: Vec::new(),
            still: 0,
            current: 0,
            turns: Vec::new(),
            on_cpu: PerCpu::new(cpus, |_| None),
            put_off: PerCpu::new(cpus, |_| Vec::new()),
            locks: BTreeMap::new(),
            queue: VecDeque::new(),
            alone: VecDeque::new(),
            have_stopped: false,
            later: Vec::new(),
            falls_asleep: BTreeSet::new(),
            gone: BTreeSet::new(),
            is_over: false,
            failed: None,
            races: None,
        };
        made.plan();
        made
    }

    /// Finds the access before which the next stall comes.
    fn plan(&mut self) {
        self.next = match &self.asked {
            Interleave::Timed => 0,
            Interleave::Seeded { every, .. } => {
                // From 1 to twice the average, less one.
                let span = every.saturating_mul(2).saturating_sub(1).max(1);
                self.points.saturating_add(1 + self.rng.below(span))
            }
            Interleave::At(stalls) => {
                let next = stalls.iter().find(|stall| stall.point > self.points);
                next.map_or(0, |stall| stall.point)
            }
        };
    }

    /// The length of the stall at this access.
    fn length(&mut self) -> Nanos {
        match &self.asked {
            Interleave::Timed => Nanos::ZERO,
            Interleave::Seeded { stall, .. } => {
                let most = stall.get().saturating_mul(2).saturating_sub(1).max(1);
                Nanos::new(1 + self.rng.below(most))
            }
            Interleave::At(stalls) => {
                let found = stalls.iter().find(|stall| stall.point == self.points);
                found.map_or(Nanos::ZERO, |stall| stall.span)
            }
        }
    }

    fn turn(&mut self) -> Option<&mut TurnState> {
        self.turns.get_mut(self.current)?.as_mut()
    }

    /// A number for a turn on `cpu`.
    fn begin_turn(&mut self, cpu: CpuId) -> usize {
        let free = self.turns.iter().position(Option::is_none);
        let number = free.unwrap_or(self.turns.len());
        let turn = TurnState {
            cpu,
            waits: None,
            has_stopped: false,
            spent: None,
            passed: 0,
            accesses: 0,
        };
        if number == self.turns.len() {
            self.turns.push(None);
        }
        self.turns[number] = Some(turn);
        number
    }

    /// Turns that wait for anything but to be alone.
    fn busy(&self) -> usize {
        let turns = self.turns.iter().flatten();
        turns
            .filter(|turn| turn.waits.is_some_and(|wait| wait != Wait::Alone))
            .count()
    }

    /// Looks for races, too.
    pub fn look_for_races(&mut self) {
        self.races = Some(races::Races::new(self.cpus));
    }

    /// Races that were found.
    pub fn races(&self, vm: &Vm) -> Vec<FoundRace> {
        let races = self.races.as_ref();
        races.map_or_else(Vec::new, |races| races.found(|op| vm.place(op)))
    }

    /// Accesses before which it matters whether others come in between, if somebody looked.
    pub fn conflicts(&self) -> Vec<u64> {
        self.races
            .as_ref()
            .map_or_else(Vec::new, races::Races::conflicts)
    }

    /// Stalls that there were, in the order of their points.
    pub fn stalls(&self) -> &[Stall] {
        &self.stalls
    }

    /// Accesses before which others could have come in between.
    pub const fn points(&self) -> u64 {
        self.points
    }
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
            races.pause(number, access);
        }
        self.wait(vm, Wait::Until(self.now + span));
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
        let Some(turn) = self
            .interleaving
            .as_deref_mut()
            .and_then(Interleaving::turn)
        else {
            return;
        };
        let began = *turn.spent.get_or_insert(spent);
        let taken = (owed + (spent - began)).saturating_sub(turn.passed) / PS;
        let until = self.now + Nanos::new(taken);
        if taken == 0 || self.queue.is_quiet_until(until) {
            return;
        }
        turn.passed += taken * PS;
        self.wait(vm, Wait::Until(until));
    }

    /// The outermost call of a program has ended and is charged for: the part of it that has passed
    /// as time is paid.
    pub(crate) fn settle_passed(&mut self) {
        let exec = self.turn.exec;
        let Some(turn) = self
            .interleaving
            .as_deref_mut()
            .and_then(Interleaving::turn)
        else {
            return;
        };
        turn.spent = None;
        turn.passed -= self.cpus[exec].pay(turn.passed);
    }

    /// When the run is over, turns take their steps in turn, so that one that waits in a loop for
    /// another one's comes to its end.
    fn let_others_end(&mut self, vm: &mut Vm) {
        let Some(turn) = self
            .interleaving
            .as_deref_mut()
            .and_then(Interleaving::turn)
        else {
            return;
        };
        turn.accesses += 1;
        if turn.accesses >= LAST_ACCESSES {
            turn.accesses = 0;
            self.wait(vm, Wait::Until(self.now));
        }
    }

    /// Lets other turns go on until `wait` is over.
    fn wait(&mut self, vm: &mut Vm, wait: Wait) {
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
            Wait::Until(time) if !all.is_over => {
                let what = Pending::Turn {
                    number: number as u32,
                };
                self.queue.push(time.max(now), exec, what);
            }
            Wait::Lock(key) => all.queue.push_back((key, number)),
            Wait::Until(_) | Wait::Alone => {}
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
                all.races.iter_mut().for_each(races::Races::meet);
                return;
            }
            self.wait(vm, Wait::Alone);
        }
    }

    /// Undoes [`Machine::wait_alone`].
    pub(crate) fn leave_alone(&mut self) {
        let now = self.now;
        let Some(all) = self.interleaving.as_deref_mut() else {
            return;
        };
        all.still -= 1;
        all.races.iter_mut().for_each(races::Races::meet);
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
    fn is_falling_asleep(&self, id: TaskId) -> bool {
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

impl Turn {
    /// A turn that is in the middle of nothing, of who has listened to this one.
    fn another(&self) -> Self {
        Self::new(self.contexts.another(), self.decisions.another())
    }
}

#[cfg(test)]
mod tests;

//! Who waits for what, of CPUs that come in between.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bpf::SourceLine;
use model::{CpuId, Interleave, Nanos, PerCpu, Rng, SimTime, Stall, TaskId};

use super::races::{FoundRace, Races};
use super::table::LocksHeld;
use crate::pending::Packed;

/// What turns wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum LockKey {
    /// A run queue's lock.
    RunQueue(CpuId),
    /// A task's `pi_lock`, held by who wakes it.
    Task(TaskId),
    /// Nobody holds it: a switch of this CPU ends (`p->on_cpu`).
    Switch(CpuId),
    /// A task's `ops_state`, as long as `ops.enqueue` is called for it.
    Enqueue(TaskId),
    /// A program's spin lock, by its address.
    Spin(u64),
}

/// Stream of draws that no load and no policy has.
const STREAM: u64 = u64::MAX - 2;

/// What a turn waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TurnWait {
    /// A moment.
    Until(SimTime),
    /// Somebody to release a lock, or to say that something is over.
    Lock(LockKey),
    /// All other turns to end.
    Alone,
}

/// A turn that has begun.
#[derive(Clone, Debug)]
pub(crate) struct TurnState {
    pub(crate) cpu: CpuId,
    /// It waits, and for what.
    pub(crate) waits: Option<TurnWait>,
    /// The CPU's task was executing when the turn began to wait.
    pub(crate) has_stopped: bool,
    /// What the object had cost when the call in progress came to its first point, and how much of
    /// that has passed as time, picoseconds.
    pub(crate) spent: Option<u64>,
    pub(crate) passed: u64,
    /// Accesses since the run was over.
    pub(crate) accesses: u32,
}

/// Who waits, and who comes in between. Only this module and those below it change it.
#[derive(Clone, Debug)]
pub(crate) struct Interleaving {
    pub(crate) asked: Interleave,
    pub(crate) cpus: u16,
    pub(crate) rng: Rng,
    /// Accesses so far, and the one before which the next stall comes.
    pub(crate) points: u64,
    pub(crate) next: u64,
    /// Stalls that there were.
    pub(crate) stalls: Vec<Stall>,
    /// Sections of the turn that goes on in which nobody comes in between.
    pub(crate) still: u32,
    /// The turn that goes on.
    pub(crate) current: usize,
    pub(crate) turns: Vec<Option<TurnState>>,
    pub(crate) on_cpu: PerCpu<Option<usize>>,
    /// Events of CPUs whose turn waits: CPU as wanted, and what.
    pub(crate) put_off: PerCpu<Vec<(CpuId, Packed)>>,
    /// Who holds which lock.
    pub(crate) locks: BTreeMap<LockKey, usize>,
    /// Who waits for one, first come first served.
    pub(crate) queue: VecDeque<(LockKey, usize)>,
    /// Turns that want to be alone. The first of them is, or is the next to be.
    pub(crate) alone: VecDeque<usize>,
    /// The tasks of all CPUs were stopped for who is alone.
    pub(crate) have_stopped: bool,
    /// Events that wait until nobody is alone.
    pub(crate) later: Vec<(CpuId, Packed)>,
    /// Tasks that have said that they sleep and are still on their run queue.
    pub(crate) falls_asleep: BTreeSet<TaskId>,
    /// Tasks of which the policy has been told that they are gone.
    pub(crate) gone: BTreeSet<TaskId>,
    /// The run is over, and turns come to their ends.
    pub(crate) is_over: bool,
    pub(crate) failed: Option<bpf::OutOfMemory>,
    /// Whoever looks for races.
    pub(crate) races: Option<Races>,
    /// Callbacks, and locks under which none is called by the table of locks.
    pub(crate) unlisted: BTreeSet<(&'static str, LocksHeld)>,
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
            unlisted: BTreeSet::new(),
        };
        made.plan();
        made
    }

    /// Finds the access before which the next stall comes.
    pub(crate) fn plan(&mut self) {
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
    pub(crate) fn length(&mut self) -> Nanos {
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

    pub(crate) fn turn(&mut self) -> Option<&mut TurnState> {
        self.turns.get_mut(self.current)?.as_mut()
    }

    /// A number for a turn on `cpu`.
    pub(crate) fn begin_turn(&mut self, cpu: CpuId) -> usize {
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
    pub(crate) fn busy(&self) -> usize {
        let turns = self.turns.iter().flatten();
        turns
            .filter(|turn| turn.waits.is_some_and(|wait| wait != TurnWait::Alone))
            .count()
    }

    /// Looks for races, too.
    pub fn look_for_races(&mut self) {
        self.races = Some(Races::new(self.cpus));
    }

    /// Races that were found; `place` says where an operation stands.
    pub fn races_at(&self, place: impl Fn(u32) -> Option<SourceLine>) -> Vec<FoundRace> {
        let races = self.races.as_ref();
        races.map_or_else(Vec::new, |races| races.found(place))
    }

    /// Accesses before which it matters whether others come in between, if somebody looked.
    pub fn conflicts(&self) -> Vec<u64> {
        self.races.as_ref().map_or_else(Vec::new, Races::conflicts)
    }

    /// Calls that the table of locks does not have, in words.
    pub fn unlisted(&self) -> Vec<String> {
        let calls = self.unlisted.iter();
        let calls = calls.map(|(op, held)| format!("`{op}` under {}", held.words()));
        calls.collect()
    }

    /// Stalls that there were, in the order of their points.
    pub fn stalls(&self) -> &[Stall] {
        &self.stalls
    }

    /// The last access before which a stall was asked for, if the run has not come to it.
    pub fn missed(&self) -> Option<u64> {
        let Interleave::At(stalls) = &self.asked else {
            return None;
        };
        let last = stalls.iter().map(|stall| stall.point).max();
        last.filter(|point| *point > self.points)
    }

    /// Accesses before which others could have come in between.
    pub const fn points(&self) -> u64 {
        self.points
    }
}

impl Interleaving {
    /// The turn that holds a lock.
    pub(crate) fn holds(&self, key: LockKey) -> Option<usize> {
        self.locks.get(&key).copied()
    }

    /// Whether the turn that goes on would wait for itself, if it waited for this lock.
    pub(crate) fn waits_for_itself(&self, key: LockKey) -> bool {
        let mut wanted = key;
        // A turn waits for one thing, so there are no more steps than turns.
        for _ in 0..=self.turns.len() {
            let Some(holder) = self.holds(wanted) else {
                return false;
            };
            if holder == self.current {
                return true;
            }
            let turn = self.turns.get(holder).and_then(Option::as_ref);
            let Some(TurnWait::Lock(next)) = turn.and_then(|turn| turn.waits) else {
                return false;
            };
            wanted = next;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_in_a_circle_waits_for_itself() {
        let [first, second, third] = [8, 16, 24].map(LockKey::Spin);
        let mut all = Interleaving::new(&Interleave::At(Vec::new()), 3);
        for (cpu, held) in [first, second, third].into_iter().enumerate() {
            let number = all.begin_turn(CpuId(cpu as u16));
            all.locks.insert(held, number);
        }
        all.current = 0;
        assert!(all.waits_for_itself(first), "it holds that");
        assert!(!all.waits_for_itself(second), "who holds that goes on");
        let waits = |all: &mut Interleaving, turn: usize, key| {
            let turn = all.turns[turn].as_mut().expect("it has begun");
            turn.waits = Some(TurnWait::Lock(key));
        };
        waits(&mut all, 1, third);
        assert!(!all.waits_for_itself(second), "nor does the third one wait");
        waits(&mut all, 2, first);
        assert!(all.waits_for_itself(second));
    }
}

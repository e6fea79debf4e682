//! Who waits for whose lock, under a profile that says so.
//!
//! Everything that a CPU does at one moment is done at once here, so a lock excludes nobody from
//! anything, but where CPUs come in between ([`crate::interleave`]). What is left of it is time: a
//! lock is a server. Who takes it while it is taken by another CPU waits until it is free, and pays
//! for the wait as for work; how long it is held is what the work done under it costs. The rule
//! knows no policy:
//!
//! * a run queue's lock is held by `schedule()`, its switch included, by a wakeup once the CPU is
//!   chosen, and by a tick. Where one lock serves the whole machine, as in Linux up to 2.4, a
//!   wakeup holds it from its beginning, and a switch and a tick do not;
//! * the lock of a queue of tasks that is not a CPU's own is held while a task is put into it or
//!   taken out, and for each step of an iterator;
//! * a program's spin lock is held from `bpf_spin_lock()` to `bpf_spin_unlock()`.
//!
//! Decisions are made in the order of events, and what a decision costs is known only when it is
//! made: the lock may be wanted in the middle of a callback whose later parts have been done
//! already. So what is kept of a lock is how much of its time, from the present on, is promised.
//! Who comes within that waits to its end. No lock is ever held for more than all of the time; who
//! is first of two that come within one callback may be the wrong one.

use std::collections::BTreeMap;

use model::{Costs, CpuId, RunQueueLock};

use crate::cpu::PS;
use crate::dsq::DsqIndex;
use crate::interleave::state::LockKey;
use crate::machine::{Machine, Vm};

/// A lock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Lock {
    /// The end of what is promised of its time, picoseconds since the run began.
    until: u64,
    /// The CPU that had it last.
    last: Option<CpuId>,
    /// It is held by what is being done now.
    is_held: bool,
}

/// Which lock.
#[derive(Clone, Copy, Debug)]
pub(crate) enum WhichLock {
    /// That of a CPU's run queue.
    RunQueue(CpuId),
    /// That of a queue of tasks.
    Queue(DsqIndex),
    /// A program's, by its address.
    Spin(u64),
}

/// All locks of a machine. Only this module changes them.
///
/// Boxed, so that a machine without them is no larger for them.
#[derive(Clone, Debug)]
pub(crate) struct Locks {
    table: Option<Box<Table>>,
    /// Run queues are locked for nobody: neither is there a table, nor does anybody come in
    /// between.
    are_free: bool,
}

#[derive(Clone, Debug)]
struct Table {
    /// What run queues are locked by.
    kind: RunQueueLock,
    run_queues: Vec<Lock>,
    queues: Vec<Lock>,
    spin: BTreeMap<u64, Lock>,
    /// Time spent waiting, picoseconds.
    waited_ps: u64,
}

/// A run queue's lock that is held.
#[must_use]
pub(crate) enum Held {
    /// None, or somebody else holds it who goes on.
    Nothing,
    /// One that costs time.
    Since(Since),
    /// One that others wait for.
    Real(LockKey),
}

/// Whose lock it is, and what had been charged when it was taken.
pub(crate) struct Since {
    cpu: CpuId,
    charged: u64,
}

impl Lock {
    /// When `cpu`, which comes at `arrival`, gets it.
    fn free_for(&self, cpu: CpuId, arrival: u64) -> u64 {
        // What a CPU has done itself is behind it.
        if self.last == Some(cpu) {
            return arrival;
        }
        self.until.max(arrival)
    }

    /// `cpu` has it for `span`; it is `now`.
    fn occupy(&mut self, cpu: CpuId, now: u64, span: u64) {
        self.until = self.until.max(now).saturating_add(span);
        self.last = Some(cpu);
    }
}

impl Locks {
    /// The locks of a machine of `cpus`, on which CPUs wait for each other if `costs` say so. One
    /// CPU alone has nobody to wait for.
    ///
    /// Where CPUs come in `between`, they wait by coming later, and pay nothing beside.
    pub fn new(costs: Option<&Costs>, cpus: u16, between: bool) -> Self {
        let costs = costs.filter(|costs| costs.lock_wait && cpus > 1 && !between);
        let table = costs.map(|costs| {
            Box::new(Table {
                kind: costs.run_queue,
                run_queues: vec![Lock::default(); cpus.into()],
                queues: Vec::new(),
                spin: BTreeMap::new(),
                waited_ps: 0,
            })
        });
        Self {
            are_free: table.is_none() && !between,
            table,
        }
    }

    /// Forgets who has which: what was done took no time.
    pub fn forget(&mut self) {
        if let Some(table) = &mut self.table {
            table.run_queues.fill(Lock::default());
            table.queues.clear();
            table.spin.clear();
        }
    }

    /// Kind of the run queues' lock; `None`: nobody waits for a lock.
    pub fn kind(&self) -> Option<RunQueueLock> {
        self.table.as_ref().map(|table| table.kind)
    }

    /// Time that CPUs spent waiting, picoseconds.
    pub fn waited_ps(&self) -> u64 {
        self.table.as_ref().map_or(0, |table| table.waited_ps)
    }
}

impl Table {
    #[inline(always)]
    fn get(&mut self, which: WhichLock) -> &mut Lock {
        match which {
            WhichLock::RunQueue(_) if self.kind == RunQueueLock::Machine => &mut self.run_queues[0],
            WhichLock::RunQueue(cpu) => &mut self.run_queues[usize::from(cpu.0)],
            WhichLock::Queue(DsqIndex(at)) => {
                let at = at as usize;
                if at >= self.queues.len() {
                    self.queues.resize(at + 1, Lock::default());
                }
                &mut self.queues[at]
            }
            WhichLock::Spin(address) => self.spin.entry(address).or_default(),
        }
    }
}

impl Machine {
    /// Takes the lock of `cpu`'s run queue; who holds it already goes on.
    #[inline]
    pub(crate) fn take_run_queue(&mut self, vm: &mut Vm, cpu: CpuId) -> Held {
        if self.locks.are_free {
            return Held::Nothing;
        }
        self.take_really(vm, cpu)
    }

    #[cold]
    fn take_really(&mut self, vm: &mut Vm, cpu: CpuId) -> Held {
        if !self.interleaves() {
            return self.take(cpu);
        }
        let key = LockKey::RunQueue(cpu);
        if self.lock(vm, key) {
            Held::Real(key)
        } else {
            Held::Nothing
        }
    }

    /// As [`Machine::take_run_queue`] where one lock serves the machine, else nothing.
    #[inline]
    pub(crate) fn take_machine(&mut self) -> Held {
        match &self.locks.table {
            _ if self.locks.are_free => Held::Nothing,
            Some(locks) if locks.kind == RunQueueLock::Machine => self.take(CpuId(0)),
            _ => Held::Nothing,
        }
    }

    /// As [`Machine::take_run_queue`] where each CPU has a lock of its own, else nothing.
    #[inline]
    pub(crate) fn take_own(&mut self, vm: &mut Vm, cpu: CpuId) -> Held {
        match &self.locks.table {
            _ if self.locks.are_free => Held::Nothing,
            Some(locks) if locks.kind == RunQueueLock::Cpu => self.take(cpu),
            None => self.take_really(vm, cpu),
            _ => Held::Nothing,
        }
    }

    #[cold]
    fn take(&mut self, cpu: CpuId) -> Held {
        let Some(lock) = self.wait_for(WhichLock::RunQueue(cpu)) else {
            return Held::Nothing;
        };
        lock.is_held = true;
        let charged = self.turn.charged_ps;
        Held::Since(Since { cpu, charged })
    }

    /// Gives a run queue's lock back: what was charged since is how long it was held.
    #[inline]
    pub(crate) fn give_run_queue(&mut self, held: Held) {
        if !matches!(held, Held::Nothing) {
            self.give(held);
        }
    }

    #[cold]
    fn give(&mut self, held: Held) {
        let since = match held {
            Held::Nothing => return,
            Held::Real(key) => return self.unlock(key),
            Held::Since(since) => since,
        };
        let span = self.turn.charged_ps - since.charged;
        let (exec, now) = (self.turn.exec, self.now_ps());
        let locks = self.locks.table.as_mut().expect("a lock was taken");
        let lock = locks.get(WhichLock::RunQueue(since.cpu));
        lock.is_held = false;
        lock.occupy(exec, now, span);
    }

    /// Holds a lock for so long, which is charged elsewhere.
    #[inline]
    pub(crate) fn hold(&mut self, which: WhichLock, span: impl FnOnce(&Costs) -> u64) {
        if self.locks.table.is_some() {
            let span = self.ledger.costs().map_or(0, span);
            self.hold_for(which, span);
        }
    }

    #[cold]
    fn hold_for(&mut self, which: WhichLock, span: u64) {
        let (exec, now) = (self.turn.exec, self.now_ps());
        if let Some(lock) = self.wait_for(which) {
            lock.occupy(exec, now, span);
        }
    }

    /// A program held the spin lock at `address` for so many instructions and so many picoseconds
    /// more.
    #[inline]
    pub(crate) fn hold_spin_lock(&mut self, address: u64, instructions: u64, more_ps: u64) {
        let which = WhichLock::Spin(address);
        self.hold(which, |costs| instructions * costs.instruction + more_ps);
    }

    fn now_ps(&self) -> u64 {
        self.now.as_nanos() * PS
    }

    /// Lets the CPU that executes wait for a lock; `None`: it holds it already.
    #[inline(always)]
    fn wait_for(&mut self, which: WhichLock) -> Option<&mut Lock> {
        let lock = self.locks.table.as_mut()?.get(which);
        if lock.is_held {
            return None;
        }
        // Nobody waits for oneself: nearly always so where few CPUs are.
        if lock.last != Some(self.turn.exec) {
            let lock = *lock;
            self.wait_behind(lock);
        }
        self.locks.table.as_mut().map(|locks| locks.get(which))
    }

    /// Lets the CPU that executes wait for `lock`, which another one had last, if any did.
    #[inline(never)]
    fn wait_behind(&mut self, lock: Lock) {
        let (Some(locks), Some(costs)) = (&mut self.locks.table, self.ledger.costs()) else {
            return;
        };
        let state = &mut self.cpus[self.turn.exec];
        let clock = self.now.max(state.busy_until).as_nanos();
        let arrival = clock * PS + state.owed_ps();
        let mut wait = lock.free_for(self.turn.exec, arrival) - arrival;
        if lock.last.is_some() {
            wait += costs.lock_transfer;
        }
        locks.waited_ps += wait;
        state.owe(wait);
        // Of no kind: locks count it.
        self.turn.charged_ps += wait;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: CpuId = CpuId(0);
    const B: CpuId = CpuId(1);
    const C: CpuId = CpuId(2);

    #[test]
    fn who_comes_within_what_is_promised_waits_to_its_end() {
        let mut lock = Lock::default();
        lock.occupy(A, 100, 50);
        assert_eq!(lock.free_for(B, 110), 150);
        lock.occupy(B, 110, 50);
        assert_eq!(lock.free_for(C, 110), 200, "behind A and B");
        assert_eq!(lock.free_for(C, 230), 230);
    }

    #[test]
    fn time_that_nobody_wanted_is_gone() {
        let mut lock = Lock::default();
        lock.occupy(A, 100, 50);
        lock.occupy(B, 300, 50);
        assert_eq!(lock.free_for(C, 320), 350);
    }

    #[test]
    fn nobody_waits_for_oneself_and_every_piece_counts() {
        let mut lock = Lock::default();
        lock.occupy(A, 100, 50);
        assert_eq!(lock.free_for(A, 100), 100);
        lock.occupy(A, 100, 50);
        assert_eq!(lock.until, 200);
    }
}

//! The table of locks: what a kernel holds around each callback, by the path that leads to it.
//!
//! It is checked against what the machine does whenever somebody looks for races: a callback that
//! is called under other locks than here is named in the results of the run.
//!
//! Source: kernel/sched/core.c and kernel/sched/ext.c, kernels 6.18 and 7.2.

use model::{Kernel, Op};

/// Locks that are held around a callback, of those that keep callbacks apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LocksHeld {
    /// That of a run queue.
    pub(crate) run_queue: bool,
    /// `pi_lock` of the task that it is about.
    pub(crate) task: bool,
}

/// A path that leads to a callback.
#[derive(Clone, Copy, Debug)]
struct LockPath {
    held: LocksHeld,
    /// The first kernel that has it.
    since: Kernel,
}

/// What keeps a callback apart from others.
#[derive(Clone, Copy, Debug)]
enum CallbackLocks {
    /// It is called while no other callback is in the middle of anything.
    Alone,
    /// Locks, by path.
    Under(&'static [LockPath]),
}

const fn path(run_queue: bool, task: bool, since: Kernel) -> LockPath {
    LockPath {
        held: LocksHeld { run_queue, task },
        since,
    }
}

/// Whoever forks holds nothing.
const NOTHING: LockPath = path(false, false, Kernel::V6_12);
/// Whoever wakes a task chooses its CPU.
const CHOICE: LockPath = path(false, true, Kernel::V6_12);
/// The CPU of the run queue does it: a choice, the end of a slice, a tick.
const OWN_CPU: LockPath = path(true, false, Kernel::V6_12);
/// Somebody does it to a task, mostly from another CPU: a wakeup, a change, a move.
const TASK: LockPath = path(true, true, Kernel::V6_12);
/// A task leaves the custody of the policy because a program without a run queue moves it.
const UNLOCKED: LockPath = path(false, false, Kernel::V7_1);

/// The locks of a callback. One that is new does not compile without them.
const fn locks_of(op: Op) -> CallbackLocks {
    use CallbackLocks::{Alone, Under};
    match op {
        Op::SelectCpu => Under(&[CHOICE]),
        Op::Enqueue | Op::Runnable | Op::Running | Op::Stopping | Op::Quiescent => {
            Under(&[OWN_CPU, TASK])
        }
        Op::Dequeue => Under(&[OWN_CPU, TASK, UNLOCKED]),
        Op::Dispatch
        | Op::Tick
        | Op::Yield
        | Op::CoreSchedBefore
        | Op::UpdateIdle
        | Op::CpuAcquire
        | Op::CpuRelease => Under(&[OWN_CPU]),
        Op::SetWeight | Op::Enable | Op::Disable | Op::ExitTask => Under(&[TASK]),
        // A section that forbids migration binds a task at its switch, and a choice of a CPU lifts
        // an affinity that has none left.
        Op::SetCpumask => Under(&[TASK, OWN_CPU, CHOICE]),
        Op::InitTask => Under(&[NOTHING]),
        Op::CpuOnline
        | Op::CpuOffline
        | Op::Init
        | Op::ExitPolicy
        | Op::Dump
        | Op::DumpCpu
        | Op::DumpTask
        | Op::CgroupInit
        | Op::CgroupExit
        | Op::CgroupPrepMove
        | Op::CgroupMove
        | Op::CgroupCancelMove
        | Op::CgroupSetWeight
        | Op::CgroupSetBandwidth
        | Op::CgroupSetIdle
        | Op::InitCids
        | Op::SubAttach
        | Op::SubDetach
        | Op::SubCapsUpdated
        | Op::SubEcapsUpdated => Alone,
    }
}

/// Whether a callback is called under these locks by a kernel.
pub(crate) fn has(op: Op, held: LocksHeld, kernel: Kernel) -> bool {
    match locks_of(op) {
        CallbackLocks::Alone => false,
        CallbackLocks::Under(paths) => {
            let mut known = paths.iter().filter(|path| path.since <= kernel);
            known.any(|path| path.held == held)
        }
    }
}

impl LocksHeld {
    /// In words.
    pub(crate) const fn words(self) -> &'static str {
        match (self.run_queue, self.task) {
            (false, false) => "no lock",
            (true, false) => "a run queue's lock",
            (false, true) => "the task's pi_lock",
            (true, true) => "a run queue's lock and the task's pi_lock",
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_callback_has_a_line_of_the_table() {
        for op in Op::ALL {
            let CallbackLocks::Under(paths) = locks_of(op) else {
                continue;
            };
            let held: BTreeSet<_> = paths.iter().map(|path| path.held).collect();
            assert!(!held.is_empty(), "{}", op.name());
            assert_eq!(held.len(), paths.len(), "{}: a path twice", op.name());
        }
    }

    #[test]
    fn a_path_of_a_newer_kernel_is_none_of_an_older_one() {
        let nothing = NOTHING.held;
        assert!(!has(Op::Dequeue, nothing, Kernel::V6_18));
        assert!(has(Op::Dequeue, nothing, Kernel::V7_1));
        assert!(has(Op::InitTask, nothing, Kernel::V6_12));
        assert!(!has(Op::Tick, TASK.held, Kernel::V7_3));
        assert!(!has(Op::CgroupMove, TASK.held, Kernel::V7_3), "it is alone");
    }
}

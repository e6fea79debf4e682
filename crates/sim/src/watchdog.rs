//! The watchdog: finds tasks that wait too long, at a constant cost for each check.

use std::collections::BTreeSet;

use model::{ExitKind, Nanos, TaskId};

use crate::machine::Machine;
use crate::queue::Pending;

/// The tasks that are runnable and do not run, by the jiffy since when they have waited.
///
/// The kernel walks the list of every CPU; a run of 100,000 tasks would spend its time there. The
/// order by time makes the first entry the only one to look at.
pub(crate) struct Watchdog {
    waiting: BTreeSet<(u64, TaskId)>,
    tick: Nanos,
}

impl Watchdog {
    pub fn new(tick: Nanos) -> Self {
        Self {
            waiting: BTreeSet::new(),
            tick,
        }
    }

    /// Whether any task waits.
    pub fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Those that have waited since before jiffy `limit`.
    fn since_before(&self, limit: u64) -> impl Iterator<Item = (u64, TaskId)> {
        self.waiting
            .iter()
            .copied()
            .take_while(move |&(since, _)| since < limit)
    }
}

impl Machine {
    /// `task` begins to wait. A wait that was interrupted by a property change goes on.
    ///
    /// Source: `set_task_runnable()`, kernel 6.18.
    pub(crate) fn watch(&mut self, task: TaskId) {
        let now = self.jiffies();
        let state = self.task_mut(task);
        if std::mem::take(&mut state.reset_runnable_at) {
            state.runnable_at = now;
        }
        let since = state.runnable_at;
        self.watchdog.waiting.insert((since, task));
    }

    /// `task` waits no longer; `ran` says that it runs now, so that its next wait starts afresh.
    pub(crate) fn unwatch(&mut self, task: TaskId, ran: bool) {
        let state = self.task_mut(task);
        state.reset_runnable_at |= ran;
        let since = state.runnable_at;
        self.watchdog.waiting.remove(&(since, task));
    }

    /// Looks for a stalled task, and arms the next look.
    ///
    /// Source: `check_rq_for_timeouts()` and `scx_watchdog_workfn()`, kernel 6.18.
    pub(crate) fn check_stalls(&mut self) {
        let tick = self.watchdog.tick.get();
        let timeout = (self.ops.timeout_ms * 1_000_000).div_ceil(tick);
        let now = self.jiffies();
        let limit = now.saturating_sub(timeout);
        // The kernel finds the lowest CPU first, and on it the task that waits longest.
        let stalled = self
            .watchdog
            .since_before(limit)
            .min_by_key(|&(since, id)| (self.task(id).cpu, since));
        if let Some((since, task)) = stalled {
            let ms = (now - since) * tick / 1_000_000;
            let name = self.name(task);
            let message = format!("{name} failed to run for {}.{:03}s", ms / 1000, ms % 1000);
            self.eject(ExitKind::ErrorStall, 0, message);
            return;
        }
        self.arm_watchdog();
    }

    /// Arms the next look: half the timeout from now.
    pub(crate) fn arm_watchdog(&mut self) {
        let after = Nanos::from_millis(self.ops.timeout_ms.div_ceil(2));
        self.queue
            .push(self.now + after, self.exec, Pending::Watchdog);
    }
}

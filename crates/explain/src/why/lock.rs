//! Priority inversion: a task sleeps until another one gives a lock back, and that one does not
//! get a CPU, because tasks run that weigh less than the one that sleeps.
//!
//! Source: Sha, Rajkumar and Lehoczky, "Priority inheritance protocols", IEEE Transactions on
//! Computers 39 (1990).

use model::{Blocked, TaskId};

use super::finding::{Fault, Finding, Victim};
use super::judge::Judge;
use super::state::Task;
use super::verdict::{HeldLock, Right, Share, Tier, Verdict};

impl Finding {
    /// Whether it is about this task.
    pub(super) fn is_of(&self, task: TaskId) -> bool {
        self.victim.as_ref().is_some_and(|it| it.task == task)
    }
}

impl Judge<'_> {
    /// The longest wait for a lock that is an inversion, and the task that has the lock.
    pub(super) fn lock_held(&self, blocked: &[Blocked]) -> Option<(TaskId, Finding)> {
        let found = blocked.iter().filter_map(|it| self.inverted(it));
        found.max_by_key(|(_, finding)| finding.victim.as_ref().map(|it| it.waited))
    }

    fn inverted(&self, blocked: &Blocked) -> Option<(TaskId, Finding)> {
        let tasks = &self.state.tasks;
        let waiter = tasks.get(blocked.task.index())?;
        let holder = tasks.get(blocked.holder.index())?;
        let asleep = self.now.since(waiter.slept?);
        let waited = self.state.waited(blocked.holder, self.now)?;
        if asleep.min(waited) < self.long() {
            return None;
        }
        let cpus = self.state.cpus.iter();
        let running = cpus.filter_map(|cpu| tasks.get(cpu.task?.index()));
        let mut lighter = running.filter(|task| !task.outranks() && task.nice > waiter.nice);
        let runs = lighter.next()?;
        // Whatever is promised to the holder, the one that waits for it is behind a lighter task.
        let judge = Judge {
            right: None,
            ..*self
        };
        let finding = judge.finding(blocked.holder);
        let is_of_order = matches!(
            finding.fault,
            Fault::PassedOver | Fault::CpuHeld | Fault::LocalRefilled
        );
        let names_order = |right: &Right| right.has_shares() || *right == Right::Rank;
        let share = Share {
            right: self.right.filter(names_order),
            ..self.share(blocked.holder)
        };
        let lock = HeldLock {
            name: blocked.lock.clone(),
            task: blocked.holder,
            holder: named(holder),
            since: holder.runnable_since,
            runs: named(runs),
        };
        let victim = Victim {
            waited: asleep,
            ..self.victim(blocked.task)
        };
        is_of_order.then(|| {
            let inversion = Finding {
                fault: Fault::LockHeld,
                verdict: Verdict {
                    tier: Some(Tier::Share),
                    share: Some(share),
                    lock: Some(lock),
                    ..Verdict::default()
                },
                victim: Some(victim),
                ..finding
            };
            (blocked.holder, inversion)
        })
    }
}

fn named(task: &Task) -> String {
    format!("{}[{}]", task.name, task.pid)
}

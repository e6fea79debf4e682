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
        let found = blocked.iter().filter_map(|it| {
            let holder = last_holder(it, blocked)?;
            self.inverted(&Blocked {
                holder,
                ..it.clone()
            })
        });
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
        // Whatever is promised to the holder, the one that waits for it is behind a lighter task:
        // the holder's turn is that of the waiter.
        let judge = Judge {
            right: None,
            inherits: Some(waiter.nice),
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
            lag: self.state.lag_as(blocked.holder, self.now, waiter.nice),
            lag_by_cgroup: None,
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

/// The task that must run for `blocked` to go on: who has the lock, or, if that one waits for
/// another lock, who has that one; `None`: they wait for each other.
fn last_holder(blocked: &Blocked, all: &[Blocked]) -> Option<TaskId> {
    let mut holder = blocked.holder;
    for _ in 0..all.len() {
        match all.iter().find(|it| it.task == holder) {
            Some(next) => holder = next.holder,
            None => return Some(holder),
        }
    }
    None
}

fn named(task: &Task) -> String {
    format!("{}[{}]", task.name, task.pid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_must_run_is_found_behind_a_chain_of_locks() {
        let blocked = |task, holder| Blocked {
            task: TaskId(task),
            lock: "door".to_owned(),
            holder: TaskId(holder),
        };
        let chain = [blocked(1, 2), blocked(2, 3), blocked(5, 6), blocked(6, 5)];
        assert_eq!(last_holder(&chain[0], &chain), Some(TaskId(3)));
        assert_eq!(last_holder(&chain[2], &chain), None, "a deadlock");
    }
}

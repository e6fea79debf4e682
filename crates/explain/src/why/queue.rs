//! A dispatch queue, and what was decided about it.

use std::collections::BTreeMap;

use model::{CpuId, Nanos, SimTime};

use super::deed::Deed;

#[derive(Clone, Debug)]
pub(super) struct Queue {
    pub id: u64,
    /// Number of the scheduler that it belongs to.
    pub of: u32,
    pub depth: u32,
    pub last_look: Option<Deed>,
    /// The last move of a task that the policy chose itself, with an iterator.
    pub chosen: Option<Deed>,
    pub looks: u64,
    /// Looks that took a task.
    pub takes: u64,
    /// CPUs that have ever looked at it: the number of each one's last look, from 1 on, and the
    /// look.
    pub readers: BTreeMap<CpuId, (u64, Deed)>,
    /// Since when nobody has taken a task out of it, although there was one.
    pub unserved: SimTime,
    /// The longest such time that has ended.
    pub longest_pause: Nanos,
    /// CPUs that have ever taken a task out of it, and how many.
    pub takers: BTreeMap<CpuId, u64>,
    /// By CPU: the last `dispatch` that looked at it and ended without work.
    pub skipped: BTreeMap<CpuId, Deed>,
    /// The tasks in it, by the number of their entry.
    pub tasks: BTreeMap<u64, Entry>,
}

impl Queue {
    /// An empty one of the scheduler `of`.
    pub fn new(id: u64, of: u32) -> Self {
        Self {
            id,
            of,
            depth: 0,
            last_look: None,
            chosen: None,
            looks: 0,
            takes: 0,
            readers: BTreeMap::new(),
            unserved: SimTime::ZERO,
            longest_pause: Nanos::ZERO,
            takers: BTreeMap::new(),
            skipped: BTreeMap::new(),
            tasks: BTreeMap::new(),
        }
    }

    /// For how long nobody has taken a task out of it at `now`, although there was one.
    pub fn pause(&self, now: SimTime) -> Nanos {
        now.since(self.unserved.min(now))
    }

    /// `deed` is a look at it, which takes a task or none.
    pub fn look(&mut self, deed: Deed, takes: bool) {
        self.last_look = Some(deed);
        self.looks += 1;
        self.takes += u64::from(takes);
        self.readers.insert(deed.cpu, (self.looks, deed));
    }

    /// Looks at it since `entry` came, and how many of them took a task.
    pub fn looks_since(&self, entry: &Entry) -> (u64, u64) {
        let (looks, takes) = entry.came;
        (self.looks - looks, self.takes - takes)
    }

    /// CPUs that have looked since `entry` came, and their last look.
    pub fn readers_since(&self, entry: &Entry) -> impl Iterator<Item = (CpuId, Deed)> {
        let came = entry.came.0;
        let since = self
            .readers
            .iter()
            .filter(move |(_, (number, _))| *number > came);
        since.map(|(cpu, (_, look))| (*cpu, *look))
    }

    /// Whether `cpu` takes tasks out of it, and no more seldom than a balancer does: not fewer than
    /// one for so many that another CPU takes.
    pub fn is_served_by(&self, cpu: CpuId) -> bool {
        const SELDOM: u64 = 8;
        let most = self.takers.values().max().copied().unwrap_or(0);
        let takes = self.takers.get(&cpu);
        takes.is_some_and(|takes| takes.saturating_mul(SELDOM) >= most)
    }

    /// Whether `cpu` has ever looked at it.
    pub fn is_read_by(&self, cpu: CpuId) -> bool {
        self.readers.contains_key(&cpu)
    }
}

/// A task's stay in a queue.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    /// Looks at the queue before it came, and how many of them took a task.
    pub came: (u64, u64),
    /// By CPU: tasks that came later and were taken.
    pub overtaken: BTreeMap<CpuId, u64>,
    /// The last insert that put a task that came later in front of it.
    pub headed: Option<Deed>,
}

/// What a queue is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Local(CpuId),
    Global,
    Policy,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_balancer_serves_no_queue_of_another_cpu() {
        let mut queue = Queue::new(7, 0);
        assert!(!queue.is_served_by(CpuId(0)));
        queue.takers.insert(CpuId(0), 4_000);
        queue.takers.insert(CpuId(1), 499);
        queue.takers.insert(CpuId(2), 500);
        let served = [0, 1, 2, 3].map(|cpu| queue.is_served_by(CpuId(cpu)));
        assert_eq!(served, [true, false, true, false]);
    }
}

//! Who had a CPU for long while others waited.

use std::collections::VecDeque;

use model::{Nanos, SimTime, TaskId};

use super::deed::Deed;

/// Turns that are kept of a CPU. Of more the oldest is forgotten.
const MOST: usize = 256;

/// A task had a CPU.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stint {
    pub task: TaskId,
    pub from: SimTime,
    pub to: SimTime,
    /// The slice that it had at the begin, nanoseconds, and what gave it.
    pub slice: Option<(u64, Deed)>,
}

impl Stint {
    /// For how much of the time from `since` on.
    pub fn after(&self, since: SimTime) -> Nanos {
        self.to.since(self.from.max(since).min(self.to))
    }
}

/// The turns on a CPU that have ended, but for those with a longer one behind them: of those that
/// ended after any moment the first one is the longest.
#[derive(Clone, Debug, Default)]
pub(super) struct Stints(VecDeque<Stint>);

impl Stints {
    pub fn push(&mut self, ended: Stint) {
        let span = |it: &Stint| it.to.since(it.from);
        while self.0.back().is_some_and(|it| span(it) <= span(&ended)) {
            self.0.pop_back();
        }
        if self.0.len() == MOST {
            self.0.pop_front();
        }
        self.0.push_back(ended);
    }

    /// The one that had the most of the time after `since`. The first that ended after it may have
    /// begun before it; of the others the next one is the longest.
    pub fn longest_after(&self, since: SimTime) -> Option<Stint> {
        let at = self.0.partition_point(|it| it.to <= since);
        let (first, next) = (self.0.get(at)?, self.0.get(at + 1));
        let longer = next.filter(|next| next.after(since) > first.after(since));
        longer.or(Some(first)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn stint(task: u32, from: u64, to: u64) -> Stint {
        Stint {
            task: TaskId(task),
            from: SimTime::from_nanos(from),
            to: SimTime::from_nanos(to),
            slice: None,
        }
    }

    #[test]
    fn the_longest_turn_after_any_moment_is_kept() {
        let mut stints = Stints::default();
        let turns = [(0, 0, 50), (1, 50, 60), (2, 60, 90), (3, 90, 95)];
        for (task, from, to) in turns {
            stints.push(stint(task, from, to));
        }
        let after = |since| stints.longest_after(SimTime::from_nanos(since));
        let moments = [0, 20, 21, 49, 50, 60, 84, 86, 90, 95];
        let found = moments.map(|since| after(since).map(|it| it.task.0));
        let wanted = [0, 0, 2, 2, 2, 2, 2, 3, 3].map(Some);
        assert_eq!(
            found[..9],
            wanted,
            "of a turn that had begun before only the rest counts"
        );
        assert_eq!(found[9], None);
        let second = stint(2, 60, 90);
        let spans = [0, 70, 95].map(|since| second.after(SimTime::from_nanos(since)).get());
        assert_eq!(spans, [30, 20, 0]);
    }

    #[test]
    fn ever_shorter_turns_take_no_more_memory_than_others() {
        let mut stints = Stints::default();
        let mut from = 0;
        for span in (1..=1_000).rev() {
            stints.push(stint(span, from, from + u64::from(span)));
            from += u64::from(span);
        }
        assert_eq!(stints.0.len(), MOST);
        let last = stints.longest_after(SimTime::from_nanos(from - 1));
        assert_eq!(last.map(|it| it.task), Some(TaskId(1)));
    }
}

//! When work with a deadline was asked for.

use model::{Nanos, SimTime};

/// The releases of one task's deadlines.
#[derive(Clone, Debug, Default)]
pub struct Releases(Vec<Release>);

#[derive(Clone, Copy, Debug)]
struct Release {
    deadline: u32,
    /// The release that is being served.
    at: SimTime,
    /// The one after it.
    next: SimTime,
    /// Whether its work is still to be done.
    is_open: bool,
}

/// The releases of a deadline with a period.
#[derive(Clone, Copy, Debug)]
pub struct Grid {
    /// The first of them, for a task that has seen none yet.
    pub first: SimTime,
    /// From one to the next.
    pub period: Nanos,
    /// Whether those that passed are given up but for the last.
    pub skip: bool,
}

impl Releases {
    /// Makes room for so many deadlines.
    pub fn reserve(&mut self, deadlines: usize) {
        self.0.reserve(deadlines);
    }

    /// The next release of a deadline with a period, and how many were given up for it. Later
    /// than `now` if it has not come yet.
    pub fn next(&mut self, deadline: u32, grid: Grid, now: SimTime) -> (SimTime, u64) {
        if self.find(deadline).is_none() {
            self.0.push(Release {
                deadline,
                at: grid.first,
                next: grid.first,
                is_open: true,
            });
        }
        let release = self.find(deadline).expect("just put there");
        let passed = if grid.skip && release.next < now {
            now.since(release.next).get() / grid.period.get()
        } else {
            0
        };
        release.at = release.next + Nanos::new(passed * grid.period.get());
        release.next = release.at + grid.period;
        release.is_open = true;
        (release.at, passed)
    }

    /// The release of a deadline without a period is its message, which was sent at `at`.
    pub fn by_message(&mut self, deadline: u32, at: SimTime) {
        match self.find(deadline) {
            Some(release) => (release.at, release.is_open) = (at, true),
            None => self.0.push(Release {
                deadline,
                at,
                next: at,
                is_open: true,
            }),
        }
    }

    /// The work of the current release is done. Returns when that release was; `None` before the
    /// first one.
    pub fn complete(&mut self, deadline: u32) -> Option<SimTime> {
        let release = self.find(deadline)?;
        release.is_open = false;
        Some(release.at)
    }

    /// Whether work is still to be done; `None` before the first release.
    #[must_use]
    pub fn is_open(&self, deadline: u32) -> Option<bool> {
        let mut releases = self.0.iter();
        let found = releases.find(|release| release.deadline == deadline);
        found.map(|release| release.is_open)
    }

    /// Deadlines that were due before `end` and whose work is not done: that of the current
    /// release, and with it those of the periods after it. `of` says period and slack of a
    /// deadline.
    pub fn overdue(
        &self,
        end: SimTime,
        of: impl Fn(u32) -> (Option<Nanos>, Nanos),
    ) -> Vec<(u32, u64)> {
        let open = self.0.iter().filter(|release| release.is_open);
        let overdue = open.filter_map(|release| {
            let periods = overdue(release.at, of(release.deadline), end)?;
            Some((release.deadline, periods))
        });
        overdue.collect()
    }

    fn find(&mut self, deadline: u32) -> Option<&mut Release> {
        self.0
            .iter_mut()
            .find(|release| release.deadline == deadline)
    }
}

/// How many deadlines were due before `end` and not met, of work that was asked for at `release`
/// and is not done: its own, and those of the periods after it. `None` if it can still be met.
#[must_use]
pub fn overdue(
    release: SimTime,
    (period, slack): (Option<Nanos>, Nanos),
    end: SimTime,
) -> Option<u64> {
    let due = release + slack;
    let late = (due < end).then(|| end.since(due).get())?;
    Some(period.map_or(1, |period| late.div_ceil(period.get().max(1))))
}

/// Messages are overdue at `end` that were sent before this, if each has `slack`.
#[must_use]
pub fn latest(end: SimTime, slack: Nanos) -> SimTime {
    let latest = end.as_nanos().saturating_sub(slack.get());
    SimTime::ZERO + Nanos::new(latest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> SimTime {
        SimTime::ZERO + Nanos::from_millis(ms)
    }

    #[test]
    fn what_was_due_and_is_not_done_is_overdue_with_the_periods_after_it() {
        let (period, slack) = (Nanos::from_millis(10), Nanos::from_millis(12));
        let of = |_| (Some(period), slack);
        let mut releases = Releases::default();
        assert_eq!(releases.overdue(ms(100), of), []);
        let grid = Grid {
            first: ms(5),
            period,
            skip: true,
        };
        let _ = releases.next(3, grid, ms(5));
        // Released at 5, 15, 25 and so on; due at 17, 27, 37.
        assert_eq!(releases.overdue(ms(17), of), [], "it can still be met");
        assert_eq!(releases.overdue(ms(18), of), [(3, 1)]);
        assert_eq!(releases.overdue(ms(27), of), [(3, 1)]);
        assert_eq!(releases.overdue(ms(28), of), [(3, 2)]);
        assert_eq!(releases.complete(3), Some(ms(5)));
        assert_eq!(releases.overdue(ms(100), of), [], "done, if late");
        assert_eq!(releases.complete(4), None);
    }

    #[test]
    fn a_grid_that_begins_before_the_first_turn_has_passed_releases() {
        let grid = |skip| Grid {
            first: ms(0),
            period: Nanos::from_millis(10),
            skip,
        };
        for (skip, now, want) in [
            (true, 35, (ms(30), 3)),
            (false, 35, (ms(0), 0)),
            (true, 0, (ms(0), 0)),
        ] {
            let mut releases = Releases::default();
            assert_eq!(releases.next(0, grid(skip), ms(now)), want, "{skip}, {now}");
        }
        let mut later = Releases::default();
        let grid = Grid {
            first: ms(50),
            ..grid(true)
        };
        assert_eq!(later.next(0, grid, ms(20)), (ms(50), 0), "it waits for it");
        assert_eq!(later.next(0, grid, ms(51)), (ms(60), 0));
    }

    #[test]
    fn a_message_is_overdue_if_it_was_sent_more_than_its_slack_before_the_end() {
        let slack = Nanos::from_millis(16);
        assert_eq!(latest(ms(100), slack), ms(84));
        for sent in [83, 84] {
            let is_late = overdue(ms(sent), (None, slack), ms(100)).is_some();
            assert_eq!(is_late, ms(sent) < latest(ms(100), slack), "{sent}");
        }
        // None was sent before the run.
        assert_eq!(latest(ms(10), slack), SimTime::ZERO);
    }

    #[test]
    fn a_message_is_one_deadline_however_long_it_waits() {
        let mut releases = Releases::default();
        releases.by_message(0, ms(8));
        let of = |_| (None, Nanos::from_millis(16));
        assert_eq!(releases.overdue(ms(24), of), []);
        assert_eq!(releases.overdue(ms(1000), of), [(0, 1)]);
        let _ = releases.complete(0);
        releases.by_message(0, ms(30));
        assert_eq!(releases.overdue(ms(1000), of), [(0, 1)]);
    }
}

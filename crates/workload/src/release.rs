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
}

impl Releases {
    /// Makes room for so many deadlines.
    pub fn reserve(&mut self, deadlines: usize) {
        self.0.reserve(deadlines);
    }

    /// The next release of a deadline with a period, and how many were given up for it. Later
    /// than `now` if it has not come yet.
    pub fn next(
        &mut self,
        deadline: u32,
        period: Nanos,
        skip: bool,
        now: SimTime,
    ) -> (SimTime, u64) {
        let Some(release) = self.find(deadline) else {
            self.0.push(Release {
                deadline,
                at: now,
                next: now + period,
            });
            return (now, 0);
        };
        let passed = if skip && release.next < now {
            now.since(release.next).get() / period.get()
        } else {
            0
        };
        release.at = release.next + Nanos::new(passed * period.get());
        release.next = release.at + period;
        (release.at, passed)
    }

    /// The release of a deadline without a period is its message, which was sent at `at`.
    pub fn by_message(&mut self, deadline: u32, at: SimTime) {
        match self.find(deadline) {
            Some(release) => release.at = at,
            None => self.0.push(Release {
                deadline,
                at,
                next: at,
            }),
        }
    }

    /// The release that is being served; `None` before the first one.
    #[must_use]
    pub fn current(&self, deadline: u32) -> Option<SimTime> {
        let found = self.0.iter().find(|release| release.deadline == deadline);
        found.map(|release| release.at)
    }

    fn find(&mut self, deadline: u32) -> Option<&mut Release> {
        self.0
            .iter_mut()
            .find(|release| release.deadline == deadline)
    }
}

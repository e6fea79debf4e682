//! Events that need not go through the queue, because nothing comes before them.

use model::{CpuId, SimTime};

use super::{EventQueue, When};
use crate::pending::{Packed, Pending};

/// An event that has its place among the others, and is not among them yet.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct Planned {
    when: When,
    what: Packed,
}

impl Planned {
    /// When it comes.
    #[inline(always)]
    pub const fn time(&self) -> SimTime {
        SimTime::from_nanos(self.when.time)
    }
}

impl EventQueue {
    /// Gives an event its place among the others, as of now. It comes if it is given to
    /// [`EventQueue::push_planned`] before any event behind it is taken.
    #[inline(always)]
    pub fn plan(&mut self, time: SimTime, cpu: CpuId, what: Pending) -> Planned {
        let (when, what) = (self.place(time, cpu, what), Packed::new(what));
        Planned { when, what }
    }

    /// Adds an event that has its place.
    #[inline]
    pub fn push_planned(&mut self, Planned { when, what }: Planned) {
        self.push_placed(when, what);
    }

    /// Whether all events come behind `time`.
    #[inline]
    pub fn is_quiet_until(&mut self, time: SimTime) -> bool {
        self.first_key()
            .is_none_or(|first| (first >> 64) as u64 > time.as_nanos())
    }

    /// Whether all events come behind `planned`.
    #[inline]
    pub fn comes_first(&mut self, planned: &Planned) -> bool {
        let key = planned.when.key();
        self.first_key().is_none_or(|first| first > key)
    }

    /// It is `time` now, as if an event had led here that none of this moment led to. No event
    /// must come before.
    #[inline]
    pub fn pass_to(&mut self, time: SimTime) {
        debug_assert!(time > self.now, "time has passed");
        (self.now, self.depth) = (time, 0);
    }

    /// What says when the next event comes; `None` if there is none.
    #[inline(always)]
    fn first_key(&mut self) -> Option<u128> {
        if self.begin == self.front.len() && self.spilt.is_empty() && !self.refill() {
            return None;
        }
        let first = if self.spilt.is_empty() {
            self.front.get(self.begin)
        } else {
            self.next_of_many()
        };
        first.map(super::QueueEntry::key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CPU: CpuId = CpuId(0);

    fn at(ns: u64) -> SimTime {
        SimTime::from_nanos(ns)
    }

    #[test]
    fn what_is_planned_comes_where_it_would_have_come() {
        let mut queue = EventQueue::new(None);
        queue.push(at(5_000), CpuId(1), Pending::Tick);
        let planned = queue.plan(at(5_000), CPU, Pending::Tick);
        assert!(queue.comes_first(&planned), "by its CPU");
        assert!(queue.is_quiet_until(at(4_999)));
        assert!(!queue.is_quiet_until(at(5_000)));
        queue.push(at(5_000), CpuId(2), Pending::WorkDone);
        assert!(!queue.comes_first(&planned), "by their class");
        queue.push_planned(planned);
        let order: Vec<_> = std::iter::from_fn(|| queue.advance())
            .map(|entry| entry.cpu().0)
            .collect();
        assert_eq!(order, [2, 0, 1]);
    }

    #[test]
    fn what_comes_in_the_moment_that_was_passed_to_stands_behind_nothing() {
        let mut queue = EventQueue::new(None);
        assert!(queue.is_quiet_until(at(u64::MAX)));
        queue.push(at(1 << 40), CPU, Pending::End);
        // The first event is looked up, which moves what is far away.
        assert!(queue.is_quiet_until(at(70)));
        queue.pass_to(at(70));
        queue.push(at(90), CPU, Pending::Tick);
        queue.push(at(80), CPU, Pending::Resume);
        assert!(queue.is_quiet_until(at(79)) && !queue.is_quiet_until(at(80)));
        let order: Vec<_> = std::iter::from_fn(|| queue.advance())
            .map(|entry| (entry.time(), entry.depth()))
            .collect();
        assert_eq!(order, [(at(80), 0), (at(90), 0), (at(1 << 40), 0)]);
    }

    #[test]
    fn the_tie_of_what_is_planned_is_drawn_when_it_is_planned() {
        let order = |plans: bool| {
            let mut queue = EventQueue::new(Some(3));
            let planned = plans.then(|| queue.plan(at(9), CPU, Pending::Tick));
            if !plans {
                queue.push(at(9), CPU, Pending::Tick);
            }
            for cpu in 1..8 {
                queue.push(at(9), CpuId(cpu), Pending::Tick);
            }
            planned.into_iter().for_each(|it| queue.push_planned(it));
            let cpus = std::iter::from_fn(|| queue.advance()).map(|entry| entry.cpu().0);
            cpus.collect::<Vec<_>>()
        };
        assert_eq!(order(true), order(false));
    }

    #[test]
    fn a_crowd_is_seen_too() {
        let mut queue = EventQueue::new(None);
        for ns in (1..1_000).rev() {
            queue.push(at(ns), CPU, Pending::Tick);
        }
        for ns in 1..1_000 {
            assert!(queue.is_quiet_until(at(ns - 1)) && !queue.is_quiet_until(at(ns)));
            assert_eq!(queue.advance().map(|entry| entry.time()), Some(at(ns)));
        }
    }
}

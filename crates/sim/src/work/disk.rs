//! Disks: requests that wait, and how long they take.

use std::collections::{BTreeMap, BTreeSet};

use model::workload::{Disk, Elevator, PAGE};
use model::{Nanos, Rng, SimTime, TaskId};

use super::pages::Owner;

/// A request is at most this long: 1 MiB, the usual limit of a block device's request.
pub(super) const REQUEST_PAGES: u64 = 256;

/// After this the deadline elevator serves a read out of turn, and after the other one a write
/// (`read_expire`, `write_expire` in `block/mq-deadline.c`, Linux 6.18).
const READ_EXPIRE: Nanos = Nanos::from_millis(500);
const WRITE_EXPIRE: Nanos = Nanos::from_secs(5);

/// What a request is for, once it is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Then {
    /// Nothing is kept in memory.
    Nothing,
    /// The pages that were read go into the disk's cache; room for so many was taken.
    Fill(u64),
    /// So many pages of memory are free, whose content was written.
    Free(u64),
    /// A page of a task is back in memory.
    SwapIn(Owner, u64),
}

/// A request.
#[derive(Clone, Debug)]
pub(super) struct Request {
    pub page: u64,
    pub pages: u64,
    pub writes: bool,
    pub then: Then,
    /// Whose it is.
    pub by: TaskId,
    /// Who waits for it.
    pub waiters: Vec<TaskId>,
}

/// A disk and its queue.
#[derive(Debug)]
pub(super) struct Drive {
    rng: Rng,
    /// Waiting requests in the order of coming, each with that time.
    queue: BTreeMap<u64, (SimTime, Request)>,
    /// The same by place.
    places: BTreeSet<(u64, u64)>,
    /// Requests that are served, by the time of their end.
    serving: BTreeMap<(SimTime, u64), Request>,
    /// Where the last request ended.
    head: u64,
    asked: u64,
}

impl Drive {
    pub fn new(rng: Rng) -> Self {
        Self {
            rng,
            queue: BTreeMap::new(),
            places: BTreeSet::new(),
            serving: BTreeMap::new(),
            head: 0,
            asked: 0,
        }
    }

    /// A request comes; when the one ends that begins for that reason.
    pub fn submit(&mut self, disk: &Disk, request: Request, now: SimTime) -> Option<SimTime> {
        self.asked += 1;
        self.places.insert((request.page, self.asked));
        self.queue.insert(self.asked, (now, request));
        self.start(disk, now)
    }

    /// The request that ends now, and when the one ends that begins now.
    ///
    /// # Panics
    /// If none ends now.
    pub fn complete(&mut self, disk: &Disk, now: SimTime) -> (Request, Option<SimTime>) {
        let ((end, _), request) = self.serving.pop_first().expect("a request is served");
        debug_assert!(end <= now, "requests end in time");
        (request, self.start(disk, now))
    }

    /// CPU time of an interrupt.
    pub fn cost(&mut self, disk: &Disk) -> Nanos {
        disk.cost.sample(&mut self.rng)
    }

    /// Adds `task` to those who wait for each write under way that `whose` chooses; to how many.
    pub fn join_writes(&mut self, task: TaskId, whose: impl Fn(&Request) -> bool) -> u32 {
        let waiting = self.queue.values_mut().map(|(_, request)| request);
        let mut joined = 0;
        for request in waiting.chain(self.serving.values_mut()) {
            if request.writes && whose(request) && !request.waiters.contains(&task) {
                request.waiters.push(task);
                joined += 1;
            }
        }
        joined
    }

    /// Pages of memory that requests under way hold: for tests.
    #[cfg(test)]
    pub fn pages_under_way(&self) -> u64 {
        let waiting = self.queue.values().map(|(_, request)| request);
        let held = waiting
            .chain(self.serving.values())
            .map(|request| match request.then {
                Then::Fill(pages) | Then::Free(pages) => pages,
                Then::SwapIn(..) => 1,
                Then::Nothing => 0,
            });
        held.sum()
    }

    fn start(&mut self, disk: &Disk, now: SimTime) -> Option<SimTime> {
        if self.serving.len() >= disk.width as usize {
            return None;
        }
        let next = self.next(disk, now)?;
        let (_, request) = self.queue.remove(&next).expect("it waits");
        self.places.remove(&(request.page, next));
        let end = now + self.service(disk, &request);
        self.head = request.page + request.pages;
        self.serving.insert((end, next), request);
        Some(end)
    }

    /// The number of the request that is served next.
    fn next(&self, disk: &Disk, now: SimTime) -> Option<u64> {
        let oldest = self.queue.first_key_value().map(|(&number, _)| number)?;
        let in_turn = || {
            let above = self.places.range((self.head, 0)..).next();
            above
                .or_else(|| self.places.first())
                .map(|&(_, number)| number)
        };
        match disk.elevator {
            Elevator::Fifo => Some(oldest),
            Elevator::Scan => in_turn(),
            Elevator::Deadline => self.expired(now).or_else(in_turn),
        }
    }

    fn expired(&self, now: SimTime) -> Option<u64> {
        let old = self.queue.iter();
        let mut old = old.take_while(|(_, (since, _))| *since + READ_EXPIRE <= now);
        let is_late =
            |since: SimTime, request: &Request| !request.writes || since + WRITE_EXPIRE <= now;
        old.find(|(_, (since, request))| is_late(*since, request))
            .map(|(&number, _)| number)
    }

    /// How long a request takes; never nothing.
    fn service(&mut self, disk: &Disk, request: &Request) -> Nanos {
        let distance = self.head.abs_diff(request.page);
        // The square root of the share, in 2^-20.
        let share = (u128::from(distance) << 40) / u128::from(disk.pages.max(1));
        let seek = (u128::from(disk.seek.get()) * share.isqrt()) >> 20;
        let bytes = u128::from(request.pages * PAGE);
        let transfer = disk
            .bandwidth
            .map_or(0, |rate| bytes * 1_000_000_000 / u128::from(rate));
        let fixed = disk.base.sample(&mut self.rng);
        let rest = u64::try_from(seek + transfer).unwrap_or(u64::MAX);
        let span = Nanos::new(fixed.get().saturating_add(rest)).min(model::workload::DRAW_MAX);
        span.max(Nanos::new(1))
    }
}

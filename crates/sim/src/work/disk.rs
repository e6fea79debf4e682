//! Disks: requests that wait, and how long they take.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use model::{Nanos, Rng, SimTime, TaskId};
use workload::{Disk, Elevator, PAGE};

use super::pages::Owner;

/// After this a row of the deadline elevator begins with a read out of turn, and after the other
/// one with a write (`read_expire`, `write_expire` in `block/mq-deadline.c`, Linux 6.18).
const EXPIRE: [Nanos; 2] = [Nanos::from_millis(500), Nanos::from_secs(5)];
/// Requests of a row (`fifo_batch`, the same file).
const ROW: u32 = 16;
/// Rows of reads for which writes wait (`writes_starved`, the same file).
const WRITES_STARVED: u32 = 2;

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

impl Request {
    fn touches(&self, pages: &Range<u64>) -> bool {
        self.page < pages.end && pages.start < self.page + self.pages
    }
}

/// Where the deadline elevator stands.
#[derive(Debug, Default)]
struct Row {
    writes: bool,
    /// Requests of this row so far.
    length: u32,
    /// Rows of reads that began while a write waited.
    starved: u32,
    /// Where the last read and the last write began.
    at: [u64; 2],
}

/// A disk and its queue.
#[derive(Debug)]
pub(super) struct Drive {
    rng: Rng,
    /// Waiting requests in the order of coming, each with that time.
    queue: BTreeMap<u64, (SimTime, Request)>,
    /// The same by place: reads and writes.
    places: [BTreeSet<(u64, u64)>; 2],
    /// The same by age: reads and writes.
    ages: [BTreeSet<u64>; 2],
    row: Row,
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
            places: Default::default(),
            ages: Default::default(),
            row: Row::default(),
            serving: BTreeMap::new(),
            head: 0,
            asked: 0,
        }
    }

    /// A request comes; when the one ends that begins for that reason.
    pub fn submit(&mut self, disk: &Disk, request: Request, now: SimTime) -> Option<SimTime> {
        self.asked += 1;
        let kind = usize::from(request.writes);
        self.places[kind].insert((request.page, self.asked));
        self.ages[kind].insert(self.asked);
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

    /// Adds `task` to those who wait for each read under way of any of these pages; to how many.
    pub fn join_reads(&mut self, task: TaskId, pages: &Range<u64>) -> u32 {
        let waiting = self.queue.values_mut().map(|(_, request)| request);
        let mut joined = 0;
        for request in waiting.chain(self.serving.values_mut()) {
            if !request.writes && request.touches(pages) && !request.waiters.contains(&task) {
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
        let kind = usize::from(request.writes);
        self.places[kind].remove(&(request.page, next));
        self.ages[kind].remove(&next);
        let end = now + self.service(disk, &request);
        self.head = request.page + request.pages;
        self.serving.insert((end, next), request);
        Some(end)
    }

    /// The number of the request that is served next.
    fn next(&mut self, disk: &Disk, now: SimTime) -> Option<u64> {
        let oldest = self.queue.first_key_value().map(|(&number, _)| number)?;
        match disk.elevator {
            Elevator::Fifo => Some(oldest),
            Elevator::Scan => {
                let places = &self.places;
                let above = |kind: usize| places[kind].range((self.head, 0)..).next();
                let first = |kind: usize| places[kind].first();
                let lower = |a: Option<&(u64, u64)>, b: Option<&(u64, u64)>| {
                    a.into_iter().chain(b).min().map(|&(_, number)| number)
                };
                lower(above(0), above(1)).or_else(|| lower(first(0), first(1)))
            }
            Elevator::Deadline => Some(self.next_of_row(now)),
        }
    }

    /// The deadline elevator's choice (`__dd_dispatch_request()`, `block/mq-deadline.c`, Linux
    /// 6.18, without I/O priorities).
    ///
    /// # Panics
    /// If nothing waits.
    fn next_of_row(&mut self, now: SimTime) -> u64 {
        let kind = usize::from(self.row.writes);
        if self.row.length < ROW
            && let Some(next) = self.upwards(kind)
        {
            self.row.length += 1;
            return self.note(kind, next);
        }
        let [reads, writes] = [0, 1].map(|kind: usize| !self.ages[kind].is_empty());
        self.row.writes = !reads || (writes && self.row.starved >= WRITES_STARVED);
        self.row.starved = match (self.row.writes, writes) {
            (false, true) => self.row.starved + 1,
            (false, false) => self.row.starved,
            (true, _) => 0,
        };
        self.row.length = 1;
        let kind = usize::from(self.row.writes);
        let oldest = *self.ages[kind].first().expect("a request waits");
        let is_late = self.queue[&oldest].0 + EXPIRE[kind] <= now;
        let next = if is_late { None } else { self.upwards(kind) };
        self.note(kind, next.unwrap_or(oldest))
    }

    /// The next read or write from where the last one began.
    fn upwards(&self, kind: usize) -> Option<u64> {
        let mut above = self.places[kind].range((self.row.at[kind], 0)..);
        above.next().map(|&(_, number)| number)
    }

    fn note(&mut self, kind: usize, next: u64) -> u64 {
        self.row.at[kind] = self.queue[&next].1.page;
        next
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
        let span = Nanos::new(fixed.get().saturating_add(rest)).min(workload::DRAW_MAX);
        span.max(Nanos::new(1))
    }
}

//! Disks: requests that wait, and how long they take.

use std::collections::BTreeMap;
use std::collections::btree_map::OccupiedEntry;
use std::ops::Range;

use model::{Nanos, Rng, SimTime, TaskId};
use workload::{Disk, Elevator, PAGE};

use super::pages::Owner;
use anticipatory::Anticipation;
use waiting::Waiting;

mod anticipatory;
mod waiting;

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
    /// Whether it is a read, or a write of `fsync` or past the cache.
    pub is_sync: bool,
    pub then: Then,
    /// Whose it is.
    pub by: TaskId,
    /// Tasks that wait for it.
    pub waiters: Vec<TaskId>,
}

impl Request {
    fn touches(&self, pages: &Range<u64>) -> bool {
        self.page < pages.end && pages.start < self.page + self.pages
    }
}

/// Where the deadline elevator stands.
#[derive(Clone, Debug, Default)]
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
#[derive(Clone, Debug)]
pub(super) struct Drive {
    rng: Rng,
    waiting: Waiting,
    row: Row,
    anticipation: Anticipation,
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
            waiting: Waiting::default(),
            row: Row::default(),
            anticipation: Anticipation::default(),
            serving: BTreeMap::new(),
            head: 0,
            asked: 0,
        }
    }

    /// A request comes; when the disk interrupts for that reason.
    pub fn submit(&mut self, disk: &Disk, request: Request, now: SimTime) -> Vec<SimTime> {
        self.asked += 1;
        let kind = match disk.elevator {
            Elevator::Anticipatory => {
                self.anticipation.note(&request, now);
                anticipatory::kind(&request)
            }
            _ => usize::from(request.writes),
        };
        self.waiting.insert(self.asked, kind, request, now);
        self.start(disk, now)
    }

    /// The disk interrupts: the request that ends now, and when it interrupts again for that
    /// reason. Without a request it has waited long enough for one, or no longer does.
    pub fn interrupt(&mut self, disk: &Disk, now: SimTime) -> (Option<Request>, Vec<SimTime>) {
        let first = self.serving.first_entry();
        let ended = first.filter(|first| first.key().0 <= now);
        let ended = ended.map(OccupiedEntry::remove);
        if disk.elevator == Elevator::Anticipatory {
            match &ended {
                Some(request) => self.anticipation.ended(request, now),
                None => self.anticipation.time_is_up(now),
            }
        }
        (ended, self.start(disk, now))
    }

    /// A task has exited.
    pub fn leave(&mut self, task: TaskId) {
        self.anticipation.leave(task);
    }

    /// CPU time of an interrupt.
    pub fn cost(&mut self, disk: &Disk) -> Nanos {
        disk.cost.sample(&mut self.rng)
    }

    /// Adds `task` to those who wait for each write under way that `whose` chooses; to how many.
    pub fn join_writes(&mut self, task: TaskId, whose: impl Fn(&Request) -> bool) -> u32 {
        let mut joined = 0;
        let waiting = self.waiting.requests_mut();
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
        let mut joined = 0;
        let waiting = self.waiting.requests_mut();
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
        let held = (self.waiting.requests())
            .chain(self.serving.values())
            .map(|request| match request.then {
                Then::Fill(pages) | Then::Free(pages) => pages,
                Then::SwapIn(..) => 1,
                Then::Nothing => 0,
            });
        held.sum()
    }

    /// Serves what can be served; when the disk interrupts for that reason.
    fn start(&mut self, disk: &Disk, now: SimTime) -> Vec<SimTime> {
        let mut interrupts = Vec::new();
        while self.serving.len() < disk.width as usize
            && let Some(next) = self.next(disk, now)
        {
            let request = self.waiting.remove(next);
            let end = now + self.service(disk, &request);
            self.head = request.page + request.pages;
            self.serving.insert((end, next), request);
            interrupts.push(end);
        }
        interrupts.extend(self.anticipation.arm());
        interrupts
    }

    /// The number of the request that is served next.
    fn next(&mut self, disk: &Disk, now: SimTime) -> Option<u64> {
        let oldest = self.waiting.oldest_of_all()?;
        match disk.elevator {
            Elevator::Fifo => Some(oldest),
            Elevator::Scan => {
                let from = |page: u64| {
                    let kinds = [0, 1].map(|kind| self.waiting.above(kind, page));
                    kinds.into_iter().flatten().min().map(|(_, number)| number)
                };
                from(self.head).or_else(|| from(0))
            }
            Elevator::Deadline => Some(self.next_of_row(now)),
            Elevator::Anticipatory => {
                let is_busy = !self.serving.is_empty();
                self.anticipation.next(&self.waiting, is_busy, now)
            }
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
        let [reads, writes] = [0, 1].map(|kind| self.waiting.has(kind));
        self.row.writes = !reads || (writes && self.row.starved >= WRITES_STARVED);
        self.row.starved = match (self.row.writes, writes) {
            (false, true) => self.row.starved + 1,
            (false, false) => self.row.starved,
            (true, _) => 0,
        };
        self.row.length = 1;
        let kind = usize::from(self.row.writes);
        let oldest = self.waiting.oldest(kind).expect("a request waits");
        let is_late = self.waiting.since(oldest) + EXPIRE[kind] <= now;
        let next = if is_late { None } else { self.upwards(kind) };
        self.note(kind, next.unwrap_or(oldest))
    }

    /// The next read or write from where the last one began.
    fn upwards(&self, kind: usize) -> Option<u64> {
        let above = self.waiting.above(kind, self.row.at[kind]);
        above.map(|(_, number)| number)
    }

    fn note(&mut self, kind: usize, next: u64) -> u64 {
        self.row.at[kind] = self.waiting.request(next).page;
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

//! Disks with their caches, and the memory that all share.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use model::{Nanos, Rng, SimTime, TaskId};
use workload::{Cache, Memory, Workload};

use super::disk::{Drive, Request, Then};
use super::pages::{Order, Owner, Pages};
use super::{InterruptWork, Work};

/// Pages of tasks that are written in one go (`SWAP_CLUSTER_MAX`, `include/linux/swap.h`, Linux
/// 6.18).
const SWAP_CLUSTER: u64 = 32;
/// Most active pages that are looked at in one go, in clusters (`shrink_zone()`, `mm/vmscan.c`,
/// Linux 2.6.0).
const REFILL_MAX: u64 = 4 * SWAP_CLUSTER;
/// Tasks' pages are taken off the active list from this percentage on (the same file).
const SWAPS_FROM: u64 = 100;
/// The part of that which is always there (`vm_swappiness`, the same file).
const SWAPPINESS: u64 = 60;

/// Memory that is limited.
#[derive(Clone, Debug)]
pub(super) struct Frames {
    declared: Memory,
    /// Pages that are in use, are being filled, or are being written to make room.
    used: u64,
    /// Where on the swap disk each page of a task is that was written there.
    slots: BTreeMap<(Owner, u64), u64>,
    next_slot: u64,
    /// Active pages to look at, and pages to take until more of them become due.
    refill: u64,
    until_refill: u64,
    /// Those who wait until any page may have become free.
    pub waiters: Vec<TaskId>,
    /// Those who make room when memory is short.
    pub reclaimers: Vec<TaskId>,
}

/// Everything that is kept on disks and in memory.
#[derive(Clone, Debug)]
pub(super) struct Storage {
    pub drives: Vec<Drive>,
    /// The cache of each disk.
    pub caches: Vec<Pages>,
    /// Pages of the longest request of each disk.
    longest: Vec<u64>,
    /// Pages of tasks.
    pub anonymous: Pages,
    pub frames: Option<Frames>,
    /// Counts uses of pages.
    pub stamp: u64,
}

/// How a wish for memory ended.
pub(super) enum Room {
    /// It is there.
    Yes,
    /// Something must be written first: a request to a disk.
    After(usize, Request),
    /// Somebody else's writing or reading must end first.
    Later,
}

impl Storage {
    pub fn new(workload: &Workload, seed: u64) -> Self {
        let numbers = (0..).zip(&workload.disks);
        let has_two_lists = (workload.memory.as_ref()).is_some_and(|memory| memory.two_lists);
        let [cached, owned] = if has_two_lists {
            [Order::Cached, Order::Owned]
        } else {
            [Order::Use; 2]
        };
        Self {
            drives: numbers
                .map(|(number, _)| Drive::new(Rng::of_disk(seed, number)))
                .collect(),
            caches: (workload.disks.iter())
                .map(|_| Pages::new(cached))
                .collect(),
            longest: workload.disks.iter().map(|disk| disk.request).collect(),
            anonymous: Pages::new(owned),
            frames: workload.memory.clone().map(|declared| Frames {
                declared,
                used: 0,
                slots: BTreeMap::new(),
                next_slot: 0,
                refill: 0,
                until_refill: 0,
                waiters: Vec::new(),
                reclaimers: Vec::new(),
            }),
            stamp: 0,
        }
    }

    /// The next time at which a page is used.
    pub fn tick(&mut self) -> u64 {
        self.stamp += 1;
        self.stamp
    }

    /// Pages that nobody uses; `None` where memory is not limited.
    pub fn free(&self) -> Option<u64> {
        let frames = self.frames.as_ref()?;
        Some(frames.declared.pages.saturating_sub(frames.used))
    }

    /// Whether memory is so short that room should be made, and whether there is enough again.
    pub fn pressure(&self) -> (bool, bool) {
        let Some(frames) = &self.frames else {
            return (false, true);
        };
        let free = self.free().unwrap_or(u64::MAX);
        (free < frames.declared.low, free >= frames.declared.high)
    }

    /// Takes room for `pages` more pages of the cache of `disk`, or of tasks.
    pub fn take(
        &mut self,
        workload: &Workload,
        disk: Option<usize>,
        pages: u64,
        by: TaskId,
    ) -> Room {
        if let Some(disk) = disk
            && let Cache::Recent(Some(limit)) = workload.disks[disk].cache
        {
            while self.caches[disk].len() + pages > limit {
                if self.caches[disk].drop_oldest().is_some() {
                    self.give_back(1);
                } else if self.caches[disk].dirty() > 0 {
                    return self.wash(disk, by);
                } else {
                    break;
                }
            }
        }
        while self.free().is_some_and(|free| free < pages) {
            match self.evict(by) {
                Room::Yes => {}
                other => return other,
            }
        }
        if let Some(frames) = &mut self.frames {
            frames.used += pages;
        }
        Room::Yes
    }

    /// Takes room for `pages` more pages of the cache of `disk` if clean pages of caches suffice
    /// for that; whether they do.
    pub fn take_clean(&mut self, workload: &Workload, disk: usize, pages: u64) -> bool {
        if let Cache::Recent(Some(limit)) = workload.disks[disk].cache {
            while self.caches[disk].len() + pages > limit {
                if self.caches[disk].drop_oldest().is_none() {
                    return false;
                }
                self.give_back(1);
            }
        }
        while self.free().is_some_and(|free| free < pages) {
            let cached = self
                .caches
                .iter_mut()
                .filter(|pages| pages.oldest().is_some());
            let Some(oldest) = cached.min_by_key(|pages| pages.oldest()) else {
                return false;
            };
            oldest.drop_oldest();
            self.give_back(1);
        }
        if let Some(frames) = &mut self.frames {
            frames.used += pages;
        }
        true
    }

    /// So many pages are free again.
    pub fn give_back(&mut self, pages: u64) {
        if let Some(frames) = &mut self.frames {
            frames.used -= pages;
        }
    }

    /// Makes room: drops the page that goes next, or says what must be written first.
    pub fn evict(&mut self, by: TaskId) -> Room {
        self.refill();
        loop {
            let cached = (0..).zip(&self.caches);
            let cached = cached.filter_map(|(disk, pages)| Some((pages.oldest()?, Some(disk))));
            let own = self.anonymous.oldest().map(|stamp| (stamp, None));
            match cached.chain(own).min() {
                Some((_, Some(disk))) => {
                    let disk: usize = disk;
                    self.caches[disk].drop_oldest();
                    self.give_back(1);
                    return Room::Yes;
                }
                Some((_, None)) if self.anonymous.oldest_was_used() => {
                    let stamp = self.tick();
                    self.anonymous.raise_oldest(stamp);
                }
                Some((_, None)) => return self.swap_out(by),
                None if self.sink(SWAP_CLUSTER, true) => {}
                None => {
                    return match self.caches.iter().position(|pages| pages.dirty() > 0) {
                        Some(disk) => self.wash(disk, by),
                        None => Room::Later,
                    };
                }
            }
        }
    }

    /// Before each cluster of pages that is taken: looks at so many active pages that the active
    /// list stays two thirds of all (`shrink_zone()`, `mm/vmscan.c`, Linux 2.6.0).
    fn refill(&mut self) {
        let two_lists = (self.frames.as_mut()).filter(|frames| frames.declared.two_lists);
        let Some(frames) = two_lists else {
            return;
        };
        if frames.until_refill > 0 {
            frames.until_refill -= 1;
            return;
        }
        let all = self.caches.iter().chain([&self.anonymous]);
        let [inactive, active] = all.fold([0, 0], |sum, pages| {
            let lengths = pages.lengths();
            [sum[0] + lengths[0], sum[1] + lengths[1]]
        });
        frames.until_refill = SWAP_CLUSTER - 1;
        frames.refill += SWAP_CLUSTER * active / ((inactive | 1) * 2) + 1;
        if frames.refill > SWAP_CLUSTER {
            let count = frames.refill.min(REFILL_MAX);
            frames.refill -= count;
            let mapped = self.anonymous.len() * 100 / frames.declared.pages;
            self.sink(count, mapped / 2 + SWAPPINESS >= SWAPS_FROM);
        }
    }

    /// Looks at the first `count` active pages, which become inactive or stay; whether there was
    /// one. `swaps`: tasks' pages may become inactive.
    fn sink(&mut self, count: u64, swaps: bool) -> bool {
        let mut has_some = false;
        for _ in 0..count {
            let all = self.caches.iter_mut().chain([&mut self.anonymous]);
            let oldest = all.filter(|pages| pages.oldest_active().is_some());
            let Some(pages) = oldest.min_by_key(|pages| pages.oldest_active()) else {
                break;
            };
            self.stamp += 1;
            pages.sink_oldest(self.stamp, swaps);
            has_some = true;
        }
        has_some
    }

    fn swap_out(&mut self, by: TaskId) -> Room {
        let frames = self.frames.as_mut().expect("only limited memory is short");
        let first = frames.next_slot;
        let mut pages = 0;
        let anonymous = &mut self.anonymous;
        while pages < SWAP_CLUSTER
            && anonymous.oldest().is_some()
            && !anonymous.oldest_was_used()
            && let Some(key) = anonymous.drop_oldest()
        {
            frames.slots.insert(key, first + pages);
            pages += 1;
        }
        frames.next_slot += pages;
        let request = Request {
            page: first,
            pages,
            writes: true,
            is_sync: false,
            then: Then::Free(pages),
            by,
            waiters: vec![by],
        };
        Room::After(frames.declared.swap as usize, request)
    }

    fn wash(&mut self, disk: usize, by: TaskId) -> Room {
        let most = self.longest[disk];
        let run = self.caches[disk].wash(most, &mut self.stamp, |_| true);
        let run = run.expect("the caller has seen a dirty page");
        Room::After(disk, writing(run, by, true))
    }

    /// Where on the swap disk a page of a task is; from now on it is nowhere.
    pub fn leave_swap(&mut self, key: (Owner, u64)) -> Option<u64> {
        self.frames.as_mut()?.slots.remove(&key)
    }

    /// A task is gone, and with it its memory.
    pub fn forget(&mut self, task: TaskId) {
        for drive in &mut self.drives {
            drive.leave(task);
        }
        let owner = task.0;
        if self.frames.is_none() {
            return;
        }
        let pages = self.anonymous.forget(owner);
        self.give_back(pages);
        let frames = self.frames.as_mut().expect("it has been there");
        let slots: Vec<_> = (frames.slots.range((owner, 0)..=(owner, u64::MAX)))
            .map(|(&key, _)| key)
            .collect();
        slots.iter().for_each(|key| {
            frames.slots.remove(key);
        });
    }

    /// `task` has written pages of a cache, for which room for `taken` pages was taken.
    pub fn soil(&mut self, disk: usize, run: Range<u64>, (task, taken): (TaskId, u64)) {
        let cache = &mut self.caches[disk];
        let before = cache.len();
        run.for_each(|page| cache.soil((0, page), task));
        // Making room may have pushed some of these very pages out.
        let new = cache.len() - before;
        if let Some(frames) = &mut self.frames {
            frames.used = frames.used - taken + new;
        }
    }

    /// Whether every page that is in use is somewhere: for tests.
    #[cfg(test)]
    pub fn check(&self) -> Result<(), String> {
        let Some(frames) = &self.frames else {
            return Ok(());
        };
        let cached: u64 = self.caches.iter().map(Pages::len).sum();
        let own = self.anonymous.len();
        let under_way: u64 = self.drives.iter().map(Drive::pages_under_way).sum();
        let counted = cached + own + under_way;
        let used = frames.used;
        if counted == used && used <= frames.declared.pages {
            return Ok(());
        }
        Err(format!(
            "{used} pages are in use, {cached} cached, {own} of tasks, {under_way} under way"
        ))
    }

    /// The request has ended.
    fn settle(&mut self, disk: usize, request: &Request, is_alive: impl Fn(Owner) -> bool) {
        match request.then {
            Then::Nothing => {}
            Then::Fill(taken) => {
                let before = self.caches[disk].len();
                let is_used = !request.waiters.is_empty();
                for page in request.page..request.page + request.pages {
                    let stamp = self.tick();
                    if is_used {
                        self.caches[disk].put((0, page), stamp);
                    } else {
                        self.caches[disk].bring((0, page), stamp);
                    }
                }
                // Somebody else may have brought some of them meanwhile.
                let new = self.caches[disk].len() - before;
                self.give_back(taken - new);
            }
            Then::Free(pages) => self.give_back(pages),
            Then::SwapIn(owner, page) => {
                if is_alive(owner) {
                    let stamp = self.tick();
                    self.anonymous.put((owner, page), stamp);
                } else {
                    self.give_back(1);
                }
            }
        }
    }
}

/// A request that reads pages for a task.
pub(super) fn fetching(run: Range<u64>, then: Then, by: TaskId, waits: bool) -> Request {
    Request {
        writes: false,
        is_sync: true,
        then,
        ..writing(run, by, waits)
    }
}

/// A request that writes pages of a cache; `waits`: whether the task waits for it.
pub(super) fn writing(run: Range<u64>, by: TaskId, waits: bool) -> Request {
    Request {
        page: run.start,
        pages: run.end - run.start,
        writes: true,
        is_sync: false,
        then: Then::Nothing,
        by,
        waiters: if waits { vec![by] } else { Vec::new() },
    }
}

impl Work {
    /// The number of the interrupt source that a disk is.
    pub(super) fn disk_source(&self, disk: usize) -> usize {
        self.sources.len() + self.arrivals.len() + disk
    }

    /// A disk interrupts: a request has ended, or it has waited for one long enough.
    pub(super) fn disk_interrupt(&mut self, disk: usize, now: SimTime) -> InterruptWork {
        let workload = Arc::clone(&self.workload);
        let declared = &workload.disks[disk];
        let (ended, next) = self.storage.drives[disk].interrupt(declared, now);
        let mut interrupt = InterruptWork {
            steal: Nanos::ZERO,
            wakes: Vec::new(),
            next,
        };
        let Some(request) = ended else {
            return interrupt;
        };
        interrupt.steal = self.storage.drives[disk].cost(declared);
        let tasks = &self.tasks;
        let is_alive = |owner: Owner| !tasks[owner as usize].has_exited;
        self.storage.settle(disk, &request, is_alive);
        for task in request.waiters {
            let state = &mut self.tasks[task.index()];
            state.requests -= 1;
            if state.requests == 0 {
                interrupt.wakes.push(task);
            }
        }
        if let Some(frames) = &mut self.storage.frames {
            interrupt.wakes.append(&mut frames.waiters);
        }
        interrupt
    }
}

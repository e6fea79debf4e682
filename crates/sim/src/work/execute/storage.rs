//! Reading, writing, and using memory.

use std::ops::Range;

use model::{EventKind, TaskId};
use workload::Cache;

use super::{Executor, Next};
use crate::work::Action;
use crate::work::channel::Wakes;
use crate::work::disk::{Request, Then};
use crate::work::storage::{Room, fetching, writing};
use crate::work::task::{Reading, Touch, Transfer, Waits};

impl Executor<'_> {
    /// Gives a request to a disk.
    fn submit(&mut self, disk: usize, request: Request) {
        let now = self.now;
        for waiter in &request.waiters {
            self.work.tasks[waiter.index()].requests += 1;
        }
        let declared = &self.work.workload.disks[disk];
        let (counter, cpu) = (declared.counters[usize::from(request.writes)], declared.cpu);
        let interrupts = self.work.storage.drives[disk].submit(declared, request, now);
        self.record(EventKind::Count, u64::from(counter), 1);
        let source = self.work.disk_source(disk);
        let begins = (interrupts.into_iter()).map(|at| Action::Interrupt { source, cpu, at });
        self.state().pending.extend(begins);
    }

    /// Leaves the CPU until the requests are done that the task waits for.
    fn await_disk(&mut self, of: usize) -> Next {
        Next::Again(self.block(Waits::Disk { of }))
    }

    /// Room for pages, or what the task does until it tries again.
    fn take_pages(&mut self, disk: Option<usize>, pages: u64) -> Result<(), Next> {
        let workload = std::sync::Arc::clone(&self.work.workload);
        let task = self.task;
        let room = self.work.storage.take(&workload, disk, pages, task);
        let room = self.await_room(room);
        if self.work.storage.pressure().0
            && let Some(frames) = &mut self.work.storage.frames
        {
            let tasks = std::mem::take(&mut frames.reclaimers);
            self.wake(Wakes { tasks, sync: false });
        }
        room
    }

    fn await_room(&mut self, room: Room) -> Result<(), Next> {
        match room {
            Room::Yes => return Ok(()),
            Room::After(disk, request) => self.submit(disk, request),
            Room::Later => {
                let task = self.task;
                let frames = self.work.storage.frames.as_mut();
                frames
                    .expect("only limited memory is short")
                    .waiters
                    .push(task);
            }
        }
        Err(Next::Again(self.block(Waits::Memory)))
    }

    /// What is left of a transfer, for which the task may have waited.
    fn rest(&mut self, disk: usize, asked: Transfer, waited: Option<Waits>) -> Transfer {
        let rest = self.state().transfer.unwrap_or(asked);
        match waited {
            Some(Waits::Disk { .. }) => self.advance(disk, rest),
            Some(_) => rest,
            None => asked,
        }
    }

    /// Reads what is `asked` for, or goes on with it.
    pub(super) fn read(&mut self, disk: usize, asked: Transfer, waited: Option<Waits>) -> Next {
        let mut transfer = self.rest(disk, asked, waited);
        if waited.is_none() {
            self.read_ahead(disk, transfer);
        }
        while transfer.pages > 0 {
            let first = transfer.page;
            let end = first + transfer.pages.min(self.work.workload.disks[disk].request);
            let (missing, then) = match self.work.workload.disks[disk].cache {
                Cache::None => (Some(first..end), Then::Nothing),
                Cache::Chance(percent) => {
                    let found = self.state().stepper.random(100) < u64::from(percent);
                    ((!found).then_some(first..end), Then::Nothing)
                }
                Cache::Recent(_) => {
                    let missing = self.missing(disk, first, end);
                    let pages = missing.as_ref().map_or(0, |run| run.end - run.start);
                    if let Some(run) = &missing
                        && self.join_reads(disk, run)
                    {
                        return Next::Again(self.block(Waits::Memory));
                    }
                    if pages > 0
                        && let Err(wait) = self.take_pages(Some(disk), pages)
                    {
                        return wait;
                    }
                    (missing, Then::Fill(pages))
                }
            };
            if let Some(run) = missing {
                self.submit(disk, fetching(run, then, self.task, true));
                return self.await_disk(disk);
            }
            transfer = self.advance(disk, transfer);
        }
        self.state().transfer = None;
        Next::Go
    }

    /// Waits together with those who wait for a read under way of some of these pages; whether
    /// there is one. Only where something is read ahead.
    fn join_reads(&mut self, disk: usize, run: &Range<u64>) -> bool {
        if self.work.workload.disks[disk].ahead == 0 {
            return false;
        }
        let task = self.task;
        let joined = self.work.storage.drives[disk].join_reads(task, run);
        self.state().requests += joined;
        joined > 0
    }

    /// A task that reads on where it has read finds its pages on their way, and when fewer than a
    /// window are on their way beyond them, the next window is read: nobody waits for it
    /// (`page_cache_async_ra()`, `mm/readahead.c`, Linux 6.18). Nothing is read ahead where memory
    /// would have to be written first.
    fn read_ahead(&mut self, disk: usize, transfer: Transfer) {
        let workload = std::sync::Arc::clone(&self.work.workload);
        let declared = &workload.disks[disk];
        if declared.ahead == 0 || !matches!(declared.cache, Cache::Recent(_)) {
            return;
        }
        let next = transfer.page + transfer.pages;
        let readings = &mut self.state().readings;
        let Some(reading) = readings.iter_mut().find(|reading| reading.disk == disk) else {
            let until = next;
            readings.push(Reading { disk, next, until });
            return;
        };
        if std::mem::replace(&mut reading.next, next) != transfer.page {
            reading.until = next;
            return;
        }
        let mut first = reading.until.max(transfer.page);
        if first >= next + declared.ahead {
            return;
        }
        let until = (first.max(next) + declared.ahead).min(declared.pages);
        reading.until = until;
        let task = self.task;
        while first < until {
            // What the task waits for is a request of its own.
            let border = if first < next { next } else { until };
            let run = first..(first + declared.request).min(border);
            first = run.end;
            let pages = run.end - run.start;
            if self.missing(disk, run.start, run.end).is_none()
                || !self.work.storage.take_clean(&workload, disk, pages)
            {
                continue;
            }
            self.submit(disk, fetching(run, Then::Fill(pages), task, false));
        }
    }

    /// One request's worth of a transfer is done.
    fn advance(&mut self, disk: usize, transfer: Transfer) -> Transfer {
        let done = transfer.pages.min(self.work.workload.disks[disk].request);
        let rest = Transfer {
            page: transfer.page + done,
            pages: transfer.pages - done,
        };
        self.state().transfer = Some(rest);
        rest
    }

    /// From the first page that is not cached to the last one; those that are have been used.
    fn missing(&mut self, disk: usize, first: u64, end: u64) -> Option<Range<u64>> {
        let storage = &mut self.work.storage;
        let mut missing: Option<Range<u64>> = None;
        for page in first..end {
            if storage.caches[disk].has((0, page)) {
                let stamp = storage.tick();
                storage.caches[disk].put((0, page), stamp);
            } else {
                let start = missing.map_or(page, |run| run.start);
                missing = Some(start..page + 1);
            }
        }
        missing
    }

    /// Writes what is `asked` for, or goes on with it.
    pub(super) fn write(&mut self, disk: usize, asked: Transfer, waited: Option<Waits>) -> Next {
        let mut transfer = self.rest(disk, asked, waited);
        let task = self.task;
        while transfer.pages > 0 {
            let first = transfer.page;
            let end = first + transfer.pages.min(self.work.workload.disks[disk].request);
            match self.work.workload.disks[disk].cache {
                Cache::None => {
                    let request = Request {
                        is_sync: true,
                        ..writing(first..end, task, true)
                    };
                    self.submit(disk, request);
                    return self.await_disk(disk);
                }
                Cache::Chance(_) => self.submit(disk, writing(first..end, task, false)),
                Cache::Recent(_) => {
                    let missing = self.missing(disk, first, end);
                    let pages = missing.map_or(0, |run| run.end - run.start);
                    if pages > 0
                        && let Err(wait) = self.take_pages(Some(disk), pages)
                    {
                        return wait;
                    }
                    let storage = &mut self.work.storage;
                    storage.soil(disk, first..end, (task, pages));
                }
            }
            transfer = self.advance(disk, transfer);
        }
        // Who writes faster than the disk is held back (`balance_dirty_pages()`).
        let limit = self.work.workload.disks[disk].dirty;
        if self.work.storage.caches[disk].dirty() > limit {
            self.write_run(disk, false, |_| true);
            return Next::Again(self.block(Waits::Memory));
        }
        self.state().transfer = None;
        Next::Go
    }

    /// Writes a row of dirty pages, for which the task will wait; whether there was one.
    /// `is_sync`: for `fsync`.
    fn write_run(&mut self, disk: usize, is_sync: bool, whose: impl Fn(TaskId) -> bool) -> bool {
        let most = self.work.workload.disks[disk].request;
        let storage = &mut self.work.storage;
        let cache = &mut storage.caches[disk];
        let Some(run) = cache.wash(most, &mut storage.stamp, whose) else {
            return false;
        };
        let task = self.task;
        let request = Request {
            is_sync,
            ..writing(run, task, true)
        };
        self.submit(disk, request);
        true
    }

    /// Writes dirty pages and waits: those of the task, of the disk, and what is under way.
    pub(super) fn sync(
        &mut self,
        disk: usize,
        (all, joins): (bool, bool),
        waited: Option<Waits>,
    ) -> Next {
        if waited.is_some() {
            return Next::Go;
        }
        let task = self.task;
        if joins {
            let drive = &mut self.work.storage.drives[disk];
            let joined = drive.join_writes(task, |request| all || request.by == task);
            self.state().requests += joined;
        }
        while self.write_run(disk, joins, |owner| all || owner == task) {}
        if self.state().requests == 0 {
            return Next::Go;
        }
        self.await_disk(disk)
    }

    /// Uses `pages` pages, one after the other, or each drawn from the first `of`.
    pub(super) fn touch(&mut self, pages: u64, of: Option<u64>, waited: Option<Waits>) -> Next {
        if let Some(Waits::Disk { .. }) = waited {
            self.state().touch.go_on();
        }
        while self.state().touch.done < pages {
            let page = match (self.state().touch, of) {
                (
                    Touch {
                        page: Some(kept), ..
                    },
                    _,
                ) => kept,
                (Touch { done, .. }, None) => done,
                (_, Some(of)) => self.state().stepper.random(of),
            };
            if let Some(next) = self.touch_page(page) {
                return next;
            }
            self.state().touch.go_on();
        }
        self.state().touch = Touch::default();
        Next::Go
    }

    /// Uses a page of the task's memory; what the task does until it is there.
    fn touch_page(&mut self, page: u64) -> Option<Next> {
        let key = (self.task.0, page);
        let storage = &mut self.work.storage;
        if storage.anonymous.has(key) {
            let stamp = storage.tick();
            storage.anonymous.put(key, stamp);
            return None;
        }
        self.state().touch.page = Some(page);
        if let Err(wait) = self.take_pages(None, 1) {
            return Some(wait);
        }
        if let Some(slot) = self.work.storage.leave_swap(key) {
            let memory = self.work.workload.memory.as_ref();
            let swap = memory.expect("the front end asks for it").swap as usize;
            let then = Then::SwapIn(key.0, key.1);
            self.submit(swap, fetching(slot..slot + 1, then, self.task, true));
            return Some(self.await_disk(swap));
        }
        let stamp = self.work.storage.tick();
        self.work.storage.anonymous.put(key, stamp);
        None
    }

    pub(super) fn reclaim(&mut self, waited: Option<Waits>) -> Next {
        let task = self.task;
        if waited.is_none() && !self.work.storage.pressure().0 {
            return self.await_pressure();
        }
        while !self.work.storage.pressure().1 {
            let room = self.work.storage.evict(task);
            if let Err(wait) = self.await_room(room) {
                return wait;
            }
            // Those who wait for memory find some now.
            if let Some(frames) = &mut self.work.storage.frames {
                let tasks = std::mem::take(&mut frames.waiters);
                self.wake(Wakes { tasks, sync: false });
            }
        }
        Next::Go
    }

    fn await_pressure(&mut self) -> Next {
        let task = self.task;
        let frames = self.work.storage.frames.as_mut();
        frames
            .expect("the front end asks for it")
            .reclaimers
            .push(task);
        Next::Again(self.block(Waits::Pressure))
    }

    /// The task is about to exit: others get its memory.
    pub(super) fn leave_memory(&mut self) {
        let task = self.task;
        self.work.storage.forget(task);
        if let Some(frames) = &mut self.work.storage.frames {
            let tasks = std::mem::take(&mut frames.waiters);
            self.wake(Wakes { tasks, sync: false });
        }
    }
}

//! Disks, their cache, and memory: the tables that declare them. docs/workload.md has the exact
//! meaning.

use crate::{Dist, Expr};
use model::{CpuId, Nanos};

/// Bytes of a page, the unit of caches and memory (x86-64).
pub const PAGE: u64 = 4096;

/// Which request a disk serves next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Elevator {
    /// The one that has waited longest.
    Fifo,
    /// The next one upwards from where the last one ended, then from the lowest again.
    Scan,
    /// Reads before writes, upwards, in rows of up to 16 requests of one kind; writes after two
    /// rows of reads. A row begins with a read that has waited for 500 ms or a write that has for 5
    /// s.
    Deadline,
    /// Linux 2.6's first: batches of reads and of writes by time, and after a read the disk may
    /// wait for the next one of the same task.
    Anticipatory,
}

/// Cache of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cache {
    /// Nothing.
    None,
    /// Each read is found with this chance in percent; writes are queued and nobody waits.
    Chance(u8),
    /// The pages that were used last, so many at most; `None`: as many as memory has room for.
    Recent(Option<u64>),
}

/// `[disk.D]`
#[derive(Clone, Debug, PartialEq)]
pub struct Disk {
    /// Its name.
    pub name: String,
    /// Time that each request takes, besides the others.
    pub base: Dist,
    /// Time of a seek across the whole disk; one across the share `x` takes its square root's
    /// share of that, and one to where the last request ended takes nothing.
    pub seek: Nanos,
    /// Bytes a second; `None`: a transfer takes no time.
    pub bandwidth: Option<u64>,
    /// Pages that there are.
    pub pages: u64,
    /// Pages of the longest request, 1 or more.
    pub request: u64,
    /// Pages that are read ahead of a task that reads on where it has read; 0: none.
    pub ahead: u64,
    /// Which request is next.
    pub elevator: Elevator,
    /// Requests served at a time, 1 or more.
    pub width: u32,
    /// The disk's cache in memory.
    pub cache: Cache,
    /// Dirty pages from which on a writer writes back itself.
    pub dirty: u64,
    /// Whether `fsync` writes every dirty page of the disk, and not the task's own only.
    pub sync_all: bool,
    /// The CPU that takes the interrupt at a request's end.
    pub cpu: CpuId,
    /// CPU time that the interrupt takes.
    pub cost: Dist,
    /// Indexes of the counters of requests: reads and writes.
    pub counters: [u32; 2],
    /// Line in the file, from one.
    pub line: u32,
}

/// `[mem]`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Memory {
    /// Pages that there are.
    pub pages: u64,
    /// The disk to which pages of tasks are written, by its index.
    pub swap: u32,
    /// Free pages below which `reclaim` begins.
    pub low: u64,
    /// Free pages at which it ends.
    pub high: u64,
    /// Whether pages that are used again are kept apart from those that are not, on an active and
    /// an inactive list as in Linux 2.6; else the page goes that was not used for the longest time.
    pub two_lists: bool,
    /// Line in the file, from one.
    pub line: u32,
}

/// Where on a disk a task reads or writes.
#[derive(Clone, Debug, PartialEq)]
pub enum Where {
    /// Behind its last such operation; first at a place that is drawn.
    Next,
    /// At a place that is drawn.
    Anywhere,
    /// At this byte.
    At(Expr),
}

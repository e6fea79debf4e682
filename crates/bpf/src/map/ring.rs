//! Ring buffers that user space maps, in the kernel's layout: a page with the consumer's position,
//! a page with the producer's, and twice the data, so that a record may run over their end.
//!
//! User space may write all of it, so nothing that is read from there is believed: the producer's
//! position of a ring buffer and what is reserved are kept here.
//!
//! Source: `kernel/bpf/ringbuf.c`, kernel 6.18.

use std::collections::VecDeque;

use crate::memory::Pages;
use crate::{Errno, Memory, OutOfMemory};

/// Bytes before each record: its length with two flags, and a word for the kernel.
const HEADER: u64 = 8;
const BUSY: u32 = 1 << 31;
const DISCARDED: u32 = 1 << 30;
/// Greatest length of a record (`RINGBUF_MAX_RECORD_SZ`).
const MAX_RECORD: u64 = (u32::MAX / 4) as u64;
/// Greatest length of a sample from user space: that of a dynptr (`DYNPTR_MAX_SIZE`).
const MAX_SAMPLE: u32 = (1 << 24) - 1;

/// `BPF_RB_NO_WAKEUP` and `BPF_RB_FORCE_WAKEUP` (include/uapi/linux/bpf.h).
pub(crate) const NO_WAKEUP: u64 = 1;
pub(crate) const FORCE_WAKEUP: u64 = 2;

/// A record between the first unfinished one and the producer.
#[derive(Clone, Debug)]
struct Record {
    position: u64,
    busy: bool,
}

/// A ring buffer, or with the roles exchanged a user ring buffer.
#[derive(Clone, Debug)]
pub(crate) struct Ring {
    base: u64,
    size: u64,
    /// Where programs get a sample's dynptr, 16 bytes.
    pub(crate) dynptr: u64,
    produced: u64,
    records: VecDeque<Record>,
    /// A program reads samples now.
    pub(crate) draining: bool,
    /// Who polls is to be woken.
    pub(crate) notified: bool,
}

/// What is next in a user ring buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Nothing, or nothing that is finished.
    Nothing,
    /// A record that user space took back; it has been skipped.
    Discarded,
    /// Bytes at an address; then [`Ring::release`].
    Sample(u64, u64),
}

impl Ring {
    /// Bytes of a ring with `size` bytes of data.
    pub(crate) const fn bytes(size: u64) -> u64 {
        2 * Pages::SIZE + 2 * size
    }

    /// A ring at `base`, where [`Ring::bytes`] bytes are, all zero.
    pub(crate) fn new(memory: &mut Memory, base: u64, size: u64) -> Result<Self, OutOfMemory> {
        Ok(Self {
            base,
            size,
            dynptr: memory.alloc_object(16, 16)?,
            produced: 0,
            records: VecDeque::new(),
            draining: false,
            notified: false,
        })
    }

    const fn mask(&self) -> u64 {
        self.size - 1
    }

    const fn data(&self, position: u64) -> u64 {
        self.base + 2 * Pages::SIZE + (position & self.mask())
    }

    fn consumer(&self, memory: &Memory) -> u64 {
        memory.load_u64(self.base)
    }

    fn producer(&self, memory: &Memory) -> u64 {
        memory.load_u64(self.base + Pages::SIZE)
    }

    /// Bytes from the consumer to the producer, by what user space says.
    fn filled(&self, memory: &Memory) -> u64 {
        self.producer(memory).wrapping_sub(self.consumer(memory))
    }

    /// Whether who polls the ring finds something to read.
    pub(crate) fn has_data(&self, memory: &Memory) -> bool {
        self.filled(memory) != 0
    }

    /// Whether who polls the user ring finds room.
    pub(crate) fn has_room(&self, memory: &Memory) -> bool {
        self.filled(memory) < self.size
    }

    const fn room(len: u64) -> u64 {
        (len + HEADER).next_multiple_of(8)
    }

    /// The address of a new record of `len` bytes; `None` when it does not fit.
    pub(crate) fn reserve(&mut self, memory: &mut Memory, len: u64) -> Option<u64> {
        if len > MAX_RECORD || Self::room(len) > self.size {
            return None;
        }
        while self.records.pop_front_if(|record| !record.busy).is_some() {}
        let end = self.produced + Self::room(len);
        let first = self.records.front();
        let pending = first.map_or(self.produced, |record| record.position);
        let consumed = self.consumer(memory);
        if end.wrapping_sub(consumed) > self.mask() || end - pending > self.mask() {
            return None;
        }
        let header = self.data(self.produced);
        memory.poke_u64(header, u64::from(len as u32 | BUSY));
        self.records.push_back(Record {
            position: self.produced,
            busy: true,
        });
        self.produced = end;
        memory.poke_u64(self.base + Pages::SIZE, end);
        Some(header + HEADER)
    }

    /// Ends a reservation. False when `address` is no reserved record.
    pub(crate) fn finish(
        &mut self,
        memory: &mut Memory,
        address: u64,
        discard: bool,
        flags: u64,
    ) -> bool {
        let header = address.wrapping_sub(HEADER);
        let offset = header.wrapping_sub(self.data(0));
        if offset >= self.size {
            return false;
        }
        let lap = self.produced & !self.mask();
        let here = lap + offset;
        let position = if here < self.produced {
            Some(here)
        } else {
            here.checked_sub(self.size)
        };
        let Some(position) = position else {
            return false;
        };
        let record = self
            .records
            .binary_search_by_key(&position, |it| it.position);
        let Some(record) = record
            .ok()
            .map(|at| &mut self.records[at])
            .filter(|it| it.busy)
        else {
            return false;
        };
        record.busy = false;
        let len = memory.load_u32(header) as u32 & !(BUSY | DISCARDED);
        let flag = if discard { DISCARDED } else { 0 };
        memory.poke_u32(header, len | flag);
        let waits_here = self.consumer(memory) & self.mask() == offset;
        if flags & FORCE_WAKEUP != 0 || waits_here && flags & NO_WAKEUP == 0 {
            self.notified = true;
        }
        true
    }

    /// `bpf_ringbuf_query`: available bytes, size, read position, write position.
    pub(crate) fn query(&self, memory: &Memory, what: u64) -> u64 {
        match what {
            0 => self.filled(memory),
            1 => self.size,
            2 => self.consumer(memory),
            3 => self.producer(memory),
            _ => 0,
        }
    }

    /// What user space has written next.
    ///
    /// # Errors
    /// [`Errno::EINVAL`] and [`Errno::E2BIG`] for what no library writes.
    pub(crate) fn next(&self, memory: &mut Memory) -> Result<Next, Errno> {
        let (produced, consumed) = (self.producer(memory), self.consumer(memory));
        if !produced.is_multiple_of(8) {
            return Err(Errno::EINVAL);
        }
        if consumed >= produced {
            return Ok(Next::Nothing);
        }
        let header = memory.load_u32(self.data(consumed)) as u32;
        let len = header & !(BUSY | DISCARDED);
        let room = Self::room(len.into());
        if room > produced - consumed {
            return Err(Errno::EINVAL);
        }
        if room > self.size || len > MAX_SAMPLE {
            return Err(Errno::E2BIG);
        }
        if header & BUSY != 0 {
            return Ok(Next::Nothing);
        }
        if header & DISCARDED != 0 {
            self.release(memory, len.into());
            return Ok(Next::Discarded);
        }
        // Libraries find the sample in this way, too.
        let sample = self.data(consumed.wrapping_add(HEADER));
        Ok(Next::Sample(sample, len.into()))
    }

    /// The consumer goes on behind a sample of `len` bytes.
    pub(crate) fn release(&self, memory: &mut Memory, len: u64) {
        let consumed = self.consumer(memory);
        memory.poke_u64(self.base, consumed.wrapping_add(Self::room(len)));
    }
}

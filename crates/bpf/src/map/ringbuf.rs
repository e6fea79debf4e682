//! Ring buffers: records from programs to the one who reads them.
//!
//! A record is a block of its own, so that a record never wraps around; what is free is counted
//! as the kernel counts it (Linux 6.18, kernel/bpf/ringbuf.c): 8 bytes of header, rounded up to 8,
//! and nothing is free before the reader has read it.

use std::collections::{BTreeMap, VecDeque};

use crate::Memory;

/// Bytes before each record.
const HEADER: u64 = 8;

/// Greatest length of a record: the header keeps two bits of 32 for itself.
const MAX_RECORD: u64 = (u32::MAX / 4) as u64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RingState {
    /// Reserved by a program that has not submitted it yet.
    Busy,
    Submitted,
    Discarded,
}

#[derive(Clone, Debug)]
struct Record {
    address: u64,
    len: u64,
    state: RingState,
}

/// A ring buffer.
#[derive(Clone, Debug)]
pub(crate) struct Ringbuf {
    capacity: u64,
    produced: u64,
    consumed: u64,
    records: VecDeque<Record>,
    /// Records that were read so far: the number of the first one in `records`.
    first: usize,
    /// Numbers of the reserved records, by address.
    busy: BTreeMap<u64, usize>,
}

impl Ringbuf {
    pub(crate) fn new(capacity: u32) -> Self {
        let capacity = u64::from(capacity);
        Self {
            capacity,
            produced: 0,
            consumed: 0,
            records: VecDeque::new(),
            first: 0,
            busy: BTreeMap::new(),
        }
    }

    const fn room(len: u64) -> u64 {
        (len + HEADER).next_multiple_of(8)
    }

    /// The address of a new record of `len` bytes; `None` when it does not fit.
    pub(crate) fn reserve(&mut self, memory: &mut Memory, len: u64) -> Option<u64> {
        let fits =
            len <= MAX_RECORD && self.produced - self.consumed + Self::room(len) <= self.capacity;
        let address = if fits {
            memory.alloc_map(len).ok()?
        } else {
            return None;
        };
        self.produced += Self::room(len);
        self.busy.insert(address, self.first + self.records.len());
        self.records.push_back(Record {
            address,
            len,
            state: RingState::Busy,
        });
        Some(address)
    }

    /// Ends a reservation. Returns false when `address` is no reserved record.
    pub(crate) fn finish(&mut self, address: u64, discard: bool) -> bool {
        let Some(number) = self.busy.remove(&address) else {
            return false;
        };
        let state = if discard {
            RingState::Discarded
        } else {
            RingState::Submitted
        };
        self.records[number - self.first].state = state;
        true
    }

    /// Takes out all records up to the first that is still reserved.
    pub(crate) fn drain(&mut self, memory: &mut Memory) -> Vec<Vec<u8>> {
        let mut taken = Vec::new();
        while let Some(record) = self.records.pop_front_if(|r| r.state != RingState::Busy) {
            self.first += 1;
            self.consumed += Self::room(record.len);
            if record.state == RingState::Submitted {
                let bytes = memory.bytes(record.address, record.len);
                taken.push(bytes.expect("records lie in the region").to_vec());
            }
            memory.free_map(record.address, record.len);
        }
        taken
    }

    /// `bpf_ringbuf_query`: available bytes, size, read position, write position.
    pub(crate) const fn query(&self, what: u64) -> u64 {
        match what {
            0 => self.produced - self.consumed,
            1 => self.capacity,
            2 => self.consumed,
            3 => self.produced,
            _ => 0,
        }
    }
}

//! Queues and stacks: values without keys.

use super::shape::Shape;
use crate::{Errno, Memory, OutOfMemory};

/// A ring of values; a stack takes from the end where a queue takes from the beginning.
#[derive(Clone, Debug)]
pub(crate) struct ValueQueue {
    base: u64,
    capacity: u64,
    head: u64,
    len: u64,
    last_in_first_out: bool,
}

/// `BPF_EXIST` on a push: the oldest value makes room.
const OVERWRITE: u64 = 2;

impl ValueQueue {
    pub(crate) fn new(
        memory: &mut Memory,
        shape: &Shape,
        capacity: u32,
        last_in_first_out: bool,
    ) -> Result<Self, OutOfMemory> {
        let capacity = u64::from(capacity);
        let base = memory.alloc_map(capacity.saturating_mul(shape.stride))?;
        Ok(Self {
            base,
            capacity,
            head: 0,
            len: 0,
            last_in_first_out,
        })
    }

    pub(crate) fn free(&self, memory: &mut Memory, shape: &Shape) {
        memory.free_map(self.base, self.capacity * shape.stride);
    }

    /// Appends `value`. When full: an error, or with `BPF_EXIST` the oldest leaves.
    pub(crate) fn push(
        &mut self,
        memory: &mut Memory,
        shape: &Shape,
        value: &[u8],
        flags: u64,
    ) -> Result<(), Errno> {
        if flags != 0 && flags != OVERWRITE {
            return Err(Errno::EINVAL);
        }
        if self.len == self.capacity {
            if flags != OVERWRITE || self.capacity == 0 {
                return Err(Errno::E2BIG);
            }
            self.head = (self.head + 1) % self.capacity;
            self.len -= 1;
        }
        shape.put(memory, self.place(shape, self.len), value);
        self.len += 1;
        Ok(())
    }

    /// The address of the value that is next to leave.
    pub(crate) const fn peek(&self, shape: &Shape) -> Result<u64, Errno> {
        if self.len == 0 {
            return Err(Errno::ENOENT);
        }
        Ok(self.place(
            shape,
            if self.last_in_first_out {
                self.len - 1
            } else {
                0
            },
        ))
    }

    /// As [`ValueQueue::peek`], and takes it out. Its bytes stay until the next push.
    pub(crate) const fn pop(&mut self, shape: &Shape) -> Result<u64, Errno> {
        let address = self.peek(shape);
        if address.is_ok() {
            self.len -= 1;
            if !self.last_in_first_out {
                self.head = (self.head + 1) % self.capacity;
            }
        }
        address
    }

    const fn place(&self, shape: &Shape, nth: u64) -> u64 {
        self.base + (self.head + nth) % self.capacity * shape.stride
    }
}

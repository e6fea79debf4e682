//! Arrays: all values exist from the beginning, in one block.

use super::shape::Shape;
use crate::{Errno, Memory, OutOfMemory};

/// The values of an array or per-CPU array: the copies of one CPU lie together.
#[derive(Clone, Debug)]
pub(crate) struct Array {
    base: u64,
    count: u32,
    frozen: bool,
}

impl Array {
    /// Allocates `count` values for each copy; in the read-only half if `frozen`.
    pub(crate) fn new(
        memory: &mut Memory,
        shape: &Shape,
        count: u32,
        frozen: bool,
    ) -> Result<Self, OutOfMemory> {
        let values = u64::from(count) * shape.copies;
        let bytes = values.saturating_mul(shape.stride);
        let base = if frozen {
            memory.alloc_kernel(bytes, 16)
        } else {
            memory.alloc_map(bytes)
        }?;
        Ok(Self {
            base,
            count,
            frozen,
        })
    }

    /// `count` values, one copy each, at `base`.
    pub(crate) const fn at(base: u64, count: u32) -> Self {
        Self {
            base,
            count,
            frozen: false,
        }
    }

    /// Programs cannot set values any more.
    pub(crate) const fn freeze(&mut self) {
        self.frozen = true;
    }

    /// Gives back what [`Array::new`] took.
    pub(crate) fn free(&self, memory: &mut Memory, shape: &Shape) {
        let bytes = u64::from(self.count) * shape.copies * shape.stride;
        if self.frozen {
            memory.free_kernel(self.base, bytes);
        } else {
            memory.free_map(self.base, bytes);
        }
    }

    pub(crate) const fn len(&self) -> u32 {
        self.count
    }

    /// The address of the first value of the first copy.
    pub(crate) const fn base(&self) -> u64 {
        self.base
    }

    /// The address of the value `index`, copy `copy`.
    #[inline]
    pub(crate) const fn value(&self, shape: &Shape, index: u32, copy: u64) -> Option<u64> {
        if index >= self.count || copy >= shape.copies {
            return None;
        }
        let slot = copy * self.count as u64 + index as u64;
        Some(self.base + slot * shape.stride)
    }

    /// The index of the value at `address`; `None` when no value begins there.
    pub(crate) fn index_of(&self, shape: &Shape, address: u64) -> Option<u32> {
        let at = address.checked_sub(self.base)?;
        let slot = at / shape.stride;
        let known = at.is_multiple_of(shape.stride) && slot < u64::from(self.count) * shape.copies;
        known.then(|| (slot % u64::from(self.count)) as u32)
    }

    /// Where an update of the value `index`, copy `copy`, goes. An array's elements always exist.
    pub(crate) fn place(
        &self,
        shape: &Shape,
        index: u32,
        copy: u64,
        exists: super::Existing,
    ) -> Result<u64, Errno> {
        if self.frozen {
            return Err(Errno::EPERM);
        }
        let address = self.value(shape, index, copy).ok_or(Errno::E2BIG)?;
        if exists == super::Existing::Refused {
            return Err(Errno::EEXIST);
        }
        Ok(address)
    }
}

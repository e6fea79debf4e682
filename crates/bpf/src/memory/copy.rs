//! Another memory with the same content.

use std::io;
use std::ops::Range;

use super::heap::Heap;
use super::layout::{BASE, GUARD};
use super::{Memory, Pages, Region, Shared};

/// A page that nobody has written to.
static ZEROS: [u8; Pages::SIZE as usize] = [0; Pages::SIZE as usize];

impl Memory {
    /// Where something may have been written, as offsets: all else is zero.
    pub(super) fn used(&self) -> [Range<u64>; 3] {
        let heap = |heap: &Heap| heap.start..heap.next;
        let arena = self.arena.as_ref().map_or(0..0, |pages| {
            let first = pages.first() - BASE;
            first..first + pages.touched() * Pages::SIZE
        });
        [heap(&self.kernel), heap(&self.maps), arena]
    }

    /// Another memory, with the same at each address.
    ///
    /// # Errors
    /// If the address space is refused, or pages are shared with another process.
    pub(crate) fn copy(&self) -> io::Result<Self> {
        if !self.shared.is_unused() {
            let why = "another process sees the memory";
            return Err(io::Error::new(io::ErrorKind::Unsupported, why));
        }
        let arena = self.arena.clone();
        let window = arena.as_ref().map(|pages| pages.base() - BASE);
        let mut copy = Self {
            region: Region::reserve(self.size, window)?,
            size: self.size,
            frozen: self.frozen.clone(),
            frozen_end: self.frozen_end,
            open_words: self.open_words.clone(),
            kernel: self.kernel.clone(),
            large_from: Self::first_large(GUARD),
            maps: self.maps.clone(),
            #[cfg(feature = "jit")]
            arena_flags: arena.as_ref().map_or(0, Pages::flags),
            arena,
            account: self.account.clone(),
            refused: self.refused,
            shared: Shared::default(),
        };
        copy.ask_for_large_pages();
        copy.region.grow_kernel(self.kernel.next);
        copy.region.grow_maps(self.maps.next);
        copy.grow_arena();
        for part in self.used() {
            copy.fill(self, part);
        }
        Ok(copy)
    }

    /// Copies what `other` has in this part, which is zero. A page of zeros stays as it is, so that
    /// it takes no memory.
    fn fill(&mut self, other: &Self, part: Range<u64>) {
        let mut at = part.start;
        while at < part.end {
            let end = part.end.min((at / Pages::SIZE + 1) * Pages::SIZE);
            if let Some(bytes) = other.region.bytes(at, end)
                && *bytes != ZEROS[..bytes.len()]
            {
                self.put(at, bytes);
            }
            at = end;
        }
    }
}

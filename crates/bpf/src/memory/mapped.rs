//! The region as one mapping of the process's addresses, which takes memory where it is used.

use std::mem::ManuallyDrop;
use std::ops::Range;

use memmap2::MmapMut;

use super::kept;
use super::layout::{BASE, GUARD};

/// See the module.
#[derive(Debug)]
pub(super) struct Region {
    /// Taken by the destructor alone.
    map: ManuallyDrop<MmapMut>,
    /// What was written to, as offsets, so that the next one gets zeros; `None`: this mapping is
    /// for nobody else.
    used: Option<[Range<u64>; 3]>,
    /// What to add to a guest address in the region, to get where it lies in this process. It
    /// never moves.
    pub(super) delta: u64,
    /// How far behind the beginning of the mapping 8 bytes may begin.
    pub(super) last: u64,
}

impl Region {
    /// Reserves `size` bytes of addresses, and [`GUARD`] more before and behind them. `_window` is
    /// where the arena's window begins.
    pub(super) fn reserve(size: u64, _window: Option<u64>) -> std::io::Result<Self> {
        let mut map = kept::take((size + 2 * GUARD) as usize)?;
        let host_address = map.as_mut_ptr().expose_provenance() as u64;
        Ok(Self {
            map: ManuallyDrop::new(map),
            used: None,
            delta: host_address.wrapping_sub(BASE - GUARD),
            last: size + 2 * GUARD - 8,
        })
    }

    /// Nothing was written outside of `used`, and no page is anybody else's: when this is dropped,
    /// the mapping may become another region.
    pub(super) fn keep(&mut self, used: [Range<u64>; 3]) {
        self.used = Some(used);
    }

    /// There are pages enough: they come when they are used.
    #[inline(always)]
    pub(super) const fn grow_kernel(&mut self, _end: u64) {}

    #[inline(always)]
    pub(super) const fn grow_maps(&mut self, _end: u64) {}

    #[inline(always)]
    pub(super) const fn grow_arena(&mut self, _first: u64, _end: u64) {}

    /// Asks the system for large pages.
    #[cfg(target_os = "linux")]
    pub(super) fn ask_for_large_pages(&self, from: u64, end: u64) {
        let (at, len) = (place(from), (end - from) as usize);
        let _ = self.map.advise_range(memmap2::Advice::HugePage, at, len);
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) const fn ask_for_large_pages(&self, _from: u64, _end: u64) {}

    /// The bytes from one offset of the region to another.
    #[inline(always)]
    pub(super) fn bytes(&self, from: u64, end: u64) -> Option<&[u8]> {
        self.map.get(place(from)..place(end))
    }

    /// The bytes from an offset on, as far as any can be other than zero.
    #[inline(always)]
    pub(super) fn tail(&self, from: u64, end: u64) -> Option<&[u8]> {
        self.bytes(from, end)
    }

    /// Bytes that somebody has allocated.
    #[inline(always)]
    pub(super) fn bytes_mut(&mut self, from: u64, len: u64) -> &mut [u8] {
        let at = place(from);
        &mut self.map[at..at + len as usize]
    }

    /// The first bytes at an offset, for the host to change.
    #[inline(always)]
    pub(super) fn chunk_mut<const N: usize>(&mut self, from: u64) -> Option<&mut [u8; N]> {
        self.map.get_mut(place(from)..)?.first_chunk_mut()
    }

    /// The first bytes of an object that ends before the offset `end`.
    #[inline(always)]
    pub(super) fn object<const N: usize>(
        &mut self,
        address: u64,
        end: u64,
    ) -> Option<&mut [u8; N]> {
        let objects = self.map.get_mut(..place(end))?;
        let at = address.wrapping_sub(BASE - GUARD) as usize;
        objects.get_mut(at..)?.first_chunk_mut()
    }

    /// Asks the processor for the line of its cache that holds the byte at `address`.
    #[inline(always)]
    pub(super) fn prefetch(&self, address: u64) {
        let at = usize::try_from(address.wrapping_sub(BASE - GUARD)).unwrap_or(usize::MAX);
        if let Some(byte) = self.map.get(at) {
            allocator::prefetch(byte);
        }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: Nobody uses the mapping after this, which happens once.
        let map = unsafe { ManuallyDrop::take(&mut self.map) };
        if let Some(used) = self.used.take() {
            kept::give(map, used.map(|range| place(range.start)..place(range.end)));
        }
    }
}

/// Where in the mapping the byte `at` of the region lies.
#[inline]
const fn place(at: u64) -> usize {
    (GUARD + at) as usize
}

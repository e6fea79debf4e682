//! The region where addresses have 32 bits, as in a browser: each half and the arena as long as
//! what was allocated there.
//!
//! Guest addresses are the same as in a mapped region, so programs see the same pointers. What lies
//! behind the allocated bytes of a part reads as zero. More than [`AHEAD`] bytes of it cannot be
//! had as a slice: only a host function with wild arguments asks for that, and is refused.

use super::Memory;
use super::layout::{BASE, GUARD};

/// Zeros behind what was allocated, in bytes.
const AHEAD: u64 = 2 * GUARD;
/// What a slice of memory that nobody allocated is taken from.
static ZEROS: [u8; AHEAD as usize] = [0; AHEAD as usize];

/// See the module.
#[derive(Debug)]
pub(super) struct Region {
    kernel: Part,
    maps: Part,
    arena: Part,
    /// Where the arena's window begins.
    window: u64,
}

/// Bytes of the region from an offset on.
#[derive(Debug, Default)]
struct Part {
    start: u64,
    bytes: Vec<u8>,
}

impl Part {
    fn at(start: u64) -> Self {
        Self {
            start,
            bytes: Vec::new(),
        }
    }

    /// It has all bytes before the offset `end`, and zeros behind them.
    fn grow(&mut self, end: u64) {
        let len = end.saturating_sub(self.start) as usize + AHEAD as usize;
        if self.bytes.len() < len {
            self.bytes.resize(len, 0);
        }
    }

    /// Where the byte at an offset lies, if it is here.
    fn place(&self, at: u64) -> Option<usize> {
        let at = usize::try_from(at.checked_sub(self.start)?).ok()?;
        (at <= self.bytes.len()).then_some(at)
    }
}

impl Region {
    /// A region of `size` bytes, of which nothing is allocated; an arena's window begins at
    /// `window`.
    ///
    /// # Errors
    /// None: nothing is reserved.
    pub(super) fn reserve(size: u64, window: Option<u64>) -> std::io::Result<Self> {
        let window = window.unwrap_or(u64::MAX);
        Ok(Self {
            kernel: Part::at(0),
            maps: Part::at(size / 2),
            arena: Part::at(window),
            window,
        })
    }

    pub(super) fn grow_kernel(&mut self, end: u64) {
        self.kernel.grow(end);
    }

    pub(super) fn grow_maps(&mut self, end: u64) {
        self.maps.grow(end);
    }

    /// The arena has pages from one offset of the region to another.
    pub(super) fn grow_arena(&mut self, first: u64, end: u64) {
        if self.arena.bytes.is_empty() {
            self.arena.start = first;
        }
        self.arena.grow(end);
    }

    pub(super) const fn ask_for_large_pages(&self, _from: u64, _end: u64) {}

    fn part(&self, at: u64) -> &Part {
        match at {
            at if at >= self.window => &self.arena,
            at if at >= self.maps.start => &self.maps,
            _ => &self.kernel,
        }
    }

    fn part_mut(&mut self, at: u64) -> &mut Part {
        match at {
            at if at >= self.window => &mut self.arena,
            at if at >= self.maps.start => &mut self.maps,
            _ => &mut self.kernel,
        }
    }

    /// The bytes from one offset of the region to another.
    pub(super) fn bytes(&self, from: u64, end: u64) -> Option<&[u8]> {
        let (part, len) = (self.part(from), usize::try_from(end - from).ok()?);
        let here = part
            .place(from)
            .and_then(|at| part.bytes.get(at..at.checked_add(len)?));
        here.or_else(|| match part.place(from) {
            // What begins before the end of a part and ends behind it is no zeros.
            Some(at) if at + (AHEAD as usize) < part.bytes.len() => None,
            _ => ZEROS.get(..len),
        })
    }

    /// The bytes from an offset on, as far as any can be other than zero.
    pub(super) fn tail(&self, from: u64, _end: u64) -> Option<&[u8]> {
        let part = self.part(from);
        let here = part.place(from).and_then(|at| part.bytes.get(at..));
        Some(here.unwrap_or_default())
    }

    /// Bytes that somebody has allocated.
    pub(super) fn bytes_mut(&mut self, from: u64, len: u64) -> &mut [u8] {
        let part = self.part_mut(from);
        let at = part.place(from).expect("it was allocated");
        &mut part.bytes[at..at + len as usize]
    }

    /// The first bytes at an offset, for the host to change.
    pub(super) fn chunk_mut<const N: usize>(&mut self, from: u64) -> Option<&mut [u8; N]> {
        let part = self.part_mut(from);
        let at = part.place(from)?;
        part.bytes.get_mut(at..)?.first_chunk_mut()
    }

    /// The first bytes of an object that ends before the offset `end`.
    pub(super) fn object<const N: usize>(
        &mut self,
        address: u64,
        end: u64,
    ) -> Option<&mut [u8; N]> {
        let at = address.wrapping_sub(BASE);
        let is_there = at.checked_add(N as u64).is_some_and(|own| own <= end);
        is_there.then(|| self.chunk_mut(at)).flatten()
    }

    pub(super) const fn prefetch(&self, _address: u64) {}
}

impl Memory {
    /// `N` bytes at `address`, at most 8; zeros when any of them lies outside the region.
    #[inline]
    #[must_use]
    pub fn load<const N: usize>(&self, address: u64) -> [u8; N] {
        const { assert!(N <= 8, "a load has at most 8 bytes") };
        let at = address.wrapping_sub(BASE);
        let part = self.region.part(at);
        let bytes = part.place(at).and_then(|at| part.bytes.get(at..));
        bytes
            .and_then(|bytes| bytes.first_chunk())
            .copied()
            .unwrap_or([0; N])
    }

    /// A program's store of at most 8 bytes where programs may write. Returns false when it must
    /// take [`Memory::verdict`]'s slow path instead; then nothing was written.
    #[inline]
    pub(crate) fn store<const N: usize>(&mut self, address: u64, bytes: [u8; N]) -> bool {
        const { assert!(N <= 8, "a store has at most 8 bytes") };
        let at = address.wrapping_sub(BASE + self.maps.start);
        if at > self.maps.open {
            return self.store_bytes(address, &bytes);
        }
        let place = self.region.maps.bytes.get_mut(at as usize..);
        let Some(place) = place.and_then(|rest| rest.first_chunk_mut()) else {
            return false;
        };
        *place = bytes;
        true
    }

    /// No address of this process means anything to a program.
    pub(crate) const fn host_address(&self, _address: u64) -> u64 {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HALF: u64 = 1 << 31;

    fn region() -> Region {
        Region::reserve(2 * HALF, None).unwrap()
    }

    #[test]
    fn what_nobody_allocated_reads_as_zero_up_to_the_zeros_that_there_are() {
        let mut region = region();
        assert_eq!(region.bytes(100, 200), Some(&[0; 100][..]));
        assert_eq!(region.bytes(100, 101 + AHEAD), None, "it is too long");
        region.grow_maps(HALF + 64);
        region.bytes_mut(HALF, 8).fill(7);
        assert_eq!(region.bytes(HALF, HALF + 8), Some(&[7; 8][..]));
        assert_eq!(region.bytes(HALF + 64, HALF + 80), Some(&[0; 16][..]));
        let behind = HALF + 64 + AHEAD;
        assert_eq!(region.bytes(behind - 8, behind + 8), Some(&[0; 16][..]));
        assert_eq!(
            region.bytes(HALF, behind + 8),
            None,
            "its begin is not zero"
        );
    }

    #[test]
    fn a_part_grows_and_keeps_what_it_has() {
        let mut region = region();
        region.grow_kernel(16);
        *region.chunk_mut(8).unwrap() = [1_u8, 2, 3, 4];
        region.grow_kernel(1 << 20);
        assert_eq!(region.object(BASE + 8, 1 << 20), Some(&mut [1_u8, 2, 3, 4]));
        assert_eq!(
            region.object::<4>(BASE + 8, 11),
            None,
            "it ends behind the end"
        );
        assert_eq!(region.object::<4>(BASE - 2, 1 << 20), None);
        assert_eq!(
            region.tail(8, HALF).map(|tail| tail[..5].to_vec()),
            Some(vec![1, 2, 3, 4, 0])
        );
    }
}

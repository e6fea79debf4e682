//! Where the region lies.

/// Guest address of the region's first byte. Aligned to 4 GiB, as the arena's window must be.
pub const BASE: u64 = 0xffff_8880_0000_0000;

/// Bytes that nobody ever allocates, so that they read as zero: the first and the last of the
/// region, those below the arena's window, and as many mapped before and behind the region.
///
/// A load has a signed 16-bit offset. If its pointer lies in the region, native code can load
/// without looking where the load itself begins and ends; if not, the load gives zero for certain.
pub(crate) const GUARD: u64 = 1 << 16;

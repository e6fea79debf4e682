//! The loads and stores of programs: each a comparison and an access.

use super::{BASE, GUARD, Memory};

impl Memory {
    /// `N` bytes at `address`, at most 8; zeros when any of them lies outside the region.
    #[inline(always)]
    #[must_use]
    pub fn load<const N: usize>(&self, address: u64) -> [u8; N] {
        const { assert!(N <= 8, "a load has at most 8 bytes") };
        // What lies around the region reads as zero, so one limit serves all sizes.
        if address.wrapping_sub(BASE - GUARD) > self.region.last {
            return [0; N];
        }
        // SAFETY: At least 8 bytes of the mapping begin there, which lives as long as `self`, and
        // any bytes are a value. Who writes to it in this process has `self` borrowed mutably.
        // Another process may have mapped some pages, too (`shared.rs`), a scheduler's own program:
        // all its threads stand at system calls while anybody in this process uses the memory.
        unsafe { self.host_pointer(address).cast::<[u8; N]>().read() }
    }

    /// A program's store of at most 8 bytes where programs may write. Returns false when it must
    /// take [`Memory::verdict`]'s slow path instead; then nothing was written.
    #[inline(always)]
    pub(crate) fn store<const N: usize>(&mut self, address: u64, bytes: [u8; N]) -> bool {
        const { assert!(N <= 8, "a store has at most 8 bytes") };
        let at = address.wrapping_sub(BASE + self.maps.start);
        if at > self.maps.open {
            return self.store_bytes(address, &bytes);
        }
        // SAFETY: `open` leaves room for 8 bytes before the end of what was allocated, which lies
        // in the region. Nobody else has it borrowed, and the other process stands still, as in
        // `load`.
        unsafe { self.host_pointer(address).cast::<[u8; N]>().write(bytes) };
        true
    }

    /// Where a guest address in the region lies in this process.
    pub(crate) const fn host_address(&self, address: u64) -> u64 {
        address.wrapping_add(self.region.delta)
    }

    /// Where the byte at `address`, in the mapping, lies in this process.
    #[inline(always)]
    fn host_pointer(&self, address: u64) -> *mut u8 {
        // `Region::reserve` has exposed the mapping.
        std::ptr::with_exposed_provenance_mut(self.host_address(address) as usize)
    }
}

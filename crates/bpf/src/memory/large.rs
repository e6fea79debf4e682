//! Large pages for the mirrors of many kernel objects.

use super::Memory;

/// Kernel objects that take less than this lie in pages of the usual size: nearly so much a
/// processor finds without a walk through page tables.
const FEW: u64 = 16 << 20;

/// How far ahead large pages are asked for at once. Several of them, because one is used only
/// where all of it was asked for.
const AHEAD: u64 = 8 << 20;

impl Memory {
    /// Asks the system for large pages behind the kernel objects that there are, if they are many.
    /// A system that does not give them changes nothing but the time that a run takes.
    #[inline]
    pub(super) fn ask_for_large_pages(&mut self) {
        if self.kernel.next > self.large_from {
            self.ask_for_more();
        }
    }

    #[cold]
    #[inline(never)]
    fn ask_for_more(&mut self) {
        let end = (self.kernel.next + AHEAD).min(self.kernel.start + self.kernel.limit);
        self.region.ask_for_large_pages(self.large_from, end);
        self.large_from = end;
    }

    /// Where large pages are asked for first.
    pub(super) const fn first_large(heap_start: u64) -> u64 {
        heap_start + FEW
    }
}

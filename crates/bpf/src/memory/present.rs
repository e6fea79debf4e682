//! A byte for each page of the arena's window: whether it is allocated. Native code looks there.

use super::layout::GUARD;
use super::pages::Pages;

/// Pages of the window, which is what 32 bits can address.
const PAGES: usize = 1 << 20;

/// Pages that an access can begin before or behind the window, by the offset of its instruction.
const BESIDE: usize = (GUARD / Pages::SIZE) as usize;

/// Which pages are allocated.
#[derive(Clone, Debug)]
pub(super) struct Present {
    /// Those of the window, and on both sides as many as an offset reaches. They are never there.
    flags: Box<[u8]>,
}

impl Present {
    pub(super) fn new() -> Self {
        // Zeroed memory that nobody has looked at takes none.
        let flags = vec![0; PAGES + 2 * BESIDE].into_boxed_slice();
        Self { flags }
    }

    /// The page at `page`, counted from the window's begin, is allocated from now on, or is not.
    pub(super) fn set(&mut self, page: u64, present: bool) {
        self.flags[BESIDE + page as usize] = u8::from(present);
    }

    /// The host's address of the flag of the window's first page.
    #[cfg(feature = "jit")]
    pub(super) fn address(&self) -> u64 {
        self.flags[BESIDE..].as_ptr().expose_provenance() as u64
    }
}

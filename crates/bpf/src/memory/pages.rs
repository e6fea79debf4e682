//! The arena's pages: 4 GiB of addresses, of which a program allocates what it uses.

use super::layout::GUARD;
use super::present::Present;

/// Which pages of the arena's window are allocated.
#[derive(Clone, Debug)]
pub struct Pages {
    base: u64,
    /// Where the first page lies in the window; see [`Pages::place_user`].
    start: u64,
    /// What stands above the low 32 bits of pointers that user space can follow.
    user: u64,
    /// User space has said where it sees them.
    was_placed: bool,
    cap: u64,
    /// Pages that were ever allocated. The process keeps what it once had.
    committed: u64,
    /// Pages that may be allocated at all: the map's `max_entries`.
    count: u64,
    pages: Vec<Page>,
    /// The same for native code: which ones are allocated.
    present: Present,
}

/// What a page is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Page {
    /// Was never allocated.
    Fresh,
    Free,
    Allocated,
    /// Set aside by a program: neither allocated nor to be had.
    Reserved,
}

impl Page {
    const fn is_free(self) -> bool {
        matches!(self, Self::Fresh | Self::Free)
    }
}

impl Pages {
    /// Bytes of a page.
    pub const SIZE: u64 = 4096;

    pub(crate) fn new(base: u64, cap: u64) -> Self {
        Self {
            base,
            start: 0,
            user: base,
            was_placed: false,
            cap,
            committed: 0,
            count: 0,
            pages: Vec::new(),
            present: Present::new(),
        }
    }

    /// Guest address of the window; its low 32 bits are zero.
    #[must_use]
    pub const fn base(&self) -> u64 {
        self.base
    }

    /// Bits above the low 32 of pointers that user space can follow; without user space,
    /// [`Pages::base`].
    #[must_use]
    pub const fn user(&self) -> u64 {
        self.user
    }

    /// User space sees the first page at `address`, a multiple of a page's size. The low 32 bits of
    /// an address are the same for both sides, as in a kernel, so they say where the first page
    /// lies in the window.
    ///
    /// Source: `clear_lo32()` and `compute_pgoff()`, kernel 6.18, kernel/bpf/arena.c.
    pub(crate) fn place_user(&mut self, address: u64) {
        self.show_all(false);
        self.was_placed = true;
        self.start = address & 0xffff_ffff;
        self.user = address & !0xffff_ffff;
        let room = ((1 << 32) - GUARD).saturating_sub(self.start) / Self::SIZE;
        if self.count > room {
            self.count = room;
            self.pages.truncate(room as usize);
        }
        self.show_all(true);
    }

    /// Whether user space has never said where it sees the arena.
    #[cfg(not(any(feature = "compact", target_pointer_width = "32")))]
    pub(super) const fn is_unmoved(&self) -> bool {
        !self.was_placed
    }

    /// The value that `address`, one of the window, has for user space.
    #[must_use]
    pub const fn to_user(&self, address: u64) -> u64 {
        self.user.wrapping_add(address.wrapping_sub(self.base))
    }

    /// Where an access goes whose register holds `pointer`, at `offset` from there: the low 32
    /// bits say it. It may lie before or behind the window, where no page is.
    #[must_use]
    pub fn place(&self, pointer: u64, offset: i32) -> u64 {
        let low = pointer & 0xffff_ffff;
        (self.base + low).wrapping_add_signed(offset.into())
    }

    /// Sets the flags of all allocated pages, or clears them.
    fn show_all(&mut self, present: bool) {
        for page in self.allocated() {
            self.present.set((page - self.base) / Self::SIZE, present);
        }
    }

    /// Where native code finds a byte for each page of the window, which is not 0 if the page is
    /// allocated.
    #[cfg(feature = "jit")]
    pub(super) fn flags(&self) -> u64 {
        self.present.address()
    }

    /// Guest address of the first page.
    pub(crate) const fn first(&self) -> u64 {
        self.base + self.start
    }

    /// Bytes of all pages that may be allocated.
    pub(crate) const fn bytes(&self) -> u64 {
        self.count * Self::SIZE
    }

    /// Guest addresses of the allocated pages.
    pub(crate) fn allocated(&self) -> Vec<u64> {
        let pages = (0_u64..).zip(&self.pages);
        let pages = pages.filter(|(_, state)| **state == Page::Allocated);
        pages
            .map(|(page, _)| self.first() + page * Self::SIZE)
            .collect()
    }

    /// Nothing is allocated any more, and nothing can be.
    pub(crate) fn clear(&mut self) {
        self.show_all(false);
        self.pages.clear();
        (self.count, self.start, self.user) = (0, 0, self.base);
    }

    /// User space has touched these pages, numbers from the first one: they are allocated. What
    /// lies beyond the end is left out.
    pub(crate) fn adopt(&mut self, pages: std::ops::Range<u64>) {
        let run = pages.start.min(self.count)..pages.end.min(self.count);
        let fresh = run.clone().filter(|page| self.state(*page) == Page::Fresh);
        self.committed += fresh.count() as u64;
        self.mark(run, Page::Allocated);
    }

    /// Bytes of the pages that were ever allocated.
    pub(crate) const fn committed(&self) -> u64 {
        self.committed * Self::SIZE
    }

    /// Pages below the highest one that was ever allocated.
    pub(crate) const fn touched(&self) -> u64 {
        self.pages.len() as u64
    }

    /// Bytes that the arena's pages may take together.
    pub(crate) fn limit(&self) -> u64 {
        self.cap.min(self.count * Self::SIZE)
    }

    /// Limits the arena to `count` pages. The window's last pages are never given: nothing may lie
    /// at the end of the region.
    pub(crate) fn resize(&mut self, count: u32) {
        self.count = 0;
        self.widen(count);
    }

    /// The arena may have `count` pages more, as far as the window has them.
    pub(crate) fn widen(&mut self, count: u32) {
        self.count = (self.count + u64::from(count)).min(((1 << 32) - GUARD) / Self::SIZE);
    }

    /// The first of `count` free neighbours, or exactly those at `wanted`. `None` when there are
    /// none, when the cap on arena memory or `most` bytes would be exceeded, or when `wanted` lies
    /// outside the arena.
    ///
    /// The first page is given as any other, as in a kernel: a pointer to its begin is null to
    /// `addr_space_cast` if the arena lies at a multiple of 4 GiB.
    pub(crate) fn alloc(&mut self, wanted: Option<u64>, count: u64, most: u64) -> Option<u64> {
        let most = self.cap.min(most);
        if count == 0 || count > self.count || count * Self::SIZE > most {
            return None;
        }
        let first = self.place_for(wanted, count)?;
        let run = first..first + count;
        let fresh = run.clone().filter(|page| self.state(*page) == Page::Fresh);
        let committed = self.committed + fresh.count() as u64;
        if committed * Self::SIZE > most {
            return None;
        }
        self.committed = committed;
        self.mark(run, Page::Allocated);
        Some(self.first() + first * Self::SIZE)
    }

    /// Whether the arena has so many free pages there, however much memory there is for them.
    pub(super) fn has_room(&self, wanted: Option<u64>, count: u64) -> bool {
        (1..=self.count).contains(&count) && self.place_for(wanted, count).is_some()
    }

    fn place_for(&self, wanted: Option<u64>, count: u64) -> Option<u64> {
        match wanted {
            Some(address) => self
                .page_of(address)
                .filter(|first| self.free_run(*first, count)),
            None => self.first_fit(count),
        }
    }

    /// The lowest run of `count` free pages; one pass over the pages that were ever allocated.
    fn first_fit(&self, count: u64) -> Option<u64> {
        let mut first = 0;
        for (page, state) in (0_u64..).zip(&self.pages) {
            if page - first >= count {
                break;
            }
            if !state.is_free() {
                first = page + 1;
            }
        }
        (first + count <= self.count).then_some(first)
    }

    fn free_run(&self, first: u64, count: u64) -> bool {
        let fits = first
            .checked_add(count)
            .is_some_and(|end| end <= self.count);
        fits && (first..first + count).all(|page| self.state(page).is_free())
    }

    fn state(&self, page: u64) -> Page {
        self.pages
            .get(page as usize)
            .copied()
            .unwrap_or(Page::Fresh)
    }

    fn mark(&mut self, pages: std::ops::Range<u64>, state: Page) {
        let (first, end) = (pages.start as usize, pages.end as usize);
        if self.pages.len() < end {
            self.pages.resize(end, Page::Fresh);
        }
        self.pages[first..end].fill(state);
        let before = self.start / Self::SIZE;
        for page in pages {
            let present = state == Page::Allocated;
            self.present.set(before + page, present);
        }
    }

    fn page_of(&self, address: u64) -> Option<u64> {
        let at = (address & 0xffff_ffff).checked_sub(self.start)?;
        at.is_multiple_of(Self::SIZE).then_some(at / Self::SIZE)
    }

    /// Sets `count` pages from `address` on aside: nobody gets them, and nothing is there. False
    /// if one of them is taken; `None` if they do not lie in the arena.
    ///
    /// Source: `arena_reserve_pages()`, kernel 6.18, kernel/bpf/arena.c.
    pub(crate) fn reserve(&mut self, address: u64, count: u64) -> Option<bool> {
        let first = self.page_of(address)?;
        let end = first.checked_add(count).filter(|end| *end <= self.count)?;
        if !(first..end).all(|page| self.state(page).is_free()) {
            return Some(false);
        }
        self.mark(first..end, Page::Reserved);
        Some(true)
    }

    /// Marks pages as free and returns those that were allocated.
    pub(crate) fn free(&mut self, address: u64, count: u64) -> Vec<u64> {
        let at = (address & 0xffff_ffff).checked_sub(self.start);
        let first = at.map_or(self.count, |at| at / Self::SIZE);
        let base = self.first();
        let mut freed = Vec::new();
        for page in (first..self.count).take(count as usize) {
            let Some(state) = self.pages.get_mut(page as usize) else {
                break;
            };
            // A kernel frees what was set aside, too.
            let was = *state;
            *state = match was {
                Page::Allocated | Page::Free => Page::Free,
                Page::Fresh | Page::Reserved => Page::Fresh,
            };
            if was == Page::Allocated {
                let before = self.start / Self::SIZE;
                self.present.set(before + page, false);
                freed.push(base + page * Self::SIZE);
            }
        }
        freed
    }

    pub(crate) const fn in_window(&self, address: u64, len: u64) -> bool {
        let at = address.wrapping_sub(self.base);
        at < 1 << 32 && len <= (1 << 32) - at
    }

    /// Whether all bytes lie on allocated pages.
    #[must_use]
    pub fn holds(&self, address: u64, len: u64) -> bool {
        let at = address.wrapping_sub(self.first());
        let last = at.saturating_add(len.max(1) - 1) / Self::SIZE;
        (at / Self::SIZE..=last).all(|page| self.state(page) == Page::Allocated)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: u64 = 1 << 40;

    fn pages(count: u32) -> Pages {
        let mut pages = Pages::new(BASE, 1 << 20);
        pages.resize(count);
        pages
    }

    #[test]
    fn the_lowest_fitting_run_is_taken_from_page_0_on() {
        let mut pages = pages(10);
        assert_eq!(pages.alloc(None, 2, u64::MAX), Some(BASE));
        assert_eq!(pages.alloc(None, 1, u64::MAX), Some(BASE + 2 * 4096));
        assert_eq!(pages.free(BASE, 2).len(), 2);
        assert_eq!(
            pages.alloc(None, 3, u64::MAX),
            Some(BASE + 3 * 4096),
            "the gap is too small"
        );
        assert_eq!(pages.alloc(None, 2, u64::MAX), Some(BASE));
        assert_eq!(pages.alloc(Some(BASE), 1, u64::MAX), None, "it is taken");
    }

    #[test]
    fn the_arena_ends_at_its_size_and_at_the_cap() {
        let mut small = pages(4);
        assert_eq!(small.alloc(None, 5, u64::MAX), None);
        assert_eq!(small.alloc(Some(BASE + 2 * 4096), 3, u64::MAX), None);
        assert_eq!(small.alloc(None, 4, u64::MAX), Some(BASE));
        let mut capped = pages(1000);
        assert_eq!(
            capped.alloc(None, 257, u64::MAX),
            None,
            "the cap is 256 pages"
        );
        assert!(capped.alloc(None, 256, u64::MAX).is_some());
    }

    #[test]
    fn a_page_is_held_only_between_alloc_and_free() {
        let mut pages = pages(10);
        let first = pages.alloc(None, 1, u64::MAX).unwrap();
        assert!(pages.holds(first + 4088, 8));
        assert!(!pages.holds(first + 4089, 8));
        assert_eq!(pages.free(first, 5), [first]);
        assert_eq!(pages.free(first, 1), [0; 0]);
        assert!(!pages.holds(first, 1));
    }

    #[test]
    fn pages_that_are_set_aside_are_given_to_nobody() {
        let mut pages = pages(6);
        assert_eq!(pages.reserve(BASE + 2 * 4096, 2), Some(true));
        assert_eq!(pages.alloc(Some(BASE), 1, u64::MAX), Some(BASE));
        assert_eq!(pages.alloc(None, 2, u64::MAX), Some(BASE + 4 * 4096));
        assert_eq!(pages.alloc(None, 1, u64::MAX), Some(BASE + 4096));
        assert_eq!(pages.alloc(Some(BASE + 2 * 4096), 1, u64::MAX), None);
        assert!(!pages.holds(BASE + 2 * 4096, 1), "nothing is there");
        assert_eq!(pages.reserve(BASE + 3 * 4096, 1), Some(false));
        assert_eq!(pages.reserve(BASE + 4096, 1), Some(false), "allocated");
        assert_eq!(pages.reserve(BASE + 5 * 4096, 2), None, "beyond the end");
        assert_eq!(pages.reserve(BASE + 1, 1), None, "no page begins there");
        assert_eq!(pages.free(BASE + 2 * 4096, 2), [0; 0], "nothing was there");
        assert_eq!(
            pages.alloc(None, 2, u64::MAX),
            Some(BASE + 2 * 4096),
            "and now it can be had"
        );
    }
}

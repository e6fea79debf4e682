//! Pages in memory: which are there, which are dirty, which were used last.

use std::collections::BTreeMap;
use std::ops::Range;

use model::TaskId;

/// Whose a page is: number 0 of a disk's cache, or a task's.
pub(super) type Owner = u32;

/// A page: its owner and its number.
type Key = (Owner, u64);

/// In which order pages go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Order {
    /// The one that was not used for the longest time.
    #[default]
    Use,
    /// An inactive and an active list, a cache's pages: new ones are inactive, and one that is
    /// used again becomes active (`mark_page_accessed()`, `mm/swap.c`, Linux 2.6.0).
    Cached,
    /// The same of tasks' pages: new ones are active, a use is noted, and who makes room looks.
    Owned,
}

impl Order {
    /// A page of this state after a use, at the same place.
    fn after_use(self, page: Page) -> Page {
        let rises = self == Self::Cached && !page.is_active && page.is_used;
        Page {
            is_active: page.is_active || rises,
            is_used: !rises,
            ..page
        }
    }
}

/// A page in memory.
#[derive(Clone, Copy, Debug)]
struct Page {
    /// Its place in its list; `None`: it is dirty.
    stamp: Option<u64>,
    is_active: bool,
    /// Whether it was used since that was last looked at.
    is_used: bool,
}

/// Pages of a disk's cache, or of all tasks.
#[derive(Clone, Debug, Default)]
pub(super) struct Pages {
    order: Order,
    pages: BTreeMap<Key, Page>,
    /// The clean ones by the place in their list: inactive ones, of which the first goes first, and
    /// active ones.
    lists: [BTreeMap<u64, Key>; 2],
    /// Who has written each dirty one.
    dirty: BTreeMap<Key, TaskId>,
}

impl Pages {
    pub fn new(order: Order) -> Self {
        Self {
            order,
            ..Self::default()
        }
    }

    pub fn len(&self) -> u64 {
        self.pages.len() as u64
    }

    pub fn dirty(&self) -> u64 {
        self.dirty.len() as u64
    }

    /// Clean pages of the inactive and of the active list.
    pub fn lengths(&self) -> [u64; 2] {
        [0, 1].map(|list: usize| self.lists[list].len() as u64)
    }

    pub fn has(&self, key: Key) -> bool {
        self.pages.contains_key(&key)
    }

    /// The page was brought at `stamp`, and nobody has used it.
    pub fn bring(&mut self, key: Key, stamp: u64) {
        if !self.has(key) || self.order == Order::Use {
            self.put(key, stamp);
            if let Some(page) = self.pages.get_mut(&key) {
                page.is_used = false;
            }
        }
    }

    /// The page is there, clean unless it is dirty already, and was used at `stamp`.
    pub fn put(&mut self, key: Key, stamp: u64) {
        let Some(page) = self.pages.get_mut(&key) else {
            let is_active = self.order == Order::Owned;
            return self.insert(key, stamp, (is_active, true));
        };
        let before = *page;
        *page = self.order.after_use(before);
        let moves = self.order == Order::Use || page.is_active != before.is_active;
        if let Some(place) = before.stamp.filter(|_| moves) {
            page.stamp = Some(stamp);
            self.lists[usize::from(before.is_active)].remove(&place);
            self.lists[usize::from(page.is_active)].insert(stamp, key);
        }
    }

    /// A clean page comes to the end of a list.
    fn insert(&mut self, key: Key, stamp: u64, (is_active, is_used): (bool, bool)) {
        let page = Page {
            stamp: Some(stamp),
            is_active,
            is_used,
        };
        self.pages.insert(key, page);
        self.lists[usize::from(is_active)].insert(stamp, key);
    }

    /// `task` has written the page.
    pub fn soil(&mut self, key: Key, task: TaskId) {
        if let Some(page) = self.pages.get_mut(&key) {
            if let Some(place) = page.stamp.take() {
                self.lists[usize::from(page.is_active)].remove(&place);
            }
            *page = self.order.after_use(*page);
        } else {
            let new = Page {
                stamp: None,
                is_active: false,
                is_used: true,
            };
            self.pages.insert(key, new);
        }
        self.dirty.insert(key, task);
    }

    /// The first dirty pages in a row that `whose` chooses, `most` at most, are clean from now on.
    pub fn wash(
        &mut self,
        most: u64,
        stamp: &mut u64,
        whose: impl Fn(TaskId) -> bool,
    ) -> Option<Range<u64>> {
        let mut chosen = self.dirty.iter().filter(|(_, task)| whose(**task));
        let first = chosen.next().map(|(key, _)| *key)?;
        let mut end = first.1 + 1;
        for (key, _) in chosen {
            if *key != (first.0, end) || end - first.1 == most {
                break;
            }
            end += 1;
        }
        for page in first.1..end {
            let key = (first.0, page);
            self.dirty.remove(&key);
            *stamp += 1;
            let page = self.pages[&key];
            self.insert(key, *stamp, (page.is_active, page.is_used));
        }
        Some(first.1..end)
    }

    /// Place of the clean page that goes next, if it is inactive.
    pub fn oldest(&self) -> Option<u64> {
        self.lists[0].first_key_value().map(|(&stamp, _)| stamp)
    }

    /// Place of the first active page.
    pub fn oldest_active(&self) -> Option<u64> {
        self.lists[1].first_key_value().map(|(&stamp, _)| stamp)
    }

    /// Whether the first inactive page was used since that was last looked at. In the order of use
    /// nobody looks.
    pub fn oldest_was_used(&self) -> bool {
        let first = self.lists[0].first_key_value();
        self.order != Order::Use && first.is_some_and(|(_, key)| self.pages[key].is_used)
    }

    /// Forgets the first inactive page, else the first active one.
    pub fn drop_oldest(&mut self) -> Option<Key> {
        let [inactive, active] = &mut self.lists;
        let (_, key) = inactive.pop_first().or_else(|| active.pop_first())?;
        self.pages.remove(&key);
        Some(key)
    }

    /// The first inactive page becomes active; what was noted of its use is forgotten.
    pub fn raise_oldest(&mut self, stamp: u64) {
        if let Some((_, key)) = self.lists[0].pop_first() {
            self.insert(key, stamp, (true, false));
        }
    }

    /// The first active page becomes inactive. A task's page does so only if it was not used since
    /// that was last looked at, and `swaps`; else it stays, and its use is forgotten
    /// (`refill_inactive_zone()`, `mm/vmscan.c`, Linux 2.6.0).
    pub fn sink_oldest(&mut self, stamp: u64, swaps: bool) {
        let Some((_, key)) = self.lists[1].pop_first() else {
            return;
        };
        let is_used = self.pages[&key].is_used;
        match self.order {
            Order::Owned => self.insert(key, stamp, (is_used || !swaps, false)),
            _ => self.insert(key, stamp, (false, is_used)),
        }
    }

    /// Forgets every page of an owner; how many there were.
    pub fn forget(&mut self, owner: Owner) -> u64 {
        let keys: Vec<Key> = (self.pages.range((owner, 0)..=(owner, u64::MAX)))
            .map(|(&key, _)| key)
            .collect();
        for key in &keys {
            if let Some(page) = self.pages.remove(key)
                && let Some(stamp) = page.stamp
            {
                self.lists[usize::from(page.is_active)].remove(&stamp);
            }
            self.dirty.remove(key);
        }
        keys.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_that_was_not_used_for_the_longest_time_goes_first() {
        let mut pages = Pages::default();
        for (stamp, page) in [(1, 10), (2, 11), (3, 12), (4, 10)] {
            pages.put((0, page), stamp);
        }
        assert_eq!((pages.len(), pages.oldest()), (3, Some(2)));
        let gone: Vec<_> = std::iter::from_fn(|| pages.drop_oldest()).collect();
        assert_eq!(gone, [(0, 11), (0, 12), (0, 10)]);
    }

    #[test]
    fn dirty_pages_stay_until_they_are_washed_row_by_row() {
        let mut pages = Pages::default();
        let (me, other) = (TaskId(1), TaskId(2));
        for page in [5, 6, 7, 9] {
            pages.soil((0, page), me);
        }
        pages.soil((0, 8), other);
        assert_eq!((pages.dirty(), pages.drop_oldest()), (5, None));
        let mut stamp = 0;
        assert_eq!(pages.wash(2, &mut stamp, |task| task == me), Some(5..7));
        assert_eq!(pages.wash(9, &mut stamp, |task| task == me), Some(7..8));
        assert_eq!(pages.wash(9, &mut stamp, |_| true), Some(8..10));
        assert_eq!(pages.wash(9, &mut stamp, |_| true), None);
        assert_eq!((pages.len(), pages.dirty(), stamp), (5, 0, 5));
    }

    #[test]
    fn an_owner_leaves_with_all_its_pages() {
        let mut pages = Pages::default();
        pages.put((1, 0), 1);
        pages.put((2, 0), 2);
        pages.soil((2, 7), TaskId(0));
        assert_eq!(pages.forget(2), 2);
        assert_eq!(
            (pages.len(), pages.dirty(), pages.oldest()),
            (1, 0, Some(1))
        );
    }

    #[test]
    fn a_cached_page_becomes_active_at_its_second_use_and_a_stream_passes_by() {
        let mut pages = Pages::new(Order::Cached);
        pages.put((0, 1), 1);
        pages.put((0, 1), 2);
        pages.put((0, 2), 3);
        // Read ahead: the first use is none again.
        pages.bring((0, 3), 4);
        pages.put((0, 3), 5);
        assert_eq!(pages.lengths(), [2, 1]);
        pages.put((0, 3), 6);
        assert_eq!(pages.lengths(), [1, 2]);
        assert_eq!(pages.oldest(), Some(3), "a first use moves nothing");
        assert_eq!(pages.drop_oldest(), Some((0, 2)));
        // Page 1 was not used since it rose; it sinks as it is, and one use does not raise it.
        pages.sink_oldest(7, false);
        assert_eq!(pages.lengths(), [1, 1]);
        pages.put((0, 1), 8);
        assert_eq!(pages.lengths(), [1, 1]);
        pages.put((0, 1), 9);
        assert_eq!(pages.lengths(), [0, 2]);
    }

    #[test]
    fn a_page_that_is_written_twice_is_active_once_it_is_washed() {
        let mut pages = Pages::new(Order::Cached);
        pages.soil((0, 5), TaskId(0));
        pages.soil((0, 5), TaskId(0));
        pages.soil((0, 6), TaskId(0));
        let mut stamp = 0;
        assert_eq!(pages.wash(9, &mut stamp, |_| true), Some(5..7));
        assert_eq!(pages.lengths(), [1, 1]);
        assert_eq!(pages.drop_oldest(), Some((0, 6)));
    }

    #[test]
    fn a_tasks_page_is_active_until_it_was_not_used_for_a_round() {
        let mut pages = Pages::new(Order::Owned);
        pages.put((1, 0), 1);
        assert_eq!(pages.lengths(), [0, 1]);
        pages.sink_oldest(2, true);
        assert_eq!(pages.lengths(), [0, 1], "it was used");
        pages.sink_oldest(3, false);
        assert_eq!(pages.lengths(), [0, 1], "nothing is swapped yet");
        pages.sink_oldest(4, true);
        assert_eq!((pages.lengths(), pages.oldest()), ([1, 0], Some(4)));
        assert!(!pages.oldest_was_used());
        pages.put((1, 0), 5);
        assert_eq!((pages.lengths(), pages.oldest_was_used()), ([1, 0], true));
        pages.raise_oldest(6);
        assert_eq!(pages.lengths(), [0, 1]);
        assert_eq!(pages.forget(1), 1);
        assert_eq!((pages.len(), pages.lengths()), (0, [0, 0]));
    }
}

//! Pages in memory: which are there, which are dirty, which were used last.

use std::collections::BTreeMap;
use std::ops::Range;

use model::TaskId;

/// Whose a page is: number 0 of a disk's cache, or a task's.
pub(super) type Owner = u32;

/// A page: its owner and its number.
type Key = (Owner, u64);

/// Pages of a disk's cache, or of all tasks.
#[derive(Debug, Default)]
pub(super) struct Pages {
    /// When each was used last; `None`: it is dirty.
    used: BTreeMap<Key, Option<u64>>,
    /// The clean ones by that time.
    clean: BTreeMap<u64, Key>,
    /// Who has written each dirty one.
    dirty: BTreeMap<Key, TaskId>,
}

impl Pages {
    pub fn len(&self) -> u64 {
        self.used.len() as u64
    }

    pub fn dirty(&self) -> u64 {
        self.dirty.len() as u64
    }

    pub fn has(&self, key: Key) -> bool {
        self.used.contains_key(&key)
    }

    /// The page is there, clean unless it is dirty already, and was used at `stamp`.
    pub fn put(&mut self, key: Key, stamp: u64) {
        match self.used.get(&key) {
            Some(None) => return,
            Some(Some(before)) => {
                self.clean.remove(before);
            }
            None => {}
        }
        self.used.insert(key, Some(stamp));
        self.clean.insert(stamp, key);
    }

    /// `task` has written the page.
    pub fn soil(&mut self, key: Key, task: TaskId) {
        if let Some(Some(before)) = self.used.insert(key, None) {
            self.clean.remove(&before);
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
            self.dirty.remove(&(first.0, page));
            *stamp += 1;
            self.used.insert((first.0, page), Some(*stamp));
            self.clean.insert(*stamp, (first.0, page));
        }
        Some(first.1..end)
    }

    /// When the clean page was used that has not been used for the longest time.
    pub fn oldest(&self) -> Option<u64> {
        self.clean.first_key_value().map(|(&stamp, _)| stamp)
    }

    /// Forgets that page.
    pub fn drop_oldest(&mut self) -> Option<Key> {
        let (_, key) = self.clean.pop_first()?;
        self.used.remove(&key);
        Some(key)
    }

    /// Forgets every page of an owner; how many there were.
    pub fn forget(&mut self, owner: Owner) -> u64 {
        let keys: Vec<Key> = (self.used.range((owner, 0)..=(owner, u64::MAX)))
            .map(|(&key, _)| key)
            .collect();
        for key in &keys {
            if let Some(Some(stamp)) = self.used.remove(key) {
                self.clean.remove(&stamp);
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
}

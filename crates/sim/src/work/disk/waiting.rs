//! Requests that wait for a disk, by age and by place.

use std::collections::{BTreeMap, BTreeSet};

use model::SimTime;

use super::Request;

/// A request that waits.
#[derive(Clone, Debug)]
struct Entry {
    since: SimTime,
    kind: usize,
    request: Request,
}

/// Requests that wait, each with a number that grows in the order of coming. There are two kinds,
/// 0 and 1, which an elevator treats apart.
#[derive(Clone, Debug, Default)]
pub(super) struct Waiting {
    entries: BTreeMap<u64, Entry>,
    /// First page and number, by kind.
    places: [BTreeSet<(u64, u64)>; 2],
    /// Numbers, by kind.
    ages: [BTreeSet<u64>; 2],
}

impl Waiting {
    pub fn insert(&mut self, number: u64, kind: usize, request: Request, since: SimTime) {
        self.places[kind].insert((request.page, number));
        self.ages[kind].insert(number);
        let entry = Entry {
            since,
            kind,
            request,
        };
        self.entries.insert(number, entry);
    }

    /// # Panics
    /// If it does not wait.
    pub fn remove(&mut self, number: u64) -> Request {
        let Entry { kind, request, .. } = self.entries.remove(&number).expect("it waits");
        self.places[kind].remove(&(request.page, number));
        self.ages[kind].remove(&number);
        request
    }

    /// A request that waits.
    ///
    /// # Panics
    /// If it does not.
    pub fn request(&self, number: u64) -> &Request {
        &self.entries[&number].request
    }

    /// Since when a request waits.
    ///
    /// # Panics
    /// If it does not.
    pub fn since(&self, number: u64) -> SimTime {
        self.entries[&number].since
    }

    pub fn has(&self, kind: usize) -> bool {
        !self.ages[kind].is_empty()
    }

    /// The one that has waited longest, of both kinds.
    pub fn oldest_of_all(&self) -> Option<u64> {
        self.entries.first_key_value().map(|(&number, _)| number)
    }

    /// The one of a kind that has waited longest.
    pub fn oldest(&self, kind: usize) -> Option<u64> {
        self.ages[kind].first().copied()
    }

    /// Page and number of the first one of a kind at `page` or above.
    pub fn above(&self, kind: usize, page: u64) -> Option<(u64, u64)> {
        self.places[kind].range((page, 0)..).next().copied()
    }

    /// Page and number of the last one of a kind below `page`.
    pub fn below(&self, kind: usize, page: u64) -> Option<(u64, u64)> {
        let (last, _) = self.places[kind].range(..(page, 0)).next_back()?;
        self.above(kind, *last)
    }

    #[cfg(test)]
    pub fn requests(&self) -> impl Iterator<Item = &Request> {
        self.entries.values().map(|entry| &entry.request)
    }

    pub fn requests_mut(&mut self) -> impl Iterator<Item = &mut Request> {
        self.entries.values_mut().map(|entry| &mut entry.request)
    }
}

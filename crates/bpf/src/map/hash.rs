//! Hash tables: elements in the region, an index beside it.
//!
//! Elements are linked in the order of insertion, or for an LRU table of use, so that walking
//! them never depends on hash values. The LRU order is exact, where the kernel's is approximate:
//! it keeps per-CPU lists and second-chance bits (Linux 6.18, `kernel/bpf/bpf_lru_list.c`).

use std::hash::{BuildHasher, Hasher};

use super::Existing;
use super::shape::Shape;
use crate::{Errno, Keyed, Memory, OutOfMemory};

/// "No element" in the links.
const NONE: u32 = u32::MAX;

/// Owners that are found without a search. One callback after another asks for the storage of the
/// same task, six times a switch under `mlfq`, and a search takes 140 instructions. With eight of
/// them, two of ten questions of `eevdf` took one where 100 tasks run.
const RECENT: usize = 1_024;

/// Where an owner that was found last is noted.
///
/// Source: multiplicative hashing (Knuth, volume 3, 6.4): a multiple of the golden ratio spreads
/// addresses at equal distances.
#[inline]
const fn recent_of(owner: u64) -> usize {
    ((owner as u32).wrapping_mul(0x9e37_79b1) >> 22) as usize % RECENT
}

/// One element; in memory its key, padded to 8 bytes, and behind it its values.
#[derive(Clone, Copy, Debug)]
struct Element {
    address: u64,
    hash: u64,
    /// The next element of its bucket.
    chain: u32,
    older: u32,
    newer: u32,
}

/// A hash table, per-CPU hash table, LRU table, or the storage of tasks or cgroups.
#[derive(Clone, Debug)]
pub(crate) struct Hash {
    capacity: u32,
    lru: bool,
    elements: Vec<Element>,
    /// Slots of `elements` to use again, the last freed first.
    vacant: Vec<u32>,
    /// First element of each bucket. A power of two.
    buckets: Vec<u32>,
    count: u32,
    oldest: u32,
    newest: u32,
    keyed: Keyed,
    /// Of [`Hash::of_owner`]: keys that were found last and their first values; 0 if there is none.
    /// Empty where nobody has asked.
    recent: Vec<(u64, u64)>,
}

/// An element that left the table. Its memory must be freed when no program can look at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Removed {
    pub(crate) element: u64,
    pub(crate) value: u64,
    pub(crate) bytes: u64,
}

impl Hash {
    pub(crate) fn new(capacity: u32, lru: bool) -> Self {
        Self {
            capacity,
            lru,
            elements: Vec::new(),
            vacant: Vec::new(),
            buckets: vec![NONE; 8],
            count: 0,
            oldest: NONE,
            newest: NONE,
            keyed: Keyed::default(),
            recent: Vec::new(),
        }
    }

    /// What [`Hash::of_owner`] would give, if that is known without a search. Most callbacks ask
    /// for the same owner as the one before on that CPU.
    #[inline(always)]
    pub(crate) fn of_recent_owner(&self, owner: u64) -> Option<u64> {
        match self.recent.get(recent_of(owner)) {
            Some(&(key, value)) if key == owner && value != 0 => Some(value),
            _ => None,
        }
    }

    /// As [`Hash::lookup`] in the storage of tasks or cgroups, under the address of `owner`.
    pub(crate) fn of_owner(&mut self, memory: &Memory, shape: &Shape, owner: u64) -> Option<u64> {
        let value = self.lookup(memory, shape, &owner.to_le_bytes())?;
        self.recent.resize(RECENT, (0, 0));
        self.recent[recent_of(owner)] = (owner, value);
        Some(value)
    }

    #[inline]
    fn hash_of(&self, key: &[u8]) -> u64 {
        let mut hasher = self.keyed.build_hasher();
        hasher.write(key);
        hasher.finish()
    }

    /// The address of the element's first value. Counts as a use.
    #[inline]
    pub(crate) fn lookup(&mut self, memory: &Memory, shape: &Shape, key: &[u8]) -> Option<u64> {
        let slot = self.find(memory, key, self.hash_of(key))?;
        if self.lru {
            self.unlink(slot);
            self.link_newest(slot);
        }
        Some(self.elements[slot as usize].address + shape.key_room())
    }

    /// As [`Hash::lookup`], but does not count as a use.
    pub(crate) fn peek(&self, memory: &Memory, shape: &Shape, key: &[u8]) -> Option<u64> {
        let slot = self.find(memory, key, self.hash_of(key))?;
        Some(self.elements[slot as usize].address + shape.key_room())
    }

    /// Whether `address` is that of an element's first value.
    pub(crate) fn is_value(&self, memory: &Memory, shape: &Shape, address: u64) -> bool {
        let key = memory.bytes(address.wrapping_sub(shape.key_room()), shape.key_size);
        key.is_some_and(|key| self.peek(memory, shape, key) == Some(address))
    }

    /// Adds an element for `key`, zeroed, in the place of the one that is there. Gives the address
    /// of its first value and the element that left for it.
    pub(crate) fn insert(
        &mut self,
        memory: &mut Memory,
        shape: &Shape,
        key: &[u8],
        existing: Existing,
    ) -> Result<(u64, Option<Removed>), InsertError> {
        let hash = self.hash_of(key);
        let old = self.find(memory, key, hash);
        existing.check(old.is_some())?;
        if old.is_none() && self.count >= self.capacity && !self.lru {
            return Err(Errno::E2BIG.into());
        }
        let address = memory.alloc_map(element_bytes(shape))?;
        let full = self.count >= self.capacity && self.oldest != NONE;
        let leaves = old.or_else(|| full.then_some(self.oldest));
        let removed = leaves.map(|slot| self.take_out(slot, shape));
        if removed.is_some() {
            self.recent.clear();
        }
        memory.write(address, key);
        self.add(address, hash);
        Ok((address + shape.key_room(), removed))
    }

    /// Takes the element out.
    pub(crate) fn remove(
        &mut self,
        memory: &Memory,
        shape: &Shape,
        key: &[u8],
    ) -> Result<Removed, Errno> {
        let slot = self
            .find(memory, key, self.hash_of(key))
            .ok_or(Errno::ENOENT)?;
        if let Some(key) = key.first_chunk()
            && let Some(noted) = self.recent.get_mut(recent_of(u64::from_le_bytes(*key)))
        {
            *noted = (0, 0);
        }
        Ok(self.take_out(slot, shape))
    }

    /// Addresses of all elements, where their keys are: from the oldest to the newest.
    pub(crate) fn walk(&self) -> Vec<u64> {
        let mut addresses = Vec::with_capacity(self.count as usize);
        let mut slot = self.oldest;
        while let Some(element) = self.elements.get(slot as usize) {
            addresses.push(element.address);
            slot = element.newer;
        }
        addresses
    }

    /// The key of the element behind that of `key` in the order of [`Hash::walk`], or the first one
    /// if there is no `key`.
    pub(crate) fn key_after(
        &self,
        memory: &Memory,
        key: Option<&[u8]>,
        size: u64,
    ) -> Option<Vec<u8>> {
        let slot = key.and_then(|key| self.find(memory, key, self.hash_of(key)));
        let next = match slot {
            Some(slot) => self.elements[slot as usize].newer,
            None => self.oldest,
        };
        let element = self.elements.get(next as usize)?;
        memory.bytes(element.address, size).map(<[u8]>::to_vec)
    }

    #[inline]
    fn find(&self, memory: &Memory, key: &[u8], hash: u64) -> Option<u32> {
        let mut slot = self.buckets[self.bucket_of(hash)];
        while let Some(element) = self.elements.get(slot as usize) {
            if element.hash == hash && is_key(memory, element.address, key) {
                return Some(slot);
            }
            slot = element.chain;
        }
        None
    }

    const fn bucket_of(&self, hash: u64) -> usize {
        hash as usize & (self.buckets.len() - 1)
    }

    fn add(&mut self, address: u64, hash: u64) {
        if self.count as usize >= self.buckets.len() {
            self.grow();
        }
        let bucket = self.bucket_of(hash);
        let chain = self.buckets[bucket];
        let element = Element {
            address,
            hash,
            chain,
            older: NONE,
            newer: NONE,
        };
        let slot = if let Some(slot) = self.vacant.pop() {
            self.elements[slot as usize] = element;
            slot
        } else {
            self.elements.push(element);
            self.elements.len() as u32 - 1
        };
        self.buckets[bucket] = slot;
        self.link_newest(slot);
        self.count += 1;
    }

    fn grow(&mut self) {
        self.buckets = vec![NONE; self.buckets.len() * 2];
        let mut slot = self.oldest;
        while slot != NONE {
            let Element { hash, newer, .. } = self.elements[slot as usize];
            let bucket = self.bucket_of(hash);
            self.elements[slot as usize].chain = self.buckets[bucket];
            self.buckets[bucket] = slot;
            slot = newer;
        }
    }

    fn take_out(&mut self, slot: u32, shape: &Shape) -> Removed {
        let Element {
            address,
            hash,
            chain,
            ..
        } = self.elements[slot as usize];
        let bucket = self.bucket_of(hash);
        if self.buckets[bucket] == slot {
            self.buckets[bucket] = chain;
        } else {
            let mut before = self.buckets[bucket];
            while self.elements[before as usize].chain != slot {
                before = self.elements[before as usize].chain;
            }
            self.elements[before as usize].chain = chain;
        }
        self.unlink(slot);
        self.vacant.push(slot);
        self.count -= 1;
        let value = address + shape.key_room();
        Removed {
            element: address,
            value,
            bytes: element_bytes(shape),
        }
    }

    fn unlink(&mut self, slot: u32) {
        let Element { older, newer, .. } = self.elements[slot as usize];
        match self.elements.get_mut(older as usize) {
            Some(element) => element.newer = newer,
            None => self.oldest = newer,
        }
        match self.elements.get_mut(newer as usize) {
            Some(element) => element.older = older,
            None => self.newest = older,
        }
    }

    fn link_newest(&mut self, slot: u32) {
        let older = std::mem::replace(&mut self.newest, slot);
        match self.elements.get_mut(older as usize) {
            Some(element) => element.newer = slot,
            None => self.oldest = slot,
        }
        let element = &mut self.elements[slot as usize];
        (element.older, element.newer) = (older, NONE);
    }
}

/// Whether `key` lies at `address`. Keys of 4 and 8 bytes, such as a task's address, are compared
/// as numbers.
#[inline]
fn is_key(memory: &Memory, address: u64, key: &[u8]) -> bool {
    if let Ok(key) = <[u8; 8]>::try_from(key) {
        return memory.load_u64(address) == u64::from_le_bytes(key);
    }
    if let Ok(key) = <[u8; 4]>::try_from(key) {
        return memory.load_u32(address) == u64::from(u32::from_le_bytes(key));
    }
    memory.bytes(address, key.len() as u64) == Some(key)
}

/// Why an element could not be added.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum InsertError {
    /// What the kernel says.
    Errno(Errno),
    /// The cap on map memory, which is ours.
    Memory(OutOfMemory),
}

impl From<Errno> for InsertError {
    fn from(errno: Errno) -> Self {
        Self::Errno(errno)
    }
}

impl From<OutOfMemory> for InsertError {
    fn from(error: OutOfMemory) -> Self {
        Self::Memory(error)
    }
}

pub(super) const fn element_bytes(shape: &Shape) -> u64 {
    shape.key_room() + shape.stride * shape.copies
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MapDef, MapKind};

    struct Table {
        hash: Hash,
        shape: Shape,
        memory: Memory,
        key_size: usize,
    }

    impl Table {
        fn new(capacity: u32, lru: bool) -> Self {
            Self::with_keys(5, capacity, lru)
        }

        fn with_keys(key_size: u32, capacity: u32, lru: bool) -> Self {
            let def = MapDef {
                name: "table".into(),
                kind: MapKind::Hash,
                key_size,
                value_size: 12,
                value: None,
                max_entries: capacity,
                flags: 0,
                initial: None,
                frozen: false,
                timer_at: None,
                lock_at: None,
                kptrs_at: Vec::new(),
                inner: None,
            };
            let memory = Memory::reserve(1 << 20, None).unwrap();
            Self {
                hash: Hash::new(capacity, lru),
                shape: Shape::new(&def, 1),
                memory,
                key_size: key_size as usize,
            }
        }

        fn insert(&mut self, key: u8) -> Result<(u64, Option<Removed>), InsertError> {
            let key = vec![key; self.key_size];
            self.hash
                .insert(&mut self.memory, &self.shape, &key, Existing::Replaced)
        }

        fn lookup(&mut self, key: &[u8]) -> Option<u64> {
            self.hash.lookup(&self.memory, &self.shape, key)
        }

        fn keys(&self) -> Vec<u8> {
            let addresses = self.hash.walk();
            addresses
                .iter()
                .map(|at| self.memory.load_u8(*at) as u8)
                .collect()
        }
    }

    #[test]
    fn a_value_is_aligned_and_stays_where_it_is() {
        let mut table = Table::new(100, false);
        let (first, _) = table.insert(1).unwrap();
        assert_eq!(first % 8, 0);
        for key in 2..=100 {
            table.insert(key).unwrap();
        }
        assert_eq!(
            table.hash.lookup(&table.memory, &table.shape, &[1; 5]),
            Some(first)
        );
        assert_eq!(
            table.hash.lookup(&table.memory, &table.shape, &[101; 5]),
            None
        );
        assert_eq!(table.keys(), (1..=100).collect::<Vec<_>>());
    }

    #[test]
    fn keys_of_every_size_are_told_apart_by_each_byte() {
        for key_size in [1, 2, 4, 5, 8, 9, 16] {
            let mut table = Table::with_keys(key_size, 100, false);
            let (value, _) = table.insert(7).unwrap();
            let key = vec![7; key_size as usize];
            assert_eq!(table.lookup(&key), Some(value));
            for at in 0..key.len() {
                let mut other = key.clone();
                other[at] ^= 0x80;
                assert_eq!(table.lookup(&other), None, "byte {at} of {key_size}");
                // Also if the hashes were the same.
                let element = table.hash.elements[0].address;
                assert!(is_key(&table.memory, element, &key));
                assert!(
                    !is_key(&table.memory, element, &other),
                    "byte {at} of {key_size}"
                );
            }
        }
    }

    #[test]
    fn a_full_table_refuses_new_keys_and_takes_old_ones() {
        let mut table = Table::new(2, false);
        let (first, _) = table.insert(1).unwrap();
        table.insert(2).unwrap();
        assert_eq!(table.insert(3), Err(Errno::E2BIG.into()));
        let (again, removed) = table.insert(1).unwrap();
        assert_ne!(again, first, "who looked it up before keeps the old value");
        assert_eq!(removed.map(|removed| removed.value), Some(first));
        assert_eq!(table.keys(), [2, 1]);
    }

    #[test]
    fn an_owner_that_was_found_is_known_until_its_element_leaves() {
        let mut table = Table::with_keys(8, 4_000, false);
        // More than there is room for, at the distances of objects.
        let owners: Vec<u64> = (1..=2_400).map(|number| number * 0x2640).collect();
        let insert = |table: &mut Table, owner: u64| {
            let Table {
                hash,
                memory,
                shape,
                ..
            } = table;
            let key = owner.to_le_bytes();
            hash.insert(memory, shape, &key, Existing::Replaced)
                .unwrap()
                .0
        };
        for &owner in &owners {
            let value = insert(&mut table, owner);
            assert_eq!(table.hash.of_recent_owner(owner), None);
            let found = table.hash.of_owner(&table.memory, &table.shape, owner);
            assert_eq!(found, Some(value));
            assert_eq!(table.hash.of_recent_owner(owner), Some(value));
        }
        let known = |hash: &Hash| {
            let known = owners
                .iter()
                .filter_map(|owner| hash.of_recent_owner(*owner));
            known.count()
        };
        let before = known(&table.hash);
        assert!(before > RECENT / 2, "{before} of 2,400 are known");
        let last = owners[owners.len() - 1];
        let key = last.to_le_bytes();
        table
            .hash
            .remove(&table.memory, &table.shape, &key)
            .unwrap();
        assert_eq!(table.hash.of_recent_owner(last), None);
        assert_eq!(known(&table.hash), before - 1, "all others are");
        // One that takes the place of another has another address.
        let first = insert(&mut table, last);
        table.hash.of_owner(&table.memory, &table.shape, last);
        let second = insert(&mut table, last);
        assert_ne!(first, second);
        assert_eq!(table.hash.of_recent_owner(last), None);
    }

    #[test]
    fn the_least_recently_used_element_leaves_a_full_lru_table() {
        let mut table = Table::new(3, true);
        for key in [1, 2, 3] {
            table.insert(key).unwrap();
        }
        table
            .hash
            .lookup(&table.memory, &table.shape, &[1; 5])
            .unwrap();
        table
            .hash
            .peek(&table.memory, &table.shape, &[2; 5])
            .unwrap();
        table.insert(4).unwrap();
        assert_eq!(table.keys(), [3, 1, 4]);
    }

    #[test]
    fn any_sequence_agrees_with_a_plain_list() {
        let mut table = Table::new(40, false);
        let mut model: Vec<u8> = Vec::new();
        let mut state = 1_u32;
        for _ in 0..5000 {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let key = (state >> 24) as u8 % 60;
            if state & 0x800 == 0 {
                let removed = table.hash.remove(&table.memory, &table.shape, &[key; 5]);
                assert_eq!(removed.is_ok(), model.contains(&key));
                if let Ok(removed) = removed {
                    table.memory.free_map(removed.element, removed.bytes);
                }
                model.retain(|other| *other != key);
            } else if table.insert(key).is_ok() {
                model.retain(|other| *other != key);
                model.push(key);
            } else {
                assert_eq!(model.len(), 40);
            }
        }
        assert_eq!(table.keys(), model);
    }
}

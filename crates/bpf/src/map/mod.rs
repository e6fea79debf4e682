//! Maps: what they hold lies in the region, so that programs can point to it.

pub(crate) mod array;
pub(crate) mod hash;
pub(crate) mod queue;
pub(crate) mod ring;
pub(crate) mod ringbuf;
pub(crate) mod shape;
mod table;

use std::collections::BTreeMap;

use array::Array;
use hash::{Hash, InsertError, Removed};
use queue::ValueQueue;
use ring::Ring;
use ringbuf::Ringbuf;
use shape::Shape;
pub(crate) use table::Maps;

use crate::memory::{Memory, OutOfMemory, Pages};
use crate::{Errno, MapDef, MapKind};

/// What an update does with an element that exists, by the flags `BPF_ANY`, `BPF_NOEXIST` and
/// `BPF_EXIST` (Linux 6.18, include/uapi/linux/bpf.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Existing {
    Replaced,
    Refused,
    Required,
}

/// `BPF_F_LOCK`: update under the value's lock, in place.
const LOCK: u64 = 4;

impl Existing {
    pub(crate) const fn from_flags(flags: u64) -> Result<Self, Errno> {
        match flags & !LOCK {
            0 => Ok(Self::Replaced),
            1 => Ok(Self::Refused),
            2 => Ok(Self::Required),
            _ => Err(Errno::EINVAL),
        }
    }

    const fn check(self, exists: bool) -> Result<(), Errno> {
        match (self, exists) {
            (Self::Refused, true) => Err(Errno::EEXIST),
            (Self::Required, false) => Err(Errno::ENOENT),
            _ => Ok(()),
        }
    }
}

/// A value to be set as `bpf_map_update_elem` does it.
#[derive(Clone, Copy, Debug)]
pub struct Update<'a> {
    pub(crate) key: &'a [u8],
    pub(crate) value: &'a [u8],
    /// `BPF_ANY`, `BPF_NOEXIST`, `BPF_EXIST`, `BPF_F_LOCK`.
    pub(crate) flags: u64,
    pub(crate) cpu: u32,
}

impl<'a> Update<'a> {
    /// Puts `value` under `key`, in the place of what is there; in a per-CPU map for CPU 0.
    #[must_use]
    pub const fn new(key: &'a [u8], value: &'a [u8]) -> Self {
        Self {
            key,
            value,
            flags: 0,
            cpu: 0,
        }
    }

    /// In a per-CPU map for `cpu`.
    #[must_use]
    pub const fn on_cpu(self, cpu: u32) -> Self {
        Self { cpu, ..self }
    }
}

/// What an update or a deletion leaves to be done by the instance, which knows timers and objects.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Leftover {
    /// A value whose timers and kernel pointers must go; it stays in the map.
    pub(crate) reset: Option<u64>,
    /// An element that left the map.
    pub(crate) removed: Option<Removed>,
}

/// The elements of a map.
#[derive(Clone, Debug)]
pub(crate) enum MapStore {
    Array(Array),
    Hash(Hash),
    Queue(ValueQueue),
    Ringbuf(Ringbuf),
    /// A ring buffer that user space maps, of either direction.
    Ring(Ring),
    /// Map in map: which map stands under a key.
    Nested(BTreeMap<Vec<u8>, u32>),
    /// The address of the arena's globals, or of its window.
    Arena(u64),
    /// Exists, holds nothing: no counters to read and no user space to talk to.
    Inert,
}

/// A map.
#[derive(Clone, Debug)]
pub(crate) struct Map {
    pub(crate) kind: MapKind,
    pub(crate) shape: Shape,
    pub(crate) store: MapStore,
    /// Special fields inside a value.
    pub(crate) timer_at: Option<u32>,
    pub(crate) kptrs_at: Vec<u32>,
    /// Address and bytes of pages that user space may map and nothing else lies on.
    pub(crate) pages: Option<(u64, u64)>,
}

impl Map {
    /// A map that user space has asked for; `def` holds no initial values. With `mappable` its
    /// values lie on pages of their own, with `read_only` where no program can write them.
    pub(crate) fn for_user(
        memory: &mut Memory,
        def: &MapDef,
        cpus: u32,
        (mappable, read_only): (bool, bool),
    ) -> Result<Self, OutOfMemory> {
        let shape = Shape::new(def, cpus);
        let (store, pages) = match def.kind {
            MapKind::Array if mappable || read_only => {
                let bytes = u64::from(def.max_entries).saturating_mul(shape.stride);
                let base = memory.alloc_pages(bytes, read_only)?;
                let array = Array::at(base, def.max_entries);
                (MapStore::Array(array), Some((base, bytes)))
            }
            MapKind::Ringbuf | MapKind::UserRingbuf => {
                let bytes = Ring::bytes(def.max_entries.into());
                let base = memory.alloc_pages(bytes, false)?;
                let ring = Ring::new(memory, base, def.max_entries.into())?;
                (MapStore::Ring(ring), Some((base, bytes)))
            }
            MapKind::Arena => {
                memory.open_user_arena(def.max_entries);
                (MapStore::Arena(0), None)
            }
            _ => return Self::new(memory, def, cpus),
        };
        Ok(Self {
            kind: def.kind,
            shape,
            store,
            timer_at: def.timer_at,
            kptrs_at: def.kptrs_at.clone(),
            pages: pages.map(|(base, bytes)| (base, bytes.next_multiple_of(Pages::SIZE))),
        })
    }

    pub(crate) fn new(memory: &mut Memory, def: &MapDef, cpus: u32) -> Result<Self, OutOfMemory> {
        let shape = Shape::new(def, cpus);
        let count = def.max_entries;
        let store = match def.kind {
            MapKind::Array | MapKind::PercpuArray => {
                MapStore::Array(Array::new(memory, &shape, count, def.frozen)?)
            }
            MapKind::Hash | MapKind::PercpuHash => MapStore::Hash(Hash::new(count, false)),
            MapKind::LruHash => MapStore::Hash(Hash::new(count, true)),
            MapKind::TaskStorage | MapKind::CgrpStorage => {
                MapStore::Hash(Hash::new(u32::MAX, false))
            }
            MapKind::Queue => MapStore::Queue(ValueQueue::new(memory, &shape, count, false)?),
            MapKind::Stack => MapStore::Queue(ValueQueue::new(memory, &shape, count, true)?),
            MapKind::Ringbuf => MapStore::Ringbuf(Ringbuf::new(count)),
            MapKind::ArrayOfMaps | MapKind::HashOfMaps => MapStore::Nested(nested_entries(def)),
            MapKind::Arena => MapStore::Arena(memory.open_arena(def)?),
            MapKind::PerfEventArray | MapKind::UserRingbuf => MapStore::Inert,
        };
        let map = Self {
            kind: def.kind,
            shape,
            store,
            timer_at: def.timer_at,
            kptrs_at: def.kptrs_at.clone(),
            pages: None,
        };
        if let (Some(bytes), Some(first)) = (&def.initial, map.first_value()) {
            let len = match map.store {
                MapStore::Arena(_) => bytes.len(),
                _ => bytes.len().min(def.value_size as usize),
            };
            memory.write(first, &bytes[..len]);
        }
        if let (true, MapStore::Array(array)) = (def.frozen, &map.store) {
            let bytes = u64::from(def.max_entries) * map.shape.copies * map.shape.stride;
            memory.freeze(array.base(), bytes);
        }
        Ok(map)
    }

    /// The address of a data section's value, or of the arena's globals.
    pub(crate) fn first_value(&self) -> Option<u64> {
        match &self.store {
            MapStore::Array(array) => array.value(&self.shape, 0, 0),
            MapStore::Arena(address) => Some(*address),
            _ => None,
        }
    }

    /// The address of the value under `key`, for a per-CPU map that of `cpu`. A use for the LRU.
    #[inline]
    pub(crate) fn lookup(&mut self, memory: &Memory, key: &[u8], cpu: u32) -> Option<u64> {
        let copy = self.copy_of(cpu)?;
        match &mut self.store {
            MapStore::Array(array) => array.value(&self.shape, index_of(key)?, copy),
            MapStore::Hash(hash) => {
                let value = hash.lookup(memory, &self.shape, key)?;
                Some(value + copy * self.shape.stride)
            }
            _ => None,
        }
    }

    /// As [`Map::lookup`] in the storage of tasks or cgroups, by the address of `owner`.
    pub(crate) fn of_owner(&mut self, memory: &Memory, owner: u64) -> Option<u64> {
        match &mut self.store {
            MapStore::Hash(hash) => hash.of_owner(memory, &self.shape, owner),
            _ => None,
        }
    }

    /// As [`Map::lookup`], but does not count as a use.
    pub(crate) fn peek(&self, memory: &Memory, key: &[u8], cpu: u32) -> Option<u64> {
        let copy = self.copy_of(cpu)?;
        match &self.store {
            MapStore::Array(array) => array.value(&self.shape, index_of(key)?, copy),
            MapStore::Hash(hash) => {
                Some(hash.peek(memory, &self.shape, key)? + copy * self.shape.stride)
            }
            _ => None,
        }
    }

    /// Whether the value that would have its timer at `timer` is one of this map's.
    pub(crate) fn holds_timer(&self, memory: &Memory, timer: u64) -> bool {
        let value = self
            .timer_at
            .and_then(|at| timer.checked_sub(u64::from(at)));
        let Some(value) = value else { return false };
        match &self.store {
            MapStore::Array(array) => array.index_of(&self.shape, value).is_some(),
            MapStore::Hash(hash) => hash.is_value(memory, &self.shape, value),
            _ => false,
        }
    }

    const fn copy_of(&self, cpu: u32) -> Option<u64> {
        match self.shape.copies {
            1 => Some(0),
            copies if (cpu as u64) < copies => Some(cpu as u64),
            _ => None,
        }
    }

    /// Sets a value.
    pub(crate) fn update(
        &mut self,
        memory: &mut Memory,
        update: &Update<'_>,
    ) -> Result<Leftover, InsertError> {
        let Update {
            key,
            value,
            flags,
            cpu,
        } = *update;
        let existing = Existing::from_flags(flags)?;
        let copy = self.copy_of(cpu).ok_or(Errno::EINVAL)?;
        let in_place = self.shape.copies > 1 || flags & LOCK != 0;
        let Self { shape, store, .. } = self;
        match store {
            MapStore::Array(array) => {
                let index = index_of(key).ok_or(Errno::EINVAL)?;
                let reset = array.place(shape, index, copy, existing)?;
                shape.put(memory, reset, value);
                Ok(Leftover {
                    reset: Some(reset),
                    removed: None,
                })
            }
            MapStore::Hash(hash) => {
                let old = hash.lookup(memory, shape, key).filter(|_| in_place);
                if let Some(old) = old {
                    existing.check(true)?;
                    shape.put(memory, old + copy * shape.stride, value);
                    return Ok(Leftover::default());
                }
                let (first, removed) = hash.insert(memory, shape, key, existing)?;
                shape.put(memory, first + copy * shape.stride, value);
                Ok(Leftover {
                    reset: None,
                    removed,
                })
            }
            _ => Err(Errno::EINVAL.into()),
        }
    }

    /// What it took is given back; it holds nothing any more. Timers and kernel pointers in its
    /// values must be gone.
    pub(crate) fn free(&mut self, memory: &mut Memory) {
        let Self {
            store,
            pages,
            shape,
            ..
        } = self;
        let store = std::mem::replace(store, MapStore::Inert);
        if let MapStore::Ring(ring) = &store {
            memory.free_object(ring.dynptr, 16);
        }
        if let Some((address, bytes)) = pages.take() {
            // Pages that cannot be taken from their file are not used again.
            let _kept = memory.free_pages(address, bytes);
            return;
        }
        match store {
            MapStore::Array(array) => array.free(memory, shape),
            MapStore::Queue(queue) => queue.free(memory, shape),
            MapStore::Hash(hash) => {
                for element in hash.walk() {
                    memory.free_map(element, hash::element_bytes(shape));
                }
            }
            MapStore::Arena(_) => {
                let _kept = memory.close_arena();
            }
            _ => {}
        }
    }

    /// User space sees the arena at `address`.
    pub(crate) const fn place_arena(&mut self, address: u64) {
        if let MapStore::Arena(at) = &mut self.store {
            *at = address;
        }
    }

    /// Addresses of all values, the first copy of each.
    pub(crate) fn values(&self) -> Vec<u64> {
        match &self.store {
            MapStore::Array(array) => (0..array.len())
                .filter_map(|index| array.value(&self.shape, index, 0))
                .collect(),
            MapStore::Hash(hash) => {
                let values = hash.walk().into_iter();
                values.map(|at| at + self.shape.key_room()).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Where in a value, whichever it is and in whichever copy, `address` lies.
    pub(crate) fn offset_in_values(&self, address: u64) -> Option<u64> {
        let (stride, copies) = (self.shape.stride, self.shape.copies);
        let within = |begin: u64, values: u64| {
            let at = address.checked_sub(begin)?;
            (at < values * copies * stride).then(|| at % stride)
        };
        match &self.store {
            MapStore::Array(array) => within(array.base(), array.len().into()),
            MapStore::Hash(hash) => {
                let mut values = hash.walk().into_iter();
                values.find_map(|at| within(at + self.shape.key_room(), 1))
            }
            _ => None,
        }
    }

    /// User space will not change its values any more: programs that only read them may have them
    /// built in.
    pub(crate) fn freeze(&mut self, memory: &mut Memory) {
        if let (Some((address, bytes)), MapStore::Array(array)) = (self.pages, &mut self.store) {
            array.freeze();
            memory.freeze(address, bytes);
        }
    }

    /// Deletes the element under `key`.
    pub(crate) fn delete(&mut self, memory: &Memory, key: &[u8]) -> Result<Removed, Errno> {
        match &mut self.store {
            MapStore::Hash(hash) => hash.remove(memory, &self.shape, key),
            _ => Err(Errno::EINVAL),
        }
    }
}

impl MapKind {
    /// Whether the kind with this number is [`MapKind::is_storage`].
    pub(crate) const fn is_storage_number(number: u32) -> bool {
        number == Self::TaskStorage as u32 || number == Self::CgrpStorage as u32
    }

    /// Whether its values belong to tasks or cgroups.
    pub(crate) const fn is_storage(self) -> bool {
        matches!(self, Self::TaskStorage | Self::CgrpStorage)
    }
}

/// An array's key.
pub(crate) fn index_of(key: &[u8]) -> Option<u32> {
    key.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
}

fn nested_entries(def: &MapDef) -> BTreeMap<Vec<u8>, u32> {
    let entries = def
        .inner
        .as_ref()
        .map(|(_, entries)| entries.as_slice())
        .unwrap_or_default();
    let key_bytes = |key: u32| {
        let mut bytes = key.to_le_bytes().to_vec();
        bytes.resize(def.key_size as usize, 0);
        bytes
    };
    entries
        .iter()
        .map(|(key, map)| (key_bytes(*key), *map))
        .collect()
}

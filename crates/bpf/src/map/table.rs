//! All maps of an instance, found by the handles that programs hold.

use super::{Map, MapStore, shape};
use crate::memory::Memory;
use crate::{Image, InstanceError, Stop};

/// Bytes that a handle takes in the read-only half: addresses are what programs compare, and a
/// curious load reads zeros.
const HANDLE_BYTES: u64 = 64;

/// The maps of an instance, in the order of [`Image::maps`].
#[derive(Clone, Debug)]
pub(crate) struct Maps {
    list: Vec<Map>,
    handles: u64,
    /// Handles that there are.
    most: u32,
    /// Indices of maps that are gone, to use again.
    vacant: Vec<u32>,
}

impl Maps {
    pub(crate) fn new(
        memory: &mut Memory,
        image: &Image,
        cpus: u32,
    ) -> Result<Self, InstanceError> {
        let too_big = |name: &str, source| InstanceError::MapMemory {
            name: name.into(),
            source,
        };
        let bytes = image.maps.len() as u64 * HANDLE_BYTES;
        let handles = memory
            .alloc_kernel(bytes, HANDLE_BYTES)
            .map_err(|error| too_big("handles", error))?;
        for def in &image.maps {
            if let Some(what) = shape::check(def) {
                return Err(InstanceError::Map {
                    name: def.name.clone(),
                    what,
                });
            }
        }
        let create = |def| Map::new(memory, def, cpus).map_err(|error| too_big(&def.name, error));
        let list = image.maps.iter().map(create).collect::<Result<_, _>>()?;
        let most = image.maps.len() as u32;
        Ok(Self {
            list,
            handles,
            most,
            vacant: Vec::new(),
        })
    }

    /// No map, and handles for `most`.
    pub(crate) fn with_room(memory: &mut Memory, most: u32) -> Result<Self, InstanceError> {
        let handles = memory.alloc_kernel(u64::from(most) * HANDLE_BYTES, HANDLE_BYTES)?;
        Ok(Self {
            list: Vec::new(),
            handles,
            most,
            vacant: Vec::new(),
        })
    }

    /// Whether there is a handle for one map more.
    pub(crate) fn has_room(&self) -> bool {
        !self.vacant.is_empty() || (self.list.len() as u32) < self.most
    }

    /// Adds a map, and gives its index.
    ///
    /// # Panics
    /// If there is no handle for it.
    pub(crate) fn add(&mut self, map: Map) -> u32 {
        assert!(self.has_room(), "no handle is left for a map");
        if let Some(index) = self.vacant.pop() {
            self.list[index as usize] = map;
            return index;
        }
        self.list.push(map);
        self.list.len() as u32 - 1
    }

    /// A map is gone; the next one may get its index. No program may have its handle.
    pub(crate) fn remove(&mut self, memory: &mut Memory, index: u32) {
        if let Some(map) = self.list.get_mut(index as usize) {
            map.free(memory);
            self.vacant.push(index);
        }
    }

    pub(crate) fn handle(&self, map: u32) -> Option<u64> {
        (map < self.list.len() as u32).then(|| self.handles + u64::from(map) * HANDLE_BYTES)
    }

    /// The index of the map that `handle` stands for.
    #[inline]
    pub(crate) fn index(&self, handle: u64) -> Result<u32, Stop> {
        let at = handle.wrapping_sub(self.handles);
        let index = at / HANDLE_BYTES;
        if at.is_multiple_of(HANDLE_BYTES) && index < self.list.len() as u64 {
            return Ok(index as u32);
        }
        Err(Stop::Refused(format!(
            "{handle:#x} was passed as a map and is none"
        )))
    }

    /// What [`Map::of_owner`] would give for the map that `handle` stands for, if that is known
    /// without a search.
    #[inline(always)]
    pub(crate) fn of_recent_owner(&self, handle: u64, owner: u64) -> Option<u64> {
        let at = handle.wrapping_sub(self.handles);
        let map = self.list.get((at / HANDLE_BYTES) as usize)?;
        match &map.store {
            MapStore::Hash(hash) if at.is_multiple_of(HANDLE_BYTES) => hash.of_recent_owner(owner),
            _ => None,
        }
    }

    /// What [`Map::lookup`] gives for the key at an address, 0 for nothing; `None` if `handle` is
    /// not that of an array or the key lies outside memory.
    #[inline]
    pub(crate) fn look_up_in_array(
        &self,
        memory: &Memory,
        handle: u64,
        key: u64,
        cpu: u32,
    ) -> Option<u64> {
        let at = handle.wrapping_sub(self.handles);
        let map = self.list.get((at / HANDLE_BYTES) as usize)?;
        let MapStore::Array(array) = &map.store else {
            return None;
        };
        let key = memory
            .bytes(key, 4)
            .filter(|_| at.is_multiple_of(HANDLE_BYTES))?;
        let copy = if map.shape.copies == 1 { 0 } else { cpu.into() };
        let index = super::index_of(key)?;
        Some(array.value(&map.shape, index, copy).unwrap_or(0))
    }

    #[inline]
    pub(crate) fn by_handle(&mut self, handle: u64) -> Result<&mut Map, Stop> {
        let index = self.index(handle)?;
        Ok(&mut self.list[index as usize])
    }

    pub(crate) fn get(&self, map: u32) -> Option<&Map> {
        self.list.get(map as usize)
    }

    pub(crate) fn get_mut(&mut self, map: u32) -> Option<&mut Map> {
        self.list.get_mut(map as usize)
    }

    #[cfg(feature = "jit")]
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Map> {
        self.list.iter()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (u32, &mut Map)> {
        (0..).zip(&mut self.list)
    }

    /// The handle of the map that stands under `key` in a map of maps.
    pub(crate) fn inner(&self, map: u32, key: &[u8]) -> Option<u64> {
        match &self.get(map)?.store {
            MapStore::Nested(entries) => self.handle(*entries.get(key)?),
            _ => None,
        }
    }
}

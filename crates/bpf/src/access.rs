//! Maps, variables and timers as the host uses them.

use crate::host::Host;
use crate::map::hash::{InsertError, Removed};
use crate::map::{MapStore, Update};
use crate::stop::{Fault, Stop};
use crate::timer::TIMER_BYTES;
use crate::{Errno, Image, Instance};

impl<H: Host> Instance<H> {
    /// The index in [`Image::maps`] of the map called `name`.
    #[must_use]
    pub fn map_by_name(&self, name: &str) -> Option<u32> {
        let position = self.image().maps.iter().position(|map| map.name == name);
        position.map(|at| at as u32)
    }

    /// Address of the map with this name. A map that was created by a call of bpf(2) has no more of
    /// its name than a kernel keeps (`BPF_OBJ_NAME_LEN`, kernel 6.18).
    #[must_use]
    pub fn map_by_kept_name(&self, name: &str) -> Option<u32> {
        const KEPT: usize = 15;
        let kept = || self.map_by_name(name.get(..KEPT)?);
        self.map_by_name(name).or_else(kept)
    }

    /// The address of the value under `key`, for a per-CPU map that of `cpu`. Is no use for an LRU
    /// map. For the storage of a task or cgroup the key is the owner's address.
    #[must_use]
    pub fn map_value_addr(&self, map: u32, key: &[u8], cpu: u32) -> Option<u64> {
        let map = self.maps.get(map)?;
        self.has_key_size(map.shape.key_size, key)
            .then(|| map.peek(&self.memory, key, cpu))?
    }

    /// The bytes of the value under `key`, for a per-CPU map that of `cpu`.
    #[must_use]
    pub fn map_value(&self, map: u32, key: &[u8], cpu: u32) -> Option<&[u8]> {
        let address = self.map_value_addr(map, key, cpu)?;
        self.memory
            .bytes(address, self.maps.get(map)?.shape.value_size)
    }

    /// The sum over all CPUs of the 64-bit counters at `offset` in the values under `key`.
    #[must_use]
    pub fn map_sum(&self, map: u32, key: &[u8], offset: u64) -> Option<u64> {
        let copies = self.maps.get(map)?.shape.copies as u32;
        let counter = |cpu| {
            let address = self.map_value_addr(map, key, cpu)?;
            Some(self.memory.load_u64(address + offset))
        };
        (0..copies)
            .map(counter)
            .try_fold(0_u64, |sum, count| Some(sum.wrapping_add(count?)))
    }

    /// All keys: of an array in order, of a hash map in the order of insertion, of an LRU map
    /// from the longest unused.
    #[must_use]
    pub fn map_keys(&self, map: u32) -> Vec<Vec<u8>> {
        let Some(map) = self.maps.get(map) else {
            return Vec::new();
        };
        let key = |at: u64| {
            self.memory
                .bytes(at, map.shape.key_size)
                .map(<[u8]>::to_vec)
        };
        match &map.store {
            MapStore::Array(array) => (0..array.len()).map(|i| i.to_le_bytes().to_vec()).collect(),
            MapStore::Hash(hash) => hash.walk().into_iter().filter_map(key).collect(),
            MapStore::Nested(entries) => entries.keys().cloned().collect(),
            _ => Vec::new(),
        }
    }

    /// Sets a value as user space would with `bpf_map_update_elem`.
    ///
    /// # Errors
    /// What the kernel says; [`Errno::EINVAL`] also for a key or value of another size.
    pub fn map_update(&mut self, map: u32, update: &Update<'_>, host: &mut H) -> Result<(), Errno> {
        let shape = self
            .maps
            .get(map)
            .map(|map| &map.shape)
            .ok_or(Errno::ENOENT)?;
        let has_size = self.has_key_size(shape.key_size, update.key);
        if !has_size || shape.value_size != update.value.len() as u64 {
            return Err(Errno::EINVAL);
        }
        match self.update(map, update, host) {
            Ok(()) => Ok(()),
            Err(InsertError::Errno(errno)) => Err(errno),
            Err(InsertError::Memory(_)) => Err(Errno::ENOMEM),
        }
    }

    /// Deletes an element as user space would.
    ///
    /// # Errors
    /// [`Errno::ENOENT`] when there is none, [`Errno::EINVAL`] when the map has no deletion.
    pub fn map_delete(&mut self, map: u32, key: &[u8], host: &mut H) -> Result<(), Errno> {
        let entry = self.maps.get_mut(map).ok_or(Errno::ENOENT)?;
        if entry.shape.key_size != key.len() as u64 {
            return Err(Errno::EINVAL);
        }
        let removed = entry.delete(&self.memory, key)?;
        self.discard(map, removed, host);
        Ok(())
    }

    /// Lets the map `inner` stand under `key` in a map of maps.
    ///
    /// # Errors
    /// [`Errno::ENOENT`] for an unknown map, [`Errno::EINVAL`] when `map` is no map of maps.
    pub fn map_set_inner(&mut self, map: u32, key: &[u8], inner: u32) -> Result<(), Errno> {
        self.maps.get(inner).ok_or(Errno::ENOENT)?;
        match &mut self.maps.get_mut(map).ok_or(Errno::ENOENT)?.store {
            MapStore::Nested(entries) => {
                entries.insert(key.to_vec(), inner);
                Ok(())
            }
            _ => Err(Errno::EINVAL),
        }
    }

    /// Reads a ring buffer as user space would: all records up to the first unfinished one.
    pub fn ringbuf_drain(&mut self, map: u32) -> Vec<Vec<u8>> {
        let Self { maps, memory, .. } = self;
        match maps.get_mut(map).map(|map| &mut map.store) {
            Some(MapStore::Ringbuf(ring)) => ring.drain(memory),
            _ => Vec::new(),
        }
    }

    /// The address of the global variable called `name`, and its size in bytes.
    #[must_use]
    pub fn symbol_address(&self, name: &str) -> Option<(u64, u32)> {
        let symbol = self
            .image()
            .symbols
            .iter()
            .find(|symbol| symbol.name == name)?;
        let section = self.maps.get(symbol.map)?.first_value()?;
        Some((section + u64::from(symbol.offset), symbol.size))
    }

    /// The address of the kernel variable called `name`, of its instance on `cpu` if it has one
    /// for each; `None` when the object does not use it or the kernel lacks it.
    #[must_use]
    pub fn variable_address(&self, name: &str, cpu: u32) -> Option<u64> {
        let all: &Image = self.image();
        let at = all
            .variables
            .iter()
            .position(|variable| variable.name == name)?;
        let address = self.variables.address(at as u32)?;
        let cpu = if all.variables[at].percpu { cpu } else { 0 };
        self.variables.on_cpu(address, u64::from(cpu))
    }

    /// A task or cgroup is gone: its storage in all maps goes, with what is in it.
    pub fn free_owner(&mut self, owner: u64, host: &mut H) {
        let key = owner.to_le_bytes();
        let mut gone = Vec::new();
        for (index, map) in self
            .maps
            .iter_mut()
            .filter(|(_, map)| map.kind.is_storage())
        {
            gone.extend(
                map.delete(&self.memory, &key)
                    .ok()
                    .map(|removed| (index, removed)),
            );
        }
        for (map, removed) in gone {
            self.discard(map, removed, host);
        }
    }

    /// The timer at `timer` expires: its callback runs. Does nothing for a timer that no longer
    /// exists or has no callback.
    ///
    /// # Errors
    /// The callback's fault.
    pub fn fire_timer(&mut self, timer: u64, host: &mut H) -> Result<(), Fault> {
        let Some(state) = self.timers.get_mut(timer) else {
            return Ok(());
        };
        let (map, Some(callback)) = (state.map, state.callback) else {
            return Ok(());
        };
        let was_running = std::mem::replace(&mut state.running, true);
        let args = self.timer_args(timer, map);
        let result = self.call_function(callback, args, host);
        if let Some(state) = self.timers.get_mut(timer) {
            state.running = was_running;
        }
        result.map(|_| ())
    }

    /// The map in whose value the timer at this address lies, if it was initialised.
    #[must_use]
    pub fn map_of_timer(&mut self, timer: u64) -> Option<u32> {
        self.timers.get_mut(timer).map(|state| state.map)
    }

    /// A timer's callback gets the map, the key and the value.
    fn timer_args(&mut self, timer: u64, map: u32) -> [u64; 5] {
        let handle = self
            .maps
            .handle(map)
            .expect("a timer belongs to a map of this instance");
        let entry = self
            .maps
            .get(map)
            .expect("a timer belongs to a map of this instance");
        let value = timer - u64::from(entry.timer_at.unwrap_or(0));
        let key = match &entry.store {
            MapStore::Array(array) => {
                self.scratch_index(array.index_of(&entry.shape, value).unwrap_or(0))
            }
            _ => value - entry.shape.key_room(),
        };
        [handle, key, value, 0, 0]
    }

    /// Sets a value for a program or for the host. The sizes of key and value are the map's.
    pub(crate) fn update(
        &mut self,
        map: u32,
        update: &Update<'_>,
        host: &mut H,
    ) -> Result<(), InsertError> {
        let Self { maps, memory, .. } = self;
        let entry = maps.get_mut(map).ok_or(Errno::EINVAL)?;
        let leftover = entry.update(memory, update)?;
        if let Some(value) = leftover.reset {
            self.drop_fields(map, value, 1, host);
        }
        if let Some(removed) = leftover.removed {
            self.discard(map, removed, host);
        }
        Ok(())
    }

    /// An element left its map.
    pub(crate) fn discard(&mut self, map: u32, removed: Removed, host: &mut H) {
        let copies = self.maps.get(map).map_or(1, |map| map.shape.copies);
        self.drop_fields(map, removed.value, copies, host);
        self.bury(removed);
    }

    /// Cancels timers and drops kernel pointers of a value that is freed or overwritten.
    pub(crate) fn drop_fields(&mut self, map: u32, value: u64, copies: u64, host: &mut H) {
        self.empty_holders(map, value, copies, host);
        let Some(map) = self.maps.get(map) else {
            return;
        };
        if map.timer_at.is_none() && map.kptrs_at.is_empty() {
            return;
        }
        let mut own = Vec::new();
        for copy in 0..copies {
            let value = value + copy * map.shape.stride;
            if let Some(timer) = map.timer_at.map(|at| value + u64::from(at))
                && self.timers.forget(timer)
            {
                self.memory.release_held(TIMER_BYTES);
                host.timer_cancel(timer);
            }
            for at in &map.kptrs_at {
                let object = self.memory.load_u64(value + u64::from(*at));
                if object == 0 {
                    continue;
                }
                self.memory.poke_u64(value + u64::from(*at), 0);
                if self.objects.is_object(object) {
                    own.push(object);
                } else {
                    host.release(&mut self.memory, object);
                }
            }
        }
        self.drop_all(own, host);
    }

    /// Frees what stands in trees and lists of a value that is freed or overwritten.
    fn empty_holders(&mut self, map: u32, value: u64, copies: u64, host: &mut H) {
        if self.objects.is_empty() {
            return;
        }
        let Some(stride) = self.maps.get(map).map(|map| map.shape.stride) else {
            return;
        };
        let freed = self.owners_within(value, stride * copies);
        self.drop_all(freed, host);
    }

    fn drop_all(&mut self, objects: Vec<u64>, host: &mut H) {
        for object in objects {
            // An object that no verifier has seen may have dropped what it did not own.
            let _gone = self.drop_object(object, host);
        }
    }

    /// The index of the map that `handle` stands for.
    pub(crate) fn map_index(&self, handle: u64) -> Result<u32, Stop> {
        self.maps.index(handle)
    }

    const fn has_key_size(&self, size: u64, key: &[u8]) -> bool {
        size == key.len() as u64
    }
}

//! What the loader maps into its memory.

use std::fs::File;
use std::io;

use model::user_space::{BpfId, Mappable};

use super::create::{check_arena, flag, place_arena};
use super::{CallError, Door};
use crate::host::Host;
use crate::map::MapStore;
use crate::memory::Pages;
use crate::{Errno, Instance, MapKind};

impl<H: Host> Door<H> {
    /// Pages of a map that the loader can map; `None` if there are none.
    #[must_use]
    pub fn mappable(&self, vm: &Instance<H>, map: BpfId) -> Option<Mappable> {
        let map = self.objects.map(map).ok()?;
        if map.shape.kind == MapKind::Arena as u32 {
            return Some(Mappable {
                len: u64::from(map.shape.max_entries) * Pages::SIZE,
                address: map.address,
            });
        }
        let is_ring = [MapKind::Ringbuf as u32, MapKind::UserRingbuf as u32];
        let shared = is_ring.contains(&map.shape.kind) || map.shape.flags & flag::MMAPABLE != 0;
        let (_, len) = vm.maps.get(map.index?)?.pages.filter(|_| shared)?;
        Some(Mappable { len, address: None })
    }

    /// From now on the map's bytes are those of `pages`, an open file in memory of
    /// [`Mappable::len`] bytes, into which what the map holds is copied first. The process that
    /// has them may run only while no program does and nobody looks at the instance's memory.
    ///
    /// # Errors
    /// If the map has nothing to map, or the pages cannot be written or mapped; a file that is
    /// sealed against writing cannot.
    pub fn share(&self, vm: &mut Instance<H>, map: BpfId, pages: File) -> io::Result<()> {
        let none = || io::Error::new(io::ErrorKind::InvalidInput, "the map cannot be mapped");
        let Mappable { len, address } = self.mappable(vm, map).ok_or_else(none)?;
        let map = self.objects.map(map).map_err(|_| none())?;
        let (maps, memory) = vm.parts();
        if map.shape.kind == MapKind::Arena as u32 {
            address.ok_or_else(none)?;
            return memory.share_arena(pages);
        }
        let map = map.index.and_then(|index| maps.get(index));
        let (at, _) = map.and_then(|map| map.pages).ok_or_else(none)?;
        memory.share(at, len, &pages)
    }

    /// A recording of the loader says what it stored into a map's pages, from the byte `offset` on.
    /// No file is shared: the bytes are the instance's own.
    ///
    /// # Errors
    /// `EFAULT` for bytes that the map does not have, `EPERM` for a frozen map, `ENOMEM` if the
    /// policy may not have so many pages of an arena.
    pub fn store(
        &self,
        vm: &mut Instance<H>,
        id: BpfId,
        offset: u64,
        bytes: &[u8],
    ) -> Result<(), CallError> {
        let Mappable { len, address } = self.mappable(vm, id).ok_or(Errno::EFAULT)?;
        let end = offset.checked_add(bytes.len() as u64);
        let inside = end.is_some_and(|end| end <= len);
        let map = self.objects.map(id)?;
        if !inside || bytes.is_empty() {
            return Err(Errno::EFAULT.into());
        }
        if map.is_frozen {
            return Err(Errno::EPERM.into());
        }
        let (maps, memory) = vm.parts();
        if map.shape.kind == MapKind::Arena as u32 {
            address.ok_or(Errno::EFAULT)?;
            let stored = memory.store_arena(offset, bytes);
            return stored.then_some(()).ok_or(Errno::ENOMEM.into());
        }
        let map = map.index.and_then(|index| maps.get(index));
        let (at, _) = map.and_then(|map| map.pages).ok_or(Errno::EFAULT)?;
        memory.write(at + offset, bytes);
        Ok(())
    }

    /// The loader maps the arena at `address`.
    ///
    /// # Errors
    /// As `mmap()` refuses it: `EINVAL` and `ERANGE` for an address that no arena can have, `EBUSY`
    /// if it has another one.
    pub fn arena_at(
        &mut self,
        vm: &mut Instance<H>,
        id: BpfId,
        address: u64,
    ) -> Result<(), CallError> {
        if self.has_placed_arena(Some(id)) {
            return Err(Errno::ENOMEM.into());
        }
        let map = self.objects.map_mut(id)?;
        if map.shape.kind != MapKind::Arena as u32 || address == 0 {
            return Err(Errno::EINVAL.into());
        }
        check_arena(address, map.shape.max_entries)?;
        match map.address {
            Some(other) if other == address => Ok(()),
            Some(_) => Err(Errno::EBUSY.into()),
            None => {
                map.address = Some(address);
                let (index, pages) = (map.index.ok_or(Errno::EINVAL)?, map.shape.max_entries);
                // Another one may have been made in between.
                vm.memory().open_user_arena(pages);
                place_arena(vm, index, address);
                Ok(())
            }
        }
    }

    /// The loader has run: programs see what it has touched. Call it before a program runs.
    ///
    /// # Errors
    /// If the arena's file does not say what was touched (`EFAULT`).
    pub fn user_ran(&self, vm: &mut Instance<H>) -> Result<(), CallError> {
        let touched = vm.memory().adopt_touched();
        Ok(touched.map_err(|_| Errno::EFAULT)?)
    }

    /// Whether `poll()` on a ring buffer finds something to read, of a user ring buffer: room.
    #[must_use]
    pub fn is_ready(&self, vm: &Instance<H>, map: BpfId) -> bool {
        let map = self.objects.map(map).ok().and_then(|map| map.index);
        let map = map.and_then(|index| vm.maps.get(index));
        match map.map(|map| (map.kind, &map.store)) {
            Some((MapKind::UserRingbuf, MapStore::Ring(ring))) => ring.has_room(&vm.memory),
            Some((_, MapStore::Ring(ring))) => ring.has_data(&vm.memory),
            _ => false,
        }
    }

    /// The ring buffers whose pollers programs have woken since this was asked last.
    pub fn take_notified(&self, vm: &mut Instance<H>) -> Vec<BpfId> {
        let mut takes = |id: &BpfId| {
            let index = self.objects.map(*id).ok().and_then(|map| map.index);
            let map = index.and_then(|index| vm.maps.get_mut(index));
            match map.map(|map| &mut map.store) {
                Some(MapStore::Ring(ring)) => std::mem::take(&mut ring.notified),
                _ => false,
            }
        };
        let rings = self.rings.iter().copied();
        rings.filter(|id| takes(id)).collect()
    }
}

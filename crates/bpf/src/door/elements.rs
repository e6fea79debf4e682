//! Elements of maps as user space reads and sets them.

use model::user_space::{BpfAnswer, BpfId, Fds};

use super::create::flag;
use super::objects::UserMap;
use super::{CallError, Door, EBADF, ENOTSUPP};
use crate::host::Host;
use crate::map::{Map, MapStore, index_of};
use crate::{Errno, Instance, MapKind, Memory, Update};

/// `BPF_NOEXIST`, `BPF_EXIST` and `BPF_F_LOCK` (include/uapi/linux/bpf.h).
const NOEXIST: u64 = 1;
const EXIST: u64 = 2;
const LOCK: u64 = 4;

/// An element to set.
pub(super) struct Change<'a> {
    pub(super) key: &'a [u8],
    pub(super) value: &'a [u8],
    pub(super) flags: u64,
    pub(super) fds: &'a Fds,
}

impl UserMap {
    /// Whether the loader may change values.
    fn check_writable(&self) -> Result<(), Errno> {
        let refused = self.is_frozen || self.shape.flags & flag::RDONLY != 0;
        if refused { Err(Errno::EPERM) } else { Ok(()) }
    }

    fn check_key(&self, key: &[u8]) -> Result<(), Errno> {
        (key.len() == self.shape.key_size as usize)
            .then_some(())
            .ok_or(Errno::EINVAL)
    }

    /// The index of a map that is no `struct_ops`.
    fn index(&self) -> Result<u32, Errno> {
        self.index.ok_or(ENOTSUPP)
    }
}

impl<H: Host> Door<H> {
    pub(super) fn lookup(
        &mut self,
        (vm, host): (&mut Instance<H>, &mut H),
        id: BpfId,
        key: &[u8],
        (flags, delete): (u64, bool),
    ) -> Result<BpfAnswer, CallError> {
        let map = self.objects.map(id)?;
        if map.shape.flags & flag::WRONLY != 0 {
            return Err(Errno::EPERM.into());
        }
        if flags & !LOCK != 0 || flags & LOCK != 0 && !map.shape.has_lock {
            return Err(Errno::EINVAL.into());
        }
        map.check_key(key)?;
        if let Some(table) = &map.table {
            return match (delete, index_of(key)) {
                (true, _) => Err(ENOTSUPP.into()),
                (false, Some(0)) => Ok(BpfAnswer::Bytes(table.value().to_vec())),
                _ => Err(Errno::ENOENT.into()),
            };
        }
        if delete {
            map.check_writable()?;
        }
        let index = map.index()?;
        let inner = map.entries.get(key).copied();
        let Instance { maps, memory, .. } = &mut *vm;
        let entry = maps.get_mut(index).ok_or(EBADF)?;
        let kind = entry.kind;
        let bytes = match (&mut entry.store, delete) {
            (MapStore::Queue(queue), _) => {
                let at = if delete {
                    queue.pop(&entry.shape)
                } else {
                    queue.peek(&entry.shape)
                }?;
                copy(memory, at, entry.shape.value_size)
            }
            (MapStore::Nested(_), false) => {
                let inner = inner.ok_or(Errno::ENOENT)?;
                inner.0.to_le_bytes().to_vec()
            }
            (MapStore::Array(_), false) | (MapStore::Hash(_), _) if !kind.is_storage() => {
                read(entry, memory, key).ok_or(Errno::ENOENT)?
            }
            // Storage is found by a file descriptor of its owner.
            (MapStore::Hash(_), _) => return Err(Errno::EOPNOTSUPP.into()),
            (MapStore::Arena(_), _) => return Err(Errno::EINVAL.into()),
            _ => return Err(ENOTSUPP.into()),
        };
        if delete && matches!(entry.store, MapStore::Hash(_)) {
            vm.map_delete(index, key, host)?;
        }
        Ok(BpfAnswer::Bytes(bytes))
    }

    pub(super) fn update(
        &mut self,
        vm: &mut Instance<H>,
        host: &mut H,
        id: BpfId,
        change: &Change<'_>,
    ) -> Result<BpfAnswer, CallError> {
        let map = self.objects.map(id)?;
        map.check_writable()?;
        map.check_key(change.key)?;
        if change.flags & LOCK != 0 && !map.shape.has_lock {
            return Err(Errno::EINVAL.into());
        }
        if map.table.is_some() {
            return self.set_table(vm, id, change);
        }
        let index = map.index()?;
        let entry = vm.maps.get(index).ok_or(EBADF)?;
        if change.value.len() as u64 != user_size(entry) {
            return Err(Errno::EINVAL.into());
        }
        match &entry.store {
            MapStore::Nested(_) => return self.set_inner(vm, id, change),
            MapStore::Queue(_) => return push(vm, index, change),
            MapStore::Array(_) | MapStore::Hash(_) if !entry.kind.is_storage() => {}
            MapStore::Hash(_) | MapStore::Arena(_) => return Err(Errno::EOPNOTSUPP.into()),
            _ => return Err(ENOTSUPP.into()),
        }
        set(vm, host, index, change)?;
        Ok(BpfAnswer::Done)
    }

    /// Puts a map into a map of maps.
    fn set_inner(
        &mut self,
        vm: &mut Instance<H>,
        id: BpfId,
        change: &Change<'_>,
    ) -> Result<BpfAnswer, CallError> {
        let fd = index_of(change.value).ok_or(Errno::EINVAL)?;
        let inner_id = found(change.fds, fd).ok_or(EBADF)?;
        let inner = self.objects.map(inner_id)?;
        let map = self.objects.map(id)?;
        let (wanted, mut given) = (map.inner.ok_or(Errno::EINVAL)?, inner.shape);
        let is_array = map.shape.kind == MapKind::ArrayOfMaps as u32;
        let outside = index_of(change.key).is_none_or(|key| key >= map.shape.max_entries);
        let exists = map.entries.contains_key(change.key);
        if change.flags > EXIST || is_array && change.flags != 0 {
            return Err(Errno::EINVAL.into());
        }
        if is_array && outside {
            return Err(Errno::E2BIG.into());
        }
        // An array that says so may have another number of elements.
        let any_count = wanted.kind != MapKind::Array as u32 || wanted.flags & flag::INNER_MAP != 0;
        if any_count {
            given.max_entries = wanted.max_entries;
        }
        let inner_index = inner.index.ok_or(Errno::EINVAL)?;
        if given != wanted {
            return Err(Errno::EINVAL.into());
        }
        match (change.flags, exists) {
            (NOEXIST, true) => return Err(Errno::EEXIST.into()),
            (EXIST, false) => return Err(Errno::ENOENT.into()),
            _ => {}
        }
        if !is_array && !exists && map.entries.len() >= map.shape.max_entries as usize {
            return Err(Errno::E2BIG.into());
        }
        vm.map_set_inner(map.index()?, change.key, inner_index)?;
        let map = self.objects.map_mut(id)?;
        map.entries.insert(change.key.to_vec(), inner_id);
        Ok(BpfAnswer::Done)
    }

    pub(super) fn delete(
        &mut self,
        vm: &mut Instance<H>,
        host: &mut H,
        id: BpfId,
        key: &[u8],
    ) -> Result<BpfAnswer, CallError> {
        let map = self.objects.map_mut(id)?;
        map.check_writable()?;
        map.check_key(key)?;
        let index = map.index()?;
        match &mut vm.maps.get_mut(index).ok_or(EBADF)?.store {
            MapStore::Nested(entries) => {
                map.entries.remove(key);
                entries.remove(key).ok_or(Errno::ENOENT)?;
            }
            MapStore::Hash(_) if MapKind::is_storage_number(map.shape.kind) => {
                return Err(Errno::EOPNOTSUPP.into());
            }
            MapStore::Hash(_) => vm.map_delete(index, key, host)?,
            MapStore::Array(_) | MapStore::Queue(_) => return Err(Errno::EINVAL.into()),
            MapStore::Arena(_) => return Err(Errno::EOPNOTSUPP.into()),
            _ => return Err(ENOTSUPP.into()),
        }
        Ok(BpfAnswer::Done)
    }

    pub(super) fn next_key(
        &self,
        vm: &Instance<H>,
        id: BpfId,
        key: Option<&[u8]>,
    ) -> Result<BpfAnswer, CallError> {
        let map = self.objects.map(id)?;
        if map.shape.flags & flag::WRONLY != 0 {
            return Err(Errno::EPERM.into());
        }
        if let Some(key) = key {
            map.check_key(key)?;
        }
        let Some(index) = map.index else {
            // A table has one element.
            let at_end = key.and_then(index_of) == Some(0);
            let first = BpfAnswer::Bytes(vec![0; 4]);
            return if at_end {
                Err(Errno::ENOENT.into())
            } else {
                Ok(first)
            };
        };
        let entry = vm.maps.get(index).ok_or(EBADF)?;
        let next = match &entry.store {
            MapStore::Array(array) => {
                let after = key.and_then(index_of).filter(|key| *key < array.len());
                let next = after.map_or(0, |key| key + 1);
                let within = (next < array.len()).then_some(next);
                within.map(|next| next.to_le_bytes().to_vec())
            }
            MapStore::Nested(_) if map.shape.kind == MapKind::ArrayOfMaps as u32 => {
                let most = map.shape.max_entries;
                let next = key.and_then(index_of).filter(|key| *key < most);
                let next = next.map_or(0, |key| key + 1);
                (next < most).then(|| next.to_le_bytes().to_vec())
            }
            MapStore::Nested(entries) => {
                let after = key.filter(|key| entries.contains_key(*key));
                match after {
                    None => entries.keys().next().cloned(),
                    Some(key) => {
                        let mut rest = entries.keys().skip_while(|other| other.as_slice() != key);
                        rest.nth(1).cloned()
                    }
                }
            }
            MapStore::Hash(hash) if !entry.kind.is_storage() => {
                hash.key_after(&vm.memory, key, entry.shape.key_size)
            }
            MapStore::Queue(_) => return Err(Errno::EINVAL.into()),
            MapStore::Hash(_) | MapStore::Arena(_) => return Err(Errno::EOPNOTSUPP.into()),
            _ => return Err(ENOTSUPP.into()),
        };
        Ok(BpfAnswer::Bytes(next.ok_or(Errno::ENOENT)?))
    }

    pub(super) fn freeze(
        &mut self,
        vm: &mut Instance<H>,
        id: BpfId,
    ) -> Result<BpfAnswer, CallError> {
        let map = self.objects.map_mut(id)?;
        if map.table.is_some() || map.shape.has_fields {
            return Err(ENOTSUPP.into());
        }
        if map.shape.flags & flag::RDONLY != 0 {
            return Err(Errno::EPERM.into());
        }
        if map.is_frozen {
            return Err(Errno::EBUSY.into());
        }
        map.is_frozen = true;
        if map.shape.flags & flag::RDONLY_PROG != 0 {
            let index = map.index()?;
            let Instance { maps, memory, .. } = &mut *vm;
            if let Some(map) = maps.get_mut(index) {
                map.freeze(memory);
            }
        }
        Ok(BpfAnswer::Done)
    }
}

/// The object of a file descriptor.
pub(super) fn found(fds: &Fds, fd: u32) -> Option<BpfId> {
    fds.iter()
        .find(|(other, _)| *other == fd)
        .map(|(_, id)| *id)
}

/// Bytes of a value as user space has it: of a per-CPU map one for each CPU, padded.
fn user_size(map: &Map) -> u64 {
    match (&map.store, is_percpu(map)) {
        (MapStore::Nested(_), _) => 4,
        (_, true) => map.shape.stride * map.shape.copies,
        (_, false) => map.shape.value_size,
    }
}

const fn is_percpu(map: &Map) -> bool {
    matches!(map.kind, MapKind::PercpuArray | MapKind::PercpuHash)
}

fn copy(memory: &Memory, address: u64, len: u64) -> Vec<u8> {
    let mut bytes = vec![0; len as usize];
    memory.read(address, &mut bytes);
    bytes
}

/// The value under `key` as user space gets it: what the kernel looks after reads as zero.
fn read(map: &Map, memory: &Memory, key: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    for cpu in 0..map.shape.copies as u32 {
        let address = map.peek(memory, key, cpu)?;
        let value = copy(memory, address, map.shape.value_size);
        bytes.extend(map.shape.plain(&value));
        if is_percpu(map) {
            let padded = map.shape.stride as usize * (cpu as usize + 1);
            bytes.resize(padded, 0);
        }
    }
    Some(bytes)
}

fn push<H: Host>(
    vm: &mut Instance<H>,
    map: u32,
    change: &Change<'_>,
) -> Result<BpfAnswer, CallError> {
    let Instance { maps, memory, .. } = vm;
    let map = maps.get_mut(map).ok_or(EBADF)?;
    if let MapStore::Queue(queue) = &mut map.store {
        queue.push(memory, &map.shape, change.value, change.flags)?;
    }
    Ok(BpfAnswer::Done)
}

/// Sets an element of an array or hash map, in a per-CPU map for all CPUs.
fn set<H: Host>(
    vm: &mut Instance<H>,
    host: &mut H,
    index: u32,
    change: &Change<'_>,
) -> Result<(), CallError> {
    let map = vm.maps.get(index).ok_or(EBADF)?;
    let flags = change.flags & !LOCK;
    if flags > EXIST || is_percpu(map) && change.flags & LOCK != 0 {
        return Err(Errno::EINVAL.into());
    }
    let (size, stride) = (map.shape.value_size as usize, map.shape.stride as usize);
    let copies = if is_percpu(map) {
        map.shape.copies as u32
    } else {
        1
    };
    for cpu in 0..copies {
        let start = cpu as usize * stride;
        let value = change.value.get(start..start + size).ok_or(Errno::EINVAL)?;
        let update = Update {
            key: change.key,
            value,
            // The first one has made the element.
            flags: if cpu == 0 { change.flags } else { 0 },
            cpu,
        };
        vm.update(index, &update, host)?;
    }
    Ok(())
}

//! `BPF_MAP_CREATE`.

use model::user_space::{BpfAnswer, BpfId, MapCreate};

use super::objects::{Declared, Object, UserMap};
use super::{CallError, Door, ENOTSUPP, ERANGE};
use crate::btf::BtfKind;
use crate::host::Host;
use crate::image::Symbol;
use crate::link::ValueFields;
use crate::memory::Pages;
use crate::{Errno, Instance, MapDef, MapKind};

/// Flags of a map (include/uapi/linux/bpf.h).
pub(super) mod flag {
    pub(in crate::door) const NO_PREALLOC: u32 = 1 << 0;
    pub(in crate::door) const NO_COMMON_LRU: u32 = 1 << 1;
    pub(in crate::door) const NUMA_NODE: u32 = 1 << 2;
    /// The loader may not write.
    pub(in crate::door) const RDONLY: u32 = 1 << 3;
    /// The loader may not read.
    pub(in crate::door) const WRONLY: u32 = 1 << 4;
    pub(in crate::door) const ZERO_SEED: u32 = 1 << 6;
    /// Programs may not write.
    pub(in crate::door) const RDONLY_PROG: u32 = 1 << 7;
    pub(in crate::door) const WRONLY_PROG: u32 = 1 << 8;
    pub(in crate::door) const CLONE: u32 = 1 << 9;
    pub(in crate::door) const MMAPABLE: u32 = 1 << 10;
    pub(in crate::door) const PRESERVE_ELEMS: u32 = 1 << 11;
    pub(in crate::door) const INNER_MAP: u32 = 1 << 12;
    pub(in crate::door) const LINK: u32 = 1 << 13;
    pub(in crate::door) const VALUE_TYPE_FD: u32 = 1 << 15;
    pub(in crate::door) const SEGV_ON_FAULT: u32 = 1 << 17;
    pub(in crate::door) const NO_USER_CONV: u32 = 1 << 18;
    pub(in crate::door) const ACCESS: u32 = RDONLY | WRONLY | RDONLY_PROG | WRONLY_PROG;
}

/// `BPF_MAP_TYPE_STRUCT_OPS`.
pub(super) const STRUCT_OPS: u32 = 26;

/// Greatest value of a task's or cgroup's storage (`BPF_LOCAL_STORAGE_MAX_VALUE_SIZE`, kernel 6.18,
/// `include/linux/bpf_local_storage.h`, for its largest structures).
const MOST_STORAGE: u32 = (64 << 10) - 512;

impl<H: Host> Door<H> {
    pub(super) fn create_map(
        &mut self,
        vm: &mut Instance<H>,
        asked: &MapCreate,
    ) -> Result<BpfAnswer, CallError> {
        if !is_name(&asked.name) {
            return Err(Errno::EINVAL.into());
        }
        if asked.kind == STRUCT_OPS {
            return self.create_struct_ops(asked);
        }
        let kind = MapKind::from_number(asked.kind).ok_or(Errno::EINVAL)?;
        check_sizes(kind, asked)?;
        if asked.extra != 0 && kind != MapKind::Arena || asked.kernel_value_type != 0 {
            return Err(Errno::EINVAL.into());
        }
        let fields = self.fields(asked)?;
        let inner = self.template(kind, asked.inner)?;
        let has_lock = fields.lock_at.is_some();
        let has_fields = has_lock || fields.timer_at.is_some() || !fields.kptrs_at.is_empty();
        let shape = Declared {
            kind: asked.kind,
            key_size: asked.key_size,
            value_size: asked.value_size,
            max_entries: asked.max_entries,
            flags: asked.flags,
            has_fields,
            has_lock,
        };
        let def = MapDef {
            name: asked.name.clone(),
            kind,
            key_size: asked.key_size,
            value_size: asked.value_size,
            value: None,
            max_entries: asked.max_entries,
            flags: asked.flags,
            initial: None,
            frozen: false,
            timer_at: fields.timer_at,
            lock_at: fields.lock_at,
            kptrs_at: fields.kptrs_at,
            inner: None,
        };
        let index = self.place_map(vm, def)?;
        self.add_symbols(vm, asked, index);
        let mut address = None;
        if kind == MapKind::Arena {
            let bytes = u64::from(asked.max_entries) * Pages::SIZE;
            // What an instruction may point into.
            let within = u32::try_from(bytes).unwrap_or(u32::MAX);
            vm.image_mut().maps[index as usize].value_size = within;
            address = (asked.extra != 0).then_some(asked.extra);
            if let Some(address) = address {
                place_arena(vm, index, address);
            }
        }
        let id = self.objects.add(Object::Map(Box::new(UserMap {
            index: Some(index),
            shape,
            is_frozen: false,
            inner,
            entries: std::collections::BTreeMap::new(),
            table: None,
            address,
            is_open: true,
        })))?;
        if matches!(kind, MapKind::Ringbuf | MapKind::UserRingbuf) {
            let objects = &self.objects;
            self.rings.retain(|ring| objects.map(*ring).is_ok());
            self.rings.push(id);
        }
        Ok(BpfAnswer::Created(id))
    }

    fn place_map(&self, vm: &mut Instance<H>, def: MapDef) -> Result<u32, CallError> {
        if def.kind == MapKind::Arena && self.has_placed_arena(None) {
            // A kernel has as many as it has memory for; this machine has one.
            return Err(Errno::ENOMEM.into());
        }
        let mappable = def.flags & flag::MMAPABLE != 0;
        let read_only = def.kind == MapKind::Array && def.flags & flag::RDONLY_PROG != 0;
        let index = vm.add_map(def, (mappable, read_only))?;
        Ok(index.ok_or(Errno::ENOMEM)?)
    }

    /// Whether an arena other than `but` is at an address. One that is at none cannot be used: a
    /// loader makes such to see whether there are arenas.
    pub(super) fn has_placed_arena(&self, but: Option<BpfId>) -> bool {
        let maps = self.objects.iter().filter(|(id, _)| Some(*id) != but);
        let mut maps = maps.filter_map(|(id, _)| self.objects.map(id).ok());
        maps.any(|map| map.shape.kind == MapKind::Arena as u32 && map.address.is_some())
    }

    /// The variables of a data section, whose type says where they are.
    fn add_symbols(&self, vm: &mut Instance<H>, asked: &MapCreate, map: u32) {
        let types = asked.btf.and_then(|types| self.objects.types(types).ok());
        let Some(btf) = types.map(|types| &types.btf) else {
            return;
        };
        let Some(section) = btf.id(asked.value_type) else {
            return;
        };
        let BtfKind::Datasec(variables) = &btf.get(section).kind else {
            return;
        };
        let symbols = variables.iter().map(|variable| Symbol {
            name: btf.name(variable.ty).to_owned(),
            map,
            offset: variable.offset,
            size: variable.size,
            scalar: None,
            ty: None,
        });
        vm.image_mut().symbols.extend(symbols);
    }

    /// Timers, locks and kernel pointers of the value.
    fn fields(&self, asked: &MapCreate) -> Result<ValueFields, CallError> {
        let Some(types) = asked.btf else {
            return Ok(ValueFields::default());
        };
        let btf = &self.objects.types(types)?.btf;
        if asked.value_type == 0 {
            return match asked.key_type {
                0 => Ok(ValueFields::default()),
                _ => Err(Errno::EINVAL.into()),
            };
        }
        let sized = |number: u32, size: u32| {
            let id = btf.id(number)?;
            // The types of data sections have no size here.
            let is_section = matches!(btf.get(id).kind, BtfKind::Datasec(_));
            (is_section || btf.size(id) == Some(size)).then_some(id)
        };
        let key_fits = asked.key_type == 0 || sized(asked.key_type, asked.key_size).is_some();
        let value = sized(asked.value_type, asked.value_size).filter(|_| key_fits);
        let fields = ValueFields::find(btf, value.ok_or(Errno::EINVAL)?);
        Ok(fields.ok_or(Errno::E2BIG)?)
    }

    /// What a map of maps takes.
    fn template(&self, kind: MapKind, inner: Option<BpfId>) -> Result<Option<Declared>, CallError> {
        if !matches!(kind, MapKind::ArrayOfMaps | MapKind::HashOfMaps) {
            return Ok(None);
        }
        let inner = self.objects.map(inner.ok_or(Errno::EINVAL)?)?;
        // The kernel nests them one deep, and not those with an address of their own.
        if inner.inner.is_some() || inner.index.is_none() {
            return Err(Errno::EINVAL.into());
        }
        Ok(Some(inner.shape))
    }
}

/// Says where user space sees the arena `map`, so that programs' pointers have that value.
pub(super) fn place_arena<H: Host>(vm: &mut Instance<H>, map: u32, address: u64) {
    let (maps, memory) = vm.parts();
    memory.place_arena(address);
    if let Some(map) = maps.get_mut(map) {
        map.place_arena(address);
    }
}

/// The kernel takes letters, digits, `_` and `.` (`bpf_obj_name_cpy()`), and 15 of them.
pub(super) fn is_name(name: &str) -> bool {
    let known = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'.';
    name.len() <= 15 && name.bytes().all(known)
}

/// The address of an arena: its first page, and within one block of 4 GiB.
pub(super) fn check_arena(address: u64, pages: u32) -> Result<(), Errno> {
    if !address.is_multiple_of(Pages::SIZE) {
        return Err(Errno::EINVAL);
    }
    let bytes = u64::from(pages) * Pages::SIZE;
    if bytes > 1 << 32 {
        return Err(Errno::E2BIG);
    }
    let last = address.checked_add(bytes - 1).ok_or(ERANGE)?;
    if address >> 32 == last >> 32 {
        Ok(())
    } else {
        Err(ERANGE)
    }
}

/// The flags of a kind, and the sizes of its keys and values if it has but one; by each kind's
/// `map_alloc_check`.
const fn rules(kind: MapKind) -> (u32, Option<u32>, Option<u32>) {
    use flag::{
        ACCESS, CLONE, INNER_MAP, MMAPABLE, NO_COMMON_LRU, NO_PREALLOC, NO_USER_CONV, NUMA_NODE,
        PRESERVE_ELEMS, SEGV_ON_FAULT, ZERO_SEED,
    };
    match kind {
        MapKind::Array => (
            NUMA_NODE | MMAPABLE | ACCESS | PRESERVE_ELEMS | INNER_MAP,
            Some(4),
            None,
        ),
        MapKind::PercpuArray => (ACCESS | PRESERVE_ELEMS, Some(4), None),
        MapKind::Hash | MapKind::PercpuHash => {
            (NO_PREALLOC | NUMA_NODE | ACCESS | ZERO_SEED, None, None)
        }
        MapKind::LruHash => (NO_COMMON_LRU | NUMA_NODE | ACCESS | ZERO_SEED, None, None),
        MapKind::ArrayOfMaps => (NUMA_NODE | ACCESS | INNER_MAP, Some(4), Some(4)),
        MapKind::HashOfMaps => (NO_PREALLOC | NUMA_NODE | ACCESS | ZERO_SEED, None, Some(4)),
        MapKind::PerfEventArray => (NUMA_NODE | ACCESS | PRESERVE_ELEMS, Some(4), Some(4)),
        MapKind::Queue | MapKind::Stack => (NUMA_NODE | ACCESS, Some(0), None),
        MapKind::Ringbuf | MapKind::UserRingbuf => (NUMA_NODE, Some(0), Some(0)),
        MapKind::Arena => (SEGV_ON_FAULT | MMAPABLE | NO_USER_CONV, Some(0), Some(0)),
        MapKind::TaskStorage | MapKind::CgrpStorage => (NO_PREALLOC | CLONE, Some(4), None),
    }
}

/// What each kind's `map_alloc_check` and `map_alloc` refuse, but for memory.
fn check_sizes(kind: MapKind, asked: &MapCreate) -> Result<(), Errno> {
    use flag::{MMAPABLE, NO_PREALLOC, RDONLY_PROG, WRONLY_PROG};
    let (allowed, key, value) = rules(kind);
    let of_maps = matches!(kind, MapKind::ArrayOfMaps | MapKind::HashOfMaps);
    let refused = if of_maps {
        RDONLY_PROG | WRONLY_PROG
    } else {
        0
    };
    let is_storage = kind.is_storage();
    let key_fits = key.map_or(asked.key_size > 0, |key| asked.key_size == key);
    let value_fits = value.map_or(asked.value_size > 0, |value| asked.value_size == value);
    let count_fits = (asked.max_entries == 0) == is_storage;
    if asked.flags & !allowed != 0 || asked.flags & refused != 0 {
        // An LRU map cannot be allocated bit by bit.
        let lru = kind == MapKind::LruHash && asked.flags & NO_PREALLOC != 0;
        return Err(if lru { ENOTSUPP } else { Errno::EINVAL });
    }
    if !key_fits || !value_fits || !count_fits {
        return Err(Errno::EINVAL);
    }
    match kind {
        MapKind::Ringbuf | MapKind::UserRingbuf => {
            let size = u64::from(asked.max_entries);
            let whole = size.is_power_of_two() && size.is_multiple_of(Pages::SIZE);
            whole.then_some(()).ok_or(Errno::EINVAL)
        }
        MapKind::Arena if asked.flags & MMAPABLE == 0 => Err(Errno::EINVAL),
        MapKind::Arena => check_arena(asked.extra, asked.max_entries),
        MapKind::TaskStorage | MapKind::CgrpStorage => {
            let typed = asked.key_type != 0 && asked.value_type != 0;
            if asked.flags & NO_PREALLOC == 0 || !typed {
                return Err(Errno::EINVAL);
            }
            (asked.value_size <= MOST_STORAGE)
                .then_some(())
                .ok_or(Errno::E2BIG)
        }
        MapKind::Hash | MapKind::PercpuHash | MapKind::LruHash | MapKind::HashOfMaps => {
            // `KMALLOC_MAX_SIZE`; a per-CPU value is limited by itself.
            let element = u64::from(asked.key_size) + u64::from(asked.value_size);
            let percpu = kind == MapKind::PercpuHash && asked.value_size > 32 << 10;
            (element < 4 << 20 && !percpu)
                .then_some(())
                .ok_or(Errno::E2BIG)
        }
        MapKind::PercpuArray if asked.value_size > 32 << 10 => Err(Errno::E2BIG),
        _ if asked.value_size > i32::MAX as u32 => Err(Errno::E2BIG),
        _ => Ok(()),
    }
}

//! Sizes of a map's keys and values, and what is special inside a value.

use std::ops::Range;

use crate::{MapDef, MapKind, Memory};

/// How a map's elements lie in memory.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    pub(crate) key_size: u64,
    pub(crate) value_size: u64,
    /// Bytes from one value to the next: the size rounded up to 8, as in the kernel.
    pub(crate) stride: u64,
    /// Copies of each value: one for each CPU, or 1.
    pub(crate) copies: u64,
    /// Parts of a value that an update copies: all but locks, timers and kernel pointers.
    plain: Vec<Range<usize>>,
}

/// Bytes of a `struct bpf_timer`, a `struct bpf_spin_lock` and a kernel pointer.
const TIMER_BYTES: u32 = 16;
const LOCK_BYTES: u32 = 4;
const KPTR_BYTES: u32 = 8;

impl Shape {
    /// The sizes of a map that [`check`] accepts.
    pub(crate) fn new(def: &MapDef, cpus: u32) -> Self {
        let percpu = matches!(def.kind, MapKind::PercpuArray | MapKind::PercpuHash);
        let value_size = u64::from(def.value_size);
        Self {
            key_size: key_size(def),
            value_size,
            stride: value_size.next_multiple_of(8),
            copies: if percpu { u64::from(cpus) } else { 1 },
            plain: plain_parts(def),
        }
    }

    /// Bytes of a key, padded so that the value behind it is aligned.
    pub(crate) const fn key_room(&self) -> u64 {
        self.key_size.next_multiple_of(8)
    }

    /// `value` with zeros where the kernel itself looks after something.
    pub(crate) fn plain(&self, value: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; value.len()];
        for part in &self.plain {
            bytes[part.clone()].copy_from_slice(&value[part.clone()]);
        }
        bytes
    }

    /// Copies `value` to `address`, but not over special fields.
    pub(crate) fn put(&self, memory: &mut Memory, address: u64, value: &[u8]) {
        for part in &self.plain {
            memory.write(address + part.start as u64, &value[part.clone()]);
        }
    }
}

/// Greatest size of an element that the kernel allocates by itself (`KMALLOC_MAX_SIZE` with 4 KiB
/// pages, Linux 6.18, include/linux/slab.h).
const MAX_ELEMENT: u64 = 4 << 20;

/// What is wrong with a map's sizes, if something is. The kernel would not create it.
pub(crate) fn check(def: &MapDef) -> Option<&'static str> {
    use MapKind::{
        Array, CgrpStorage, Hash, LruHash, PercpuArray, PercpuHash, Queue, Stack, TaskStorage,
    };
    let holds_values = matches!(
        def.kind,
        Array
            | PercpuArray
            | Hash
            | PercpuHash
            | LruHash
            | Queue
            | Stack
            | TaskStorage
            | CgrpStorage
    );
    if !holds_values {
        return None;
    }
    let is_array = matches!(def.kind, Array | PercpuArray);
    if is_array && def.key_size != 4 {
        return Some("an array's key has 4 bytes");
    }
    let element = u64::from(def.key_size) + u64::from(def.value_size);
    if def.value_size == 0 || !is_array && element > MAX_ELEMENT {
        return Some("a value has 1 byte to 4 MiB");
    }
    let inside = |at: u32, len: u32| at.checked_add(len).is_some_and(|end| end <= def.value_size);
    let fields_inside = def.timer_at.is_none_or(|at| inside(at, TIMER_BYTES))
        && def.lock_at.is_none_or(|at| inside(at, LOCK_BYTES))
        && def.kptrs_at.iter().all(|at| inside(*at, KPTR_BYTES));
    (!fields_inside).then_some("a timer, lock or pointer lies outside the value")
}

/// Storage of tasks and cgroups is found by its owner's address.
fn key_size(def: &MapDef) -> u64 {
    match def.kind {
        MapKind::TaskStorage | MapKind::CgrpStorage => 8,
        _ => u64::from(def.key_size),
    }
}

fn plain_parts(def: &MapDef) -> Vec<Range<usize>> {
    let mut special: Vec<(u32, u32)> = def.kptrs_at.iter().map(|at| (*at, KPTR_BYTES)).collect();
    special.extend(def.timer_at.map(|at| (at, TIMER_BYTES)));
    special.extend(def.lock_at.map(|at| (at, LOCK_BYTES)));
    special.sort_unstable();
    let mut parts = Vec::new();
    let mut from = 0;
    for (at, len) in special {
        parts.push(from..at as usize);
        from = (at + len) as usize;
    }
    parts.push(from..def.value_size as usize);
    parts.retain(|part| part.start < part.end);
    parts
}

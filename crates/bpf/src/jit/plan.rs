//! What the translator must know of an instance.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::intrinsic::Intrinsic;
use crate::map::{Map, MapStore, Maps};
use crate::memory::Memory;
use crate::op::Code;
use crate::reach::mentioned;
use crate::{Host, Image, Instance};

use super::native::{Callees, Offsets};

/// An instance as the translator sees it. Nothing here changes as long as the instance lives.
pub(super) struct InstancePlan<'a> {
    pub(super) image: &'a Image,
    pub(super) code: &'a Arc<Code>,
    pub(super) memory: &'a Memory,
    pub(super) maps: &'a Maps,
    pub(super) imports: Vec<ImportPlan>,
    /// By map.
    pub(super) arrays: Vec<Option<ArrayPlan>>,
    /// Functions that are entered with an address in the region in `r1` and zeros in the other
    /// registers, or interpreted.
    pub(super) contexts: BTreeSet<u32>,
    /// Addresses of the functions that native code calls.
    pub(super) callees: Callees,
    pub(super) at: Offsets,
    /// See [`crate::Config::places`].
    pub(super) places: bool,
}

/// An import as the translator sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ImportPlan {
    pub(super) intrinsic: Option<Intrinsic>,
    pub(super) cost_ps: u64,
    /// The function that native code calls for it, as an address.
    pub(super) direct: Option<usize>,
    /// It only ends what was begun, and is no place.
    pub(super) ends: bool,
}

/// The values of an array that programs may write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ArrayPlan {
    pub(super) base: u64,
    pub(super) count: u32,
    pub(super) stride: u64,
    /// Copies of each value: one for each CPU, or 1.
    pub(super) copies: u64,
}

impl<'a> InstancePlan<'a> {
    pub(super) fn new<H: Host>(vm: &'a Instance<H>) -> Self {
        let imports = vm.bindings.iter().map(|binding| ImportPlan {
            intrinsic: binding.intrinsic,
            cost_ps: binding.cost_ps,
            direct: binding.direct.map(|direct| direct.0 as *const () as usize),
            ends: binding.ends,
        });
        Self {
            image: &vm.image,
            code: &vm.code,
            memory: &vm.memory,
            maps: &vm.maps,
            imports: imports.collect(),
            arrays: vm.maps.iter().map(|map| array(map, &vm.memory)).collect(),
            contexts: contexts(&vm.image),
            callees: Callees::of::<H>(),
            at: Offsets::of::<H>(),
            places: vm.config.places,
        }
    }

    /// The array that `handle` stands for; `None` for other maps.
    pub(super) fn array(&self, handle: u64) -> Option<ArrayPlan> {
        self.arrays[self.maps.index(handle).ok()? as usize]
    }

    /// Whether `function` is entered with a pointer into the region as its only argument.
    pub(super) fn has_context(&self, function: u32) -> bool {
        self.contexts.contains(&function)
    }

    /// Whether programs may write these bytes as long as the instance lives: they lie in an array.
    pub(super) fn is_writable(&self, address: u64, len: u64) -> bool {
        let holds = |array: &ArrayPlan| {
            let bytes = u64::from(array.count) * array.copies * array.stride;
            address >= array.base && address - array.base + len <= bytes
        };
        address >= self.memory.writable_start() && self.arrays.iter().flatten().any(holds)
    }
}

/// Functions that are programs, which get a context, and that no function calls or takes the
/// address of. With no programs, as in tests, all such functions.
fn contexts(image: &Image) -> BTreeSet<u32> {
    let all = 0..image.functions.len() as u32;
    let others: BTreeSet<u32> = all.clone().flat_map(|f| mentioned(image, f)).collect();
    let programs = image.programs.iter().map(|program| program.function);
    let programs: BTreeSet<u32> = if image.programs.is_empty() {
        all.collect()
    } else {
        programs.collect()
    };
    &programs - &others
}

/// The values of an array that programs may write.
fn array(map: &Map, memory: &Memory) -> Option<ArrayPlan> {
    match &map.store {
        MapStore::Array(array) if array.base() >= memory.writable_start() => Some(ArrayPlan {
            base: array.base(),
            count: array.len(),
            stride: map.shape.stride,
            copies: map.shape.copies,
        }),
        _ => None,
    }
}

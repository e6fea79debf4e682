//! What the translator must know of an instance.

use crate::bind::Intrinsic;
use crate::map::{Maps, Store};
use crate::memory::Memory;
use crate::op::Code;
use crate::{Host, Image, Instance};

use super::native::{Callees, Offsets};

/// An instance as the translator sees it. Nothing here changes as long as the instance lives.
pub(super) struct Plan<'a> {
    pub(super) image: &'a Image,
    pub(super) code: &'a Code,
    pub(super) memory: &'a Memory,
    maps: &'a Maps,
    pub(super) imports: Vec<ImportPlan>,
    /// What to add to a guest address in the region, to get the host's.
    pub(super) delta: u64,
    /// Addresses of the functions that native code calls.
    pub(super) callees: Callees,
    pub(super) at: Offsets,
}

/// An import as the translator sees it.
#[derive(Clone, Copy)]
pub(super) struct ImportPlan {
    pub(super) intrinsic: Option<Intrinsic>,
    pub(super) cost_ps: u64,
    /// The function that native code calls for it, as an address.
    pub(super) direct: Option<usize>,
}

/// The values of an array.
#[derive(Clone, Copy)]
pub(super) struct ArrayPlan {
    pub(super) base: u64,
    pub(super) count: u32,
    pub(super) stride: u64,
    /// Copies of each value: one for each CPU, or 1.
    pub(super) copies: u64,
}

impl<'a> Plan<'a> {
    pub(super) fn new<H: Host>(vm: &'a mut Instance<H>) -> Self {
        let delta = vm.memory.host_address().wrapping_sub(crate::BASE);
        let imports = vm.bindings.iter().map(|binding| ImportPlan {
            intrinsic: binding.intrinsic,
            cost_ps: binding.cost_ps,
            direct: binding.direct.map(crate::Direct::address),
        });
        Self {
            image: &vm.image,
            code: &vm.code,
            memory: &vm.memory,
            maps: &vm.maps,
            imports: imports.collect(),
            delta,
            callees: Callees::of::<H>(),
            at: Offsets::of::<H>(),
        }
    }

    /// The array that `handle` stands for; `None` for other maps.
    pub(super) fn array(&self, handle: u64) -> Option<ArrayPlan> {
        let map = self.maps.get(self.maps.index(handle).ok()?)?;
        match &map.store {
            Store::Array(array) => Some(ArrayPlan {
                base: array.base(),
                count: array.len(),
                stride: map.shape.stride,
                copies: map.shape.copies,
            }),
            _ => None,
        }
    }
}

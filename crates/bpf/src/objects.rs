//! Objects that programs allocate, and the trees and lists that they put them into.
//!
//! Where an object is belongs to the kernel: roots, nodes and counts are opaque to programs, so
//! their truth is kept here and not in the program's memory.
//!
//! Source: `kernel/bpf/helpers.c`, kernel 6.18: `__bpf_obj_new_impl()` and what stands below it.

use std::collections::BTreeMap;

use crate::sequence::Sequence;
use crate::{Memory, OwnType};

/// An object that a program has allocated.
#[derive(Clone, Copy, Debug)]
struct Object {
    /// Index into the image's types.
    ty: u32,
    /// Owners: more than one only for a type with a `bpf_refcount`.
    owners: u32,
}

/// All objects, and what they are in.
#[derive(Clone, Debug, Default)]
pub(crate) struct Objects {
    all: BTreeMap<u64, Object>,
    /// Nodes of each tree in its order, and of each list, by the address of the root or head.
    holders: BTreeMap<u64, Sequence>,
    /// The holder that a node is in and its slot there, by the node's address.
    places: BTreeMap<u64, (u64, u32)>,
}

/// What is left of an object when its last owner has dropped it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dropped {
    pub(crate) address: u64,
    /// Index into the image's types.
    pub(crate) ty: u32,
}

impl Objects {
    /// Allocates a zeroed object of `types[ty]`; `None` when there is no room.
    pub(crate) fn create(
        &mut self,
        memory: &mut Memory,
        types: &[OwnType],
        ty: u32,
    ) -> Option<u64> {
        let size = u64::from(types.get(ty as usize)?.size);
        let address = memory.alloc_map(size).ok()?;
        memory.write(address, &vec![0; size as usize]);
        self.all.insert(address, Object { ty, owners: 1 });
        Some(address)
    }

    /// Whether an object begins at `address`.
    pub(crate) fn is_object(&self, address: u64) -> bool {
        self.all.contains_key(&address)
    }

    /// One owner more. False if `address` is no object.
    pub(crate) fn acquire(&mut self, address: u64) -> bool {
        let object = self.all.get_mut(&address);
        object.is_some_and(|object| {
            object.owners += 1;
            true
        })
    }

    /// One owner less. `Err` if `address` is no object; what is left when it was the last one.
    pub(crate) fn release(&mut self, address: u64) -> Result<Option<Dropped>, ()> {
        let object = self.all.get_mut(&address).ok_or(())?;
        object.owners -= 1;
        if object.owners > 0 {
            return Ok(None);
        }
        let ty = object.ty;
        self.all.remove(&address);
        Ok(Some(Dropped { address, ty }))
    }

    /// The object that has `address` inside.
    pub(crate) fn around(&self, types: &[OwnType], address: u64) -> Option<u64> {
        let (&start, object) = self.all.range(..=address).next_back()?;
        let size = u64::from(types.get(object.ty as usize)?.size);
        (address - start < size).then_some(start)
    }

    /// The nodes of a tree or list, first to last.
    pub(crate) fn nodes(&self, holder: u64) -> Option<&Sequence> {
        self.holders.get(&holder)
    }

    /// Where a node is.
    pub(crate) fn place(&self, node: u64) -> Option<u64> {
        self.places.get(&node).map(|(holder, _)| *holder)
    }

    /// Puts a node, which must be nowhere, into a holder before the node that is `at`th now.
    pub(crate) fn insert(&mut self, holder: u64, at: usize, node: u64) {
        let nodes = self.holders.entry(holder).or_default();
        let slot = nodes.insert(at, node);
        let before = self.places.insert(node, (holder, slot));
        assert_eq!(before, None, "node {node:#x} is in two places");
    }

    /// Takes a node out of `holder`. False if it is not there.
    pub(crate) fn remove(&mut self, holder: u64, node: u64) -> bool {
        let place = self.places.get(&node);
        let Some((_, slot)) = place.copied().filter(|(place, _)| *place == holder) else {
            return false;
        };
        self.places.remove(&node);
        let nodes = self.holders.get_mut(&holder).expect("a node's holder");
        nodes.remove(slot);
        if nodes.len() == 0 {
            self.holders.remove(&holder);
        }
        true
    }

    /// Empties every tree and list with its root in `len` bytes from `from` on, and gives the
    /// nodes that were there.
    pub(crate) fn empty_within(&mut self, from: u64, len: u64) -> Vec<u64> {
        let inside = self.holders.range(from..from.saturating_add(len));
        let holders: Vec<u64> = inside.map(|(holder, _)| *holder).collect();
        let mut freed = Vec::new();
        for holder in holders {
            let nodes = self.holders.remove(&holder).unwrap_or_default();
            freed.extend(nodes.values());
        }
        for node in &freed {
            self.places.remove(node);
        }
        freed
    }

    /// Takes the nodes of an object out of where they are: it is freed.
    pub(crate) fn forget_nodes(&mut self, object: u64, size: u64) {
        let inside = self.places.range(object..object.saturating_add(size));
        let nodes: Vec<_> = inside.map(|(node, (holder, _))| (*node, *holder)).collect();
        for (node, holder) in nodes {
            self.remove(holder, node);
        }
    }

    /// Whether no program has allocated anything.
    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }
}

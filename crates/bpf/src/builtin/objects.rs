//! Objects of programs' own types: allocation, counts, trees, lists.
//!
//! A verifier hands the functions the object's type and the node's offset in registers that the
//! program leaves alone; here the object is found by the node's address.
//!
//! Source: `kernel/bpf/helpers.c`, kernel 6.18.

use super::line::Line;
use crate::host::{CallCtx, Host};
use crate::map::hash::Removed;
use crate::objects::Dropped;
use crate::sequence::Sequence;
use crate::stop::Stop;
use crate::{Errno, Instance, OwnType};

pub(super) fn table<H: Host>() -> [Line<H>; 12] {
    lines![
        ("bpf_obj_new_impl", "ptr(u64,ptr)", obj_new),
        ("bpf_obj_drop_impl", "void(ptr,ptr)", obj_drop),
        ("bpf_refcount_acquire_impl", "ptr(ptr,ptr)", acquire),
        (
            "bpf_rbtree_add_impl",
            "s32(ptr,ptr,ptr,ptr,u64)",
            rbtree_add
        ),
        ("bpf_rbtree_first", "ptr(ptr)", first),
        ("bpf_rbtree_remove", "ptr(ptr,ptr)", rbtree_remove),
        (
            "bpf_list_push_front_impl",
            "s32(ptr,ptr,ptr,u64)",
            push_front
        ),
        ("bpf_list_push_back_impl", "s32(ptr,ptr,ptr,u64)", push_back),
        ("bpf_list_pop_front", "ptr(ptr)", pop_front),
        ("bpf_list_pop_back", "ptr(ptr)", pop_back),
        ("bpf_list_front", "ptr(ptr)", first),
        ("bpf_list_back", "ptr(ptr)", last),
    ]
}

/// What dropping an object counts as, bytes handled.
const DROP_BYTES: u64 = 512;

type Ctx<'a, H> = CallCtx<'a, H>;

fn obj_new<H: Host>(ctx: &mut Ctx<'_, H>, args: [u64; 5]) -> Result<u64, Stop> {
    // The kernel fills in whose type it is, if there are several objects.
    let [id, source, ..] = args;
    let vm = &mut *ctx.vm;
    let image = std::sync::Arc::clone(&vm.image);
    let types = &image.types;
    let is_it = |ty: &OwnType| {
        let of_source = ty.source == 0 || u64::from(ty.source) == source;
        u64::from(ty.id) == id && of_source
    };
    let Some(ty) = types.iter().position(is_it) else {
        return Err(Stop::Refused(format!("the object has no type {id}")));
    };
    vm.spend(u64::from(types[ty].size));
    vm.memory.forget_refusal();
    let made = vm.objects.create(&mut vm.memory, types, ty as u32);
    vm.memory.within_limit()?;
    Ok(made.unwrap_or(0))
}

fn obj_drop<H: Host>(ctx: &mut Ctx<'_, H>, [object, ..]: [u64; 5]) -> Result<u64, Stop> {
    ctx.vm.drop_object(object, ctx.host).map(|()| 0)
}

fn acquire<H: Host>(ctx: &mut Ctx<'_, H>, [object, ..]: [u64; 5]) -> Result<u64, Stop> {
    if ctx.vm.objects.acquire(object) {
        return Ok(object);
    }
    Err(no_object(object))
}

fn no_object(address: u64) -> Stop {
    Stop::Refused(format!("{address:#x} is no object of the program's"))
}

/// A tree or list is touched under the lock beside it; a verifier sees to that.
fn under_lock<H: Host>(vm: &Instance<H>) -> Result<(), Stop> {
    if vm.stack.progress.nesting.spin_locks > 0 {
        return Ok(());
    }
    Err(Stop::Refused(
        "a tree or list was used without its lock".to_owned(),
    ))
}

/// The object around `node`, if the node may be put somewhere. One that is somewhere already is
/// dropped, as the kernel does.
fn free_node<H: Host>(ctx: &mut Ctx<'_, H>, node: u64) -> Result<bool, Stop> {
    under_lock(ctx.vm)?;
    let vm = &mut *ctx.vm;
    let object = vm.objects.around(&vm.image.types, node);
    let object = object.ok_or_else(|| no_object(node))?;
    if vm.objects.place(node).is_none() {
        return Ok(true);
    }
    vm.drop_object(object, ctx.host)?;
    Ok(false)
}

/// A result that says `-EINVAL`, in 32 bits.
fn invalid() -> u64 {
    u64::from((-Errno::EINVAL.0).cast_unsigned())
}

/// Puts a node behind all nodes that are not greater.
fn rbtree_add<H: Host>(ctx: &mut Ctx<'_, H>, args: [u64; 5]) -> Result<u64, Stop> {
    let [root, node, less, ..] = args;
    if !free_node(ctx, node)? {
        return Ok(invalid());
    }
    let nodes = ctx.vm.objects.nodes(root);
    let (mut low, mut high) = (0, nodes.map_or(0, Sequence::len));
    while low < high {
        let middle = low.midpoint(high);
        let other = ctx
            .vm
            .objects
            .nodes(root)
            .and_then(|nodes| nodes.get(middle));
        // The callback may not change the tree: it holds no reference to it.
        let other = other.ok_or_else(|| no_object(root))?;
        let before = ctx
            .vm
            .call_function(less, [node, other, 0, 0, 0], ctx.host)?;
        // `bool`, of which a callback sets the low byte.
        if before & 0xff == 0 {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    let vm = &mut *ctx.vm;
    let object = vm.objects.around(&vm.image.types, node);
    if object.is_none() || vm.objects.place(node).is_some() {
        return Err(Stop::Refused(
            "a tree's comparison moved the node that it compares".to_owned(),
        ));
    }
    vm.objects.insert(root, low, node);
    Ok(0)
}

fn first<H: Host>(ctx: &mut Ctx<'_, H>, [holder, ..]: [u64; 5]) -> Result<u64, Stop> {
    under_lock(ctx.vm)?;
    let nodes = ctx.vm.objects.nodes(holder);
    Ok(nodes.and_then(|nodes| nodes.get(0)).unwrap_or(0))
}

fn last<H: Host>(ctx: &mut Ctx<'_, H>, [holder, ..]: [u64; 5]) -> Result<u64, Stop> {
    under_lock(ctx.vm)?;
    let nodes = ctx.vm.objects.nodes(holder);
    let last = nodes.and_then(|nodes| nodes.get(nodes.len() - 1));
    Ok(last.unwrap_or(0))
}

/// The node belongs to the program again; null if it is not in this tree.
fn rbtree_remove<H: Host>(ctx: &mut Ctx<'_, H>, [root, node, ..]: [u64; 5]) -> Result<u64, Stop> {
    under_lock(ctx.vm)?;
    Ok(if ctx.vm.objects.remove(root, node) {
        node
    } else {
        0
    })
}

fn push<H: Host>(ctx: &mut Ctx<'_, H>, [head, node]: [u64; 2], at: usize) -> Result<u64, Stop> {
    if !free_node(ctx, node)? {
        return Ok(invalid());
    }
    ctx.vm.objects.insert(head, at, node);
    Ok(0)
}

fn push_front<H: Host>(ctx: &mut Ctx<'_, H>, [head, node, ..]: [u64; 5]) -> Result<u64, Stop> {
    push(ctx, [head, node], 0)
}

fn push_back<H: Host>(ctx: &mut Ctx<'_, H>, [head, node, ..]: [u64; 5]) -> Result<u64, Stop> {
    push(ctx, [head, node], usize::MAX)
}

fn pop_front<H: Host>(ctx: &mut Ctx<'_, H>, args: [u64; 5]) -> Result<u64, Stop> {
    let node = first(ctx, args)?;
    ctx.vm.objects.remove(args[0], node);
    Ok(node)
}

fn pop_back<H: Host>(ctx: &mut Ctx<'_, H>, args: [u64; 5]) -> Result<u64, Stop> {
    let node = last(ctx, args)?;
    ctx.vm.objects.remove(args[0], node);
    Ok(node)
}

impl<H: Host> Instance<H> {
    /// Drops one reference to an object of the program's. With the last one go the pointers in it
    /// and the nodes of its own trees and lists.
    pub(crate) fn drop_object(&mut self, address: u64, host: &mut H) -> Result<(), Stop> {
        let mut due = vec![address];
        while let Some(address) = due.pop() {
            let dropped = self.objects.release(address);
            let Some(Dropped { address, ty }) = dropped.map_err(|()| no_object(address))? else {
                continue;
            };
            let ty = self.image.types[ty as usize].clone();
            let size = u64::from(ty.size);
            self.spend(DROP_BYTES);
            self.objects.forget_nodes(address, size);
            due.extend(self.owners_within(address, size));
            for at in &ty.kptrs_at {
                let pointer = self.memory.load_u64(address + u64::from(*at));
                match pointer {
                    0 => {}
                    object if self.objects.is_object(object) => due.push(object),
                    object => host.release(&mut self.memory, object),
                }
            }
            self.bury(Removed {
                element: address,
                value: address,
                bytes: size,
            });
        }
        Ok(())
    }

    /// Empties the trees and lists in `len` bytes from `from` on, and gives the objects that were
    /// in them, whose references nobody has then.
    pub(crate) fn owners_within(&mut self, from: u64, len: u64) -> Vec<u64> {
        let nodes = self.objects.empty_within(from, len);
        let types = &self.image.types;
        let owners = nodes.iter();
        owners
            .filter_map(|node| self.objects.around(types, *node))
            .collect()
    }
}

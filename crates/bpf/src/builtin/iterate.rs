//! Loops: callbacks for each turn, and the iterator over numbers.

use super::line::{Line, argument, deliver};
use crate::Errno;
use crate::host::{CallCtx, Host};
use crate::map::MapStore;
use crate::stop::Stop;

pub(super) fn table<H: Host>() -> [Line<H>; 5] {
    lines![
        ("bpf_loop", "", repeat),
        ("bpf_for_each_map_elem", "", for_each),
        ("bpf_iter_num_new", "s32(ptr,s32,s32)", num_new),
        ("bpf_iter_num_next", "ptr(ptr)", num_next),
        ("bpf_iter_num_destroy", "void(ptr)", num_destroy),
    ]
}

/// Greatest number of turns (`BPF_MAX_LOOPS`, Linux 6.18, include/linux/bpf.h).
pub(crate) const MAX_TURNS: u32 = 8 << 20;

/// Calls a function until it returns something else than 0. Gives the number of calls.
fn repeat<H: Host>(ctx: &mut CallCtx<'_, H>, args: [u64; 5]) -> Result<u64, Stop> {
    let [turns, callback, context, flags, _] = args;
    let turns = turns as u32;
    if flags != 0 {
        return Ok(Errno::EINVAL.to_r0());
    }
    if turns > MAX_TURNS {
        return Ok(Errno::E2BIG.to_r0());
    }
    for turn in 0..u64::from(turns) {
        let args = [turn, context, 0, 0, 0];
        let result = ctx.vm.call_function(callback, args, ctx.host)?;
        if result != 0 {
            return Ok(turn + 1);
        }
    }
    Ok(u64::from(turns))
}

/// Calls a function with each element of a map until it returns something else than 0. Gives the
/// number of calls. Elements that appear meanwhile are not visited.
fn for_each<H: Host>(ctx: &mut CallCtx<'_, H>, args: [u64; 5]) -> Result<u64, Stop> {
    let [handle, callback, context, flags, _] = args;
    let map = ctx.vm.maps.by_handle(handle)?;
    match &map.store {
        _ if flags != 0 => Ok(Errno::EINVAL.to_r0()),
        MapStore::Array(array) => {
            let indices = 0..u64::from(array.len());
            visit(ctx, handle, indices, callback, context)
        }
        MapStore::Hash(hash) if !map.kind.is_storage() => {
            let addresses = hash.walk();
            ctx.vm.spend(8 * addresses.len() as u64);
            visit(ctx, handle, addresses.into_iter(), callback, context)
        }
        _ => Ok(Errno::EINVAL.to_r0()),
    }
}

/// Calls `callback` with elements: indices of an array, addresses of a hash map's elements.
fn visit<H: Host>(
    ctx: &mut CallCtx<'_, H>,
    handle: u64,
    elements: impl Iterator<Item = u64>,
    callback: u64,
    context: u64,
) -> Result<u64, Stop> {
    let mut calls = 0;
    for element in elements {
        let Some((key, value)) = element_of(ctx, handle, element)? else {
            continue;
        };
        calls += 1;
        let args = [handle, key, value, context, 0];
        if ctx.vm.call_function(callback, args, ctx.host)? != 0 {
            break;
        }
    }
    Ok(calls)
}

/// The addresses of an element's key and value; `None` if it has left the map meanwhile.
fn element_of<H: Host>(
    ctx: &mut CallCtx<'_, H>,
    handle: u64,
    element: u64,
) -> Result<Option<(u64, u64)>, Stop> {
    let cpu = ctx.host.cpu();
    let index = ctx.vm.map_index(handle)?;
    let map = ctx.vm.maps.by_handle(handle)?;
    if matches!(map.store, MapStore::Array(_)) {
        let value = ctx
            .vm
            .map_value_addr(index, &(element as u32).to_le_bytes(), cpu);
        return Ok(value.map(|value| (ctx.vm.scratch_index(element as u32), value)));
    }
    let (key_size, room) = (map.shape.key_size, map.shape.key_room());
    let span = map.shape.copies * map.shape.stride;
    let key = argument(ctx.vm, element, key_size, "map key")?.to_vec();
    let value = ctx.vm.map_value_addr(index, &key, cpu);
    let first = element + room;
    Ok(value
        .filter(|at| (first..=first + span).contains(at))
        .map(|value| (element, value)))
}

/// `struct bpf_iter_num` is 8 opaque bytes; the kernel and we keep the last number and the end.
fn num_new<H: Host>(ctx: &mut CallCtx<'_, H>, args: [u64; 5]) -> Result<u64, Stop> {
    let [iterator, start, end, ..] = args;
    let (start, end) = (start as i32, end as i32);
    let errno = match i64::from(end) - i64::from(start) {
        ..0 => Some(Errno::EINVAL),
        turns if turns > i64::from(MAX_TURNS) => Some(Errno::E2BIG),
        _ => None,
    };
    let (last, end) = if errno.is_some() {
        (0, 0)
    } else {
        (start.wrapping_sub(1), end)
    };
    set_iterator(ctx, iterator, last, end)?;
    Ok(errno.map_or(0, |errno| u64::from((-errno.0).cast_unsigned())))
}

fn num_next<H: Host>(ctx: &mut CallCtx<'_, H>, args: [u64; 5]) -> Result<u64, Stop> {
    let iterator = args[0];
    let last = i32::from_le_bytes(ctx.vm.memory.load(iterator));
    let end = i32::from_le_bytes(ctx.vm.memory.load(iterator.wrapping_add(4)));
    // In 32 bits, because the last number before the least one is the greatest.
    let next = last.wrapping_add(1);
    if next >= end {
        set_iterator(ctx, iterator, 0, 0)?;
        return Ok(0);
    }
    set_iterator(ctx, iterator, next, end)?;
    Ok(iterator)
}

fn num_destroy<H: Host>(ctx: &mut CallCtx<'_, H>, args: [u64; 5]) -> Result<u64, Stop> {
    set_iterator(ctx, args[0], 0, 0).map(|()| 0)
}

fn set_iterator<H: Host>(
    ctx: &mut CallCtx<'_, H>,
    iterator: u64,
    last: i32,
    end: i32,
) -> Result<(), Stop> {
    let word = u64::from(last.cast_unsigned()) | u64::from(end.cast_unsigned()) << 32;
    deliver(ctx.vm, iterator, &word.to_le_bytes())
}

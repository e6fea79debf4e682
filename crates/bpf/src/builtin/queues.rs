//! Queues and stacks.

use super::line::{Line, argument, deliver};
use crate::errno::status;
use crate::host::{CallCtx, Host};
use crate::map::MapStore;
use crate::stop::Stop;
use crate::{Errno, Instance};

pub(super) fn table<H: Host>() -> [Line<H>; 3] {
    lines![
        ("bpf_map_push_elem", "", push),
        ("bpf_map_pop_elem", "", pop),
        ("bpf_map_peek_elem", "", peek),
    ]
}

fn push<H: Host>(ctx: &mut CallCtx<'_, H>, args: [u64; 5]) -> Result<u64, Stop> {
    let [handle, value, flags, ..] = args;
    let size = ctx.vm.maps.by_handle(handle)?.shape.value_size;
    let value = argument(ctx.vm, value, size, "map value")?.to_vec();
    let Instance { maps, memory, .. } = &mut *ctx.vm;
    let map = maps.by_handle(handle)?;
    let MapStore::Queue(queue) = &mut map.store else {
        return Ok(Errno::EINVAL.to_r0());
    };
    Ok(status(queue.push(memory, &map.shape, &value, flags)))
}

fn pop<H: Host>(ctx: &mut CallCtx<'_, H>, args: [u64; 5]) -> Result<u64, Stop> {
    take(ctx, args, true)
}

fn peek<H: Host>(ctx: &mut CallCtx<'_, H>, args: [u64; 5]) -> Result<u64, Stop> {
    take(ctx, args, false)
}

/// Copies the next value out. An empty queue gives zeros and an error.
fn take<H: Host>(
    ctx: &mut CallCtx<'_, H>,
    [handle, to, ..]: [u64; 5],
    remove: bool,
) -> Result<u64, Stop> {
    let map = ctx.vm.maps.by_handle(handle)?;
    let size = map.shape.value_size;
    let from = match &mut map.store {
        MapStore::Queue(queue) if remove => queue.pop(&map.shape),
        MapStore::Queue(queue) => queue.peek(&map.shape),
        _ => return Ok(Errno::EINVAL.to_r0()),
    };
    let mut value = vec![0; size as usize];
    if let Ok(from) = from {
        ctx.vm.memory.read(from, &mut value);
    }
    deliver(ctx.vm, to, &value)?;
    Ok(status(from.map(|_| ())))
}

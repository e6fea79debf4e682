//! Pages of the arena.

use super::line::Line;
use crate::Errno;
use crate::host::{CallCtx, Host};
use crate::map::MapStore;
use crate::memory::Pages;
use crate::stop::Stop;

pub(super) fn table<H: Host>() -> [Line<H>; 3] {
    lines![
        ("bpf_arena_alloc_pages", "ptr(ptr,ptr,u32,s32,u64)", alloc),
        ("bpf_arena_free_pages", "void(ptr,ptr,u32)", free),
        ("bpf_arena_reserve_pages", "s32(ptr,ptr,u32)", reserve),
    ]
}

fn is_arena<H: Host>(ctx: &mut CallCtx<'_, H>, handle: u64) -> Result<bool, Stop> {
    Ok(matches!(
        ctx.vm.maps.by_handle(handle)?.store,
        MapStore::Arena(_)
    ))
}

/// Gives the address of zeroed pages, at `address` if that is not null; null when there is no room.
fn alloc<H: Host>(ctx: &mut CallCtx<'_, H>, args: [u64; 5]) -> Result<u64, Stop> {
    let [handle, address, count, _, flags] = args;
    if flags != 0 || !is_arena(ctx, handle)? {
        return Ok(0);
    }
    let wanted = (address != 0).then_some(address);
    let count = count & u64::from(u32::MAX);
    // The search looks at every page that was ever allocated.
    let pages = ctx.vm.memory.arena().map_or(0, Pages::touched);
    ctx.vm.spend(pages + count);
    ctx.vm.memory.forget_refusal();
    let given = ctx.vm.memory.alloc_arena(wanted, count);
    ctx.vm.memory.within_limit()?;
    // A program gets what user space can follow, and casts it. The first page is no null here.
    let arena = ctx.vm.memory.arena();
    let given = given
        .zip(arena)
        .map(|(address, pages)| pages.to_user(address));
    Ok(given.unwrap_or(0))
}

fn free<H: Host>(ctx: &mut CallCtx<'_, H>, args: [u64; 5]) -> Result<u64, Stop> {
    let [handle, address, count, ..] = args;
    if is_arena(ctx, handle)? {
        // All of them are looked at, but none behind the highest one that was ever allocated.
        let touched = ctx.vm.memory.arena().map_or(0, Pages::touched);
        ctx.vm.spend(touched.min(count & u64::from(u32::MAX)));
        let freed = ctx
            .vm
            .memory
            .free_arena(address, count & u64::from(u32::MAX));
        ctx.vm.spend(freed * Pages::SIZE);
    }
    Ok(0)
}

/// Sets pages aside: 0, `-EBUSY` if one is taken, `-EINVAL` if they are not in the arena.
fn reserve<H: Host>(ctx: &mut CallCtx<'_, H>, args: [u64; 5]) -> Result<u64, Stop> {
    let [handle, address, count, ..] = args;
    let count = count & u64::from(u32::MAX);
    let errno = |errno: Errno| u64::from((-errno.0).cast_unsigned());
    if !is_arena(ctx, handle)? {
        return Ok(errno(Errno::EINVAL));
    }
    if count == 0 {
        return Ok(0);
    }
    ctx.vm.spend(count);
    Ok(match ctx.vm.memory.reserve_arena(address, count) {
        Some(true) => 0,
        Some(false) => errno(Errno::EBUSY),
        None => errno(Errno::EINVAL),
    })
}

//! Look-ups, updates and deletions.

use super::line::{Line, argument, inserted};
use crate::errno::status;
use crate::host::{CallCtx, Host};
use crate::map::{MapStore, Update};
use crate::stop::Stop;

pub(super) fn table<H: Host>() -> [Line<H>; 4] {
    lines![
        ("bpf_map_lookup_elem", "", lookup),
        ("bpf_map_lookup_percpu_elem", "", lookup_percpu),
        ("bpf_map_update_elem", "", update),
        ("bpf_map_delete_elem", "", delete),
    ]
}

fn lookup<H: Host>(ctx: &mut CallCtx<'_, H>, args: [u64; 5]) -> Result<u64, Stop> {
    let [map, key, ..] = args;
    lookup_on(ctx, map, key, ctx.host.cpu())
}

fn lookup_percpu<H: Host>(ctx: &mut CallCtx<'_, H>, args: [u64; 5]) -> Result<u64, Stop> {
    let [map, key, cpu, ..] = args;
    let cpu = cpu as u32;
    if cpu >= ctx.vm.cpus() {
        return Ok(0);
    }
    lookup_on(ctx, map, key, cpu)
}

#[inline]
fn lookup_on<H: Host>(ctx: &mut CallCtx<'_, H>, map: u64, key: u64, cpu: u32) -> Result<u64, Stop> {
    let vm = &mut *ctx.vm;
    let index = vm.maps.index(map)?;
    let entry = vm.maps.by_handle(map)?;
    let Some(bytes) = vm.memory.bytes(key, entry.shape.key_size) else {
        return Err(Stop::Refused(format!(
            "map key at {key:#x} lies outside memory"
        )));
    };
    if matches!(entry.store, MapStore::Nested(_)) {
        return Ok(vm.maps.inner(index, bytes).unwrap_or(0));
    }
    if entry.kind.is_storage() {
        return Ok(0);
    }
    Ok(entry.lookup(&vm.memory, bytes, cpu).unwrap_or(0))
}

fn update<H: Host>(ctx: &mut CallCtx<'_, H>, args: [u64; 5]) -> Result<u64, Stop> {
    let [map, key, value, flags, _] = args;
    let index = ctx.vm.map_index(map)?;
    let shape = &ctx.vm.maps.by_handle(map)?.shape;
    let (key_size, value_size) = (shape.key_size, shape.value_size);
    // A new element is zeroed first, and has a value for each CPU in some maps.
    let zeroed = shape.copies * shape.stride;
    ctx.vm.spend(zeroed);
    let key = argument(ctx.vm, key, key_size, "map key")?.to_vec();
    let value = argument(ctx.vm, value, value_size, "map value")?.to_vec();
    let update = Update {
        key: &key,
        value: &value,
        flags,
        cpu: ctx.host.cpu(),
    };
    ctx.vm.memory.forget_refusal();
    let result = ctx.vm.update(index, &update, ctx.host);
    ctx.vm.memory.within_limit()?;
    Ok(inserted(&result))
}

fn delete<H: Host>(ctx: &mut CallCtx<'_, H>, args: [u64; 5]) -> Result<u64, Stop> {
    let [map, key, ..] = args;
    let index = ctx.vm.map_index(map)?;
    let size = ctx.vm.maps.by_handle(map)?.shape.key_size;
    let key = argument(ctx.vm, key, size, "map key")?.to_vec();
    Ok(status(ctx.vm.map_delete(index, &key, ctx.host)))
}

//! Storage that belongs to tasks and cgroups.

use super::line::{Line, argument};
use crate::errno::status;
use crate::host::{CallCtx, Host};
use crate::map::Update;
use crate::map::hash::InsertError;
use crate::stop::Stop;

/// `BPF_LOCAL_STORAGE_GET_F_CREATE` (Linux 6.18, include/uapi/linux/bpf.h).
const CREATE: u64 = 1;

/// `BPF_NOEXIST`.
const NEW: u64 = 1;

pub(super) fn table<H: Host>() -> [Line<H>; 4] {
    lines![
        ("bpf_task_storage_get", "", get),
        ("bpf_task_storage_delete", "", delete),
        ("bpf_cgrp_storage_get", "", get),
        ("bpf_cgrp_storage_delete", "", delete),
    ]
}

#[inline(always)]
fn get<H: Host>(ctx: &mut CallCtx<'_, H>, args: [u64; 5]) -> Result<u64, Stop> {
    let [handle, owner, _, flags, _] = args;
    match ctx.vm.maps.of_recent_owner(handle, owner) {
        Some(value) if flags & !CREATE == 0 => Ok(value),
        _ => search(ctx, args),
    }
}

#[inline(never)]
fn search<H: Host>(ctx: &mut CallCtx<'_, H>, args: [u64; 5]) -> Result<u64, Stop> {
    let [handle, owner, initial, flags, _] = args;
    let vm = &mut *ctx.vm;
    let map = vm.maps.by_handle(handle)?;
    if owner == 0 || flags & !CREATE != 0 || !map.kind.is_storage() {
        return Ok(0);
    }
    if let Some(value) = map.of_owner(&vm.memory, owner) {
        return Ok(value);
    }
    if flags & CREATE == 0 {
        return Ok(0);
    }
    let key = owner.to_le_bytes();
    let size = map.shape.value_size;
    vm.spend(size);
    let value = match initial {
        0 => vec![0; size as usize],
        address => argument(vm, address, size, "initial value")?.to_vec(),
    };
    let index = vm.map_index(handle)?;
    let update = Update {
        flags: NEW,
        ..Update::new(&key, &value)
    };
    vm.memory.forget_refusal();
    match vm.update(index, &update, ctx.host) {
        // The kernel's function gives null as well when there is no memory.
        Ok(()) | Err(InsertError::Errno(_) | InsertError::Memory(_)) => {}
    }
    vm.memory.within_limit()?;
    Ok(vm.map_value_addr(index, &key, 0).unwrap_or(0))
}

fn delete<H: Host>(ctx: &mut CallCtx<'_, H>, args: [u64; 5]) -> Result<u64, Stop> {
    let [handle, owner, ..] = args;
    let index = ctx.vm.map_index(handle)?;
    Ok(status(ctx.vm.map_delete(
        index,
        &owner.to_le_bytes(),
        ctx.host,
    )))
}

//! Ring buffers.

use super::line::{Line, argument};
use crate::host::{CallCtx, Host};
use crate::map::Store;
use crate::stop::Stop;
use crate::{Errno, Instance};

pub(super) fn table<H: Host>() -> [Line<H>; 5] {
    lines![
        ("bpf_ringbuf_reserve", "", reserve),
        ("bpf_ringbuf_submit", "", submit),
        ("bpf_ringbuf_discard", "", discard),
        ("bpf_ringbuf_output", "", output),
        ("bpf_ringbuf_query", "", query),
    ]
}

fn reserve<H: Host>(ctx: &mut CallCtx<'_, H>, args: [u64; 5]) -> Result<u64, Stop> {
    let [handle, len, flags, ..] = args;
    let Instance { maps, memory, .. } = &mut *ctx.vm;
    match &mut maps.by_handle(handle)?.store {
        Store::Ringbuf(ring) if flags == 0 => Ok(ring.reserve(memory, len).unwrap_or(0)),
        _ => Ok(0),
    }
}

fn submit<H: Host>(ctx: &mut CallCtx<'_, H>, args: [u64; 5]) -> Result<u64, Stop> {
    finish(ctx, args[0], false)
}

fn discard<H: Host>(ctx: &mut CallCtx<'_, H>, args: [u64; 5]) -> Result<u64, Stop> {
    finish(ctx, args[0], true)
}

/// A record knows its ring in the kernel; here the rings are asked.
fn finish<H: Host>(ctx: &mut CallCtx<'_, H>, record: u64, discard: bool) -> Result<u64, Stop> {
    for (_, map) in ctx.vm.maps.iter_mut() {
        if let Store::Ringbuf(ring) = &mut map.store
            && ring.finish(record, discard)
        {
            return Ok(0);
        }
    }
    Err(Stop::Refused(format!(
        "{record:#x} is no reserved record of a ring buffer"
    )))
}

/// Reserve, copy and submit in one.
fn output<H: Host>(ctx: &mut CallCtx<'_, H>, args: [u64; 5]) -> Result<u64, Stop> {
    let [handle, data, len, flags, _] = args;
    // BPF_RB_NO_WAKEUP and BPF_RB_FORCE_WAKEUP (Linux 6.18, include/uapi/linux/bpf.h).
    if flags & !3 != 0 {
        return Ok(Errno::EINVAL.to_r0());
    }
    argument(ctx.vm, data, len, "record")?;
    let Instance { maps, memory, .. } = &mut *ctx.vm;
    let Store::Ringbuf(ring) = &mut maps.by_handle(handle)?.store else {
        return Ok(Errno::EINVAL.to_r0());
    };
    // EAGAIN: the ring is full.
    let Some(record) = ring.reserve(memory, len) else {
        return Ok(Errno(11).to_r0());
    };
    let bytes = memory
        .bytes(data, len)
        .map(<[u8]>::to_vec)
        .unwrap_or_default();
    memory.write(record, &bytes);
    ring.finish(record, false);
    Ok(0)
}

fn query<H: Host>(ctx: &mut CallCtx<'_, H>, args: [u64; 5]) -> Result<u64, Stop> {
    let [handle, what, ..] = args;
    match &ctx.vm.maps.by_handle(handle)?.store {
        Store::Ringbuf(ring) => Ok(ring.query(what)),
        _ => Ok(0),
    }
}

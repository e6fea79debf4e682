//! Ring buffers.

use super::line::{Line, argument};
use crate::host::{CallCtx, Host};
use crate::map::MapStore;
use crate::map::ring::{FORCE_WAKEUP, NO_WAKEUP, Next, Ring};
use crate::stop::Stop;
use crate::{Errno, Instance};

pub(super) fn table<H: Host>() -> [Line<H>; 6] {
    lines![
        ("bpf_ringbuf_reserve", "", reserve),
        ("bpf_ringbuf_submit", "", submit),
        ("bpf_ringbuf_discard", "", discard),
        ("bpf_ringbuf_output", "", output),
        ("bpf_ringbuf_query", "", query),
        ("bpf_user_ringbuf_drain", "", drain),
    ]
}

fn reserve<H: Host>(ctx: &mut CallCtx<'_, H>, args: [u64; 5]) -> Result<u64, Stop> {
    let [handle, len, flags, ..] = args;
    let Instance { maps, memory, .. } = &mut *ctx.vm;
    memory.forget_refusal();
    let record = match &mut maps.by_handle(handle)?.store {
        MapStore::Ringbuf(ring) if flags == 0 => ring.reserve(memory, len),
        MapStore::Ring(ring) if flags == 0 => ring.reserve(memory, len),
        _ => None,
    };
    memory.within_limit()?;
    Ok(record.unwrap_or(0))
}

fn submit<H: Host>(ctx: &mut CallCtx<'_, H>, args: [u64; 5]) -> Result<u64, Stop> {
    finish(ctx, args, false)
}

fn discard<H: Host>(ctx: &mut CallCtx<'_, H>, args: [u64; 5]) -> Result<u64, Stop> {
    finish(ctx, args, true)
}

/// A record knows its ring in the kernel; here the rings are asked.
fn finish<H: Host>(
    ctx: &mut CallCtx<'_, H>,
    [record, flags, ..]: [u64; 5],
    discard: bool,
) -> Result<u64, Stop> {
    let Instance { maps, memory, .. } = &mut *ctx.vm;
    for (_, map) in maps.iter_mut() {
        let found = match &mut map.store {
            MapStore::Ringbuf(ring) => ring.finish(record, discard),
            MapStore::Ring(ring) => ring.finish(memory, record, discard, flags),
            _ => false,
        };
        if found {
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
    let store = &mut maps.by_handle(handle)?.store;
    memory.forget_refusal();
    let record = match store {
        MapStore::Ringbuf(ring) => ring.reserve(memory, len),
        MapStore::Ring(ring) => ring.reserve(memory, len),
        _ => return Ok(Errno::EINVAL.to_r0()),
    };
    memory.within_limit()?;
    // EAGAIN: the ring is full.
    let Some(record) = record else {
        return Ok(Errno(11).to_r0());
    };
    let bytes = memory
        .bytes(data, len)
        .map(<[u8]>::to_vec)
        .unwrap_or_default();
    memory.write(record, &bytes);
    match store {
        MapStore::Ringbuf(ring) => ring.finish(record, false),
        MapStore::Ring(ring) => ring.finish(memory, record, false, flags),
        _ => false,
    };
    Ok(0)
}

fn query<H: Host>(ctx: &mut CallCtx<'_, H>, args: [u64; 5]) -> Result<u64, Stop> {
    let [handle, what, ..] = args;
    match &ctx.vm.maps.by_handle(handle)?.store {
        MapStore::Ringbuf(ring) => Ok(ring.query(what)),
        MapStore::Ring(ring) => Ok(ring.query(&ctx.vm.memory, what)),
        _ => Ok(0),
    }
}

/// Samples that one call reads at most (`BPF_MAX_USER_RINGBUF_SAMPLES`).
const MAX_SAMPLES: u64 = 128 << 10;

/// Hands each sample of a user ring buffer to a callback, until that says 1. Gives how many it
/// had. An object without user space has no samples.
///
/// Source: `bpf_user_ringbuf_drain()`, kernel 6.18, kernel/bpf/ringbuf.c.
fn drain<H: Host>(ctx: &mut CallCtx<'_, H>, args: [u64; 5]) -> Result<u64, Stop> {
    let [handle, callback, context, flags, _] = args;
    let index = ctx.vm.map_index(handle)?;
    let Some(ring) = ring_of(ctx.vm, index) else {
        return Ok(0);
    };
    if flags & !(NO_WAKEUP | FORCE_WAKEUP) != 0 {
        return Ok(Errno::EINVAL.to_r0());
    }
    if std::mem::replace(&mut ring.draining, true) {
        return Ok(Errno::EBUSY.to_r0());
    }
    let result = drain_all(ctx, index, callback, context);
    let samples = result.as_ref().map_or(0, |result| result.0);
    if let Some(ring) = ring_of(ctx.vm, index) {
        ring.draining = false;
        let wakes = flags & FORCE_WAKEUP != 0 || flags & NO_WAKEUP == 0 && samples > 0;
        ring.notified |= wakes;
    }
    result.map(|(samples, errno)| errno.map_or(samples, Errno::to_r0))
}

fn ring_of<H: Host>(vm: &mut Instance<H>, map: u32) -> Option<&mut Ring> {
    match &mut vm.maps.get_mut(map)?.store {
        MapStore::Ring(ring) => Some(ring),
        _ => None,
    }
}

/// How many samples the callback had, and what was wrong with the next one.
fn drain_all<H: Host>(
    ctx: &mut CallCtx<'_, H>,
    map: u32,
    callback: u64,
    context: u64,
) -> Result<(u64, Option<Errno>), Stop> {
    let mut samples = 0;
    for _ in 0..MAX_SAMPLES {
        ctx.vm.spend(64);
        let Instance { maps, memory, .. } = &mut *ctx.vm;
        let Some(MapStore::Ring(ring)) = maps.get_mut(map).map(|map| &mut map.store) else {
            break;
        };
        let (sample, len) = match ring.next(memory) {
            Ok(Next::Sample(sample, len)) => (sample, len),
            Ok(Next::Discarded) => continue,
            Ok(Next::Nothing) => break,
            Err(errno) => return Ok((samples, Some(errno))),
        };
        let dynptr = ring.dynptr;
        memory.put_words(dynptr, &[sample, len]);
        let said = ctx
            .vm
            .call_function(callback, [dynptr, context, 0, 0, 0], ctx.host)?;
        samples += 1;
        let Instance { maps, memory, .. } = &mut *ctx.vm;
        if let Some(MapStore::Ring(ring)) = maps.get_mut(map).map(|map| &mut map.store) {
            ring.release(memory, len);
        }
        if said != 0 {
            break;
        }
    }
    Ok((samples, None))
}

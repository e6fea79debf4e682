//! Walking a queue, and moving tasks out of it on the way.
//!
//! The program's `struct bpf_iter_scx_dsq` of 48 bytes holds: a marker that it is open, the
//! cursor's number, and the slice and vtime for the next move.

use bpf::Stop;
use model::{Looked, Sliced};

use super::{Ctx, Line, Return, TASK_BYTES, changed, note_place, s32, task};
use crate::flags::{dsq, enq, errno, kf};
use crate::lock::WhichLock;

pub(super) const TABLE: &[Line] = &lines![
    ("bpf_iter_scx_dsq_new", "s32(ptr,u64,u64)", new),
    ("bpf_iter_scx_dsq_next", "ptr(ptr)", next),
    ("bpf_iter_scx_dsq_destroy", "void(ptr)", destroy),
    // Until 6.16 under these names.
    (
        "scx_bpf_dispatch_from_dsq",
        "bool(ptr,ptr,u64,u64)",
        move_fifo,
    ),
    (
        "scx_bpf_dispatch_vtime_from_dsq",
        "bool(ptr,ptr,u64,u64)",
        move_vtime,
    ),
    (
        "scx_bpf_dispatch_from_dsq_set_slice",
        "void(ptr,u64)",
        set_slice,
    ),
    (
        "scx_bpf_dispatch_from_dsq_set_vtime",
        "void(ptr,u64)",
        set_vtime,
    ),
    // Since 6.13 under these.
    ("scx_bpf_dsq_move", "bool(ptr,ptr,u64,u64)", move_fifo),
    (
        "scx_bpf_dsq_move_vtime",
        "bool(ptr,ptr,u64,u64)",
        move_vtime,
    ),
    ("scx_bpf_dsq_move_set_slice", "void(ptr,u64)", set_slice),
    ("scx_bpf_dsq_move_set_vtime", "void(ptr,u64)", set_vtime),
];

/// First word of an open iterator.
const OPEN: u64 = 0x6473_7169_7465_7221;
/// Offsets of the words.
const CURSOR: u64 = 8;
const OVERRIDES: u64 = 16;
const SLICE: u64 = 24;
const VTIME: u64 = 32;
/// Bits of the word at [`OVERRIDES`].
const HAS_SLICE: u64 = 1;
const HAS_VTIME: u64 = 2;

#[inline(always)]
fn new(ctx: &mut Ctx<'_>, [it, dsq_id, flags, ..]: [u64; 5]) -> Return {
    ctx.vm.deliver(it, &[0; 48])?;
    if flags & !dsq::ITER_REV != 0 {
        return Ok(s32(errno::EINVAL));
    }
    let Some(queue) = ctx.host.dsqs.user(ctx.host.caller(), dsq_id) else {
        return Ok(s32(errno::ENOENT));
    };
    note_place(ctx);
    ctx.host.tell_look(queue, None, Looked::Iterate);
    ctx.vm.open_iterator(48)?;
    let Some(cursor) = ctx.host.dsqs.open(queue, flags & dsq::ITER_REV != 0) else {
        let what = "iterators are open that nobody destroys; a verifier refuses the program";
        return Err(Stop::Refused(what.to_owned()));
    };
    put(ctx, it, 0, OPEN)?;
    put(ctx, it, CURSOR, u64::from(cursor))?;
    Ok(0)
}

/// A word of the iterator, which lies where the program says.
fn get(ctx: &mut Ctx<'_>, it: u64, at: u64) -> u64 {
    ctx.vm.memory().load_u64(it.wrapping_add(at))
}

fn put(ctx: &mut Ctx<'_>, it: u64, at: u64, value: u64) -> Result<(), Stop> {
    ctx.vm.deliver(it.wrapping_add(at), &value.to_le_bytes())
}

fn cursor(ctx: &mut Ctx<'_>, it: u64) -> Option<u32> {
    (get(ctx, it, 0) == OPEN).then(|| get(ctx, it, CURSOR) as u32)
}

#[inline(always)]
fn next(ctx: &mut Ctx<'_>, [it, ..]: [u64; 5]) -> Return {
    let cursor = cursor(ctx, it);
    if let Some(dsq) = cursor.and_then(|cursor| ctx.host.dsqs.iterated(cursor)) {
        ctx.host
            .hold(WhichLock::Queue(dsq), |costs| costs.call_iterate);
    }
    let (found, passed) = cursor.map_or((None, 0), |cursor| ctx.host.dsqs.next(cursor));
    if passed > 0 {
        ctx.vm.spend(TASK_BYTES * passed);
    }
    Ok(found.map_or(0, |id| ctx.host.task(id).address))
}

#[inline(always)]
fn destroy(ctx: &mut Ctx<'_>, [it, ..]: [u64; 5]) -> Return {
    if let Some(cursor) = cursor(ctx, it) {
        ctx.vm.close_iterator()?;
        ctx.host.dsqs.close(cursor);
        put(ctx, it, 0, 0)?;
    }
    Ok(0)
}

fn set_slice(ctx: &mut Ctx<'_>, [it, slice, ..]: [u64; 5]) -> Return {
    set_override(ctx, it, SLICE, HAS_SLICE, slice)
}

fn set_vtime(ctx: &mut Ctx<'_>, [it, vtime, ..]: [u64; 5]) -> Return {
    set_override(ctx, it, VTIME, HAS_VTIME, vtime)
}

fn set_override(ctx: &mut Ctx<'_>, it: u64, at: u64, bit: u64, value: u64) -> Return {
    let bits = get(ctx, it, OVERRIDES);
    put(ctx, it, at, value)?;
    put(ctx, it, OVERRIDES, bits | bit)?;
    Ok(0)
}

fn move_fifo(ctx: &mut Ctx<'_>, [it, p, dsq_id, flags, _]: [u64; 5]) -> Return {
    move_with(ctx, it, p, dsq_id, flags)
}

fn move_vtime(ctx: &mut Ctx<'_>, [it, p, dsq_id, flags, _]: [u64; 5]) -> Return {
    move_with(ctx, it, p, dsq_id, flags | enq::DSQ_PRIQ)
}

/// Source: `scx_dsq_move()`, kernel 6.18. The overrides are used up whether or not it succeeds.
fn move_with(ctx: &mut Ctx<'_>, it: u64, p: u64, dsq_id: u64, flags: u64) -> Return {
    note_place(ctx);
    let unlocked = ctx.host.turn.contexts.innermost().mask == kf::UNLOCKED;
    if !unlocked && !ctx.host.allowed(kf::DISPATCH) {
        return Ok(0);
    }
    let bits = get(ctx, it, OVERRIDES);
    let (slice, vtime) = (get(ctx, it, SLICE), get(ctx, it, VTIME));
    put(ctx, it, OVERRIDES, 0)?;
    let id = task(ctx, p)?;
    let Some(cursor) = cursor(ctx, it) else {
        return Ok(0);
    };
    let machine = &mut *ctx.host;
    if machine.interleaves() {
        let cpu = machine.turn.exec;
        while machine.dsqs.covers(cursor, id, machine.task(id).dsq) {
            let from = machine.task(id).cpu;
            // Both locks are wanted, also where the target is a queue of the policy's.
            let waited = machine.reach_run_queues(ctx.vm, [from, from])
                || machine.reach_verdict(ctx.vm, (cpu, id), dsq_id);
            if !waited {
                break;
            }
        }
    }
    if !machine.dsqs.covers(cursor, id, machine.task(id).dsq) {
        return Ok(0);
    }
    if bits & HAS_VTIME != 0 {
        machine.set_vtime(id, vtime);
    }
    if bits & HAS_SLICE != 0 {
        machine.set_slice(id, slice);
        machine.tell_slice(id, Sliced::Set);
    }
    let Some(flags) = machine.enq_in(flags, dsq_id) else {
        return Ok(0);
    };
    let cpu = machine.turn.exec;
    let target = machine.verdict_queue(cpu, dsq_id, id);
    machine.move_between(cpu, id, target, flags);
    machine.turn.buffer.count_moved(1);
    ctx.host.tell_released(ctx.vm);
    changed(ctx);
    Ok(1)
}

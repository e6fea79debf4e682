//! Cgroups. None comes or goes during a run, so references to them need no count.

use bpf::Stop;
use workload::ROOT_CGROUP;

use super::{Ctx, Line, Return, s32, task};
use crate::flags::{errno, kf};

pub(super) const TABLE: &[Line] = &lines![
    ("scx_bpf_task_cgroup", "ptr(ptr)", task_cgroup),
    ("bpf_cgroup_acquire", "ptr(ptr)", acquire),
    ("bpf_cgroup_release", "void(ptr)", release),
    ("bpf_cgroup_ancestor", "ptr(ptr,s32)", ancestor),
    ("bpf_cgroup_from_id", "ptr(u64)", from_id),
    ("bpf_task_under_cgroup", "s64(ptr,ptr)", under),
    ("bpf_iter_css_new", "s32(ptr,ptr,u32)", iter_new),
    ("bpf_iter_css_next", "ptr(ptr)", iter_next),
    ("bpf_iter_css_destroy", "void(ptr)", iter_destroy),
];

/// Every operation that holds a run queue's lock (`__SCX_KF_RQ_LOCKED`, kernel 6.18).
const LOCKED: u32 = kf::CPU_RELEASE | kf::DISPATCH | kf::ENQUEUE | kf::SELECT_CPU | kf::REST;

/// The cgroup whose time a task takes, also while it is being moved.
///
/// Source: `scx_bpf_task_cgroup()`, kernel 6.18; where no mask is checked, too, outside of these
/// operations there is no task that is operated on.
fn task_cgroup(ctx: &mut Ctx<'_>, [p, ..]: [u64; 5]) -> Return {
    let id = task(ctx, p)?;
    let host = &mut *ctx.host;
    let context = host.turn.contexts.innermost();
    let is_subject = context.mask != 0 && context.subject == id;
    let allowed = !host.rules.task_cgroup_has_mask || host.allowed(LOCKED);
    if !allowed || !is_subject {
        host.error("called on a task not being operated on");
        return Ok(host.mirror.cgroup(ROOT_CGROUP));
    }
    Ok(host.mirror.cgroup(host.task(id).cgroup))
}

/// The number of the cgroup at an address. A kernel's verifier lets nothing else pass.
fn cgroup(ctx: &Ctx<'_>, address: u64) -> Result<u32, Stop> {
    let found = ctx.host.mirror.cgroup_at(address);
    found.ok_or_else(|| Stop::Refused(format!("{address:#x} is no cgroup")))
}

fn acquire(ctx: &mut Ctx<'_>, [address, ..]: [u64; 5]) -> Return {
    cgroup(ctx, address).map(|_| address)
}

fn release(ctx: &mut Ctx<'_>, [address, ..]: [u64; 5]) -> Return {
    cgroup(ctx, address).map(|_| 0)
}

fn ancestor(ctx: &mut Ctx<'_>, [address, level, ..]: [u64; 5]) -> Return {
    let number = cgroup(ctx, address)?;
    let tree = &ctx.host.cgroups;
    let steps = usize::try_from(level as i32)
        .ok()
        .and_then(|level| tree.level(number).checked_sub(level));
    let found = steps.and_then(|steps| tree.ancestors(number).nth(steps));
    Ok(found.map_or(0, |number| ctx.host.mirror.cgroup(number)))
}

fn from_id(ctx: &mut Ctx<'_>, [id, ..]: [u64; 5]) -> Return {
    let number = id
        .checked_sub(1)
        .and_then(|number| u32::try_from(number).ok());
    let known = number.filter(|&number| ctx.host.cgroups.has(number));
    Ok(known.map_or(0, |number| ctx.host.mirror.cgroup(number)))
}

/// Whether a task is in a cgroup or below it, by what its `css_set` says.
fn under(ctx: &mut Ctx<'_>, [p, address, ..]: [u64; 5]) -> Return {
    let id = task(ctx, p)?;
    let ancestor = cgroup(ctx, address)?;
    let own = ctx.host.task(id).css_set;
    let is_under = ctx
        .host
        .cgroups
        .ancestors(own)
        .any(|above| above == ancestor);
    Ok(u64::from(is_under))
}

/// Orders of a walk (`enum bpf_cgroup_iter_order`, kernel 6.18, include/uapi/linux/bpf.h): below a
/// group in pre-order and in post-order, and up from it.
mod order {
    pub const PRE: u32 = 2;
    pub const POST: u32 = 3;
    pub const UP: u32 = 4;
}

/// `struct bpf_iter_css` holds start, position and order, as the kernel's does; a walk that has
/// come to its end begins anew.
///
/// Source: `bpf_iter_css_new()` and `bpf_iter_css_next()`, kernel 6.18,
/// `kernel/bpf/cgroup_iter.c`.
fn iter_new(ctx: &mut Ctx<'_>, [it, start, order, ..]: [u64; 5]) -> Return {
    let known = (order::PRE..=order::UP).contains(&(order as u32));
    let state = if known { [start, 0, order] } else { [0; 3] };
    ctx.vm.deliver(it, &state.map(u64::to_le_bytes).concat())?;
    if !known {
        return Ok(s32(errno::EINVAL));
    }
    css(ctx, start).map(|_| 0)
}

/// The number of the cgroup whose own state lies at an address.
fn css(ctx: &Ctx<'_>, address: u64) -> Result<u32, Stop> {
    let found = ctx.host.mirror.cgroup_of_css(address);
    found.ok_or_else(|| Stop::Refused(format!("{address:#x} is no cgroup's state")))
}

fn iter_next(ctx: &mut Ctx<'_>, [it, ..]: [u64; 5]) -> Return {
    let memory = ctx.vm.memory();
    let [start, at, order] = [0, 8, 16].map(|field| memory.load_u64(it.wrapping_add(field)));
    if start == 0 {
        return Ok(0);
    }
    let start = css(ctx, start)?;
    let at = if at == 0 { None } else { Some(css(ctx, at)?) };
    let tree = &ctx.host.cgroups;
    let next = match (order as u32, at) {
        (order::POST, None) => Some(tree.first_post(start)),
        (order::POST, Some(at)) => tree.next_post(at, start),
        (_, None) => Some(start),
        (order::UP, Some(at)) => tree.parent(at),
        (_, Some(at)) => tree.next_pre(at, start),
    };
    let next = next.map_or(0, |number| ctx.host.mirror.cgroup_css(number));
    ctx.vm.deliver(it.wrapping_add(8), &next.to_le_bytes())?;
    Ok(next)
}

fn iter_destroy(ctx: &mut Ctx<'_>, [it, ..]: [u64; 5]) -> Return {
    ctx.vm.deliver(it, &[0; 24])?;
    Ok(0)
}

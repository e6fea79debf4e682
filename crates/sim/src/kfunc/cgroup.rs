//! Cgroups. The machine has one, the root; every task is in it.

use bpf::Stop;

use super::{Ctx, Line, Return, s32, task};
use crate::flags::errno;

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

/// Number of the root cgroup.
const ROOT_ID: u64 = 1;

fn task_cgroup(ctx: &mut Ctx<'_>, [p, ..]: [u64; 5]) -> Return {
    let id = task(ctx, p)?;
    let subjects = ctx.host.contexts.innermost().subject;
    if subjects != Some(id) {
        ctx.host.error("called on a task not being operated on");
    }
    Ok(ctx.host.mirror.root_cgroup)
}

fn is_root(ctx: &Ctx<'_>, address: u64) -> Result<(), Stop> {
    if address == ctx.host.mirror.root_cgroup {
        return Ok(());
    }
    Err(Stop::Refused(format!("{address:#x} is no cgroup")))
}

fn acquire(ctx: &mut Ctx<'_>, [cgroup, ..]: [u64; 5]) -> Return {
    is_root(ctx, cgroup).map(|()| cgroup)
}

/// The root is never freed.
fn release(ctx: &mut Ctx<'_>, [cgroup, ..]: [u64; 5]) -> Return {
    is_root(ctx, cgroup).map(|()| 0)
}

fn ancestor(ctx: &mut Ctx<'_>, [cgroup, level, ..]: [u64; 5]) -> Return {
    is_root(ctx, cgroup)?;
    Ok(if level as i32 == 0 { cgroup } else { 0 })
}

fn from_id(ctx: &mut Ctx<'_>, [id, ..]: [u64; 5]) -> Return {
    Ok(if id == ROOT_ID {
        ctx.host.mirror.root_cgroup
    } else {
        0
    })
}

/// Every task is in the root.
fn under(ctx: &mut Ctx<'_>, [p, cgroup, ..]: [u64; 5]) -> Return {
    task(ctx, p)?;
    is_root(ctx, cgroup).map(|()| 1)
}

/// Orders of a walk (`enum bpf_cgroup_iter_order`, kernel 6.18, include/uapi/linux/bpf.h): below a
/// group in pre-order and in post-order, and up from it.
const ORDERS: std::ops::RangeInclusive<u64> = 2..=4;

/// `struct bpf_iter_css` is 24 opaque bytes; ours hold the group that is next, or 0. From the root,
/// every order visits the root and nothing else.
///
/// Source: `bpf_iter_css_new()`, kernel 6.18, `kernel/bpf/cgroup_iter.c`.
fn iter_new(ctx: &mut Ctx<'_>, [it, start, order, ..]: [u64; 5]) -> Return {
    let known = ORDERS.contains(&(order & u64::from(u32::MAX)));
    let root = ctx.host.mirror.root_css();
    let next = if known && start == root { root } else { 0 };
    ctx.vm
        .deliver(it, &[next, 0, 0].map(u64::to_le_bytes).concat())?;
    match (known, start) {
        (false, _) => Ok(s32(errno::EINVAL)),
        (true, start) if start == root => Ok(0),
        (true, start) => Err(Stop::Refused(format!("{start:#x} is no cgroup's state"))),
    }
}

fn iter_next(ctx: &mut Ctx<'_>, [it, ..]: [u64; 5]) -> Return {
    let next = ctx.vm.memory().load_u64(it);
    ctx.vm.deliver(it, &[0; 8])?;
    Ok(next)
}

fn iter_destroy(ctx: &mut Ctx<'_>, [it, ..]: [u64; 5]) -> Return {
    ctx.vm.deliver(it, &[0; 24])?;
    Ok(0)
}

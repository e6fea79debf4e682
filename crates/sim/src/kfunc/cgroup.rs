//! Cgroups. The machine has one, the root; every task is in it.

use bpf::Stop;

use super::{Ctx, Line, Return, task};

pub(super) const TABLE: &[Line] = &lines![
    ("scx_bpf_task_cgroup", "ptr(ptr)", task_cgroup),
    ("bpf_cgroup_acquire", "ptr(ptr)", acquire),
    ("bpf_cgroup_release", "void(ptr)", release),
    ("bpf_cgroup_ancestor", "ptr(ptr,s32)", ancestor),
    ("bpf_cgroup_from_id", "ptr(u64)", from_id),
];

/// Number of the root cgroup.
const ROOT_ID: u64 = 1;

fn task_cgroup(ctx: &mut Ctx<'_>, [p, ..]: [u64; 5]) -> Return {
    let id = task(ctx, p)?;
    let subjects = ctx.host.contexts.last().and_then(|context| context.subject);
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

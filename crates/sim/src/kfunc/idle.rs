//! Built-in idle tracking, as policies use it.

use model::CpuId;

use super::{Ctx, Line, Return, cpu_or_error, s32, task};
use crate::flags::{errno, kf, ops};
use crate::idle::rotate;
use crate::mask::Mask;
use crate::mirror::{read_mask, write_mask};

pub(super) const TABLE: &[Line] = &lines![
    (
        "scx_bpf_select_cpu_dfl",
        "s32(ptr,s32,u64,ptr)",
        select_cpu_dfl,
    ),
    (
        "scx_bpf_select_cpu_and",
        "s32(ptr,s32,u64,ptr,u64)",
        select_cpu_and,
    ),
    (
        "__scx_bpf_select_cpu_and",
        "s32(ptr,ptr,ptr)",
        select_cpu_and_of,
    ),
    (
        "scx_bpf_test_and_clear_cpu_idle",
        "bool(s32)",
        test_and_clear,
    ),
    ("scx_bpf_pick_idle_cpu", "s32(ptr,u64)", pick_idle),
    (
        "scx_bpf_pick_idle_cpu_node",
        "s32(ptr,s32,u64)",
        pick_idle_node,
    ),
    ("scx_bpf_pick_any_cpu", "s32(ptr,u64)", pick_any),
    (
        "scx_bpf_pick_any_cpu_node",
        "s32(ptr,s32,u64)",
        pick_any_node,
    ),
    ("scx_bpf_get_idle_cpumask", "ptr()", idle_cpumask),
    (
        "scx_bpf_get_idle_cpumask_node",
        "ptr(s32)",
        idle_cpumask_node,
    ),
    ("scx_bpf_get_idle_smtmask", "ptr()", idle_smtmask),
    (
        "scx_bpf_get_idle_smtmask_node",
        "ptr(s32)",
        idle_smtmask_node,
    ),
    ("scx_bpf_put_idle_cpumask", "void(ptr)", put),
    ("scx_bpf_get_possible_cpumask", "ptr()", online),
    ("scx_bpf_get_online_cpumask", "ptr()", online),
    ("scx_bpf_put_cpumask", "void(ptr)", put),
];

/// Whether tracking is on; ends the policy's time if not.
fn enabled(ctx: &mut Ctx<'_>) -> bool {
    if !ctx.host.idle.enabled {
        ctx.host.error("built-in idle tracking is disabled");
    }
    ctx.host.idle.enabled
}

/// Whether the masks are kept as the function expects: globally, or for each node.
fn kept(ctx: &mut Ctx<'_>, per_node: bool) -> bool {
    let is_per_node = ctx.host.ops.flag(ops::BUILTIN_IDLE_PER_NODE);
    if is_per_node != per_node {
        ctx.host.error(match per_node {
            true => "per-node idle tracking is disabled",
            false => "SCX_OPS_BUILTIN_IDLE_PER_NODE enabled",
        });
    }
    is_per_node == per_node
}

/// Whether `node` is the machine's one node.
fn has_node(ctx: &mut Ctx<'_>, node: u64) -> bool {
    let node = node as i32;
    if node != 0 && node != -1 {
        ctx.host.error(format!("invalid node {node}"));
    }
    node == 0 || node == -1
}

fn mask(ctx: &mut Ctx<'_>, at: u64) -> Mask {
    read_mask(ctx.vm.memory(), at, ctx.host.spec.cpus)
}

/// Programs that hold a pointer to the idle masks see every claim.
fn refresh(ctx: &mut Ctx<'_>) {
    if ctx.host.mirror.idle_shared {
        let memory = ctx.vm.memory();
        write_mask(memory, ctx.host.mirror.idle_cpu, &ctx.host.idle.cpu);
        write_mask(memory, ctx.host.mirror.idle_smt, &ctx.host.idle.smt);
    }
}

fn cpu_or_busy(ctx: &mut Ctx<'_>, cpu: Option<CpuId>) -> u64 {
    refresh(ctx);
    s32(cpu.map_or(errno::EBUSY, |cpu| i64::from(cpu.0)))
}

/// Where a built-in choice may be asked for.
fn may_select(ctx: &mut Ctx<'_>) -> bool {
    let unlocked = ctx
        .host
        .contexts
        .last()
        .is_some_and(|context| context.mask == kf::UNLOCKED);
    unlocked || ctx.host.allowed(kf::SELECT_CPU | kf::ENQUEUE)
}

fn select_cpu_dfl(ctx: &mut Ctx<'_>, [p, prev, wake, is_idle, _]: [u64; 5]) -> Return {
    let id = task(ctx, p)?;
    let found = match cpu_or_error(ctx, prev) {
        Some(prev) if enabled(ctx) && may_select(ctx) => {
            ctx.host.select_idle(id, prev, wake, None, 0)
        }
        _ => None,
    };
    refresh(ctx);
    ctx.vm.deliver(is_idle, &[u8::from(found.is_some())])?;
    Ok(found.map_or(prev, |cpu| u64::from(cpu.0)))
}

fn select_cpu_and(ctx: &mut Ctx<'_>, [p, prev, wake, allowed, flags]: [u64; 5]) -> Return {
    let id = task(ctx, p)?;
    let Some(prev) = cpu_or_error(ctx, prev) else {
        return Ok(s32(errno::EINVAL));
    };
    if !enabled(ctx) {
        return Ok(s32(errno::EBUSY));
    }
    if !may_select(ctx) {
        return Ok(s32(errno::EPERM));
    }
    let allowed = mask(ctx, allowed);
    let found = ctx.host.select_idle(id, prev, wake, Some(&allowed), flags);
    Ok(cpu_or_busy(ctx, found))
}

/// From 6.19 on: CPU and flags in `struct scx_bpf_select_cpu_and_args`, three words.
fn select_cpu_and_of(ctx: &mut Ctx<'_>, [p, allowed, args, ..]: [u64; 5]) -> Return {
    let word = |ctx: &mut Ctx<'_>, at: u64| ctx.vm.memory().load_u64(args.wrapping_add(8 * at));
    let [prev, wake, flags] = [0, 1, 2].map(|at| word(ctx, at));
    select_cpu_and(ctx, [p, prev & u64::from(u32::MAX), wake, allowed, flags])
}

fn test_and_clear(ctx: &mut Ctx<'_>, [cpu, ..]: [u64; 5]) -> Return {
    if !enabled(ctx) {
        return Ok(0);
    }
    let Some(cpu) = cpu_or_error(ctx, cpu) else {
        return Ok(0);
    };
    let claimed = ctx.host.idle.claim(cpu);
    refresh(ctx);
    Ok(u64::from(claimed))
}

fn pick_idle(ctx: &mut Ctx<'_>, [allowed, flags, ..]: [u64; 5]) -> Return {
    if !kept(ctx, false) || !enabled(ctx) {
        return Ok(s32(errno::EBUSY));
    }
    let allowed = mask(ctx, allowed);
    let found = ctx.host.pick_idle(&allowed, flags);
    Ok(cpu_or_busy(ctx, found))
}

fn pick_idle_node(ctx: &mut Ctx<'_>, [allowed, node, flags, ..]: [u64; 5]) -> Return {
    if !kept(ctx, true) || !has_node(ctx, node) || !enabled(ctx) {
        return Ok(s32(errno::EBUSY));
    }
    let allowed = mask(ctx, allowed);
    let found = ctx.host.pick_idle(&allowed, flags);
    Ok(cpu_or_busy(ctx, found))
}

fn pick_any(ctx: &mut Ctx<'_>, [allowed, flags, ..]: [u64; 5]) -> Return {
    if !kept(ctx, false) {
        return Ok(s32(errno::EBUSY));
    }
    any(ctx, allowed, flags)
}

fn pick_any_node(ctx: &mut Ctx<'_>, [allowed, node, flags, ..]: [u64; 5]) -> Return {
    if !kept(ctx, true) || !has_node(ctx, node) {
        return Ok(s32(errno::EBUSY));
    }
    any(ctx, allowed, flags)
}

/// An idle CPU if there is one and idle CPUs are tracked, else the next of the mask in turn.
fn any(ctx: &mut Ctx<'_>, allowed: u64, flags: u64) -> Return {
    let allowed = mask(ctx, allowed);
    let machine = &mut *ctx.host;
    let idle = if machine.idle.enabled {
        machine.pick_idle(&allowed, flags)
    } else {
        None
    };
    let exec = machine.exec;
    let found = idle.or_else(|| rotate(&mut machine.cpus[exec].rotor, &allowed, &allowed));
    Ok(cpu_or_busy(ctx, found))
}

fn idle_cpumask(ctx: &mut Ctx<'_>, _: [u64; 5]) -> Return {
    if !kept(ctx, false) || !enabled(ctx) {
        return Ok(0);
    }
    share(ctx);
    Ok(ctx.host.mirror.idle_cpu)
}

fn idle_cpumask_node(ctx: &mut Ctx<'_>, [node, ..]: [u64; 5]) -> Return {
    if !kept(ctx, true) || !has_node(ctx, node) || !enabled(ctx) {
        return Ok(0);
    }
    share(ctx);
    Ok(ctx.host.mirror.idle_cpu)
}

fn idle_smtmask(ctx: &mut Ctx<'_>, _: [u64; 5]) -> Return {
    if !kept(ctx, false) || !enabled(ctx) {
        return Ok(0);
    }
    share(ctx);
    Ok(smt_or_cpu(ctx))
}

fn idle_smtmask_node(ctx: &mut Ctx<'_>, [node, ..]: [u64; 5]) -> Return {
    if !kept(ctx, true) || !has_node(ctx, node) || !enabled(ctx) {
        return Ok(0);
    }
    share(ctx);
    Ok(smt_or_cpu(ctx))
}

/// Without hardware threads the mask of idle cores is that of idle CPUs.
fn smt_or_cpu(ctx: &Ctx<'_>) -> u64 {
    let mirror = &ctx.host.mirror;
    if ctx.host.idle.has_smt() {
        mirror.idle_smt
    } else {
        mirror.idle_cpu
    }
}

fn share(ctx: &mut Ctx<'_>) {
    ctx.host.mirror.idle_shared = true;
    refresh(ctx);
}

/// Dropping the reference; the masks live as long as the machine.
fn put(_: &mut Ctx<'_>, _: [u64; 5]) -> Return {
    Ok(0)
}

fn online(ctx: &mut Ctx<'_>, _: [u64; 5]) -> Return {
    Ok(ctx.host.mirror.online)
}

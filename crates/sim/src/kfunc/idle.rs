//! Built-in idle tracking, as policies use it.

use model::{CpuId, IdleChange};

use super::{Ctx, Line, Return, cpu_or_error, note_place, s32, task};
use crate::flags::{errno, kf, ops};
use crate::idle::{PICK_IN_NODE, Wanted, rotate};
use crate::mask::Mask;
use crate::mirror::read_mask;

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
    ("scx_bpf_get_possible_cpumask", "ptr()", possible),
    ("scx_bpf_get_online_cpumask", "ptr()", online),
    ("scx_bpf_put_cpumask", "void(ptr)", put),
];

/// Whether tracking is on; ends the policy's time if not.
fn enabled(ctx: &mut Ctx<'_>) -> bool {
    if !ctx.host.idle.is_enabled() {
        ctx.host.error("built-in idle tracking is disabled");
    }
    ctx.host.idle.is_enabled()
}

/// Whether the masks are kept as the function expects: globally, or for each node.
fn kept(ctx: &mut Ctx<'_>, per_node: bool) -> bool {
    let is_per_node = ctx.host.scheds.root.ops.flag(ops::BUILTIN_IDLE_PER_NODE);
    if is_per_node != per_node {
        ctx.host.error(if per_node {
            "per-node idle tracking is disabled"
        } else {
            "SCX_OPS_BUILTIN_IDLE_PER_NODE enabled"
        });
    }
    is_per_node == per_node
}

/// The node that a function was given, if masks are kept for each node and it exists; else the
/// error that the function returns, or that stands for no mask.
///
/// Source: `validate_node()`, kernel 6.18. There is no node -1, which is no reason to eject.
fn node_of(ctx: &mut Ctx<'_>, node: u64) -> Result<u16, u64> {
    if !kept(ctx, true) {
        return Err(s32(errno::EOPNOTSUPP));
    }
    let node = node as i32;
    if node == -1 {
        return Err(s32(errno::ENOENT));
    }
    let exists = u16::try_from(node).ok();
    let exists = exists.filter(|&node| node < ctx.host.idle.topology().nodes());
    exists.ok_or_else(|| {
        ctx.host.error(format!("invalid node {node}"));
        s32(errno::EINVAL)
    })
}

fn mask(ctx: &mut Ctx<'_>, at: u64) -> Mask {
    read_mask(ctx.vm.memory(), at, ctx.host.spec.cpus)
}

/// Programs that hold a pointer to the idle masks see every claim.
fn refresh(ctx: &mut Ctx<'_>) {
    if ctx.host.mirror.idle_shared {
        ctx.host.mirror.write_idle(ctx.vm.memory(), &ctx.host.idle);
    }
}

fn cpu_or_busy(ctx: &mut Ctx<'_>, cpu: Option<CpuId>) -> u64 {
    claimed(ctx, cpu);
    refresh(ctx);
    s32(cpu.map_or(errno::EBUSY, |cpu| i64::from(cpu.0)))
}

/// Tells of a CPU that was claimed, if anybody listens to decisions.
fn claimed(ctx: &mut Ctx<'_>, cpu: Option<CpuId>) {
    note_place(ctx);
    if let Some(cpu) = cpu {
        ctx.host.tell_idle(cpu, IdleChange::Claimed);
    }
}

/// Where a built-in choice may be asked for.
fn may_select(ctx: &mut Ctx<'_>) -> bool {
    let unlocked = ctx.host.turn.contexts.innermost().mask == kf::UNLOCKED;
    unlocked || ctx.host.allowed(kf::SELECT_CPU | kf::ENQUEUE)
}

#[inline(always)]
fn select_cpu_dfl(ctx: &mut Ctx<'_>, [p, prev, wake, is_idle, _]: [u64; 5]) -> Return {
    let id = task(ctx, p)?;
    let found = match cpu_or_error(ctx, prev) {
        Some(prev) if enabled(ctx) && may_select(ctx) => {
            let wanted = Wanted {
                prev,
                wake_flags: wake,
                within: None,
                flags: 0,
            };
            ctx.host.select_idle(id, &wanted)
        }
        _ => None,
    };
    claimed(ctx, found);
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
    let wanted = Wanted {
        prev,
        wake_flags: wake,
        within: Some(&allowed),
        flags,
    };
    let found = ctx.host.select_idle(id, &wanted);
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
    let was_idle = ctx.host.idle.claim(cpu);
    claimed(ctx, was_idle.then_some(cpu));
    refresh(ctx);
    Ok(u64::from(was_idle))
}

fn pick_idle(ctx: &mut Ctx<'_>, [allowed, flags, ..]: [u64; 5]) -> Return {
    if !kept(ctx, false) || !enabled(ctx) {
        return Ok(s32(errno::EBUSY));
    }
    // Policies ask at every tick whether anybody idles. Nobody does on a busy machine, whatever
    // CPUs are allowed.
    if !ctx.host.idle.has_any() {
        return Ok(cpu_or_busy(ctx, None));
    }
    let allowed = mask(ctx, allowed);
    let found = ctx.host.pick_idle(&allowed, None, flags);
    Ok(cpu_or_busy(ctx, found))
}

fn pick_idle_node(ctx: &mut Ctx<'_>, [allowed, node, flags, ..]: [u64; 5]) -> Return {
    let node = match node_of(ctx, node) {
        Ok(node) => node,
        Err(error) => return Ok(error),
    };
    if !enabled(ctx) {
        return Ok(s32(errno::EBUSY));
    }
    let allowed = mask(ctx, allowed);
    let found = ctx.host.pick_idle(&allowed, Some(node), flags);
    Ok(cpu_or_busy(ctx, found))
}

fn pick_any(ctx: &mut Ctx<'_>, [allowed, flags, ..]: [u64; 5]) -> Return {
    if !kept(ctx, false) {
        return Ok(s32(errno::EBUSY));
    }
    any(ctx, allowed, None, flags)
}

fn pick_any_node(ctx: &mut Ctx<'_>, [allowed, node, flags, ..]: [u64; 5]) -> Return {
    match node_of(ctx, node) {
        Ok(node) => any(ctx, allowed, Some(node), flags),
        Err(error) => Ok(error),
    }
}

/// An idle CPU if there is one and idle CPUs are tracked, else the next of the mask in turn.
fn any(ctx: &mut Ctx<'_>, allowed: u64, node: Option<u16>, flags: u64) -> Return {
    let allowed = mask(ctx, allowed);
    let machine = &mut *ctx.host;
    let idle = if machine.idle.is_enabled() {
        machine.pick_idle(&allowed, node, flags)
    } else {
        None
    };
    let within = match node.filter(|_| flags & PICK_IN_NODE != 0) {
        Some(node) => machine.idle.topology().node(node).and(&allowed),
        None => allowed,
    };
    let exec = machine.turn.exec;
    let found = idle.or_else(|| rotate(&mut machine.cpus[exec].rotor, &within, &within));
    claimed(ctx, idle);
    refresh(ctx);
    Ok(s32(found.map_or(errno::EBUSY, |cpu| i64::from(cpu.0))))
}

fn idle_cpumask(ctx: &mut Ctx<'_>, _: [u64; 5]) -> Return {
    if !kept(ctx, false) || !enabled(ctx) {
        return Ok(0);
    }
    share(ctx);
    Ok(ctx.host.mirror.idle_cpu)
}

fn idle_cpumask_node(ctx: &mut Ctx<'_>, [node, ..]: [u64; 5]) -> Return {
    node_mask(ctx, node, 0)
}

fn idle_smtmask(ctx: &mut Ctx<'_>, _: [u64; 5]) -> Return {
    if !kept(ctx, false) || !enabled(ctx) {
        return Ok(0);
    }
    share(ctx);
    Ok(smt_or_cpu(ctx))
}

fn idle_smtmask_node(ctx: &mut Ctx<'_>, [node, ..]: [u64; 5]) -> Return {
    let which = usize::from(ctx.host.idle.has_smt());
    node_mask(ctx, node, which)
}

/// One of the two masks of a node; the empty mask if there is none.
fn node_mask(ctx: &mut Ctx<'_>, node: u64, which: usize) -> Return {
    let node = node_of(ctx, node);
    let Some(node) = node.ok().filter(|_| enabled(ctx)) else {
        return Ok(ctx.host.mirror.none);
    };
    share(ctx);
    Ok(ctx.host.mirror.idle_nodes[usize::from(node)][which])
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
    ctx.host.mirror.share_idle();
    refresh(ctx);
}

/// Dropping the reference; the masks live as long as the machine.
fn put(_: &mut Ctx<'_>, _: [u64; 5]) -> Return {
    Ok(0)
}

fn possible(ctx: &mut Ctx<'_>, _: [u64; 5]) -> Return {
    Ok(ctx.host.mirror.possible)
}

fn online(ctx: &mut Ctx<'_>, _: [u64; 5]) -> Return {
    Ok(ctx.host.mirror.online)
}

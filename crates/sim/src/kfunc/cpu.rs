//! CPUs: kicks, the clock, run queues, performance levels, counters.

use model::CpuId;

use super::{Ctx, Line, Return, cpu_or_error, note_place, s32, task};
use crate::cpu::Curr;
use crate::machine::Machine;

pub(super) const TABLE: &[Line] = &lines![
    ("scx_bpf_kick_cpu", "void(s32,u64)", kick),
    ("scx_bpf_now", "u64()", now),
    ("scx_bpf_nr_cpu_ids", "u32()", nr_cpu_ids),
    ("scx_bpf_nr_node_ids", "u32()", nr_node_ids),
    ("scx_bpf_cpu_node", "s32(s32)", cpu_node),
    ("scx_bpf_cpu_rq", "ptr(s32)", cpu_rq),
    ("scx_bpf_locked_rq", "ptr()", locked_rq),
    ("scx_bpf_cpu_curr", "ptr(s32)", cpu_curr),
    ("scx_bpf_task_running", "bool(ptr)", task_running),
    ("scx_bpf_task_cpu", "s32(ptr)", task_cpu),
    ("scx_bpf_cpuperf_cap", "u32(s32)", cpuperf_cap),
    ("scx_bpf_cpuperf_cur", "u32(s32)", cpuperf_cur),
    ("scx_bpf_cpuperf_set", "void(s32,u32)", cpuperf_set),
    ("scx_bpf_events", "void(ptr,u64)", events),
    ("bpf_jiffies64", "", jiffies),
];

/// `SCX_CPUPERF_ONE`: the greatest capacity, and the highest frequency of each CPU.
pub(super) const CPUPERF_ONE: u64 = 1024;

fn kick(ctx: &mut Ctx<'_>, [cpu, flags, ..]: [u64; 5]) -> Return {
    note_place(ctx);
    if let Some(cpu) = cpu_or_error(ctx, cpu) {
        ctx.host.kick(cpu, flags);
    }
    Ok(0)
}

fn now(ctx: &mut Ctx<'_>, _: [u64; 5]) -> Return {
    Ok(ctx.host.clock_ns())
}

fn jiffies(ctx: &mut Ctx<'_>, _: [u64; 5]) -> Return {
    Ok(ctx.host.jiffies())
}

fn nr_cpu_ids(ctx: &mut Ctx<'_>, _: [u64; 5]) -> Return {
    Ok(u64::from(ctx.host.spec.cpus))
}

fn nr_node_ids(ctx: &mut Ctx<'_>, _: [u64; 5]) -> Return {
    Ok(u64::from(ctx.host.idle.topology().nodes()))
}

fn cpu_node(ctx: &mut Ctx<'_>, [cpu, ..]: [u64; 5]) -> Return {
    let node = cpu_or_error(ctx, cpu).map(|cpu| ctx.host.idle.topology().node_of(cpu));
    Ok(s32(node.map_or(-1, i64::from)))
}

fn cpu_rq(ctx: &mut Ctx<'_>, [cpu, ..]: [u64; 5]) -> Return {
    Ok(cpu_or_error(ctx, cpu).map_or(0, |cpu| ctx.host.mirror.rqs[cpu]))
}

fn locked_rq(ctx: &mut Ctx<'_>, _: [u64; 5]) -> Return {
    let Some(cpu) = ctx.host.turn.contexts.innermost().locked.cpu() else {
        ctx.host.error("accessing rq without holding rq lock");
        return Ok(0);
    };
    Ok(ctx.host.mirror.rqs[cpu])
}

fn cpu_curr(ctx: &mut Ctx<'_>, [cpu, ..]: [u64; 5]) -> Return {
    let Some(cpu) = cpu_or_error(ctx, cpu) else {
        return Ok(0);
    };
    Ok(curr_address(ctx.host, cpu))
}

/// The mirror of the task that runs on `cpu`.
pub(super) fn curr_address(machine: &Machine, cpu: CpuId) -> u64 {
    match machine.rq_curr(cpu).task() {
        Some(id) => machine.task(id).address,
        None => machine.mirror.idle_tasks[cpu],
    }
}

fn task_running(ctx: &mut Ctx<'_>, [p, ..]: [u64; 5]) -> Return {
    match ctx.host.idle_task_at(p) {
        Some(cpu) => Ok(u64::from(ctx.host.rq_curr(cpu) == Curr::Idle)),
        None => {
            let id = task(ctx, p)?;
            let cpu = ctx.host.task(id).cpu;
            Ok(u64::from(ctx.host.rq_curr(cpu) == Curr::Task(id)))
        }
    }
}

#[inline(always)]
fn task_cpu(ctx: &mut Ctx<'_>, [p, ..]: [u64; 5]) -> Return {
    // It is nearly always asked of the task that the callback is about.
    match ctx.host.subject_at(p) {
        Some(task) => Ok(u64::from(task.cpu.0)),
        None => other_task_cpu(ctx, p),
    }
}

#[inline(never)]
fn other_task_cpu(ctx: &mut Ctx<'_>, p: u64) -> Return {
    let cpu = match ctx.host.idle_task_at(p) {
        Some(cpu) => cpu,
        None => {
            let id = task(ctx, p)?;
            ctx.host.task(id).cpu
        }
    };
    Ok(u64::from(cpu.0))
}

fn cpuperf_cap(ctx: &mut Ctx<'_>, [cpu, ..]: [u64; 5]) -> Return {
    let cpu = cpu_or_error(ctx, cpu);
    Ok(cpu.map_or(CPUPERF_ONE, |cpu| ctx.host.told_capacity(cpu)))
}

fn cpuperf_cur(ctx: &mut Ctx<'_>, [cpu, ..]: [u64; 5]) -> Return {
    let cpu = cpu_or_error(ctx, cpu);
    Ok(cpu.map_or(CPUPERF_ONE, |cpu| ctx.host.current_speed(cpu)))
}

fn cpuperf_set(ctx: &mut Ctx<'_>, [cpu, target, ..]: [u64; 5]) -> Return {
    set_performance(ctx, cpu, target);
    Ok(0)
}

/// The target is kept, if it is right, which is returned. CPUs follow it on hardware whose governor
/// is `schedutil`.
pub(super) fn set_performance(ctx: &mut Ctx<'_>, cpu: u64, target: u64) -> bool {
    let number = cpu as i32;
    let target = u64::from(target as u32);
    if target > CPUPERF_ONE {
        ctx.host
            .error(format!("Invalid cpuperf target {target} for CPU {number}"));
        return false;
    }
    let Some(cpu) = cpu_or_error(ctx, cpu) else {
        return false;
    };
    let locked = ctx.host.turn.contexts.innermost().locked.cpu();
    if locked.is_some_and(|locked: CpuId| locked != cpu) {
        ctx.host.error(format!("Invalid target CPU {number}"));
        return false;
    }
    ctx.host.ask_for_speed(cpu, target as u16);
    true
}

fn events(ctx: &mut Ctx<'_>, [at, size, ..]: [u64; 5]) -> Return {
    let mut bytes: Vec<u8> = ctx.host.scheds[ctx.host.caller()]
        .counters
        .named(&ctx.host.rules)
        .iter()
        .flat_map(|(_, value)| value.to_le_bytes())
        .collect();
    bytes.truncate(usize::try_from(size).unwrap_or(usize::MAX));
    ctx.vm.deliver(at, &bytes)?;
    Ok(0)
}

//! Topological numbers of CPUs: translating them, and what CPUs are asked by them.
//!
//! Source: kernel/sched/ext/cid.c and ext.c, kernel 7.3.

use bpf::{Memory, Stop};
use model::{CpuId, TaskId};

use super::cpu::{curr_address, set_performance};
use super::{Ctx, Line, Return, note_place, s32, task};
use crate::cid::{NO_TOPO, TOPO_WORDS};
use crate::counters::Counter;
use crate::flags::{errno, ops};
use crate::machine::Machine;
use crate::subs::PERF;
use crate::task::RunState;

pub(super) const TABLE: &[Line] = &lines![
    ("scx_bpf_cid_to_cpu", "s32(s32)", cid_to_cpu),
    ("scx_bpf_cpu_to_cid", "s32(s32)", cpu_to_cid),
    ("scx_bpf_cid_topo", "void(s32,ptr,u64)", cid_topo),
    (
        "scx_bpf_cid_override",
        "void(ptr,u32,ptr,u32)",
        cid_override,
    ),
    // Of 7.2.
    ("scx_bpf_cid_override", "void(ptr,u32)", cid_override_alone),
    ("scx_bpf_kick_cid", "void(s32,u64)", kick),
    ("scx_bpf_task_cid", "s32(ptr)", task_cid),
    ("scx_bpf_this_cid", "s32()", this_cid),
    ("scx_bpf_cid_curr", "ptr(s32)", cid_curr),
    ("scx_bpf_nr_cids", "u32()", nr_cids),
    ("scx_bpf_nr_online_cids", "u32()", nr_online_cids),
    ("scx_bpf_online_cmask", "ptr()", online_cmask),
    ("scx_bpf_cidperf_cap", "u32(s32)", cidperf_cap),
    ("scx_bpf_cidperf_cur", "u32(s32)", cidperf_cur),
    ("scx_bpf_cidperf_set", "s32(s32,u32)", cidperf_set),
    // Of 7.2.
    ("scx_bpf_cidperf_set", "void(s32,u32)", cidperf_set),
    ("scx_bpf_tid_to_task", "ptr(u64)", tid_to_task),
];

/// The CPU with this cid; one that does not exist ends the policy's time.
fn cpu(ctx: &mut Ctx<'_>, cid: u64) -> Option<CpuId> {
    ctx.host.cpu_of_cid(i64::from(cid as i32))
}

fn cid_to_cpu(ctx: &mut Ctx<'_>, [cid, ..]: [u64; 5]) -> Return {
    let cpu = cpu(ctx, cid);
    Ok(s32(cpu.map_or(errno::EINVAL, |cpu| cpu.0.into())))
}

/// The cid of a CPU, as a function returns it.
fn cid_of(machine: &Machine, cpu: CpuId) -> u64 {
    let table = machine.cids.visible();
    s32(table.map_or(errno::EINVAL, |table| table.cid(cpu).into()))
}

fn cpu_to_cid(ctx: &mut Ctx<'_>, [cpu, ..]: [u64; 5]) -> Return {
    let cpu = super::cpu_or_error(ctx, cpu);
    Ok(cpu.map_or(s32(errno::EINVAL), |cpu| cid_of(ctx.host, cpu)))
}

fn task_cid(ctx: &mut Ctx<'_>, [p, ..]: [u64; 5]) -> Return {
    let cpu = match ctx.host.idle_task_at(p) {
        Some(cpu) => cpu,
        None => {
            let id = task(ctx, p)?;
            ctx.host.task(id).cpu
        }
    };
    Ok(cid_of(ctx.host, cpu))
}

fn this_cid(ctx: &mut Ctx<'_>, _: [u64; 5]) -> Return {
    Ok(cid_of(ctx.host, ctx.host.turn.exec))
}

/// Bytes of the policy's that are filled at most: its structure may be of a newer kernel.
const MOST_BYTES: u64 = 1 << 12;

fn cid_topo(ctx: &mut Ctx<'_>, [cid, out, size, ..]: [u64; 5]) -> Return {
    let topo: [i32; TOPO_WORDS] = ctx.host.cid_topo(i64::from(cid as i32)).unwrap_or(NO_TOPO);
    let known = 4 * ctx.host.rules.cid_topo_words;
    let mut bytes = topo.map(i32::to_le_bytes).as_flattened()[..known].to_vec();
    bytes.resize(size.min(MOST_BYTES) as usize, u8::MAX);
    ctx.vm.deliver(out, &bytes)?;
    Ok(0)
}

fn kick(ctx: &mut Ctx<'_>, [cid, flags, ..]: [u64; 5]) -> Return {
    note_place(ctx);
    if let Some(cpu) = cpu(ctx, cid) {
        ctx.host.kick(cpu, flags);
    }
    Ok(0)
}

fn cid_curr(ctx: &mut Ctx<'_>, [cid, ..]: [u64; 5]) -> Return {
    let cpu = cpu(ctx, cid);
    Ok(cpu.map_or(0, |cpu| curr_address(ctx.host, cpu)))
}

fn nr_cids(ctx: &mut Ctx<'_>, _: [u64; 5]) -> Return {
    Ok(u64::from(ctx.host.spec.cpus))
}

fn nr_online_cids(ctx: &mut Ctx<'_>, _: [u64; 5]) -> Return {
    Ok(u64::from(ctx.host.idle.topology().online().count()))
}

/// A pointer into the arena is the low half of an address.
fn online_cmask(ctx: &mut Ctx<'_>, _: [u64; 5]) -> Return {
    let at = ctx.host.online_mask_of(ctx.host.caller());
    Ok(at.map_or(0, |at| at & u64::from(u32::MAX)))
}

fn cidperf_cap(ctx: &mut Ctx<'_>, [cid, ..]: [u64; 5]) -> Return {
    let cpu = cpu(ctx, cid);
    Ok(cpu.map_or(super::cpu::CPUPERF_ONE, |cpu| ctx.host.told_capacity(cpu)))
}

fn cidperf_cur(ctx: &mut Ctx<'_>, [cid, ..]: [u64; 5]) -> Return {
    let cpu = cpu(ctx, cid);
    Ok(cpu.map_or(super::cpu::CPUPERF_ONE, |cpu| ctx.host.current_speed(cpu)))
}

fn cidperf_set(ctx: &mut Ctx<'_>, [cid, target, ..]: [u64; 5]) -> Return {
    let Some(cpu) = cpu(ctx, cid) else {
        return Ok(s32(errno::EINVAL));
    };
    let caller = ctx.host.caller();
    if ctx.host.caps_on(caller, cpu) & PERF == 0 {
        ctx.host.scheds[caller]
            .counters
            .count(Counter::SubCidperfDenied);
        return Ok(s32(errno::EACCES));
    }
    let is_set = set_performance(ctx, u64::from(cpu.0), target);
    Ok(if is_set { 0 } else { s32(errno::EINVAL) })
}

/// The numbers at `pointer`, one into the arena; where nothing is allocated, a kernel reads 0.
fn numbers(memory: &Memory, pointer: u64, count: u32) -> Vec<i32> {
    let Some(pages) = memory.arena() else {
        return vec![0; count as usize];
    };
    let start = pages.place(pointer, 0);
    let places = (0..u64::from(count)).map(|index| start + 4 * index);
    places
        .map(|at| {
            if pages.holds(at, 4) {
                memory.load_u32(at) as i32
            } else {
                0
            }
        })
        .collect()
}

fn cid_override(ctx: &mut Ctx<'_>, [cids, n, shards, m, _]: [u64; 5]) -> Return {
    let cpus = u32::from(ctx.host.spec.cpus);
    let (n, m) = (n as u32, m as u32);
    let message = if n != cpus {
        format!("scx_bpf_cid_override: cpu_to_cid expected {cpus} entries, got {n}")
    } else if m == 0 || m > cpus {
        format!("scx_bpf_cid_override: invalid shard_start count {m}")
    } else {
        let memory = ctx.vm.memory();
        let (cids, shards) = (numbers(memory, cids, n), numbers(memory, shards, m));
        return replace(ctx, &cids, &shards);
    };
    ctx.host.error(message);
    Ok(0)
}

/// In 7.2 the policy gives the numbers alone, in memory of its own and from `ops.init()`.
fn cid_override_alone(_: &mut Ctx<'_>, _: [u64; 5]) -> Return {
    let what = "scx_bpf_cid_override() of kernel 7.2 is not simulated; that of 7.3 is";
    Err(Stop::Refused(what.to_owned()))
}

fn replace(ctx: &mut Ctx<'_>, cids: &[i32], shards: &[i32]) -> Return {
    // A kernel refuses to load a program that calls it from another callback.
    let Some(table) = ctx.host.cids.being_made() else {
        let what = "calling kernel function scx_bpf_cid_override is not allowed";
        return Err(Stop::Refused(what.to_owned()));
    };
    if let Err(message) = table.replace(cids, shards) {
        ctx.host.error(message);
    }
    Ok(0)
}

/// A task by its number, which is one more than the machine's.
fn tid_to_task(ctx: &mut Ctx<'_>, [tid, ..]: [u64; 5]) -> Return {
    let machine = &mut *ctx.host;
    if !machine.scheds.root.ops.flag(ops::TID_TO_TASK) {
        machine.error("scx_bpf_tid_to_task() called without SCX_OPS_TID_TO_TASK");
        return Ok(0);
    }
    let number = tid
        .checked_sub(1)
        .and_then(|number| u32::try_from(number).ok());
    let found = number.and_then(|number| machine.tasks.get(TaskId(number).index()));
    let found = found.filter(|task| task.state != RunState::Dead);
    Ok(found.map_or(0, |task| task.address))
}

//! What only `ops.dispatch` and `ops.cpu_release` may do.

use super::{Ctx, Line, Return, changed, s32};
use crate::flags::{enq, kf};
use crate::machine::{Machine, Vm};
use crate::task::Class;

pub(super) const TABLE: &[Line] = &lines![
    ("scx_bpf_dispatch_nr_slots", "u32()", nr_slots),
    ("scx_bpf_dispatch_cancel", "void()", cancel),
    ("scx_bpf_dsq_move_to_local", "bool(u64)", move_to_local),
    ("scx_bpf_reenqueue_local", "u32()", reenqueue_local),
];

fn nr_slots(ctx: &mut Ctx<'_>, _: [u64; 5]) -> Return {
    if !ctx.host.allowed(kf::DISPATCH) {
        return Ok(0);
    }
    Ok(u64::from(ctx.host.ops.batch) - ctx.host.buffer.len() as u64)
}

fn cancel(ctx: &mut Ctx<'_>, _: [u64; 5]) -> Return {
    if ctx.host.allowed(kf::DISPATCH) && ctx.host.buffer.pop().is_none() {
        ctx.host.error("dispatch buffer underflow");
    }
    Ok(0)
}

fn move_to_local(ctx: &mut Ctx<'_>, [id, ..]: [u64; 5]) -> Return {
    if !ctx.host.allowed(kf::DISPATCH) {
        return Ok(0);
    }
    let machine = &mut *ctx.host;
    let cpu = machine.exec;
    machine.flush_buffer(cpu);
    let Some(dsq) = machine.dsqs.user(id) else {
        machine.error(format!("invalid DSQ ID 0x{id:016x}"));
        return Ok(0);
    };
    let moved = machine.consume(cpu, dsq);
    machine.moved += u32::from(moved);
    changed(ctx);
    Ok(u64::from(moved))
}

fn reenqueue_local(ctx: &mut Ctx<'_>, _: [u64; 5]) -> Return {
    if !ctx.host.allowed(kf::CPU_RELEASE) {
        return Ok(0);
    }
    let count = ctx.host.reenqueue_local(ctx.vm);
    changed(ctx);
    Ok(s32(i64::from(count)))
}

impl Machine {
    /// Offers every task of this CPU's local queue to the policy again.
    ///
    /// Source: `reenq_local()`, kernel 6.18. All are collected first, so that one which comes back
    /// is not taken twice. Tasks that wait to be moved to a CPU where they may run are left.
    fn reenqueue_local(&mut self, vm: &mut Vm) -> u32 {
        let cpu = self.exec;
        let local = self.dsqs.local(cpu);
        let moving: Vec<_> = self.cpus[cpu].to_move.iter().map(|&(id, _)| id).collect();
        let tasks: Vec<_> = self
            .dsqs
            .tasks(local)
            .filter(|id| !moving.contains(id))
            .collect();
        tasks.iter().for_each(|&id| self.leave_dsq(id));
        for &id in &tasks {
            debug_assert_eq!(self.task(id).class, Class::Ext);
            self.do_enqueue(vm, id, enq::REENQ, false);
        }
        tasks.len() as u32
    }
}

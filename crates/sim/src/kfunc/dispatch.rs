//! What only `ops.dispatch` and `ops.cpu_release` may do.

use bpf::Stop;
use model::CpuId;

use super::{Ctx, Line, Return, TASK_BYTES, changed, note_place, s32};
use crate::cpu::Todo;
use crate::flags::{dsq, enq, kf};
use crate::machine::{Machine, Vm};
use crate::task::Class;

pub(super) const TABLE: &[Line] = &lines![
    ("scx_bpf_dispatch_nr_slots", "u32()", nr_slots),
    ("scx_bpf_dispatch_cancel", "void()", cancel),
    // Until 6.16 under the first name.
    ("scx_bpf_consume", "bool(u64)", move_to_local),
    ("scx_bpf_dsq_move_to_local", "bool(u64)", move_to_local),
    (
        "scx_bpf_dsq_move_to_local___v2",
        "bool(u64,u64)",
        move_to_local_with,
    ),
    ("scx_bpf_reenqueue_local", "u32()", reenqueue_local),
    ("scx_bpf_reenqueue_local___v2", "void()", reenqueue_soon),
    ("scx_bpf_dsq_reenq", "void(u64,u64)", dsq_reenq),
];

fn nr_slots(ctx: &mut Ctx<'_>, _: [u64; 5]) -> Return {
    if !ctx.host.allowed(kf::DISPATCH) {
        return Ok(0);
    }
    Ok(u64::from(ctx.host.scheds[ctx.host.caller()].ops.batch())
        - ctx.host.turn.buffer.len() as u64)
}

fn cancel(ctx: &mut Ctx<'_>, _: [u64; 5]) -> Return {
    if ctx.host.allowed(kf::DISPATCH) && !ctx.host.turn.buffer.cancel() {
        ctx.host.error("dispatch buffer underflow");
    }
    Ok(0)
}

#[inline(always)]
fn move_to_local(ctx: &mut Ctx<'_>, [id, ..]: [u64; 5]) -> Return {
    move_first(ctx, id, 0)
}

/// From 7.1 on the flags of the insert into the local queue can be given.
fn move_to_local_with(ctx: &mut Ctx<'_>, [id, flags, ..]: [u64; 5]) -> Return {
    let flags = ctx.host.enq_in(flags);
    move_first(ctx, id, flags)
}

#[inline(always)]
fn move_first(ctx: &mut Ctx<'_>, id: u64, flags: u64) -> Return {
    note_place(ctx);
    if !ctx.host.allowed(kf::DISPATCH) {
        return Ok(0);
    }
    let machine = &mut *ctx.host;
    let cpu = machine.turn.exec;
    machine.flush_buffer(cpu);
    machine.turn.decisions.come_back(ctx.vm.current_place());
    let Some(dsq) = machine.dsqs.user(machine.caller(), id) else {
        machine.error(format!("invalid DSQ ID 0x{id:016x}"));
        return Ok(0);
    };
    let (moved, passed) = machine.consume(cpu, dsq, flags);
    if passed > 0 {
        ctx.vm.spend(TASK_BYTES * passed);
    }
    ctx.host.turn.buffer.count_moved(u32::from(moved));
    ctx.host.tell_released(ctx.vm);
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

/// From 6.19 on, anywhere: the tasks of this CPU's local queue are offered again a little later.
fn reenqueue_soon(ctx: &mut Ctx<'_>, _: [u64; 5]) -> Return {
    let cpu = ctx.host.turn.exec;
    ctx.host.reenqueue_later(cpu);
    Ok(0)
}

/// From 7.1 on, for any queue; only local ones are modelled.
fn dsq_reenq(ctx: &mut Ctx<'_>, [id, ..]: [u64; 5]) -> Return {
    let machine = &mut *ctx.host;
    let target = (id & dsq::CPU_MASK) as u32;
    match id {
        dsq::LOCAL => machine.reenqueue_later(machine.turn.exec),
        on if on & dsq::LOCAL_ON == dsq::LOCAL_ON && machine.has_cpu(i64::from(target)) => {
            machine.reenqueue_later(CpuId(target as u16));
        }
        other => {
            let what = "scx_bpf_dsq_reenq() is modelled for local queues only";
            return Err(Stop::Refused(format!("{what}, not for 0x{other:x}")));
        }
    }
    Ok(0)
}

impl Machine {
    /// Offers the tasks of the local queue of `cpu` again when its interrupt comes.
    fn reenqueue_later(&mut self, cpu: CpuId) {
        self.deferred.reenqueue(cpu);
        if !self.cpus[cpu].balances {
            self.cpus[cpu].todo.add(Todo::DEFERRED);
            self.poke(cpu);
        }
    }

    /// Carries out what [`Machine::reenqueue_later`] asked for.
    pub(crate) fn reenqueue_deferred(&mut self, vm: &mut Vm, cpu: CpuId) {
        if self.deferred.take_reenqueue(cpu) {
            self.reenqueue_local(vm);
        }
    }

    /// Offers every task of this CPU's local queue to the policy again.
    ///
    /// Source: `reenq_local()`, kernel 6.18. All are collected first, so that one which comes back
    /// is not taken twice. Tasks that wait to be moved to a CPU where they may run are left.
    fn reenqueue_local(&mut self, vm: &mut Vm) -> u32 {
        let cpu = self.turn.exec;
        let local = self.dsqs.local(cpu);
        let moving: Vec<_> = self.cpus[cpu]
            .others()
            .to_move
            .iter()
            .map(|&(id, _)| id)
            .collect();
        let tasks: Vec<_> = self
            .dsqs
            .tasks(local)
            .filter(|id| !moving.contains(id))
            .collect();
        for &id in &tasks {
            self.leave_dsq(id);
            self.tell_removed(id, false);
        }
        for &id in &tasks {
            debug_assert_eq!(self.task(id).class, Class::Ext);
            self.do_enqueue(vm, id, enq::REENQ, false);
        }
        tasks.len() as u32
    }
}

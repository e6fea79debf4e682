//! What only `ops.dispatch` and `ops.cpu_release` may do.

use model::{CpuId, TaskId};

use super::{Ctx, Line, Return, TASK_BYTES, changed, note_place, s32};
use crate::cpu::Todo;
use crate::deferred::Reoffer;
use crate::dsq::DsqIndex;
use crate::flags::{dsq, kf};
use crate::machine::{Machine, Vm};
use crate::schedulers::SchedId;
use crate::task::{Class, Reenqueued};

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
    let flags = match ctx.host.rules.enq_immed {
        0 => 0,
        _ => match ctx.host.vet_immed(0, dsq::LOCAL) {
            Some(flags) => flags,
            None => return Ok(0),
        },
    };
    move_first(ctx, id, flags)
}

/// From 7.1 on the flags of the insert into the local queue can be given.
fn move_to_local_with(ctx: &mut Ctx<'_>, [id, flags, ..]: [u64; 5]) -> Return {
    let flags = ctx.host.enq_in(flags, dsq::LOCAL);
    flags.map_or(Ok(0), |flags| move_first(ctx, id, flags))
}

#[inline(always)]
fn move_first(ctx: &mut Ctx<'_>, id: u64, flags: u64) -> Return {
    note_place(ctx);
    if !ctx.host.allowed(kf::DISPATCH) {
        return Ok(0);
    }
    let machine = &mut *ctx.host;
    let cpu = machine.turn.exec;
    machine.flush_buffer(ctx.vm, cpu);
    machine.turn.decisions.come_back(ctx.vm.current_place());
    let Some(dsq) = machine.dsqs.user(machine.caller(), id) else {
        machine.error(format!("invalid DSQ ID 0x{id:016x}"));
        return Ok(0);
    };
    let (moved, passed) = machine.consume(ctx.vm, cpu, dsq, flags);
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
    let count = ctx.host.reenqueue_local(ctx.vm, Reoffer::All);
    changed(ctx);
    Ok(s32(i64::from(count)))
}

/// From 6.19 on, anywhere: the tasks of this CPU's local queue are offered again a little later.
fn reenqueue_soon(ctx: &mut Ctx<'_>, _: [u64; 5]) -> Return {
    let cpu = ctx.host.turn.exec;
    ctx.host.reoffer_later(cpu, Reoffer::All);
    Ok(0)
}

/// From 7.1 on, for any queue but the global ones. A queue of the policy's is gone through by the
/// CPU that executes this.
///
/// Source: `scx_bpf_dsq_reenq()` and `schedule_dsq_reenq()`, kernel 7.3.
fn dsq_reenq(ctx: &mut Ctx<'_>, [id, flags, ..]: [u64; 5]) -> Return {
    let machine = &mut *ctx.host;
    if flags & !REENQ_ANY != 0 {
        machine.error(format!("invalid SCX_REENQ flags 0x{flags:x}"));
        return Ok(0);
    }
    let (caller, cpu) = (machine.caller(), machine.turn.exec);
    if machine.bypassing != 0 && machine.is_bypassed_by(caller) {
        return Ok(0);
    }
    match id {
        dsq::LOCAL => machine.reoffer_for(caller, cpu),
        on if on & dsq::LOCAL_ON == dsq::LOCAL_ON => {
            let number = (on & dsq::CPU_MASK) as u32 as i32;
            match machine.cpu_meant(number.into()) {
                Some(cpu) => machine.reoffer_for(caller, cpu),
                None => machine.error(format!(
                    "invalid CPU {number} in SCX_DSQ_LOCAL_ON dispatch verdict"
                )),
            }
        }
        builtin if builtin & dsq::BUILTIN != 0 => {
            machine.error(format!("DSQ 0x{builtin:x} not allowed for reenq"));
        }
        user => match machine.dsqs.user(caller, user) {
            Some(queue) => machine.reoffer_queue_later(cpu, queue),
            None => machine.error(format!("non-existent DSQ 0x{user:x}")),
        },
    }
    Ok(0)
}

/// `SCX_REENQ_ANY`: all tasks, as without flags.
const REENQ_ANY: u64 = 1;

impl Machine {
    /// Offers tasks of the local queue of `cpu` again when its interrupt comes.
    pub(crate) fn reoffer_later(&mut self, cpu: CpuId, which: Reoffer) {
        self.deferred.reoffer(cpu, which);
        self.do_deferred_soon(cpu);
    }

    /// The same, as the scheduler `who` asks for it.
    fn reoffer_for(&mut self, who: SchedId, cpu: CpuId) {
        if who == SchedId::ROOT {
            self.reoffer_later(cpu, Reoffer::All);
        } else {
            self.reoffer_own(who, cpu);
        }
    }

    /// The same with all tasks of a queue of the policy's.
    pub(crate) fn reoffer_queue_later(&mut self, cpu: CpuId, queue: DsqIndex) {
        self.deferred.reoffer_queue(cpu, queue);
        self.do_deferred_soon(cpu);
    }

    fn do_deferred_soon(&mut self, cpu: CpuId) {
        if !self.cpus[cpu].balances {
            self.cpus[cpu].todo.add(Todo::DEFERRED);
            self.poke(cpu);
        }
    }

    /// Carries out what [`Machine::reoffer_later`] asked for, and what is asked for meanwhile.
    pub(crate) fn reenqueue_deferred(&mut self, vm: &mut Vm, cpu: CpuId) {
        self.reenqueue_locals(vm, cpu);
        while let Some(queue) = self.deferred.take_queue(cpu) {
            self.reenqueue_queue(vm, queue);
            // A policy that asks again whenever a task is offered does not go on for ever here.
            self.check_moment(vm, cpu);
            if self.is_halted() {
                return;
            }
        }
    }

    /// Offers all tasks of a queue to the policy again. One that comes back is not taken twice.
    ///
    /// Source: `reenq_user()`, kernel 7.3.
    fn reenqueue_queue(&mut self, vm: &mut Vm, queue: DsqIndex) {
        let tasks: Vec<TaskId> = self.dsqs.tasks(queue).collect();
        for id in tasks {
            // What was offered before may have changed the queue, or ended the policy.
            let waits = self.task(id).dsq == Some(queue);
            if !waits || self.bypasses(id) && !self.subs.is_reject(queue) {
                continue;
            }
            let why = match self.task(id).reenqueued {
                Reenqueued::No => Reenqueued::Kfunc,
                rejected => rejected,
            };
            self.leave_dsq(id);
            self.tell_removed(id, false);
            self.enqueue_again(vm, id, why);
        }
    }

    fn reenqueue_locals(&mut self, vm: &mut Vm, cpu: CpuId) {
        let mut repeats = 0;
        loop {
            let which = self.deferred.take_reoffer(cpu);
            let is_done =
                which == Reoffer::Nothing || repeats > 0 && self.is_repeated_too_often(repeats);
            if is_done {
                return;
            }
            self.reenqueue_local(vm, which);
            repeats += 1;
            // Kernels before 7.1 have no limit, and go round by their next interrupt.
            if self.rules.enq_immed == 0 {
                return;
            }
        }
    }

    /// Offers tasks of this CPU's local queue to the policy again. How many.
    ///
    /// Source: `reenq_local()`, kernels 6.18 and 7.2. All are collected first, so that one which
    /// comes back is not taken twice. Tasks that wait to be moved to a CPU where they may run are
    /// left.
    fn reenqueue_local(&mut self, vm: &mut Vm, which: Reoffer) -> u32 {
        let cpu = self.turn.exec;
        let local = self.dsqs.local(cpu);
        let is_open = self.is_open(cpu, 0);
        let moving = &self.cpus[cpu].others().to_move;
        let queued = self.dsqs.tasks(local).enumerate();
        let tasks: Vec<_> = queued
            .filter(|(_, id)| !moving.iter().any(|(other, _)| other == id))
            .filter_map(|(at, id)| {
                let cannot = self.task(id).immed && !(at == 0 && is_open);
                let asked = (which == Reoffer::All).then_some(Reenqueued::Kfunc);
                let why = cannot.then_some(Reenqueued::Immed).or(asked);
                why.map(|why| (id, why))
            })
            .collect();
        for &(id, _) in &tasks {
            self.leave_dsq(id);
            self.tell_removed(id, false);
        }
        for &(id, why) in &tasks {
            debug_assert_eq!(self.task(id).class, Class::Ext);
            self.enqueue_again(vm, id, why);
        }
        tasks.len() as u32
    }
}

//! The kernel's functions that policies call, one Rust function each, found by name and prototype.
//!
//! Source of names, prototypes and rules: kernel 6.18. What knows no scheduling (maps, timers,
//! printing) is built into the object machine.

/// Lines of a table, each of name, prototype and body.
macro_rules! lines {
    ($(($name:literal, $prototype:literal, $body:path $(,)?)),+ $(,)?) => {
        [$(($name, $prototype, $body, bpf::Direct::of($body))),+]
    };
}

mod cgroup;
mod cid;
mod cpu;
mod cpumask;
mod dispatch;
mod exit;
mod idle;
mod iter;
mod queue;
mod sub;
mod task;

use bpf::{Body, CallCtx, Direct, HostFunction, Stop};
use model::{CpuId, TaskId};

use crate::machine::Machine;

/// What a function gets.
type Ctx<'a> = CallCtx<'a, Machine>;

/// What a function returns.
type Return = Result<u64, Stop>;

/// A line of a table: name, prototype (empty for helpers), body, twice.
type Line = (&'static str, &'static str, Body<Machine>, Direct<Machine>);

/// Functions that a policy in cid form may not call: they take or give numbers of CPUs, or are
/// about idle CPUs, which such a policy keeps itself.
///
/// Source: `scx_kfunc_ids_cpu_only` in kernel/sched/ext/ext.c, kernel 7.3.
pub(crate) const CPU_ONLY: &[&str] = &[
    "scx_bpf_kick_cpu",
    "scx_bpf_task_cpu",
    "scx_bpf_cpu_curr",
    "scx_bpf_cpu_node",
    "scx_bpf_cpuperf_cap",
    "scx_bpf_cpuperf_cur",
    "scx_bpf_cpuperf_set",
    "scx_bpf_get_possible_cpumask",
    "scx_bpf_get_online_cpumask",
    "scx_bpf_put_cpumask",
    "scx_bpf_select_cpu_dfl",
    "scx_bpf_select_cpu_and",
    "__scx_bpf_select_cpu_and",
    "scx_bpf_get_idle_cpumask",
    "scx_bpf_get_idle_cpumask_node",
    "scx_bpf_get_idle_smtmask",
    "scx_bpf_get_idle_smtmask_node",
    "scx_bpf_put_idle_cpumask",
    "scx_bpf_test_and_clear_cpu_idle",
    "scx_bpf_pick_idle_cpu",
    "scx_bpf_pick_idle_cpu_node",
    "scx_bpf_pick_any_cpu",
    "scx_bpf_pick_any_cpu_node",
];

/// What passing over a task in a queue is worth, in bytes handled ([`bpf::Instance::spend`]): ten
/// instructions, as no cache has the tasks.
const TASK_BYTES: u64 = 80;

/// Every function that the machine offers.
pub(crate) fn table() -> Vec<HostFunction<Machine>> {
    let modelled = [
        queue::TABLE,
        dispatch::TABLE,
        iter::TABLE,
        cpu::TABLE,
        cid::TABLE,
        sub::TABLE,
        idle::TABLE,
        cpumask::TABLE,
        task::TABLE,
        cgroup::TABLE,
        exit::TABLE,
    ];
    modelled
        .concat()
        .into_iter()
        .map(|(name, prototype, body, direct)| HostFunction {
            name,
            prototype,
            cost_ps: 0,
            body: Some(body),
            direct: Some(direct),
        })
        .collect()
}

/// Notes where the program is, if anybody listens to decisions.
#[inline]
fn note_place(ctx: &mut Ctx<'_>) {
    ctx.host.turn.decisions.set_place(ctx.vm.current_place());
}

/// The task whose `task_struct` begins at `address`. A kernel's verifier lets nothing else pass.
#[inline]
fn task(ctx: &mut Ctx<'_>, address: u64) -> Result<TaskId, Stop> {
    let found = ctx.host.task_in_hand(ctx.vm.memory(), address);
    found.ok_or_else(|| no_task(address))
}

#[cold]
fn no_task(address: u64) -> Stop {
    Stop::Refused(format!("{address:#x} is no task"))
}

/// The CPU with this number; one that does not exist ends the policy's time.
///
/// Source: `ops_cpu_valid()`, kernel 6.18.
fn cpu_or_error(ctx: &mut Ctx<'_>, number: u64) -> Option<CpuId> {
    let number = i64::from(number as i32);
    if !ctx.host.has_cpu(number) {
        ctx.host.error(format!("invalid CPU {number}"));
        return None;
    }
    Some(CpuId(number as u16))
}

/// A kernel's `s32` in a register: zero-extended, as x86 returns it.
fn s32(value: i64) -> u64 {
    u64::from(value as u32)
}

/// Brings mirrors up to date after a change that the program may look at next.
fn changed(ctx: &mut Ctx<'_>) {
    ctx.host.flush_mirrors(ctx.vm);
}

//! Tasks: finding one, and holding on to it.

use std::cmp::Ordering;

use bpf::Memory;
use model::{CpuId, TaskId};

use super::{Ctx, Line, Return, changed, note_place, task};
use crate::machine::{Machine, Vm};
use crate::program::Program;
use crate::task::{Phase, RunState};

pub(super) const TABLE: &[Line] = &lines![
    ("bpf_task_acquire", "ptr(ptr)", acquire),
    ("bpf_task_release", "void(ptr)", release),
    ("bpf_task_from_pid", "ptr(s32)", from_pid),
    ("bpf_task_from_vpid", "ptr(s32)", from_pid),
    ("scx_bpf_task_set_slice", "bool(ptr,u64)", set_slice),
    ("scx_bpf_task_set_dsq_vtime", "bool(ptr,u64)", set_vtime),
];

fn acquire(ctx: &mut Ctx<'_>, [p, ..]: [u64; 5]) -> Return {
    let id = task(ctx, p)?;
    ctx.host.task_mut(id).references += 1;
    Ok(p)
}

fn release(ctx: &mut Ctx<'_>, [p, ..]: [u64; 5]) -> Return {
    let id = task(ctx, p)?;
    note_place(ctx);
    ctx.host.tell_let_go(id);
    ctx.host.release_task(ctx.vm.memory(), id);
    Ok(0)
}

/// From 6.19 on, in place of a write to the field.
fn set_slice(ctx: &mut Ctx<'_>, [p, slice, ..]: [u64; 5]) -> Return {
    note_place(ctx);
    let id = task(ctx, p)?;
    if ctx.host.has_subs && !ctx.host.may_set_slice(id, slice) {
        return Ok(u64::from(ctx.host.is_callers(id)));
    }
    ctx.host.set_slice(id, slice);
    ctx.host.tell_slice(id, model::Sliced::Set);
    changed(ctx);
    Ok(1)
}

/// From 6.19 on, in place of a write to the field.
fn set_vtime(ctx: &mut Ctx<'_>, [p, vtime, ..]: [u64; 5]) -> Return {
    let id = task(ctx, p)?;
    if ctx.host.has_subs && !ctx.host.is_callers(id) {
        return Ok(0);
    }
    ctx.host.set_vtime(id, vtime);
    changed(ctx);
    Ok(1)
}

/// An exited task is found until it has been reaped.
fn from_pid(ctx: &mut Ctx<'_>, [pid, ..]: [u64; 5]) -> Return {
    let Some(id) = ctx.host.task_of_pid(pid as u32) else {
        return Ok(0);
    };
    let task = ctx.host.task_mut(id);
    task.references += 1;
    Ok(task.address)
}

impl Machine {
    /// The task with this pid, unless it has been reaped.
    fn task_of_pid(&self, pid: u32) -> Option<TaskId> {
        let id = match &*self.program {
            Some(program) => self.task_beside(program, pid)?,
            // Pids are given out in order.
            None => {
                let tasks = &self.tasks;
                let at = tasks.binary_search_by_key(&pid, |task| task.pid).ok()?;
                TaskId(at as u32)
            }
        };
        let task = self.task(id);
        (task.address != 0 && task.phase != Phase::Over).then_some(id)
    }

    /// The same where threads of a program, whose pids are greater, stand among the tasks.
    fn task_beside(&self, program: &Program, pid: u32) -> Option<TaskId> {
        if Program::has_pid(pid) {
            return program.task_of_pid(pid);
        }
        let (mut low, mut high) = (0, self.tasks.len());
        while low < high {
            let middle = low.midpoint(high);
            // The last one up to there that is none of the program's.
            let mut upto = self.tasks[low..=middle].iter();
            let Some(at) = upto.rposition(|task| !Program::has_pid(task.pid)) else {
                low = middle + 1;
                continue;
            };
            match self.tasks[low + at].pid.cmp(&pid) {
                Ordering::Equal => return Some(TaskId((low + at) as u32)),
                Ordering::Less => low = middle + 1,
                Ordering::Greater => high = low + at,
            }
        }
        None
    }

    /// Drops a program's reference to a task; the last one to a dead task frees its mirror.
    pub(crate) fn release_task(&mut self, memory: &mut Memory, id: TaskId) {
        let task = self.task_mut(id);
        task.references = task.references.saturating_sub(1);
        if task.references == 0 && task.state == RunState::Dead && task.reaped {
            self.mirror_free_in(memory, id);
        }
    }

    /// Drops a program's reference to a mask. False if `address` is none.
    pub(crate) fn release_mask(&mut self, memory: &mut Memory, address: u64) -> bool {
        let Some(count) = self.mirror.masks.get_mut(&address) else {
            return false;
        };
        *count -= 1;
        if *count == 0 {
            self.mirror.masks.remove(&address);
            memory.free_object(address, crate::mirror::MASK_BYTES + 8);
        }
        true
    }

    /// The CPU whose idle task's mirror begins at `address`.
    pub(crate) fn idle_task_at(&self, address: u64) -> Option<CpuId> {
        let idle_tasks = &self.mirror.idle_tasks;
        // They were allocated one after the other, and nothing else between them.
        let last = CpuId(self.spec.cpus - 1);
        if !(idle_tasks[CpuId(0)]..=idle_tasks[last]).contains(&address) {
            return None;
        }
        let at = idle_tasks.iter().position(|&idle| idle == address)?;
        Some(CpuId(at as u16))
    }

    /// Gives the mirror's memory back.
    pub(crate) fn mirror_free(&mut self, vm: &mut Vm, id: TaskId) {
        self.mirror_free_in(vm.memory(), id);
    }
}

//! Dispatch queues: creating, asking, inserting.

use model::TaskId;

use super::{Ctx, Line, Return, changed, note_place, s32, task};
use crate::buffer::Buffered;
use crate::context::Directly;
use crate::counters::Counter;
use crate::dsq::{DsqIndex, Dsqs};
use crate::flags::{self, enq, errno, kf};
use crate::machine::Machine;
use crate::task::{Carried, Direct, OpsState};

pub(super) const TABLE: &[Line] = &lines![
    ("scx_bpf_create_dsq", "s32(u64,s32)", create),
    ("scx_bpf_destroy_dsq", "void(u64)", destroy),
    ("scx_bpf_dsq_nr_queued", "s32(u64)", nr_queued),
    ("scx_bpf_dsq_peek", "ptr(u64)", peek),
    // Until 6.16 under the first name.
    ("scx_bpf_dispatch", "void(ptr,u64,u64,u64)", insert),
    ("scx_bpf_dsq_insert", "void(ptr,u64,u64,u64)", insert),
    (
        "scx_bpf_dsq_insert___v2",
        "bool(ptr,u64,u64,u64)",
        insert_told,
    ),
    (
        "scx_bpf_dispatch_vtime",
        "void(ptr,u64,u64,u64,u64)",
        insert_vtime,
    ),
    (
        "scx_bpf_dsq_insert_vtime",
        "void(ptr,u64,u64,u64,u64)",
        insert_vtime,
    ),
    (
        "__scx_bpf_dsq_insert_vtime",
        "bool(ptr,ptr)",
        insert_vtime_of,
    ),
];

/// Queues that a policy may create; a kernel stops when its memory is used up.
const MOST_QUEUES: usize = 1 << 20;

fn create(ctx: &mut Ctx<'_>, [id, node, ..]: [u64; 5]) -> Return {
    note_place(ctx);
    let node = node as i32;
    let nodes = i32::from(ctx.host.idle.topology().nodes());
    if id & flags::dsq::BUILTIN != 0 || node < -1 || node >= nodes {
        return Ok(s32(errno::EINVAL));
    }
    // No policy is being attached: a set-up program asks.
    let caller = ctx.host.caller();
    if !ctx.host.scheds[caller].attachment.is_enabling() {
        return Ok(s32(errno::ENODEV));
    }
    if ctx.host.dsqs.count() >= MOST_QUEUES {
        return Ok(s32(errno::ENOMEM));
    }
    if ctx.host.dsqs.user(caller, id).is_some() {
        return Ok(s32(errno::EEXIST));
    }
    if ctx.vm.memory().hold(Dsqs::BYTES).is_err() {
        ctx.vm.memory().within_limit()?;
        return Ok(s32(errno::ENOMEM));
    }
    let created = ctx.host.dsqs.create(caller, id);
    if let Some(dsq) = created {
        ctx.host.tell_queue(dsq, true);
    }
    Ok(s32(created.map_or(errno::EEXIST, |_| 0)))
}

fn destroy(ctx: &mut Ctx<'_>, [id, ..]: [u64; 5]) -> Return {
    note_place(ctx);
    let machine = &mut *ctx.host;
    let caller = machine.caller();
    if let Some(dsq) = machine.dsqs.user(caller, id) {
        let len = machine.dsqs.len(dsq);
        if len == 0 {
            machine.tell_queue(dsq, false);
            machine.deferred.forget_queue(dsq);
            machine.dsqs.destroy(caller, dsq);
        } else {
            machine.error(format!(
                "attempting to destroy in-use dsq 0x{id:016x} (nr={len})"
            ));
        }
    }
    Ok(0)
}

#[inline(always)]
fn nr_queued(ctx: &mut Ctx<'_>, [id, ..]: [u64; 5]) -> Return {
    let machine = &mut *ctx.host;
    // A policy may ask for each CPU's queue, one after another.
    let dsq = if id & flags::dsq::BUILTIN == 0 {
        machine.dsqs.user(machine.caller(), id)
    } else {
        machine.local_meant(id)
    };
    Ok(s32(dsq.map_or(errno::ENOENT, |dsq| {
        i64::from(machine.dsqs.len(dsq))
    })))
}

#[inline(always)]
fn insert(ctx: &mut Ctx<'_>, words: [u64; 5]) -> Return {
    insert_told(ctx, words).map(|_| 0)
}

/// From 6.19 on: says whether the insert was taken.
#[inline(always)]
fn insert_told(ctx: &mut Ctx<'_>, [p, dsq_id, slice, flags, _]: [u64; 5]) -> Return {
    let insert = Insert {
        dsq_id,
        slice,
        vtime: None,
        flags,
    };
    insert_with(ctx, p, &insert)
}

#[inline(always)]
fn insert_vtime(ctx: &mut Ctx<'_>, words: [u64; 5]) -> Return {
    insert_vtime_told(ctx, words).map(|_| 0)
}

/// From 6.19 on: all but the task in `struct scx_bpf_dsq_insert_vtime_args`, four words.
fn insert_vtime_of(ctx: &mut Ctx<'_>, [p, args, ..]: [u64; 5]) -> Return {
    let word = |ctx: &mut Ctx<'_>, at: u64| ctx.vm.memory().load_u64(args.wrapping_add(8 * at));
    let [dsq_id, slice, vtime, flags] = [0, 1, 2, 3].map(|at| word(ctx, at));
    insert_vtime_told(ctx, [p, dsq_id, slice, vtime, flags])
}

#[inline(always)]
fn insert_vtime_told(ctx: &mut Ctx<'_>, [p, dsq_id, slice, vtime, flags]: [u64; 5]) -> Return {
    let insert = Insert {
        dsq_id,
        slice,
        vtime: Some(vtime),
        flags,
    };
    insert_with(ctx, p, &insert)
}

/// From 6.19 on: the first task of a queue of the policy's.
fn peek(ctx: &mut Ctx<'_>, [id, ..]: [u64; 5]) -> Return {
    let machine = &mut *ctx.host;
    if id & flags::dsq::BUILTIN != 0 {
        machine.error(format!("peek disallowed on builtin DSQ 0x{id:x}"));
        return Ok(0);
    }
    let Some(dsq) = machine.dsqs.user(machine.caller(), id) else {
        machine.error(format!("peek on non-existent DSQ 0x{id:x}"));
        return Ok(0);
    };
    let first = machine.dsqs.first(dsq);
    Ok(first.map_or(0, |id| machine.task(id).address))
}

/// What a program says of an insert.
struct Insert {
    dsq_id: u64,
    /// 0: the slice that the task has.
    slice: u64,
    /// `None`: in the order of arrival.
    vtime: Option<u64>,
    flags: u64,
}

/// 1 if the insert was taken, which only functions from 6.19 on tell.
///
/// Source: `scx_dsq_insert_preamble()` and `scx_dsq_insert_commit()`, kernel 6.18. Slice and vtime
/// are written at once, even for an entry that is ignored later; since 7.3 with the insert.
// Built in, so that the words stay in registers.
#[inline(always)]
fn insert_with(ctx: &mut Ctx<'_>, p: u64, insert: &Insert) -> Return {
    let Insert {
        dsq_id,
        slice,
        vtime,
        flags,
    } = *insert;
    note_place(ctx);
    if !ctx.host.allowed(kf::ENQUEUE | kf::DISPATCH) {
        return Ok(0);
    }
    let Some(id) = ctx.host.task_in_hand(ctx.vm.memory(), p) else {
        return insert_no_task(ctx, p);
    };
    let machine = &mut *ctx.host;
    if flags & enq::INTERNAL != 0 {
        machine.error(format!("invalid enq_flags 0x{flags:x}"));
        return Ok(0);
    }
    let Some(flags) = machine.enq_in(flags, dsq_id) else {
        return Ok(0);
    };
    if machine.has_subs && !machine.is_callers(id) {
        let caller = machine.caller();
        machine.scheds[caller]
            .counters
            .count(Counter::InsertNotOwned);
        return Ok(0);
    }
    let flags = flags | vtime.map_or(0, |_| enq::DSQ_PRIQ);
    let carried = Carried {
        slice,
        vtime: vtime.unwrap_or(0),
    };
    if !machine.rules.inserts_slice {
        machine.write_carried_now(ctx.vm.memory(), id, carried, flags);
    }
    machine.commit_insert(id, dsq_id, flags, carried);
    changed(ctx);
    Ok(1)
}

/// An insert of what is none of the workload's tasks.
#[cold]
#[inline(never)]
fn insert_no_task(ctx: &mut Ctx<'_>, p: u64) -> Return {
    if p == 0 {
        ctx.host.error("called with NULL task");
        return Ok(0);
    }
    if let Some(cpu) = ctx.host.idle_task_at(p) {
        ctx.host.insert_idle_task(cpu);
        return Ok(0);
    }
    task(ctx, p).map(|_| 0)
}

impl Machine {
    /// The local queue that a built-in number stands for; `None` of one that has no length.
    #[inline(never)]
    fn local_meant(&mut self, id: u64) -> Option<DsqIndex> {
        if id == flags::dsq::LOCAL {
            return Some(self.dsqs.local(self.turn.exec));
        }
        if id & flags::dsq::LOCAL_ON != flags::dsq::LOCAL_ON {
            return None;
        }
        let number = (id & flags::dsq::CPU_MASK) as u32;
        let cpu = self.cpu_meant(number.into());
        cpu.map(|cpu| self.dsqs.local(cpu))
    }

    /// The idle task is a task too, but never one that waits for a dispatch.
    fn insert_idle_task(&mut self, cpu: model::CpuId) {
        let context = self.turn.contexts.innermost();
        if context.direct == Directly::Once {
            let expected = self.name(context.subject);
            self.error(format!(
                "scheduling for {expected} but trying to direct-dispatch swapper/{cpu}[0]"
            ));
        }
    }

    /// Notes a verdict: directly in `select_cpu` and `enqueue`, in the buffer in `dispatch`.
    #[inline(always)]
    fn commit_insert(&mut self, id: TaskId, dsq_id: u64, flags: u64, carried: Carried) {
        let context = self.turn.contexts.innermost_mut();
        if context.direct == Directly::Once && context.subject == id {
            context.direct = Directly::Done;
            self.tasks[id.index()].direct = Some(Direct {
                dsq_id,
                flags,
                carried,
                cause: self.turn.decisions.cause(),
            });
        } else {
            self.buffer_insert(id, dsq_id, flags, carried);
        }
    }

    /// Notes a verdict in the buffer, or finds out why it cannot be noted.
    #[inline(never)]
    fn buffer_insert(&mut self, id: TaskId, dsq_id: u64, flags: u64, carried: Carried) {
        let context = self.turn.contexts.innermost();
        match (context.direct, context.subject) {
            (Directly::Once, expected) => {
                let (expected, got) = (self.name(expected), self.name(id));
                self.error(format!(
                    "scheduling for {expected} but trying to direct-dispatch {got}"
                ));
            }
            (Directly::Done, _) => {
                let name = self.name(id);
                self.error(format!("{name} already direct-dispatched"));
            }
            _ => {
                let qseq = match self.task(id).ops_state {
                    OpsState::Queued(qseq) => Some(qseq),
                    // Another CPU is about to hand it over, and who dispatches waits for that.
                    OpsState::Queueing(qseq) if self.interleaves() => Some(qseq),
                    _ => None,
                };
                let entry = Buffered {
                    task: id,
                    qseq,
                    dsq_id,
                    flags,
                    carried,
                    cause: self.turn.decisions.cause(),
                };
                let most = self.scheds[self.caller()].ops.batch();
                if !self.turn.buffer.push(entry, most) {
                    self.error("dispatch buffer overflow");
                }
            }
        }
    }
}

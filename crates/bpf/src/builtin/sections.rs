//! Locks and critical sections. They must be balanced. Only the host keeps programs apart by locks,
//! and only where CPUs come in between ([`Config::interleave`](crate::Config::interleave)).

use super::line::{Line, deliver};
use crate::Errno;
use crate::Instance;
use crate::frame::{FRAME_BYTES, MAX_FRAMES};
use crate::host::{CallCtx, Host};
use crate::nesting::Nesting;
use crate::progress::Progress;
use crate::stop::Stop;

pub(super) fn table<H: Host>() -> [Line<H>; 10] {
    lines![
        ("bpf_spin_lock", "", spin_lock),
        ("bpf_spin_unlock", "", spin_unlock),
        ("bpf_res_spin_lock", "s32(ptr)", resilient_lock),
        ("bpf_res_spin_unlock", "void(ptr)", resilient_unlock),
        ("bpf_rcu_read_lock", "void()", rcu_read_lock),
        ("bpf_rcu_read_unlock", "void()", rcu_read_unlock),
        ("bpf_preempt_disable", "void()", preempt_disable),
        ("bpf_preempt_enable", "void()", preempt_enable),
        ("bpf_local_irq_save", "void(ptr)", irq_save),
        ("bpf_local_irq_restore", "void(ptr)", irq_restore),
    ]
}

/// The depth of one kind of section.
type Depth = fn(&mut Nesting) -> &mut u32;

fn enter<H: Host>(vm: &mut Instance<H>, depth: Depth) {
    let progress = &mut vm.stack.progress;
    *depth(&mut progress.nesting) += 1;
    progress.untidy += Progress::SECTION;
}

/// Leaves one section; an error when there was none.
fn leave<H: Host>(vm: &mut Instance<H>, depth: Depth, what: &str) -> Result<u64, Stop> {
    let progress = &mut vm.stack.progress;
    let depth = depth(&mut progress.nesting);
    let Some(less) = depth.checked_sub(1) else {
        return Err(Stop::Refused(format!(
            "{what} was released and is not held"
        )));
    };
    *depth = less;
    progress.untidy -= Progress::SECTION;
    Ok(0)
}

/// A program may hold one spin lock at a time: two could deadlock.
#[inline(always)]
fn spin_lock<H: Host>(ctx: &mut CallCtx<'_, H>, [lock, ..]: [u64; 5]) -> Result<u64, Stop> {
    if ctx.vm.stack.progress.nesting.spin_locks > 0 {
        return Err(Stop::Refused(
            "a spin lock was taken while one is held".into(),
        ));
    }
    if ctx.vm.config.interleave {
        ctx.host.wait_for_spin_lock(ctx.vm, lock);
    }
    enter(ctx.vm, |held| &mut held.spin_locks);
    begin_holding(ctx.vm);
    Ok(0)
}

#[inline(always)]
fn spin_unlock<H: Host>(ctx: &mut CallCtx<'_, H>, [lock, ..]: [u64; 5]) -> Result<u64, Stop> {
    leave(ctx.vm, |held| &mut held.spin_locks, "a spin lock")?;
    end_holding(ctx, lock);
    released(ctx, lock);
    Ok(0)
}

/// Takes a lock that tells of a deadlock: several may be held, each once. What the lock itself says
/// is whether it is held.
///
/// Source: `bpf_res_spin_lock()` in kernel/bpf/rqspinlock.c, kernel 7.3.
fn resilient_lock<H: Host>(ctx: &mut CallCtx<'_, H>, [lock, ..]: [u64; 5]) -> Result<u64, Stop> {
    let waits = ctx.vm.config.interleave;
    let is_given = !waits || ctx.host.wait_for_resilient_lock(ctx.vm, lock);
    if !is_given || ctx.vm.memory.load_u32(lock) != 0 {
        return Ok(u64::from(Errno::EDEADLK.to_r0() as u32));
    }
    deliver(ctx.vm, lock, &1_u32.to_le_bytes())?;
    if ctx.vm.stack.progress.nesting.resilient_locks == 0 {
        begin_holding(ctx.vm);
    }
    enter(ctx.vm, |held| &mut held.resilient_locks);
    Ok(0)
}

fn resilient_unlock<H: Host>(ctx: &mut CallCtx<'_, H>, [lock, ..]: [u64; 5]) -> Result<u64, Stop> {
    let what = "a resilient spin lock";
    if ctx.vm.memory.load_u32(lock) == 0 {
        return Err(Stop::Refused(format!(
            "{what} was released and is not held"
        )));
    }
    deliver(ctx.vm, lock, &0_u32.to_le_bytes())?;
    leave(ctx.vm, |held| &mut held.resilient_locks, what)?;
    if ctx.vm.stack.progress.nesting.resilient_locks == 0 {
        end_holding(ctx, lock);
    }
    released(ctx, lock);
    Ok(0)
}

/// From now on a lock is held.
fn begin_holding<H: Host>(vm: &mut Instance<H>) {
    vm.stack.locked_at = (vm.retired(), vm.charged());
}

/// The host hears how long `lock` was held.
fn end_holding<H: Host>(ctx: &mut CallCtx<'_, H>, lock: u64) {
    let (retired, charged) = ctx.vm.stack.locked_at;
    let (instructions, more) = (ctx.vm.retired() - retired, ctx.vm.charged() - charged);
    ctx.host.spin_lock_held(lock, instructions, more);
}

/// Whoever waits for `lock` may have it.
fn released<H: Host>(ctx: &mut CallCtx<'_, H>, lock: u64) {
    if ctx.vm.config.interleave {
        ctx.host.spin_lock_released(lock);
    }
}

fn rcu_read_lock<H: Host>(ctx: &mut CallCtx<'_, H>, _: [u64; 5]) -> Result<u64, Stop> {
    enter(ctx.vm, |held| &mut held.rcu);
    Ok(0)
}

fn rcu_read_unlock<H: Host>(ctx: &mut CallCtx<'_, H>, _: [u64; 5]) -> Result<u64, Stop> {
    leave(ctx.vm, |held| &mut held.rcu, "the RCU read lock")
}

fn preempt_disable<H: Host>(ctx: &mut CallCtx<'_, H>, _: [u64; 5]) -> Result<u64, Stop> {
    enter(ctx.vm, |held| &mut held.preemption);
    Ok(0)
}

fn preempt_enable<H: Host>(ctx: &mut CallCtx<'_, H>, _: [u64; 5]) -> Result<u64, Stop> {
    leave(ctx.vm, |held| &mut held.preemption, "disabled preemption")
}

/// The flags are opaque to programs; ours say how deep the section is.
fn irq_save<H: Host>(ctx: &mut CallCtx<'_, H>, args: [u64; 5]) -> Result<u64, Stop> {
    enter(ctx.vm, |held| &mut held.interrupts);
    let flags = u64::from(ctx.vm.stack.progress.nesting.interrupts).to_le_bytes();
    deliver(ctx.vm, args[0], &flags).map(|()| 0)
}

/// Sections end in the reverse order of their beginning, as a verifier demands.
fn irq_restore<H: Host>(ctx: &mut CallCtx<'_, H>, args: [u64; 5]) -> Result<u64, Stop> {
    let depth = ctx.vm.stack.progress.nesting.interrupts;
    if ctx.vm.memory.load_u64(args[0]) != u64::from(depth) {
        return Err(Stop::Refused(
            "interrupts were restored out of order".to_owned(),
        ));
    }
    leave(ctx.vm, |held| &mut held.interrupts, "disabled interrupts")
}

impl<H: Host> Instance<H> {
    /// A host function begins an iterator that takes `bytes` bytes of the program's stack, and for
    /// which the host keeps something. A program must end it ([`Instance::close_iterator`]) before
    /// it ends itself, and can have no more than fit on the stack; a verifier sees to both.
    ///
    /// # Errors
    /// [`Stop::Refused`] if there are more.
    pub fn open_iterator(&mut self, bytes: u64) -> Result<(), Stop> {
        let most = FRAME_BYTES * MAX_FRAMES as u64 / bytes.max(1);
        if u64::from(self.stack.progress.nesting.iterators) >= most {
            let text = format!("more than {most} iterators are open");
            return Err(Stop::Refused(text));
        }
        enter(self, |open| &mut open.iterators);
        Ok(())
    }

    /// The counterpart of [`Instance::open_iterator`].
    ///
    /// # Errors
    /// [`Stop::Refused`] if none is open.
    pub fn close_iterator(&mut self) -> Result<(), Stop> {
        leave(self, |open| &mut open.iterators, "an iterator").map(|_| ())
    }
}

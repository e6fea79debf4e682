//! What a policy asks about schedulers below it, and about its own rights on CPUs.
//!
//! No scheduler runs below another one here, so functions answer as a kernel's do when there is
//! none. Source: kernel/sched/ext/sub.c and cid.c, kernel 7.3.

use bpf::Memory;

use super::{Ctx, Line, Return, s32};
use crate::flags::{errno, kf};

pub(super) const TABLE: &[Line] = &lines![
    ("scx_bpf_sub_dispatch", "bool(u64)", dispatch),
    ("scx_bpf_sub_caps", "s32(u64,u64,ptr)", caps),
    ("scx_bpf_sub_grant", "s32(u64,u64,ptr,ptr)", grant),
    ("scx_bpf_sub_revoke", "void(u64,u64,ptr)", grant),
    ("scx_bpf_sub_kill_bstr", "s32(u64,ptr,ptr,u32)", kill),
];

/// `__SCX_CAP_ALL`.
const ALL_CAPS: u64 = 0xf;

fn dispatch(ctx: &mut Ctx<'_>, _: [u64; 5]) -> Return {
    ctx.host.allowed(kf::DISPATCH);
    Ok(0)
}

/// Checks what all functions about rights check; the error number if something is wrong.
fn refusal(ctx: &mut Ctx<'_>, caps: u64) -> Option<i64> {
    if !ctx.host.is_cid_form() {
        ctx.host
            .error("sub-cap kfuncs require a cid-form scheduler");
        return Some(errno::EOPNOTSUPP);
    }
    if caps & !ALL_CAPS != 0 {
        ctx.host.error(format!("invalid caps 0x{caps:x}"));
        return Some(errno::EINVAL);
    }
    None
}

/// Of 0 the rights of the policy itself: the root has all of them on all CPUs.
fn caps(ctx: &mut Ctx<'_>, [cgroup, caps, out, ..]: [u64; 5]) -> Return {
    if let Some(error) = refusal(ctx, caps) {
        return Ok(s32(error));
    }
    if cgroup != 0 {
        return Ok(s32(errno::ENODEV));
    }
    if ctx.host.cids.online_mask().is_none() {
        let message = "scx_bpf_sub_caps() called before caps storage is initialized";
        ctx.host.error(message);
        return Ok(s32(errno::ENODEV));
    }
    let cpus = u32::from(ctx.host.spec.cpus);
    let memory = ctx.vm.memory();
    let Some(range) = Range::of(memory, out, cpus) else {
        ctx.host.error(format!("invalid out ({})", errno::EINVAL));
        return Ok(s32(errno::EINVAL));
    };
    range.fill(memory, caps != 0);
    Ok(0)
}

fn grant(ctx: &mut Ctx<'_>, [_, caps, ..]: [u64; 5]) -> Return {
    let error = refusal(ctx, caps);
    Ok(s32(error.unwrap_or(errno::ENODEV)))
}

fn kill(ctx: &mut Ctx<'_>, _: [u64; 5]) -> Return {
    let error = refusal(ctx, 0);
    Ok(s32(error.unwrap_or(errno::ENODEV)))
}

/// The cids that a program's mask covers, `struct scx_cmask`.
struct Range {
    /// Guest address of the bits; the first of them stands for `base` rounded down to 64.
    bits: u64,
    base: u32,
    count: u32,
}

impl Range {
    /// What the mask at `pointer` says of itself; `None` if that cannot be.
    ///
    /// Source: `scx_cmask_ref_init()`.
    fn of(memory: &Memory, pointer: u64, cpus: u32) -> Option<Self> {
        let pages = memory.arena()?;
        let at = pages.place(pointer, 0);
        if !pages.holds(at, 16) {
            return None;
        }
        let word = |offset: u64| memory.load_u32(at + offset) as u32;
        let (base, count, words) = (word(0), word(4), word(8));
        let needed = u64::from(count).div_ceil(64) + 1;
        let fits = base < cpus && count <= cpus - base && u64::from(words) >= needed;
        let bits = at + 16;
        (fits && pages.holds(bits, 8 * needed)).then_some(Self { bits, base, count })
    }

    /// Sets or clears the bits of all of them.
    fn fill(&self, memory: &mut Memory, set: bool) {
        for cid in self.base..self.base + self.count {
            let at = self.bits + 8 * u64::from(cid / 64 - self.base / 64);
            let bit = 1 << (cid % 64);
            let old = memory.load_u64(at);
            let new = if set { old | bit } else { old & !bit };
            memory.write(at, &new.to_le_bytes());
        }
    }
}

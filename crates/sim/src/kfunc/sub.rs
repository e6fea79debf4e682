//! What a policy does with schedulers below it, and asks about rights on CPUs.
//!
//! Source: kernel/sched/ext/sub.c and cid.c, kernel 7.3.

use bpf::Memory;
use model::ExitKind;

use super::exit::text;
use super::{Ctx, Line, Return, note_place, s32};
use crate::flags::{errno, kf};
use crate::schedulers::SchedId;
use crate::subs::{ALL_CAPS, CapSet};

pub(super) const TABLE: &[Line] = &lines![
    ("scx_bpf_sub_dispatch", "bool(u64)", dispatch),
    ("scx_bpf_sub_caps", "s32(u64,u64,ptr)", caps),
    ("scx_bpf_sub_grant", "s32(u64,u64,ptr,ptr)", grant),
    ("scx_bpf_sub_revoke", "void(u64,u64,ptr)", revoke),
    ("scx_bpf_sub_kill_bstr", "s32(u64,ptr,ptr,u32)", kill),
];

fn dispatch(ctx: &mut Ctx<'_>, [cgroup, ..]: [u64; 5]) -> Return {
    note_place(ctx);
    if !ctx.host.has_subs || !ctx.host.allowed(kf::DISPATCH) {
        ctx.host.allowed(kf::DISPATCH);
        return Ok(0);
    }
    let found = ctx.host.sub_dispatch(ctx.vm, cgroup);
    ctx.host.turn.decisions.come_back(ctx.vm.current_place());
    super::changed(ctx);
    Ok(u64::from(found))
}

/// The rights that a program names; else the error number.
fn caps_of(ctx: &mut Ctx<'_>, caps: u64) -> Result<CapSet, i64> {
    if !ctx.host.is_cid_form() {
        let message = "sub-cap kfuncs require a cid-form scheduler";
        ctx.host.error(message);
        return Err(errno::EOPNOTSUPP);
    }
    let known = CapSet::try_from(caps).ok();
    known.filter(|caps| caps & !ALL_CAPS == 0).ok_or_else(|| {
        ctx.host.error(format!("invalid caps 0x{caps:x}"));
        errno::EINVAL
    })
}

/// The scheduler at a cgroup, which must be right below the caller; else the error number.
fn child(ctx: &mut Ctx<'_>, cgroup: u64) -> Result<SchedId, i64> {
    let caller = ctx.host.caller();
    let child = ctx.host.sub_at(cgroup).ok_or(errno::ENODEV)?;
    if ctx.host.sub(child).is_some_and(|sub| sub.parent == caller) {
        return Ok(child);
    }
    let name = ctx.host.scheds[caller].ops.name().to_owned();
    let message = format!("{name}: sub-{cgroup} is not a direct child");
    ctx.host.error(message);
    Err(errno::EINVAL)
}

/// The cids that a program's mask covers; else the error number.
fn range(ctx: &mut Ctx<'_>, pointer: u64) -> Result<Range, i64> {
    let cpus = u32::from(ctx.host.spec.cpus);
    Range::of(ctx.vm.memory(), pointer, cpus).ok_or_else(|| {
        let error = errno::EINVAL;
        ctx.host.error(format!("invalid cmask ({error})"));
        error
    })
}

fn answer(result: Result<(), i64>) -> Return {
    Ok(s32(result.err().unwrap_or(0)))
}

/// Where a scheduler has all of `caps`; of 0 it is the caller itself.
fn caps(ctx: &mut Ctx<'_>, [cgroup, caps, out, ..]: [u64; 5]) -> Return {
    answer(tell_caps(ctx, (cgroup, caps), out))
}

fn tell_caps(ctx: &mut Ctx<'_>, (cgroup, caps): (u64, u64), out: u64) -> Result<(), i64> {
    let caps = caps_of(ctx, caps)?;
    let who = match cgroup {
        0 => ctx.host.caller(),
        _ => child(ctx, cgroup)?,
    };
    if ctx.host.online_mask_of(who).is_none() {
        let message = "scx_bpf_sub_caps() called before caps storage is initialized";
        ctx.host.error(message);
        return Err(errno::ENODEV);
    }
    let range = range(ctx, out)?;
    for cid in range.cids() {
        let has_all = caps != 0 && ctx.host.granted(who, cid) & caps == caps;
        range.set(ctx.vm.memory(), cid, has_all);
    }
    Ok(())
}

/// `-EPERM` if some are refused, which the last mask tells if there is one.
fn grant(ctx: &mut Ctx<'_>, [cgroup, caps, cids, denied, _]: [u64; 5]) -> Return {
    answer(give(ctx, (cgroup, caps), (cids, denied)))
}

fn give(
    ctx: &mut Ctx<'_>,
    (cgroup, caps): (u64, u64),
    (cids, denied): (u64, u64),
) -> Result<(), i64> {
    let caps = caps_of(ctx, caps)?;
    let child = child(ctx, cgroup)?;
    let asked = range(ctx, cids)?.chosen(ctx.vm.memory());
    // The address of a mask may be 0, but that of no mask is, too.
    let out = (denied != 0).then(|| range(ctx, denied)).transpose()?;
    let refused = ctx.host.grant(ctx.vm, child, (caps, &asked));
    if let Some(out) = out {
        for cid in out.cids() {
            let is_refused = refused.binary_search(&cid).is_ok();
            out.set(ctx.vm.memory(), cid, is_refused);
        }
    }
    if refused.is_empty() {
        Ok(())
    } else {
        Err(errno::EPERM)
    }
}

fn revoke(ctx: &mut Ctx<'_>, [cgroup, caps, cids, ..]: [u64; 5]) -> Return {
    let _told = take(ctx, (cgroup, caps), cids);
    Ok(0)
}

fn take(ctx: &mut Ctx<'_>, (cgroup, caps): (u64, u64), cids: u64) -> Result<(), i64> {
    let caps = caps_of(ctx, caps)?;
    let child = child(ctx, cgroup)?;
    let cids = range(ctx, cids)?.chosen(ctx.vm.memory());
    ctx.host.revoke(ctx.vm, child, (caps, &cids));
    Ok(())
}

fn kill(ctx: &mut Ctx<'_>, [cgroup, pattern, data, size, _]: [u64; 5]) -> Return {
    note_place(ctx);
    answer(end(ctx, cgroup, (pattern, data, size as u32)))
}

fn end(ctx: &mut Ctx<'_>, cgroup: u64, (pattern, data, size): (u64, u64, u32)) -> Result<(), i64> {
    caps_of(ctx, 0)?;
    let child = child(ctx, cgroup)?;
    if let Some(text) = text(ctx, pattern, data, size) {
        ctx.host.eject(child, ExitKind::ParentKill, 0, text);
    }
    Ok(())
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

    const fn cids(&self) -> std::ops::Range<u32> {
        self.base..self.base + self.count
    }

    /// Where the bit of a cid stands.
    const fn place(&self, cid: u32) -> (u64, u64) {
        let at = self.bits + 8 * (cid / 64 - self.base / 64) as u64;
        (at, 1 << (cid % 64))
    }

    /// Those that are set.
    fn chosen(&self, memory: &Memory) -> Vec<u32> {
        let is_set = |cid: &u32| {
            let (at, bit) = self.place(*cid);
            memory.load_u64(at) & bit != 0
        };
        self.cids().filter(is_set).collect()
    }

    /// Sets or clears one.
    fn set(&self, memory: &mut Memory, cid: u32, set: bool) {
        let (at, bit) = self.place(cid);
        let old = memory.load_u64(at);
        let new = if set { old | bit } else { old & !bit };
        memory.write(at, &new.to_le_bytes());
    }
}

//! Timers in map values.

use super::line::Line;
use crate::Errno;
use crate::errno::status;
use crate::host::{CallCtx, Host};
use crate::stop::Stop;
use crate::timer::TIMER_BYTES;

pub(super) fn table<H: Host>() -> [Line<H>; 4] {
    lines![
        ("bpf_timer_init", "", init),
        ("bpf_timer_set_callback", "", set_callback),
        ("bpf_timer_start", "", start),
        ("bpf_timer_cancel", "", cancel),
    ]
}

fn init<H: Host>(ctx: &mut CallCtx<'_, H>, args: [u64; 5]) -> Result<u64, Stop> {
    let [timer, map, clock, ..] = args;
    let index = ctx.vm.map_index(map)?;
    let vm = &mut *ctx.vm;
    if !vm.maps.by_handle(map)?.holds_timer(&vm.memory, timer) {
        return Err(Stop::Refused(format!("{timer:#x} is no timer of the map")));
    }
    if vm.memory.hold(TIMER_BYTES).is_err() {
        vm.memory.within_limit()?;
        return Ok(Errno::ENOMEM.to_r0());
    }
    let made = vm.timers.init(timer, index, clock);
    if made.is_err() {
        vm.memory.release_held(TIMER_BYTES);
    }
    Ok(status(made))
}

fn set_callback<H: Host>(ctx: &mut CallCtx<'_, H>, args: [u64; 5]) -> Result<u64, Stop> {
    let [timer, callback, ..] = args;
    Ok(status(ctx.vm.timers.set_callback(timer, callback)))
}

fn start<H: Host>(ctx: &mut CallCtx<'_, H>, args: [u64; 5]) -> Result<u64, Stop> {
    let [timer, expires_ns, flags, ..] = args;
    match ctx.vm.timers.start(timer, flags) {
        Ok((absolute, pinned)) => {
            ctx.host.timer_start(timer, expires_ns, absolute, pinned);
            Ok(0)
        }
        Err(errno) => Ok(errno.to_r0()),
    }
}

fn cancel<H: Host>(ctx: &mut CallCtx<'_, H>, args: [u64; 5]) -> Result<u64, Stop> {
    let [timer, ..] = args;
    match ctx.vm.timers.cancel(timer) {
        Ok(()) => Ok(u64::from(ctx.host.timer_cancel(timer))),
        Err(errno @ Errno { .. }) => Ok(errno.to_r0()),
    }
}

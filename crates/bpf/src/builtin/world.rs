//! What a program asks about the world around it.

use super::line::{Line, buffer, deliver};
use crate::Errno;
use crate::host::{CallCtx, Host};
use crate::stop::Stop;

pub(super) fn table<H: Host>() -> [Line<H>; 13] {
    lines![
        ("bpf_ktime_get_ns", "", clock),
        ("bpf_ktime_get_boot_ns", "", clock),
        ("bpf_ktime_get_coarse_ns", "", clock),
        ("bpf_get_smp_processor_id", "", cpu),
        ("bpf_get_prandom_u32", "", random),
        ("bpf_get_current_task", "", current_task),
        ("bpf_get_current_task_btf", "", current_task),
        ("bpf_get_current_pid_tgid", "", current_pid_tgid),
        ("bpf_get_current_comm", "", current_comm),
        ("bpf_get_numa_node_id", "", node),
        ("bpf_per_cpu_ptr", "", per_cpu_ptr),
        ("bpf_this_cpu_ptr", "", this_cpu_ptr),
        ("bpf_perf_event_read_value", "", perf_event_read_value),
    ]
}

fn clock<H: Host>(ctx: &mut CallCtx<'_, H>, _: [u64; 5]) -> Result<u64, Stop> {
    if ctx.vm.config.moving_clock {
        return Ok(ctx.host.clock_within(ctx.vm));
    }
    Ok(ctx.host.now_ns())
}

fn cpu<H: Host>(ctx: &mut CallCtx<'_, H>, _: [u64; 5]) -> Result<u64, Stop> {
    Ok(u64::from(ctx.host.cpu()))
}

fn random<H: Host>(ctx: &mut CallCtx<'_, H>, _: [u64; 5]) -> Result<u64, Stop> {
    Ok(u64::from(ctx.host.random_u32()))
}

fn current_task<H: Host>(ctx: &mut CallCtx<'_, H>, _: [u64; 5]) -> Result<u64, Stop> {
    Ok(ctx.host.current_task())
}

fn current_pid_tgid<H: Host>(ctx: &mut CallCtx<'_, H>, _: [u64; 5]) -> Result<u64, Stop> {
    Ok(ctx.host.current_pid_tgid())
}

/// Copies the current task's name and fills the rest with zeros; the last byte is always zero.
///
/// Source: `bpf_get_current_comm()`, kernel 6.18, kernel/bpf/helpers.c.
fn current_comm<H: Host>(ctx: &mut CallCtx<'_, H>, args: [u64; 5]) -> Result<u64, Stop> {
    let [to, size, ..] = args;
    let size = buffer(size & u64::from(u32::MAX))?;
    let name = ctx.host.current_comm();
    let name = ctx.vm.memory.text(name, size.saturating_sub(1).min(15));
    let mut bytes = name.to_vec();
    bytes.resize(size, 0);
    deliver(ctx.vm, to, &bytes).map(|()| 0)
}

fn node<H: Host>(ctx: &mut CallCtx<'_, H>, _: [u64; 5]) -> Result<u64, Stop> {
    Ok(u64::from(ctx.host.node()))
}

fn per_cpu_ptr<H: Host>(ctx: &mut CallCtx<'_, H>, args: [u64; 5]) -> Result<u64, Stop> {
    let [variable, cpu, ..] = args;
    Ok(ctx
        .vm
        .variables
        .on_cpu(variable, cpu & u64::from(u32::MAX))
        .unwrap_or(0))
}

fn this_cpu_ptr<H: Host>(ctx: &mut CallCtx<'_, H>, args: [u64; 5]) -> Result<u64, Stop> {
    let cpu = u64::from(ctx.host.cpu());
    Ok(ctx.vm.variables.on_cpu(args[0], cpu).unwrap_or(0))
}

/// No counter is ever opened, so the kernel finds none; it zeroes the buffer.
fn perf_event_read_value<H: Host>(ctx: &mut CallCtx<'_, H>, args: [u64; 5]) -> Result<u64, Stop> {
    let [map, _, buffer, size, _] = args;
    ctx.vm.map_index(map)?;
    // `struct bpf_perf_event_value` has three 64-bit words.
    if size != 24 {
        return Ok(Errno::EINVAL.to_r0());
    }
    deliver(ctx.vm, buffer, &[0; 24])?;
    Ok(Errno::ENOENT.to_r0())
}

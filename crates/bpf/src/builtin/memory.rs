//! Reading foreign memory, strings, kernel pointers and dynamic pointers.

use super::line::{Line, MAX_BUFFER, argument, buffer, deliver};
use crate::Errno;
use crate::host::{CallCtx, Host};
use crate::stop::Stop;

pub(super) fn table<H: Host>() -> [Line<H>; 8] {
    lines![
        // The older names: of x86's addresses that the kernel has.
        ("bpf_probe_read", "", probe_read),
        ("bpf_probe_read_str", "", probe_read_str),
        ("bpf_probe_read_kernel", "", probe_read),
        ("bpf_probe_read_kernel_str", "", probe_read_str),
        ("bpf_strncmp", "", strncmp),
        ("bpf_kptr_xchg", "", kptr_xchg),
        ("bpf_dynptr_from_mem", "", dynptr_from_mem),
        ("bpf_dynptr_data", "", dynptr_data),
    ]
}

fn probe_read<H: Host>(ctx: &mut CallCtx<'_, H>, args: [u64; 5]) -> Result<u64, Stop> {
    let [to, size, from, ..] = args;
    let mut bytes = vec![0; buffer(size & u64::from(u32::MAX))?];
    let readable = ctx.vm.memory.bytes(from, bytes.len() as u64).is_some();
    ctx.vm.memory.read(from, &mut bytes);
    deliver(ctx.vm, to, &bytes)?;
    Ok(if readable { 0 } else { Errno::EFAULT.to_r0() })
}

/// Copies text and its terminating zero. The result is the length with the zero.
fn probe_read_str<H: Host>(ctx: &mut CallCtx<'_, H>, args: [u64; 5]) -> Result<u64, Stop> {
    let [to, size, from, ..] = args;
    let size = buffer(size & u64::from(u32::MAX))?;
    if size == 0 {
        return Ok(0);
    }
    if ctx.vm.memory.bytes(from, 1).is_none() {
        deliver(ctx.vm, to, &vec![0; size])?;
        return Ok(Errno::EFAULT.to_r0());
    }
    let mut text = ctx.vm.memory.text(from, size - 1).to_vec();
    text.push(0);
    deliver(ctx.vm, to, &text)?;
    Ok(text.len() as u64)
}

fn strncmp<H: Host>(ctx: &mut CallCtx<'_, H>, args: [u64; 5]) -> Result<u64, Stop> {
    let [left, size, right, ..] = args;
    let size = buffer(size & u64::from(u32::MAX))? as u64;
    ctx.vm.spend(size);
    for at in 0..size {
        let a = ctx.vm.memory.load_u8(left.wrapping_add(at));
        let b = ctx.vm.memory.load_u8(right.wrapping_add(at));
        if a != b {
            return Ok(if a < b { (-1_i64).cast_unsigned() } else { 1 });
        }
        if a == 0 {
            break;
        }
    }
    Ok(0)
}

/// Puts a pointer into a map value; the one that was there now belongs to the program.
fn kptr_xchg<H: Host>(ctx: &mut CallCtx<'_, H>, args: [u64; 5]) -> Result<u64, Stop> {
    let [place, new, ..] = args;
    let old = ctx.vm.memory.load_u64(place);
    deliver(ctx.vm, place, &new.to_le_bytes())?;
    Ok(old)
}

/// A `struct bpf_dynptr` is 16 opaque bytes; ours hold the address and the size.
fn dynptr_from_mem<H: Host>(ctx: &mut CallCtx<'_, H>, args: [u64; 5]) -> Result<u64, Stop> {
    let [data, size, flags, dynptr, _] = args;
    let size = size & u64::from(u32::MAX);
    let (data, size, result) = match (flags, size) {
        (0, 0..=MAX_BUFFER) => (data, size, 0),
        (0, _) => (0, 0, Errno::E2BIG.to_r0()),
        _ => (0, 0, Errno::EINVAL.to_r0()),
    };
    if result == 0 {
        argument(ctx.vm, data, size, "memory of a dynptr")?;
    }
    deliver(ctx.vm, dynptr, &data.to_le_bytes())?;
    deliver(ctx.vm, dynptr.wrapping_add(8), &size.to_le_bytes())?;
    Ok(result)
}

fn dynptr_data<H: Host>(ctx: &mut CallCtx<'_, H>, args: [u64; 5]) -> Result<u64, Stop> {
    let [dynptr, offset, len, ..] = args;
    let (offset, len) = (offset & u64::from(u32::MAX), len & u64::from(u32::MAX));
    let data = ctx.vm.memory.load_u64(dynptr);
    let size = ctx.vm.memory.load_u64(dynptr.wrapping_add(8));
    let inside = data != 0 && offset.checked_add(len).is_some_and(|end| end <= size);
    Ok(if inside { data.wrapping_add(offset) } else { 0 })
}

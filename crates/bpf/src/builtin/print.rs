//! Printing.

use super::line::{Line, argument, buffer, deliver};
use crate::format::format;
use crate::host::{CallCtx, Host};
use crate::stop::Stop;
use crate::{Errno, Instance};

pub(super) fn table<H: Host>() -> [Line<H>; 6] {
    lines![
        ("bpf_trace_printk", "", trace_printk),
        ("bpf_trace_vprintk", "", trace_vprintk),
        ("bpf_snprintf", "", snprintf),
        ("bpf_seq_printf", "", seq_printf),
        ("bpf_seq_write", "", seq_write),
        (
            "bpf_stream_vprintk_impl",
            "s32(s32,ptr,ptr,u32,ptr)",
            stream_vprintk,
        ),
    ]
}

/// Arguments of a format (`MAX_BPRINTF_VARARGS`, Linux 6.18, include/linux/bpf.h).
const MAX_VALUES: u64 = 12;

/// The values that a format takes from an array of `bytes` bytes.
fn values<H: Host>(vm: &Instance<H>, array: u64, bytes: u64) -> Result<Vec<u64>, Errno> {
    if !bytes.is_multiple_of(8) || bytes > 8 * MAX_VALUES {
        return Err(Errno::EINVAL);
    }
    Ok((0..bytes / 8)
        .map(|at| vm.memory.load_u64(array.wrapping_add(8 * at)))
        .collect())
}

/// Prints, and gives the length of the text or the error.
fn print<H: Host>(ctx: &mut CallCtx<'_, H>, text: Result<String, Errno>) -> u64 {
    match text {
        Ok(text) => {
            ctx.vm.spend(text.len() as u64);
            ctx.host.print(&text);
            text.len() as u64
        }
        Err(errno) => errno.to_r0(),
    }
}

fn trace_printk<H: Host>(ctx: &mut CallCtx<'_, H>, args: [u64; 5]) -> Result<u64, Stop> {
    let [pattern, size, values @ ..] = args;
    let text = format(&ctx.vm.memory, pattern, size, &values);
    Ok(print(ctx, text))
}

fn trace_vprintk<H: Host>(ctx: &mut CallCtx<'_, H>, args: [u64; 5]) -> Result<u64, Stop> {
    let [pattern, size, array, bytes, _] = args;
    let values = values(ctx.vm, array, bytes & u64::from(u32::MAX));
    let text = values.and_then(|values| format(&ctx.vm.memory, pattern, size, &values));
    Ok(print(ctx, text))
}

/// Text to one of a program's two streams, standard output and standard error. The kernel says
/// which program; without user space to read it, it is printed.
fn stream_vprintk<H: Host>(ctx: &mut CallCtx<'_, H>, args: [u64; 5]) -> Result<u64, Stop> {
    let [stream, pattern, array, bytes, program] = args;
    let values = values(ctx.vm, array, bytes & u64::from(u32::MAX));
    let text = values.and_then(|values| format(&ctx.vm.memory, pattern, u64::MAX, &values));
    let streams = &mut ctx.vm.streams;
    let result = if let (true, Ok(text)) = (streams.are_of(program), &text) {
        let stream = stream & u64::from(u32::MAX);
        let printed = streams.print(program, stream, text.as_bytes());
        ctx.vm.spend(text.len() as u64);
        printed.map_or_else(Errno::to_r0, |()| 0)
    } else {
        print(ctx, text)
    };
    Ok(match result.cast_signed() {
        error @ ..0 => u64::from((error as i32).cast_unsigned()),
        _ => 0,
    })
}

/// Text to who reads the file of an iterator; without a reader it is printed. 0, or the error.
fn seq_printf<H: Host>(ctx: &mut CallCtx<'_, H>, args: [u64; 5]) -> Result<u64, Stop> {
    let [_, pattern, size, array, bytes] = args;
    let values = values(ctx.vm, array, bytes & u64::from(u32::MAX));
    let size = size & u64::from(u32::MAX);
    let text = values.and_then(|values| format(&ctx.vm.memory, pattern, size, &values));
    Ok(match text {
        Ok(text) => hand_on(ctx, text.as_bytes()),
        Err(errno) => errno.to_r0(),
    })
}

/// As [`seq_printf`], of bytes as they are.
fn seq_write<H: Host>(ctx: &mut CallCtx<'_, H>, args: [u64; 5]) -> Result<u64, Stop> {
    let [_, data, len, ..] = args;
    let len = buffer(len & u64::from(u32::MAX))? as u64;
    let text = argument(ctx.vm, data, len, "bytes to write")?.to_vec();
    Ok(hand_on(ctx, &text))
}

/// Bytes of an iterator that its reader gets at most; more than a kernel's buffer grows to.
const MAX_ITERATOR: usize = 1 << 24;

/// To the reader of an iterator, or to the host.
fn hand_on<H: Host>(ctx: &mut CallCtx<'_, H>, text: &[u8]) -> u64 {
    ctx.vm.spend(text.len() as u64);
    match &mut ctx.vm.streams.iterator {
        Some(read) if read.len() + text.len() > MAX_ITERATOR => return Errno(75).to_r0(),
        Some(read) => read.extend_from_slice(text),
        None => ctx.host.print(&String::from_utf8_lossy(text)),
    }
    0
}

/// Gives the length of the whole text with its zero, even if it was cut to fit.
fn snprintf<H: Host>(ctx: &mut CallCtx<'_, H>, args: [u64; 5]) -> Result<u64, Stop> {
    let [to, size, pattern, array, bytes] = args;
    let size = (size & u64::from(u32::MAX)) as usize;
    let values = values(ctx.vm, array, bytes & u64::from(u32::MAX));
    let text = values.and_then(|values| format(&ctx.vm.memory, pattern, u64::MAX, &values));
    let text = match text {
        Ok(text) => text,
        Err(errno) => return Ok(errno.to_r0()),
    };
    ctx.vm.spend(text.len() as u64);
    if size > 0 {
        let mut bytes = text.as_bytes()[..text.len().min(size - 1)].to_vec();
        bytes.push(0);
        deliver(ctx.vm, to, &bytes)?;
    }
    Ok(text.len() as u64 + 1)
}

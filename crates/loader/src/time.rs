//! Calls that read a clock or sleep, and futexes.

use model::Nanos;

use crate::clock::EPOCH;
use crate::state::{CallContext, Errno, Reply, Then, u64_at};

type Answer = Result<Reply, Errno>;

/// Nanoseconds of a `struct timespec`.
///
/// # Errors
/// `EINVAL`, as the kernel.
pub fn timespec(bytes: &[u8]) -> Result<Nanos, Errno> {
    let (seconds, nanos) = (u64_at(bytes, 0).cast_signed(), u64_at(bytes, 8));
    if seconds < 0 || nanos >= 1_000_000_000 {
        return Err(Errno(libc::EINVAL));
    }
    let seconds = seconds.cast_unsigned().saturating_mul(1_000_000_000);
    Ok(Nanos::new(seconds.saturating_add(nanos)))
}

/// A `struct timespec`.
pub fn to_timespec(time: Nanos) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&(time.get() / 1_000_000_000).to_le_bytes());
    bytes[8..].copy_from_slice(&(time.get() % 1_000_000_000).to_le_bytes());
    bytes
}

fn to_timeval(time: Nanos) -> [u8; 16] {
    let mut bytes = to_timespec(time);
    bytes[8..].copy_from_slice(&(time.get() % 1_000_000_000 / 1000).to_le_bytes());
    bytes
}

/// A moment, however far.
pub fn later(from: Nanos, span: Nanos) -> Nanos {
    // No run lasts 292 years; what ends then never ends.
    Nanos::new(from.get().saturating_add(span.get()).min(i64::MAX.cast_unsigned()))
}

fn wall(cx: &CallContext<'_>) -> Nanos {
    cx.now() + EPOCH
}

/// What a clock tells. A thread's time and a process's are what they were charged.
fn clock(cx: &mut CallContext<'_>, clock: i32) -> Result<Nanos, Errno> {
    let charged = cx.state.clock.charged();
    match clock {
        libc::CLOCK_REALTIME | libc::CLOCK_REALTIME_COARSE => Ok(wall(cx)),
        libc::CLOCK_TAI => Ok(wall(cx) + Nanos::from_secs(37)),
        libc::CLOCK_MONOTONIC
        | libc::CLOCK_MONOTONIC_RAW
        | libc::CLOCK_MONOTONIC_COARSE
        | libc::CLOCK_BOOTTIME => Ok(cx.now()),
        libc::CLOCK_PROCESS_CPUTIME_ID => Ok(cx.process().charged + charged),
        // Clocks of single threads and processes have negative numbers.
        libc::CLOCK_THREAD_CPUTIME_ID | i32::MIN..0 => Ok(cx.thread().charged + charged),
        _ => Err(Errno(libc::EINVAL)),
    }
}

pub fn clock_gettime(cx: &mut CallContext<'_>) -> Answer {
    let time = clock(cx, cx.int(0))?;
    cx.write(cx.arg(1), &to_timespec(time))?;
    Ok(Reply::Value(0))
}

pub fn clock_getres(cx: &mut CallContext<'_>) -> Answer {
    clock(cx, cx.int(0))?;
    if cx.arg(1) != 0 {
        cx.write(cx.arg(1), &to_timespec(Nanos::new(1)))?;
    }
    Ok(Reply::Value(0))
}

pub fn gettimeofday(cx: &mut CallContext<'_>) -> Answer {
    if cx.arg(0) != 0 {
        cx.write(cx.arg(0), &to_timeval(wall(cx)))?;
    }
    if cx.arg(1) != 0 {
        cx.write(cx.arg(1), &[0; 8])?;
    }
    Ok(Reply::Value(0))
}

pub fn time(cx: &mut CallContext<'_>) -> Answer {
    let seconds = wall(cx).get() / 1_000_000_000;
    if cx.arg(0) != 0 {
        cx.write(cx.arg(0), &seconds.to_le_bytes())?;
    }
    Ok(Reply::Value(seconds.cast_signed()))
}

pub fn times(cx: &mut CallContext<'_>) -> Answer {
    let ticks = |time: Nanos| time.get() / 10_000_000;
    if cx.arg(0) != 0 {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&ticks(cx.process().charged).to_le_bytes());
        cx.write(cx.arg(0), &bytes)?;
    }
    Ok(Reply::Value(ticks(cx.now()).cast_signed()))
}

pub fn getrusage(cx: &mut CallContext<'_>) -> Answer {
    let who = cx.int(0);
    let mut bytes = [0; 144];
    let used = match who {
        libc::RUSAGE_SELF => cx.process().charged,
        libc::RUSAGE_THREAD => cx.thread().charged,
        libc::RUSAGE_CHILDREN => Nanos::new(0),
        _ => return Err(Errno(libc::EINVAL)),
    };
    bytes[..16].copy_from_slice(&to_timeval(used));
    cx.write(cx.arg(1), &bytes)?;
    Ok(Reply::Value(0))
}

pub fn sysinfo(cx: &mut CallContext<'_>) -> Answer {
    let mut bytes = [0; 112];
    let mut put = |at: usize, value: u64| {
        bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
    };
    put(0, cx.now().get() / 1_000_000_000);
    put(32, 16 << 30);
    put(40, 12 << 30);
    // Processes, and the unit of the sizes.
    bytes[80] = 1;
    bytes[104] = 1;
    cx.write(cx.arg(0), &bytes)?;
    Ok(Reply::Value(0))
}

pub fn nanosleep(cx: &mut CallContext<'_>) -> Answer {
    let span = timespec(&cx.read(cx.arg(0), 16)?)?;
    Ok(sleep(later(cx.now(), span)))
}

pub fn clock_nanosleep(cx: &mut CallContext<'_>) -> Answer {
    const ABSOLUTE: i32 = 1;
    let time = timespec(&cx.read(cx.arg(2), 16)?)?;
    if cx.int(1) & ABSOLUTE == 0 {
        return Ok(sleep(later(cx.now(), time)));
    }
    let until = match cx.int(0) {
        libc::CLOCK_REALTIME => time.saturating_sub(EPOCH),
        libc::CLOCK_TAI => time.saturating_sub(EPOCH + Nanos::from_secs(37)),
        libc::CLOCK_MONOTONIC | libc::CLOCK_BOOTTIME => time,
        _ => return Err(Errno(libc::EINVAL)),
    };
    Ok(sleep(until))
}

const fn sleep(until: Nanos) -> Reply {
    Reply::Park(Then::Sleep, Some(until))
}

// Linux 6.18, include/uapi/linux/futex.h.
const PRIVATE: i32 = 128;
const REALTIME: i32 = 256;

/// `futex()`: waits and wakeups of one process, in the order of parking. Futexes between processes
/// and those with priority inheritance do not exist.
pub fn futex(cx: &mut CallContext<'_>) -> Answer {
    let (address, op) = (cx.arg(0), cx.int(1));
    if address & 3 != 0 {
        return Err(Errno(libc::EINVAL));
    }
    let process = cx.thread().process;
    let wakes = cx.arg(2) & 0xffff_ffff;
    match op & !(PRIVATE | REALTIME) {
        libc::FUTEX_WAIT => wait(cx, false, u32::MAX),
        libc::FUTEX_WAIT_BITSET => wait(cx, true, cx.arg(5) as u32),
        libc::FUTEX_WAKE => Ok(woken(cx.state.wake_futex(process, address, u32::MAX, wakes))),
        libc::FUTEX_WAKE_BITSET => {
            let mask = cx.arg(5) as u32;
            Ok(woken(cx.state.wake_futex(process, address, mask, wakes)))
        }
        libc::FUTEX_REQUEUE => requeue(cx, None),
        libc::FUTEX_CMP_REQUEUE => requeue(cx, Some(cx.arg(5) as u32)),
        libc::FUTEX_WAKE_OP => wake_op(cx),
        _ => Err(Errno(libc::ENOSYS)),
    }
}

fn woken(count: u64) -> Reply {
    Reply::Value(count.cast_signed())
}

fn wait(cx: &mut CallContext<'_>, absolute: bool, mask: u32) -> Answer {
    if mask == 0 {
        return Err(Errno(libc::EINVAL));
    }
    let until = match cx.arg(3) {
        0 => None,
        at => {
            let time = timespec(&cx.read(at, 16)?)?;
            Some(match (absolute, cx.int(1) & REALTIME) {
                (false, _) => later(cx.now(), time),
                (true, 0) => time,
                (true, _) => time.saturating_sub(EPOCH),
            })
        }
    };
    if cx.read_u32(cx.arg(0))? != cx.arg(2) as u32 {
        return Err(Errno(libc::EAGAIN));
    }
    let process = cx.thread().process;
    Ok(Reply::Park(Then::Futex(process, cx.arg(0), mask), until))
}

fn requeue(cx: &mut CallContext<'_>, expected: Option<u32>) -> Answer {
    if expected.is_some_and(|it| cx.read_u32(cx.arg(0)) != Ok(it)) {
        return Err(Errno(libc::EAGAIN));
    }
    let process = cx.thread().process;
    let (address, to) = (cx.arg(0), cx.arg(4));
    let count = |value: u64| value & 0xffff_ffff;
    let done = cx.state.wake_futex(process, address, u32::MAX, count(cx.arg(2)));
    let left = cx.state.parked(|it| {
        matches!(it.then, Then::Futex(by, at, _) if by == process && at == address)
    });
    let moved = left.into_iter().take(count(cx.arg(3)) as usize);
    let mut all = done;
    for at in moved {
        if let Some(parked) = &mut cx.state.threads[at].parked
            && let Then::Futex(_, at, _) = &mut parked.then
        {
            *at = to;
            all += 1;
        }
    }
    Ok(woken(all))
}

/// `FUTEX_WAKE_OP`: changes a second word, and wakes there if its old value compares.
fn wake_op(cx: &mut CallContext<'_>) -> Answer {
    let (second, code) = (cx.arg(4), cx.arg(5) as u32);
    let old = cx.read_u32(second)?;
    let field = |shift: u32| ((code >> shift & 0xfff) << 20).cast_signed() >> 20;
    let (mut operand, compared) = (field(12).cast_unsigned(), field(0));
    if code >> 31 != 0 {
        operand = 1 << (operand & 31);
    }
    let new = match code >> 28 & 7 {
        0 => operand,
        1 => old.wrapping_add(operand),
        2 => old | operand,
        3 => old & !operand,
        4 => old ^ operand,
        _ => return Err(Errno(libc::ENOSYS)),
    };
    cx.write(second, &new.to_le_bytes())?;
    let old = old.cast_signed();
    let holds = match code >> 24 & 15 {
        0 => old == compared,
        1 => old != compared,
        2 => old < compared,
        3 => old <= compared,
        4 => old > compared,
        5 => old >= compared,
        _ => return Err(Errno(libc::ENOSYS)),
    };
    let process = cx.thread().process;
    let (first, wakes) = (cx.arg(0), cx.arg(2) & 0xffff_ffff);
    let mut all = cx.state.wake_futex(process, first, u32::MAX, wakes);
    if holds {
        let wakes = cx.arg(3) & 0xffff_ffff;
        all += cx.state.wake_futex(process, second, u32::MAX, wakes);
    }
    Ok(woken(all))
}

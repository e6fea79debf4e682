//! Perfetto's traces: the kernel's events in them.

mod compact;

use std::io::{BufRead, BufReader, Read};

use crate::foreign::error::Error;
use crate::foreign::record::{Comm, CpuContext, InterruptSource, Left, Record, RecordWhat, Who};
use crate::foreign::stream::Stream;
use crate::foreign::text::{is_timer, softirq_of};
use crate::foreign::unpack::{Allowance, Packing, reader};
use crate::perfetto::fields::{
    TRACE_PACKET, ftrace, interrupt, packet, process, sched, switch, system,
};
use crate::protobuf::{Damaged, FieldValue, Fields, LENGTH, Small};

/// Most bytes of one packet, packed or not. No more than two are in memory: one with packets in
/// it, and one of these.
const PACKET: u64 = 64 << 20;

/// Reads the packets of a trace.
pub fn read(input: &mut impl BufRead, stream: &mut Stream<'_>) -> Result<(), Error> {
    let mut offset = 0;
    let mut packet = Vec::new();
    let mut allowance = Allowance::default();
    loop {
        match next(input, &mut offset, &mut packet) {
            Ok(None) => return Ok(()),
            Ok(Some(at)) => {
                stream.told.records += 1;
                if take(&packet, at, &mut allowance, stream)? {
                    return Ok(());
                }
            }
            // Whoever recorded was stopped in the middle.
            Err(Error::Truncated { offset, .. }) if stream.told.records > 0 => {
                stream.told.cut_at = Some(offset);
                return Ok(());
            }
            Err(error) => return Err(error),
        }
    }
}

/// Reads the next packet; gives where it begins, `None` at the end of the file.
fn next(
    input: &mut impl BufRead,
    offset: &mut u64,
    packet: &mut Vec<u8>,
) -> Result<Option<u64>, Error> {
    const TAG: u64 = TRACE_PACKET << 3 | LENGTH;
    let at = *offset;
    let Some(tag) = varint(input, offset)? else {
        return Ok(None);
    };
    if tag != TAG {
        let what = "no packet where one must begin";
        return Err(Error::Malformed { offset: at, what });
    }
    let what = "a packet";
    let truncated = Error::Truncated { offset: at, what };
    let Some(long) = varint(input, offset)? else {
        return Err(truncated);
    };
    if long > PACKET {
        return Err(Error::TooLong {
            offset: at,
            what,
            found: long,
            most: PACKET,
        });
    }
    packet.clear();
    let got = input.take(long).read_to_end(packet);
    let got = got.map_err(|source| Error::Io { offset: at, source })? as u64;
    *offset += got;
    if got < long {
        return Err(truncated);
    }
    Ok(Some(at))
}

/// A number of protobuf; `None` at the end of the file.
fn varint(input: &mut impl BufRead, offset: &mut u64) -> Result<Option<u64>, Error> {
    let at = *offset;
    let mut number = 0;
    for shift in (0..70).step_by(7) {
        let mut byte = [0];
        let got = input.read(&mut byte);
        if got.map_err(|source| Error::Io { offset: at, source })? == 0 {
            let what = "a number";
            return match shift {
                0 => Ok(None),
                _ => Err(Error::Truncated { offset: at, what }),
            };
        }
        *offset += 1;
        number |= u64::from(byte[0] & 0x7f).checked_shl(shift).unwrap_or(0);
        if byte[0] < 0x80 {
            return Ok(Some(number));
        }
    }
    let what = "a number of more than ten bytes";
    Err(Error::Malformed { offset: at, what })
}

/// Takes a packet. Whether enough was read.
fn take(
    packet: &[u8],
    at: u64,
    allowance: &mut Allowance,
    stream: &mut Stream<'_>,
) -> Result<bool, Error> {
    let damaged = |_| Error::Malformed {
        offset: at,
        what: "a packet is no TracePacket",
    };
    for field in Fields::of(packet) {
        let field = field.map_err(damaged)?;
        if let (packet::COMPRESSED_PACKETS, FieldValue::Bytes(packed)) = field
            && take_packed(packed, at, allowance, stream)?
        {
            return Ok(true);
        }
    }
    take_plain(packet, stream).map_err(damaged)
}

/// Takes the packets of a compressed one, each when it is unpacked. Whether enough was read.
fn take_packed(
    packed: &[u8],
    at: u64,
    allowance: &mut Allowance,
    stream: &mut Stream<'_>,
) -> Result<bool, Error> {
    let how = match packed {
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Packing::Zstd,
        // RFC 1950: the method is 8, and both bytes are a multiple of 31.
        [a, b, ..] if a & 15 == 8 && (u16::from(*a) << 8 | u16::from(*b)) % 31 == 0 => {
            Packing::Zlib
        }
        _ => Packing::Deflate,
    };
    let malformed = |what| Error::Malformed { offset: at, what };
    let most = allowance.for_part(packed.len(), PACKET);
    let unpacked = reader(how, packed).ok_or(malformed("a compressed packet is damaged"))?;
    let mut unpacked = BufReader::new(unpacked.take(most + 1));
    let (mut offset, mut packet) = (0, Vec::new());
    loop {
        let is_next = next(&mut unpacked, &mut offset, &mut packet);
        if offset > most {
            return Err(Error::Bomb {
                offset: at,
                what: "a compressed packet",
                packed: packed.len() as u64,
                most,
            });
        }
        let is_next = is_next.map_err(|why| match why {
            Error::Io { .. } => malformed("a compressed packet is damaged"),
            _ => malformed("a compressed packet has no packets"),
        })?;
        if is_next.is_none() {
            allowance.take(offset);
            return Ok(false);
        }
        // Packets are packed once only.
        let is_over = take_plain(&packet, stream);
        if is_over.map_err(|_| malformed("a compressed packet has no packets"))? {
            return Ok(true);
        }
    }
}

/// Takes a packet that is not packed. Whether enough was read.
fn take_plain(packet: &[u8], stream: &mut Stream<'_>) -> Result<bool, Damaged> {
    for field in Fields::of(packet) {
        match field? {
            (packet::SYSTEM_INFO, FieldValue::Bytes(info)) => {
                if let Some(name) = Small::of(info)?.bytes(system::UTSNAME)? {
                    let release = Small::of(name)?.bytes(system::RELEASE)?;
                    let release = release.map(str::from_utf8).transpose();
                    stream.told.kernel = release.map_err(|_| Damaged)?.map(str::to_owned);
                }
            }
            (packet::FTRACE_EVENTS, FieldValue::Bytes(bundle)) if take_bundle(bundle, stream)? => {
                return Ok(true);
            }
            _ => {}
        }
    }
    Ok(false)
}

/// Takes what one CPU reported, one event at a time. Whether enough was read.
fn take_bundle(bundle: &[u8], stream: &mut Stream<'_>) -> Result<bool, Damaged> {
    // The CPU may stand behind the events.
    let mut cpu = 0;
    for field in Fields::of(bundle) {
        match field? {
            (ftrace::CPU, FieldValue::Number(number)) => {
                cpu = u32::try_from(number).unwrap_or(u32::MAX);
            }
            (ftrace::LOST_EVENTS, FieldValue::Number(lost)) => {
                stream.told.gaps += u64::from(lost != 0);
            }
            (ftrace::FTRACE_CLOCK, FieldValue::Number(clock)) => {
                stream.told.clock = Some(clock_name(clock).to_owned());
            }
            _ => {}
        }
    }
    for field in Fields::of(bundle) {
        match field? {
            (ftrace::EVENT, FieldValue::Bytes(event)) => {
                let Some(record) = record(event, cpu)? else {
                    stream.told.skipped += 1;
                    continue;
                };
                if stream.push(record).is_break() {
                    return Ok(true);
                }
            }
            (ftrace::COMPACT_SCHED, FieldValue::Bytes(compact))
                if compact::push(compact, cpu, stream)? =>
            {
                return Ok(true);
            }
            _ => {}
        }
    }
    Ok(false)
}

/// A clock other than the usual `boot` (`FtraceClock`).
const fn clock_name(clock: u64) -> &'static str {
    match clock {
        2 => "global",
        3 => "local",
        4 => "mono_raw",
        _ => "another than boot",
    }
}

/// The record of an event; `None` if it is of another kind than those that are read.
pub fn record(event: &[u8], cpu: u32) -> Result<Option<Record>, Damaged> {
    let (mut time, mut pid, mut context, mut what) = (0, 0, CpuContext::Unsaid, None);
    for field in Fields::of(event) {
        match field? {
            (ftrace::TIMESTAMP, FieldValue::Number(number)) => time = number,
            (ftrace::PID, FieldValue::Number(number)) => pid = number as u32,
            (ftrace::COMMON_FLAGS, FieldValue::Number(flags)) => {
                context = CpuContext::of_flags(flags & u64::from(u32::MAX));
            }
            (ftrace::TIMESTAMP | ftrace::PID | ftrace::COMMON_FLAGS, _) => return Err(Damaged),
            (kind, FieldValue::Bytes(message)) => {
                what = of_tasks(kind, message)?
                    .or(of_interrupts(kind, message)?)
                    .or(what);
            }
            _ => {}
        }
    }
    Ok(what.map(|what| Record {
        time,
        cpu,
        pid,
        context,
        what,
    }))
}

/// The task in three fields of a message; `None` if its number is none of a task.
fn who(of: &Small<'_>, [comm, pid, prio]: [u64; 3]) -> Result<Option<Who>, Damaged> {
    let pid = of.int32(pid)?.unwrap_or_default();
    let prio = of.int32(prio)?.unwrap_or_default();
    let comm = of.bytes(comm)?.unwrap_or_default();
    Ok(u32::try_from(pid).ok().map(|pid| Who {
        pid,
        comm: Comm::new(comm),
        prio: i16::try_from(prio).ok(),
    }))
}

/// A number of a thread or a CPU, 0 if it is not there; `None` if it is negative.
fn number(of: &Small<'_>, field: u64) -> Result<Option<u32>, Damaged> {
    let number = of.int32(field)?.unwrap_or_default();
    Ok(u32::try_from(number).ok())
}

/// What happened to tasks; `None` if `kind` is another, or the message speaks of no task.
fn of_tasks(kind: u64, message: &[u8]) -> Result<Option<RecordWhat>, Damaged> {
    let of = || Small::of(message);
    let first = [sched::COMM, sched::PID, sched::PRIO];
    let target = |of: &Small<'_>| {
        let cpu = of.int32(sched::WAKING_TARGET_CPU)?;
        Ok(cpu.and_then(|cpu| u32::try_from(cpu).ok()))
    };
    Ok(match kind {
        ftrace::SCHED_SWITCH => {
            let of = of()?;
            let next = [switch::NEXT_COMM, switch::NEXT_PID, switch::NEXT_PRIO];
            let left = Left::of_bits(of.number(switch::PREV_STATE)?.unwrap_or_default());
            let both = who(&of, first)?.zip(who(&of, next)?);
            both.map(|(prev, next)| RecordWhat::Switch { prev, left, next })
        }
        ftrace::SCHED_WAKING => {
            let of = of()?;
            let cpu = target(&of)?;
            who(&of, first)?.map(|who| RecordWhat::Waking(who, cpu))
        }
        ftrace::SCHED_WAKEUP | ftrace::SCHED_WAKEUP_NEW => {
            let of = of()?;
            let (cpu, new) = (target(&of)?, kind == ftrace::SCHED_WAKEUP_NEW);
            who(&of, first)?.map(|who| RecordWhat::Wakeup { who, cpu, new })
        }
        ftrace::SCHED_MIGRATE_TASK => {
            let of = of()?;
            let from = number(&of, sched::MIGRATE_ORIG_CPU)?;
            let to = number(&of, sched::MIGRATE_DEST_CPU)?;
            let all = who(&of, first)?.zip(from).zip(to);
            all.map(|((who, from), to)| RecordWhat::Migrate { who, from, to })
        }
        ftrace::SCHED_PROCESS_FORK => {
            let of = of()?;
            let parent = number(&of, process::FORK_PARENT_PID)?;
            let child = named(&of, process::FORK_CHILD_COMM, process::FORK_CHILD_PID)?;
            let both = parent.zip(child);
            both.map(|(parent, child)| RecordWhat::Fork { parent, child })
        }
        ftrace::SCHED_PROCESS_EXEC => {
            let of = of()?;
            let both = number(&of, process::EXEC_PID)?.zip(number(&of, process::EXEC_OLD_PID)?);
            both.map(|(pid, old)| RecordWhat::Exec { pid, old })
        }
        ftrace::SCHED_PROCESS_EXIT => number(&of()?, process::EXIT_PID)?.map(RecordWhat::Exit),
        ftrace::TASK_RENAME => {
            let task = named(&of()?, process::RENAME_NEWCOMM, process::RENAME_PID)?;
            task.map(RecordWhat::Rename)
        }
        _ => None,
    })
}

/// The task in two fields of a message, which tell nothing of its priority.
fn named(of: &Small<'_>, comm: u64, pid: u64) -> Result<Option<Who>, Damaged> {
    let pid = number(of, pid)?;
    let comm = Comm::new(of.bytes(comm)?.unwrap_or_default());
    let prio = None;
    Ok(pid.map(|pid| Who { pid, comm, prio }))
}

/// Interrupts that begin and end; `None` if `kind` is another.
fn of_interrupts(kind: u64, message: &[u8]) -> Result<Option<RecordWhat>, Damaged> {
    let softirq = || {
        let vector = Small::of(message)?.number(interrupt::SOFTIRQ_VEC)?;
        Ok(softirq_of(vector.unwrap_or_default() & u64::from(u32::MAX)))
    };
    Ok(Some(match kind {
        ftrace::IRQ_HANDLER_ENTRY => {
            let name = Small::of(message)?.bytes(interrupt::IRQ_NAME)?;
            RecordWhat::Enter(InterruptSource::Device {
                clock: is_timer(name.unwrap_or_default()),
            })
        }
        ftrace::IRQ_HANDLER_EXIT => RecordWhat::Leave(InterruptSource::Device { clock: false }),
        ftrace::SOFTIRQ_ENTRY => RecordWhat::Enter(softirq()?),
        ftrace::SOFTIRQ_EXIT => RecordWhat::Leave(softirq()?),
        ftrace::HRTIMER_EXPIRE_ENTRY | ftrace::TIMER_EXPIRE_ENTRY | ftrace::LOCAL_TIMER_ENTRY => {
            RecordWhat::Enter(InterruptSource::Timer)
        }
        ftrace::HRTIMER_EXPIRE_EXIT | ftrace::TIMER_EXPIRE_EXIT | ftrace::LOCAL_TIMER_EXIT => {
            RecordWhat::Leave(InterruptSource::Timer)
        }
        _ => return Ok(None),
    }))
}

//! Perfetto's traces: the kernel's events in them.
//!
//! Source: `protos/perfetto/trace/**/*.proto` of the Perfetto project, 0.59. Field numbers of
//! protobuf never change their meaning.

mod compact;
pub mod messages;
mod wire;

use std::io::{BufRead, BufReader, Read};

use prost::Message as _;

use crate::foreign::error::Error;
use crate::foreign::record::{Comm, Context, Interrupt, Left, Record, What, Who};
use crate::foreign::stream::Stream;
use crate::foreign::text::{is_timer, softirq_of};
use crate::foreign::unpack::{Allowance, Packing, reader};
use messages::{Event, SystemInfo, event};
use wire::{Damaged, Fields, Value};

/// Most bytes of one packet, packed or not. No more than two are in memory: one with packets in
/// it, and one of these.
const PACKET: u64 = 64 << 20;

/// Field numbers of `TracePacket` and of `FtraceEventBundle`.
mod field {
    pub const FTRACE_EVENTS: u64 = 1;
    pub const SYSTEM_INFO: u64 = 45;
    pub const COMPRESSED_PACKETS: u64 = 50;
    pub const CPU: u64 = 1;
    pub const EVENT: u64 = 2;
    pub const LOST_EVENTS: u64 = 3;
    pub const COMPACT_SCHED: u64 = 4;
    pub const FTRACE_CLOCK: u64 = 5;
}

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
    const TAG: u64 = 1 << 3 | 2;
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
        if let (field::COMPRESSED_PACKETS, Value::Bytes(packed)) = field
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
            (field::SYSTEM_INFO, Value::Bytes(info)) => {
                let info = SystemInfo::decode(info).map_err(|_| Damaged)?;
                if let Some(name) = info.utsname {
                    stream.told.kernel = name.release;
                }
            }
            (field::FTRACE_EVENTS, Value::Bytes(bundle)) if take_bundle(bundle, stream)? => {
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
            (field::CPU, Value::Number(number)) => {
                cpu = u32::try_from(number).unwrap_or(u32::MAX);
            }
            (field::LOST_EVENTS, Value::Number(lost)) => stream.told.gaps += u64::from(lost != 0),
            (field::FTRACE_CLOCK, Value::Number(clock)) => {
                stream.told.clock = Some(clock_name(clock).to_owned());
            }
            _ => {}
        }
    }
    for field in Fields::of(bundle) {
        match field? {
            (field::EVENT, Value::Bytes(event)) => {
                let event = Event::decode(event).map_err(|_| Damaged)?;
                let Some(record) = record(&event, cpu) else {
                    stream.told.skipped += 1;
                    continue;
                };
                if stream.push(record).is_break() {
                    return Ok(true);
                }
            }
            (field::COMPACT_SCHED, Value::Bytes(compact))
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

fn record(event: &Event, cpu: u32) -> Option<Record> {
    let flags = event.common_flags.map(u64::from);
    Some(Record {
        time: event.timestamp(),
        cpu,
        pid: event.pid(),
        context: flags.map_or(Context::Unsaid, Context::of_flags),
        what: what(event.event.as_ref()?)?,
    })
}

fn who(comm: &[u8], pid: i32, prio: i32) -> Option<Who> {
    Some(Who {
        pid: u32::try_from(pid).ok()?,
        comm: Comm::new(comm),
        prio: i16::try_from(prio).ok(),
    })
}

fn what(event: &event::Event) -> Option<What> {
    use event::Event as Of;
    let number = |number: i32| u32::try_from(number).ok();
    Some(match event {
        Of::SchedSwitch(it) => What::Switch {
            prev: who(it.prev_comm(), it.prev_pid(), it.prev_prio())?,
            left: Left::of_bits(it.prev_state().cast_unsigned()),
            next: who(it.next_comm(), it.next_pid(), it.next_prio())?,
        },
        Of::SchedWaking(it) => What::Waking(
            who(it.comm(), it.pid(), it.prio())?,
            it.target_cpu.and_then(number),
        ),
        Of::SchedWakeup(it) | Of::SchedWakeupNew(it) => What::Wakeup {
            who: who(it.comm(), it.pid(), it.prio())?,
            cpu: it.target_cpu.and_then(number),
            new: matches!(event, Of::SchedWakeupNew(_)),
        },
        Of::SchedMigrateTask(it) => What::Migrate {
            who: who(it.comm(), it.pid(), it.prio())?,
            from: number(it.orig_cpu())?,
            to: number(it.dest_cpu())?,
        },
        Of::SchedProcessFork(it) => What::Fork {
            parent: number(it.parent_pid())?,
            child: Who {
                prio: None,
                ..who(it.child_comm(), it.child_pid(), 0)?
            },
        },
        Of::SchedProcessExec(it) => What::Exec {
            pid: number(it.pid())?,
            old: number(it.old_pid())?,
        },
        Of::SchedProcessExit(it) => What::Exit(number(it.pid())?),
        Of::TaskRename(it) => What::Rename(Who {
            prio: None,
            ..who(it.newcomm(), it.pid(), 0)?
        }),
        Of::IrqHandlerEntry(it) => What::Enter(Interrupt::Device {
            clock: is_timer(it.name()),
        }),
        Of::IrqHandlerExit(_) => What::Leave(Interrupt::Device { clock: false }),
        Of::SoftirqEntry(it) => What::Enter(softirq_of(it.vec().into())),
        Of::SoftirqExit(it) => What::Leave(softirq_of(it.vec().into())),
        Of::HrtimerExpireEntry(_) | Of::TimerExpireEntry(_) | Of::LocalTimerEntry(_) => {
            What::Enter(Interrupt::Timer)
        }
        Of::HrtimerExpireExit(_) | Of::TimerExpireExit(_) | Of::LocalTimerExit(_) => {
            What::Leave(Interrupt::Timer)
        }
    })
}

//! Perfetto's traces: the kernel's events in them.
//!
//! Source: `protos/perfetto/trace/**/*.proto` of the Perfetto project, 0.59. Field numbers of
//! protobuf never change their meaning.

mod compact;
pub mod messages;

use std::io::{BufRead, Read as _};

use prost::Message as _;

use crate::error::Error;
use crate::record::{Comm, Context, Interrupt, Left, Record, What, Who};
use crate::stream::Stream;
use crate::text::{is_timer, softirq_of};
use crate::unpack::{Packing, unpack};
use messages::{Bundle, Event, Packet, Trace, event};

/// Most bytes of one packet, packed or not.
const PACKET: u64 = 64 << 20;

/// Reads the packets of a trace.
pub fn read(input: &mut impl BufRead, stream: &mut Stream<'_>) -> Result<(), Error> {
    let mut offset = 0;
    let mut packet = Vec::new();
    loop {
        match next(input, &mut offset, &mut packet) {
            Ok(None) => return Ok(()),
            Ok(Some(at)) => {
                let decoded = Packet::decode(&packet[..]);
                let decoded = decoded.map_err(|_| Error::Malformed {
                    offset: at,
                    what: "a packet is no TracePacket",
                })?;
                stream.told.records += 1;
                if take(&decoded, at, stream)? {
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
fn take(packet: &Packet, at: u64, stream: &mut Stream<'_>) -> Result<bool, Error> {
    if !packet.compressed_packets.is_empty() {
        let most = usize::try_from(PACKET).expect("64 MiB");
        let packed = &packet.compressed_packets[..];
        let bytes = unpack(Packing::Zlib, packed, most)
            .or_else(|| unpack(Packing::Deflate, packed, most))
            .or_else(|| unpack(Packing::Zstd, packed, most));
        let damaged = Error::Malformed {
            offset: at,
            what: "a compressed packet is damaged",
        };
        let bytes = bytes.ok_or(damaged)?;
        let inner = Trace::decode(&bytes[..]).map_err(|_| Error::Malformed {
            offset: at,
            what: "a compressed packet has no packets",
        })?;
        // Packets are packed once only.
        if inner.packet.iter().any(|packet| take_plain(packet, stream)) {
            return Ok(true);
        }
    }
    Ok(take_plain(packet, stream))
}

/// Takes a packet that is not packed. Whether enough was read.
fn take_plain(packet: &Packet, stream: &mut Stream<'_>) -> bool {
    let info = packet.system_info.as_ref();
    if let Some(name) = info.and_then(|info| info.utsname.as_ref()) {
        stream.told.kernel.clone_from(&name.release);
    }
    take_bundle(packet.ftrace_events.as_ref(), stream)
}

fn take_bundle(bundle: Option<&Bundle>, stream: &mut Stream<'_>) -> bool {
    let Some(bundle) = bundle else {
        return false;
    };
    if let Some(clock) = bundle.clock() {
        stream.told.clock = Some(clock.to_owned());
    }
    if bundle.lost_events() {
        stream.told.gaps += 1;
    }
    let cpu = bundle.cpu();
    for event in &bundle.event {
        let Some(record) = record(event, cpu) else {
            stream.told.skipped += 1;
            continue;
        };
        if stream.push(record).is_break() {
            return true;
        }
    }
    let compact = bundle.compact_sched.as_ref();
    compact.is_some_and(|compact| compact::push(compact, cpu, stream))
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

fn who(comm: &str, pid: i32, prio: i32) -> Option<Who> {
    Some(Who {
        pid: u32::try_from(pid).ok()?,
        comm: Comm::new(comm.as_bytes()),
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
            clock: is_timer(it.name().as_bytes()),
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

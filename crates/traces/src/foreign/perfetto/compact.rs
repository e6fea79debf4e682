//! The compact form of switches and wakings: columns, with times as differences.
//!
//! A switch has its next thread only. The previous one is the next one of the switch before, on the
//! same CPU; of a CPU's first switch it is not known.

use crate::foreign::record::{CURRENT, Comm, CpuContext, Left, Record, RecordWhat, Who};
use crate::foreign::stream::Stream;
use crate::perfetto::fields::compact as field;
use crate::protobuf::{Column, Damaged, FieldValue, Fields};

/// Puts a bundle's records, of which every CPU's come in order. Whether enough was read.
pub fn push(message: &[u8], cpu: u32, stream: &mut Stream<'_>) -> Result<bool, Damaged> {
    let names = names(message)?;
    let mut switches = switches(message, &names, cpu);
    let mut wakings = wakings(message, &names, cpu);
    let (mut switch, mut waking) = (switches.record(stream), wakings.record(stream));
    // Both columns are in order by themselves. A waking of the same moment comes first: whoever
    // wakes has not left the CPU.
    loop {
        let is_waking = match (&switch, &waking) {
            (None, None) => break,
            (Some(switch), Some(waking)) => waking.time <= switch.time,
            (switch, _) => switch.is_none(),
        };
        let next = if is_waking {
            std::mem::replace(&mut waking, wakings.record(stream))
        } else {
            std::mem::replace(&mut switch, switches.record(stream))
        };
        if next.is_some_and(|record| stream.push(record).is_break()) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Most names in a table. Perfetto's recorder ends a bundle at 256.
const NAMES: usize = 1 << 16;

/// The names of the table. It also looks at every field once, so that no column has damage.
fn names(message: &[u8]) -> Result<Vec<&[u8]>, Damaged> {
    let mut names = Vec::new();
    for field in Fields::of(message) {
        match field? {
            (field::INTERN_TABLE, FieldValue::Bytes(name)) if names.len() < NAMES => {
                names.push(name);
            }
            (field::INTERN_TABLE, _) => return Err(Damaged),
            (_, FieldValue::Bytes(packed)) if packed.last().is_some_and(|byte| *byte >= 0x80) => {
                return Err(Damaged);
            }
            _ => {}
        }
    }
    Ok(names)
}

/// The rows of switches or of wakings.
struct Rows<'a, Of> {
    times: Column<'a>,
    pids: Column<'a>,
    prios: Column<'a>,
    indices: Column<'a>,
    /// States of switches, target CPUs of wakings.
    others: Column<'a>,
    names: &'a [&'a [u8]],
    cpu: u32,
    time: u64,
    /// Makes a record of the last column's value and the thread.
    of: Of,
}

impl<Of: FnMut(u64, Who) -> (CpuContext, RecordWhat)> Rows<'_, Of> {
    /// The next record; `None` after the last row that every column has.
    fn record(&mut self, stream: &mut Stream<'_>) -> Option<Record> {
        loop {
            let difference = self.times.next()?;
            let row = self.pids.next().zip(self.prios.next());
            let row = row.zip(self.indices.next()).zip(self.others.next());
            let Some((((pid, prio), index), other)) = row else {
                stream.told.skipped += 1 + self.times.by_ref().count() as u64;
                return None;
            };
            self.time = self.time.wrapping_add(difference);
            // A negative one is no thread.
            let pid = i32::try_from(pid).ok().map(i32::cast_unsigned);
            let name = usize::try_from(index)
                .ok()
                .and_then(|at| self.names.get(at));
            let who = Who {
                pid: pid.unwrap_or_default(),
                comm: Comm::new(name.copied().unwrap_or_default()),
                prio: i16::try_from(prio.cast_signed()).ok(),
            };
            let (context, what) = (self.of)(other, who);
            if pid.is_none() {
                stream.told.skipped += 1;
                continue;
            }
            return Some(Record {
                time: self.time,
                cpu: self.cpu,
                pid: CURRENT,
                context,
                what,
            });
        }
    }
}

fn switches<'a>(
    message: &'a [u8],
    names: &'a [&'a [u8]],
    cpu: u32,
) -> Rows<'a, impl FnMut(u64, Who) -> (CpuContext, RecordWhat)> {
    Rows {
        times: Column::of(message, field::SWITCH_TIMESTAMP),
        pids: Column::of(message, field::SWITCH_NEXT_PID),
        prios: Column::of(message, field::SWITCH_NEXT_PRIO),
        indices: Column::of(message, field::SWITCH_NEXT_COMM_INDEX),
        others: Column::of(message, field::SWITCH_PREV_STATE),
        names,
        cpu,
        time: 0,
        of: |state, next| {
            let left = Left::of_bits(state);
            (CpuContext::Unsaid, RecordWhat::SwitchTo { left, next })
        },
    }
}

fn wakings<'a>(
    message: &'a [u8],
    names: &'a [&'a [u8]],
    cpu: u32,
) -> Rows<'a, impl FnMut(u64, Who) -> (CpuContext, RecordWhat)> {
    let mut flags = Column::of(message, field::WAKING_COMMON_FLAGS);
    Rows {
        times: Column::of(message, field::WAKING_TIMESTAMP),
        pids: Column::of(message, field::WAKING_PID),
        prios: Column::of(message, field::WAKING_PRIO),
        indices: Column::of(message, field::WAKING_COMM_INDEX),
        others: Column::of(message, field::WAKING_TARGET_CPU),
        names,
        cpu,
        time: 0,
        of: move |target, who| {
            // Older recorders have no flags.
            let context = flags
                .next()
                .map_or(CpuContext::Unsaid, CpuContext::of_flags);
            (context, RecordWhat::Waking(who, u32::try_from(target).ok()))
        },
    }
}

//! The compact form of switches and wakings: columns, with times as differences.
//!
//! A switch has its next thread only. The previous one is the next one of the switch before, on the
//! same CPU; of a CPU's first switch it is not known.

use super::messages::CompactSched;
use crate::record::{CURRENT, Comm, Context, Left, Record, What, Who};
use crate::stream::Stream;

/// Puts a bundle's records, of which every CPU's come in order. Whether enough was read.
pub fn push(compact: &CompactSched, cpu: u32, stream: &mut Stream<'_>) -> bool {
    let switches = switches(compact, cpu, stream);
    let wakings = wakings(compact, cpu, stream);
    // Both columns are in order by themselves. A waking of the same moment comes first: whoever
    // wakes has not left the CPU.
    let mut records = [wakings, switches].concat();
    records.sort_by_key(|record| record.time);
    records
        .into_iter()
        .any(|record| stream.push(record).is_break())
}

/// The columns that switches and wakings both have.
struct Columns<'a> {
    compact: &'a CompactSched,
    times: &'a [u64],
    pids: &'a [i32],
    prios: &'a [i32],
    names: &'a [u32],
}

impl Columns<'_> {
    /// A record for each row, as far as the shortest of `others` and of these columns goes. `of`
    /// says what a row is, from its number and its thread.
    fn records(
        &self,
        others: usize,
        cpu: u32,
        stream: &mut Stream<'_>,
        of: impl Fn(usize, Who) -> (Context, What),
    ) -> Vec<Record> {
        let all = [self.pids.len(), self.prios.len(), self.names.len(), others];
        let many = all.into_iter().fold(self.times.len(), usize::min);
        stream.told.skipped += (self.times.len() - many) as u64;
        let mut time = 0_u64;
        let mut records = Vec::new();
        for index in 0..many {
            time = time.wrapping_add(self.times[index]);
            let Ok(pid) = u32::try_from(self.pids[index]) else {
                stream.told.skipped += 1;
                continue;
            };
            let name = self.compact.intern_table.get(self.names[index] as usize);
            let who = Who {
                pid,
                comm: Comm::new(name.map_or(&[], |name| name.as_bytes())),
                prio: i16::try_from(self.prios[index]).ok(),
            };
            let (context, what) = of(index, who);
            records.push(Record {
                time,
                cpu,
                pid: CURRENT,
                context,
                what,
            });
        }
        records
    }
}

fn switches(compact: &CompactSched, cpu: u32, stream: &mut Stream<'_>) -> Vec<Record> {
    let columns = Columns {
        compact,
        times: &compact.switch_timestamp,
        pids: &compact.switch_next_pid,
        prios: &compact.switch_next_prio,
        names: &compact.switch_next_comm_index,
    };
    let states = &compact.switch_prev_state;
    columns.records(states.len(), cpu, stream, |index, next| {
        let left = Left::of_bits(states[index].cast_unsigned());
        (Context::Unsaid, What::SwitchTo { left, next })
    })
}

fn wakings(compact: &CompactSched, cpu: u32, stream: &mut Stream<'_>) -> Vec<Record> {
    let columns = Columns {
        compact,
        times: &compact.waking_timestamp,
        pids: &compact.waking_pid,
        prios: &compact.waking_prio,
        names: &compact.waking_comm_index,
    };
    let (targets, flags) = (&compact.waking_target_cpu, &compact.waking_common_flags);
    columns.records(targets.len(), cpu, stream, |index, who| {
        // Older recorders have no flags.
        let flags = flags.get(index).map(|flags| u64::from(*flags));
        let context = flags.map_or(Context::Unsaid, Context::of_flags);
        (
            context,
            What::Waking(who, u32::try_from(targets[index]).ok()),
        )
    })
}

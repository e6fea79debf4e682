//! Channels whose messages may become ever more.

use std::collections::BTreeMap;

use model::GrowingQueue;

use crate::code::{message_deadlines, message_takers};
use crate::{
    Capacity, Channel, ChannelKind, Code, Effect, Entrance, IndexedResource, Interrupt, Requests,
    ResourceInstance, Workload,
};

/// Whether messages in `channel` may become ever more, so that a machine follows their number: it
/// has no limit, or interrupts send to it. Requests of an `[arrival]` have the time in them, which
/// tells as much.
///
/// # Panics
/// If the workload has no such channel.
#[must_use]
pub fn may_grow(workload: &Workload, channel: u32) -> bool {
    let declared = &workload.channels[channel as usize];
    let has_no_end = match declared.capacity {
        Capacity::Unbounded => true,
        Capacity::Kernel => declared.kind == ChannelKind::Queue,
        Capacity::Messages(_) | Capacity::Bytes(_) => false,
    };
    let is_to = |to: &IndexedResource| to.of == channel;
    let asks = |it: &Requests| matches!(&it.to, Entrance::Channel(to) if is_to(to));
    let sends = |it: &Interrupt| matches!(&it.effect, Effect::Send(to) if is_to(to));
    let may_grow = has_no_end || workload.interrupts.iter().any(sends);
    may_grow && !workload.requests.iter().any(asks)
}

/// The channels `grown` with the groups and the deadlines whose figures grow with them. `codes` are
/// the code of each group, in order.
///
/// # Panics
/// If the workload has no such channel.
#[must_use]
pub fn growing_queues(
    workload: &Workload,
    codes: &[Code],
    grown: &[ResourceInstance],
) -> Vec<GrowingQueue> {
    if grown.is_empty() {
        return Vec::new();
    }
    let takers = message_takers(codes);
    let mut deadlines: BTreeMap<u32, Vec<(u32, u32)>> = BTreeMap::new();
    for (group, channel, deadline) in message_deadlines(workload, codes) {
        let its = deadlines.entry(channel).or_default();
        its.push((group, deadline));
    }
    let queue = |&ResourceInstance { of, index }: &ResourceInstance| {
        let Channel { name, count, .. } = &workload.channels[of as usize];
        GrowingQueue {
            name: match count {
                1 => name.clone(),
                _ => format!("{name}[{index}]"),
            },
            takers: takers.get(&of).cloned().unwrap_or_default(),
            deadlines: deadlines.get(&of).cloned().unwrap_or_default(),
        }
    };
    grown.iter().map(queue).collect()
}

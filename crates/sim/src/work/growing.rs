//! Queues of messages that grow to the end of a run.

use std::collections::BTreeMap;

use model::{GrowingQueue, SimTime};
use workload::{
    Capacity, Channel, ChannelKind, Effect, Entrance, IndexedResource, Interrupt, Requests,
    Workload, message_deadlines, message_takers,
};

use super::Work;
use super::channel::Queue;

impl Work {
    /// Follows the channels that may grow without end, and those that interrupts send to. Requests
    /// of an `[arrival]` have the time in them, which tells as much.
    pub(super) fn follow_channels(&mut self) {
        for (of, queues) in (0..).zip(&mut self.channels) {
            if is_followed(&self.workload, of) {
                queues.iter_mut().for_each(Queue::follow);
            }
        }
    }

    /// The followed channels that still grew in the second half of the run, which ends at `end`.
    ///
    /// # Panics
    /// If something happened later than `end`.
    #[must_use]
    pub fn growing(&mut self, end: SimTime) -> Vec<GrowingQueue> {
        let mut grown: Vec<(u32, String)> = Vec::new();
        for (of, queues) in (0..).zip(&mut self.channels) {
            let Channel { name, count, .. } = &self.workload.channels[of as usize];
            let queues = queues.iter_mut().enumerate();
            let names = queues.filter_map(|(index, queue)| {
                queue.grows(end).then(|| match count {
                    1 => name.clone(),
                    _ => format!("{name}[{index}]"),
                })
            });
            grown.extend(names.map(|name| (of, name)));
        }
        if grown.is_empty() {
            return Vec::new();
        }
        let takers = message_takers(&self.codes);
        let mut deadlines: BTreeMap<u32, Vec<(u32, u32)>> = BTreeMap::new();
        for (group, channel, deadline) in message_deadlines(&self.workload, &self.codes) {
            deadlines
                .entry(channel)
                .or_default()
                .push((group, deadline));
        }
        let queue = |(of, name): (u32, String)| GrowingQueue {
            name,
            takers: takers.get(&of).cloned().unwrap_or_default(),
            deadlines: deadlines.get(&of).cloned().unwrap_or_default(),
        };
        grown.into_iter().map(queue).collect()
    }
}

fn is_followed(workload: &Workload, channel: u32) -> bool {
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

//! A fingerprint of a run.

use model::{Event, EventMask, EventWords, Fnv1a, Header, SimTime, Sink};

/// Hashes every event: FNV-1a with 64 bits over the canonical bytes of docs/events.md.
///
/// Two runs with different hashes differ. The hash is no protection from forgery.
#[derive(Clone, Debug)]
pub struct TraceHash {
    state: Fnv1a,
    count: u64,
}

impl TraceHash {
    /// The hash of no event.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            state: Fnv1a::new(),
            count: 0,
        }
    }

    /// The hash of what came so far; of the whole run after [`Sink::finish`].
    #[must_use]
    pub const fn value(&self) -> u64 {
        self.state.value()
    }

    /// How many events were hashed.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.state.write(bytes);
    }
}

impl Default for TraceHash {
    fn default() -> Self {
        Self::new()
    }
}

/// The 32 bytes of an event that are hashed, the same on every machine.
fn canonical(event: &Event) -> [u8; 32] {
    let EventWords { detail, a, b } = event.words();
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&event.time.as_nanos().to_le_bytes());
    bytes[8..12].copy_from_slice(&event.task.0.to_le_bytes());
    bytes[12..14].copy_from_slice(&event.cpu.0.to_le_bytes());
    bytes[14] = event.kind as u8;
    bytes[15] = detail;
    bytes[16..24].copy_from_slice(&a.to_le_bytes());
    bytes[24..].copy_from_slice(&b.to_le_bytes());
    bytes
}

impl Sink for TraceHash {
    fn wants(&self) -> EventMask {
        EventMask::ALL
    }

    fn begin(&mut self, _header: &Header) {}

    fn events(&mut self, events: &[Event]) {
        // The same run has the same hash whether or not somebody else asks for decisions.
        let counted = events.iter().filter(|event| EventMask::ALL.has(event.kind));
        for event in counted {
            self.bytes(&canonical(event));
            self.count += 1;
        }
    }

    fn finish(&mut self, end: SimTime) {
        self.bytes(&end.as_nanos().to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use model::{CpuId, Nanos, Op, TaskId, What};

    use super::*;

    fn event(time: u64, task: u32, cpu: u16, what: What) -> Event {
        Event::new(SimTime::from_nanos(time), CpuId(cpu), TaskId(task), what)
    }

    fn call(op: Op, a: u64, b: u64) -> What {
        What::Callback { op, a, b }
    }

    fn first() -> Event {
        event(1, 2, 3, call(Op::Enqueue, 4, 5))
    }

    fn hash(events: &[Event]) -> u64 {
        let mut hash = TraceHash::new();
        hash.events(events);
        hash.value()
    }

    #[test]
    fn every_field_changes_the_hash() {
        let enqueue = call(Op::Enqueue, 4, 5);
        let changed = [
            event(2, 2, 3, enqueue),
            event(1, 3, 3, enqueue),
            event(1, 2, 4, enqueue),
            event(
                1,
                2,
                3,
                What::Steal {
                    span: Nanos::new(4),
                },
            ),
            event(1, 2, 3, call(Op::Dequeue, 4, 5)),
            event(1, 2, 3, call(Op::Enqueue, 5, 5)),
            event(1, 2, 3, call(Op::Enqueue, 4, 6)),
        ];
        let mut hashes: Vec<u64> = changed.iter().map(|event| hash(&[*event])).collect();
        hashes.push(hash(&[first()]));
        hashes.sort_unstable();
        hashes.dedup();
        assert_eq!(hashes.len(), changed.len() + 1);
    }

    #[test]
    fn batches_do_not_change_the_hash_and_the_end_does() {
        let second = event(1, 2, 3, call(Op::Enqueue, 9, 5));
        let mut batches = TraceHash::new();
        batches.events(&[first()]);
        batches.events(&[second]);
        assert_eq!(batches.value(), hash(&[first(), second]));
        assert_ne!(hash(&[first(), second]), hash(&[second, first()]));
        batches.finish(SimTime::from_nanos(7));
        assert_ne!(batches.value(), hash(&[first(), second]));
        assert_eq!(batches.count(), 2);
    }
}

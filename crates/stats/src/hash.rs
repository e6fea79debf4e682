//! A fingerprint of a run.

use model::{Event, EventMask, Fnv1a, Header, SimTime, Sink};

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
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&event.time.as_nanos().to_le_bytes());
    bytes[8..12].copy_from_slice(&event.task.0.to_le_bytes());
    bytes[12..14].copy_from_slice(&event.cpu.0.to_le_bytes());
    bytes[14] = event.kind as u8;
    bytes[15] = event.detail;
    bytes[16..24].copy_from_slice(&event.a.to_le_bytes());
    bytes[24..].copy_from_slice(&event.b.to_le_bytes());
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
    use model::{CpuId, EventKind, TaskId};

    use super::*;

    const EVENT: Event = Event {
        time: SimTime::from_nanos(1),
        task: TaskId(2),
        cpu: CpuId(3),
        kind: EventKind::Switch,
        detail: 1,
        a: 4,
        b: 5,
    };

    fn hash(events: &[Event]) -> u64 {
        let mut hash = TraceHash::new();
        hash.events(events);
        hash.value()
    }

    #[test]
    fn every_field_changes_the_hash() {
        let changed = [
            Event {
                time: SimTime::from_nanos(2),
                ..EVENT
            },
            Event {
                task: TaskId(3),
                ..EVENT
            },
            Event {
                cpu: CpuId(4),
                ..EVENT
            },
            Event {
                kind: EventKind::Migrate,
                ..EVENT
            },
            Event { detail: 2, ..EVENT },
            Event { a: 5, ..EVENT },
            Event { b: 6, ..EVENT },
        ];
        let mut hashes: Vec<u64> = changed.iter().map(|event| hash(&[*event])).collect();
        hashes.push(hash(&[EVENT]));
        hashes.sort_unstable();
        hashes.dedup();
        assert_eq!(hashes.len(), changed.len() + 1);
    }

    #[test]
    fn batches_do_not_change_the_hash_and_the_end_does() {
        let second = Event { a: 9, ..EVENT };
        let mut batches = TraceHash::new();
        batches.events(&[EVENT]);
        batches.events(&[second]);
        assert_eq!(batches.value(), hash(&[EVENT, second]));
        assert_ne!(hash(&[EVENT, second]), hash(&[second, EVENT]));
        batches.finish(SimTime::from_nanos(7));
        assert_ne!(batches.value(), hash(&[EVENT, second]));
        assert_eq!(batches.count(), 2);
    }
}

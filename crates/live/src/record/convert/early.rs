//! What came before the events of a recording.

use std::collections::HashMap;

use super::{First, is_last};
use crate::record::raw::{self, Raw, RecordKind};

/// What came before the events: it decides how they begin.
#[derive(Default)]
pub(super) struct Early {
    /// What tasks that were seen did last; `None` if they exited.
    last: HashMap<u32, Option<First>>,
    /// Forks, by the child's pid: index into the records.
    forks: HashMap<u32, usize>,
    /// When a pid was renamed last, and the facts that say how.
    names: HashMap<u32, (u64, u64)>,
}

impl Early {
    pub(super) fn fold(raws: &[Raw]) -> Self {
        let mut early = Self::default();
        for (at, raw) in raws.iter().enumerate() {
            let on = |cpu: u32| First::Runnable(u16::try_from(cpu).unwrap_or(0));
            match raw.kind {
                RecordKind::Switch => {
                    let left = match raw.b {
                        _ if is_last(raw) => None,
                        0 => Some(First::Runnable(raw.cpu)),
                        _ if raw.flags & 1 != 0 => Some(First::Runnable(raw.cpu)),
                        _ => Some(First::Asleep),
                    };
                    early.last.insert(raw.a, left);
                    early.last.insert(raw.pid, Some(First::Running(raw.cpu)));
                }
                RecordKind::Wakeup | RecordKind::Start => {
                    let last = early.last.entry(raw.pid).or_insert(Some(First::Asleep));
                    if *last == Some(First::Asleep) {
                        *last = Some(on(raw.a));
                    }
                }
                RecordKind::Migrate => {
                    if let Some(Some(First::Runnable(_))) = early.last.get(&raw.pid) {
                        early.last.insert(raw.pid, Some(on(raw.a)));
                    }
                }
                RecordKind::Fork => {
                    early.forks.insert(raw.pid, at);
                    early.last.insert(raw.pid, Some(First::Asleep));
                    early.names.remove(&raw.pid);
                }
                RecordKind::Rename => {
                    early.names.insert(raw.pid, (raw.time, raw.c));
                }
                _ => {}
            }
        }
        early
    }

    /// The records with snapshots that tell how the events begin.
    pub(super) fn apply(mut self, raws: &[Raw]) -> Vec<Raw> {
        let mut told = Vec::with_capacity(raws.len());
        for raw in raws {
            let mut raw = *raw;
            if raw.kind == RecordKind::Snapshot {
                self.forks.remove(&raw.pid);
                match self.last.get(&raw.pid) {
                    None => {}
                    Some(None) => continue,
                    Some(Some(last)) => set_state(&mut raw, *last),
                }
                self.name(&mut raw);
            }
            told.push(raw);
        }
        // Tasks that were forked behind the snapshot's back.
        let mut forks: Vec<_> = std::mem::take(&mut self.forks).into_iter().collect();
        forks.sort_unstable();
        for (pid, at) in forks {
            if let Some(Some(last)) = self.last.get(&pid) {
                let mut raw = Raw {
                    kind: RecordKind::Snapshot,
                    ..raws[at]
                };
                set_state(&mut raw, *last);
                self.name(&mut raw);
                told.push(raw);
            }
        }
        told
    }

    /// A name that a task got later than `snapshot` was made, and before the events begin.
    fn name(&self, snapshot: &mut Raw) {
        if let Some((time, facts)) = self.names.get(&snapshot.pid)
            && *time >= snapshot.time
        {
            snapshot.c = *facts;
        }
    }
}

fn set_state(snapshot: &mut Raw, first: First) {
    snapshot.flags = match first {
        First::Asleep => 0,
        First::Runnable(_) => raw::FLAG_QUEUED,
        First::Running(_) => raw::FLAG_ON_CPU,
    };
    if let First::Runnable(cpu) | First::Running(cpu) = first {
        snapshot.cpu = cpu;
    }
}

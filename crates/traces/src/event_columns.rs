//! Events as columns, for programs that read tables.

use std::collections::BTreeMap;

use model::{Event, EventMask, EventWords, Header, SimTime, Sink, TaskId, What};

use crate::names::task_name;
use crate::words;

/// Keeps every event of a run, column by column. All lists but `names` are of one length.
///
/// An event takes 40 bytes. What `detail`, `a` and `b` mean depends on the kind: docs/events.md.
#[derive(Clone, Debug, Default)]
pub struct EventColumns {
    /// When, in nanoseconds since the run began.
    pub time_ns: Vec<u64>,
    /// Index of the kind in [`EventColumns::kinds`].
    pub kind: Vec<u8>,
    /// The CPU.
    pub cpu: Vec<u16>,
    /// The task's number; `u32::MAX` without a task.
    pub task: Vec<u32>,
    /// Index of the task's name in `names`; `u32::MAX` without a task.
    pub name: Vec<u32>,
    /// Sub-kind.
    pub detail: Vec<u8>,
    /// First word.
    pub a: Vec<u64>,
    /// Second word.
    pub b: Vec<u64>,
    /// Names of tasks, each once.
    pub names: Vec<String>,
    header: Option<Header>,
    /// The index of each task's name, by its number.
    name_of: Vec<u32>,
    known: BTreeMap<String, u32>,
    has_decisions: bool,
}

impl EventColumns {
    /// Without events. Decisions are kept if they are wanted.
    #[must_use]
    pub fn new(decisions: bool) -> Self {
        Self {
            has_decisions: decisions,
            ..Self::default()
        }
    }

    /// Names of the kinds in files, by their number.
    #[must_use]
    pub fn kinds() -> Vec<&'static str> {
        words::KINDS.iter().map(|(_, name, _)| *name).collect()
    }

    /// A new task has a name.
    fn learn(&mut self, task: TaskId, group: u32, index: u32) {
        let Some(header) = &self.header else { return };
        let name = task_name(header, group, index);
        let names = &mut self.names;
        let number = *self.known.entry(name).or_insert_with_key(|name| {
            names.push(name.clone());
            names.len() as u32 - 1
        });
        let at = task.index();
        if self.name_of.len() <= at {
            self.name_of.resize(at + 1, TaskId::NONE.0);
        }
        self.name_of[at] = number;
    }
}

impl Sink for EventColumns {
    fn wants(&self) -> EventMask {
        if self.has_decisions {
            EventMask::ALL.union(EventMask::DECISIONS)
        } else {
            EventMask::ALL
        }
    }

    fn begin(&mut self, header: &Header) {
        self.header = Some(header.clone());
    }

    fn events(&mut self, events: &[Event]) {
        let wanted = self.wants();
        for event in events.iter().filter(|event| wanted.has(event.kind)) {
            if let What::New { group, index, .. } = event.what() {
                self.learn(event.task, group, index);
            }
            let EventWords { detail, a, b } = event.words();
            let name = self.name_of.get(event.task.0 as usize);
            self.time_ns.push(event.time.as_nanos());
            self.kind.push(event.kind as u8);
            self.cpu.push(event.cpu.0);
            self.task.push(event.task.0);
            self.name.push(name.copied().unwrap_or(TaskId::NONE.0));
            self.detail.push(detail);
            self.a.push(a);
            self.b.push(b);
        }
    }

    fn finish(&mut self, _: SimTime) {}
}

#[cfg(test)]
mod tests {
    use model::{CpuId, EventKind, MachineSpec, TaskGroup};

    use super::*;
    use crate::testing::raw;

    fn event(kind: EventKind, task: TaskId, a: u64) -> Event {
        raw((SimTime::from_nanos(7), CpuId(3), task), kind, (0, a, 9))
    }

    #[test]
    fn each_event_is_a_row_with_the_name_of_its_task() {
        let mut columns = EventColumns::new(false);
        columns.begin(&Header {
            policy: "p".to_owned(),
            workload: "w".to_owned(),
            machine: MachineSpec::default(),
            seed: 1,
            duration: None,
            groups: vec![TaskGroup {
                name: "shell".to_owned(),
                nice: 0,
                count: 2,
            }],
            spans: Vec::new(),
            deadlines: Vec::new(),
            counters: Vec::new(),
            phases: Vec::new(),
        });
        columns.events(&[
            event(EventKind::New, TaskId(0), 0),
            event(EventKind::New, TaskId(1), 1 << 32),
            event(EventKind::Idle, TaskId(1), 0),
            event(EventKind::Switch, TaskId::NONE, 5),
            event(EventKind::Switch, TaskId(1), 6),
        ]);
        let kinds = EventColumns::kinds();
        let named: Vec<_> = columns
            .kind
            .iter()
            .map(|kind| kinds[usize::from(*kind)])
            .collect();
        assert_eq!(
            named,
            ["new", "new", "switch", "switch"],
            "no decision was wanted"
        );
        assert_eq!(columns.names, ["shell.0", "shell.1"]);
        assert_eq!(columns.name, [0, 1, u32::MAX, 1]);
        assert_eq!(columns.task, [0, 1, u32::MAX, 1]);
        assert_eq!(
            (columns.time_ns[0], columns.cpu[0], columns.b[0]),
            (7, 3, 9)
        );
        assert_eq!(columns.a, [0, 1 << 32, 5, 6]);
    }
}

//! The way of a record from its reader to the events.

use std::ops::ControlFlow;

use model::{Event, Nanos, Snapshot};

use crate::foreign::findings::Findings;
use crate::foreign::order::Order;
use crate::foreign::record::{Comm, Record, RecordWhat};
use crate::foreign::tasks::Tasks;

/// CPUs from this number on are taken for damage.
pub const MOST_CPUS: u32 = 4096;

/// Threads of one trace, at most: each takes a few hundred bytes as long as the trace is read.
pub const MOST_THREADS: usize = 1 << 20;

/// So many records are looked at before the first event is made, to know what ran at the begin.
const FIRST: usize = 1 << 16;

/// Events are given in portions of about so many records.
const PORTION: usize = 1 << 10;

/// Which part of a trace is wanted, in time since its first record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// Where the part begins.
    pub from: Nanos,
    /// Where it ends; `None`: with the trace.
    pub until: Option<Nanos>,
}

/// Takes events. With `Break` it has enough, and reading ends.
pub type Out<'a> = dyn FnMut(&[Event]) -> ControlFlow<()> + 'a;

/// Where readers put their records.
pub struct Stream<'a> {
    pub tasks: Tasks,
    /// What a reader has to tell besides.
    pub told: Findings,
    /// What the trace has of the machine and its threads.
    pub snapshot: Option<Snapshot>,
    order: Order,
    window: Window,
    /// The time of the trace's first record.
    base: Option<u64>,
    /// The first records, as long as no event was made.
    first: Option<Vec<Record>>,
    portion: usize,
    /// Whether a record came.
    pub has_record: bool,
    /// Whether the trace has a switch, in the window or before it.
    pub has_switch: bool,
    out: &'a mut Out<'a>,
    /// Whether no more records are wanted.
    is_over: bool,
    /// Whether a record behind the window came; such records only say which CPUs there are.
    is_behind: bool,
    /// Whether the file says how many CPUs the machine has.
    knows_cpus: bool,
    /// The first CPU of a record that no machine has.
    pub no_cpu: Option<u32>,
}

impl<'a> Stream<'a> {
    /// `disorder` is the number of records among which an earlier one may follow a later one.
    pub fn new(disorder: usize, window: Window, out: &'a mut Out<'a>) -> Self {
        Self {
            tasks: Tasks::default(),
            told: Findings::default(),
            snapshot: None,
            order: Order::new(disorder),
            window,
            base: None,
            first: Some(Vec::new()),
            portion: 0,
            has_record: false,
            has_switch: false,
            out,
            is_over: false,
            is_behind: false,
            knows_cpus: false,
            no_cpu: None,
        }
    }

    /// The machine has so many CPUs, whether they report something or not.
    pub fn has_cpus(&mut self, cpus: u32) {
        self.knows_cpus = true;
        self.tasks.has_cpus(cpus.min(MOST_CPUS));
    }

    /// A thread of this number has this name, which no record may say.
    pub fn heard(&mut self, pid: u32, name: Comm) {
        self.tasks.heard(pid, name);
    }

    /// Takes a record. `Break`: no more are wanted.
    pub fn push(&mut self, record: Record) -> ControlFlow<()> {
        let cpu = record.cpu;
        self.has_record = true;
        let Some(record) = sound(record) else {
            self.damaged(None);
            self.no_cpu = self.no_cpu.or(Some(cpu).filter(|it| *it >= MOST_CPUS));
            return ControlFlow::Continue(());
        };
        if let Some(record) = self.order.push(record) {
            self.ordered(record);
        }
        self.flow()
    }

    /// A record cannot be read; it stands in this line of a text.
    pub fn damaged(&mut self, line: Option<u64>) {
        let told = &mut self.told;
        told.damaged += 1;
        told.damaged_line = told.damaged_line.or(line);
    }

    const fn flow(&self) -> ControlFlow<()> {
        if self.is_over {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }

    /// The reader has no more records.
    pub fn finish(&mut self) {
        while !self.is_over {
            match self.order.pop() {
                Some(record) => self.ordered(record),
                None => break,
            }
        }
        self.begin();
        self.give();
    }

    fn ordered(&mut self, record: Record) {
        let base = *self.base.get_or_insert(record.time);
        let since = record.time.saturating_sub(base);
        // A part of a trace has the machine of the whole, and may be one in which nothing happens.
        self.tasks.has_cpus(record.cpu + 1);
        self.has_switch |= matches!(
            record.what,
            RecordWhat::Switch { .. } | RecordWhat::SwitchTo { .. }
        );
        if since < self.window.from.get() || self.is_over || self.is_behind {
            return;
        }
        if self.window.until.is_some_and(|until| since > until.get()) {
            self.is_behind = true;
            // What comes behind the window is not looked at, but for its CPUs.
            self.is_over = self.knows_cpus;
            self.has_switch = true;
            return;
        }
        if let Some(first) = &mut self.first {
            first.push(record);
            if first.len() >= FIRST {
                self.begin();
            }
            return;
        }
        self.take(&record);
    }

    fn begin(&mut self) {
        if let Some(first) = self.first.take() {
            self.tasks.begin(&first);
            for record in &first {
                self.take(record);
            }
        }
    }

    fn take(&mut self, record: &Record) {
        self.tasks.take(record);
        self.is_over |= self.tasks.named.len() > MOST_THREADS;
        self.portion += 1;
        if self.portion >= PORTION {
            self.give();
        }
    }

    fn give(&mut self) {
        self.portion = 0;
        let Self {
            tasks,
            out,
            is_over,
            ..
        } = self;
        tasks.drain(&mut |events| *is_over |= out(events).is_break());
    }
}

/// The record, if its CPUs can be. A target that cannot be is not known.
fn sound(mut record: Record) -> Option<Record> {
    let is_cpu = |cpu: &u32| *cpu < MOST_CPUS;
    match &mut record.what {
        RecordWhat::Waking(_, target) | RecordWhat::Wakeup { cpu: target, .. } => {
            *target = target.filter(is_cpu);
        }
        RecordWhat::Migrate { from, to, .. } if !is_cpu(from) || !is_cpu(to) => return None,
        _ => {}
    }
    is_cpu(&record.cpu).then_some(record)
}

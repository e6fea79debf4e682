//! Who had which CPU when, for bars that a page draws itself.

use std::collections::BTreeMap;

use explain::why::Places;
use model::{Event, EventMask, Header, NOWHERE, SimTime, Sink, Text, What};
use serde::Serialize;

/// Most events of a kind that are kept: a page draws no more. The answer says if there were more.
const MOST: usize = 200_000;

/// What a page draws.
#[derive(Debug, Default, Serialize)]
pub struct Bars {
    /// Names of tasks, by number.
    pub tasks: Vec<String>,
    /// CPUs of the machine.
    pub cpus: u16,
    /// Switches: when (in nanoseconds), on which CPU, to which task (-1 is idle), and in which
    /// state the task before left the CPU: 0 idle, 1 runnable, 2 sleeping, 3 dead.
    pub switches: Vec<(u64, u16, i64, u8)>,
    /// Since when a task is runnable: when, and which.
    pub wakeups: Vec<(u64, u32)>,
    /// Decisions: when, on which CPU, what, about which task (-1: none), in which queue (-1:
    /// none), and at which of the places.
    pub decisions: Vec<(u64, u16, &'static str, i64, i64, i64)>,
    /// Places in the policy's source: function, file, line.
    pub places: BTreeMap<u32, (String, Option<String>, u32)>,
    /// Some were left out.
    pub cut: bool,
    /// When the run was over, nanoseconds.
    pub end: u64,
    #[serde(skip)]
    names: Vec<String>,
    #[serde(skip)]
    seen: Places,
    /// Whether decisions are wanted.
    #[serde(skip)]
    decides: bool,
}

impl Bars {
    /// Bars of a run, with its decisions or without.
    #[must_use]
    pub fn new(decides: bool) -> Self {
        Self {
            decides,
            ..Self::default()
        }
    }

    fn push<T>(list: &mut Vec<T>, cut: &mut bool, item: T) {
        if list.len() < MOST {
            list.push(item);
        } else {
            *cut = true;
        }
    }

    fn decided(&mut self, event: &Event) {
        let (what, queue, place) = match event.what() {
            What::Insert { by, into, .. } if into.queue == NOWHERE => ("kept", -1, by.place),
            What::Insert { by, into, .. } => ("insert", number(into.queue), by.place),
            What::Look { by, at, .. } => ("look", number(at.queue), by.place),
            What::Remove { by, from, .. } => ("remove", number(from.queue), by.place),
            What::KickEnd { by, .. } => ("kick", -1, by.place),
            What::Slice { by, .. } => ("slice", -1, by.place),
            What::Ignored { by, .. } => ("ignored", -1, by.place),
            _ => return,
        };
        let time = event.time.as_nanos();
        let decision = (
            time,
            event.cpu.0,
            what,
            number(event.task.0),
            queue,
            number(place),
        );
        Self::push(&mut self.decisions, &mut self.cut, decision);
    }
}

/// The number of a task, a queue or a place; -1 for none.
fn number(of: u32) -> i64 {
    if of == NOWHERE { -1 } else { of.into() }
}

impl Sink for Bars {
    fn wants(&self) -> EventMask {
        let decisions = if self.decides {
            EventMask::DECISIONS
        } else {
            EventMask::NONE
        };
        EventMask::SCHED.union(decisions)
    }

    fn begin(&mut self, header: &Header) {
        self.cpus = header.machine.cpus;
        self.names = header.groups.iter().map(|it| it.name.clone()).collect();
    }

    fn events(&mut self, events: &[Event]) {
        for event in events {
            let time = event.time.as_nanos();
            match event.what() {
                What::New { group, index, .. } => {
                    let group = &self.names[group as usize];
                    self.tasks.push(format!("{group}.{index}"));
                }
                What::Switch { state, .. } => {
                    let switch = (time, event.cpu.0, number(event.task.0), state as u8);
                    Self::push(&mut self.switches, &mut self.cut, switch);
                }
                What::Wakeup(_) => {
                    Self::push(&mut self.wakeups, &mut self.cut, (time, event.task.0));
                }
                _ => self.decided(event),
            }
        }
    }

    fn text(&mut self, text: &Text) {
        self.seen.take(text);
        if let Text::Place { place, .. } = text
            && let Some(place_of) = self.seen.get(*place)
        {
            let told = (
                place_of.function.clone(),
                place_of.file.clone(),
                place_of.line,
            );
            self.places.insert(*place, told);
        }
    }

    fn finish(&mut self, end: SimTime) {
        self.end = end.as_nanos();
    }
}

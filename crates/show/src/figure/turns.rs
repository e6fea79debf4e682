//! Who had which CPU from when to when, and by which decision: exactly, for loads of few tasks.

use std::collections::BTreeMap;

use explain::why::{Act, Places};
use model::{Event, Header, Looked, NOWHERE, PrevState, SimTime, TaskId, Text, What};

use super::ink::COLOURS;
use super::scale::Quantity;
use crate::explanation::text::by;

/// Turns of a figure at most: of more a pointer finds no single one.
pub(super) const TURNS_MAX: usize = 1_500;
/// Tasks of the load at most.
const TASKS_MAX: u64 = 8;

/// Whether the load has so few tasks that each can have a colour of its own. Groups that are only
/// forked have as many tasks as the run likes.
#[must_use]
pub fn has_few_tasks(header: &Header) -> bool {
    let groups = &header.groups;
    let tasks: u64 = groups.iter().map(|group| u64::from(group.count)).sum();
    groups.len() <= COLOURS && tasks <= TASKS_MAX && groups.iter().all(|group| group.count > 0)
}

/// A task on a CPU, from its switch to the next.
#[derive(Clone, Debug)]
pub(super) struct Turn {
    pub cpu: usize,
    pub from: u64,
    pub to: u64,
    pub task: TaskId,
    /// How the task left the CPU; `None` if the run ended first.
    left: Option<PrevState>,
    /// What the policy did with the task last before that.
    chosen: Option<Act>,
}

impl Turn {
    /// What a pointer is told: who, when, how it ended, and who decided it.
    pub fn told(&self, lane: &str, task: &str) -> String {
        let time = |ns| Quantity::Time.written(ns);
        let left = match self.left {
            Some(PrevState::Runnable) => "still wanted the CPU then",
            Some(PrevState::Dead) => "then it ended",
            Some(_) => "then it slept",
            None => "until the run ended",
        };
        let chosen = self.chosen.as_ref().map_or_else(String::new, |act| {
            let when = time(act.time.as_nanos());
            format!("\nchosen {} at {when}", by(act))
        });
        let (from, to) = (time(self.from), time(self.to));
        let length = time(self.to - self.from);
        format!("{lane}: {task}\n{from} to {to} ({length}), {left}{chosen}")
    }
}

/// Takes the turns of a run; none of a run with many tasks or turns.
#[derive(Debug, Default)]
pub(super) struct Turns {
    /// Whether decisions are asked for.
    pub decides: bool,
    kept: Option<Vec<Turn>>,
    /// Of each CPU that has a task.
    running: BTreeMap<usize, Turn>,
    chosen: BTreeMap<TaskId, Act>,
    places: Places,
}

impl Turns {
    pub fn new(header: &Header, decides: bool) -> Self {
        Self {
            decides,
            kept: has_few_tasks(header).then(Vec::new),
            ..Self::default()
        }
    }

    /// The turns in the order of their ends, unless there were too many.
    pub fn kept(&self) -> Option<&[Turn]> {
        self.kept.as_deref()
    }

    pub fn text(&mut self, text: &Text) {
        self.places.take(text);
    }

    /// Takes an event; `shown` cuts a stretch of time to what is drawn.
    pub fn take(&mut self, event: &Event, shown: impl Fn(u64, u64) -> (u64, u64)) {
        if self.kept.is_none() {
            return;
        }
        let cause = match event.what() {
            What::Switch { prev, state, .. } => return self.switched(event, (prev, state), shown),
            What::Insert { by, into, .. } if into.queue != NOWHERE => by,
            What::Look {
                by,
                how: Looked::MoveToLocal | Looked::Move,
                ..
            } if event.task != TaskId::NONE => by,
            _ => return,
        };
        // What the kernel does by a rule of its own is no choice of the policy.
        if let Some(place) = self.places.get(cause.place) {
            let act = Act {
                time: event.time,
                cpu: event.cpu,
                callback: cause.caller.name(),
                place: Some(place.clone()),
            };
            self.chosen.insert(event.task, act);
        }
    }

    fn switched(
        &mut self,
        event: &Event,
        (prev, state): (TaskId, PrevState),
        shown: impl Fn(u64, u64) -> (u64, u64),
    ) {
        let (now, cpu) = (event.time.as_nanos(), event.cpu.index());
        if let Some(turn) = self.running.remove(&cpu).filter(|turn| turn.task == prev) {
            self.keep(
                Turn {
                    left: Some(state),
                    ..turn
                },
                now,
                shown,
            );
        }
        if event.task != TaskId::NONE {
            let turn = Turn {
                cpu,
                from: now,
                to: now,
                task: event.task,
                left: None,
                chosen: self.chosen.get(&event.task).cloned(),
            };
            self.running.insert(cpu, turn);
        }
    }

    fn keep(&mut self, turn: Turn, now: u64, shown: impl Fn(u64, u64) -> (u64, u64)) {
        let (from, to) = shown(turn.from, now);
        if from >= to {
            return;
        }
        match &mut self.kept {
            Some(kept) if kept.len() < TURNS_MAX => kept.push(Turn { from, to, ..turn }),
            kept => *kept = None,
        }
    }

    /// The run is over.
    pub fn finish(&mut self, end: SimTime, shown: impl Fn(u64, u64) -> (u64, u64)) {
        for turn in std::mem::take(&mut self.running).into_values() {
            self.keep(turn, end.as_nanos(), &shown);
        }
    }
}

#[cfg(test)]
mod tests {
    use model::{Caller, Cause, CpuId, InQueue, Nanos, Op, Sink};
    use traces::testing::StreamWriter;

    use super::super::chart::{Body, Lane};
    use super::super::collect::Collector;
    use super::super::gantt::gantt;
    use super::*;

    const MS: u64 = 1_000_000;

    fn inserted(ns: u64, task: u32, place: u32) -> Event {
        let by = Cause {
            caller: Caller::Callback(Op::Enqueue),
            place,
        };
        let into = InQueue { queue: 0, depth: 1 };
        let what = What::Insert { by, into, flags: 0 };
        Event::new(SimTime::from_nanos(ns), CpuId(0), TaskId(task), what)
    }

    fn lanes(collector: &Collector) -> Vec<Lane> {
        match gantt(&[collector]).expect("few tasks").body {
            Body::Lanes { lanes, .. } => lanes,
            other => panic!("{other:?}"),
        }
    }

    /// Two tasks on a CPU; the second begins in a piece of time that the first had for longer.
    #[test]
    fn a_bar_of_few_tasks_says_who_when_and_which_line_chose_it() {
        let stream = StreamWriter::new()
            .born(0, 0, 0, 0)
            .born(0, 1, 1, 0)
            .push(inserted(1, 0, 5))
            .switch(MS, 0, None, Some(0))
            .push(inserted(2 * MS, 1, NOWHERE))
            .switch(3 * MS + 1, 0, Some((0, PrevState::Runnable)), Some(1))
            .switch(3 * MS + 2, 0, Some((1, PrevState::Sleeping)), Some(0));
        let mut collector = Collector::new(None);
        collector.begin(&traces::testing::header(1));
        collector.text(&Text::Place {
            place: 5,
            function: "fifo_enqueue".to_owned(),
            file: Some("fifo.bpf.c".to_owned()),
            line: 74,
        });
        collector.events(&stream.events);
        collector.finish(SimTime::from_nanos(10 * MS));
        let lanes = lanes(&collector);
        let [lane] = lanes.as_slice() else {
            panic!("{lanes:?}");
        };
        let turns = [
            (MS, 3 * MS + 1, 0),
            (3 * MS + 1, 3 * MS + 2, 1),
            (3 * MS + 2, 10 * MS, 0),
        ];
        assert_eq!(lane.stretches, turns);
        let told = [
            "fifo: solo\n1 ms to 3.000001 ms (2.000001 ms), still wanted the CPU then\n\
             chosen by `enqueue`, fifo.bpf.c:74 (fifo_enqueue) on CPU 0 at 1 ns",
            "fifo: pair.0\n3.000001 ms to 3.000002 ms (1 ns), then it slept",
            "fifo: solo\n3.000002 ms to 10 ms (6.999998 ms), until the run ended\n\
             chosen by `enqueue`, fifo.bpf.c:74 (fifo_enqueue) on CPU 0 at 1 ns",
        ];
        assert_eq!(lane.told, told);
    }

    #[test]
    fn more_turns_than_a_pointer_can_tell_apart_are_pieces_of_time() {
        let mut stream = StreamWriter::new().born(0, 0, 0, 0).born(0, 1, 1, 0);
        for turn in 0..TURNS_MAX as u64 + 2 {
            let (from, to) = (((turn + 1) % 2) as u32, (turn % 2) as u32);
            let prev = (turn > 0).then_some((from, PrevState::Runnable));
            stream = stream.switch(turn * MS, 0, prev, Some(to));
        }
        let mut collector = Collector::new(None);
        stream.feed(&mut collector, 1, 1_600 * MS);
        let lanes = lanes(&collector);
        assert!(lanes[0].told.is_empty() && !lanes[0].stretches.is_empty());
    }

    #[test]
    fn decisions_are_asked_for_only_where_a_figure_can_tell_them() {
        let mut header = traces::testing::header(1);
        header.duration = Some(Nanos::new(MS));
        assert!(
            Collector::of_load(&header)
                .wants()
                .has(model::EventKind::Insert)
        );
        header.groups[1].count = 8;
        assert!(
            !Collector::of_load(&header)
                .wants()
                .has(model::EventKind::Insert)
        );
        // Groups that are only forked may have any number of tasks.
        header.groups[1].count = 0;
        assert!(!has_few_tasks(&header));
    }
}

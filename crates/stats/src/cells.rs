//! Spans by cell of the recorded input: what a rerun's tasks went through, booked where the
//! recording had the same work.

use std::collections::BTreeMap;

use model::{Event, EventMask, Header, Nanos, PrevState, SimTime, Sink, TaskId, What};

use crate::{BlockLengths, SpanKind};

/// Bits of a length that are kept: less than 1/128 of it is lost, as in a histogram.
const BITS: u32 = 7;

/// Where the tasks of each group stand in the recorded input.
#[derive(Clone, Debug, Default)]
pub struct InputOrder {
    /// By group: the CPU time at which the work of a cell ends, rising, and the cell.
    pub ends: Vec<Vec<(Nanos, u32)>>,
    /// The number of cells; what lies behind counts in the last one.
    pub cells: usize,
}

/// The spans that are wanted.
#[derive(Clone, Debug)]
pub struct WantedSpans<'a> {
    /// Of which kind.
    pub kind: SpanKind<'a>,
    /// By group, whether it is of its tasks.
    pub groups: Vec<bool>,
}

/// Collects spans by cell while a rerun lasts. docs/events.md says where each begins and ends.
///
/// Memory grows with the tasks, and with the cells and the lengths that occur.
#[derive(Debug)]
pub struct CellSpans<'a> {
    order: &'a InputOrder,
    wanted: &'a [WantedSpans<'a>],
    /// The numbers of the named spans, by what is wanted.
    named: Vec<Option<u32>>,
    tasks: Vec<CellTask>,
    /// By group, what counts only if the group has nothing else.
    empty: BTreeMap<usize, CellEmptyTurns>,
    found: Vec<Vec<BlockLengths>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CellState {
    /// Not runnable; since it left a CPU, if it has had one.
    Asleep(Option<SimTime>),
    /// Waits for a CPU.
    Ready(SimTime, CellCause),
    Running,
}

#[derive(Clone, Copy, Debug)]
struct CellTask {
    group: usize,
    state: CellState,
    /// Since when it has its CPU and nothing of that time is booked.
    since: SimTime,
    /// The wait that ended when it got its CPU, until its turn has shown that it is not empty.
    waited: Option<CellWait>,
    /// It did something in its turn that events tell of.
    has_acted: bool,
    /// What it ran in this turn.
    turn: Nanos,
    /// What it ran at all.
    ran: Nanos,
    /// The cell it is in, as a place in the list of its group.
    place: usize,
    exited: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CellCause {
    Wakeup,
    Start,
    Preemption,
}

/// A wait that is over, and the cell of the work that followed.
#[derive(Clone, Copy, Debug)]
struct CellWait {
    length: Nanos,
    cause: CellCause,
    cell: usize,
}

/// The waits of a group before turns in which a task ran nothing, and did nothing that events tell
/// of: how often each length ended a sleep, and how often a task began with it.
#[derive(Clone, Debug, Default)]
struct CellEmptyTurns {
    turns: u64,
    waits: BTreeMap<(u64, bool), u64>,
}

impl InputOrder {
    /// The cell of a task of `group` that has run for `ran`. Moves `place` on, which only rises.
    fn cell(&self, group: usize, ran: Nanos, place: &mut usize) -> usize {
        let ends = self.ends.get(group).map_or(&[][..], |it| it);
        while ends.get(*place).is_some_and(|(end, _)| *end <= ran) {
            *place += 1;
        }
        let at = ends
            .get(*place)
            .or(ends.last())
            .map_or(0, |(_, cell)| *cell);
        (at as usize).min(self.cells.saturating_sub(1))
    }
}

impl<'a> CellSpans<'a> {
    /// The spans that are `wanted`, with the cells of `order`.
    #[must_use]
    pub fn new(order: &'a InputOrder, wanted: &'a [WantedSpans<'a>]) -> Self {
        let cells = order.cells.max(1);
        Self {
            order,
            wanted,
            named: vec![None; wanted.len()],
            tasks: Vec::new(),
            empty: BTreeMap::new(),
            found: vec![vec![BTreeMap::new(); cells]; wanted.len()],
        }
    }

    /// The spans of each kind that was wanted, by cell.
    #[must_use]
    pub fn into_found(self) -> Vec<Vec<BlockLengths>> {
        self.found
    }

    fn add(
        &mut self,
        task: usize,
        span: Nanos,
        is_kind: impl Fn(SpanKind<'_>, Option<u32>) -> bool,
    ) {
        let order = self.order;
        let Some(CellTask {
            group, ran, place, ..
        }) = self.tasks.get_mut(task)
        else {
            return;
        };
        let cell = order.cell(*group, *ran, place);
        let group = *group;
        self.book((group, cell), (rounded(span), 1), is_kind);
    }

    /// Books a rounded length in a cell, as often as it occurred to a group.
    fn book(
        &mut self,
        (group, cell): (usize, usize),
        (length, count): (u64, u64),
        is_kind: impl Fn(SpanKind<'_>, Option<u32>) -> bool,
    ) {
        let kinds = self.wanted.iter().zip(&self.named);
        for ((wanted, named), found) in kinds.zip(&mut self.found) {
            if is_kind(wanted.kind, *named) && wanted.groups.get(group) == Some(&true) {
                *found[cell].entry(length).or_default() += count;
            }
        }
    }

    fn add_wait(&mut self, task: usize, wait: CellWait) {
        let group = self.tasks[task].group;
        let is_kind = of_wait(wait.cause == CellCause::Wakeup);
        self.book((group, wait.cell), (rounded(wait.length), 1), is_kind);
    }

    /// `task`, if it is one, did something that others see, though it may take no time.
    fn acted(&mut self, task: TaskId) {
        if let Some(task) = self.tasks.get_mut(task.index()) {
            task.has_acted = true;
        }
    }

    /// Lets empty turns count in groups that have no others, by the rule of reports: tasks that
    /// never run, and wake more often than once each, are a load of wakeups.
    fn settle_empty_turns(&mut self) {
        for (group, empty) in std::mem::take(&mut self.empty) {
            let mut its = self.tasks.iter().filter(|it| it.group == group);
            let tasks = its.clone().count() as u64;
            if empty.turns <= tasks || its.any(|it| !it.ran.is_zero()) {
                continue;
            }
            // All before the first of their work.
            let cell = self.order.cell(group, Nanos::ZERO, &mut 0);
            for ((length, is_woken), count) in empty.waits {
                self.book((group, cell), (length, count), of_wait(is_woken));
            }
            let turns = (rounded(Nanos::ZERO), empty.turns);
            self.book((group, cell), turns, |kind, _| kind == SpanKind::Runslice);
        }
    }

    fn take(&mut self, event: &Event) {
        let (at, now) = (event.task.index(), event.time);
        match event.what() {
            What::New { group, parent, .. } => {
                self.acted(parent);
                self.tasks.push(CellTask {
                    group: group as usize,
                    state: CellState::Asleep(None),
                    since: now,
                    waited: None,
                    has_acted: false,
                    turn: Nanos::ZERO,
                    ran: Nanos::ZERO,
                    place: 0,
                    exited: false,
                });
            }
            What::Wakeup(wakeup) => {
                self.acted(wakeup.waker);
                self.woken(at, now, wakeup.new);
            }
            What::Deadline { .. } | What::Count { .. } => self.acted(event.task),
            What::Switch {
                prev,
                state,
                overhead,
            } => {
                self.left(prev, state, now);
                self.runs(at, now, overhead);
            }
            What::Steal { span } => {
                if let Some(task) = self.tasks.get_mut(at).filter(|it| it.is_running()) {
                    task.settle(now);
                    task.since = task.since.max(now) + span;
                }
            }
            What::Exit => {
                if let Some(task) = self.tasks.get_mut(at) {
                    task.exited = true;
                }
            }
            What::SpanEnd { span, length } => {
                self.acted(event.task);
                self.settle(at, now);
                self.add(at, length, |_, named| named == Some(span));
            }
            _ => {}
        }
    }

    fn settle(&mut self, task: usize, now: SimTime) {
        if let Some(task) = self.tasks.get_mut(task).filter(|it| it.is_running()) {
            task.settle(now);
        }
    }

    fn woken(&mut self, at: usize, now: SimTime, is_new: bool) {
        let Some(task) = self.tasks.get_mut(at) else {
            return;
        };
        let CellState::Asleep(since) = task.state else {
            return;
        };
        let cause = if is_new {
            CellCause::Start
        } else {
            CellCause::Wakeup
        };
        task.state = CellState::Ready(now, cause);
        if let Some(since) = since {
            self.add(at, now.since(since), |kind, _| kind == SpanKind::Sleep);
        }
    }

    fn left(&mut self, prev: TaskId, state: PrevState, now: SimTime) {
        let at = prev.index();
        self.settle(at, now);
        let Some(task) = self.tasks.get_mut(at).filter(|it| it.is_running()) else {
            return;
        };
        let turn = std::mem::replace(&mut task.turn, Nanos::ZERO);
        task.state = match state {
            PrevState::Runnable => CellState::Ready(now, CellCause::Preemption),
            PrevState::Dead => CellState::Asleep(None),
            _ if task.exited => CellState::Asleep(None),
            _ => CellState::Asleep(Some(now)),
        };
        let goes_on = state == PrevState::Runnable;
        let may_be_empty = turn.is_zero() && !task.has_acted && !goes_on;
        match task.waited.take() {
            Some(wait) if may_be_empty && wait.cause != CellCause::Preemption => {
                let empty = self.empty.entry(task.group).or_default();
                let wait = (rounded(wait.length), wait.cause == CellCause::Wakeup);
                empty.turns += 1;
                *empty.waits.entry(wait).or_default() += 1;
                return;
            }
            Some(wait) => self.add_wait(at, wait),
            None => {}
        }
        self.add(at, turn, |kind, _| kind == SpanKind::Runslice);
    }

    fn runs(&mut self, at: usize, now: SimTime, overhead: Nanos) {
        let Some(task) = self.tasks.get_mut(at) else {
            return;
        };
        let before = std::mem::replace(&mut task.state, CellState::Running);
        task.since = now + overhead;
        task.has_acted = false;
        if let CellState::Ready(since, cause) = before {
            task.waited = Some(CellWait {
                length: now.since(since),
                cause,
                cell: self.order.cell(task.group, task.ran, &mut task.place),
            });
        }
    }
}

impl CellTask {
    const fn is_running(&self) -> bool {
        matches!(self.state, CellState::Running)
    }

    fn settle(&mut self, now: SimTime) {
        if self.since < now {
            let span = now.since(self.since);
            self.turn += span;
            self.ran += span;
            self.since = now;
        }
    }
}

/// Which kinds of spans have a wait that a wakeup began, or another one.
fn of_wait(is_woken: bool) -> impl Fn(SpanKind<'_>, Option<u32>) -> bool {
    move |kind, _| match kind {
        SpanKind::Delay => true,
        SpanKind::Wakeup => is_woken,
        _ => false,
    }
}

/// A length with so many bits as are kept, in the middle of what they stand for.
fn rounded(span: Nanos) -> u64 {
    let ns = span.get();
    let shift = ns.max(1).ilog2().saturating_sub(BITS);
    (ns >> shift << shift) + (1 << shift >> 1)
}

impl Sink for CellSpans<'_> {
    fn wants(&self) -> EventMask {
        EventMask::SCHED
    }

    fn begin(&mut self, header: &Header) {
        let number = |wanted: &WantedSpans<'_>| match wanted.kind {
            SpanKind::Span(name) => {
                let at = header.spans.iter().position(|it| it == name);
                at.and_then(|at| u32::try_from(at).ok())
            }
            _ => None,
        };
        self.named = self.wanted.iter().map(number).collect();
    }

    fn events(&mut self, events: &[Event]) {
        events.iter().for_each(|event| self.take(event));
    }

    fn finish(&mut self, end: SimTime) {
        for at in 0..self.tasks.len() {
            self.settle(at, end);
            // It still has its CPU: what it does there is no empty turn.
            if let Some(wait) = self.tasks[at].waited.take() {
                self.add_wait(at, wait);
            }
        }
        self.settle_empty_turns();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Metrics;
    use crate::random_runs;

    #[test]
    fn all_cells_together_are_what_the_metrics_say() {
        for seed in 0..40 {
            let kinds = [
                SpanKind::Wakeup,
                SpanKind::Delay,
                SpanKind::Runslice,
                SpanKind::Sleep,
            ];
            let wanted = kinds.map(|kind| WantedSpans {
                kind,
                groups: vec![true; 2],
            });
            let order = InputOrder {
                ends: vec![vec![(Nanos::new(20), 0), (Nanos::new(60), 2)]],
                cells: 3,
            };
            let mut cells = CellSpans::new(&order, &wanted);
            let mut metrics = Metrics::new();
            random_runs::feed(seed, &mut cells);
            random_runs::feed(seed, &mut metrics);
            for (found, kind) in cells.into_found().iter().zip(kinds) {
                let count: u64 = found.iter().flat_map(BlockLengths::values).sum();
                let pooled = metrics.pooled(kind, &|_| true);
                assert_eq!(count, pooled.count(), "seed {seed}: {kind:?}");
                let sum: u128 = found
                    .iter()
                    .flatten()
                    .map(|(length, count)| u128::from(*length) * u128::from(*count))
                    .sum();
                let mean = pooled.mean().map_or(0, Nanos::get);
                let ours = u64::try_from(sum / u128::from(count.max(1))).unwrap();
                assert!(
                    ours.abs_diff(mean) <= mean / 100 + 1,
                    "{kind:?}: {ours}, not {mean}"
                );
            }
        }
    }

    #[test]
    fn a_wait_counts_in_the_cell_of_the_work_that_follows() {
        let order = InputOrder {
            ends: vec![vec![(Nanos::new(10), 1), (Nanos::new(30), 4)]],
            cells: 5,
        };
        let mut place = 0;
        let cells = [0, 9, 10, 29, 30, 99].map(|ran| order.cell(0, Nanos::new(ran), &mut place));
        assert_eq!(cells, [1, 1, 4, 4, 4, 4]);
        assert_eq!(
            order.cell(7, Nanos::new(5), &mut 0),
            0,
            "it is not in the recording"
        );
    }
}

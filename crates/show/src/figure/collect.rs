//! What figures need of a run, in memory that does not grow with its length.

use std::collections::BTreeMap;

use model::{Event, EventMask, Header, Nanos, PrevState, SimTime, Sink, TaskId, Text, What};

use super::bins::{Bins, COLUMNS, Merge};
use super::tracks::Tracks;
use super::turns::{Turns, has_few_tasks};
use traces::task_name;

use stats::Histogram;

/// Pieces of time of a curve.
const BINS: usize = 120;
/// Changes of priorities and levels that are kept, over all tasks.
const CHANGES_MAX: usize = 400_000;

/// What happened in one piece of time.
#[derive(Clone, Debug, Default)]
pub(super) struct Bin {
    pub delay: Mean,
    pub runslice: Mean,
    pub switches: u64,
    pub wakeups: u64,
    pub migrations: u64,
    pub kicks: u64,
    pub callbacks: u64,
    /// Longest run queue less the shortest, times nanoseconds.
    pub imbalance: u128,
    /// Nanoseconds of all CPUs that tasks had.
    pub busy: u64,
}

/// A sum and how many it sums.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Mean {
    pub sum: u128,
    pub count: u64,
}

impl Mean {
    fn add(&mut self, value: u64) {
        self.sum += u128::from(value);
        self.count += 1;
    }

    fn merge(&mut self, other: Self) {
        self.sum += other.sum;
        self.count += other.count;
    }

    /// Rounded to the nearest.
    pub fn value(self) -> Option<u64> {
        let count = u128::from(self.count);
        let mean = (self.sum + count / 2).checked_div(count)?;
        u64::try_from(mean).ok()
    }
}

impl Merge for Bin {
    fn merge(&mut self, later: Self) {
        self.delay.merge(later.delay);
        self.runslice.merge(later.runslice);
        self.switches += later.switches;
        self.wakeups += later.wakeups;
        self.migrations += later.migrations;
        self.kicks += later.kicks;
        self.callbacks += later.callbacks;
        self.imbalance += later.imbalance;
        self.busy += later.busy;
    }
}

/// Nanoseconds that each group had a CPU in one piece of time.
#[derive(Clone, Debug, Default)]
pub(super) struct Share(pub Vec<(u32, u64)>);

impl Share {
    fn add(&mut self, group: u32, ns: u64) {
        match self.0.iter_mut().find(|(known, _)| *known == group) {
            Some((_, sum)) => *sum += ns,
            None => self.0.push((group, ns)),
        }
    }
}

impl Merge for Share {
    fn merge(&mut self, later: Self) {
        later
            .0
            .into_iter()
            .for_each(|(group, ns)| self.add(group, ns));
    }
}

/// A task's priority and level over time.
#[derive(Clone, Debug, Default)]
pub(super) struct TaskRecord {
    pub name: String,
    pub run: u64,
    /// When, priority, level; only changes.
    pub reports: Vec<(u64, u32, u32)>,
    pub ended: Option<u64>,
}

#[derive(Clone, Debug, Default)]
struct FigureTask {
    group: u32,
    cpu: usize,
    /// It is at a CPU: runnable or running.
    queued: bool,
    waits_since: Option<u64>,
    woken: bool,
}

#[derive(Clone, Debug, Default)]
struct Cpu {
    task: Option<TaskId>,
    since: u64,
    length: u32,
}

/// Takes the events of one run for its figures.
#[derive(Debug, Default)]
pub struct Collector {
    pub(super) header: Option<Header>,
    /// Begin and end of what is drawn.
    pub(super) span: (u64, u64),
    window: Option<(u64, u64)>,
    pub(super) bins: Option<Bins<Bin>>,
    pub(super) rows: Vec<Bins<Share>>,
    pub(super) records: Vec<TaskRecord>,
    pub(super) tracks: Tracks,
    pub(super) turns: Turns,
    pub(super) wakeup: Histogram,
    pub(super) delay: Histogram,
    /// Nanoseconds that each group had CPUs.
    pub(super) group_run: BTreeMap<u32, u64>,
    /// Whether the run has events of the kind that only a simulated machine sends.
    pub(super) has_callbacks: bool,
    /// Whether changes of priorities were left out, because there were too many.
    pub(super) changes_cut: bool,
    changes: usize,
    tasks: Vec<FigureTask>,
    cpus: Vec<Cpu>,
    /// How many CPUs have a run queue of each length.
    lengths: BTreeMap<u32, u32>,
    balanced_to: u64,
}

impl Collector {
    /// Nothing collected yet. With a window, only what happens from its begin to its end is drawn.
    #[must_use]
    pub fn new(window: Option<(SimTime, SimTime)>) -> Self {
        let window = window.map(|(from, to)| (from.as_nanos(), to.as_nanos()));
        Self {
            window,
            ..Self::default()
        }
    }

    /// Of a whole run of the load that `header` tells of. Of few tasks it also wants decisions, so
    /// that a figure can say which line of the policy chose a task.
    #[must_use]
    pub fn of_load(header: &Header) -> Self {
        let mut collector = Self::new(None);
        collector.turns.decides = has_few_tasks(header);
        collector
    }

    /// What the run said of itself; nothing before it began.
    #[must_use]
    pub const fn header(&self) -> Option<&Header> {
        self.header.as_ref()
    }

    /// Whether a moment is in the window.
    fn shows(&self, now: u64) -> bool {
        self.window
            .is_none_or(|(from, to)| (from..to).contains(&now))
    }

    /// The part of a stretch of time that is in the window.
    fn shown(&self, from: u64, to: u64) -> (u64, u64) {
        shown_in(self.window)(from, to)
    }

    /// The bin of a moment, if that is in the window.
    fn bin(&mut self, now: u64) -> Option<&mut Bin> {
        let shows = self.shows(now);
        shows.then(|| self.bins().at(now))
    }

    fn bins(&mut self) -> &mut Bins<Bin> {
        self.bins
            .as_mut()
            .expect("a header comes before the events")
    }

    /// The group of a task that was born.
    pub(super) fn group_of(&self, task: TaskId) -> u32 {
        self.tasks.get(task.index()).map_or(0, |task| task.group)
    }

    fn take(&mut self, event: &Event) {
        let now = event.time.as_nanos();
        self.turns.take(event, shown_in(self.window));
        match event.what() {
            What::New { group, index, .. } => self.born(event.task, group, index),
            What::Wakeup(wakeup) => self.woken(event, wakeup.new),
            What::Migrate { .. } => self.migrated(event, now),
            What::Switch { prev, state, .. } => self.switched(event, prev, state),
            What::Report {
                priority, level, ..
            } => self.reported(event, priority, level),
            What::Exit => {
                if let Some(record) = self.records.get_mut(event.task.index()) {
                    record.ended = Some(now);
                }
            }
            What::Frequency { khz, .. } => self.tracks.clocked(event.cpu.0, now, khz),
            What::Kick { .. } => {
                if let Some(bin) = self.bin(now) {
                    bin.kicks += 1;
                }
            }
            What::Callback { .. } => {
                self.has_callbacks = true;
                if let Some(bin) = self.bin(now) {
                    bin.callbacks += 1;
                }
            }
            _ => {}
        }
    }

    fn born(&mut self, task: TaskId, group: u32, index: u32) {
        let at = task.index();
        let header = self.header.as_ref().expect("a header comes first");
        let name = task_name(header, group, index);
        if self.tasks.len() <= at {
            self.tasks.resize(at + 1, FigureTask::default());
            self.records.resize(at + 1, TaskRecord::default());
        }
        self.tasks[at].group = group;
        self.records[at].name = name;
    }

    fn woken(&mut self, event: &Event, is_new: bool) {
        let now = event.time.as_nanos();
        if let Some(bin) = self.bin(now) {
            bin.wakeups += 1;
        }
        let Some(task) = self.tasks.get_mut(event.task.index()) else {
            return;
        };
        task.waits_since = Some(now);
        task.woken = !is_new;
        task.cpu = event.cpu.index();
        if !std::mem::replace(&mut task.queued, true) {
            self.lengthen(event.cpu.index(), now);
        }
    }

    fn migrated(&mut self, event: &Event, now: u64) {
        if let Some(bin) = self.bin(now) {
            bin.migrations += 1;
        }
        let Some(task) = self.tasks.get_mut(event.task.index()) else {
            return;
        };
        let from = std::mem::replace(&mut task.cpu, event.cpu.index());
        if task.queued {
            self.shorten(from, now);
            self.lengthen(event.cpu.index(), now);
        }
    }

    fn switched(&mut self, event: &Event, prev: TaskId, state: PrevState) {
        let now = event.time.as_nanos();
        let cpu = event.cpu.index();
        if cpu >= self.cpus.len() {
            return;
        }
        if let Some(bin) = self.bin(now) {
            bin.switches += 1;
        }
        self.settle(cpu, now);
        if self.cpus[cpu].task == Some(prev) {
            let ran = now - self.cpus[cpu].since;
            if let Some(bin) = self.bin(now) {
                bin.runslice.add(ran);
            }
        }
        if let Some(task) = self.tasks.get_mut(prev.index()) {
            if state == PrevState::Runnable {
                task.waits_since = Some(now);
                task.woken = false;
            } else if std::mem::take(&mut task.queued) {
                let place = task.cpu;
                self.shorten(place, now);
            }
        }
        self.cpus[cpu].task = (event.task != TaskId::NONE).then_some(event.task);
        self.cpus[cpu].since = now;
        let shown = shown_in(self.window);
        self.tracks
            .switched(cpu, now, event.task != TaskId::NONE, shown);
        let Some(task) = self.tasks.get_mut(event.task.index()) else {
            return;
        };
        let Some(since) = task.waits_since.take() else {
            return;
        };
        let (waited, woken) = (now - since, task.woken);
        if self.shows(now) {
            self.delay.record(Nanos::new(waited));
            if woken {
                self.wakeup.record(Nanos::new(waited));
            }
            self.bins().at(now).delay.add(waited);
        }
    }

    /// Books the time of the task on `cpu` up to `now`.
    fn settle(&mut self, cpu: usize, now: u64) {
        let Cpu { task, since, .. } = self.cpus[cpu];
        let Some(task) = task.filter(|task| task.index() < self.tasks.len()) else {
            return;
        };
        let group = self.tasks[task.index()].group;
        let (from, to) = self.shown(since, now);
        self.records[task.index()].run += to - from;
        *self.group_run.entry(group).or_default() += to - from;
        self.bins().spread(from, to, |bin, ns| bin.busy += ns);
        self.rows[cpu].spread(from, to, |share, ns| share.add(group, ns));
    }

    fn reported(&mut self, event: &Event, priority: u32, level: u32) {
        let now = event.time.as_nanos();
        let Some(record) = self.records.get_mut(event.task.index()) else {
            return;
        };
        let same = |&(_, p, l): &(u64, u32, u32)| (p, l) == (priority, level);
        if record.reports.last().is_some_and(same) {
            return;
        }
        if self.changes == CHANGES_MAX {
            self.changes_cut = true;
            return;
        }
        let (begin, end) = self.window.unwrap_or((0, u64::MAX));
        if now >= end {
            return;
        }
        if now < begin {
            // Where the task stands when the window begins.
            record.reports.clear();
        } else {
            self.changes += 1;
        }
        record.reports.push((now.max(begin), priority, level));
    }

    fn lengthen(&mut self, cpu: usize, now: u64) {
        self.change(cpu, now, |length| length + 1);
    }

    fn shorten(&mut self, cpu: usize, now: u64) {
        self.change(cpu, now, |length| length.saturating_sub(1));
    }

    fn change(&mut self, cpu: usize, now: u64, to: impl Fn(u32) -> u32) {
        if cpu >= self.cpus.len() {
            return;
        }
        self.balance(now);
        let before = self.cpus[cpu].length;
        let after = to(before);
        self.cpus[cpu].length = after;
        if let Some(count) = self.lengths.get_mut(&before) {
            *count -= 1;
            if *count == 0 {
                self.lengths.remove(&before);
            }
        }
        *self.lengths.entry(after).or_default() += 1;
    }

    /// Books the imbalance up to `now`.
    fn balance(&mut self, now: u64) {
        let ends = self
            .lengths
            .first_key_value()
            .zip(self.lengths.last_key_value());
        let gap = ends.map_or(0, |((shortest, _), (longest, _))| longest - shortest);
        let from = std::mem::replace(&mut self.balanced_to, now);
        let (from, to) = self.shown(from, now);
        if gap > 0 {
            let add = |bin: &mut Bin, ns: u64| bin.imbalance += u128::from(ns) * u128::from(gap);
            self.bins().spread(from, to, add);
        }
    }
}

/// The part of a stretch of time that is in a window, if there is one.
fn shown_in(window: Option<(u64, u64)>) -> impl Fn(u64, u64) -> (u64, u64) {
    let (begin, end) = window.unwrap_or((0, u64::MAX));
    move |from, to| (from.max(begin).min(end), to.min(end).max(begin))
}

impl Sink for Collector {
    fn wants(&self) -> EventMask {
        if self.turns.decides {
            EventMask::ALL.union(EventMask::DECISIONS)
        } else {
            EventMask::ALL
        }
    }

    fn begin(&mut self, header: &Header) {
        let (origin, length) = match self.window {
            Some((from, to)) => (from, Some(to.saturating_sub(from))),
            None => (0, header.duration.map(Nanos::get)),
        };
        let cpus = usize::from(header.machine.cpus);
        *self = Self {
            tracks: Tracks::new(header, origin, length),
            turns: Turns::new(header, self.turns.decides),
            header: Some(header.clone()),
            window: self.window,
            bins: Some(Bins::new(BINS, origin, length)),
            rows: (0..cpus)
                .map(|_| Bins::new(COLUMNS, origin, length))
                .collect(),
            cpus: vec![Cpu::default(); cpus],
            lengths: BTreeMap::from([(0, cpus as u32)]),
            ..Self::default()
        };
    }

    fn events(&mut self, events: &[Event]) {
        for event in events {
            self.take(event);
        }
    }

    fn text(&mut self, text: &Text) {
        self.turns.text(text);
    }

    fn finish(&mut self, end: SimTime) {
        self.turns.finish(end, shown_in(self.window));
        let end = end.as_nanos();
        for cpu in 0..self.cpus.len() {
            self.settle(cpu, end);
        }
        self.balance(end);
        self.tracks.finish(end, shown_in(self.window));
        self.span = self.shown(0, end);
    }
}

#[cfg(test)]
mod tests {
    use model::EventKind;

    use super::*;
    use traces::testing::StreamWriter;

    const MS: u64 = 1_000_000;

    /// Two CPUs; 0 has a task for 4 ms and then another for 6 ms, 1 has none.
    fn stream() -> StreamWriter {
        StreamWriter::new()
            .born(0, 0, 0, 0)
            .born(0, 1, 1, 0)
            .wakeup(0, 0, 0)
            .switch(0, 0, None, Some(0))
            .on(0, EventKind::Report, 0, 5 << 32 | 120, 0)
            .wakeup(MS, 1, 0)
            .switch(4 * MS, 0, Some((0, PrevState::Sleeping)), Some(1))
            .on(4 * MS, EventKind::Report, 1, 120, 0)
            .on(5 * MS, EventKind::Report, 1, 120, 0)
            .on(6 * MS, EventKind::Report, 1, 121, 0)
    }

    fn collected() -> Collector {
        let mut collector = Collector::new(None);
        stream().feed(&mut collector, 2, 10 * MS);
        collector
    }

    #[test]
    fn time_and_imbalance_are_conserved() {
        let collector = collected();
        let bins = collector.bins.as_ref().unwrap();
        let busy: u64 = bins.values().iter().map(|bin| bin.busy).sum();
        assert_eq!(busy, 10 * MS);
        // Two tasks at CPU 0 from 1 to 4 ms, and one the rest of the time.
        let imbalance: u128 = bins.values().iter().map(|bin| bin.imbalance).sum();
        assert_eq!(imbalance, 13 * u128::from(MS));
        let rows: Vec<u64> = collector
            .rows
            .iter()
            .map(|row| {
                row.values()
                    .iter()
                    .flat_map(|s| &s.0)
                    .map(|(_, ns)| ns)
                    .sum()
            })
            .collect();
        assert_eq!(rows, [10 * MS, 0]);
        assert_eq!(
            collector.group_run,
            BTreeMap::from([(0, 4 * MS), (1, 6 * MS)])
        );
    }

    #[test]
    fn waits_and_turns_are_those_of_the_metrics() {
        let collector = collected();
        assert_eq!(collector.delay.max(), Some(Nanos::new(3 * MS)));
        assert_eq!((collector.wakeup.count(), collector.delay.count()), (2, 2));
        let slices: Vec<u64> = collector
            .bins
            .as_ref()
            .unwrap()
            .values()
            .iter()
            .filter_map(|bin| bin.runslice.value())
            .collect();
        assert_eq!(
            slices,
            [4 * MS],
            "a turn that is open at the end is none yet"
        );
    }

    #[test]
    fn only_changes_of_a_report_are_kept() {
        let records = collected().records;
        assert_eq!(records[0].reports, [(0, 120, 5)]);
        assert_eq!(records[1].reports, [(4 * MS, 120, 0), (6 * MS, 121, 0)]);
    }

    #[test]
    fn two_bins_that_become_one_have_the_sum_of_each_count() {
        let bin = |by: u64| Bin {
            delay: Mean {
                sum: u128::from(by),
                count: 2 * by,
            },
            runslice: Mean {
                sum: u128::from(3 * by),
                count: 4 * by,
            },
            switches: 5 * by,
            wakeups: 6 * by,
            migrations: 7 * by,
            kicks: 8 * by,
            callbacks: 9 * by,
            imbalance: u128::from(10 * by),
            busy: 11 * by,
        };
        let mut sum = bin(1);
        sum.merge(bin(100));
        assert_eq!(format!("{sum:?}"), format!("{:?}", bin(101)));
    }

    #[test]
    fn a_window_shows_what_is_in_it() {
        let whole = collected();
        let window = Some((4, 8))
            .map(|(from, to)| (SimTime::from_nanos(from * MS), SimTime::from_nanos(to * MS)));
        let mut part = Collector::new(window);
        stream().feed(&mut part, 2, 10 * MS);
        assert_eq!((whole.span, part.span), ((0, 10 * MS), (4 * MS, 8 * MS)));
        assert_eq!(part.group_run, BTreeMap::from([(0, 0), (1, 4 * MS)]));
        assert_eq!(part.delay.count(), 1, "the wait that ends in it");
        assert_eq!(
            part.records[0].reports,
            [(4 * MS, 120, 5)],
            "where it stood before"
        );
        let busy: u64 = part.bins.unwrap().values().iter().map(|bin| bin.busy).sum();
        assert_eq!(busy, 4 * MS);
    }
}

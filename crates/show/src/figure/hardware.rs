//! Tracks below the rows of CPUs: frequencies, and cores whose two threads both had a task.

use std::collections::BTreeMap;

use model::{CpuId, Header, MachineSpec};

use super::bins::{Bins, Merge};
use super::chart::{Body, Chart, Curve, Join, Lane};
use super::collect::{CHANGES_MAX, COLUMNS, Collector};
use super::ink::Ink;
use super::run::{LANES_MAX, joined};
use super::scale::{Axis, Quantity};

/// Clocks whose frequency is drawn.
const CLOCKS_SHOWN: usize = 8;

/// Nanoseconds of a piece of time in which both threads of a core had a task.
#[derive(Clone, Copy, Debug, Default)]
struct Both(u64);

impl Merge for Both {
    fn merge(&mut self, later: Self) {
        self.0 += later.0;
    }
}

/// A core with two threads.
#[derive(Clone, Debug)]
struct SharedCore {
    threads: [usize; 2],
    busy: [bool; 2],
    since: u64,
    both: Bins<Both>,
}

/// What is drawn of CPUs that differ; nothing of other machines.
#[derive(Clone, Debug, Default)]
pub(super) struct Tracks {
    cores: Vec<SharedCore>,
    /// When a clock got which frequency in kHz, by its first CPU.
    clocks: BTreeMap<u16, Vec<(u64, u32)>>,
    changes: usize,
}

impl Tracks {
    /// Tracks of a run, `length` nanoseconds from `origin` on.
    pub fn new(header: &Header, origin: u64, length: Option<u64>) -> Self {
        let has_hardware = header.machine.hardware.is_some();
        let core = |cpus: &[CpuId]| {
            let [first, second] = *cpus else { return None };
            Some(SharedCore {
                threads: [first.index(), second.index()],
                busy: [false; 2],
                since: 0,
                both: Bins::new(COLUMNS, origin, length),
            })
        };
        let places = MachineSpec::places(&header.machine);
        let cores = places.cores.iter().filter(|_| has_hardware);
        Self {
            cores: cores
                .filter_map(|cpus| core(cpus))
                .take(LANES_MAX)
                .collect(),
            ..Self::default()
        }
    }

    /// A CPU has a task from `now` on, or has none; time is drawn as `shown` says.
    pub fn switched(
        &mut self,
        cpu: usize,
        now: u64,
        is_busy: bool,
        shown: impl Fn(u64, u64) -> (u64, u64),
    ) {
        for core in &mut self.cores {
            let Some(at) = core.threads.iter().position(|it| *it == cpu) else {
                continue;
            };
            if core.busy == [true; 2] {
                let (from, to) = shown(core.since, now);
                core.both.spread(from, to, |both, ns| both.0 += ns);
            }
            core.busy[at] = is_busy;
            core.since = now;
        }
    }

    /// The clock whose first CPU is `cpu` has this frequency from `now` on.
    pub fn clocked(&mut self, cpu: u16, now: u64, khz: u64) {
        if self.changes < CHANGES_MAX {
            self.changes += 1;
            let khz = u32::try_from(khz).unwrap_or(u32::MAX);
            self.clocks.entry(cpu).or_default().push((now, khz));
        }
    }

    /// CPUs stop at `now`.
    pub fn finish(&mut self, now: u64, shown: impl Fn(u64, u64) -> (u64, u64)) {
        let first = |core: &SharedCore| core.threads;
        let all: Vec<usize> = self.cores.iter().flat_map(first).collect();
        all.into_iter()
            .for_each(|cpu| self.switched(cpu, now, false, &shown));
    }
}

impl Collector {
    /// The tracks that have something to show.
    pub(super) fn tracks(&self) -> Vec<Chart> {
        [self.frequencies(), self.shared_cores()]
            .into_iter()
            .flatten()
            .collect()
    }

    /// A panel for each of the clocks that changed most often.
    fn frequencies(&self) -> Option<Chart> {
        let (begin, end) = self.span;
        let clocks = self.tracks.clocks.iter();
        let mut clocks: Vec<_> = clocks.filter(|(_, changes)| changes.len() > 1).collect();
        clocks.sort_by_key(|(cpu, changes)| (std::cmp::Reverse(changes.len()), **cpu));
        clocks.truncate(CLOCKS_SHOWN);
        clocks.sort();
        let curve = |(cpu, changes): &(&u16, &Vec<(u64, u32)>)| {
            // What holds when the window begins comes first.
            let before = changes.iter().rev().find(|(time, _)| *time <= begin);
            let within = changes
                .iter()
                .filter(|(time, _)| (begin + 1..end).contains(time));
            let shown = before.into_iter().chain(within);
            let mut points: Vec<(u64, Option<u64>)> = shown
                .map(|(time, khz)| ((*time).max(begin), Some(u64::from(*khz))))
                .collect();
            points.extend(points.last().map(|(_, last)| (end, *last)));
            Curve {
                name: format!("CPU {cpu}"),
                ink: Ink::of_schedulers([self.policy()])[0],
                join: Join::Step,
                points,
            }
        };
        (!clocks.is_empty()).then(|| Chart {
            id: "frequency".into(),
            title: "Frequency of CPUs".into(),
            subtitle: self.described(),
            description: "The frequency of the CPUs of one clock, which bears the number of the \
                          first of them; at most eight clocks, those that changed most often."
                .into(),
            body: Body::Panels {
                x: Axis::new("time", Quantity::Time),
                y: Axis::new("frequency, MHz", Quantity::Thousandths),
                span: self.span,
                curves: clocks.iter().map(curve).collect(),
            },
        })
    }

    /// A row for each core of two threads.
    fn shared_cores(&self) -> Option<Chart> {
        let lane = |core: &SharedCore| {
            let columns = core.both.spans().map(|((from, to), both)| {
                let to = to.min(self.span.1);
                (
                    from,
                    to,
                    (both.0 * 2 > to.saturating_sub(from)).then_some(0),
                )
            });
            Lane {
                name: format!("CPUs {} and {}", core.threads[0], core.threads[1]),
                stretches: joined(columns),
            }
        };
        let lanes: Vec<Lane> = self.tracks.cores.iter().map(lane).collect();
        let has_some = lanes.iter().any(|lane| !lane.stretches.is_empty());
        has_some.then(|| Chart {
            id: "shared-cores".into(),
            title: "Cores that two tasks shared".into(),
            subtitle: self.described(),
            description: "Each row is a core. A piece of time has a colour if both threads of the \
                          core had a task in more than half of it."
                .into(),
            body: Body::Lanes {
                span: self.span,
                names: vec!["both threads".to_owned()],
                lanes,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use model::EventKind;
    use traces::testing::StreamWriter;

    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn changes_of_a_frequency_are_steps_to_the_end() {
        let stream = StreamWriter::new()
            .on(0, EventKind::Frequency, u32::MAX, 1_803_000, 0)
            .on(3 * MS, EventKind::Frequency, u32::MAX, 300_000, 0);
        let mut collector = Collector::new(None);
        stream.feed(&mut collector, 2, 10 * MS);
        let charts = collector.tracks();
        let Body::Panels { curves, .. } = &charts[0].body else {
            panic!("{charts:?}");
        };
        let points = [(0, 1_803_000), (3 * MS, 300_000), (10 * MS, 300_000)];
        assert_eq!(
            curves[0].points,
            points.map(|(time, khz)| (time, Some(khz)))
        );
        assert_eq!(charts.len(), 1, "no core has two threads");
    }

    #[test]
    fn a_core_is_shared_while_both_of_its_threads_have_a_task() {
        let mut tracks = Tracks {
            cores: vec![SharedCore {
                threads: [0, 4],
                busy: [false; 2],
                since: 0,
                both: Bins::new(COLUMNS, 0, Some(10 * MS)),
            }],
            ..Tracks::default()
        };
        let all = |from, to| (from, to);
        tracks.switched(0, MS, true, all);
        tracks.switched(4, 3 * MS, true, all);
        tracks.switched(1, 4 * MS, false, all);
        tracks.switched(0, 5 * MS, false, all);
        tracks.finish(10 * MS, all);
        let both: u64 = tracks.cores[0].both.values().iter().map(|it| it.0).sum();
        assert_eq!(both, 2 * MS);
    }
}

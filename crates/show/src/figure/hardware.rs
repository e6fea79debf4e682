//! Tracks below the rows of CPUs: frequencies, and cores whose two threads both had a task.

use super::chart::{Body, Chart, Curve, Join, Lane};
use super::collect::Collector;
use super::ink::Ink;
use super::run::joined;
use super::scale::{Axis, Quantity};
use super::tracks::SharedCore;

/// Clocks whose frequency is drawn.
const CLOCKS_SHOWN: usize = 8;

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
                told: Vec::new(),
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
}

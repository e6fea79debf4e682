//! The figures of a log of `/proc/schedstat`.

use super::chart::{Body, Chart, Curve, Join};
use super::ink::Ink;
use super::scale::{Axis, Quantity};
use model::Nanos;
use stats::schedstat::{CpuInterval, Interval};

/// A log of statistics.
#[derive(Clone, Debug)]
pub struct Statistics {
    /// Its name in legends.
    pub name: String,
    /// Jiffies a second.
    pub hz: u32,
    /// What happened between its snapshots, in their order.
    pub intervals: Vec<Interval>,
}

impl Statistics {
    /// Latency, runslice and use of the CPUs over the whole log, in a line.
    #[must_use]
    pub fn in_words(&self) -> String {
        let mut parts = Vec::new();
        let sums = self.intervals.iter().map(|interval| {
            let cpus = interval.cpus.len();
            (
                interval.jiffies(),
                interval.figures(&interval.total(), cpus, self.hz),
            )
        });
        let sums: Vec<_> = sums.collect();
        let jiffies: u64 = sums.iter().map(|(length, _)| length).sum();
        let nanos = |of: &dyn Fn(&stats::schedstat::Figures) -> Option<Nanos>| {
            // The mean over all turns on a CPU, of which each interval has its number.
            let known = sums
                .iter()
                .filter_map(|(_, it)| Some((of(it)?, it.slices?)));
            let (sum, count) = known.fold((0_u128, 0_u128), |(sum, count), (span, slices)| {
                let slices = u128::from(slices);
                (sum + u128::from(span.get()) * slices, count + slices)
            });
            let mean = sum.checked_div(count)?;
            u64::try_from(mean).ok().map(Nanos::new)
        };
        if let Some(latency) = nanos(&|it| it.latency) {
            parts.push(format!("tasks waited {latency} for a CPU on average"));
        }
        if let Some(runslice) = nanos(&|it| it.runslice) {
            parts.push(format!("and kept it for {runslice}"));
        }
        let length = Nanos::new(nanoseconds(jiffies, self.hz));
        if parts.is_empty() {
            format!("{length} of statistics, which do not count waits")
        } else {
            format!("{} ({length})", parts.join(" "))
        }
    }

    /// A curve of a number of each interval, at its middle.
    fn curve(&self, ink: Ink, of: &Value) -> Curve {
        let mut now = 0_u64;
        let points = self.intervals.iter().map(|interval| {
            let length = nanoseconds(interval.jiffies(), self.hz);
            let middle = now + length / 2;
            now = now.saturating_add(length);
            (
                middle,
                of(&Look {
                    log: self,
                    interval,
                    length,
                }),
            )
        });
        Curve {
            name: self.name.clone(),
            ink,
            join: Join::Line,
            points: points.collect(),
        }
    }
}

/// An interval, its log and its length in nanoseconds.
struct Look<'a> {
    log: &'a Statistics,
    interval: &'a Interval,
    length: u64,
}

type Value = dyn Fn(&Look<'_>) -> Option<u64>;

impl Look<'_> {
    fn figures(&self) -> stats::schedstat::Figures {
        let total = self.interval.total();
        let cpus = self.interval.cpus.len();
        self.interval.figures(&total, cpus, self.log.hz)
    }

    /// Thousandths of an event a second.
    fn rate(&self, count: impl Fn(&CpuInterval) -> Option<u128>) -> Option<u64> {
        let count = count(&self.interval.total())?;
        let rate = (count * 1_000_000_000_000).checked_div(u128::from(self.length))?;
        u64::try_from(rate).ok()
    }
}

fn nanoseconds(jiffies: u64, hz: u32) -> u64 {
    let ns = u128::from(jiffies) * 1_000_000_000 / u128::from(hz.max(1));
    u64::try_from(ns).unwrap_or(u64::MAX)
}

fn subtitle(log: &Statistics) -> String {
    let first = log.intervals.first();
    let version = first.map_or(0, |first| first.layout().version);
    let cpus = first.map_or(0, |first| first.cpus.len());
    let s = if cpus == 1 { "" } else { "s" };
    format!(
        "{}: statistics of version {version}, {cpus} CPU{s}",
        log.name
    )
}

/// A curve of each log.
fn curves(logs: &[Statistics], value: &Value) -> Vec<Curve> {
    let inks = Ink::of_schedulers(logs.iter().map(|log| log.name.as_str()));
    let logs = logs.iter().zip(inks);
    logs.map(|(log, ink)| log.curve(ink, value)).collect()
}

/// The figures of one or more logs, over each other. Numbers that a version does not count are
/// left out.
#[must_use]
pub fn of_statistics(logs: &[Statistics]) -> Vec<Chart> {
    let length = |log: &Statistics| log.intervals.iter().map(Interval::jiffies).sum::<u64>();
    let ends = logs.iter().map(|log| nanoseconds(length(log), log.hz));
    let end = ends.max().unwrap_or(0);
    let subtitles: Vec<String> = logs.iter().map(subtitle).collect();
    let chart = |id: &str, title: &str, text: &str, y: Axis, value: &Value| Chart {
        id: format!("statistics-{id}"),
        title: title.into(),
        subtitle: subtitles.join("; "),
        description: format!("{text} From the difference of each two snapshots."),
        body: Body::Curves {
            x: Axis::new("time", Quantity::Time),
            y,
            span: Some((0, end)),
            curves: curves(logs, value),
        },
    };
    let mut charts = vec![
        chart(
            "latency",
            "Latency over time",
            "The average wait for a CPU: run_delay / pcnt.",
            Axis::new("latency", Quantity::Time),
            &|look| look.figures().latency.map(Nanos::get),
        ),
        chart(
            "runslice",
            "Runslice over time",
            "The average time on a CPU until leaving it: cpu_time / pcnt.",
            Axis::new("runslice", Quantity::Time),
            &|look| look.figures().runslice.map(Nanos::get),
        ),
        chart(
            "imbalance",
            "Imbalance over time",
            "The sum of imbalances that the balancer found, divided by its calls.",
            Axis::new("imbalance a call", Quantity::Thousandths),
            &|look| {
                let figures = look.figures();
                let first = figures.imbalance.first()?;
                first.per_call.map(|average| average.0 / 1_000)
            },
        ),
        chart(
            "balance",
            "Calls of the balancer",
            "How often load_balance() was called, on all CPUs together.",
            Axis::new("load_balance()", Quantity::Rate),
            &|look| look.rate(|total| total.balance_calls(look.interval.layout())),
        ),
        chart(
            "schedule",
            "Calls of schedule()",
            "How often schedule() was called, on all CPUs together.",
            Axis::new("schedule()", Quantity::Rate),
            &|look| look.rate(|total| total.get(look.interval.layout(), "sched_cnt")),
        ),
        chart(
            "busy",
            "Use of the CPUs over time",
            "The part of all CPU time that tasks had.",
            Axis::new("busy", Quantity::Share),
            &|look| look.figures().busy.map(|share| share.0),
        ),
    ];
    charts.retain(|chart| !chart.body.is_empty());
    charts
}

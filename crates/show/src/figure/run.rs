//! The figures of runs that sent events.

use super::chart::{Body, Chart, Curve, Join, Lane};
use super::collect::{Bin, Collector, Share, TaskRecord};
use super::ink::{COLOURS, Ink};
use super::scale::{Axis, Quantity};
use stats::{Histogram, Millionths};

/// Tasks whose priority is drawn.
const TASKS_SHOWN: usize = 6;
/// CPUs whose row is drawn.
const LANES_MAX: usize = 64;
/// Bars of a histogram for each power of two.
const BARS: u64 = 4;

impl Collector {
    /// How figures and pages call the run: `mlfq`.
    #[must_use]
    pub fn policy(&self) -> &str {
        self.header.as_ref().map_or("", |header| &header.policy)
    }

    /// Policy, workload, machine and seed in a line.
    #[must_use]
    pub fn described(&self) -> String {
        format!("policy {}, {}", self.policy(), self.place())
    }

    /// Workload, machine and seed in a line.
    #[must_use]
    pub fn place(&self) -> String {
        let Some(header) = &self.header else {
            return String::new();
        };
        let machine = &header.machine;
        let computer = match machine.textbook {
            // It has one CPU and no ticks.
            Some(order) => format!("machine {order}"),
            None => format!(
                "{} CPU{}, HZ {}",
                machine.cpus,
                if machine.cpus == 1 { "" } else { "s" },
                machine.hz
            ),
        };
        format!(
            "workload {}, {computer}, kernel {}, seed {}",
            header.workload,
            machine.kernel.name(),
            header.seed
        )
    }

    fn bins_of(&self, value: impl Fn(&Bin, u64) -> Option<u64>) -> Vec<(u64, Option<u64>)> {
        let Some(bins) = &self.bins else {
            return Vec::new();
        };
        let bins = bins.spans();
        bins.map(|((from, to), bin)| {
            // The last bin is only as long as the run.
            let length = self.span.1.saturating_sub(from).clamp(1, to - from);
            (from + length / 2, value(bin, length))
        })
        .collect()
    }

    fn curve(&self, name: &str, ink: Ink, value: impl Fn(&Bin, u64) -> Option<u64>) -> Curve {
        Curve {
            name: name.to_owned(),
            ink,
            join: Join::Line,
            points: self.bins_of(value),
        }
    }

    /// The figures of this run alone: rates, priorities and levels of tasks, CPUs.
    #[must_use]
    pub fn charts(&self) -> Vec<Chart> {
        let mut charts = vec![self.calls()];
        charts.extend(self.priorities());
        charts.push(self.cpus());
        charts.extend(self.tracks());
        charts.retain(|chart| !chart.body.is_empty());
        charts
    }

    fn calls(&self) -> Chart {
        let rate = |count: u64, ns: u64| {
            let rate = u128::from(count) * 1_000_000_000_000 / u128::from(ns);
            Some(u64::try_from(rate).unwrap_or(u64::MAX))
        };
        let mut curves = vec![
            self.curve("switches", Ink::kind(0), |bin, ns| rate(bin.switches, ns)),
            self.curve("wakeups", Ink::kind(1), |bin, ns| rate(bin.wakeups, ns)),
            self.curve("migrations", Ink::kind(2), |bin, ns| {
                rate(bin.migrations, ns)
            }),
        ];
        if self.has_callbacks {
            let callbacks = |bin: &Bin, ns| rate(bin.callbacks, ns);
            curves.push(self.curve("callbacks of the policy", Ink::kind(3), callbacks));
            curves.push(self.curve("kicks", Ink::kind(4), |bin, ns| rate(bin.kicks, ns)));
        }
        Chart {
            id: "calls".into(),
            title: "Calls per second".into(),
            subtitle: self.described(),
            description:
                "How often CPUs changed their task, tasks woke and tasks moved to another \
                          CPU; in a simulated run also how often the policy was called \
                          and kicked a CPU. All CPUs together."
                    .into(),
            body: Body::Curves {
                x: Axis::new("time", Quantity::Time),
                y: Axis::new("calls", Quantity::Rate),
                span: Some(self.span),
                curves,
            },
        }
    }

    /// Priority and level, each of those tasks for which it changed most.
    fn priorities(&self) -> Vec<Chart> {
        let priority = Axis {
            inverted: true,
            ..Axis::new("priority, better above", Quantity::Count)
        };
        let level = Axis::new("level, as the policy counts", Quantity::Count);
        let charts = [
            self.panels(
                ("priority", "Priority of tasks"),
                "priority, of which a lower number is better,",
                priority,
                |priority, _| priority,
            ),
            self.panels(("level", "Level of tasks"), "level", level, |_, level| {
                level
            }),
        ];
        charts.into_iter().flatten().collect()
    }

    /// A panel for each task whose place `of` changed; `None` if none did.
    fn panels(
        &self,
        (id, title): (&str, &str),
        what: &str,
        y: Axis,
        of: fn(u32, u32) -> u32,
    ) -> Option<Chart> {
        let changes = |record: &TaskRecord| {
            let places = record.reports.iter().map(|&(_, p, l)| of(p, l));
            places
                .clone()
                .zip(places.skip(1))
                .filter(|(a, b)| a != b)
                .count()
        };
        let records = self.records.iter().map(|record| (changes(record), record));
        let mut records: Vec<(usize, &TaskRecord)> =
            records.filter(|record| record.0 > 0).collect();
        records.sort_by_key(|(changes, record)| std::cmp::Reverse((*changes, record.run)));
        let all = records.len();
        records.truncate(TASKS_SHOWN);
        if records.is_empty() {
            return None;
        }
        let which = if all > TASKS_SHOWN {
            format!("the {TASKS_SHOWN} of {all} tasks for which it changed most often")
        } else {
            "those tasks for which it changed".to_owned()
        };
        let cut = if self.changes_cut {
            " There were too many changes: the last ones are left out."
        } else {
            ""
        };
        Some(Chart {
            id: id.into(),
            title: title.into(),
            subtitle: self.described(),
            description: format!(
                "The {what} that the policy gave a task whenever it began to run; a panel for each \
                 of {which}.{cut}"
            ),
            body: Body::Panels {
                x: Axis::new("time", Quantity::Time),
                y,
                span: self.span,
                curves: records
                    .iter()
                    .map(|(_, record)| self.steps(record, of))
                    .collect(),
            },
        })
    }

    /// One curve, in the colour of the scheduler.
    fn steps(&self, record: &TaskRecord, of: fn(u32, u32) -> u32) -> Curve {
        let reports = record.reports.iter();
        let mut points: Vec<(u64, Option<u64>)> = reports
            .map(|&(time, priority, level)| (time, Some(u64::from(of(priority, level)))))
            .collect();
        if let Some(&(_, last)) = points.last() {
            points.push((record.ended.unwrap_or(self.span.1).min(self.span.1), last));
        }
        Curve {
            name: record.name.clone(),
            ink: Ink::of_schedulers([self.policy()])[0],
            join: Join::Step,
            points,
        }
    }

    /// Which group had which CPU when.
    fn cpus(&self) -> Chart {
        let mut groups: Vec<(u32, u64)> = self.group_run.iter().map(|(g, ns)| (*g, *ns)).collect();
        groups.sort_by_key(|&(group, ns)| (std::cmp::Reverse(ns), group));
        let colour = |group: u32| {
            let place = groups.iter().position(|(known, _)| *known == group);
            place.unwrap_or(COLOURS).min(COLOURS)
        };
        let name = |group: u32| {
            let header = self.header.as_ref();
            let named = header.and_then(|header| header.groups.get(group as usize));
            named.map_or_else(|| format!("group {group}"), |group| group.name.clone())
        };
        let mut names: Vec<String> = groups
            .iter()
            .take(COLOURS)
            .map(|(group, _)| name(*group))
            .collect();
        if groups.len() > COLOURS {
            names.push("others".to_owned());
        }
        let lanes = self.rows.iter().enumerate().take(LANES_MAX);
        let lanes = lanes.map(|(cpu, row)| {
            let columns = row.spans().map(|((from, to), share)| {
                let to = to.min(self.span.1);
                (from, to, winner(share, to.saturating_sub(from)).map(colour))
            });
            Lane {
                name: format!("CPU {cpu}"),
                stretches: joined(columns),
                told: Vec::new(),
            }
        });
        let left_out = self.rows.len().saturating_sub(LANES_MAX);
        let more = match left_out {
            0 => String::new(),
            _ => format!(" {left_out} CPUs more are not drawn."),
        };
        Chart {
            id: "cpus".into(),
            title: "Who had the CPUs".into(),
            subtitle: self.described(),
            description: format!(
                "Each row is a CPU. A piece of time has the colour of the task group that had the \
                 CPU longest in it, and none if it was idle for more than half of it.{more}"
            ),
            body: Body::Lanes {
                span: self.span,
                names,
                lanes: lanes.collect(),
            },
        }
    }
}

/// Who had most of a piece of time, if it was not idle for more than half.
pub(super) fn winner(share: &Share, width: u64) -> Option<u32> {
    let busy: u64 = share.0.iter().map(|(_, ns)| ns).sum();
    let best = share
        .0
        .iter()
        .max_by_key(|&&(group, ns)| (ns, std::cmp::Reverse(group)))?;
    (busy * 2 >= width).then_some(best.0)
}

/// Joins neighbours of one colour.
pub(super) fn joined(
    columns: impl Iterator<Item = (u64, u64, Option<usize>)>,
) -> Vec<(u64, u64, usize)> {
    let mut stretches: Vec<(u64, u64, usize)> = Vec::new();
    for (from, to, colour) in columns {
        let Some(colour) = colour else { continue };
        match stretches.last_mut() {
            Some(last) if (last.1, last.2) == (from, colour) => last.1 = to,
            _ => stretches.push((from, to, colour)),
        }
    }
    stretches
}

/// The figures that show several runs over each other: latency, runslice, imbalance, how busy
/// they were, histograms.
#[must_use]
pub fn comparison(runs: &[&Collector]) -> Vec<Chart> {
    let names = names(runs);
    let inks = inks(runs, &names);
    let spans = runs.iter().map(|run| run.span);
    let begin = spans.clone().map(|span| span.0).min().unwrap_or(0);
    let end = spans.map(|span| span.1).max().unwrap_or(0);
    let subtitle = subtitle(runs);
    let over_time = |id: &str, title: &str, text: &str, y: Axis, value: &Value| {
        let curves = runs.iter().zip(names.iter().zip(&inks));
        let curves = curves.map(|(run, (name, ink))| {
            let cpus = run.rows.len().max(1) as u64;
            run.curve(name, *ink, |bin, ns| value(bin, ns, cpus))
        });
        Chart {
            id: id.into(),
            title: title.into(),
            subtitle: subtitle.clone(),
            description: text.into(),
            body: Body::Curves {
                x: Axis::new("time", Quantity::Time),
                y,
                span: Some((begin, end)),
                curves: curves.collect(),
            },
        }
    };
    let mut charts = vec![
        over_time(
            "latency",
            "Latency over time",
            "How long tasks were runnable before they got a CPU, on the average of those that got \
             one in each piece of time. Waits after a preemption are in it.",
            Axis::new("mean run delay", Quantity::Time),
            &|bin, _, _| bin.delay.value(),
        ),
        over_time(
            "runslice",
            "Runslice over time",
            "How long tasks had a CPU until they left it, on the average of those that left one in \
             each piece of time.",
            Axis::new("mean runslice", Quantity::Time),
            &|bin, _, _| bin.runslice.value(),
        ),
        over_time(
            "imbalance",
            "Imbalance over time",
            "The longest run queue less the shortest, on the average over each piece of time.",
            Axis::new("imbalance, tasks", Quantity::Thousandths),
            &|bin, ns, _| Some((bin.imbalance * 1_000 / u128::from(ns)) as u64),
        ),
        over_time(
            "busy",
            "Use of the CPUs over time",
            "The part of all CPU time that tasks had in each piece of time.",
            Axis::new("busy", Quantity::Share),
            &|bin, ns, cpus| Some(millionths(bin.busy, ns.saturating_mul(cpus))),
        ),
    ];
    charts.extend(histograms(runs, &names, &inks));
    charts.retain(|chart| !chart.body.is_empty());
    charts
}

/// The colours of runs that are called so: one each, those of the schedulers if nothing else tells
/// them apart.
fn inks(runs: &[&Collector], names: &[String]) -> Vec<Ink> {
    let is_told_apart = runs
        .iter()
        .zip(names)
        .all(|(run, name)| run.policy() == name);
    if is_told_apart {
        Ink::of_schedulers(runs.iter().map(|run| run.policy()))
    } else {
        Ink::of_schedulers(names.iter().map(String::as_str))
    }
}

/// How long tasks waited, in each run.
fn histograms(runs: &[&Collector], names: &[String], inks: &[Ink]) -> Vec<Chart> {
    let subtitle = subtitle(runs);
    let mut charts = Vec::new();
    let histograms = [
        (
            "wakeup-histogram",
            "Wakeup latency",
            "wakeup latency",
            "How long woken tasks waited for a CPU.",
        ),
        (
            "delay-histogram",
            "Run delay",
            "run delay",
            "How long tasks waited for a CPU, after wakeups, at their start and after preemptions.",
        ),
    ];
    for (index, (id, title, label, text)) in histograms.into_iter().enumerate() {
        let curves = runs.iter().zip(names.iter().zip(inks));
        let curves = curves.map(|(run, (name, ink))| {
            let of = if index == 0 { &run.wakeup } else { &run.delay };
            histogram(name, *ink, of)
        });
        charts.push(Chart {
            id: id.into(),
            title: title.into(),
            subtitle: subtitle.clone(),
            description: format!(
                "{text} The share of all waits that have the length below, in bars that are a \
                 quarter of a power of two wide; waits below 100 ns stand at the left edge."
            ),
            body: Body::Curves {
                x: Axis {
                    logarithmic: true,
                    ..Axis::new(label, Quantity::Time)
                },
                y: Axis::new("share of the waits", Quantity::Share),
                span: None,
                curves: curves.collect(),
            },
        });
    }
    charts
}

/// What a curve shows of a bin, its length and the number of CPUs.
type Value = dyn Fn(&Bin, u64, u64) -> Option<u64>;

/// Names that tell the runs apart: policies if they do, then workloads and seeds too.
#[must_use]
pub fn names_of(runs: &[&Collector]) -> Vec<String> {
    names(runs)
}

fn names(runs: &[&Collector]) -> Vec<String> {
    let forms: [fn(&Collector) -> String; 3] = [
        |run| run.policy().to_owned(),
        |run| {
            let header = run.header.as_ref();
            let workload = header.map_or("", |header| &header.workload);
            format!("{}, {workload}", run.policy())
        },
        |run| {
            let header = run.header.as_ref();
            let workload = header.map_or("", |header| &header.workload);
            let seed = header.map_or(0, |header| header.seed);
            format!("{}, {workload}, seed {seed}", run.policy())
        },
    ];
    for form in forms {
        let names: Vec<String> = runs.iter().map(|run| form(run)).collect();
        let mut unique = names.clone();
        unique.sort();
        unique.dedup();
        if unique.len() == names.len() {
            return names;
        }
    }
    let numbered = runs.iter().enumerate();
    numbered
        .map(|(index, run)| format!("{} ({})", forms[2](run), index + 1))
        .collect()
}

fn subtitle(runs: &[&Collector]) -> String {
    let Some(first) = runs.first() else {
        return String::new();
    };
    if let [only] = runs {
        return only.described();
    }
    let place = first.place();
    if runs.iter().all(|run| run.place() == place) {
        let policies: Vec<&str> = runs.iter().map(|run| run.policy()).collect();
        return format!("policies {}, {place}", policies.join(", "));
    }
    let all: Vec<String> = runs.iter().map(|run| run.described()).collect();
    all.join("; ")
}

/// The shares of a distribution's values, by quarters of powers of two.
fn histogram(name: &str, ink: Ink, of: &Histogram) -> Curve {
    const LEAST: u64 = 100;
    let mut bars: Vec<(u64, u64)> = Vec::new();
    for (value, count) in of.values() {
        let bar = bar_of(value.max(LEAST));
        match bars.last_mut() {
            Some((last, sum)) if *last == bar => *sum += count,
            _ => bars.push((bar, count)),
        }
    }
    let mut points = Vec::new();
    let mut end = None;
    for (bar, count) in bars {
        let (from, to) = (bar_start(bar), bar_start(bar + 1));
        match end {
            Some(end) if end < from => points.push((end, Some(0))),
            Some(_) => {}
            None => points.push((from, Some(0))),
        }
        points.push((from, Some(millionths(count, of.count()))));
        end = Some(to);
    }
    points.extend(end.map(|end| (end, Some(0))));
    Curve {
        name: name.to_owned(),
        ink,
        join: Join::Step,
        points,
    }
}

pub(super) fn millionths(part: u64, whole: u64) -> u64 {
    Millionths::of(part.into(), whole.into()).0
}

/// The bar that holds `value`, 1 or more.
const fn bar_of(value: u64) -> u64 {
    let octave = value.ilog2();
    // The next two bits below the highest one.
    let quarter = if octave >= 2 {
        (value >> (octave - 2)) & 3
    } else {
        (value << (2 - octave)) & 3
    };
    octave as u64 * BARS + quarter
}

/// The least value of a bar.
const fn bar_start(bar: u64) -> u64 {
    let (octave, quarter) = (bar / BARS, bar % BARS);
    if octave >= u64::BITS as u64 {
        return u64::MAX;
    }
    let value = ((4 + quarter) as u128) << octave >> 2;
    value as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Nanos;

    #[test]
    fn the_bars_of_a_histogram_have_all_values_and_between_them_is_nothing() {
        let mut of = Histogram::default();
        for (value, many) in [(1_000, 3), (1_100, 1), (1_300, 2), (9_000, 4)] {
            (0..many).for_each(|_| of.record(Nanos::new(value)));
        }
        let points = histogram("h", Ink::GREY, &of).points;
        // 1000 lies in the last quarter of 512 to 1023, 1100 and 1300 in the first two of the next.
        let want = [
            (896, Some(0)),
            (896, Some(300_000)),
            (1024, Some(100_000)),
            (1280, Some(200_000)),
            (1536, Some(0)),
            (8192, Some(400_000)),
            (10_240, Some(0)),
        ];
        assert_eq!(points, want);
    }

    /// Bars are of rising values, four for each power of two, from 4 on all different.
    #[test]
    fn every_value_lies_in_its_bar() {
        let around = (0..64).flat_map(|power| {
            let power = 1_u64 << power;
            [
                power,
                power + power / 4,
                power + power / 2,
                power + power / 4 * 3,
            ]
        });
        let values = around.flat_map(|it| [it - 1, it, it.saturating_add(1), it + it / 8]);
        for value in (1..70).chain(values).chain([u64::MAX]).filter(|it| *it > 0) {
            let bar = bar_of(value);
            let (from, to) = (bar_start(bar), bar_start(bar + 1));
            // Those below 4 have a bar of their own, the last one has no end.
            let fits = match value {
                0..4 => value == from,
                4..0xf000_0000_0000_0000 => from <= value && value < to,
                _ => from <= value,
            };
            assert!(fits, "{value}: {from} to {to}");
            assert_eq!(bar / BARS, u64::from(value.ilog2()));
        }
        for quarter in 0..4 {
            assert_eq!(bar_of(1024 + 256 * quarter), 10 * BARS + quarter);
        }
    }
}

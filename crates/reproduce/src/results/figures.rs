//! The figures of an experiment, drawn of our own runs.

use crate::experiments::probe::ProbeForm;
use anyhow::anyhow;
use show::figure::{Axis, Body, Chart, Curve, DotPanel, DotRow, Ink, Join, Quantity};

use super::words::number;
use crate::experiments::cells::{CellId, ExperimentResults};
use crate::experiments::claim::AnswerPart;
use crate::experiments::experiment::{Experiment, Metric};
use crate::experiments::{Figure, JudgedClaim};

/// Every figure of an experiment that has something to draw.
///
/// # Errors
/// When a figure names what the experiment does not have.
pub fn charts(experiment: &Experiment, results: &ExperimentResults) -> anyhow::Result<Vec<Chart>> {
    let mut charts = Vec::new();
    for (index, figure) in experiment.figures.iter().enumerate() {
        let drawing = Drawing {
            experiment,
            results,
            figure,
        };
        let chart = drawing.chart(index)?;
        if !chart.body.is_empty() {
            charts.push(chart);
        }
    }
    Ok(charts)
}

/// Ratios are drawn as thousandths on a logarithmic axis.
const STEPS: f64 = 1e3;
/// Statements of one figure.
const PANELS_MAX: usize = 24;

/// Every published number that ours are held against: a hollow mark beside our estimate with its
/// interval, a panel for each statement.
pub fn published(judged: &[JudgedClaim<'_>]) -> Option<Chart> {
    let with_number = judged.iter().filter_map(|judged| {
        let parts = judged.parts.iter().filter_map(|(name, finding)| {
            let (published, ours) = (finding.published?, finding.parts.first()?);
            let numbers = [published, ours.value, ours.low, ours.high];
            let can_be_drawn = numbers.iter().all(|it| it.is_finite() && *it >= 0.0);
            can_be_drawn.then(|| published_row(&judged.statement.id, name, (published, ours)))
        });
        let rows: Vec<DotRow> = parts.collect();
        (!rows.is_empty()).then_some((judged, rows))
    });
    let mut panels: Vec<DotPanel> = with_number
        .map(|(judged, rows)| {
            let text = &judged.statement.text;
            published_panel(format!("{}: {text}", judged.statement.id), rows)
        })
        .collect();
    let left = panels.len().saturating_sub(PANELS_MAX);
    panels.truncate(PANELS_MAX);
    let more = match left {
        0 => String::new(),
        left => format!(" {left} more statements are below only."),
    };
    (!panels.is_empty()).then(|| Chart {
        id: "published".to_owned(),
        title: "Published, and here".to_owned(),
        subtitle: "ratios, slopes and other numbers that statements were judged by".to_owned(),
        description: format!(
            "A hollow mark is the published number. The upright line is ours and the pale bar its \
             interval of 95 %.{more}"
        ),
        body: Body::Dots { panels },
    })
}

fn published_row(id: &str, name: &str, (published, ours): (f64, &AnswerPart)) -> DotRow {
    let place = |value: f64| (value * STEPS).round().min(1e18) as u64;
    let name = name.strip_prefix(id).unwrap_or(name).trim();
    let text = format!(
        "here {}, from {} to {}",
        number(ours.value),
        number(ours.low),
        number(ours.high)
    );
    DotRow {
        name: if name.is_empty() {
            ours.name.clone()
        } else {
            name.to_owned()
        },
        ink: Ink::kind(0),
        dots: Vec::new(),
        value: number(ours.value),
        bar: Some((place(ours.low), place(ours.high))),
        middle: Some((place(ours.value), text)),
        published: Some((place(published), format!("published {}", number(published)))),
    }
}

fn published_panel(name: String, rows: Vec<DotRow>) -> DotPanel {
    let values = rows.iter().flat_map(|row| {
        let bar = row.bar.into_iter().flat_map(|(from, to)| [from, to]);
        bar.chain(
            [&row.middle, &row.published]
                .into_iter()
                .flatten()
                .map(|(at, _)| *at),
        )
    });
    let (low, high) = values.fold((u64::MAX, 0), |(low, high), it| (low.min(it), high.max(it)));
    let logarithmic = low > 0 && high / low >= 20;
    let room = ((high - low) / 10).max(high / 50).max(1);
    let span = if logarithmic {
        (low - low / 5, high.saturating_add(high / 4))
    } else {
        (low.saturating_sub(room), high.saturating_add(room))
    };
    DotPanel {
        name,
        axis: Axis {
            logarithmic,
            ..Axis::new("", Quantity::Thousandths)
        },
        span: Some(span),
        marks: Vec::new(),
        origin: None,
        rows,
    }
}

struct Drawing<'a> {
    experiment: &'a Experiment,
    results: &'a ExperimentResults,
    figure: &'a Figure,
}

/// A unit in which tables are written, as nanoseconds.
fn nanos_of(unit: &str) -> Option<f64> {
    match unit {
        "ns" => Some(1.0),
        "us" => Some(1e3),
        "ms" => Some(1e6),
        "s" => Some(1e9),
        _ => None,
    }
}

impl Drawing<'_> {
    fn lacks(&self, what: &str, name: &str) -> anyhow::Error {
        let file = &self.experiment.file;
        let title = &self.figure.title;
        anyhow!("{file}: the figure \"{title}\" has no {what} `{name}`")
    }

    fn chart(&self, index: usize) -> anyhow::Result<Chart> {
        let figure = self.figure;
        let name = figure.runs.get_ref();
        let set = self
            .experiment
            .set(name)
            .ok_or_else(|| self.lacks("runs", name))?;
        let body = match (&figure.metric, &figure.probe, &figure.x) {
            (Some(metric), None, Some(x)) => {
                let found = self.experiment.metric(metric.get_ref());
                let metric = found.ok_or_else(|| self.lacks("metric", metric.get_ref()))?;
                self.over(set, metric, x.get_ref())?
            }
            (None, Some(probe), None) => self.over_time(set, probe.get_ref())?,
            _ => {
                let file = &self.experiment.file;
                let title = &figure.title;
                return Err(anyhow!(
                    "{file}: the figure \"{title}\" needs `metric` with `x`, or `probe`"
                ));
            }
        };
        Ok(Chart {
            id: format!("{}-{index}", self.experiment.name),
            title: figure.title.clone(),
            subtitle: format!(
                "document {}, {}; drawn of simulated runs",
                self.experiment.document, figure.place
            ),
            description: format!(
                "{}, a curve for each scheduler and other parameter. Pale bars are from the least \
                 to the most of our runs, hollow marks published values. The document's own figure \
                 is {}.",
                figure.title, figure.place
            ),
            body,
        })
    }

    /// Indexes of the arms that are drawn.
    fn arms(&self, set: usize) -> anyhow::Result<Vec<usize>> {
        match &self.figure.arms {
            None => Ok(self.experiment.sets[set].arms.clone()),
            Some(names) => names
                .iter()
                .map(|name| {
                    let found = self.experiment.arm(name.get_ref());
                    found.ok_or_else(|| self.lacks("arm", name.get_ref()))
                })
                .collect(),
        }
    }

    /// The points that `at` chooses.
    fn points(&self, set: usize) -> Vec<usize> {
        let points = &self.experiment.sets[set].points;
        let is = |at: &usize| {
            self.figure.at.iter().all(|(name, values)| {
                let have = points[*at].get(name.get_ref());
                values.list().iter().any(|value| have == Some(*value))
            })
        };
        (0..points.len()).filter(is).collect()
    }

    /// A curve for each arm and each group of points that differ in `x` only.
    fn over(&self, set: usize, metric: &Metric, x: &str) -> anyhow::Result<Body> {
        let whole = &self.experiment.sets[set];
        if whole.points.iter().any(|point| point.get(x).is_none()) {
            return Err(self.lacks("parameter", x));
        }
        let (quantity, factor) = match nanos_of(&metric.unit) {
            Some(nanos) => (Quantity::Time, nanos),
            None => (Quantity::Thousandths, 1e3),
        };
        let points = self.points(set);
        let mut curves = Vec::new();
        let mut marks = Vec::new();
        let arms = self.arms(set)?;
        let labels = arms
            .iter()
            .map(|arm| self.experiment.arms[*arm].label.as_str());
        let inks = Ink::of_schedulers(labels);
        for (arm, ink) in arms.into_iter().zip(inks) {
            let mut drawn: Vec<usize> = Vec::new();
            for &point in &points {
                if drawn.contains(&point) {
                    continue;
                }
                let along = whole.along(point, x);
                let along: Vec<usize> =
                    along.into_iter().filter(|it| points.contains(it)).collect();
                let mut line = Vec::new();
                for &at in &along {
                    let id = CellId {
                        set,
                        arm,
                        point: at,
                    };
                    let place = whole.points[at].get(x).unwrap_or_default().unsigned_abs();
                    let height = |value: f64| (value * factor).round().max(0.0) as u64;
                    let (mean, beside) = self.at(id, metric, (place, &height));
                    line.push((place, mean));
                    marks.extend(beside.into_iter().map(|curve| Curve { ink, ..curve }));
                }
                line.sort_unstable_by_key(|(x, _)| *x);
                let label = whole.points[point].label_without([Some(x), None]);
                let arm = &self.experiment.arms[arm].label;
                curves.push(Curve {
                    name: if label.is_empty() {
                        arm.clone()
                    } else {
                        format!("{arm}, {label}")
                    },
                    ink,
                    join: Join::Line,
                    points: line,
                });
                drawn.extend(along);
            }
        }
        curves.extend(marks);
        let unit = &metric.unit;
        let label = match (nanos_of(unit), unit.is_empty()) {
            (Some(_), _) | (_, true) => metric.label.clone(),
            _ => format!("{} ({unit})", metric.label),
        };
        let axis = |label: &str, quantity, logarithmic| Axis {
            logarithmic,
            ..Axis::new(label, quantity)
        };
        Ok(Body::Curves {
            x: axis(x, Quantity::Count, self.figure.log_x),
            y: axis(&label, quantity, self.figure.log_y),
            span: None,
            curves,
        })
    }

    /// The mean of a cell's runs, and what is drawn beside the curve: their ends, and what was
    /// published. `place` and `height` say where; the ink is still to be chosen.
    fn at(
        &self,
        id: CellId,
        metric: &Metric,
        (place, height): (u64, &dyn Fn(f64) -> u64),
    ) -> (Option<u64>, Vec<Curve>) {
        let name = &self.experiment.arms[id.arm].label;
        let single = |join, points, more: &str| Curve {
            name: format!("{name}{more}"),
            ink: Ink::kind(0),
            join,
            points,
        };
        let mut beside = Vec::new();
        let values = self.results.values(self.experiment, id, metric).ok();
        let ends = |it: &Vec<f64>| {
            let low = it.iter().copied().fold(f64::INFINITY, f64::min);
            [low, it.iter().copied().fold(f64::NEG_INFINITY, f64::max)]
        };
        let bar = values.as_ref().map(ends).filter(|[low, high]| low < high);
        if let Some(ends) = bar {
            let points = ends.map(|end| (place, Some(height(end))));
            beside.push(single(Join::Bars, points.to_vec(), ""));
        }
        let published = self
            .experiment
            .published(id.set, id.point, id.arm, &metric.name);
        if let Some(value) = published.and_then(|row| row.value.number()) {
            let said = format!(", published: {value} {}", metric.unit);
            beside.push(single(
                Join::Mark,
                vec![(place, Some(height(value)))],
                &said,
            ));
        }
        let mean = values.map(|it| it.iter().sum::<f64>() / it.len() as f64);
        (mean.map(height), beside)
    }

    /// A curve for each arm and point: what a probe saw in the first run, levels or rates.
    fn over_time(&self, set: usize, probe: &str) -> anyhow::Result<Body> {
        let whole = &self.experiment.sets[set];
        let wanted = whole.probes.iter().find(|it| it.name == probe);
        let wanted = wanted.ok_or_else(|| self.lacks("probe", probe))?;
        let rate = matches!(wanted.form, ProbeForm::Rate { .. });
        let mut curves = Vec::new();
        let arms = self.arms(set)?;
        let labels = arms
            .iter()
            .map(|arm| self.experiment.arms[*arm].label.as_str());
        let inks = Ink::of_schedulers(labels);
        for point in self.points(set) {
            for (&arm, &ink) in arms.iter().zip(&inks) {
                let samples = self.results.cells.get(&CellId { set, arm, point });
                let Some(sample) = samples.and_then(|samples| samples.first()) else {
                    continue;
                };
                let points = sample.points.get(probe).into_iter().flatten();
                let arm = &self.experiment.arms[arm].label;
                let label = &whole.points[point].label;
                curves.push(Curve {
                    name: if label.is_empty() {
                        arm.clone()
                    } else {
                        format!("{arm}, {label}")
                    },
                    ink,
                    join: Join::Step,
                    points: points.map(|(time, level)| (*time, Some(*level))).collect(),
                });
            }
        }
        let times = curves.iter().flat_map(|curve| &curve.points);
        let last = times.map(|(time, _)| *time).max();
        for height in &self.figure.published {
            curves.push(Curve {
                name: format!("published: {height}"),
                ink: Ink::GREY,
                join: Join::Line,
                points: last.map_or_else(Vec::new, |last| {
                    vec![(0, Some(*height)), (last, Some(*height))]
                }),
            });
        }
        Ok(Body::Curves {
            x: Axis::new("time", Quantity::Time),
            y: if rate {
                Axis::new("in a second", Quantity::Count)
            } else {
                Axis {
                    inverted: true,
                    ..Axis::new("level, the best at the top", Quantity::Count)
                }
            },
            span: None,
            curves,
        })
    }
}

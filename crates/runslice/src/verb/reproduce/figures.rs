//! The figures of an experiment, drawn of our own runs.

use anyhow::anyhow;
use stats::figure::{Axis, Body, Chart, Curve, Join, Quantity};

use experiments::Figure;
use experiments::cells::{CellId, Results};
use experiments::experiment::{Experiment, Metric};

/// Every figure of an experiment that has something to draw.
///
/// # Errors
/// When a figure names what the experiment does not have.
pub fn charts(experiment: &Experiment, results: &Results) -> anyhow::Result<Vec<Chart>> {
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

struct Drawing<'a> {
    experiment: &'a Experiment,
    results: &'a Results,
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
                "{}, a curve for each scheduler and other parameter. The document's own is {}.",
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
        for arm in self.arms(set)? {
            let mut drawn: Vec<usize> = Vec::new();
            for &point in &points {
                if drawn.contains(&point) {
                    continue;
                }
                let along = whole.along(point, x);
                let along: Vec<usize> =
                    along.into_iter().filter(|it| points.contains(it)).collect();
                let mut line: Vec<(u64, Option<u64>)> = along
                    .iter()
                    .map(|&at| {
                        let id = CellId {
                            set,
                            arm,
                            point: at,
                        };
                        let values = self.results.values(self.experiment, id, metric).ok();
                        let mean = values.map(|it| it.iter().sum::<f64>() / it.len() as f64);
                        let place = whole.points[at].get(x).unwrap_or_default();
                        let y = mean.map(|mean| (mean * factor).round().max(0.0) as u64);
                        (place.unsigned_abs(), y)
                    })
                    .collect();
                line.sort_unstable_by_key(|(x, _)| *x);
                let label = whole.points[point].label_without([Some(x), None]);
                let arm = &self.experiment.arms[arm].label;
                curves.push(Curve {
                    name: if label.is_empty() {
                        arm.clone()
                    } else {
                        format!("{arm}, {label}")
                    },
                    join: Join::Line,
                    points: line,
                });
                drawn.extend(along);
            }
        }
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

    /// A curve for each arm and point: the levels that a probe saw in the first run.
    fn over_time(&self, set: usize, probe: &str) -> anyhow::Result<Body> {
        let whole = &self.experiment.sets[set];
        if !whole.probes.iter().any(|it| it.name == probe) {
            return Err(self.lacks("probe", probe));
        }
        let mut curves = Vec::new();
        for point in self.points(set) {
            for arm in self.arms(set)? {
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
                    join: Join::Step,
                    points: points.map(|(time, level)| (*time, Some(*level))).collect(),
                });
            }
        }
        Ok(Body::Curves {
            x: Axis::new("time", Quantity::Time),
            y: Axis {
                inverted: true,
                ..Axis::new("level, the best at the top", Quantity::Count)
            },
            span: None,
            curves,
        })
    }
}

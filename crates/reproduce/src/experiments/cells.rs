//! What runs gave, by cell: runs, arm and point.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::experiments::claim::Formula;

use super::experiment::{Experiment, Made, Metric, Take};

/// A cell of an experiment: indexes of the set of runs, of the arm, and of the set's point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CellId {
    /// Of [`Experiment::sets`].
    pub set: usize,
    /// Of [`Experiment::arms`].
    pub arm: usize,
    /// Of the set's points.
    pub point: usize,
}

/// A sequence of levels, as its probe writes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sequence {
    /// With times in the probe's unit.
    pub rounded: String,
    /// With times in nanoseconds; empty where it has none.
    pub exact: String,
}

/// What one run gave.
#[derive(Clone, Debug, Default)]
pub struct RunSample {
    /// Numbers by the names that formulas use.
    pub numbers: BTreeMap<String, f64>,
    /// Sequences of levels by the name of their probe.
    pub traces: BTreeMap<String, Sequence>,
    /// Times and levels by the name of their probe.
    pub points: BTreeMap<String, Vec<(u64, u64)>>,
    /// Why the policy was ejected, if it was.
    pub ejection: Option<String>,
    /// Why there is no result, if there is none.
    pub failure: Option<String>,
}

/// What the runs of an experiment gave, in the order of their seeds.
#[derive(Debug, Default)]
pub struct ExperimentResults {
    /// Cells that were run.
    pub cells: BTreeMap<CellId, Vec<RunSample>>,
}

impl RunSample {
    /// Reads a run as it is kept: the document of a run in `sim`'s results, with `probes`,
    /// `finished` and `tasks` beside it.
    pub fn of(document: &Value) -> Self {
        let mut sample = Self::default();
        let report = &document["report"];
        let mut put = |name: String, value: f64| {
            sample.numbers.insert(name, value);
        };
        flatten("machine", &report["machine"], &mut put);
        flatten("all", &report["all"], &mut put);
        for row in rows(report, "groups") {
            flatten(text(row, "group"), row, &mut put);
        }
        for (list, prefix) in [
            ("deadlines", "deadline"),
            ("spans", "span"),
            ("counters", "counter"),
            ("phases", "phase"),
        ] {
            for row in rows(report, list) {
                let prefix = format!("{prefix}.{}.{}", text(row, "group"), text(row, prefix));
                flatten(&prefix, row, &mut put);
            }
        }
        for row in rows(report, "nice") {
            let nice = row["nice"].as_i64().unwrap_or_default();
            // Names have no minus sign.
            let prefix = format!("nice.{}{}", if nice < 0 { "m" } else { "" }, nice.abs());
            flatten(&prefix, row, &mut put);
        }
        for row in rows(document, "tasks") {
            flatten(&format!("task.{}", text(row, "name")), row, &mut put);
        }
        for (name, key) in [
            ("policy", "policy_counters"),
            ("kernel", "kernel_counters"),
            ("finished", "finished"),
        ] {
            flatten(name, &document[key], &mut put);
        }
        for key in ["callbacks", "instructions"] {
            flatten(&format!("run.{key}"), &document[key], &mut put);
        }
        for (name, probe) in document["probes"].as_object().into_iter().flatten() {
            flatten(&format!("probe.{name}"), &probe["values"], &mut put);
        }
        for (name, probe) in document["probes"].as_object().into_iter().flatten() {
            if let Some(trace) = probe["trace"].as_str() {
                let sequence = Sequence {
                    rounded: trace.to_owned(),
                    exact: text(probe, "exact").to_owned(),
                };
                sample.traces.insert(name.clone(), sequence);
            }
            let pair = |pair: &Value| Some((pair[0].as_u64()?, pair[1].as_u64()?));
            let points = probe["points"].as_array().into_iter().flatten();
            sample
                .points
                .insert(name.clone(), points.filter_map(pair).collect());
        }
        if document["ejected"] == true {
            let message = text(&document["exit"], "message");
            let reason = text(&document["exit"], "reason");
            sample.ejection = Some(format!("{reason}: {message}"));
        }
        sample
    }

    /// Whether it is a result at all.
    ///
    /// # Errors
    /// Why it is none, in words.
    fn check(&self) -> Result<(), String> {
        match (&self.ejection, &self.failure) {
            (Some(why), _) => Err(format!("the policy was ejected: {why}")),
            (None, Some(why)) => Err(why.clone()),
            (None, None) => Ok(()),
        }
    }

    /// A formula's value.
    ///
    /// # Errors
    /// Why it has none, in words.
    fn value(&self, formula: &Formula) -> Result<f64, String> {
        self.check()?;
        let find = |name: &str| self.numbers.get(name).copied();
        formula.value(&find).map_err(|why| why.to_string())
    }
}

/// The numbers of a run at rising places.
fn rising(columns: &[(Option<i64>, Vec<f64>)], run: usize) -> Vec<(f64, f64)> {
    let mut line: Vec<(f64, f64)> = columns
        .iter()
        .filter_map(|(x, values)| Some(((*x)? as f64, values[run])))
        .collect();
    line.sort_by(|a, b| a.0.total_cmp(&b.0));
    line
}

/// Where the numbers of a run first are at `level` or above, over rising places.
fn reaches(columns: &[(Option<i64>, Vec<f64>)], run: usize, level: f64) -> Option<f64> {
    let line = rising(columns, run);
    let at = line.iter().position(|(_, value)| *value >= level)?;
    let (x, value) = line[at];
    match at.checked_sub(1).map(|before| line[before]) {
        None => Some(x),
        Some((from, low)) => Some(from + (x - from) * (level - low) / (value - low)),
    }
}

/// The largest number of a run up to the first place at which it is below `limit` for each one of
/// the parameter: who raises the parameter until then sees no more.
fn largest_until(columns: &[(Option<i64>, Vec<f64>)], run: usize, limit: f64) -> Option<f64> {
    let line = rising(columns, run);
    let last = line.iter().position(|(x, value)| *value < limit * x)?;
    let values = line[..=last].iter().map(|(_, value)| *value);
    Some(values.fold(f64::NEG_INFINITY, f64::max))
}

fn rows<'a>(document: &'a Value, list: &str) -> &'a [Value] {
    document[list].as_array().map_or(&[], Vec::as_slice)
}

fn text<'a>(row: &'a Value, key: &str) -> &'a str {
    row[key].as_str().unwrap_or_default()
}

/// Every number in `value` under its path, behind `prefix`.
fn flatten(prefix: &str, value: &Value, put: &mut impl FnMut(String, f64)) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                flatten(&format!("{prefix}.{name}"), value, put);
            }
        }
        value => {
            if let Some(number) = value.as_f64() {
                put(prefix.to_owned(), number);
            }
        }
    }
}

impl ExperimentResults {
    /// A metric of every run of a cell, in the order of the seeds; one over several points has the
    /// same values at each of them.
    ///
    /// # Errors
    /// Why it has none, in words.
    pub fn values(
        &self,
        experiment: &Experiment,
        id: CellId,
        metric: &Metric,
    ) -> Result<Vec<f64>, String> {
        let (of, x, take) = match &metric.made {
            Made::Formula(formula) => return self.of_formula(id, formula),
            Made::Across { metric, x, take } => (metric, x, take),
        };
        let made = experiment.metric(of).map(|metric| &metric.made);
        let Some(Made::Formula(formula)) = made else {
            return Err(format!("`{of}` is no formula"));
        };
        let set = &experiment.sets[id.set];
        let mut columns = Vec::new();
        for point in set.along(id.point, x) {
            let values = self.of_formula(CellId { point, ..id }, formula)?;
            columns.push((set.points[point].get(x), values));
        }
        let runs = columns
            .iter()
            .map(|(_, values)| values.len())
            .min()
            .unwrap_or(0);
        let at = |wanted: i64, run: usize| {
            let column = columns.iter().find(|(x, _)| *x == Some(wanted));
            let value = column.map(|(_, values)| values[run]);
            value.ok_or_else(|| format!("no run has {x} {wanted}"))
        };
        let of_run = |run: usize| {
            let values = columns.iter().map(|(_, values)| values[run]);
            match *take {
                Take::Max => Ok(values.fold(f64::NEG_INFINITY, f64::max)),
                Take::MaxUntil { limit } => largest_until(&columns, run, limit)
                    .ok_or_else(|| format!("it stays at {limit} times {x} or above")),
                Take::Min => Ok(values.fold(f64::INFINITY, f64::min)),
                Take::Sum => Ok(values.sum()),
                Take::Reaches { level } => {
                    reaches(&columns, run, level).ok_or_else(|| format!("it never reaches {level}"))
                }
                Take::Ratio { from, to } => match (at(to, run)?, at(from, run)?) {
                    (_, 0.0) => Err("something is divided by zero".to_owned()),
                    (to, from) => Ok(to / from),
                },
            }
        };
        (0..runs).map(of_run).collect()
    }

    fn of_formula(&self, id: CellId, formula: &Formula) -> Result<Vec<f64>, String> {
        let samples = self.samples(id)?.iter();
        samples.map(|sample| sample.value(formula)).collect()
    }

    /// The sequence that a probe found in every run of a cell, in the order of the seeds.
    ///
    /// # Errors
    /// Why there is none, in words: a run that failed has gone through no levels, neither the
    /// right ones nor wrong ones.
    pub fn traces(&self, id: CellId, probe: &str) -> Result<Vec<Sequence>, String> {
        let of = |sample: &RunSample| {
            sample.check()?;
            let trace = sample.traces.get(probe).cloned();
            trace.ok_or_else(|| format!("there is nothing that the probe `{probe}` could look at"))
        };
        self.samples(id)?.iter().map(of).collect()
    }

    fn samples(&self, id: CellId) -> Result<&[RunSample], String> {
        let samples = self.cells.get(&id).filter(|samples| !samples.is_empty());
        samples
            .map(Vec::as_slice)
            .ok_or_else(|| "it was not run".to_owned())
    }

    /// How a cell is called in tables, with its point but for the parameter `x`.
    pub fn name(experiment: &Experiment, id: CellId, x: Option<&str>) -> String {
        let arm = &experiment.arms[id.arm].label;
        let point = &experiment.sets[id.set].points[id.point];
        let label = point.label_without([x, None]);
        if label.is_empty() {
            arm.clone()
        } else {
            format!("{arm}, {label}")
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_run_is_read_with_all_its_numbers() {
        let document = json!({
            "report": {
                "machine": {"elapsed_ns": 5},
                "groups": [{"group": "cc", "delay_ns_p99": 8, "delay_ns_max": null}],
                "spans": [{"group": "ab", "span": "request", "length_ns_mean": 7}],
                "nice": [{"nice": -5, "run_ns": 3}],
            },
            "tasks": [{"name": "hog.0", "run_ns": 4}],
            "policy_counters": {"examined": 9},
            "finished": {"cc.ns": 11},
            "callbacks": 12,
            "probes": {"p": {"values": {"all.count": 2}, "trace": "1:2", "exact": "1:19",
                              "points": [[3, 4]]}},
            "ejected": false,
        });
        let sample = RunSample::of(&document);
        for (name, want) in [
            ("machine.elapsed_ns", 5.0),
            ("cc.delay_ns_p99", 8.0),
            ("span.ab.request.length_ns_mean", 7.0),
            ("nice.m5.run_ns", 3.0),
            ("task.hog.0.run_ns", 4.0),
            ("policy.examined", 9.0),
            ("finished.cc.ns", 11.0),
            ("run.callbacks", 12.0),
            ("probe.p.all.count", 2.0),
        ] {
            assert_eq!(sample.numbers.get(name), Some(&want), "{name}");
        }
        assert_eq!(sample.numbers.get("cc.delay_ns_max"), None);
        let (rounded, exact) = ("1:2".to_owned(), "1:19".to_owned());
        assert_eq!(sample.traces["p"], Sequence { rounded, exact });
        assert_eq!(sample.points["p"], [(3, 4)]);
        assert_eq!(sample.ejection, None);
        let ejected = json!({"ejected": true, "exit": {"reason": "stall", "message": "A waits"}});
        let ejected = RunSample::of(&ejected);
        assert_eq!(ejected.ejection.as_deref(), Some("stall: A waits"));
        let formula = Formula::parse("1").unwrap();
        assert!(ejected.value(&formula).unwrap_err().contains("ejected"));
    }

    /// A run's values at 10, 20 and so on.
    fn columns(values: &[f64]) -> Vec<(Option<i64>, Vec<f64>)> {
        let places = (1..).map(|x| Some(x * 10));
        let values = values.iter().map(|value| vec![*value]);
        places.zip(values).collect()
    }

    #[test]
    fn a_level_is_reached_between_two_points() {
        assert_eq!(reaches(&columns(&[0.0, 40.0, 80.0]), 0, 50.0), Some(22.5));
        assert_eq!(reaches(&columns(&[60.0, 80.0]), 0, 50.0), Some(10.0));
        assert_eq!(reaches(&columns(&[0.0, 50.0]), 0, 50.0), Some(20.0));
        assert_eq!(reaches(&columns(&[0.0, 40.0]), 0, 50.0), None);
    }

    #[test]
    fn the_largest_of_a_scan_is_of_the_points_up_to_its_end() {
        let until = |values: &[f64]| largest_until(&columns(values), 0, 3.0);
        assert_eq!(until(&[40.0, 70.0, 80.0, 100.0]), Some(80.0));
        assert_eq!(until(&[40.0, 50.0, 200.0]), Some(50.0));
        assert_eq!(until(&[30.0, 60.0]), None);
    }
}

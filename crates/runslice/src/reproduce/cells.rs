//! What runs gave, by cell: runs, arm and point.

use std::collections::BTreeMap;

use serde_json::Value;

use super::experiment::{Experiment, Metric};

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

/// What one run gave.
#[derive(Clone, Debug, Default)]
pub struct Sample {
    /// Numbers by the names that formulas use.
    pub numbers: BTreeMap<String, f64>,
    /// Sequences of levels by the name of their probe.
    pub traces: BTreeMap<String, String>,
    /// Times and levels by the name of their probe.
    pub points: BTreeMap<String, Vec<(u64, u64)>>,
    /// Why the policy was ejected, if it was.
    pub ejection: Option<String>,
}

/// What the runs of an experiment gave, in the order of their seeds.
#[derive(Debug, Default)]
pub struct Results {
    /// Cells that were run.
    pub cells: BTreeMap<CellId, Vec<Sample>>,
}

impl Sample {
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
            flatten(text(row, "name"), row, &mut put);
        }
        for (list, prefix) in [
            ("deadlines", "deadline"),
            ("spans", "span"),
            ("counters", "counter"),
            ("phases", "phase"),
        ] {
            for row in rows(report, list) {
                let prefix = format!("{prefix}.{}.{}", text(row, "group"), text(row, "name"));
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
                sample.traces.insert(name.clone(), trace.to_owned());
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

    /// A metric's value.
    ///
    /// # Errors
    /// Why it has none, in words.
    pub fn value(&self, metric: &Metric) -> Result<f64, String> {
        if let Some(why) = &self.ejection {
            return Err(format!("the policy was ejected: {why}"));
        }
        let find = |name: &str| self.numbers.get(name).copied();
        let value = metric.formula.value(&find);
        value.map_err(|why| format!("{}: {why}", metric.name))
    }
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

impl Results {
    /// A metric of every run of a cell, in the order of the seeds.
    ///
    /// # Errors
    /// Why it has none, in words.
    pub fn values(&self, id: CellId, metric: &Metric) -> Result<Vec<f64>, String> {
        let samples = self.cells.get(&id).filter(|samples| !samples.is_empty());
        let samples = samples.ok_or("it was not run")?;
        samples.iter().map(|sample| sample.value(metric)).collect()
    }

    /// How a cell is called in tables.
    pub fn name(experiment: &Experiment, id: CellId) -> String {
        let arm = &experiment.arms[id.arm].label;
        let point = &experiment.sets[id.set].points[id.point];
        match point.label.is_empty() {
            true => arm.clone(),
            false => format!("{arm}, {}", point.label),
        }
    }
}

//! What came of experiments, for other programs.

use std::io::{self, Write};

use serde_json::{Value, json};

use super::page::Page;
use crate::experiments::cells::CellId;
use crate::experiments::{JudgedClaim, false_refutations};

/// Version of the document; it grows when a field is removed or changes its meaning.
const VERSION: u32 = 1;

/// Writes the document: every statement with its parts, every metric of every run; of several
/// machines each under its name.
///
/// # Errors
/// When `to` does not take it.
pub fn write(pages: &[Page<'_>], to: &mut dyn Write) -> io::Result<()> {
    let document = match pages {
        [page] => {
            let mut whole = machine(page);
            whole["runslice_reproduce"] = json!(VERSION);
            whole["machine"] = json!(page.machine);
            whole
        }
        pages => {
            let machines = pages
                .iter()
                .map(|page| (page.machine.into(), machine(page)));
            let machines: serde_json::Map<String, Value> = machines.collect();
            json!({"runslice_reproduce": VERSION, "machines": machines})
        }
    };
    serde_json::to_writer_pretty(&mut *to, &document).map_err(io::Error::from)?;
    writeln!(to)
}

fn machine(page: &Page<'_>) -> Value {
    let experiments: Vec<Value> = (0..page.experiments.len())
        .map(|index| experiment(page, index))
        .collect();
    json!({
        "calibration": page.calibration,
        "quick": page.rules.quick,
        "false_refutations_expected": (!page.rules.quick)
            .then(|| false_refutations(&page.judged, page.rules)),
        "experiments": experiments,
    })
}

fn experiment(page: &Page<'_>, index: usize) -> Value {
    let experiment = &page.experiments[index];
    let judged = page.judged.iter().filter(|it| it.experiment == index);
    let statements: Vec<Value> = judged.map(statement).collect();
    json!({
        "name": experiment.name,
        "document": experiment.document,
        "source": experiment.source,
        "published": experiment.published.as_ref().map(|it| json!({
            "author": it.author,
            "title": it.title,
            "year": it.year,
        })),
        "statements": statements,
        "cells": cells(page, index),
    })
}

fn statement(judged: &JudgedClaim<'_>) -> Value {
    let part = |(name, finding): &(String, crate::experiments::claim::ClaimFinding)| {
        let numbers: Vec<Value> = finding
            .parts
            .iter()
            .map(|it| json!({"name": it.name, "value": it.value, "low": it.low, "high": it.high}))
            .collect();
        json!({
            "name": name,
            "verdict": finding.verdict,
            "numbers": numbers,
            "published": finding.published,
            "p": finding.p,
            "words": finding.words,
        })
    };
    json!({
        "id": judged.statement.id,
        "text": judged.statement.text,
        "ours": judged.statement.ours,
        "verdict": judged.verdict,
        "parts": judged.parts.iter().map(part).collect::<Vec<_>>(),
        "cause": judged.statement.cause,
        "note": judged.statement.note,
        "cannot_tell": judged.statement.cannot_tell,
    })
}

/// Every metric of every cell: what was published, and the values of all runs.
fn cells(page: &Page<'_>, index: usize) -> Vec<Value> {
    let (experiment, results) = (&page.experiments[index], &page.results[index]);
    let mut cells = Vec::new();
    for (&id, samples) in &results.cells {
        let CellId { set, arm, point } = id;
        let whole = &experiment.sets[set];
        for metric in &experiment.metrics {
            let published = experiment.published(set, point, arm, &metric.name);
            let settings = whole.points[point].settings.iter();
            let settings = settings.map(|(name, value)| (name.clone(), json!(value)));
            let (values, why) = match results.values(experiment, id, metric) {
                Ok(values) => (values, None),
                Err(why) => (Vec::new(), Some(why)),
            };
            cells.push(json!({
                "runs": whole.name,
                "arm": experiment.arms[arm].name,
                "at": Value::Object(settings.collect()),
                "metric": metric.name,
                "unit": metric.unit,
                "published": published.and_then(|row| row.value.number()),
                "values": values,
                "lacks": why,
                "count": samples.len(),
            }));
        }
    }
    cells
}

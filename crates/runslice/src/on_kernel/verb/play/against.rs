//! A play beside a simulation of the same workload.

use std::io::{self, Write};

use anyhow::Context as _;
use ask::fidelity::simulated::compared;
use model::Nanos;
use serde::Serialize;
use stats::compare::machines::{self, FigurePair, MachineMeasure};
use stats::{ColumnValue, Metrics};
use workload::RunSpec;

use crate::computer::COMPUTER;
use crate::export::{ColumnKind, ExportTable};
use crate::report::Format;
use crate::runner::Runner;
use crate::table::Table;

/// One figure of one group on both machines; in nanoseconds, millionths, thousandths or as a count.
#[derive(Debug, Serialize)]
struct Row<'a> {
    group: String,
    figure: &'static str,
    played: Option<u64>,
    simulated: Option<u64>,
    factor: Option<f64>,
    #[serde(skip)]
    cell: &'a FigurePair,
}

impl<'a> From<&'a FigurePair> for Row<'a> {
    fn from(cell: &'a FigurePair) -> Self {
        Self {
            group: match &cell.counter {
                Some(counter) => format!("{}: {counter}", cell.group),
                None => cell.group.clone(),
            },
            figure: cell.measure.name(),
            played: cell.reference,
            simulated: cell.other,
            factor: cell.factor,
            cell,
        }
    }
}

/// Simulates what was played: same policy, CPUs, tick, seed and length, threads for interrupts, and
/// tasks that had slept for `before`.
pub fn run(run: &RunSpec, before: Nanos) -> anyhow::Result<machines::MachineRun> {
    let mut metrics = Metrics::of_every_turn();
    let played = run.as_played(before);
    let summary = Runner::new(&played, &COMPUTER)
        .with_sink(&mut metrics)
        .start()
        .context("the simulated half")?;
    if summary.exit.kind.is_error() {
        anyhow::bail!("the simulated half was ejected: {}", summary.exit.message);
    }
    Ok(compared(&metrics, &played.workload))
}

/// Writes both, and how far apart they are.
///
/// # Errors
/// When `to` does not take it.
pub fn write(
    played: &machines::MachineRun,
    simulated: &machines::MachineRun,
    format: Format,
    to: &mut dyn Write,
) -> io::Result<()> {
    let cells = machines::cells(played, simulated);
    let rows: Vec<Row<'_>> = cells.iter().map(Row::from).collect();
    match (format, format.export()) {
        (_, Some(form)) => export(&rows).write(form, to),
        (Format::Json, _) => {
            serde_json::to_writer_pretty(&mut *to, &rows)?;
            writeln!(to)
        }
        _ => write!(to, "{}", table(&rows)),
    }
}

fn export(rows: &[Row<'_>]) -> ExportTable {
    let names = ["group", "figure"].map(|name| (name, ColumnKind::Text));
    let numbers = ["played", "simulated"].map(|name| (name, ColumnKind::Whole));
    let mut table = ExportTable::new(names.into_iter().chain(numbers));
    for row in rows {
        let names = [row.group.clone(), row.figure.to_owned()];
        let cell = |value: Option<u64>| value.map_or_else(String::new, |it| it.to_string());
        table.row(
            names
                .into_iter()
                .chain([row.played, row.simulated].map(cell)),
        );
    }
    table
}

fn table(rows: &[Row<'_>]) -> Table {
    let mut table = Table::default()
        .names("task")
        .names("figure")
        .numbers("played")
        .numbers("simulated")
        .numbers("factor");
    let mut last = "";
    for row in rows {
        let front = if row.group == last { "" } else { &row.group };
        last = &row.group;
        table.row([
            front.to_owned(),
            row.figure.to_owned(),
            shown(row.cell.measure, row.played),
            shown(row.cell.measure, row.simulated),
            row.factor
                .map_or_else(dash, |factor| format!("{factor:.2}")),
        ]);
    }
    table
}

fn shown(measure: MachineMeasure, value: Option<u64>) -> String {
    let value: Option<ColumnValue> = value.map(|value| measure.shown(value));
    value.map_or_else(dash, |value| value.to_string())
}

fn dash() -> String {
    "-".to_owned()
}

#[cfg(test)]
mod tests {
    use stats::compare::machines::{Group, MachineRun};

    use super::*;

    #[test]
    fn both_machines_stand_side_by_side_with_the_factor_between_them() {
        let run = |share: u64, counted: u64| MachineRun {
            load: "desk".to_owned(),
            policy: "fifo".to_owned(),
            seed: 1,
            before_ns: 0,
            elapsed_ns: 1_000_000_000,
            switches: 40,
            groups: vec![Group {
                name: "hog".to_owned(),
                tasks: 1,
                runs: 40,
                share,
                counters: vec![("done".to_owned(), counted)],
                ..Group::default()
            }],
        };
        let mut text = Vec::new();
        write(&run(250_000, 3), &run(500_000, 6), Format::Human, &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        let rows: Vec<Vec<&str>> = text
            .lines()
            .map(|it| it.split_whitespace().collect())
            .collect();
        assert_eq!(
            rows[1],
            ["hog", "runs", "a", "task", "40.00", "40.00", "1.00"]
        );
        assert_eq!(rows[2], ["share", "25.0", "%", "50.0", "%", "2.00"]);
        assert_eq!(rows[3], ["hog:", "done", "count", "3", "6", "2.00"]);
        assert_eq!(rows[4], ["all", "switches", "40", "40", "1.00"]);
    }
}

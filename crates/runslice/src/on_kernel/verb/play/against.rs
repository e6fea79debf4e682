//! A play beside a simulation of the same workload.

use std::io::{self, Write};

use anyhow::Context as _;
use model::Nanos;
use serde::Serialize;
use stats::{GroupReport, Metrics, Millionths, Report, Value};
use workload::RunSpec;

use crate::export::{ExportTable, Kind};
use crate::report::Format;
use crate::table::Table;

/// One figure of one group on both machines; in nanoseconds, millionths or as a count.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Row {
    group: String,
    figure: &'static str,
    played: Option<u64>,
    simulated: Option<u64>,
    #[serde(skip)]
    unit: Unit,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Time,
    Share,
    Count,
}

/// Simulates what was played: same policy, CPUs, tick, seed and length.
pub fn simulate(run: &RunSpec) -> anyhow::Result<Report> {
    let mut metrics = Metrics::new();
    let summary = sim::run(run, &mut metrics).context("the simulated half")?;
    if summary.exit.kind.is_error() {
        anyhow::bail!("the simulated half was ejected: {}", summary.exit.message);
    }
    Ok(metrics.report())
}

fn rows(played: &Report, simulated: &Report) -> Vec<Row> {
    let mut rows = Vec::new();
    for theirs in &simulated.groups {
        let Some(ours) = played.groups.iter().find(|group| group.name == theirs.name) else {
            continue;
        };
        let mut row = |figure, unit, of: &dyn Fn(&GroupReport) -> Option<u64>| {
            rows.push(Row {
                group: theirs.name.clone(),
                figure,
                played: of(ours),
                simulated: of(theirs),
                unit,
            });
        };
        let ns = |value: Option<Nanos>| value.map(Nanos::get);
        row("wakeup p50", Unit::Time, &|group| ns(group.wakeup.p50));
        row("wakeup p99", Unit::Time, &|group| ns(group.wakeup.p99));
        row("runslice p50", Unit::Time, &|group| ns(group.runslice.p50));
        row("preempt p50", Unit::Time, &|group| ns(group.preempt.p50));
        row("runs", Unit::Count, &|group| Some(group.runs));
        row("share", Unit::Share, &|group| Some(group.share.0));
        row("deadlines met", Unit::Count, &|group| {
            Some(group.met).filter(|met| *met > 0)
        });
        row("missed", Unit::Count, &|group| {
            Some(group.missed).filter(|missed| *missed > 0)
        });
        for counter in simulated
            .counters
            .iter()
            .filter(|counter| counter.group == theirs.name)
        {
            let same = played
                .counters
                .iter()
                .find(|other| other.group == counter.group && other.name == counter.name);
            rows.push(Row {
                group: format!("{}: {}", counter.group, counter.name),
                figure: "count",
                played: same.map(|counter| counter.total),
                simulated: Some(counter.total),
                unit: Unit::Count,
            });
        }
    }
    rows.push(Row {
        group: "all".to_owned(),
        figure: "elapsed",
        played: Some(played.machine.elapsed.get()),
        simulated: Some(simulated.machine.elapsed.get()),
        unit: Unit::Time,
    });
    rows.retain(|row| row.played.is_some() || row.simulated.is_some());
    rows
}

/// Writes both, and how many times the simulated figure the played one is.
///
/// # Errors
/// When `to` does not take it.
pub fn write(
    played: &Report,
    simulated: &Report,
    format: Format,
    to: &mut dyn Write,
) -> io::Result<()> {
    let rows = rows(played, simulated);
    match (format, format.export()) {
        (_, Some(form)) => export(&rows).write(form, to),
        (Format::Json, _) => {
            serde_json::to_writer_pretty(&mut *to, &rows)?;
            writeln!(to)
        }
        _ => write!(to, "{}", table(&rows)),
    }
}

fn export(rows: &[Row]) -> ExportTable {
    let names = ["group", "figure"].map(|name| (name, Kind::Text));
    let numbers = ["played", "simulated"].map(|name| (name, Kind::Whole));
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

fn table(rows: &[Row]) -> Table {
    let mut table = Table::default()
        .names("task")
        .names("figure")
        .numbers("played")
        .numbers("simulated")
        .numbers("ratio");
    let mut last = "";
    for row in rows {
        let front = if row.group == last { "" } else { &row.group };
        last = &row.group;
        let cell = |value: Option<u64>| match (value, row.unit) {
            (None, _) => "-".to_owned(),
            (Some(value), Unit::Time) => Nanos::new(value).to_string(),
            (Some(value), Unit::Share) => Value::Share(Millionths(value)).to_string(),
            (Some(value), Unit::Count) => value.to_string(),
        };
        table.row([
            front.to_owned(),
            row.figure.to_owned(),
            cell(row.played),
            cell(row.simulated),
            ratio(row.played, row.simulated),
        ]);
    }
    table
}

/// Played over simulated, rounded to hundredths.
fn ratio(played: Option<u64>, simulated: Option<u64>) -> String {
    let (Some(played), Some(simulated)) = (played, simulated) else {
        return "-".to_owned();
    };
    let (played, simulated) = (u128::from(played), u128::from(simulated));
    match (played * 100 + simulated / 2).checked_div(simulated) {
        Some(hundredths) => format!("{}.{:02}", hundredths / 100, hundredths % 100),
        None => "-".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_rounded_and_nothing_over_zero_is_none() {
        assert_eq!(ratio(Some(3), Some(2)), "1.50");
        assert_eq!(ratio(Some(2), Some(3)), "0.67");
        assert_eq!(ratio(Some(2), Some(0)), "-");
        assert_eq!(ratio(None, Some(1)), "-");
        assert_eq!(ratio(Some(u64::MAX), Some(1)), format!("{}.00", u64::MAX));
    }
}

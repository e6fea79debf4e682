//! One table as comma-separated values (RFC 4180), a policy's name in front of each row.

use std::io::{self, Write};

use stats::{Column, Report};

use crate::report::{Results, TableName};

/// Writes `table`.
///
/// # Errors
/// When `to` does not take it.
pub fn write(results: &Results, table: TableName, to: &mut dyn Write) -> io::Result<()> {
    put(results, table, false, to)
}

/// Writes `table` of many runs of each policy, which their seeds tell apart.
///
/// # Errors
/// When `to` does not take it.
pub fn write_runs(results: &Results, table: TableName, to: &mut dyn Write) -> io::Result<()> {
    put(results, table, true, to)
}

fn put(results: &Results, table: TableName, seeds: bool, to: &mut dyn Write) -> io::Result<()> {
    let results = &(results, seeds);
    match table {
        TableName::Groups => rows(results, to, stats::columns(), |r| {
            r.groups.iter().chain([&r.all]).collect()
        }),
        TableName::Tasks => rows(results, to, stats::task_columns(), |r| {
            r.tasks.iter().collect()
        }),
        TableName::Deadlines => rows(results, to, stats::deadline_columns(), |r| {
            r.deadlines.iter().collect()
        }),
        TableName::Spans => rows(results, to, stats::span_columns(), |r| {
            r.spans.iter().collect()
        }),
        TableName::Counters => rows(results, to, stats::counter_columns(), |r| {
            r.counters.iter().collect()
        }),
        TableName::Phases => rows(results, to, stats::phase_columns(), |r| {
            r.phases.iter().collect()
        }),
        TableName::Nice => rows(results, to, stats::nice_columns(), |r| {
            r.nice.iter().collect()
        }),
        TableName::Machine => rows(results, to, stats::machine_columns(), |r| vec![&r.machine]),
        TableName::Cpus => rows(results, to, stats::cpu_columns(), |r| {
            r.cpus.iter().collect()
        }),
    }
}

fn rows<Row>(
    (results, seeds): &(&Results, bool),
    to: &mut dyn Write,
    columns: &[Column<Row>],
    of: impl Fn(&Report) -> Vec<&Row>,
) -> io::Result<()> {
    let names = columns.iter().map(|column| column.name.to_owned());
    let seed = seeds.then(|| "seed".to_owned());
    line(to, "policy", seed.into_iter().chain(names))?;
    for outcome in &results.outcomes {
        for row in of(&outcome.report) {
            let values = columns.iter().map(|column| (column.value)(row).plain());
            let seed = seeds.then(|| outcome.report.seed.to_string());
            line(to, &outcome.policy, seed.into_iter().chain(values))?;
        }
    }
    Ok(())
}

fn line(to: &mut dyn Write, first: &str, rest: impl Iterator<Item = String>) -> io::Result<()> {
    write!(to, "{}", quoted(first))?;
    for cell in rest {
        write!(to, ",{}", quoted(&cell))?;
    }
    writeln!(to)
}

/// The cell, in quotes when it holds a character that would end it.
pub fn quoted(cell: &str) -> String {
    if cell.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", cell.replace('"', "\"\""))
    } else {
        cell.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_with_a_comma_or_a_quote_is_quoted() {
        assert_eq!(quoted("mlfq:nq=3"), "mlfq:nq=3");
        assert_eq!(quoted("mlfq:nq=3,boost=1"), "\"mlfq:nq=3,boost=1\"");
        assert_eq!(quoted("a \"b\""), "\"a \"\"b\"\"\"");
    }
}

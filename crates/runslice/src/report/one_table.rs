//! One table for export, a policy's name in front of each row.

use stats::{Column, Report, Unit};

use crate::export::{ExportTable, Kind};
use crate::report::{Results, TableName};

/// The table; with `seeds` each row also has the seed of its run, which tells many runs of a policy
/// apart.
pub fn of(results: &Results, table: TableName, seeds: bool) -> ExportTable {
    let results = &(results, seeds);
    match table {
        TableName::Groups => rows(results, stats::columns(), |r| {
            r.groups.iter().chain([&r.all]).collect()
        }),
        TableName::Tasks => rows(results, stats::task_columns(), |r| r.tasks.iter().collect()),
        TableName::Deadlines => rows(results, stats::deadline_columns(), |r| {
            r.deadlines.iter().collect()
        }),
        TableName::Spans => rows(results, stats::span_columns(), |r| r.spans.iter().collect()),
        TableName::Counters => rows(results, stats::counter_columns(), |r| {
            r.counters.iter().collect()
        }),
        TableName::Phases => rows(results, stats::phase_columns(), |r| {
            r.phases.iter().collect()
        }),
        TableName::Nice => rows(results, stats::nice_columns(), |r| r.nice.iter().collect()),
        TableName::Machine => rows(results, stats::machine_columns(), |r| vec![&r.machine]),
        TableName::Cpus => rows(results, stats::cpu_columns(), |r| r.cpus.iter().collect()),
    }
}

fn rows<Row>(
    (results, seeds): &(&Results, bool),
    columns: &'static [Column<Row>],
    of: impl Fn(&Report) -> Vec<&Row>,
) -> ExportTable {
    let named = columns
        .iter()
        .map(|column| (column.name, kind(column.unit)));
    let seed = seeds.then_some(("seed", Kind::Whole));
    let mut table = ExportTable::new(
        [("policy", Kind::Text)]
            .into_iter()
            .chain(seed)
            .chain(named),
    );
    for outcome in &results.outcomes {
        for row in of(&outcome.report) {
            let values = columns.iter().map(|column| (column.value)(row).plain());
            let seed = seeds.then(|| outcome.report.seed.to_string());
            let policy = [outcome.policy.clone()];
            table.row(policy.into_iter().chain(seed).chain(values));
        }
    }
    table
}

const fn kind(unit: Unit) -> Kind {
    match unit {
        Unit::Text => Kind::Text,
        Unit::Signed => Kind::Signed,
        Unit::Count | Unit::Nanos | Unit::Millionths | Unit::Thousandths => Kind::Whole,
    }
}

//! One table for export, a policy's name in front of each row.

use stats::{Column, Report, Unit};

use crate::about::About;
use crate::export::{ExportTable, Kind, MACHINE, machine_cells};
use crate::report::{Results, TableName};

/// Version of the columns; it grows when one is removed or changes its meaning.
const VERSION: u32 = 2;

/// What stands in front of every row: where it comes from, on which machine it was made, and which
/// run of it.
const ORIGIN: [(&str, Kind); 4] = [
    ("schema", Kind::Text),
    ("version", Kind::Text),
    ("command", Kind::Text),
    ("workload", Kind::Text),
];
const RUN: [(&str, Kind); 3] = [
    ("seed", Kind::Whole),
    ("policy", Kind::Text),
    ("knobs", Kind::Text),
];

/// The table; each row says of which run it is.
pub fn of(results: &Results, table: TableName) -> ExportTable {
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
    results: &Results,
    columns: &'static [Column<Row>],
    of: impl Fn(&Report) -> Vec<&Row>,
) -> ExportTable {
    let named = columns
        .iter()
        .map(|column| (column.name, kind(column.unit)));
    let mut table = ExportTable::new(ORIGIN.into_iter().chain(MACHINE).chain(RUN).chain(named));
    let [schema, version, command] = About::cells("results", VERSION);
    let machine = machine_cells(&results.machine);
    for outcome in &results.outcomes {
        let set = outcome
            .set
            .iter()
            .map(|(name, value)| format!("{name}={value}"));
        let origin = [
            schema.clone(),
            version.clone(),
            command.clone(),
            results.workload.clone(),
        ];
        let run = [
            outcome.report.seed.to_string(),
            outcome.policy.clone(),
            set.collect::<Vec<_>>().join(","),
        ];
        let front = origin.iter().chain(&machine).chain(&run).cloned();
        for row in of(&outcome.report) {
            let values = columns.iter().map(|column| (column.value)(row).plain());
            table.row(front.clone().chain(values));
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

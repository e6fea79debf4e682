//! One table for export, a policy's name in front of each row.

use stats::{Column, Report, Unit};

use crate::about::About;
use crate::export::{ExportTable, Kind};
use crate::report::{Results, TableName};

/// Version of the columns; it grows when one is removed or changes its meaning.
const VERSION: u32 = 2;

/// What stands in front of every row: where it comes from, and of which run it is.
const FRONT: [(&str, Kind); 14] = [
    ("schema", Kind::Text),
    ("version", Kind::Text),
    ("command", Kind::Text),
    ("workload", Kind::Text),
    ("machine_cpus", Kind::Whole),
    ("machine_smt", Kind::Whole),
    ("machine_llc", Kind::Whole),
    ("machine_node", Kind::Whole),
    ("machine_hz", Kind::Whole),
    ("machine_kernel", Kind::Text),
    ("machine_profile", Kind::Text),
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
    let mut table = ExportTable::new(FRONT.into_iter().chain(named));
    let [schema, version, command] = About::cells("results", VERSION);
    let machine = &results.machine;
    for outcome in &results.outcomes {
        let set = outcome
            .set
            .iter()
            .map(|(name, value)| format!("{name}={value}"));
        let front = [
            schema.clone(),
            version.clone(),
            command.clone(),
            results.workload.clone(),
            machine.cpus.to_string(),
            machine.smt.to_string(),
            machine.llc.to_string(),
            machine.node.to_string(),
            machine.hz.to_string(),
            machine.kernel.name().to_owned(),
            machine.profile.name().to_owned(),
            outcome.report.seed.to_string(),
            outcome.policy.clone(),
            set.collect::<Vec<_>>().join(","),
        ];
        for row in of(&outcome.report) {
            let values = columns.iter().map(|column| (column.value)(row).plain());
            table.row(front.iter().cloned().chain(values));
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

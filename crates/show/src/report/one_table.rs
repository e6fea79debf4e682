//! One table for export, a policy's name in front of each row.

use ask::AnswerKind;
use ask::outcome::Results;
use stats::{Column, Report, Unit};

use crate::Origin;
use crate::export::{ColumnKind, ExportTable, MACHINE, machine_cells};

/// What stands in front of every row: where it comes from, on which machine it was made, and which
/// run of it.
const ORIGIN: [(&str, ColumnKind); 4] = [
    ("schema", ColumnKind::Text),
    ("version", ColumnKind::Text),
    ("command", ColumnKind::Text),
    ("workload", ColumnKind::Text),
];
const RUN: [(&str, ColumnKind); 3] = [
    ("seed", ColumnKind::Whole),
    ("policy", ColumnKind::Text),
    ("knobs", ColumnKind::Text),
];

/// Tables for CSV and Parquet, by what has a row in them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableName {
    /// The group of tasks.
    Groups,
    /// The task.
    Tasks,
    /// The deadline.
    Deadlines,
    /// The span.
    Spans,
    /// The counter.
    Counters,
    /// The phase.
    Phases,
    /// The nice value.
    Nice,
    /// The machine.
    Machine,
    /// The CPU.
    Cpus,
    /// The group, on a machine whose CPUs differ.
    Hardware,
    /// The class of CPUs on which a group executed.
    Classes,
    /// The frequency that a CPU had.
    Frequencies,
}

impl TableName {
    /// Each with its name, and what has a row in it.
    pub const ALL: [(Self, &'static str, &'static str); 12] = [
        (
            Self::Groups,
            "groups",
            "Each group of tasks that the workload declares, and all tasks together",
        ),
        (Self::Tasks, "tasks", "Each task"),
        (Self::Deadlines, "deadlines", "Deadlines of each group"),
        (
            Self::Spans,
            "spans",
            "Spans of each group: stretches of its work that the workload names and times",
        ),
        (
            Self::Counters,
            "counters",
            "Counters of each group: things that the workload counts",
        ),
        (
            Self::Phases,
            "phases",
            "Phases of each group: parts of its work that the workload names",
        ),
        (Self::Nice, "nice", "Each nice value"),
        (Self::Machine, "machine", "The whole machine"),
        (Self::Cpus, "cpus", "Each CPU"),
        (
            Self::Hardware,
            "hardware",
            "Work and energy of each group and of all tasks, where CPUs differ",
        ),
        (
            Self::Classes,
            "classes",
            "Classes of CPUs on which each group executed, where CPUs differ",
        ),
        (
            Self::Frequencies,
            "frequencies",
            "Frequencies that each CPU had, where CPUs differ",
        ),
    ];

    /// The table of this name.
    #[must_use]
    pub fn of(name: &str) -> Option<Self> {
        let found = Self::ALL.into_iter().find(|(_, it, _)| *it == name);
        found.map(|(table, ..)| table)
    }

    /// The name of each of its columns, its title in tables for people, and its meaning.
    #[must_use]
    pub fn columns(self) -> Vec<[&'static str; 3]> {
        fn of<Row>(columns: &[Column<Row>]) -> Vec<[&'static str; 3]> {
            let of = |it: &Column<Row>| [it.name, it.title, it.about];
            columns.iter().map(of).collect()
        }
        match self {
            Self::Groups => of(stats::columns()),
            Self::Tasks => of(stats::task_columns()),
            Self::Deadlines => of(stats::deadline_columns()),
            Self::Spans => of(stats::span_columns()),
            Self::Counters => of(stats::counter_columns()),
            Self::Phases => of(stats::phase_columns()),
            Self::Nice => of(stats::nice_columns()),
            Self::Machine => of(stats::machine_columns()),
            Self::Cpus => of(stats::cpu_columns()),
            Self::Hardware => of(stats::hardware_columns()),
            Self::Classes => of(stats::class_columns()),
            Self::Frequencies => of(stats::frequency_columns()),
        }
    }
}

/// The table; each row says of which run it is.
#[must_use]
pub fn of(results: &Results, table: TableName, origin: &Origin) -> ExportTable {
    let it = (results, origin);
    match table {
        TableName::Groups => rows(it, stats::columns(), |r| {
            r.groups.iter().chain([&r.all]).collect()
        }),
        TableName::Tasks => rows(it, stats::task_columns(), |r| r.tasks.iter().collect()),
        TableName::Deadlines => rows(it, stats::deadline_columns(), |r| {
            r.deadlines.iter().collect()
        }),
        TableName::Spans => rows(it, stats::span_columns(), |r| r.spans.iter().collect()),
        TableName::Counters => rows(it, stats::counter_columns(), |r| {
            r.counters.iter().collect()
        }),
        TableName::Phases => rows(it, stats::phase_columns(), |r| r.phases.iter().collect()),
        TableName::Nice => rows(it, stats::nice_columns(), |r| r.nice.iter().collect()),
        TableName::Machine => rows(it, stats::machine_columns(), |r| vec![&r.machine]),
        TableName::Cpus => rows(it, stats::cpu_columns(), |r| r.cpus.iter().collect()),
        TableName::Hardware => rows(it, stats::hardware_columns(), |r| {
            r.hardware.iter().collect()
        }),
        TableName::Classes => rows(it, stats::class_columns(), |r| r.classes.iter().collect()),
        TableName::Frequencies => rows(it, stats::frequency_columns(), |r| {
            r.frequencies.iter().collect()
        }),
    }
}

fn rows<Row>(
    (results, origin): (&Results, &Origin),
    columns: &'static [Column<Row>],
    of: impl Fn(&Report) -> Vec<&Row>,
) -> ExportTable {
    let named = columns
        .iter()
        .map(|column| (column.name, kind(column.unit)));
    let mut table = ExportTable::new(ORIGIN.into_iter().chain(MACHINE).chain(RUN).chain(named));
    let [schema, version, command] = origin.cells("results", AnswerKind::Results.version());
    let machine = machine_cells(&results.machine);
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
        ];
        let run = [
            outcome.report.seed.to_string(),
            outcome.policy.clone(),
            set.collect::<Vec<_>>().join(","),
        ];
        let front = front.iter().chain(&machine).chain(&run).cloned();
        for row in of(&outcome.report) {
            let values = columns.iter().map(|column| (column.value)(row).plain());
            table.row(front.clone().chain(values));
        }
    }
    table
}

const fn kind(unit: Unit) -> ColumnKind {
    match unit {
        Unit::Text => ColumnKind::Text,
        Unit::Signed => ColumnKind::Signed,
        Unit::Count | Unit::Nanos | Unit::Millionths | Unit::Thousandths | Unit::Microjoules => {
            ColumnKind::Whole
        }
    }
}

//! What `sim` found, and the forms in which it is written.

use crate::exit::UsageError;
use std::io::{self, Write};

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use model::Advised;
use show::format::OfferedFormats;
use show::report::{human, json};

use crate::about::About;
use crate::export::ExportTable;
use crate::look::LookOptions;

/// Why `--table` was refused.
#[must_use]
pub fn table_of_csv() -> UsageError {
    UsageError::new(Advised::new(
        "--table chooses the table of --format csv or parquet",
        "the other formats have them all",
    ))
}

pub use ask::outcome::{Outcome, Results, World, ejection, ejection_in};
pub use ask::words::counted;

pub use show::Format;
pub use show::report::{TableName, checks, page, runs};

/// How results are to be written.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// As what.
    pub format: Format,
    /// Which table, if it is one.
    pub table: TableName,
    /// How it looks to people.
    pub look: LookOptions,
}

/// Reads the name of a format that an answer has.
pub fn format_of(offered: OfferedFormats) -> impl TypedValueParser<Value = Format> {
    let all = offered
        .iter()
        .map(|(it, help)| PossibleValue::new(it.name()).help(*help));
    PossibleValuesParser::new(all)
        .map(move |name| Format::of(&name, offered).expect("one of its names"))
}

/// Reads the name of a table.
pub fn table_name() -> impl TypedValueParser<Value = TableName> {
    let all = TableName::ALL.map(|(_, name, help)| PossibleValue::new(name).help(help));
    PossibleValuesParser::new(all).map(|name| TableName::of(&name).expect("one of its names"))
}

/// Writes the results in the form that the user asked for.
///
/// # Errors
/// When `to` does not take them.
pub fn write(results: &Results, form: Shape, to: &mut dyn Write) -> io::Result<()> {
    match (form.format, form.format.export()) {
        (_, Some(export)) => table(results, form.table).write(export, to),
        (Format::Json, _) => json::write(results, &About::origin(), to),
        _ => human::write(results, form.look.look(), to),
    }
}

/// Writes many runs of each policy: for people their spread, for programs every run.
///
/// # Errors
/// When `to` does not take them.
pub fn write_runs(results: &Results, form: Shape, to: &mut dyn Write) -> io::Result<()> {
    match (form.format, form.format.export()) {
        (_, Some(export)) => table(results, form.table).write(export, to),
        (Format::Json, _) => json::write_runs(results, &About::origin(), to),
        _ => runs::write(results, form.look.look(), to),
    }
}

/// One of the tables, each row with where it comes from.
pub fn table(results: &Results, table: TableName) -> ExportTable {
    show::report::table(results, table, &About::origin())
}

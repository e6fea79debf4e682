//! What `sim` found, and the forms in which it is written.

use crate::exit::UsageError;
use std::io::{self, Write};

use clap::ValueEnum;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use model::Advised;
use show::report::{human, json};

use crate::about::About;
use crate::export::{self, ExportTable};
use crate::look::LookOptions;

/// Why `--table` was refused.
#[must_use]
pub fn table_of_csv() -> UsageError {
    UsageError::new(Advised::new(
        "--table chooses the table of --format csv or parquet",
        "the other formats have them all",
    ))
}

pub use ask::outcome::{Outcome, Results, World, ejection};
pub use ask::words::counted;

pub use show::report::{TableName, checks, page, runs};

/// Output format of results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Tables to read.
    Human,
    /// One JSON document with all results.
    Json,
    /// One table. docs/events.md describes its columns.
    Csv,
    /// The same table as a Parquet file.
    #[cfg(feature = "parquet")]
    Parquet,
}

impl Format {
    /// The form of an exported table; `None` for those that hold more than one table.
    pub const fn export(self) -> Option<export::Form> {
        match self {
            Self::Human | Self::Json => None,
            Self::Csv => Some(export::Form::Csv),
            #[cfg(feature = "parquet")]
            Self::Parquet => Some(export::Form::Parquet),
        }
    }
}

/// Output format of simulated runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RunFormat {
    /// Tables to read.
    Human,
    /// A page with pictures, for --output.
    Html,
    /// One JSON document with all results.
    Json,
    /// One table. docs/events.md describes its columns.
    Csv,
    /// The same table as a Parquet file.
    #[cfg(feature = "parquet")]
    Parquet,
    /// The XML of `JUnit`: a test for each policy that it keeps to the rules and starves no task.
    Junit,
    /// The answer in Markdown, for the summary of a pull request.
    Markdown,
}

impl RunFormat {
    /// The format of a form that has no pictures and is no report of tests.
    pub const fn plain(self) -> Option<Format> {
        Some(match self {
            Self::Human => Format::Human,
            Self::Json => Format::Json,
            Self::Csv => Format::Csv,
            #[cfg(feature = "parquet")]
            Self::Parquet => Format::Parquet,
            Self::Html | Self::Junit | Self::Markdown => return None,
        })
    }
}

/// Output format of results from the real machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PlainFormat {
    /// Tables to read.
    Human,
    /// One JSON document with all results.
    Json,
}

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

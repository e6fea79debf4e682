//! `runslice load NAME`: real processes that schedulers are judged by, with figures of their own.

mod around;
mod builds;
mod keys;
mod programs;
mod talks;

use std::io::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use load::{Error, LoadCell, LoadOutcome};
use model::{Advised, Nanos};
use serde_json::{Map, Value, json};
use show::format::MEASURED;

use crate::exit::{Status, UnsupportedError, UsageError};
use crate::output;
use crate::report::{Format, format_of};
use crate::table::Table;

use around::Around;

/// Arguments of `runslice load`.
#[derive(Debug, Args)]
pub struct Load {
    #[command(flatten)]
    around: Around,

    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Chat rooms: users send messages in turn over loopback sockets, with four threads each.
    Chat(talks::Chat),
    /// Users who each work through a mix of small jobs, like AIM7.
    Aim(talks::Aim),
    /// Builds of a generated source tree: one job for two CPUs, four for each CPU, and unlimited.
    Kernbench(builds::Kernbench),
    /// A build beside each of eight other loads; measures both.
    Contest(builds::Contest),
    /// A key that is held down and a program that answers, beside hogs or builds.
    Echo(keys::Echo),
    /// Tasks that run and sleep by a rule; measures their CPU shares, slices and levels.
    Levels(keys::Levels),
    /// Hogs, interactive tasks and compilations that start together; measures when each kind ends.
    Turnaround(keys::Turnaround),
    /// Groups of senders and receivers: hackbench from the package rt-tests.
    Hackbench(programs::Hackbench),
    /// Web requests: Apache with PHP, and ab as the client.
    Web(programs::Web),
    /// Database transactions: the server mariadbd, and sysbench as the client.
    Oltp(programs::Oltp),
    /// A script that reads /proc/schedstat and sleeps, in turn, beside busy or waiting tasks;
    /// measures the time between two readings.
    Sampler(keys::Sampler),
    /// Run the commands of a plan, a file, one after the other, and keep their output.
    Series(crate::on_kernel::series::Series),
}

/// Options for the results.
#[derive(Debug, Args)]
struct To {
    /// Output format.
    #[arg(long, value_parser = format_of(MEASURED), default_value_t = Format::Human)]
    format: Format,

    /// Write the results to this file instead of standard output.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Runs the load and prints its figures.
///
/// # Errors
/// When a size cannot be, a program is missing, or the load fails.
pub fn run(request: &Load) -> anyhow::Result<Status> {
    let (name, to) = match &request.what {
        What::Chat(it) => ("chat", &it.to),
        What::Aim(it) => ("aim", &it.to),
        What::Kernbench(it) => ("kernbench", &it.to),
        What::Contest(it) => ("contest", &it.to),
        What::Echo(it) => ("echo", &it.to),
        What::Levels(it) => ("levels", &it.to),
        What::Turnaround(it) => ("turnaround", &it.to),
        What::Hackbench(it) => ("hackbench", &it.to),
        What::Web(it) => ("web", &it.to),
        What::Oltp(it) => ("oltp", &it.to),
        What::Sampler(it) => ("sampler", &it.to),
        What::Series(it) => return crate::on_kernel::series::run(it),
    };
    if let What::Levels(it) = &request.what {
        let events = ("--events", it.events());
        output::distinct(&[events, ("--output", to.output.as_deref())])?;
    }
    output::can_write(&[("--output", to.output.as_deref())])?;
    let outcome = request.around.run(|| request.what.outcome())?;
    let mut out = output::open(to.output.as_deref())?;
    match to.format {
        Format::Json => writeln!(out, "{:#}", document(name, &outcome))?,
        _ => write!(out, "{}", human(&outcome))?,
    }
    out.flush()?;
    Ok(Status::Done)
}

impl What {
    fn outcome(&self) -> Result<LoadOutcome, Error> {
        match self {
            Self::Chat(it) => it.load().run(),
            Self::Aim(it) => it.load().run(),
            Self::Kernbench(it) => it.load().run(),
            Self::Contest(it) => it.load().run(),
            Self::Echo(it) => it.load().run(),
            Self::Levels(it) => it.run(),
            Self::Turnaround(it) => it.load().run(),
            Self::Hackbench(it) => it.load().run(),
            Self::Web(it) => it.load().run(),
            Self::Oltp(it) => it.load().run(),
            Self::Sampler(it) => it.load().run(),
            Self::Series(_) => unreachable!("a series tells of each command by itself"),
        }
    }
}

/// What the user can mend on the command line or by installing something is told from what failed.
fn explain(error: Error) -> anyhow::Error {
    match error {
        Error::Size(_) => UsageError::new(Advised::of(&error)).into(),
        Error::Missing { .. } => UnsupportedError::new(Advised::of(&error)).into(),
        _ => error.into(),
    }
}

/// The figures as a table, and the notes. Lists are for programs.
fn human(outcome: &LoadOutcome) -> String {
    let mut table = Table::default()
        .names("figure")
        .numbers("value")
        .names("unit");
    for figure in &outcome.figures {
        let value = if figure.value.fract() == 0.0 {
            format!("{:.0}", figure.value)
        } else {
            format!("{:.3}", figure.value)
        };
        table.row([figure.name.clone(), value, figure.unit.to_owned()]);
    }
    let notes = outcome.notes.iter().map(|note| format!("{note}\n"));
    format!("{table}{}", notes.collect::<String>())
}

/// Everything, for programs: `figures` by name, each with its value and unit; `tables` by name,
/// each with its columns and rows.
fn document(name: &str, outcome: &LoadOutcome) -> Value {
    let figures = outcome.figures.iter().map(|figure| {
        let it = json!({ "value": figure.value, "unit": figure.unit });
        (figure.name.clone(), it)
    });
    let tables = outcome.tables.iter().map(|table| {
        let rows = table
            .rows
            .iter()
            .map(|row| row.iter().map(cell).collect::<Value>());
        let rows: Value = rows.collect();
        (
            table.name.clone(),
            json!({ "columns": table.columns, "rows": rows }),
        )
    });
    json!({
        "load": name,
        "figures": figures.collect::<Map<String, Value>>(),
        "tables": tables.collect::<Map<String, Value>>(),
        "notes": outcome.notes,
    })
}

fn cell(cell: &LoadCell) -> Value {
    match cell {
        LoadCell::Number(number) => json!(number),
        LoadCell::Word(word) => json!(word),
    }
}

/// A span as the standard library has it.
fn duration(span: Nanos) -> Duration {
    Duration::from_nanos(span.get())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_get_every_figure_with_its_unit_and_every_row() {
        let mut outcome = LoadOutcome::default();
        outcome.add("time", "s", 1.25);
        outcome.add("yields", "", 3.0);
        outcome.tables.push(load::LoadTable {
            name: "rows".to_owned(),
            columns: vec!["who", "at_ns"],
            rows: vec![vec![LoadCell::Word("a".to_owned()), LoadCell::Number(7)]],
        });
        outcome.notes.push("A note.".to_owned());
        let document = document("chat", &outcome);
        assert_eq!(
            document["figures"]["time"],
            json!({ "value": 1.25, "unit": "s" })
        );
        assert_eq!(document["tables"]["rows"]["rows"], json!([["a", 7]]));
        assert_eq!(document["notes"], json!(["A note."]));
        let text = human(&outcome);
        assert!(
            text.contains("1.250  s\n") && text.ends_with("A note.\n"),
            "{text}"
        );
    }
}

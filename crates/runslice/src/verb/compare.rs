//! `runslice compare FILE...`.

use std::io::Write as _;
use std::path::PathBuf;

use clap::Args;
use show::format::COMPARISONS;

use crate::comparison::{Asking, Compared, form_of, refuse_nothing, write};
use crate::computer::COMPUTER;
use crate::exit::Status;
use crate::look::WidthOptions;
use crate::output;
use crate::report::{Format, format_of};

/// Arguments of `runslice compare`.
#[derive(Debug, Args)]
pub struct Compare {
    /// Runs to compare: JSON of `sim --runs`, `play`, `run`, hyperfine or schbench, or a folder of
    /// `sweep` or `bench`. With one file, compare its schedulers. With several, compare each with
    /// the first.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    #[command(flatten)]
    asking: Asking,

    /// Output format. Default: what the ending of the output file stands for (.html, .json, .csv,
    /// .parquet), else `human`.
    #[arg(long, value_parser = format_of(COMPARISONS))]
    format: Option<Format>,

    #[command(flatten)]
    look: WidthOptions,

    /// Write the comparison to this file instead of standard output.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Compares, and writes what came of it.
///
/// # Errors
/// When a file cannot be read, or its sets cannot be held against each other.
pub fn run(request: &Compare) -> anyhow::Result<Status> {
    let format = form_of(request.format, request.output.as_deref())?;
    for path in &request.files {
        output::distinct(&[
            ("runs", Some(path)),
            ("--output", request.output.as_deref()),
        ])?;
    }
    output::can_write(&[("--output", request.output.as_deref())])?;
    let question = request.asking.asked(request.files.clone());
    let judged = question.ask(&COMPUTER).map_err(ask::Error::into_cause)?;
    let mut to = output::open_form(format.export(), request.output.as_deref())?;
    let compared = Compared {
        family: &judged.family,
        rows: &judged.rows,
        settings: &judged.settings,
    };
    write(&compared, format, request.look.width(), &mut to)?;
    to.flush()?;
    if format == Format::Html {
        output::announce(&compared.verdict(), request.output.as_deref())?;
    }
    refuse_nothing(&judged.rows)?;
    Ok(judged.ending.into())
}

//! `runslice compare FILE...`.

use std::io::Write as _;
use std::path::PathBuf;

use clap::Args;
use stats::compare::{Choice, Row, Series, compare};

use crate::comparison::{FailIf, Family, Form, Judging, form_of, status, verdict, write};
use crate::exit::{Status, UsageError};
use crate::goal::matches;
use crate::{output, sets};

/// Arguments of `runslice compare`.
#[derive(Debug, Args)]
pub struct Compare {
    /// Runs to compare: JSON of `sim --runs`, `play`, `run`, hyperfine or schbench, or a folder of
    /// `sweep` or `bench`. With one file, compare its schedulers. With several, compare each with
    /// the first.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    /// Baseline among the schedulers of a single file. Default: the baseline that the file names,
    /// or its first scheduler.
    #[arg(long, value_name = "NAME")]
    baseline: Option<String>,

    /// A second arm that runs the baseline again, to estimate noise. A change whose interval
    /// reaches into that noise is undecided. Default: as recorded by `bench`.
    #[arg(long, value_name = "NAME")]
    again: Option<String>,

    /// Metric to compare, such as `all.wakeup_ns_p99`; `*` stands for any text. May be repeated.
    /// Default: the goals of the workload or command.
    ///
    /// Each metric gets a verdict. By default, other metrics that explain the goals are shown
    /// without a verdict. With fewer metrics, a verdict needs fewer runs.
    #[arg(long, value_name = "PATTERN")]
    metric: Vec<String>,

    #[command(flatten)]
    judging: Judging,

    /// Exit with status 5 if a goal is `slower` or `different`. `slower=5` allows 5 per cent. Exit
    /// with status 6 if the runs do not decide.
    ///
    /// With `slower=5`, the whole interval must be worse than 5 per cent. A goal for which more is
    /// better is slower when it falls.
    #[arg(long, value_name = "WHAT", value_parser = FailIf::parse)]
    fail_if: Option<FailIf>,

    /// Output format. Default: what the ending of the output file stands for (.html, .json, .csv,
    /// .parquet), else `human`.
    #[arg(long, value_enum)]
    format: Option<Form>,

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
    let files = sets::read_all(&request.files)?;
    let looks = files.iter().map(|file| file.looks).max().unwrap_or(1);
    let family = Family::of(files, request.baseline.as_deref(), request.again.as_deref())?;
    let settings = request.judging.settings(looks);
    let wanted = |series: &Series| request.metric.iter().any(|it| matches(it, &series.name));
    let choice = match request.metric.as_slice() {
        [] => Choice::Stated,
        _ => Choice::Named(&wanted),
    };
    let known = family.metrics();
    let unknown = |it: &&String| !known.iter().any(|name| matches(it, name));
    if let Some(pattern) = request.metric.iter().find(unknown) {
        let known = known.join(", ");
        let message = format!("no metric is called `{pattern}`; there are: {known}");
        return Err(UsageError(message).into());
    }
    let rows = compare(&family.questions(), choice, &settings);
    if rows.is_empty() {
        anyhow::bail!("the baseline has no valid run");
    }
    let mut to = output::open_form(format.export(), request.output.as_deref())?;
    write(&family, &rows, &settings, format, &mut to)?;
    to.flush()?;
    if format == Form::Html {
        let verdict = verdict(&rows);
        output::announce(&verdict, request.output.as_deref())?;
    }
    if let Some(reasons) = none_made(&rows) {
        anyhow::bail!("nothing can be compared\n{reasons}");
    }
    Ok(status(&rows, request.fail_if))
}

/// Why no comparison at all could be made.
fn none_made(rows: &[Row]) -> Option<String> {
    let mut reasons = Vec::new();
    for row in rows {
        let refusal = row.result.as_ref().err()?;
        reasons.push(format!("  {}, {}: {refusal}", row.metric, row.arm));
    }
    Some(reasons.join("\n"))
}

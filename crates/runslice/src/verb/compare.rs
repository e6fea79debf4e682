//! `runslice compare FILE...`.

mod family;
mod write;

use std::io::Write as _;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use stats::compare::{Limit, Outcome, Row, Series, Settings, Verdict, compare};

use crate::exit::{Status, UsageError};
use crate::{output, sets, sheet};

pub use family::Family;
pub use write::write;

/// Most that may be left out at either end, in per cent.
const TRIM_MAX: i64 = 40;

/// What `runslice compare` is asked.
#[derive(Debug, Args)]
pub struct Compare {
    /// Runs to compare: JSON of `sim --runs`, `play`, `run`, hyperfine or schbench, or a folder of
    /// `sweep` or `bench`. Of one, its schedulers are compared; of several, each with the first.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    /// Scheduler that the others of one file are held against. Default: the first.
    #[arg(long, value_name = "NAME")]
    baseline: Option<String>,

    /// Scheduler of the file that is the baseline a second time. What differs between the two is
    /// noise, and so is any difference that is as small. Default: what `bench` says.
    #[arg(long, value_name = "NAME")]
    again: Option<String>,

    /// Metric to compare, such as `all.wakeup.p99_ns`; `*` stands for any text. May be repeated.
    /// Default: the main ones. Fewer metrics need fewer runs.
    #[arg(long, value_name = "PATTERN")]
    metric: Vec<String>,

    #[command(flatten)]
    judging: Judging,

    /// Ends with status 5 if anything is `slower`, or `different`. `slower=5` allows 5 per cent.
    /// Status 6 if the runs do not say.
    #[arg(long, value_name = "WHAT", value_parser = FailIf::parse)]
    fail_if: Option<FailIf>,

    /// How the comparison is written.
    #[arg(long, value_enum, default_value_t = Form::Human)]
    format: Form,

    /// Writes the comparison to this file instead of standard output.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// How runs are judged.
#[derive(Clone, Copy, Debug, Args)]
pub struct Judging {
    /// Smallest change of interest, in per cent: whatever is surely smaller is "no difference".
    #[arg(long, value_name = "PERCENT", default_value = "3", value_parser = parse_percent)]
    pub margin: f64,

    /// Per cent of the runs that are left out at either end, 0 to 40, against outliers.
    #[arg(long, value_name = "PERCENT", default_value_t = 0,
        value_parser = clap::value_parser!(u8).range(0..=TRIM_MAX))]
    pub trim: u8,

    /// Seed of the resampling. The same seed gives the same intervals.
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub resample_seed: u64,
}

/// How a comparison is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Form {
    /// Tables for people.
    Human,
    /// One JSON document with everything.
    Json,
    /// One row a comparison.
    Csv,
    /// The same rows as a Parquet file.
    #[cfg(feature = "parquet")]
    Parquet,
}

impl Form {
    /// The form of a sheet; `None` of the others.
    pub const fn sheet(self) -> Option<sheet::Form> {
        match self {
            Self::Human | Self::Json => None,
            Self::Csv => Some(sheet::Form::Csv),
            #[cfg(feature = "parquet")]
            Self::Parquet => Some(sheet::Form::Parquet),
        }
    }
}

/// What fails a build.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FailIf {
    /// Something is slower by more than this part.
    Slower(Limit),
    /// Something is not the same.
    Different,
}

impl Judging {
    /// For the statistics.
    pub fn settings(self) -> Settings {
        Settings {
            seed: self.resample_seed,
            margin: self.margin,
            trim: self.trim,
            ..Settings::default()
        }
    }
}

impl FailIf {
    fn parse(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            None if text == "slower" => Ok(Self::Slower(Limit { part: 0.0 })),
            None if text == "different" => Ok(Self::Different),
            Some(("slower", percent)) => {
                let part = parse_percent(percent)?;
                Ok(Self::Slower(Limit { part }))
            }
            _ => Err("expected `slower`, `slower=PERCENT` or `different`".to_owned()),
        }
    }

    fn judge(self, row: &Row, settings: &Settings) -> Outcome {
        let Ok(judged) = &row.result else {
            return Outcome::Unknown;
        };
        match (self, judged.verdict) {
            (Self::Slower(limit), _) => limit.judge(judged, row.better, settings),
            (Self::Different, Verdict::NoDifference) => Outcome::Kept,
            (Self::Different, Verdict::Undecided(_)) => Outcome::Unknown,
            (Self::Different, _) => Outcome::Exceeded,
        }
    }
}

/// Reads per cent from 0 to 1000 as a part: `2.5` is 0.025.
fn parse_percent(text: &str) -> Result<f64, String> {
    let percent = text.strip_suffix('%').unwrap_or(text).trim().parse().ok();
    match percent {
        Some(percent @ 0.0..=1000.0) => Ok(percent / 100.0),
        _ => Err(format!("`{text}` is no number of per cent from 0 to 1000")),
    }
}

/// Compares, and writes what came of it.
///
/// # Errors
/// When a file cannot be read, or its sets cannot be held against each other.
pub fn run(request: &Compare) -> anyhow::Result<Status> {
    output::check(request.format.sheet(), request.output.as_deref())?;
    let files = sets::read_all(&request.files)?;
    let family = Family::of(files, request.baseline.as_deref(), request.again.as_deref())?;
    let settings = request.judging.settings();
    let wanted = |series: &Series| match request.metric.as_slice() {
        [] => series.main,
        patterns => patterns.iter().any(|it| matches(it, &series.name)),
    };
    let known = family.metrics();
    let unknown = |it: &&String| !known.iter().any(|name| matches(it, name));
    if let Some(pattern) = request.metric.iter().find(unknown) {
        let known = known.join(", ");
        let message = format!("no metric is called `{pattern}`; there are: {known}");
        return Err(UsageError(message).into());
    }
    let rows = compare(&family.questions(), wanted, &settings);
    if rows.is_empty() {
        anyhow::bail!("the baseline has no run that counts");
    }
    let mut to = output::open(request.output.as_deref())?;
    write(&family, &rows, &settings, request.format, &mut to)?;
    to.flush()?;
    if let Some(reasons) = none_made(&rows) {
        anyhow::bail!("nothing can be compared\n{reasons}");
    }
    Ok(status(&rows, request.fail_if, &settings))
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

/// How a comparison ends.
pub fn status(rows: &[Row], fail_if: Option<FailIf>, settings: &Settings) -> Status {
    let Some(fail_if) = fail_if else {
        let decides = |row: &Row| {
            let judged = row.result.as_ref().ok();
            judged.is_some_and(|it| !matches!(it.verdict, Verdict::Undecided(_)))
        };
        return match rows.iter().any(decides) {
            true => Status::Done,
            false => Status::Inconclusive,
        };
    };
    let outcomes: Vec<Outcome> = rows
        .iter()
        .map(|row| fail_if.judge(row, settings))
        .collect();
    if outcomes.contains(&Outcome::Exceeded) {
        Status::Exceeded
    } else if outcomes.contains(&Outcome::Unknown) {
        Status::Inconclusive
    } else {
        Status::Done
    }
}

/// Whether `name` is `pattern`, in which `*` stands for any text.
fn matches(pattern: &str, name: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else {
        return pattern == name;
    };
    let Some(name) = name.strip_prefix(first) else {
        return false;
    };
    (0..=name.len())
        .filter(|at| name.is_char_boundary(*at))
        .any(|at| matches(rest, &name[at..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_text() {
        assert!(matches("all.*.p99_ns", "all.wakeup.p99_ns"));
        assert!(matches("*", "x") && matches("*", "") && matches("a*", "a"));
        assert!(!matches("all.*.p99_ns", "all.wakeup.p50_ns"));
        assert!(!matches("all", "all.x"));
        assert!(matches("*é*", "né"));
    }

    #[test]
    fn limits_are_in_per_cent() {
        assert_eq!(FailIf::parse("slower=5"), FailIf::parse("slower=5 %"));
        let limit = Limit { part: 0.05 };
        assert_eq!(FailIf::parse("slower=5"), Ok(FailIf::Slower(limit)));
        assert_eq!(FailIf::parse("different"), Ok(FailIf::Different));
        for bad in ["slow", "slower=", "slower=-1", "slower=nan", "different=2"] {
            FailIf::parse(bad).unwrap_err();
        }
    }
}

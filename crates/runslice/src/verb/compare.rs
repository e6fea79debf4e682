//! `runslice compare FILE...`.

mod family;
mod write;

use std::io::Write as _;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use stats::compare::{Choice, Limit, Outcome, Row, Series, Settings, Verdict, compare};

use crate::exit::{Status, UsageError};
use crate::{output, sets, sheet};

pub use family::Family;
pub use write::write;

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
    /// Each gets a verdict. Default: the goals of the load, and without a verdict what describes how
    /// they came about. Fewer metrics need fewer runs.
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
    /// Smallest change of interest, in per cent: whatever is surely smaller is "no difference". Of
    /// values with zeros among them it is a fixed difference instead (docs/comparing.md).
    #[arg(long, value_name = "PERCENT", default_value = "3", value_parser = parse_percent)]
    pub margin: f64,

    /// Seed of what is drawn where there are too many relabelings of the runs to try them all. The
    /// same seed gives the same intervals.
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
    /// For the statistics, of runs that are looked at so often.
    pub fn settings(self, looks: u32) -> Settings {
        Settings {
            seed: self.resample_seed,
            margin: self.margin,
            looks,
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

    /// How a goal stands to this.
    fn judge(self, row: &Row) -> Outcome {
        let Ok(judged) = &row.result else {
            return Outcome::Unknown;
        };
        match (self, judged.verdict) {
            (Self::Slower(limit), _) => limit.judge(judged, row.better),
            (Self::Different, Some(Verdict::NoDifference)) => Outcome::Kept,
            (Self::Different, Some(Verdict::Undecided(_)) | None) => Outcome::Unknown,
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
        anyhow::bail!("the baseline has no run that counts");
    }
    let mut to = output::open(request.output.as_deref())?;
    write(&family, &rows, &settings, request.format, &mut to)?;
    to.flush()?;
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

/// Whether a goal is decided.
pub fn is_decided(row: &Row) -> bool {
    let verdict = row.result.as_ref().ok().and_then(|it| it.verdict);
    verdict.is_some_and(|it| !matches!(it, Verdict::Undecided(_)))
}

/// How a comparison ends.
pub fn status(rows: &[Row], fail_if: Option<FailIf>) -> Status {
    let Some(fail_if) = fail_if else {
        return match rows.iter().any(is_decided) {
            true => Status::Done,
            false => Status::Inconclusive,
        };
    };
    let goals = rows.iter().filter(|row| row.is_goal);
    let outcomes: Vec<Outcome> = goals.map(|row| fail_if.judge(row)).collect();
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

//! Comparisons of sets of runs: which are held against which, how they are judged, how the answer
//! is written and which status it ends with. For `compare` and for `bench`.

mod family;
mod write;

use std::path::Path;

use clap::{Args, ValueEnum};
use model::Advised;
use stats::compare::{Choice, Limit, Outcome, Row, Series, Settings, Verdict, compare};

use crate::exit::{Status, UsageError};
use crate::goal::matches;
use crate::sets::File;
use crate::{export, output};

pub use family::Family;
pub use write::{Compared, Comparison, page, table_of, verdict, write};

/// Options of all comparisons.
#[derive(Clone, Copy, Debug, Args)]
pub struct Judging {
    /// Smallest change that matters, in per cent. A difference that is certainly smaller counts as
    /// "no difference".
    ///
    /// A metric with values of zero has an absolute margin instead. See docs/comparing.md.
    #[arg(long, value_name = "PERCENT", default_value = "3", value_parser = parse_percent)]
    pub margin: f64,

    /// Seed of the random resampling. The same seed gives the same intervals.
    ///
    /// It has an effect only if the runs have too many relabelings to try them all.
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub resample_seed: u64,
}

/// What is asked of a comparison of files, besides the files.
#[derive(Clone, Debug, Args)]
pub struct Asking {
    /// Baseline among the schedulers of a single file. Default: the baseline that the file names,
    /// or its first scheduler.
    #[arg(long, value_name = "NAME")]
    pub baseline: Option<String>,

    /// A second arm that runs the baseline again, to estimate noise. A change whose interval
    /// reaches into that noise is undecided. Default: as recorded by `bench`.
    #[arg(long, value_name = "NAME")]
    pub again: Option<String>,

    /// Metric to compare, such as `all.wakeup_ns_p99`; `*` stands for any text. May be repeated.
    /// Default: the goals of the workload or command.
    ///
    /// Each metric gets a verdict. By default, other metrics that explain the goals are shown
    /// without a verdict. With fewer metrics, a verdict needs fewer runs.
    #[arg(long, value_name = "PATTERN")]
    pub metric: Vec<String>,

    #[command(flatten)]
    pub judging: Judging,

    /// Exit with status 5 if a goal is `slower` or `different`. `slower=5` allows 5 per cent. Exit
    /// with status 6 if the runs do not decide.
    ///
    /// With `slower=5`, the whole interval must be worse than 5 per cent. A goal for which more is
    /// better is slower when it falls.
    #[arg(long, value_name = "WHAT", value_parser = FailIf::parse)]
    pub fail_if: Option<FailIf>,
}

impl Asking {
    /// Holds the sets of the files against each other.
    ///
    /// # Errors
    /// When there are no two sets to compare, a name is unknown, or the baseline has no valid run.
    pub fn judge(&self, files: Vec<File>) -> anyhow::Result<(Family, Vec<Row>, Settings)> {
        let looks = files.iter().map(|file| file.looks).max().unwrap_or(1);
        let family = Family::of(files, self.baseline.as_deref(), self.again.as_deref())?;
        let settings = self.judging.settings(looks);
        let wanted = |series: &Series| self.metric.iter().any(|it| matches(it, &series.name));
        let choice = match self.metric.as_slice() {
            [] => Choice::Stated,
            _ => Choice::Named(&wanted),
        };
        let known = family.metrics();
        let unknown = |it: &&String| !known.iter().any(|name| matches(it, name));
        if let Some(pattern) = self.metric.iter().find(unknown) {
            let known = known.join(", ");
            let message = Advised::new(
                format!("no metric is called `{pattern}`"),
                format!("there are: {known}"),
            );
            return Err(UsageError::new(message).into());
        }
        let rows = compare(&family.questions(), choice, &settings);
        if rows.is_empty() {
            anyhow::bail!("the baseline has no valid run");
        }
        Ok((family, rows, settings))
    }
}

/// Refuses rows of which none could be judged.
///
/// # Errors
/// Names the reason of each.
pub fn refuse_nothing(rows: &[Row]) -> anyhow::Result<()> {
    let mut reasons = Vec::new();
    for row in rows {
        let Err(refusal) = &row.result else {
            return Ok(());
        };
        reasons.push(format!("  {}, {}: {refusal}", row.metric, row.arm));
    }
    anyhow::bail!("nothing can be compared\n{}", reasons.join("\n"))
}

/// Output format of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Form {
    /// Tables to read.
    Human,
    /// A page with pictures, for --output.
    Html,
    /// One JSON document with all results.
    Json,
    /// One row for each comparison.
    Csv,
    /// The same rows as a Parquet file.
    #[cfg(feature = "parquet")]
    Parquet,
}

impl Form {
    /// The form of an exported table; `None` for the others.
    pub const fn export(self) -> Option<export::Form> {
        match self {
            Self::Human | Self::Html | Self::Json => None,
            Self::Csv => Some(export::Form::Csv),
            #[cfg(feature = "parquet")]
            Self::Parquet => Some(export::Form::Parquet),
        }
    }
}

/// The form of a comparison that goes to `path`: what the user named, or what the file's ending
/// stands for.
///
/// # Errors
/// When the ending stands for another form, or a terminal would get bytes or a page.
pub fn form_of(given: Option<Form>, path: Option<&Path>) -> Result<Form, UsageError> {
    let form = output::form(given, path, Form::Human)?;
    output::check(form.export(), path)?;
    if form == Form::Html {
        output::page_file(path)?;
    }
    Ok(form)
}

/// Condition that fails a build.
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
    /// Reads `slower`, `slower=PERCENT` or `different`.
    ///
    /// # Errors
    /// When `text` is none of them, or the number is not from 0 to 1000.
    pub fn parse(text: &str) -> Result<Self, String> {
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
///
/// # Errors
/// When `text` is none.
pub fn parse_percent(text: &str) -> Result<f64, String> {
    let percent = text.strip_suffix('%').unwrap_or(text).trim().parse().ok();
    match percent {
        Some(percent @ 0.0..=1000.0) => Ok(percent / 100.0),
        _ => Err(format!("`{text}` is no number of per cent from 0 to 1000")),
    }
}

/// Whether a goal is decided.
pub fn is_decided(row: &Row) -> bool {
    let verdict = row.result.as_ref().ok().and_then(|it| it.verdict);
    verdict.is_some_and(|it| !matches!(it, Verdict::Undecided(_)))
}

/// How a comparison ends.
pub fn status(rows: &[Row], fail_if: Option<FailIf>) -> Status {
    let Some(fail_if) = fail_if else {
        return if rows.iter().any(is_decided) {
            Status::Done
        } else {
            Status::Inconclusive
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

#[cfg(test)]
mod tests {
    use super::*;

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

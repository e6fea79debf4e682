//! Which of several schedulers did better: sets of runs, held against each other.

mod family;

use std::path::PathBuf;

use model::{Advice as _, Advised};
use stats::compare::{Choice, Limit, LimitOutcome, MetricRow, Series, Settings, Verdict, compare};

use crate::error::{Error, UsageError};
use crate::goal::matches;
use crate::services::Services;
use crate::sets::{self, File};

pub use family::Family;

/// Compares sets of runs.
#[derive(Clone, Debug)]
pub struct Compare {
    /// Files and folders of results. Of one, its schedulers are compared; of several, each with the
    /// first.
    pub files: Vec<PathBuf>,
    /// The scheduler of a single file that is the baseline. Without it the file says so, or it is
    /// the first.
    pub baseline: Option<String>,
    /// The one that is the baseline a second time, to estimate noise.
    pub again: Option<String>,
    /// Metrics to compare; `*` stands for any text. None: the goals of the load.
    pub metrics: Vec<String>,
    /// The smallest change that matters, as a part: 0.03 is 3 per cent.
    pub margin: f64,
    /// Seed of the resampling.
    pub resample_seed: u64,
    /// What is not to happen.
    pub fail_if: Option<FailIf>,
}

/// What came of a comparison.
#[derive(Debug)]
pub struct Judged {
    /// What was held against what.
    pub family: Family,
    /// A row for each comparison.
    pub rows: Vec<MetricRow>,
    /// How it was judged.
    pub settings: Settings,
    /// How it ends.
    pub ending: Ending,
}

/// How a comparison ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The runs decide, and what was not to happen did not.
    Decided,
    /// What was not to happen did.
    Exceeded,
    /// The runs do not decide.
    Inconclusive,
}

impl Compare {
    /// Reads the files, and holds their sets against each other.
    ///
    /// # Errors
    /// When a file cannot be read, or as [`Compare::judge`].
    pub fn ask(&self, services: &Services<'_>) -> Result<Judged, Error> {
        self.judge(sets::read_all(services, &self.files)?)
    }

    /// Holds sets that were read against each other.
    ///
    /// # Errors
    /// When there are no two sets to compare, a name is unknown, or the baseline has no valid run.
    pub fn judge(&self, files: Vec<File>) -> Result<Judged, Error> {
        Ok(self.judged(files)?)
    }

    fn judged(&self, files: Vec<File>) -> anyhow::Result<Judged> {
        let looks = files.iter().map(|file| file.looks).max().unwrap_or(1);
        let family = Family::of(files, self.baseline.as_deref(), self.again.as_deref())?;
        let settings = Settings {
            seed: self.resample_seed,
            margin: self.margin,
            looks,
            ..Settings::default()
        };
        let wanted = |series: &Series| self.metrics.iter().any(|it| matches(it, &series.name));
        let choice = match self.metrics.as_slice() {
            [] => Choice::Stated,
            _ => Choice::Named(&wanted),
        };
        let known = family.metrics();
        let unknown = |it: &&String| !known.iter().any(|name| matches(it, name));
        if let Some(pattern) = self.metrics.iter().find(unknown) {
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
        let ending = Ending::of(&rows, self.fail_if);
        Ok(Judged {
            family,
            rows,
            settings,
            ending,
        })
    }
}

/// Refuses rows of which none could be judged.
///
/// # Errors
/// Names the reason of each.
pub fn refuse_nothing(rows: &[MetricRow]) -> anyhow::Result<()> {
    let mut reasons = Vec::new();
    for row in rows {
        let Err(refusal) = &row.result else {
            return Ok(());
        };
        reasons.push(format!(
            "  {}, {}: {}",
            row.metric,
            row.arm,
            refusal.in_full()
        ));
    }
    anyhow::bail!("nothing can be compared\n{}", reasons.join("\n"))
}

/// What fails a build.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FailIf {
    /// Something is slower by more than this part.
    Slower(Limit),
    /// Something is not the same.
    Different,
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
    fn judge(self, row: &MetricRow) -> LimitOutcome {
        let Ok(judged) = &row.result else {
            return LimitOutcome::Unknown;
        };
        match (self, judged.verdict) {
            (Self::Slower(limit), _) => limit.judge(judged, row.better),
            (Self::Different, Some(Verdict::NoDifference)) => LimitOutcome::Kept,
            (Self::Different, Some(Verdict::Undecided(_)) | None) => LimitOutcome::Unknown,
            (Self::Different, _) => LimitOutcome::Exceeded,
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
#[must_use]
pub fn is_decided(row: &MetricRow) -> bool {
    let verdict = row.result.as_ref().ok().and_then(|it| it.verdict);
    verdict.is_some_and(|it| !matches!(it, Verdict::Undecided(_)))
}

impl Ending {
    /// How a comparison with these rows ends.
    #[must_use]
    pub fn of(rows: &[MetricRow], fail_if: Option<FailIf>) -> Self {
        let Some(fail_if) = fail_if else {
            return if rows.iter().any(is_decided) {
                Self::Decided
            } else {
                Self::Inconclusive
            };
        };
        let goals = rows.iter().filter(|row| row.is_goal);
        let outcomes: Vec<LimitOutcome> = goals.map(|row| fail_if.judge(row)).collect();
        if outcomes.contains(&LimitOutcome::Exceeded) {
            Self::Exceeded
        } else if outcomes.contains(&LimitOutcome::Unknown) {
            Self::Inconclusive
        } else {
            Self::Decided
        }
    }
}

#[cfg(test)]
mod tests {
    use stats::compare::{Better, Measure, Named, Refusal};

    use super::*;

    #[test]
    fn a_refusal_of_all_rows_says_what_each_takes() {
        let row = MetricRow {
            metric: "m".to_owned(),
            named: Named::default(),
            measure: Measure::Nanos,
            better: Better::Lower,
            is_goal: true,
            base: "a".to_owned(),
            arm: "b".to_owned(),
            place: String::new(),
            world: String::new(),
            base_extent: None,
            arm_extent: None,
            outliers: [Vec::new(), Vec::new()],
            result: Err(Refusal::TooFew { have: 1, need: 6 }),
        };
        let said = refuse_nothing(&[row]).unwrap_err().to_string();
        assert_eq!(said, "nothing can be compared\n  m, b: 1 run; it takes 6");
    }
}

//! Comparisons of sets of runs: which are held against which, how they are judged, the form of the
//! answer and which status it ends with. For `compare` and for `bench`.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use ask::compare::{Compare as Question, Ending};
use clap::Args;
use show::comparison;
use show::format::COMPARISONS;
use stats::compare::{MetricRow, Settings};

use crate::about::About;
use crate::exit::{Status, UsageError};
use crate::output;
use crate::page::Page;
use crate::report::Format;

pub use ask::compare::{FailIf, parse_percent, refuse_nothing};
pub use show::comparison::Compared;

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
    /// As a question has it, of `files`.
    pub fn asked(&self, files: Vec<PathBuf>) -> Question {
        Question {
            files,
            baseline: self.baseline.clone(),
            again: self.again.clone(),
            metrics: self.metric.clone(),
            margin: self.judging.margin,
            resample_seed: self.judging.resample_seed,
            fail_if: self.fail_if,
        }
    }
}

/// The form of a comparison that goes to `path`: what the user named, or what the file's ending
/// stands for.
///
/// # Errors
/// When the ending stands for another form, or a terminal would get bytes or a page.
pub fn form_of(given: Option<Format>, path: Option<&Path>) -> Result<Format, UsageError> {
    let form = output::form(given, path, COMPARISONS)?;
    output::check(form.export(), path)?;
    if form == Format::Html {
        output::page_file(path)?;
    }
    Ok(form)
}

/// Writes the comparison; tables for people are `width` columns wide at most, or have all columns.
///
/// # Errors
/// When `to` does not take it.
pub fn write(
    compared: &Compared<'_>,
    form: Format,
    width: Option<usize>,
    to: &mut dyn Write,
) -> io::Result<()> {
    let origin = About::origin();
    match (form, form.export()) {
        (_, Some(form)) => comparison::table_of(compared.rows, &origin).write(form, to),
        (Format::Json, _) => comparison::json(compared, &origin, to),
        (Format::Html, _) => comparison::page(compared, &origin).write(to),
        _ => comparison::text(compared, width, to),
    }
}

/// The page of a comparison.
pub fn page(compared: &Compared<'_>) -> Page {
    comparison::page(compared, &About::origin())
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

/// How a comparison ends.
pub fn status(rows: &[MetricRow], fail_if: Option<FailIf>) -> Status {
    Ending::of(rows, fail_if).into()
}

impl From<Ending> for Status {
    fn from(ending: Ending) -> Self {
        match ending {
            Ending::Decided => Self::Done,
            Ending::Exceeded => Self::Exceeded,
            Ending::Inconclusive => Self::Inconclusive,
        }
    }
}

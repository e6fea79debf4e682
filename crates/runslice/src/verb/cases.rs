//! `runslice cases [CASE...] --programs FOLDER`: bugs of published schedulers, shown again.

use std::io::Write as _;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use ask::cases::{self, CaseJudge, CaseResult, CaseVerdict, PublicCase};
use clap::{Args, ValueHint};
use show::cases as shown;
use show::format::CASES;

use crate::about::About;
use crate::computer::COMPUTER;
use crate::exit::{Status, UsageError};
use crate::look::WidthOptions;
use crate::output;
use crate::report::{Format, format_of};
use crate::say::say;

/// Arguments of `runslice cases`.
#[derive(Debug, Args)]
pub struct Cases {
    /// Cases: names of built-in ones, or TOML files. Default: all that are built in.
    #[arg(value_hint = ValueHint::Other)]
    case: Vec<String>,

    /// Folder with the versions of the schedulers: SCHEDULER-VERSION, such as scx_lavd-1.1.3, which
    /// is the scheduler's own program, or the same with .bundle, .bpf.o or .bpf.c behind it. The
    /// programs have your rights. Without it the cases are listed and nothing runs.
    ///
    /// `scripts/cases.sh` builds them. A case is shown if its bad versions show what its file asks
    /// for in more runs than chance explains, and its good ones in none, neither under its load
    /// nor under those that are like it. A case with a version that is missing cannot run.
    #[arg(long, value_name = "FOLDER")]
    programs: Option<PathBuf>,

    /// Runs of each version, each with another seed. Of each load that is like the case's a quarter
    /// as many runs are made.
    #[arg(long, value_name = "NUMBER", default_value_t = 20, requires = "programs",
        value_parser = clap::value_parser!(u32).range(3..=10_000))]
    seeds: u32,

    /// Threads. The number does not change the results. Default: one for each CPU.
    #[arg(long, value_name = "NUMBER")]
    jobs: Option<NonZeroUsize>,

    #[command(flatten)]
    tables: WidthOptions,

    /// Output format. Default: what the ending of the output file stands for (.json, .md), else
    /// `human`.
    #[arg(long, value_parser = format_of(CASES))]
    format: Option<Format>,

    /// Write the results to this file instead of standard output.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Judges the cases, or lists them.
///
/// # Errors
/// When there is no such case, or a case, its load or the folder is bad.
pub fn run(request: &Cases) -> anyhow::Result<Status> {
    let format = output::form(request.format, request.output.as_deref(), CASES)?;
    let cases = request.cases()?;
    let results = match &request.programs {
        Some(folder) => {
            if !folder.is_dir() {
                let message = model::Advised::new(
                    format!("--programs: {} is no folder", folder.display()),
                    "build the versions with scripts/cases.sh, and name their folder",
                );
                return Err(UsageError::new(message).into());
            }
            let judge = CaseJudge {
                folder,
                seeds: request.seeds,
                jobs: request.jobs,
            };
            let judged = cases.iter().map(|case| judge.judge(&COMPUTER, case));
            judged
                .collect::<Result<Vec<_>, _>>()
                .map_err(ask::Error::into_cause)?
        }
        None => cases.iter().cloned().map(CaseResult::listed).collect(),
    };
    let mut to = output::open(request.output.as_deref())?;
    let width = request.tables.width();
    match format {
        Format::Markdown => shown::markdown(&results, &mut to)?,
        Format::Json => shown::json(&results, &About::origin(), &mut to)?,
        _ if request.programs.is_none() => shown::list(&cases, width, &mut to)?,
        _ => shown::human(&results, width, &mut to)?,
    }
    to.flush()?;
    Ok(status(&results))
}

/// A case that came out otherwise is worse news than one that could not run.
fn status(results: &[CaseResult]) -> Status {
    let is_missing = |it: &&CaseResult| matches!(it.verdict, CaseVerdict::CannotRun(_));
    let missing = results.iter().filter(is_missing).count() as u64;
    if missing > 0 {
        let cases = crate::report::counted(missing, "case");
        let how = "scripts/cases.sh builds the versions";
        say("cases", &format!("{cases} could not run; {how}"));
    }
    if results.iter().any(CaseResult::is_otherwise) {
        Status::Exceeded
    } else if missing > 0 {
        Status::Unsupported
    } else {
        Status::Done
    }
}

impl Cases {
    fn cases(&self) -> anyhow::Result<Vec<PublicCase>> {
        if self.case.is_empty() {
            return cases::all();
        }
        let found = self.case.iter().map(|it| cases::find(&COMPUTER, it));
        found.collect()
    }
}

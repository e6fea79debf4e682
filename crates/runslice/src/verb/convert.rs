//! `runslice convert`.

use std::io::Write as _;
use std::path::PathBuf;

use ask::convert::Convert as Question;
use clap::{Args, ValueEnum};
use traces::foreign::Window;

use crate::computer::COMPUTER;
use crate::exit::Status;
use crate::{output, recording, workload_arg};

/// Arguments of `runslice convert`.
#[derive(Debug, Args)]
pub struct Convert {
    /// File to convert: an rt-app configuration (.json), a workload file, the name of a built-in
    /// workload, or a trace of perf, trace-cmd, ftrace or Perfetto, of which a workload file is
    /// made.
    workload: String,

    /// Language to convert to. Default: the other one of the two. With `toml`, a built-in workload
    /// is written as it is, with its comments.
    #[arg(long, value_enum)]
    to: Option<Language>,

    /// Set a parameter of the workload, one that its file lists under `scale`. May be repeated.
    #[arg(long, value_name = "NAME=VALUE", value_parser = workload_arg::parse_scale)]
    scale: Vec<(String, i64)>,

    /// Leave the names of programs out of a trace's workload.
    #[arg(long)]
    anonymous: bool,

    /// Part of the trace to use, in time since its begin, such as 2s..5s. Default: all.
    #[arg(long, value_name = "FROM..TO", value_parser = recording::parse_window)]
    window: Option<Window>,

    /// File to write instead of standard output.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Languages of workloads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Language {
    /// Workload file of runslice.
    Toml,
    /// Configuration of rt-app.
    RtApp,
}

/// Writes the workload in the other language, and says on standard error what is lost.
///
/// # Errors
/// If the file is bad, or something in it has no counterpart.
pub fn run(request: &Convert) -> anyhow::Result<Status> {
    output::spare(
        &[("the workload", workload_arg::file_of(&request.workload))],
        &[("--output", request.output.as_deref())],
    )?;
    let question = Question {
        workload: request.workload.clone(),
        to: request.to.map(|it| match it {
            Language::Toml => ask::convert::Language::Toml,
            Language::RtApp => ask::convert::Language::RtApp,
        }),
        scale: request.scale.clone(),
        anonymous: request.anonymous,
        window: request.window,
    };
    let text = question.ask(&COMPUTER).map_err(ask::Error::into_cause)?;
    let mut to = output::open(request.output.as_deref())?;
    to.write_all(text.as_bytes())?;
    to.flush()?;
    Ok(Status::Done)
}

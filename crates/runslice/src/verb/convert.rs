//! `runslice convert`.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use model::Advised;
use traces::foreign::Window;
use workload::rtapp;

use crate::exit::{Status, UsageError};
use crate::here::HERE;
use crate::say::say;
use crate::{input, output, recording, workload_arg};

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
    if recording::is_recording(Path::new(&request.workload)) {
        return trace(request);
    }
    if request.anonymous || request.window.is_some() {
        let message = "--anonymous and --window are for recordings";
        return Err(UsageError::new(message).into());
    }
    let from_rtapp = request.workload.to_ascii_lowercase().ends_with(".json");
    let to = match (request.to, from_rtapp) {
        (Some(to), _) => to,
        (None, true) => Language::Toml,
        (None, false) => Language::RtApp,
    };
    let text = match (to, from_rtapp) {
        (Language::Toml, true) => {
            let path = &request.workload;
            let text = input::text(Path::new(path), input::WRITTEN)?;
            let imported = rtapp::import(&text, path)?;
            say_lost(path, &imported.lost);
            imported.toml
        }
        (Language::Toml, false) => {
            if workload_arg::file_of(&request.workload).is_some() {
                anyhow::bail!(Advised::new(
                    format!("{} is a workload file already", request.workload),
                    "leave out --to for rt-app's language",
                ));
            }
            if !request.scale.is_empty() {
                let message = "--scale does not change the file: write it, and change its `scale`";
                return Err(UsageError::new(message).into());
            }
            workload_arg::Written::find(&HERE, &request.workload)?.text
        }
        (Language::RtApp, _) => {
            let workload = workload_arg::find(&request.workload, &request.scale)?;
            let exported = rtapp::export(&workload).map_err(|refused| {
                let lines = refused.join("\n  ");
                anyhow::anyhow!("rt-app cannot express all of this workload:\n  {lines}")
            })?;
            say_lost(&request.workload, &exported.lost);
            exported.json
        }
    };
    let mut to = output::open(request.output.as_deref())?;
    to.write_all(text.as_bytes())?;
    to.flush()?;
    Ok(Status::Done)
}

/// Makes a workload file of a recording.
fn trace(request: &Convert) -> anyhow::Result<Status> {
    if request.to == Some(Language::RtApp) {
        let message = Advised::new(
            "a recording becomes a workload file",
            "convert that to rt-app's language",
        );
        return Err(UsageError::new(message).into());
    }
    let window = request.window.unwrap_or_default();
    let path = Path::new(&request.workload);
    let text = recording::to_toml(path, window, request.anonymous)?;
    let mut to = output::open(request.output.as_deref())?;
    to.write_all(text.as_bytes())?;
    to.flush()?;
    Ok(Status::Done)
}

fn say_lost(file: &str, lost: &[String]) {
    for lost in lost {
        say("runslice", &format!("{file}: lost: {lost}"));
    }
}

//! `runslice convert`.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use workload::rtapp;

use crate::exit::Status;
use crate::say::say;
use crate::{input, output, workload_arg};

/// Arguments of `runslice convert`.
#[derive(Debug, Args)]
pub struct Convert {
    /// File to convert: an rt-app configuration (.json), a workload file, or the name of a built-in
    /// workload.
    workload: String,

    /// Language to convert to. Default: the other one of the two.
    #[arg(long, value_enum)]
    to: Option<Language>,

    /// Set a parameter of the workload, one that its file lists under `scale`. May be repeated.
    #[arg(long, value_name = "NAME=VALUE", value_parser = workload_arg::parse_scale)]
    scale: Vec<(String, i64)>,

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
            anyhow::bail!("{} is a workload file already", request.workload)
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

fn say_lost(file: &str, lost: &[String]) {
    for lost in lost {
        say("runslice", &format!("{file}: lost: {lost}"));
    }
}

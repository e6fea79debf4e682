//! The command line: arguments, files, printing, exit status. One file a verb, under `verb/`.
//!
//! No statistic is computed and no scheduling decision is made here.

#![forbid(unsafe_code)]

#[cfg(feature = "live")]
mod attach;
mod bundle;
mod cli;
mod comparison;
#[cfg(feature = "live")]
mod dumps;
mod embedded;
mod exit;
#[cfg(feature = "live")]
mod guest;
mod kernel;
mod machine_options;
mod output;
mod page;
mod parallel;
mod policy;
mod prepare;
mod profile;
mod progress;
mod recording;
mod report;
mod reproduce;
mod say;
mod schedstat;
#[cfg(feature = "live")]
mod series;
#[cfg(feature = "live")]
mod session;
mod sets;
mod sheet;
mod simulate;
mod store;
mod table;
#[cfg(feature = "live")]
mod tunables;
mod verb;
mod workload_arg;

use std::io;
use std::process::ExitCode;

use clap::Parser;

use crate::cli::Cli;
use crate::exit::{Status, UnsupportedError, UsageError};

fn main() -> ExitCode {
    match verb::run(Cli::parse().verb) {
        Ok(code) => code,
        Err(error) => explain(&error).into(),
    }
}

/// Prints an error and says which status it ends in.
fn explain(error: &anyhow::Error) -> Status {
    if is_broken_pipe(error) {
        // Whoever reads our output has seen enough: `runslice list | head -1` is no failure.
        return Status::Done;
    }
    say::say("runslice", &words(error));
    if error.is::<UsageError>() {
        Status::Usage
    } else if error.is::<UnsupportedError>() {
        Status::Unsupported
    } else {
        Status::Failure
    }
}

/// An error with its causes, each once: some errors have their cause's words in their own.
fn words(error: &anyhow::Error) -> String {
    let mut words = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if words.is_empty() {
            words = cause;
        } else if !words.contains(&cause) {
            words = format!("{words}: {cause}");
        }
    }
    words
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let io_errors = error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>());
    io_errors
        .map(io::Error::kind)
        .any(|kind| kind == io::ErrorKind::BrokenPipe)
}

#[cfg(test)]
mod tests {
    use anyhow::Context as _;

    use super::*;

    #[test]
    fn a_cause_that_was_said_is_not_said_again() {
        let missing = io::Error::from_raw_os_error(2);
        let said = anyhow::anyhow!("/x: {missing}");
        let error = Err::<(), _>(missing).context("/x: No such file or directory (os error 2)");
        assert_eq!(words(&error.unwrap_err()), said.to_string());
        let error: anyhow::Result<()> = Err(anyhow::anyhow!("no room")).context("cannot write y");
        assert_eq!(words(&error.unwrap_err()), "cannot write y: no room");
    }
}

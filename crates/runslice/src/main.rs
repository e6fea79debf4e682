//! The command line: arguments, files, printing, exit status. One file a verb, under `verb/`.
//!
//! No statistic is computed and no scheduling decision is made here.

#![forbid(unsafe_code)]

mod bundle;
mod cli;
mod embedded;
mod kernel;
mod output;
mod policy;
mod prepare;
mod progress;
mod recording;
mod report;
#[cfg(feature = "live")]
mod session;
mod span;
mod suggest;
mod table;
#[cfg(feature = "live")]
mod tunables;
mod verb;
mod workload;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Parser;

use crate::cli::{Cli, Status, UnsupportedError, UsageError};

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
    // Nobody can be told when standard error is closed too.
    let _ = writeln!(io::stderr(), "runslice: {error:#}");
    if error.is::<UsageError>() {
        Status::Usage
    } else if error.is::<UnsupportedError>() {
        Status::Unsupported
    } else {
        Status::Failure
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let io_errors = error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>());
    io_errors
        .map(io::Error::kind)
        .any(|kind| kind == io::ErrorKind::BrokenPipe)
}

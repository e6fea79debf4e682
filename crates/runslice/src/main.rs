//! The command line: arguments, files, printing, exit status. One file a verb, under `verb/`.
//!
//! No statistic is computed and no scheduling decision is made here.

#![forbid(unsafe_code)]

mod about;
mod bundle;
mod cli;
mod comparison;
mod complete;
mod embedded;
mod exit;
mod explanation;
mod export;
mod fidelity;
mod generate;
mod goal;
mod input;
mod kernel;
mod look;
mod machine_options;
#[cfg(feature = "live")]
mod on_kernel;
mod output;
mod page;
mod parallel;
mod plan;
mod policy;
mod prepare;
mod profile;
mod progress;
mod recording;
mod report;
mod reproduce;
mod runs;
mod say;
mod schedstat;
mod scheduler;
mod sets;
mod shrink;
mod simulate;
mod source;
mod store;
mod table;
mod timeline;
mod verb;
mod violation;
#[cfg(not(feature = "live"))]
mod without_kernel;
mod workload_arg;

use std::io;
use std::process::ExitCode;

use clap::Parser;

use crate::cli::Cli;
use crate::exit::{Status, UnsupportedError, UsageError, words};
#[cfg(not(feature = "live"))]
use crate::without_kernel as on_kernel;

/// Exhausted memory ends in a message and a status, too.
#[global_allocator]
static ALLOCATOR: bpf::CheckedAllocator = bpf::CheckedAllocator {
    program: "runslice",
    status: Status::Failure as i32,
};

fn main() -> ExitCode {
    // A shell that completes a line runs this program, and gets its answer here.
    clap_complete::CompleteEnv::with_factory(complete::command).complete();
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

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let io_errors = error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>());
    io_errors
        .map(io::Error::kind)
        .any(|kind| kind == io::ErrorKind::BrokenPipe)
}

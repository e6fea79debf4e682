//! The command line: arguments, files, printing, exit status. One file a verb, under `verb/`.
//!
//! No statistic is computed and no scheduling decision is made here. [`main()`] is the command line
//! as a function; [`COMPUTER`] is what other doors ask questions with. Only the command line is
//! stable: see CHANGELOG.md.

#![forbid(unsafe_code)]
// Some of what verbs share is used by those alone that need a kernel.
#![cfg_attr(not(feature = "live"), allow(dead_code))]

mod about;
mod choose;
mod cli;
mod comparison;
mod complete;
mod computer;
mod confirm;
pub mod door;
mod exit;
mod explains;
mod fidelity;
mod files;
mod help;
mod interrupt;
mod kind;
mod left_out;
mod look;
mod machine_options;
#[cfg(feature = "live")]
mod on_kernel;
mod output;
mod parallel;
mod prepare;
mod programs;
mod progress;
mod python;
mod recording_options;
mod refusal;
mod report;
mod run_options;
mod say;
mod schedstat;
mod scheduler;
mod score;
mod script;
mod secret;
mod shrink;
mod source;
mod store;
mod verb;
mod wall_time;
#[cfg(not(feature = "live"))]
mod without_kernel;

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::process::ExitCode;

use ask::{
    ErrorKind, bundle, embedded, goal, input, kernel, policy, recording, runner, runs, violation,
    workload_arg,
};
use clap_complete::CompleteEnv;
use show::{explanation, export, page, table, timeline};

use crate::about::About;
use crate::cli::{Cli, Verb};
use crate::exit::{Status, advised, in_two_lines};
#[cfg(not(feature = "live"))]
use crate::without_kernel as on_kernel;

pub use allocator::CheckedAllocator;

pub use crate::choose::Chosen;
pub use crate::computer::COMPUTER;
pub use crate::look::width;
pub use crate::output::{ending, in_memory};
pub use crate::report::table_of_csv;
pub use crate::say::line;
pub use crate::source::Sources;
pub use crate::store::{SIMULATES, Store};

/// An error of a question in the words of this program: what is wrong, and below it what to do.
#[must_use]
pub fn in_words(error: &anyhow::Error) -> String {
    say::printable(&in_two_lines(&advised(error)))
}

/// The allocator of programs that call this crate: exhausted memory ends in a message and a status,
/// too.
pub const ALLOCATOR: CheckedAllocator = CheckedAllocator {
    program: "runslice",
    status: Status::Failure as i32,
};

/// The program `runslice`, whose file this process runs: some verbs start it again, or put it into
/// a virtual machine.
#[must_use]
pub fn program() -> ExitCode {
    programs::this_is(programs::RUNSLICE);
    interrupt::listen();
    ExitCode::from(main(programs::words()))
}

/// The command line. The first of `args` is the program's name.
///
/// Results go to standard output, messages to standard error. The answer is the exit status, which
/// `runslice --help` explains.
pub fn main(args: impl IntoIterator<Item = OsString>) -> u8 {
    let args: Vec<OsString> = args.into_iter().collect();
    // A shell that completes a line runs this program, and gets its answer here.
    let folder = std::env::current_dir().ok();
    let shell = CompleteEnv::with_factory(complete::command);
    let status = match shell.try_complete(args.iter().cloned(), folder.as_deref()) {
        Ok(false) => of_words(&args, verb::run),
        Ok(true) => Status::Done as u8,
        Err(error) => refusal(&error),
    };
    // A process that is not the program does not empty Rust's buffer at its end. Who has closed
    // standard output wants no more.
    let _ = io::stdout().flush();
    status
}

/// Has `run` do what the words ask for, and gives the exit status.
fn of_words(args: &[OsString], run: impl FnOnce(Verb) -> anyhow::Result<u8>) -> u8 {
    let cli = match Cli::of(args) {
        Ok(cli) => cli,
        Err(error) => return refusal(&error),
    };
    About::called(args, || {
        let result = run(cli.verb);
        let status = match result {
            // What a verb says of work that was given up is no answer.
            _ if interrupt::has_come() => Status::Interrupted as u8,
            Ok(status) => status,
            Err(error) => explain(&error) as u8,
        };
        let has_come = interrupt::has_come() || on_kernel::is_interrupted();
        if has_come && status == Status::Interrupted as u8 {
            interrupt::say_once();
        }
        status
    })
}

/// Prints what clap has to say, which also is help, and gives its status.
fn refusal(error: &clap::Error) -> u8 {
    match refusal::words(error) {
        Some(words) => say::say("runslice", &in_two_lines(&words)),
        // Nobody can be told when the output is closed.
        None => drop(error.print()),
    }
    error.exit_code() as u8
}

/// Prints an error and says which status it ends in.
fn explain(error: &anyhow::Error) -> Status {
    if is_broken_pipe(error) {
        // Whoever reads our output has seen enough: `runslice list | head -1` is no failure.
        return Status::Done;
    }
    if ErrorKind::of(error) == ErrorKind::Cancelled {
        // What was given up is said where the signal is.
        return Status::Interrupted;
    }
    let mut told = advised(error);
    told.advice = kind::of_missing_file(error).or(told.advice);
    say::say("runslice", &in_two_lines(&told));
    match ErrorKind::of(error) {
        ErrorKind::Usage => Status::Usage,
        ErrorKind::Unsupported => Status::Unsupported,
        ErrorKind::Input => Status::Failure,
        ErrorKind::Cancelled => Status::Interrupted,
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

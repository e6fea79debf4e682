//! The verbs of the command line.

#[cfg(feature = "live")]
pub mod bench;
pub mod bundle;
pub mod check;
pub mod compare;
pub mod convert;
#[cfg(feature = "live")]
pub mod doctor;
pub mod list;
#[cfg(feature = "live")]
pub mod load;
#[cfg(feature = "live")]
pub mod play;
pub mod report;
pub mod reproduce;
#[cfg(feature = "live")]
pub mod run;
#[cfg(feature = "live")]
pub mod set;
pub mod sim;
pub mod stat;
#[cfg(feature = "live")]
pub mod status;
#[cfg(feature = "live")]
pub mod stop;
pub mod sweep;
pub mod trace;
#[cfg(feature = "live")]
pub mod vm;

mod completions;
mod man;

use std::process::ExitCode;

use crate::cli::Verb;
use crate::exit::Status;

/// Does what the user asked for.
///
/// # Errors
/// When a file is bad or the command line names something that does not exist.
pub fn run(verb: Verb) -> anyhow::Result<ExitCode> {
    let status: Status = match verb {
        // A command's own status, whatever it is.
        #[cfg(feature = "live")]
        Verb::Vm(request) => return vm::run(&request),
        #[cfg(feature = "live")]
        Verb::Run(request) => run::run(&request),
        #[cfg(feature = "live")]
        Verb::Set(request) => set::run(&request),
        #[cfg(feature = "live")]
        Verb::Status(request) => status::run(&request),
        #[cfg(feature = "live")]
        Verb::Stop(request) => stop::run(&request),
        #[cfg(feature = "live")]
        Verb::Doctor(request) => doctor::run(&request),
        #[cfg(feature = "live")]
        Verb::Play(request) => play::run(&request),
        #[cfg(feature = "live")]
        Verb::Load(request) => load::run(&request),
        #[cfg(feature = "live")]
        Verb::Bench(request) => bench::run(&request),
        Verb::Sim(request) => sim::run(&request),
        Verb::Bundle(request) => bundle::run(&request),
        Verb::Trace(request) => trace::run(&request),
        Verb::Stat(request) => stat::run(&request),
        Verb::Compare(request) => compare::run(&request),
        Verb::Sweep(request) => sweep::run(&request),
        Verb::Report(request) => report::run(&request),
        Verb::Reproduce(request) => reproduce::run(&request),
        Verb::List(request) => list::run(&request),
        Verb::Check(request) => check::run(&request),
        Verb::Convert(request) => convert::run(&request),
        Verb::Completions { shell } => completions::run(shell),
        Verb::Man { folder } => man::run(&folder),
    }?;
    Ok(status.into())
}

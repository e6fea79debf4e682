//! The verbs of the command line.

pub mod build;
pub mod bundle;
pub mod calibrate;
pub mod cases;
pub mod check;
pub mod choose;
pub mod compare;
pub mod convert;
pub mod diff;
pub mod evaluate;
pub mod explain;
pub mod fidelity;
pub mod gate;
pub mod hunt;
pub mod lab;
pub mod list;
pub mod report;
pub mod reproduce;
pub mod score;
pub mod sim;
pub mod stat;
pub mod sweep;
pub mod trace;
pub mod tune;

mod completions;
mod man;

use crate::cli::Verb;
use crate::exit::Status;
use crate::on_kernel;

/// Does what the user asked for.
///
/// # Errors
/// When a file is bad or the command line names something that does not exist.
pub fn run(verb: Verb) -> anyhow::Result<u8> {
    let status: Status = match verb {
        Verb::OnKernel(verb) => return on_kernel::run(verb),
        Verb::Reproduce(_) => return reproduce::run(),
        Verb::Sim(request) => sim::run(&request),
        Verb::Build(request) => build::run(&request),
        Verb::Bundle(request) => bundle::run(&request),
        Verb::Cases(request) => cases::run(&request),
        Verb::Calibrate(request) => calibrate::run(&request),
        Verb::Choose(request) => choose::run(&request),
        Verb::Score(request) => score::run(&request),
        Verb::Trace(request) => trace::run(&request),
        Verb::Diff(request) => diff::run(&request),
        Verb::Evaluate(request) => evaluate::run(&request),
        Verb::Explain(request) => explain::run(&request),
        Verb::Fidelity(request) => fidelity::run(&request),
        Verb::Gate(request) => gate::run(&request),
        Verb::Lab(request) => lab::run(&request),
        Verb::Hunt(request) => hunt::run(&request),
        Verb::Stat(request) => stat::run(&request),
        Verb::Compare(request) => compare::run(&request),
        Verb::Sweep(request) => sweep::run(&request),
        Verb::Tune(request) => tune::run(&request),
        Verb::Report(request) => report::run(&request),
        Verb::List(request) => list::run(&request),
        Verb::Check(request) => check::run(&request),
        Verb::Convert(request) => convert::run(&request),
        Verb::Completions { shell } => completions::run(shell),
        Verb::Man { folder } => man::run(&folder),
    }?;
    Ok(status.into())
}

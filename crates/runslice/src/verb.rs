//! The verbs of the command line.

pub mod check;
pub mod list;
pub mod sim;

mod completions;
mod man;

use crate::cli::{Status, Verb};

/// Does what the user asked for.
///
/// # Errors
/// When a file is bad or the command line names something that does not exist.
pub fn run(verb: Verb) -> anyhow::Result<Status> {
    match verb {
        Verb::Sim(request) => sim::run(&request),
        Verb::List(request) => list::run(&request),
        Verb::Check(request) => check::run(&request),
        Verb::Completions { shell } => completions::run(shell),
        Verb::Man { folder } => man::run(&folder),
    }
}

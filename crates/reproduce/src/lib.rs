//! Published experiments, rerun: a program of its own, `runslice-reproduce`, which `runslice
//! reproduce` starts.
//!
//! `experiments` reads files and judges what runs say; it knows no machine and no command line.
//! `machines` make the runs, `results` are the forms that a person or a program gets, and `mutants`
//! asks whether a verdict would notice. `rerun` puts them together.

#![forbid(unsafe_code)]
// Files of experiments say what kernels alone use.
#![cfg_attr(not(feature = "live"), allow(dead_code, unused_imports))]

mod experiments;
mod machines;
mod mutants;
mod rerun;
mod results;

use std::process::ExitCode;

use ask::error::advice_of;

/// The program: its arguments are those of `runslice reproduce`.
#[must_use]
pub fn program() -> ExitCode {
    runslice::door::reproduce(advice_of::<experiments::Error>, rerun::run)
}

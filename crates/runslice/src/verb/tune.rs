//! `runslice tune POLICY --workload WORKLOAD --goal GOAL`.

use clap::Args;

use crate::exit::Status;
use crate::python;

/// Arguments of `runslice tune`. The Python package reads them.
#[derive(Debug, Args)]
pub struct Tune {
    /// Policy whose knobs are searched, then options: `-w WORKLOAD`, `--goal GOAL` (once or twice),
    /// `--budget RUNS`, `--knob NAME` or `--knob NAME=LEAST..MOST`, `--on ENGINE`, and the machine
    /// as of `sim`. docs/python.md lists them all.
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "POLICY"
    )]
    words: Vec<String>,
}

/// Lets the Python package search.
///
/// # Errors
/// When it is not installed.
pub fn run(_: &Tune) -> anyhow::Result<Status> {
    python::hand_over("tune")
}

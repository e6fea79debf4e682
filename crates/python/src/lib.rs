//! The compiled half of the Python package `runslice`: requests in, results out, as
//! `runslice::library` has them. What is shown to people stands in `python/runslice`.

#![forbid(unsafe_code)]
#![expect(
    clippy::needless_pass_by_value,
    reason = "what Python passes is copied, and then is ours"
)]

mod chosen;
mod errors;
mod explained;
mod given;
mod plan;
mod run;
mod scored;
mod table;
mod verdict;
mod wait;

/// Exhausted memory ends in a message and a status, as in the program.
#[global_allocator]
static ALLOCATOR: runslice::CheckedAllocator = runslice::ALLOCATOR;

/// The compiled half of `runslice`.
#[pyo3::pymodule]
mod _runslice {
    use std::ffi::OsString;

    use pyo3::prelude::*;

    #[pymodule_export]
    use super::chosen::Chosen;
    #[pymodule_export]
    use super::errors::{Error, UnsupportedError, UsageError};
    #[pymodule_export]
    use super::explained::Explained;
    #[pymodule_export]
    use super::given::{Load, Policy};
    #[pymodule_export]
    use super::plan::{Cell, Plan, Store};
    #[pymodule_export]
    use super::run::{Request, Run};
    #[pymodule_export]
    use super::scored::Scored;
    #[pymodule_export]
    use super::table::Table;
    #[pymodule_export]
    use super::verdict::Verdict;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("VERSION", runslice::library::VERSION)
    }

    /// The command line. `args` begins with the program's name. Gives the exit status.
    #[pyfunction]
    fn main(py: Python<'_>, args: Vec<OsString>) -> u8 {
        py.detach(|| runslice::main(args))
    }

    /// A goal in full, and whether more of it is better.
    #[pyfunction]
    fn goal(text: &str) -> PyResult<(String, bool)> {
        runslice::library::goal(text).map_err(super::errors::raise)
    }

    /// Name and summary of the built-in policies.
    #[pyfunction]
    fn policies() -> Vec<(&'static str, &'static str)> {
        runslice::library::policies()
    }

    /// Name and summary of the built-in workloads.
    #[pyfunction]
    fn workloads() -> Vec<(&'static str, String)> {
        runslice::library::workloads()
    }
}

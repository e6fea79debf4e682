//! The compiled half of the Python package `runslice`: Python's values become questions of `ask`,
//! and their answers what `show` makes of them. What is shown to people stands in
//! `python/runslice`.

#![forbid(unsafe_code)]
#![expect(
    clippy::needless_pass_by_value,
    reason = "what Python passes is copied, and then is ours"
)]

mod checked;
mod chosen;
mod errors;
mod evaluated;
mod explained;
mod given;
mod options;
mod plan;
mod run;
mod scored;
mod sheet;
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

    use ask::goal::Goal;
    use ask::workload_arg::SHIPPED;
    use pyo3::prelude::*;
    use stats::compare::Better;

    #[pymodule_export]
    use super::checked::check;
    #[pymodule_export]
    use super::chosen::PyChosen;
    #[pymodule_export]
    use super::errors::{Error, UnsupportedError, UsageError};
    #[pymodule_export]
    use super::evaluated::evaluate;
    #[pymodule_export]
    use super::explained::Explained;
    #[pymodule_export]
    use super::given::{PyLoad, PyPolicy};
    #[pymodule_export]
    use super::plan::{PyCell, PyPlan, PyStore};
    #[pymodule_export]
    use super::run::{PyRequest, PyRun};
    #[pymodule_export]
    use super::scored::PyScored;
    #[pymodule_export]
    use super::sheet::lab_sheet;
    #[pymodule_export]
    use super::table::PyTable;
    #[pymodule_export]
    use super::verdict::PyVerdict;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("VERSION", show::VERSION)
    }

    /// The command line. `args` begins with the program's name. Gives the exit status.
    #[pyfunction]
    fn main(py: Python<'_>, args: Vec<OsString>) -> u8 {
        py.detach(|| runslice::main(args))
    }

    /// A goal in full, and whether more of it is better.
    #[pyfunction]
    fn goal(text: &str) -> PyResult<(String, bool)> {
        let goal: Goal = text.parse().map_err(super::errors::usage)?;
        Ok((goal.to_string(), goal.better() == Better::Higher))
    }

    /// Name and summary of the built-in policies.
    #[pyfunction]
    fn policies() -> Vec<(&'static str, &'static str)> {
        let all = ::policies::ALL.iter().chain(::policies::LESSONS);
        all.map(|it| (it.name, it.summary)).collect()
    }

    /// Name and summary of the built-in workloads.
    #[pyfunction]
    fn workloads() -> Vec<(&'static str, String)> {
        let all = SHIPPED.iter();
        all.map(|it| (it.name, it.summary())).collect()
    }
}

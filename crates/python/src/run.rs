//! Simulated runs.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use runslice::library::{self, Shape};

use crate::errors::{raise, value};
use crate::explained::Explained;
use crate::given::{Load, Policy};
use crate::table::Table;
use crate::verdict::Verdict;
use crate::wait::wait;

/// What is asked for.
#[pyclass(frozen, module = "runslice._runslice")]
pub struct Request(pub library::Request);

#[pymethods]
impl Request {
    #[new]
    fn new(
        policies: Vec<PyRef<'_, Policy>>,
        load: Option<PyRef<'_, Load>>,
        options: Vec<String>,
        goals: Vec<String>,
    ) -> Self {
        let policies = policies.iter().map(|it| it.0.clone()).collect();
        let load = load.map(|it| it.0.clone());
        Self(library::Request::new(policies, load, options, goals))
    }

    fn simulate(&self, py: Python<'_>) -> PyResult<Run> {
        let request = self.0.clone();
        let run = wait(py, move || library::simulate(&request))?;
        Ok(Run(Arc::new(value(py, run)?)))
    }

    #[pyo3(signature = (worst=None, task=None))]
    fn explain(
        &self,
        py: Python<'_>,
        worst: Option<u16>,
        task: Option<String>,
    ) -> PyResult<Explained> {
        let request = self.0.clone();
        let explained = wait(py, move || {
            library::explain(&request, worst, task.as_deref())
        })?;
        value(py, explained).map(Explained)
    }
}

/// Runs that are over.
#[pyclass(frozen, module = "runslice._runslice")]
pub struct Run(Arc<library::Run>);

/// Policy, seed, nanoseconds, the kernel's words for an ejection, starved tasks, goals.
type End = (String, u64, u64, Option<String>, usize, Vec<Option<f64>>);

#[pymethods]
impl Run {
    #[pyo3(signature = (format="", table="", wide=false, output=None))]
    fn command(&self, format: &str, table: &str, wide: bool, output: Option<&str>) -> Vec<String> {
        let shape = Shape {
            format,
            table,
            wide,
            output,
        };
        self.0.command(&shape)
    }

    #[getter]
    fn workload(&self) -> &str {
        self.0.workload()
    }

    #[getter]
    fn machine(&self) -> String {
        self.0.machine()
    }

    fn ends(&self) -> Vec<End> {
        let ends = self.0.ends().into_iter();
        ends.map(|it| {
            (
                it.policy,
                it.seed,
                it.elapsed_ns,
                it.ejection,
                it.starved,
                it.goals,
            )
        })
        .collect()
    }

    #[pyo3(signature = (format="", table="", wide=false, output=None))]
    fn write<'py>(
        own: &Bound<'py, Self>,
        format: &str,
        table: &str,
        wide: bool,
        output: Option<String>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let (py, run) = (own.py(), Arc::clone(&own.get().0));
        let [format, table] = [format, table].map(str::to_owned);
        let bytes = wait(py, move || {
            run.write(&Shape {
                format: &format,
                table: &table,
                wide,
                output: output.as_deref(),
            })
        })?;
        Ok(PyBytes::new(py, &bytes.map_err(raise)?))
    }

    fn table(&self, name: &str) -> PyResult<Table> {
        Table::of_cells(&self.0.table(name).map_err(raise)?)
    }

    #[staticmethod]
    fn tables() -> Vec<String> {
        library::Run::tables()
    }

    fn events(&self, py: Python<'_>, index: usize, decisions: bool) -> PyResult<Table> {
        let run = Arc::clone(&self.0);
        let events = wait(py, move || run.events(index, decisions))?;
        Table::of_events(events.map_err(raise)?)
    }

    fn judge(&self, py: Python<'_>, options: Vec<String>) -> PyResult<Verdict> {
        let run = Arc::clone(&self.0);
        let verdict = wait(py, move || library::judge(&run, &options))?;
        value(py, verdict).map(Verdict)
    }

    fn alone(&self, index: usize) -> PyResult<Request> {
        self.0.alone(index).map(Request).map_err(raise)
    }
}

//! How far the simulation of a recording can be trusted.

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use runslice::library;

use crate::errors::{raise, value};
use crate::table::Table;
use crate::wait::wait;

/// A score.
#[pyclass(frozen, module = "runslice._runslice")]
pub struct Scored(pub library::Scored);

#[pymethods]
impl Scored {
    #[staticmethod]
    fn of(py: Python<'_>, words: Vec<String>) -> PyResult<Self> {
        let scored = wait(py, move || library::score(&words))?;
        value(py, scored).map(Self)
    }

    fn command(&self, format: &str) -> Vec<String> {
        self.0.command(format)
    }

    #[getter]
    fn status(&self) -> u8 {
        self.0.status()
    }

    #[getter]
    fn answer(&self) -> String {
        self.0.answer()
    }

    fn write<'py>(&self, py: Python<'py>, format: &str) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &self.0.write(format).map_err(raise)?))
    }

    fn table(&self) -> PyResult<Table> {
        Table::of_cells(&self.0.table())
    }
}

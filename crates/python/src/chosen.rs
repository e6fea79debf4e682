//! Which scheduler is best for a load.

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use runslice::library::{self, Choosing};

use crate::errors::{raise, value};
use crate::given::{Load, Policy};
use crate::table::Table;
use crate::wait::wait;

/// What was chosen, and why.
#[pyclass(frozen, module = "runslice._runslice")]
pub struct Chosen(pub library::Chosen);

#[pymethods]
impl Chosen {
    #[staticmethod]
    fn of(
        py: Python<'_>,
        candidates: Vec<PyRef<'_, Policy>>,
        baseline: Option<PyRef<'_, Policy>>,
        load: PyRef<'_, Load>,
        options: Vec<String>,
    ) -> PyResult<Self> {
        let asked = Choosing {
            candidates: candidates.iter().map(|it| it.0.clone()).collect(),
            baseline: baseline.map(|it| it.0.clone()),
            load: load.0.clone(),
            options,
        };
        let chosen = wait(py, move || library::choose(&asked))?;
        value(py, chosen).map(Self)
    }

    fn command(&self, format: &str) -> Vec<String> {
        self.0.command(format)
    }

    #[getter]
    fn status(&self) -> u8 {
        self.0.status()
    }

    #[getter]
    fn answer(&self) -> Vec<String> {
        self.0.answer()
    }

    #[getter]
    fn winner(&self) -> Option<(String, String)> {
        let winner = self.0.winner();
        winner.map(|(name, command)| (name.to_owned(), command))
    }

    fn write<'py>(&self, py: Python<'py>, format: &str) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &self.0.write(format).map_err(raise)?))
    }

    fn table(&self) -> PyResult<Table> {
        Table::of_cells(&self.0.table())
    }
}

//! Comparisons.

use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use runslice::library::{self, Set};

use crate::errors::{raise, value};
use crate::table::Table;
use crate::wait::wait;

/// A comparison that was made.
#[pyclass(frozen, module = "runslice._runslice")]
pub struct Verdict(pub library::Verdict);

/// A file or folder, or the bytes of a JSON document and what its file would be called.
#[derive(FromPyObject)]
enum Given {
    Document(String, Vec<u8>),
    File(PathBuf),
}

#[pymethods]
impl Verdict {
    #[staticmethod]
    fn of(py: Python<'_>, sets: Vec<Given>, options: Vec<String>) -> PyResult<Self> {
        let sets = sets.into_iter().map(|given| match given {
            Given::File(path) => Set::File(path),
            Given::Document(name, bytes) => Set::Document { name, bytes },
        });
        let sets: Vec<Set> = sets.collect();
        let verdict = wait(py, move || library::compare(&sets, &options))?;
        value(py, verdict).map(Self)
    }

    fn command(&self, format: &str) -> Vec<String> {
        self.0.command(format)
    }

    #[getter]
    fn status(&self) -> u8 {
        self.0.status()
    }

    fn sentences(&self) -> Vec<String> {
        self.0.sentences()
    }

    fn write<'py>(&self, py: Python<'py>, format: &str) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &self.0.write(format).map_err(raise)?))
    }

    fn table(&self) -> PyResult<Table> {
        Table::of_cells(&self.0.table())
    }
}

//! Plans of many runs, for engines that make them elsewhere.

use std::path::PathBuf;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use runslice::library;

use crate::errors::{raise, value};
use crate::run::Request;
use crate::wait::wait;

/// The runs that a sweep's file or a list of requests asks for.
#[pyclass(frozen, module = "runslice._runslice")]
pub struct Plan(Arc<library::Plan>);

#[pymethods]
impl Plan {
    #[staticmethod]
    fn read(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let plan = wait(py, move || library::Plan::read(&path))?;
        value(py, plan).map(|plan| Self(Arc::new(plan)))
    }

    #[staticmethod]
    fn of(py: Python<'_>, requests: Vec<PyRef<'_, Request>>) -> PyResult<Self> {
        let requests: Vec<_> = requests.iter().map(|it| it.0.clone()).collect();
        let plan = wait(py, move || library::Plan::of(&requests))?;
        value(py, plan).map(|plan| Self(Arc::new(plan)))
    }

    #[getter]
    fn runs(&self) -> usize {
        self.0.runs()
    }

    #[getter]
    fn cells(&self) -> usize {
        self.0.cells()
    }

    fn try_policies(&self, py: Python<'_>) -> PyResult<()> {
        let plan = Arc::clone(&self.0);
        let tried = wait(py, move || plan.try_policies())?;
        value(py, tried)
    }

    fn run(&self, index: usize) -> Option<(usize, u64)> {
        self.0.run(index)
    }

    fn key(&self, py: Python<'_>, index: usize) -> PyResult<String> {
        py.detach(|| self.0.key(index)).map_err(raise)
    }

    fn key_of(&self, py: Python<'_>, cell: usize, seed: u64) -> PyResult<String> {
        py.detach(|| self.0.key_of(cell, seed)).map_err(raise)
    }

    fn cell(&self, cell: usize) -> Option<Cell> {
        self.0.cell(cell).map(Cell)
    }

    fn object<'py>(&self, py: Python<'py>, cell: usize) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.0.object(cell))
    }

    fn rest<'py>(&self, py: Python<'py>, cell: usize) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &self.0.rest(cell).map_err(raise)?))
    }

    fn id(&self, py: Python<'_>) -> String {
        py.detach(|| self.0.id())
    }

    fn part<'py>(
        &self,
        py: Python<'py>,
        store: &Store,
        begin: usize,
        end: usize,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let part = py.detach(|| self.0.part(&store.0, begin, end));
        Ok(PyBytes::new(py, &part.map_err(raise)?))
    }

    fn finish(&self, py: Python<'_>, store: &Store) -> PyResult<String> {
        py.detach(|| self.0.finish(&store.0)).map_err(raise)
    }
}

/// A cell that a worker makes runs of.
#[pyclass(frozen, module = "runslice._runslice")]
pub struct Cell(library::Cell);

#[pymethods]
impl Cell {
    #[staticmethod]
    fn of(py: Python<'_>, rest: &[u8], object: &[u8]) -> PyResult<Self> {
        let cell = py.detach(|| library::Cell::of(rest, object));
        value(py, cell).map(Self)
    }

    fn make(&self, py: Python<'_>, seed: u64) -> PyResult<(String, String)> {
        let made = py.detach(|| self.0.make(seed));
        value(py, made)
    }
}

/// The folder of results that `runslice sweep` keeps.
#[pyclass(frozen, module = "runslice._runslice")]
pub struct Store(library::Store);

#[pymethods]
impl Store {
    #[staticmethod]
    fn open(folder: PathBuf) -> PyResult<Self> {
        library::Store::open(&folder).map(Self).map_err(raise)
    }

    fn get(&self, py: Python<'_>, key: &str) -> PyResult<Option<String>> {
        py.detach(|| self.0.get(key)).map_err(raise)
    }

    fn put(&self, py: Python<'_>, key: &str, line: &str) -> PyResult<()> {
        py.detach(|| self.0.put(key, line)).map_err(raise)
    }
}

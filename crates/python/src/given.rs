//! Policies and workloads.

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use runslice::library;

use crate::errors::{raise, value};

/// A policy.
#[pyclass(frozen, module = "runslice._runslice")]
pub struct Policy(pub library::Policy);

/// Name, default, least and greatest value, unit, what it does.
type Knob = (String, i64, i64, i64, String, String);

#[pymethods]
impl Policy {
    #[staticmethod]
    fn named(py: Python<'_>, word: &str) -> PyResult<Self> {
        let policy = py.detach(|| library::Policy::named(word));
        value(py, policy).map(Self)
    }

    #[staticmethod]
    fn of_bytes(py: Python<'_>, word: &str, file: Vec<u8>) -> PyResult<Self> {
        value(py, library::Policy::of_bytes(word, file)).map(Self)
    }

    #[staticmethod]
    fn of_source(py: Python<'_>, word: &str, text: &str) -> PyResult<Self> {
        let policy = py.detach(|| library::Policy::of_source(word, text));
        value(py, policy).map(Self)
    }

    #[staticmethod]
    fn of_program(py: Python<'_>, command: &str) -> PyResult<Self> {
        value(py, library::Policy::of_program(command)).map(Self)
    }

    fn with_knobs(&self, knobs: Vec<(String, String)>) -> PyResult<Self> {
        self.0.with(&knobs).map(Self).map_err(raise)
    }

    #[getter]
    fn word(&self) -> &str {
        self.0.word()
    }

    #[getter]
    fn name(&self) -> &str {
        self.0.name()
    }

    #[getter]
    fn set(&self) -> Vec<(String, String)> {
        self.0.set().to_vec()
    }

    #[getter]
    fn object<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.0.object())
    }

    fn knobs(&self) -> PyResult<Vec<Knob>> {
        let knobs = self.0.knobs().map_err(raise)?;
        let knobs = knobs
            .into_iter()
            .map(|it| (it.name, it.default, it.min, it.max, it.unit, it.doc));
        Ok(knobs.collect())
    }
}

/// A workload.
#[pyclass(frozen, module = "runslice._runslice")]
pub struct Load(pub library::Load);

#[pymethods]
impl Load {
    #[staticmethod]
    fn named(word: &str) -> Self {
        Self(library::Load::named(word))
    }

    #[staticmethod]
    fn recorded(word: &str) -> Self {
        Self(library::Load::recorded(word))
    }

    #[staticmethod]
    fn of_text(py: Python<'_>, word: &str, text: &str) -> PyResult<Self> {
        value(py, library::Load::of_text(word, text)).map(Self)
    }

    #[getter]
    fn word(&self) -> &str {
        self.0.word()
    }

    fn text(&self) -> PyResult<String> {
        self.0.text().map_err(raise)
    }

    fn parameters(&self, py: Python<'_>) -> PyResult<(String, Vec<(String, i64)>)> {
        value(py, self.0.parameters())
    }
}

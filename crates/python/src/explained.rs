//! Why a task waited or a policy was ejected.

use pyo3::prelude::*;
use runslice::library;

/// An explanation.
#[pyclass(frozen, module = "runslice._runslice")]
pub struct Explained(pub library::Explained);

#[pymethods]
impl Explained {
    fn command(&self, is_json: bool) -> Vec<String> {
        self.0.command(is_json)
    }

    fn write(&self, is_json: bool) -> String {
        self.0.write(is_json)
    }

    #[getter]
    fn is_found(&self) -> bool {
        self.0.is_found()
    }
}

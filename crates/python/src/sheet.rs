//! Questions about a run, with their answers.

use ask::lab::{Lab, LabLoad};
use ask::policy;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use show::lab;

use crate::wait::wait;

/// The document of `runslice lab --json --answers`, and the sheet as text: without answers if
/// `has_answers` is false.
#[pyfunction]
pub fn lab_sheet<'py>(
    py: Python<'py>,
    name: String,
    workload: Option<String>,
    asked: (u64, usize),
    has_answers: bool,
) -> PyResult<(Bound<'py, PyBytes>, Bound<'py, PyBytes>)> {
    let (seed, questions) = asked;
    let (document, text) = wait(py, move |services| {
        let question = Lab {
            policy: policy::find(services, &name)?,
            load: LabLoad::find(services, workload.as_deref(), seed)
                .map_err(ask::Error::into_cause)?,
            seed,
            questions,
        };
        let sheet = question.ask(services).map_err(ask::Error::into_cause)?;
        let document = runslice::in_memory(None, |to| lab::sheet_json(&name, &sheet, true, to))?;
        let text = runslice::in_memory(None, |to| lab::sheet(&name, &sheet, has_answers, to))?;
        Ok((document, text))
    })?;
    Ok((PyBytes::new(py, &document), PyBytes::new(py, &text)))
}

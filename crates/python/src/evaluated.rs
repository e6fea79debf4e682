//! How good policies are that programs write.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use ask::evaluate::Evaluate;
use ask::evaluate::spec::Spec;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use show::evaluation::{self, CandidateDocument, EvaluationFrame};

use crate::wait::wait;

/// The document of `runslice evaluate`: a function of what is given here. `key` is the key of the
/// draws and its SHA-256; without it everybody can know them. `how` has the epoch, whether the gate
/// is asked, and how many threads there are.
#[pyfunction]
pub fn evaluate<'py>(
    py: Python<'py>,
    spec: PathBuf,
    candidates: Vec<String>,
    key: Option<(Vec<u8>, String)>,
    how: (u64, bool, Option<NonZeroUsize>),
) -> PyResult<Bound<'py, PyBytes>> {
    let (epoch, has_gate, jobs) = how;
    let (key, key_sha256) = key.unzip();
    let bytes = wait(py, move |services| {
        let question = Evaluate {
            spec: Spec::read(services, &spec)?,
            candidates,
            key,
            epoch,
            has_gate,
            jobs,
        };
        let evaluated = question.ask(services).map_err(ask::Error::into_cause)?;
        let all = evaluated.candidates.iter();
        let all: Vec<_> = all
            .map(|it| CandidateDocument::of(it, epoch, &[]))
            .collect();
        let frame = EvaluationFrame {
            spec: spec.display().to_string(),
            baseline: evaluated.baseline,
            key_sha256,
        };
        let bytes = runslice::in_memory(None, |to| evaluation::json(&frame, &all, to))?;
        Ok(bytes)
    })?;
    Ok(PyBytes::new(py, &bytes))
}

//! How far the simulation of a recording can be trusted.

use std::path::PathBuf;

use ask::recording::parse_window;
use ask::score::{self, Release, Score};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use show::format::TABLES;
use show::{Format, Origin};

use crate::errors::{raise, usage};
use crate::options::{Options, format_of, in_format, verb};
use crate::table::PyTable;
use crate::wait::wait;

/// A score.
#[pyclass(frozen, name = "Scored", module = "runslice._runslice")]
pub struct PyScored {
    words: Vec<String>,
    scored: score::Scored,
}

#[pymethods]
impl PyScored {
    #[staticmethod]
    fn of(
        py: Python<'_>,
        recording: String,
        second: Option<String>,
        options: Bound<'_, PyDict>,
    ) -> PyResult<Self> {
        let mut options = Options::new(options);
        let question = Score {
            recording: PathBuf::from(&recording),
            second: second.clone().map(PathBuf::from),
            recorded_under: options.text("recorded_under")?,
            recorded_on: options.parsed("recorded_on", Release::parse)?,
            window: options.parsed("window", parse_window)?.unwrap_or_default(),
            machine: options.machine()?,
            resample_seed: options.number("resample_seed", 0..=u64::MAX)?.unwrap_or(1),
            jobs: options.jobs()?,
        };
        if question.recorded_under.is_some() && question.recorded_on.is_some() {
            return Err(usage(model::Advised::new(
                "`--recorded-on` cannot be used with `--recorded-under`",
                "leave one out",
            )));
        }
        let front = verb("score").chain([recording]).chain(second);
        let words = options.words.behind(front.collect());
        let scored = wait(py, move |services| {
            question.ask(services).map_err(ask::Error::into_cause)
        })?;
        Ok(Self { words, scored })
    }

    fn command(&self, format: &str) -> Vec<String> {
        in_format(&self.words, format)
    }

    #[getter]
    fn status(&self) -> u8 {
        if self.scored.is_decided() { 0 } else { 6 }
    }

    #[getter]
    fn answer(&self) -> String {
        show::score::answer(&self.scored)
    }

    fn write<'py>(&self, py: Python<'py>, format: &str) -> PyResult<Bound<'py, PyBytes>> {
        let form = format_of(format, TABLES).map_err(|error| raise(error.into()))?;
        let (scored, origin) = (&self.scored, Origin::new(self.command(format)));
        let bytes = runslice::in_memory(form.export(), |to| match (form, form.export()) {
            (_, Some(form)) => show::score::table(scored, &origin).write(form, to),
            (Format::Json, _) => show::score::json(scored, &origin, to),
            _ => show::score::text(scored, runslice::width(), to),
        });
        Ok(PyBytes::new(py, &bytes?))
    }

    fn table(&self) -> PyResult<PyTable> {
        let origin = Origin::new(self.command("parquet"));
        PyTable::of_cells(&show::score::table(&self.scored, &origin))
    }
}

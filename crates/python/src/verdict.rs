//! Comparisons.

use std::path::PathBuf;

use anyhow::Context as _;
use ask::Services;
use ask::compare::{Compare, Ending, FailIf, Judged, parse_percent, refuse_nothing};
use ask::sets::{self, File};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use serde_json::Value;
use show::comparison::{self, Compared};
use show::format::COMPARISONS;
use show::{Format, Origin};

use crate::errors::raise;
use crate::options::{Options, format_of, in_format, verb};
use crate::table::PyTable;
use crate::wait::wait;

/// A comparison that was made.
#[pyclass(frozen, name = "Verdict", module = "runslice._runslice")]
pub struct PyVerdict {
    words: Vec<String>,
    judged: Judged,
}

/// A file or folder, or the bytes of a JSON document and what its file would be called.
#[derive(FromPyObject)]
enum Given {
    Document(String, Vec<u8>),
    File(PathBuf),
}

impl Given {
    /// Its name on the command line, and what it has.
    fn read(&self, services: &Services<'_>) -> anyhow::Result<(String, File)> {
        match self {
            Self::File(path) => Ok((path.display().to_string(), File::read(services, path)?)),
            Self::Document(name, bytes) => {
                let document: Value =
                    serde_json::from_slice(bytes).with_context(|| format!("{name}: no JSON"))?;
                Ok((name.clone(), File::of_document(name, &document)?))
            }
        }
    }
}

/// The words of the command line before the options, and what is compared.
type Sets = (Vec<String>, Vec<File>);

impl PyVerdict {
    /// Compares the sets that `read` gives, with the command line before the options.
    ///
    /// # Errors
    /// When an option is wrong, or the sets cannot be held against each other.
    pub fn judge(
        py: Python<'_>,
        options: Bound<'_, PyDict>,
        read: impl FnOnce(&Services<'_>) -> anyhow::Result<Sets> + Send + 'static,
    ) -> PyResult<Self> {
        let mut options = Options::new(options);
        let question = Compare {
            files: Vec::new(),
            baseline: options.text("baseline")?,
            again: options.text("again")?,
            metrics: options.all("metric", |text| Ok::<_, String>(text.to_owned()))?,
            margin: options.parsed("margin", parse_percent)?.unwrap_or(0.03),
            resample_seed: options.number("resample_seed", 0..=u64::MAX)?.unwrap_or(1),
            fail_if: options.parsed("fail_if", FailIf::parse)?,
        };
        let options = options.words;
        wait(py, move |services| {
            let (front, files) = read(services)?;
            let judged = question.judge(files).map_err(ask::Error::into_cause)?;
            refuse_nothing(&judged.rows)?;
            let words = options.behind(front);
            Ok(Self { words, judged })
        })
    }

    fn compared(&self) -> Compared<'_> {
        Compared {
            family: &self.judged.family,
            rows: &self.judged.rows,
            settings: &self.judged.settings,
        }
    }
}

#[pymethods]
impl PyVerdict {
    #[staticmethod]
    fn of(py: Python<'_>, sets: Vec<Given>, options: Bound<'_, PyDict>) -> PyResult<Self> {
        Self::judge(py, options, move |services| {
            let mut files: Vec<(String, File)> = Vec::new();
            for set in sets {
                files.push(set.read(services)?);
                sets::refuse_shared(&files)?;
            }
            sets::tell_apart(&mut files);
            let front = verb("compare");
            let (names, files): (Vec<_>, _) = files.into_iter().unzip();
            Ok((front.chain(names).collect(), files))
        })
    }

    fn command(&self, format: &str) -> Vec<String> {
        in_format(&self.words, format)
    }

    #[getter]
    const fn status(&self) -> u8 {
        match self.judged.ending {
            Ending::Decided => 0,
            Ending::Exceeded => 5,
            Ending::Inconclusive => 6,
        }
    }

    fn sentences(&self) -> Vec<String> {
        self.compared().verdict()
    }

    fn write<'py>(&self, py: Python<'py>, format: &str) -> PyResult<Bound<'py, PyBytes>> {
        let form = format_of(format, COMPARISONS).map_err(|error| raise(error.into()))?;
        let origin = Origin::new(self.command(format));
        let compared = self.compared();
        let bytes = runslice::in_memory(form.export(), |to| match (form, form.export()) {
            (_, Some(form)) => comparison::table_of(compared.rows, &origin).write(form, to),
            (Format::Json, _) => comparison::json(&compared, &origin, to),
            (Format::Html, _) => comparison::page(&compared, &origin).write(to),
            _ => comparison::text(&compared, Some(runslice::width()), to),
        });
        Ok(PyBytes::new(py, &bytes?))
    }

    fn table(&self) -> PyResult<PyTable> {
        let origin = Origin::new(self.command("parquet"));
        PyTable::of_cells(&comparison::table_of(&self.judged.rows, &origin))
    }
}

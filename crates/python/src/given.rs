//! Policies and workloads.

use std::path::Path;

use anyhow::Context as _;
use ask::load_source::LoadSource;
use ask::policy::{self, FoundPolicy};
use ask::program::{self, ProgramOptions};
use ask::recording::Wanted;
use ask::{Services, kernel};
use bpf::Object;
use model::Kernel;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::{raise, usage};
use crate::wait::at_once;

/// A policy, and the word of the command line that names it.
#[pyclass(frozen, name = "Policy", module = "runslice._runslice")]
#[derive(Clone, Debug)]
pub struct PyPolicy {
    #[pyo3(get)]
    word: String,
    pub found: FoundPolicy,
}

/// Name, default, least and greatest value, unit, what it does.
type Knob = (String, i64, i64, i64, String, String);

impl PyPolicy {
    fn of(
        py: Python<'_>,
        word: &str,
        find: impl FnOnce(&Services<'_>) -> anyhow::Result<FoundPolicy> + Send,
    ) -> PyResult<Self> {
        let found = at_once(py, find)?;
        let word = word.to_owned();
        Ok(Self { word, found })
    }

    /// Whether it is a scheduler's own program, which `--scheduler` names.
    pub fn is_program(&self) -> bool {
        let program = self.found.policy.program.as_ref();
        program.is_some_and(|it| it.recorded.is_none())
    }

    /// What the command line calls it.
    pub fn word(&self) -> &str {
        &self.word
    }

    /// The words of a command line that asks for it.
    pub fn words(&self) -> impl Iterator<Item = String> {
        let option = self.is_program().then(|| "--scheduler".to_owned());
        option.into_iter().chain([self.word.clone()])
    }

    /// As a question has it; a scheduler's own program runs as `options` say.
    ///
    /// # Errors
    /// When the words of a program are none.
    pub fn asked(&self, options: &ProgramOptions) -> anyhow::Result<FoundPolicy> {
        if self.is_program() {
            let policy = program::policy_of(&self.word, options)?;
            return Ok(FoundPolicy::of_policy(policy));
        }
        Ok(self.found.clone())
    }
}

#[pymethods]
impl PyPolicy {
    #[staticmethod]
    fn named(py: Python<'_>, word: &str) -> PyResult<Self> {
        Self::of(py, word, |services| policy::open(services, word))
    }

    #[staticmethod]
    fn of_bytes(py: Python<'_>, word: &str, file: Vec<u8>) -> PyResult<Self> {
        Self::of(py, word, |services| policy::of_bytes(services, word, file))
    }

    #[staticmethod]
    fn of_source(py: Python<'_>, word: &str, text: &str) -> PyResult<Self> {
        Self::of(py, word, |services| policy::of_source(services, word, text))
    }

    #[staticmethod]
    fn of_program(py: Python<'_>, command: &str) -> PyResult<Self> {
        Self::of(py, command, |_| {
            let policy = program::policy_of(command, &ProgramOptions::default())?;
            Ok(FoundPolicy::of_policy(policy))
        })
    }

    fn with_knobs(&self, knobs: Vec<(String, String)>) -> PyResult<Self> {
        let mut new = self.clone();
        let policy = &mut new.found.policy;
        if policy.program.is_some() && !knobs.is_empty() {
            return Err(usage(format!(
                "{} is a scheduler's own program, which sets its policy up by itself: it has no \
                 knobs here",
                self.word
            )));
        }
        for (name, value) in knobs {
            let text = format!("{name}={value}");
            policy.set.push(policy::setting(&text).map_err(usage)?);
            for of in [&mut new.word, &mut policy.name] {
                let sign = if of.contains(':') { ',' } else { ':' };
                *of += &format!("{sign}{text}");
            }
        }
        Ok(new)
    }

    #[getter]
    fn name(&self) -> &str {
        &self.found.policy.name
    }

    #[getter]
    fn set(&self) -> Vec<(String, String)> {
        self.found.policy.set.clone()
    }

    #[getter]
    fn object<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.found.policy.object)
    }

    fn knobs(&self) -> PyResult<Vec<Knob>> {
        let name = || self.word.clone();
        let object = Object::parse(&self.found.policy.object).with_context(name);
        let linked = object.and_then(|it| kernel::link(&it, Kernel::default()).with_context(name));
        let knobs = linked.map_err(raise)?.knobs.into_iter();
        let knobs = knobs.map(|it| (it.name, it.default, it.min, it.max, it.unit, it.doc));
        Ok(knobs.collect())
    }
}

/// A workload.
#[pyclass(frozen, name = "Load", module = "runslice._runslice")]
pub struct PyLoad(pub LoadSource);

impl PyLoad {
    /// The option of the command line that names it.
    pub const fn option(source: &LoadSource) -> &'static str {
        match source {
            LoadSource::Recorded(..) => "from",
            LoadSource::Named(_) | LoadSource::Text(_) => "workload",
        }
    }
}

#[pymethods]
impl PyLoad {
    #[staticmethod]
    fn named(word: &str) -> Self {
        Self(LoadSource::Named(word.into()))
    }

    #[staticmethod]
    fn recorded(word: &str) -> Self {
        Self(LoadSource::Recorded(
            Path::new(word).into(),
            Wanted::default(),
        ))
    }

    #[staticmethod]
    fn of_text(py: Python<'_>, word: &str, text: &str) -> PyResult<Self> {
        at_once(py, |services| LoadSource::of_text(services, word, text)).map(Self)
    }

    #[getter]
    fn word(&self) -> String {
        self.0.word().into_owned()
    }

    fn text(&self, py: Python<'_>) -> PyResult<String> {
        Ok(at_once(py, |services| self.0.written(services))?.text)
    }

    fn parameters(&self, py: Python<'_>) -> PyResult<(String, Vec<(String, i64)>)> {
        let load = at_once(py, |services| self.0.load(services, &[]))?;
        Ok((load.name, load.scale))
    }
}

//! Which scheduler is best for a load.

use std::path::Path;

use ask::choose::{self, BASELINE, Candidate, Choose, RUNS_MAX};
use ask::compare::parse_percent;
use ask::goal::Goal;
use ask::policy;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use show::format::COMPARISONS;
use show::{Format, Origin, choice};

use crate::errors::raise;
use crate::given::{PyLoad, PyPolicy};
use crate::options::{Options, format_of, in_format, verb};
use crate::table::PyTable;
use crate::wait::wait;

/// What was chosen, and why.
#[pyclass(frozen, name = "Chosen", module = "runslice._runslice")]
pub struct PyChosen {
    words: Vec<String>,
    chosen: choose::Chosen,
}

#[pymethods]
impl PyChosen {
    #[staticmethod]
    fn of(
        py: Python<'_>,
        candidates: Vec<PyRef<'_, PyPolicy>>,
        baseline: Option<PyRef<'_, PyPolicy>>,
        load: PyRef<'_, PyLoad>,
        options: Bound<'_, PyDict>,
    ) -> PyResult<Self> {
        let all: Vec<PyPolicy> = candidates.iter().map(|it| PyPolicy::clone(it)).collect();
        let baseline = baseline.map(|it| PyPolicy::clone(&it));
        let mut options = Options::new(options);
        options.words.put(PyLoad::option(&load.0), load.0.word());
        if let Some(baseline) = &baseline {
            options.words.put("baseline", baseline.word());
        }
        let knobs = options.text("knobs")?;
        let programs = options.programs()?;
        let mut question = Choose {
            candidates: Vec::new(),
            goals: options.all("goal", str::parse::<Goal>)?,
            load: load.0.clone(),
            files: knobs.iter().map(Into::into).collect(),
            scale: options.scale()?,
            runs: options.number("runs", 1..=RUNS_MAX.into())?,
            not_modelled: options.parsed("not_modelled", parse_percent)?,
            machine: options.machine()?,
            spread: options.flag("hardware_spread")?,
            seed: options.seed()?,
            duration: options.duration()?,
            start_jitter: None,
            jobs: options.jobs()?,
        };
        let front = verb("choose").chain(all.iter().flat_map(PyPolicy::words));
        let words = options.words.behind(front.collect());
        let chosen = wait(py, move |services| {
            let candidate = |it: &PyPolicy| {
                let found = it.asked(&programs)?;
                anyhow::Ok(if it.is_program() {
                    Candidate::of(found)
                } else {
                    Candidate::named(it.word(), found)
                })
            };
            let first = match &baseline {
                Some(baseline) => (baseline.word(), candidate(baseline)?),
                None => {
                    let found = policy::open(services, BASELINE)?;
                    (BASELINE, Candidate::named(BASELINE, found))
                }
            };
            let (own, named): (Vec<_>, Vec<_>) = all.iter().partition(|it| it.is_program());
            let made = |of: Vec<&PyPolicy>| of.into_iter().map(candidate).collect();
            let named: anyhow::Result<_> = made(named);
            let own: anyhow::Result<_> = made(own);
            let knobs = (knobs.as_deref().map(Path::new), &programs);
            question.candidates = choose::candidates(services, first, (named?, own?), knobs)?;
            question.ask(services).map_err(ask::Error::into_cause)
        })?;
        Ok(Self { words, chosen })
    }

    fn command(&self, format: &str) -> Vec<String> {
        in_format(&self.words, format)
    }

    #[getter]
    fn status(&self) -> u8 {
        if self.chosen.is_decided() { 0 } else { 6 }
    }

    #[getter]
    fn answer(&self) -> Vec<String> {
        choice::answer(&self.chosen)
    }

    #[getter]
    fn winner(&self) -> Option<(&str, String)> {
        let winner = self.chosen.winner()?;
        let command = choice::command(&self.chosen, winner);
        Some((self.chosen.field.name(winner), command))
    }

    fn write<'py>(&self, py: Python<'py>, format: &str) -> PyResult<Bound<'py, PyBytes>> {
        let form = format_of(format, COMPARISONS).map_err(|error| raise(error.into()))?;
        let (chosen, origin) = (&self.chosen, Origin::new(self.command(format)));
        let page = choice::page(chosen, &origin).filter(|_| form == Format::Html);
        let bytes = runslice::in_memory(form.export(), |to| match (form.export(), page) {
            (_, Some(page)) => page.write(to),
            (Some(form), _) => choice::table(chosen, &origin).write(form, to),
            _ if form == Format::Json => choice::json(chosen, &origin, to),
            _ => choice::text(chosen, runslice::width(), to),
        });
        Ok(PyBytes::new(py, &bytes?))
    }

    fn table(&self) -> PyResult<PyTable> {
        let origin = Origin::new(self.command("parquet"));
        PyTable::of_cells(&choice::table(&self.chosen, &origin))
    }
}

//! Which scheduler is best for a load.

use std::path::Path;

use ask::choose::{self, BASELINE, Candidate, Choose, RUNS_MAX};
use ask::compare::parse_percent;
use ask::goal::Goal;
use ask::policy;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use runslice::Chosen;
use show::format::COMPARISONS;
use show::{Origin, choice};

use crate::errors::raise;
use crate::given::{PyLoad, PyPolicy};
use crate::options::{Options, format_of, in_format, verb};
use crate::table::PyTable;
use crate::wait::wait;

/// What was chosen, and why.
#[pyclass(frozen, name = "Chosen", module = "runslice._runslice")]
pub struct PyChosen {
    words: Vec<String>,
    chosen: Chosen,
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
            Chosen::ask(&question, services)
        })?;
        Ok(Self { words, chosen })
    }

    fn command(&self, format: &str) -> Vec<String> {
        in_format(&self.words, format)
    }

    #[getter]
    fn status(&self) -> u8 {
        self.chosen.status().into()
    }

    #[getter]
    fn answer(&self) -> Vec<String> {
        match &self.chosen {
            Chosen::One(it) => choice::answer(it),
            Chosen::Fleet(it) => choice::fleet::answer(it),
        }
    }

    #[getter]
    fn winner(&self) -> Option<(&str, Option<String>)> {
        match &self.chosen {
            Chosen::One(it) => {
                let winner = it.winner()?;
                Some((it.field.name(winner), Some(choice::command(it, winner))))
            }
            Chosen::Fleet(it) => Some((&it.candidates[it.winner()?], None)),
        }
    }

    /// By candidate, on how many machines it is better, alike, worse, and cannot be told; `None`
    /// of a single load.
    #[getter]
    fn machines(&self) -> Option<Vec<(&str, [usize; 4], f64)>> {
        let Chosen::Fleet(it) = &self.chosen else {
            return None;
        };
        let of = |at: usize| {
            let tally = it.tally(at);
            let counts = [tally.better, tally.alike, tally.worse, tally.cannot_tell];
            let name = it.candidates[at].as_str();
            (name, counts, tally.not_worse_at_least())
        };
        Some(it.order().into_iter().map(of).collect())
    }

    fn write<'py>(&self, py: Python<'py>, format: &str) -> PyResult<Bound<'py, PyBytes>> {
        let form = format_of(format, COMPARISONS).map_err(|error| raise(error.into()))?;
        let origin = Origin::new(self.command(format));
        let bytes = runslice::in_memory(form.export(), |to| self.chosen.write(form, &origin, to));
        Ok(PyBytes::new(py, &bytes?))
    }

    fn table(&self) -> PyResult<PyTable> {
        let origin = Origin::new(self.command("parquet"));
        PyTable::of_cells(&self.chosen.table(&origin))
    }
}

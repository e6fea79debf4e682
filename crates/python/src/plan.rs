//! Plans of many runs, for engines that make them elsewhere.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context as _, ensure};
use ask::key::Key;
use ask::plan::Planned;
use ask::program::ProgramOptions;
use ask::sets::SWEEP;
use ask::simulate::Simulate;
use ask::sweep::{KeptRuns as _, Sweep, SweepPlan};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use runslice::SIMULATES;
use serde_json::Value;
use show::export::Form;
use show::sweep;

use crate::errors::raise;
use crate::run::PyRequest;
use crate::wait::{at_once, wait};

/// The runs that a sweep's file or a list of requests asks for. What a cell of it is made of
/// travels as two byte strings, its object and all the rest, so that a worker gets each of them
/// once however many runs it makes.
#[pyclass(frozen, name = "Plan", module = "runslice._runslice")]
pub struct PyPlan(Arc<SweepPlan>);

#[pymethods]
impl PyPlan {
    #[staticmethod]
    fn read(py: Python<'_>, file: PathBuf) -> PyResult<Self> {
        let question = Sweep {
            file,
            schedulers: Vec::new(),
            programs: ProgramOptions::default(),
        };
        let plan = wait(py, move |services| {
            let plan = question.plan(services, SIMULATES);
            plan.map_err(ask::Error::into_cause)
        })?;
        Ok(Self(Arc::new(plan)))
    }

    #[staticmethod]
    fn of(py: Python<'_>, requests: Vec<PyRef<'_, PyRequest>>) -> PyResult<Self> {
        let requests: Vec<Simulate> = requests.iter().map(|it| it.question.clone()).collect();
        let plan = wait(py, move |services| {
            let plan = SweepPlan::of_questions(services, &requests, SIMULATES);
            plan.map_err(ask::Error::into_cause)
        })?;
        Ok(Self(Arc::new(plan)))
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
        wait(py, move |services| plan.try_policies(services))
    }

    fn run(&self, index: usize) -> Option<(usize, u64)> {
        self.0.run(index)
    }

    fn key(&self, py: Python<'_>, index: usize) -> PyResult<String> {
        let key = at_once(py, |_| Ok(self.0.planned(index)?.key(SIMULATES)));
        Ok(key?.to_string())
    }

    fn key_of(&self, py: Python<'_>, cell: usize, seed: u64) -> PyResult<String> {
        Ok(at_once(py, |_| self.0.key(cell, seed))?.to_string())
    }

    fn cell(&self, cell: usize) -> Option<PyCell> {
        self.0.cell(cell).ok().cloned().map(PyCell)
    }

    fn object<'py>(&self, py: Python<'py>, cell: usize) -> Bound<'py, PyBytes> {
        let cell = self.0.cell(cell);
        PyBytes::new(py, cell.map_or(&[], |it| &it.spec.policy.object))
    }

    fn rest<'py>(&self, py: Python<'py>, cell: usize) -> PyResult<Bound<'py, PyBytes>> {
        let rest = at_once(py, |services| self.0.cell(cell)?.rest(services))?;
        Ok(PyBytes::new(py, &rest))
    }

    fn id(&self, py: Python<'_>) -> String {
        py.detach(|| self.0.id())
    }

    fn part<'py>(
        &self,
        py: Python<'py>,
        store: &PyStore,
        begin: usize,
        end: usize,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let part = at_once(py, |_| {
            let mut table = sweep::metrics();
            for index in begin..end.min(self.0.runs()) {
                let run = self.0.planned(index)?;
                let key = run.key(SIMULATES);
                let gone = || format!("run {index} ({}) is not in the store", run.place);
                let line: Value = serde_json::from_str(&store.0.get(key).with_context(gone)?)?;
                sweep::add_metrics((index, &run), (key, &line), &mut table);
            }
            let mut bytes = Vec::new();
            table.write(Form::Parquet, &mut bytes)?;
            Ok(bytes)
        })?;
        Ok(PyBytes::new(py, &part))
    }

    fn finish(&self, py: Python<'_>, store: &PyStore) -> PyResult<String> {
        at_once(py, |services| {
            let runs = self.0.select(services, None, None)?;
            let path = store.0.finish(SWEEP, runs.lines(&store.0))?;
            Ok(path.display().to_string())
        })
    }
}

/// A cell that a worker makes runs of.
#[pyclass(frozen, name = "Cell", module = "runslice._runslice")]
pub struct PyCell(Planned);

#[pymethods]
impl PyCell {
    #[staticmethod]
    fn of(py: Python<'_>, rest: &[u8], object: &[u8]) -> PyResult<Self> {
        at_once(py, |services| Planned::of_parts(services, rest, object)).map(Self)
    }

    fn make(&self, py: Python<'_>, seed: u64) -> PyResult<(String, String)> {
        at_once(py, |services| {
            let run = self.0.with_seed(SIMULATES, seed);
            Ok((run.key(SIMULATES).to_string(), run.line(services)?))
        })
    }
}

/// The folder of results that `runslice sweep` keeps.
#[pyclass(frozen, name = "Store", module = "runslice._runslice")]
pub struct PyStore(runslice::Store);

#[pymethods]
impl PyStore {
    #[staticmethod]
    fn open(folder: PathBuf) -> PyResult<Self> {
        runslice::Store::open(&folder).map(Self).map_err(raise)
    }

    fn get(&self, py: Python<'_>, key: &str) -> PyResult<Option<String>> {
        at_once(py, |_| Ok(self.0.get(key.parse()?)))
    }

    fn put(&self, py: Python<'_>, key: &str, line: &str) -> PyResult<()> {
        at_once(py, |_| {
            let key = key.parse::<Key>()?;
            let value: Value = serde_json::from_str(line).context("no results")?;
            ensure!(
                value.get("report").is_some() && !line.contains('\n'),
                "no line of results"
            );
            self.0.put(key, line)
        })
    }
}

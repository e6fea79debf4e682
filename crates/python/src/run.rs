//! Simulated runs.

use std::path::Path;

use anyhow::{Context as _, bail};
use ask::error::UsageError;
use ask::explain::{Explain, ExplainOf};
use ask::goal::Goal;
use ask::load_source::LoadSource;
use ask::outcome::ejection_of_sub;
use ask::runner::Runner;
use ask::simulate::{MEMORY_MAX_MIB, RUNS_MAX, Simulate, Simulated};
use ask::{Services, runs};
use model::{Sink, SubSummary};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use show::figure::Collector;
use show::format::RUNS;
use show::report::page::{self, PagePart};
use show::report::{self, TableName, checks, human, json};
use show::{Format, Look, Origin};
use stats::{Metrics, Tails};
use traces::{EventColumns, Tee};
use workload::RunSpec;

use crate::errors::{raise, usage};
use crate::explained::Explained;
use crate::given::{PyLoad, PyPolicy};
use crate::options::{self, Options, Words, format_of, one_of};
use crate::table::PyTable;
use crate::verdict::PyVerdict;
use crate::wait::wait;

/// What is asked for.
#[pyclass(frozen, name = "Request", module = "runslice._runslice")]
#[derive(Clone, Debug)]
pub struct PyRequest {
    policies: Vec<PyPolicy>,
    words: Words,
    pub question: Simulate,
}

impl PyRequest {
    /// The command line that asks for the same.
    pub fn words(&self, verb: &str) -> Vec<String> {
        let front = options::verb(verb);
        let policies = self.policies.iter().flat_map(PyPolicy::words);
        self.words.behind(front.chain(policies).collect())
    }
}

#[pymethods]
impl PyRequest {
    #[new]
    fn new(
        policies: Vec<PyRef<'_, PyPolicy>>,
        load: Option<PyRef<'_, PyLoad>>,
        options: Bound<'_, PyDict>,
        goals: Vec<String>,
    ) -> PyResult<Self> {
        if policies.is_empty() {
            return Err(usage("there is no policy: give one or more"));
        }
        let mut policies: Vec<PyPolicy> = policies.iter().map(|it| PyPolicy::clone(it)).collect();
        // As on the command line, where they are values of an option.
        policies.sort_by_key(PyPolicy::is_program);
        let mut options = Options::new(options);
        if let Some(load) = &load {
            options.words.put(PyLoad::option(&load.0), load.0.word());
        }
        let mut question = Simulate {
            load: load.map(|it| it.0.clone()),
            machine: options.machine()?,
            seed: options.seed()?,
            runs: options.number("runs", 1..=RUNS_MAX.into())?,
            jobs: options.jobs()?,
            duration: options.duration()?,
            scale: options.scale()?,
            ..Simulate::default()
        };
        let preparation = options.preparation()?;
        question.options.total_budget = options.number("budget", 1..=u64::MAX)?;
        let memory: Option<u64> = options.number("memory", 1..=MEMORY_MAX_MIB)?;
        question.options.memory_bytes = memory.map(|mib| mib << 20);
        let programs = options.programs()?;
        for policy in &policies {
            let mut found = policy.asked(&programs).map_err(raise)?;
            let prepared = preparation.apply(&mut found.policy);
            prepared.map_err(|error| raise(error.into()))?;
            question.schedulers.push(found);
        }
        let subs = options.subs()?;
        for found in &mut question.schedulers {
            found.policy.subs.extend(subs.iter().cloned());
        }
        let goals = goals.iter().map(|text| text.parse::<Goal>());
        question.goals = goals.collect::<Result<_, _>>().map_err(usage)?;
        Ok(Self {
            policies,
            words: options.words,
            question,
        })
    }

    fn simulate(&self, py: Python<'_>) -> PyResult<PyRun> {
        let request = self.clone();
        wait(py, move |services| {
            let simulated = request.question.ask(services);
            Ok(PyRun {
                simulated: simulated.map_err(ask::Error::into_cause)?,
                request,
            })
        })
    }

    #[pyo3(signature = (worst=None, task=None))]
    fn explain(
        &self,
        py: Python<'_>,
        worst: Option<u16>,
        task: Option<String>,
    ) -> PyResult<Explained> {
        let mut words = self.words.clone();
        for (option, value) in [
            ("task", task.clone()),
            ("worst", worst.map(|it| it.to_string())),
        ] {
            value.into_iter().for_each(|it| words.put(option, it));
        }
        let words = Self {
            words,
            ..self.clone()
        }
        .words("explain");
        let question = self.question.clone();
        let is_only_here = matches!(question.load, Some(LoadSource::Recorded(..)));
        let explanation = wait(py, move |services| {
            let specs = question.specs(services).map_err(ask::Error::into_cause)?;
            let spec = specs.into_iter().next().context("one policy is one run")?;
            let of = ExplainOf::Run(Box::new(spec), question.options);
            let explain = Explain {
                of,
                task,
                worst,
                right: None,
            };
            explain.ask(services).map_err(ask::Error::into_cause)
        })?;
        Ok(Explained {
            words,
            is_only_here,
            explanation,
        })
    }
}

/// Runs that are over.
#[pyclass(frozen, name = "Run", module = "runslice._runslice")]
#[derive(Clone, Debug)]
pub struct PyRun {
    request: PyRequest,
    simulated: Simulated,
}

/// As what runs are written.
#[derive(Clone, Debug)]
struct Shape {
    format: String,
    table: String,
    wide: bool,
    output: Option<String>,
}

/// Policy, seed, nanoseconds, the kernel's words for an ejection, starved tasks, goals, schedulers
/// below the policy.
type End = (
    String,
    u64,
    u64,
    Option<String>,
    usize,
    Vec<Option<f64>>,
    Vec<SubEnd>,
);

/// Cgroup, policy, level, tasks, nanoseconds of CPU time, the kernel's words for an ejection.
type SubEnd = (String, String, u8, u64, u64, Option<String>);

fn sub_end(sub: &SubSummary) -> SubEnd {
    (
        sub.cgroup.clone(),
        sub.policy.clone(),
        sub.level,
        sub.tasks,
        sub.ran.get(),
        ejection_of_sub(sub),
    )
}

impl PyRun {
    /// The command line that writes the same.
    fn words(&self, shape: &Shape) -> Vec<String> {
        let mut words = self.request.words("sim");
        let given = |text: &str| Some(text.to_owned()).filter(|it| !it.is_empty());
        for (option, value) in [
            ("--format", given(&shape.format)),
            ("--table", given(&shape.table)),
            ("--output", shape.output.clone()),
        ] {
            words.extend(value.into_iter().flat_map(|it| [option.to_owned(), it]));
        }
        words.extend(shape.wide.then(|| "--wide".to_owned()));
        words
    }

    fn written(&self, services: &Services<'_>, shape: &Shape) -> anyhow::Result<Vec<u8>> {
        let format = match shape.format.as_str() {
            "" => runslice::ending(shape.output.as_deref().map(Path::new), RUNS)?,
            name => Some(format_of(name, RUNS)?),
        };
        let format = format.unwrap_or(Format::Human);
        let table = table_of(&shape.table)?;
        let export = format.export();
        if table != TableName::Groups && export.is_none() {
            return Err(runslice::table_of_csv().into());
        }
        let origin = Origin::new(self.words(shape));
        let (results, is_many) = (
            &self.simulated.results,
            self.request.question.runs.is_some(),
        );
        if format == Format::Html {
            return self.page(services, &origin);
        }
        let look = Look {
            width: (!shape.wide).then(runslice::width),
            is_verbose: false,
            is_wide: shape.wide,
        };
        let bytes = runslice::in_memory(export, |to| match (format, export) {
            (_, Some(export)) => report::table(results, table, &origin).write(export, to),
            (Format::Json, _) if is_many => json::write_runs(results, &origin, to),
            (Format::Json, _) => json::write(results, &origin, to),
            (Format::Junit, _) => checks::junit(results, None, to),
            (Format::Markdown, _) => checks::markdown(results, None, is_many, to),
            _ if is_many => report::runs::write(results, look, to),
            _ => human::write(results, look, to),
        });
        Ok(bytes?)
    }

    /// Every run once more, and what is drawn of it.
    fn page(&self, services: &Services<'_>, origin: &Origin) -> anyhow::Result<Vec<u8>> {
        let question = &self.request.question;
        let mut tails = Vec::new();
        let mut collected = Vec::new();
        for spec in &self.simulated.specs {
            let mut all = Tails::default();
            for run in &runs::all_of(spec, question.runs) {
                let mut metrics = Metrics::new();
                let is_one = question.runs.is_none();
                let mut collector = is_one.then(|| Collector::of_load(&run.header(None)));
                let mut sinks: Vec<&mut dyn Sink> = vec![&mut metrics];
                sinks.extend(collector.as_mut().map(|it| it as &mut dyn Sink));
                let mut sinks = Tee::new(sinks);
                Runner::new(run, services)
                    .with_options(question.options)
                    .with_sink(&mut sinks)
                    .start()?;
                all.merge(&metrics.tails());
                collected.extend(collector);
            }
            tails.push((spec.policy.name.clone(), all));
        }
        let part = PagePart {
            results: &self.simulated.results,
            tails,
            collected,
        };
        let mut bytes = Vec::new();
        page::write(part, question.runs.is_some(), origin, &mut bytes)?;
        Ok(bytes)
    }

    /// Everything that run `index` is a function of, and the number of its policy.
    fn spec(&self, index: usize) -> anyhow::Result<(usize, RunSpec)> {
        let count = self.request.question.runs.map_or(1, |it| it as usize);
        let (policy, outcomes) = (index / count.max(1), &self.simulated.results.outcomes);
        let spec = self.simulated.specs.get(policy);
        let (Some(spec), Some(outcome)) = (spec, outcomes.get(index)) else {
            let last = outcomes.len().saturating_sub(1);
            let message = format!("there is no run {index}: give a number from 0 to {last}");
            bail!(UsageError::new(message));
        };
        let seed = outcome.report.seed;
        Ok((
            policy,
            RunSpec {
                seed,
                ..spec.clone()
            },
        ))
    }
}

/// The table of this name; empty: the groups.
fn table_of(name: &str) -> Result<TableName, UsageError> {
    if name.is_empty() {
        return Ok(TableName::Groups);
    }
    let names = TableName::ALL.map(|(_, name, _)| name);
    let name = one_of("--table <TABLE>", name, &names)?;
    Ok(TableName::of(name).unwrap_or(TableName::Groups))
}

#[pymethods]
impl PyRun {
    #[pyo3(signature = (format="", table="", wide=false, output=None))]
    fn command(
        &self,
        format: &str,
        table: &str,
        wide: bool,
        output: Option<String>,
    ) -> Vec<String> {
        let [format, table] = [format, table].map(str::to_owned);
        self.words(&Shape {
            format,
            table,
            wide,
            output,
        })
    }

    #[getter]
    fn workload(&self) -> &str {
        &self.simulated.results.workload
    }

    #[getter]
    fn machine(&self) -> String {
        let machine = serde_json::to_string(&self.simulated.results.machine);
        machine.expect("numbers and names become JSON")
    }

    fn ends(&self) -> Vec<End> {
        let all = self.simulated.results.outcomes.iter();
        let all = all.zip(&self.simulated.goals).map(|(it, goals)| {
            (
                it.policy.clone(),
                it.report.seed,
                it.report.machine.elapsed.get(),
                it.ejection(),
                it.summary.starved.len(),
                goals.clone(),
                it.summary.subs.iter().map(sub_end).collect(),
            )
        });
        all.collect()
    }

    #[pyo3(signature = (format="", table="", wide=false, output=None))]
    fn write<'py>(
        own: &Bound<'py, Self>,
        format: &str,
        table: &str,
        wide: bool,
        output: Option<String>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let (py, run) = (own.py(), own.clone().unbind());
        let [format, table] = [format, table].map(str::to_owned);
        let shape = Shape {
            format,
            table,
            wide,
            output,
        };
        let bytes = wait(py, move |services| run.get().written(services, &shape))?;
        Ok(PyBytes::new(py, &bytes))
    }

    fn table(&self, name: &str) -> PyResult<PyTable> {
        let table = table_of(name).map_err(|error| raise(error.into()))?;
        let is_first = table == TableName::Groups;
        let words = self.words(&Shape {
            format: "parquet".to_owned(),
            table: if is_first {
                String::new()
            } else {
                name.to_owned()
            },
            wide: false,
            output: None,
        });
        let table = report::table(&self.simulated.results, table, &Origin::new(words));
        PyTable::of_cells(&table)
    }

    #[staticmethod]
    fn tables() -> Vec<&'static str> {
        TableName::ALL.map(|(_, name, _)| name).into()
    }

    fn events(&self, py: Python<'_>, index: usize, decisions: bool) -> PyResult<PyTable> {
        let (_, spec) = self.spec(index).map_err(raise)?;
        let options = self.request.question.options;
        let events = wait(py, move |services| {
            let mut events = EventColumns::new(decisions);
            Runner::new(&spec, services)
                .with_options(options)
                .with_sink(&mut events)
                .start()?;
            Ok(events)
        })?;
        PyTable::of_events(events)
    }

    fn judge(&self, py: Python<'_>, options: Bound<'_, PyDict>) -> PyResult<PyVerdict> {
        let file = self.simulated.goal_file(&self.request.question.goals);
        let words = self.request.words("sim");
        PyVerdict::judge(py, options, move |_| Ok((words, vec![file])))
    }

    fn alone(&self, index: usize) -> PyResult<PyRequest> {
        let (policy, spec) = self.spec(index).map_err(raise)?;
        let request = &self.request;
        let mut words = request.words.without(&["runs", "jobs", "seed"]);
        words.put("seed", spec.seed.to_string());
        Ok(PyRequest {
            policies: vec![request.policies[policy].clone()],
            words,
            question: Simulate {
                schedulers: vec![request.question.schedulers[policy].clone()],
                seed: Some(spec.seed),
                runs: None,
                jobs: None,
                goals: Vec::new(),
                ..request.question.clone()
            },
        })
    }
}

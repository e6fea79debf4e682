//! A cell of a sweep: how a question asks for it, how its results are kept, and how another process
//! gets it.

use std::sync::{Arc, OnceLock};

use anyhow::{Context as _, bail, ensure};
use model::{Advised, Nanos};
use serde_json::{Value, json};
use workload::RunSpec;

use crate::bundle::{Bound, Bundle};
use crate::error::UsageError;
use crate::load_source::LoadSource;
use crate::plan::Planned;
use crate::runs;
use crate::services::Services;
use crate::simulate::Simulate;

/// The cells of a question, each with its seeds: one for each scheduler.
pub fn of_question(
    services: &Services<'_>,
    question: &Simulate,
    place: &str,
) -> anyhow::Result<Vec<(Planned, Vec<u64>)>> {
    let specs = question.specs(services).map_err(crate::Error::into_cause)?;
    runs::refuse_recordings_of_runs(&specs)?;
    let place: Arc<str> = place.into();
    let load = question.load.clone();
    let load = load.unwrap_or_else(|| LoadSource::Named("".into()));
    let cells = specs.into_iter().map(|mut spec| {
        let program = spec.policy.program.as_mut();
        if let Some(program) = program.filter(|it| it.recorded.is_none()) {
            // Another file of this name gives other results.
            let programs = services.programs;
            program.file = programs.map_or(0, |it| it.number_of_file(&program.command));
        }
        let seeds = match question.runs {
            None => vec![spec.seed],
            Some(count) => {
                let all = runs::seeded(&spec, count);
                all.iter().map(|it| it.seed).collect()
            }
        };
        let run = Planned {
            spec,
            scale: question.scale.clone(),
            load: load.clone(),
            place: Arc::clone(&place),
            front: OnceLock::new(),
        };
        (run, seeds)
    });
    Ok(cells.collect())
}

impl Planned {
    /// Makes the run, and gives what is kept of it, as one line. Single tasks are left out: there
    /// may be 100,000 of them.
    ///
    /// # Errors
    /// When the policy or the machine is bad; the message names the place.
    pub fn line(&self, services: &Services<'_>) -> anyhow::Result<String> {
        let outcome = self.make(services)?;
        let mut value = serde_json::to_value(&outcome).context("the results as JSON")?;
        if let Some(report) = value["report"].as_object_mut() {
            report.remove("tasks");
        }
        let spec = &self.spec;
        let scale = self.scale.iter();
        let scale = scale.map(|(name, value)| (name.clone(), json!(value)));
        value["workload"] = json!(spec.workload.name);
        value["scale"] = Value::Object(scale.collect());
        value["machine"] = json!(spec.machine);
        value["seed"] = json!(spec.seed);
        value["duration_ns"] = json!(spec.duration.map(Nanos::get));
        Ok(value.to_string())
    }

    /// All that the run is but its policy's object, for another process: a bundle without object.
    ///
    /// # Errors
    /// When it has what only this process can reach: a scheduler's own program, or a trace.
    pub fn rest(&self, services: &Services<'_>) -> anyhow::Result<Vec<u8>> {
        let spec = &self.spec;
        let stays = |what: &str| {
            let (policy, load) = (&spec.policy.name, self.load.word());
            UsageError::new(Advised::new(
                format!(
                    "{}: {policy} under {load} has {what}, which no other process is given",
                    self.place
                ),
                "use threads, or `runslice sweep`",
            ))
        };
        if spec.policy.program.is_some() {
            bail!(stays("a scheduler's own program"));
        }
        if self.load.is_recording(services) {
            bail!(stays("a recording"));
        }
        let mut policy = spec.policy.clone();
        policy.object = [].into();
        let bundle = Bundle {
            policy,
            machine: spec.machine.clone(),
            bound: Some(Bound {
                workload: self.load.written(services)?,
                scale: self.scale.clone(),
                seed: spec.seed,
                duration_ns: spec.duration.map(Nanos::get),
            }),
        };
        Ok(bundle.write())
    }

    /// The run whose [`Planned::rest`] and object came from another process.
    ///
    /// # Errors
    /// When they are of another version, or of no run.
    pub fn of_parts(services: &Services<'_>, rest: &[u8], object: &[u8]) -> anyhow::Result<Self> {
        let mut bundle = Bundle::read(services, rest)?;
        let bound = bundle.bound.take().context("a cell without a run")?;
        ensure!(
            bundle.policy.object.is_empty(),
            "a cell with an object inside"
        );
        bundle.policy.object = Arc::from(object);
        let load = bound
            .workload
            .parse_for(services, &bound.scale, &bundle.machine)?;
        Ok(Self {
            spec: RunSpec {
                policy: bundle.policy,
                workload: Arc::new(load),
                machine: bundle.machine,
                seed: bound.seed,
                tie_seed: None,
                attach_after: Nanos::ZERO,
                duration: bound.duration_ns.map(Nanos::new),
            },
            scale: bound.scale,
            place: bound.workload.file.as_str().into(),
            load: LoadSource::Text(Arc::new(bound.workload)),
            front: OnceLock::new(),
        })
    }
}

//! Exercises about a run, with answers that come from it, and grades for policies that somebody
//! else has written.

mod grade;
mod questions;
mod run;

use std::sync::Arc;

use anyhow::Context as _;
use bpf::{Knob, Object};
use model::{Kernel, Nanos, PolicySpec};
use serde::Serialize;
use workload::{RunSpec, Workload};

use crate::error::{Error, UsageError};
use crate::services::Services;
use crate::{kernel, workload_arg};

pub use grade::{Grade, GradedPolicy, GradedProperty, Grades, HandedIn, WantedValue};
pub use questions::LabQuestion;
use run::Course;

/// Longest simulated time of a run.
const LONGEST: Nanos = Nanos::from_secs(10);

/// Asks questions about a run of a policy.
#[derive(Clone, Debug)]
pub struct Lab {
    /// The policy.
    pub policy: PolicySpec,
    /// Its load.
    pub load: LabLoad,
    /// Seed of the questions.
    pub seed: u64,
    /// How many are asked at most.
    pub questions: usize,
}

/// A sheet of questions.
#[derive(Clone, Debug, Serialize)]
pub struct LabSheet {
    /// Seed of the questions.
    pub seed: u64,
    /// What must be known of the policy: its knobs, and whether chance decides.
    pub rules: Vec<String>,
    /// What students are told of the load.
    pub load: String,
    /// The questions, with their answers.
    pub questions: Vec<LabQuestion>,
}

/// A load, and how the students are told of it.
#[derive(Clone, Debug)]
pub struct LabLoad {
    workload: Arc<Workload>,
    seed: u64,
    shown: String,
}

impl LabLoad {
    /// The workload of this name or in this file; without one a few jobs, made from the seed.
    ///
    /// # Errors
    /// When there is no such workload, or it is wrong.
    pub fn find(services: &Services<'_>, name: Option<&str>, seed: u64) -> Result<Self, Error> {
        Ok(match name {
            Some(name) => Self {
                workload: Arc::new(workload_arg::find(services, name, &[])?),
                seed,
                shown: format!("Load {name}."),
            },
            None => Self::jobs(seed)?,
        })
    }

    fn jobs(seed: u64) -> anyhow::Result<Self> {
        let text = questions::jobs(seed);
        Ok(Self {
            workload: Arc::new(Workload::parse(&text, "jobs.toml")?),
            seed,
            shown: text,
        })
    }

    /// The run of `policy` under it.
    fn spec(&self, policy: PolicySpec) -> RunSpec {
        RunSpec {
            policy,
            workload: Arc::clone(&self.workload),
            machine: self.workload.machine.clone(),
            seed: self.seed,
            tie_seed: None,
            attach_after: Nanos::ZERO,
            duration: Some(LONGEST),
        }
    }
}

impl Lab {
    /// Makes the run, and asks about it.
    ///
    /// # Errors
    /// When the policy or the load is wrong, or the run gives nothing to ask about.
    pub fn ask(&self, services: &Services<'_>) -> Result<LabSheet, Error> {
        Ok(self.sheet(services)?)
    }

    fn sheet(&self, services: &Services<'_>) -> anyhow::Result<LabSheet> {
        let rules = rules(&self.policy)?;
        let course = Course::of(services, &self.load.spec(self.policy.clone()))?;
        let questions = questions::ask(&course, self.seed, self.questions);
        if questions.is_empty() {
            let message = "the run gives nothing to ask about: no task runs and ends in 10 s";
            return Err(UsageError::new(message).into());
        }
        Ok(LabSheet {
            seed: self.seed,
            rules,
            load: self.load.shown.clone(),
            questions,
        })
    }
}

/// What must be known of `policy` to answer: its knobs, and whether chance decides.
fn rules(policy: &PolicySpec) -> anyhow::Result<Vec<String>> {
    let object = Object::parse(&policy.object).with_context(|| policy.name.clone())?;
    let image = kernel::link(&object, Kernel::default()).with_context(|| policy.name.clone())?;
    let mut rules = Vec::new();
    for Knob {
        name,
        unit,
        doc,
        default,
        ..
    } in &image.knobs
    {
        let set = policy.set.iter().rev().find(|(own, _)| own == name);
        let value = set.map_or_else(|| default.to_string(), |(_, value)| value.to_string());
        rules.push(format!("{name} = {value} {unit}: {doc}"));
    }
    if image
        .imports
        .iter()
        .any(|it| it.name == "bpf_get_prandom_u32")
    {
        rules.push("It draws at random: the answers are those of one run, not of a rule.".into());
    }
    Ok(rules)
}

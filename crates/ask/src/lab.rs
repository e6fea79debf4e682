//! Exercises about a run, with answers that come from it, and grades for policies that somebody
//! else has written.

mod copies;
mod exam;
mod exercise;
mod feedback;
mod grade;
mod questions;
mod run;
mod students;

use std::sync::Arc;

use anyhow::Context as _;
use bpf::{Image, Knob, Object};
use model::file::{FileError, Problem, Source};
use model::{Kernel, MachineSpec, Nanos, PolicySpec, Rng, SimTime, Textbook};
use serde::Serialize;
use toml::Spanned;
use workload::{RunSpec, Workload};

use crate::error::{Error, UsageError};
use crate::services::Services;
use crate::{kernel, workload_arg};

pub use copies::{fingerprint, shipped};
pub use exam::{Exam, ExamAnswer, ExamJob, ExamPart, ExamQuestion, ExamSheet};
pub use exercise::Exercise;
pub use feedback::LabParting;
pub use grade::{Grade, GradedPolicy, GradedProperty, Grades, HandedIn, WantedValue};
pub use questions::LabQuestion;
use run::Course;
pub use students::{STUDENTS_MAX, Student, file_name_of, read_students};

/// Stream of the names of tasks.
const NAMES: u64 = 12 << 60;
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
    machine: MachineSpec,
}

impl LabLoad {
    /// The workload of this name or in this file; without one a few jobs, made from the seed.
    ///
    /// # Errors
    /// When there is no such workload, or it is wrong.
    pub fn find(services: &Services<'_>, name: Option<&str>, seed: u64) -> Result<Self, Error> {
        Ok(match name {
            Some(name) => {
                let workload = Arc::new(workload_arg::find(services, name, &[])?);
                Self::of(workload, seed, format!("Load {name}."))
            }
            None => Self::jobs(seed)?,
        })
    }

    fn jobs(seed: u64) -> anyhow::Result<Self> {
        let text = questions::jobs(seed);
        let workload = Arc::new(Workload::parse(&text, "jobs.toml")?);
        Ok(Self::of(workload, seed, text))
    }

    fn of(workload: Arc<Workload>, seed: u64, shown: String) -> Self {
        Self {
            machine: workload.machine.clone(),
            workload,
            seed,
            shown,
        }
    }

    /// The load on another machine, if one is given.
    #[must_use]
    fn on(self, machine: Option<MachineSpec>) -> Self {
        Self {
            machine: machine.unwrap_or(self.machine),
            ..self
        }
    }

    /// The load with other names of tasks. With `lengths` a name still ends in what stands behind
    /// its `_`, as policies read it that are told how long a job is.
    #[must_use]
    fn renamed(&self, lengths: bool) -> Self {
        let mut rng = Rng::new(self.seed, NAMES);
        let mut workload = Workload::clone(&self.workload);
        for group in &mut workload.groups {
            let letter = |_| char::from(b'a' + rng.below(26) as u8);
            let letters: String = (0..5).map(letter).collect();
            let told = group.name.rsplit_once('_').filter(|_| lengths);
            group.name = told.map_or(letters.clone(), |(_, told)| format!("{letters}_{told}"));
        }
        Self {
            workload: Arc::new(workload),
            ..self.clone()
        }
    }

    /// The run of `policy` under it.
    fn spec(&self, policy: PolicySpec) -> RunSpec {
        RunSpec {
            policy,
            workload: Arc::clone(&self.workload),
            machine: self.machine.clone(),
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
        let rules = rules(&self.policy, &image(&self.policy)?);
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

/// Knobs of a policy that a sheet has all of; of more it has those that were set.
const KNOBS_SHOWN: usize = 8;

/// What must be known of `policy`, whose image this is, to answer: its knobs, and whether chance
/// decides.
fn rules(policy: &PolicySpec, image: &Image) -> Vec<String> {
    let knobs = &image.knobs;
    let few = knobs.len() <= KNOBS_SHOWN;
    let mut rules = Vec::new();
    for Knob {
        name,
        unit,
        doc,
        default,
        ..
    } in knobs
    {
        let set = policy.set.iter().rev().find(|(own, _)| own == name);
        if !few && set.is_none() {
            continue;
        }
        let value = set.map_or_else(|| default.to_string(), |(_, value)| value.clone());
        rules.push(format!("{name} = {}: {doc}", with_unit(&value, unit)));
    }
    if !few {
        let name = policy.name.split(':').next().unwrap_or_default();
        rules.push(format!(
            "All else is as usual: `runslice list {name}` has the rules."
        ));
    }
    if draws_at_random(image) {
        rules.push("It draws at random: the answers are those of one run, not of a rule.".into());
    }
    rules
}

/// A knob's value as people say it.
fn with_unit(value: &str, unit: &str) -> String {
    match (unit, value.parse::<u64>()) {
        ("ns", Ok(ns)) => questions::ms(SimTime::from_nanos(ns)),
        ("bool", Ok(0)) => "no".to_owned(),
        ("bool", Ok(_)) => "yes".to_owned(),
        ("count", _) | (_, Err(_)) => value.to_owned(),
        _ => format!("{value} {unit}"),
    }
}

/// Whether chance decides in a policy.
fn draws_at_random(image: &Image) -> bool {
    let mut imports = image.imports.iter();
    imports.any(|it| it.name == "bpf_get_prandom_u32")
}

fn image(policy: &PolicySpec) -> anyhow::Result<Image> {
    let object = Object::parse(&policy.object).with_context(|| policy.name.clone())?;
    kernel::link(&object, Kernel::default()).with_context(|| policy.name.clone())
}

/// What teachers write: exams and exercises.
struct Taught<'a>(Source<'a>);

impl Taught<'_> {
    fn wrong(&self, at: usize, what: String, expected: &str) -> FileError {
        let problem = Problem::unexpected(what, expected);
        self.0.error(at, problem)
    }

    /// A number from 1 to `most`.
    fn number(
        &self,
        given: Option<&Spanned<i64>>,
        usual: usize,
        most: usize,
    ) -> Result<usize, FileError> {
        let Some(given) = given else {
            return Ok(usual);
        };
        let number = usize::try_from(*given.get_ref()).ok();
        number.filter(|it| (1..=most).contains(it)).ok_or_else(|| {
            let what = given.get_ref().to_string();
            self.wrong(given.span().start, what, &format!("1 to {most}"))
        })
    }

    /// The order within an instant of a machine as textbooks have it.
    fn order(&self, given: Option<&Spanned<String>>) -> Result<Option<Textbook>, FileError> {
        let read = given.map(|it| {
            let order = it.get_ref().parse::<Textbook>();
            order.map_err(|why| self.wrong(it.span().start, format!("`{}`", it.get_ref()), &why))
        });
        read.transpose()
    }
}

//! `runslice lab POLICY`: questions about a run, and `runslice lab --grade FOLDER`.

mod grade;
mod questions;
mod run;

use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context as _;
use bpf::{Knob, Object};
use clap::Args;
use model::{Kernel, MachineSpec, Nanos, PolicySpec};
use serde_json::json;
use workload::{RunSpec, Workload};

use crate::exit::{Status, UsageError};
use crate::{kernel, output, policy, workload_arg};

use grade::{Asked, WantedValue};
use questions::LabQuestion;
use run::Course;

/// Arguments of `runslice lab`.
#[derive(Debug, Args)]
pub struct Lab {
    /// Policy to ask about: a built-in name or a BPF object, with knobs after a colon.
    #[arg(required_unless_present = "grade", conflicts_with = "grade")]
    policy: Option<String>,

    /// Workload of the run: a built-in name or a TOML file. Default: a few jobs on one CPU, made
    /// from the seed.
    #[arg(short, long)]
    workload: Option<String>,

    /// Seed of the jobs and of the questions.
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,

    /// Number of questions.
    #[arg(long, value_name = "NUMBER", default_value_t = 5,
        value_parser = clap::value_parser!(u8).range(1..=50))]
    questions: u8,

    /// Print the answers, too.
    #[arg(long)]
    answers: bool,

    /// Run every BPF object (*.o) and every policy in C (*.c) of this folder, and say in JSON which
    /// properties it has. A source is compiled alone: it can read the headers of runslice and no
    /// other file. That needs a kernel with Landlock.
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["answers"])]
    grade: Option<PathBuf>,

    /// Property that an object must have. May be repeated. `wait < 100ms`: no task waits so long.
    /// `weights`: of two tasks that always want the CPU, the one of more weight gets no less.
    /// `share`: no task lags behind by more than a round. `like POLICY`: every task ends when it
    /// does under that built-in policy.
    ///
    /// That nobody starves and nothing errs is always asked for.
    #[arg(long, value_name = "PROPERTY", value_parser = WantedValue::parse, requires = "grade")]
    property: Vec<WantedValue>,

    /// Right by which --grade judges shares of the CPUs: weight, cgroup, rank, deadline or none.
    /// Default: the one that each object declares in its section `right`.
    #[arg(long, value_name = "RIGHT", value_parser = ask::right::parse, requires = "grade")]
    right: Option<explain::why::Right>,

    /// Number of loads made from the seed for --grade without --workload.
    #[arg(long, value_name = "NUMBER", default_value_t = 3, requires = "grade",
        value_parser = clap::value_parser!(u8).range(1..=100))]
    loads: u8,

    /// Print the questions as JSON.
    #[arg(long)]
    json: bool,
}

/// Longest simulated time of a run.
const LONGEST: Nanos = Nanos::from_secs(10);

/// Asks, or grades.
///
/// # Errors
/// When a policy, a workload or the folder is bad.
pub fn run(request: &Lab) -> anyhow::Result<Status> {
    if let Some(folder) = &request.grade {
        let loads = request.loads()?;
        let report = grade::folder(
            folder,
            &Asked {
                loads: &loads,
                wanted: &request.property,
                right: request.right,
            },
        )?;
        let mut to = output::open(None)?;
        writeln!(to, "{report:#}")?;
        to.flush()?;
        return Ok(Status::Done);
    }
    let name = request.policy.as_deref().unwrap_or_default();
    let found = policy::find(name)?;
    let rules = rules(&found)?;
    let load = request.load(request.seed)?;
    let course = Course::of(&spec(found, &load))?;
    let questions = questions::ask(&course, request.seed, request.questions.into());
    if questions.is_empty() {
        let message = "the run gives nothing to ask about: no task runs and ends in 10 s";
        return Err(UsageError::new(message).into());
    }
    let mut to = output::open(None)?;
    if request.json {
        let all = questions.iter().map(|LabQuestion { text, answer }| {
            let answer = request.answers.then_some(answer);
            json!({ "question": text, "answer": answer })
        });
        let all: Vec<_> = all.collect();
        let document = json!({
            "policy": name, "seed": request.seed, "rules": rules, "load": load.shown,
            "questions": all,
        });
        writeln!(to, "{document:#}")?;
        return Ok(to.flush().map(|()| Status::Done)?);
    }
    writeln!(to, "Policy {name}, seed {}.", request.seed)?;
    for rule in &rules {
        writeln!(to, "{rule}")?;
    }
    writeln!(to, "\n{}", load.shown)?;
    for (at, LabQuestion { text, answer }) in questions.iter().enumerate() {
        writeln!(to, "{}. {text}", at + 1)?;
        if request.answers {
            writeln!(to, "   {answer}")?;
        }
    }
    if !request.answers {
        writeln!(to, "\n--answers prints the answers.")?;
    }
    to.flush()?;
    Ok(Status::Done)
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

/// A load, and how the students are told of it.
#[derive(Clone, Debug)]
pub struct LabLoad {
    workload: Arc<Workload>,
    seed: u64,
    shown: String,
}

impl Lab {
    fn load(&self, seed: u64) -> anyhow::Result<LabLoad> {
        let Some(name) = &self.workload else {
            let text = questions::jobs(seed);
            return Ok(LabLoad {
                workload: Arc::new(Workload::parse(&text, "jobs.toml")?),
                seed,
                shown: text,
            });
        };
        Ok(LabLoad {
            workload: Arc::new(workload_arg::find(name, &[])?),
            seed,
            shown: format!("Load {name}."),
        })
    }

    fn loads(&self) -> anyhow::Result<Vec<LabLoad>> {
        let count = match self.workload {
            Some(_) => 1,
            None => u64::from(self.loads),
        };
        let seeds = (0..count).map(|run| model::seeds::of_run(self.seed, run));
        seeds.map(|seed| self.load(seed)).collect()
    }
}

/// The run of `policy` under `load`.
fn spec(policy: PolicySpec, load: &LabLoad) -> RunSpec {
    let machine: MachineSpec = load.workload.machine.clone();
    RunSpec {
        policy,
        workload: Arc::clone(&load.workload),
        machine,
        seed: load.seed,
        tie_seed: None,
        attach_after: Nanos::ZERO,
        duration: Some(LONGEST),
    }
}

//! `runslice lab POLICY`: questions about a run, and `runslice lab --grade FOLDER`.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use ask::lab::{Grade, GradedPolicy, Grades, HandedIn, Lab as Question, LabLoad, WantedValue};
use ask::policy;
use clap::Args;
use model::{Advised, PolicySpec};
use show::lab;

use crate::computer::COMPUTER;
use crate::exit::{BadSource, Status, UsageError, in_full};
use crate::output;
use crate::say::{printable, say};
use crate::source::{self, Readable};

/// Objects and sources of a folder.
const MOST: usize = 10_000;

/// Most characters of what a compiler says about a source.
const LONGEST: usize = 4000;

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

/// Asks, or grades.
///
/// # Errors
/// When a policy, a workload or the folder is bad.
pub fn run(request: &Lab) -> anyhow::Result<Status> {
    let mut to = output::open(None)?;
    if let Some(folder) = &request.grade {
        lab::grades_json(&request.graded(folder)?, &mut to)?;
        return Ok(to.flush().map(|()| Status::Done)?);
    }
    let name = request.policy.as_deref().unwrap_or_default();
    let question = Question {
        policy: policy::find(&COMPUTER, name)?,
        load: request.load(request.seed)?,
        seed: request.seed,
        questions: request.questions.into(),
    };
    let sheet = question.ask(&COMPUTER)?;
    if request.json {
        lab::sheet_json(name, &sheet, request.answers, &mut to)?;
    } else {
        lab::sheet(name, &sheet, request.answers, &mut to)?;
    }
    to.flush()?;
    Ok(Status::Done)
}

impl Lab {
    fn load(&self, seed: u64) -> Result<LabLoad, ask::Error> {
        LabLoad::find(&COMPUTER, self.workload.as_deref(), seed)
    }

    fn loads(&self) -> Result<Vec<LabLoad>, ask::Error> {
        let count = match self.workload {
            Some(_) => 1,
            None => u64::from(self.loads),
        };
        let seeds = (0..count).map(|run| model::seeds::of_run(self.seed, run));
        seeds.map(|seed| self.load(seed)).collect()
    }

    /// Grades every object of a folder, and every policy in C.
    ///
    /// # Errors
    /// When the folder cannot be read or has none of them, or a source cannot be compiled for a
    /// reason that is not its own.
    fn graded(&self, folder: &Path) -> anyhow::Result<Grades> {
        let question = Grade {
            loads: self.loads()?,
            wanted: self.property.clone(),
            right: self.right,
        };
        let graded = handed_in(folder)?.into_iter().map(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let given = HandedIn {
                name: printable(&name),
                policy: policy_in(&path)?,
            };
            Ok(plain(question.ask(&COMPUTER, given)?))
        });
        Ok(Grades::of(graded.collect::<anyhow::Result<_>>()?))
    }
}

/// Names of tasks, which an answer quotes, come from anywhere.
fn plain(mut graded: GradedPolicy) -> GradedPolicy {
    for property in &mut graded.properties {
        property.why = property.why.as_deref().map(printable);
    }
    graded
}

/// Every object and every source of a folder, in the order of their names.
fn handed_in(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder);
    let entries = entries.map_err(model::CannotRead::at(folder.display()))?;
    let is_object = |path: &Path| path.extension().is_some_and(|it| it == "o");
    let mut handed_in: Vec<PathBuf> = entries
        .take(MOST)
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| is_object(path) || source::is_source(path))
        .collect();
    handed_in.sort();
    if handed_in.is_empty() {
        let what = "has no BPF object (*.o) and no policy in C (*.c)";
        let message = Advised::new(
            format!("{} {what}", folder.display()),
            "put what is to be graded there",
        );
        return Err(UsageError::new(message).into());
    }
    Ok(handed_in)
}

/// The policy that somebody handed in, or what is wrong with it. A source of his may read nothing
/// but itself, and a link could name what he has not written.
fn policy_in(path: &Path) -> anyhow::Result<Result<PolicySpec, String>> {
    if !path.symlink_metadata().is_ok_and(|it| it.is_file()) {
        return Ok(Err(
            "it is a link, a folder or a device; hand in a file".to_owned()
        ));
    }
    let word = path.to_string_lossy();
    if !source::is_source(path) {
        return Ok(policy::find(&COMPUTER, &word).map_err(|error| in_full(&error)));
    }
    match source::compile(path, &Readable::source_alone()) {
        Ok((built, notes)) => {
            for note in notes {
                say("runslice", &note);
            }
            let found = policy::of_bytes(&COMPUTER, &word, built.object);
            Ok(found.map(|it| it.policy).map_err(|error| in_full(&error)))
        }
        Err(error) if error.is::<BadSource>() => {
            Ok(Err(error.to_string().chars().take(LONGEST).collect()))
        }
        Err(error) => Err(error),
    }
}

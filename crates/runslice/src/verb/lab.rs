//! `runslice lab POLICY`: questions about a run, exams, and `runslice lab --grade FOLDER`.

mod exam;
mod grade;

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use ask::lab::{Grade, Grades, HandedIn, Lab as Question, LabLoad, WantedValue};
use ask::policy;
use clap::Args;
use model::Advised;
use show::lab;

use crate::computer::COMPUTER;
use crate::exit::{Status, UsageError};
use crate::output;
use crate::say::printable;

/// Arguments of `runslice lab`.
#[derive(Debug, Args)]
pub struct Lab {
    /// Policy to ask about: a built-in name or a BPF object, with knobs after a colon.
    #[arg(required_unless_present_any = ["grade", "students"], conflicts_with = "grade")]
    policy: Option<String>,

    /// Make a sheet for each student of this list: a name a line, or CSV with a column `name`. The
    /// jobs of a sheet follow from the name and the key of --exam.
    #[arg(long, value_name = "FILE", requires_all = ["exam", "output"],
        conflicts_with_all = ["policy", "grade", "workload", "answers", "json"])]
    students: Option<PathBuf>,

    /// Exam to make the sheets of --students for, a TOML file with `title`, `key`, `policies`,
    /// `jobs`, `questions` and `machine` in `[exam]`. See docs/guide/src/lab.md.
    #[arg(long, value_name = "FILE", requires = "students")]
    exam: Option<PathBuf>,

    /// Folder for the sheets (booklet.html, sheets/, answers.csv, moodle.xml), or for the results
    /// of --exercise (grades.csv, feedback/). What is there of --exercise is not done again.
    #[arg(short, long, value_name = "FOLDER")]
    output: Option<PathBuf>,

    /// Exercise to give points by for --grade, a TOML file: `title`, `key`, `loads` and `machine`
    /// in `[exercise]`, and `is` and `points` in each `[[property]]`. Prints a table and says whose
    /// code is the same. Status 5 if a policy lacks something. See docs/guide/src/lab.md.
    #[arg(long, value_name = "FILE", requires = "grade",
        conflicts_with_all = ["policy", "property", "right", "loads", "workload", "json"])]
    exercise: Option<PathBuf>,

    /// Workload of the run: a built-in name or a TOML file. Default: a few jobs on one CPU, made
    /// from the seed.
    #[arg(short, long)]
    workload: Option<String>,

    /// Seed of the jobs and of the questions.
    #[arg(long, value_name = "NUMBER", default_value_t = 1,
        conflicts_with_all = ["students", "exercise"])]
    seed: u64,

    /// Number of questions.
    #[arg(long, value_name = "NUMBER", default_value_t = 5,
        conflicts_with_all = ["students", "grade"],
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
    /// does under that policy, a built-in one with knobs or an object. `names`: every task ends
    /// when it does where the tasks have other names.
    ///
    /// That nobody starves and nothing errs is always asked for.
    #[arg(long, value_name = "PROPERTY", value_parser = WantedValue::parse, requires = "grade",
        conflicts_with = "policy")]
    property: Vec<WantedValue>,

    /// Right by which --grade judges shares of the CPUs: weight, cgroup, rank, deadline or none.
    /// Default: the one that each object declares in its section `right`.
    #[arg(long, value_name = "RIGHT", value_parser = ask::right::parse, requires = "grade",
        conflicts_with = "policy")]
    right: Option<explain::why::Right>,

    /// Number of loads made from the seed for --grade without --workload.
    #[arg(long, value_name = "NUMBER", default_value_t = 3, requires = "grade",
        conflicts_with_all = ["policy", "workload"],
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
    if let (Some(students), Some(exam), Some(folder)) =
        (&request.students, &request.exam, &request.output)
    {
        return exam::run(students, exam, folder);
    }
    if let (Some(folder), Some(exercise)) = (&request.grade, &request.exercise) {
        let results = request.output.as_deref();
        return grade::Marking {
            folder,
            exercise,
            results,
        }
        .run();
    }
    if request.output.is_some() {
        let what = "--output is for the files of --students and --exercise";
        let message = Advised::new(what, "leave it out: the answer goes to standard output");
        return Err(UsageError::new(message).into());
    }
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
        let question = Grade::new(&COMPUTER, self.loads()?, self.property.clone(), self.right)?;
        let graded = grade::handed_in(folder)?.into_iter().map(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let given = HandedIn {
                name: printable(&name),
                policy: grade::policy_in(&path)?,
            };
            Ok(grade::plain(question.ask(&COMPUTER, &given)?))
        });
        Ok(Grades::of(graded.collect::<anyhow::Result<_>>()?))
    }
}

/// Puts a file in its place, whole or not at all.
fn put(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> anyhow::Result<()> {
    let mut bytes = Vec::new();
    write(&mut bytes)?;
    output::write_whole(path, &bytes)
}

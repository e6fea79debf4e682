//! An exam: a sheet for each student, of jobs of its own and of equal difficulty.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;

use model::file::Source;
use model::{Advised, MachineSpec, PolicySpec, Rng, SimTime, Textbook};
use serde::Deserialize;
use toml::Spanned;
use workload::Workload;

use super::questions::ms;
use super::run::{Course, LabTask};
use super::students::Student;
use super::{LabLoad, Taught, draws_at_random, image, rules};
use crate::error::{Error, UsageError};
use crate::policy;
use crate::services::Services;

/// Stream of the jobs.
const JOBS: u64 = 11 << 60;
/// Sets of jobs that are drawn at most until one is as difficult as that of everybody.
const DRAWS: usize = 400;
/// Sets of jobs that are drawn to choose how difficult the exam is.
const TRIED: usize = 12;
const MS: u64 = 1_000_000;

/// An exam, as its file says.
#[derive(Clone, Debug)]
pub struct Exam {
    /// Its title.
    pub title: String,
    /// What else stands on each sheet.
    pub text: String,
    /// Seeds all sheets, with the names.
    pub key: String,
    /// The order within an instant.
    pub order: Textbook,
    /// The policies that are asked about.
    policies: Vec<ExamPolicy>,
    jobs: usize,
    questions: usize,
    /// Bars of the charts that everybody has to draw.
    bars: Vec<usize>,
}

#[derive(Clone, Debug)]
struct ExamPolicy {
    spec: PolicySpec,
    summary: String,
    rules: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ExamDraft {
    exam: ExamTable,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ExamTable {
    title: String,
    key: Spanned<String>,
    policies: Vec<Spanned<String>>,
    #[serde(default)]
    text: String,
    machine: Option<Spanned<String>>,
    jobs: Option<Spanned<i64>>,
    questions: Option<Spanned<i64>>,
}

/// A student's sheet.
#[derive(Clone, Debug)]
pub struct ExamSheet {
    /// Whose it is.
    pub student: Student,
    /// The jobs, in the order of the table.
    pub jobs: Vec<ExamJob>,
    /// The questions about each policy.
    pub parts: Vec<ExamPart>,
}

/// A job of a sheet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExamJob {
    /// A letter.
    pub name: char,
    /// When it arrives, milliseconds.
    pub arrives: u64,
    /// How long it runs, milliseconds.
    pub length: u64,
}

/// What a sheet asks about a policy.
#[derive(Clone, Debug)]
pub struct ExamPart {
    /// The policy, as the exam names it.
    pub policy: String,
    /// What it is, one line; empty for a policy that is not shipped.
    pub summary: String,
    /// Its knobs.
    pub rules: Vec<String>,
    /// Who has the CPU, in order: from and to, milliseconds; `None`: nobody.
    pub chart: Vec<(u64, u64, Option<char>)>,
    /// The questions, after the chart.
    pub questions: Vec<ExamQuestion>,
}

/// A question of a sheet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExamQuestion {
    /// The question.
    pub text: String,
    /// Its answer.
    pub answer: ExamAnswer,
}

/// An answer of a sheet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExamAnswer {
    /// Milliseconds, in hundredths.
    Time(u64),
    /// A job, or `nobody`.
    Job(String),
}

impl ExamAnswer {
    /// As it is written; times in milliseconds.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Self::Time(hundredths) => {
                let text = format!("{}.{:02}", hundredths / 100, hundredths % 100);
                text.trim_end_matches('0').trim_end_matches('.').to_owned()
            }
            Self::Job(name) => name.clone(),
        }
    }
}

impl Exam {
    /// Reads an exam, and draws how difficult it is.
    ///
    /// # Errors
    /// When the file is bad, with the place; when it names no policy, or one that draws at random.
    pub fn read(services: &Services<'_>, text: &str, file: &str) -> Result<Self, Error> {
        Ok(Self::read_in(services, &Taught(Source { text, file }))?)
    }

    fn read_in(services: &Services<'_>, source: &Taught<'_>) -> anyhow::Result<Self> {
        let table = model::file::read::<ExamDraft>(&source.0)?.exam;
        let key = table.key.get_ref().clone();
        if key.trim().is_empty() {
            let expected = "a word that students do not know";
            let at = table.key.span().start;
            return Err(source.wrong(at, "no key".into(), expected).into());
        }
        let order = source.order(table.machine.as_ref())?.unwrap_or_default();
        if table.policies.is_empty() {
            let what = Advised::new("the exam has no policies", "write policies = [\"fcfs\"]");
            return Err(UsageError::new(what).into());
        }
        let policies = table.policies.iter();
        let mut exam = Self {
            jobs: source.number(table.jobs.as_ref(), 4, 8)?,
            questions: source.number(table.questions.as_ref(), 3, 6)?,
            policies: policies
                .map(|it| ExamPolicy::find(services, it.get_ref()))
                .collect::<anyhow::Result<_>>()?,
            title: table.title,
            text: table.text,
            key,
            order,
            bars: Vec::new(),
        };
        exam.bars = exam.difficulty(services)?;
        Ok(exam)
    }

    /// The bars of the third hardest of some sets of jobs: hard enough to tell policies apart, and
    /// not so rare that no other set has as many.
    fn difficulty(&self, services: &Services<'_>) -> anyhow::Result<Vec<usize>> {
        let mut rng = Rng::new(model::Fnv1a::of(self.key.bytes()), JOBS);
        let mut all = Vec::new();
        for _ in 0..TRIED {
            all.push(self.drawn(services, &mut rng)?.bars());
        }
        all.sort_by_key(|bars| Reverse(bars.iter().sum::<usize>()));
        Ok(all.swap_remove(2))
    }

    /// How many bars each chart of a sheet has, by policy.
    #[must_use]
    pub fn bars(&self) -> &[usize] {
        &self.bars
    }

    /// The sheet of a student. Its charts have as many bars as those of all others, as far as a
    /// few hundred draws find such jobs; else the nearest one.
    ///
    /// # Errors
    /// When a policy cannot run, or the work is given up.
    pub fn sheet(&self, services: &Services<'_>, student: &Student) -> Result<ExamSheet, Error> {
        Ok(self.nearest(services, student)?)
    }

    fn nearest(&self, services: &Services<'_>, student: &Student) -> anyhow::Result<ExamSheet> {
        let mut rng = Rng::new(student.seed, JOBS);
        let mut best: Option<(usize, DrawnJobs)> = None;
        for _ in 0..DRAWS {
            services.check().map_err(anyhow::Error::from)?;
            let drawn = self.drawn(services, &mut rng)?;
            let bars = drawn.bars();
            let off = bars
                .iter()
                .zip(&self.bars)
                .map(|(own, all)| own.abs_diff(*all))
                .sum();
            if best.as_ref().is_none_or(|(least, _)| off < *least) {
                best = Some((off, drawn));
            }
            if off == 0 {
                break;
            }
        }
        let (_, drawn) = best.expect("at least one draw");
        let parts = self.policies.iter().zip(&drawn.courses);
        let parts = parts.map(|(policy, course)| self.part(policy, course, &drawn.jobs));
        Ok(ExamSheet {
            student: student.clone(),
            parts: parts.collect(),
            jobs: drawn.jobs,
        })
    }

    /// Draws jobs, and runs them.
    fn drawn(&self, services: &Services<'_>, rng: &mut Rng) -> anyhow::Result<DrawnJobs> {
        let jobs = jobs(rng, self.jobs);
        let workload = Arc::new(Workload::parse(&workload_of(&jobs), "jobs.toml")?);
        let load = LabLoad::of(workload, 1, String::new());
        let load = load.on(Some(MachineSpec::by_the_book(self.order)));
        let policies = self.policies.iter();
        let courses = policies.map(|policy| {
            let course = Course::of(services, &load.spec(policy.spec.clone()))?;
            in_whole_ms(&policy.spec.name, &course)?;
            anyhow::Ok(course)
        });
        let courses = courses.collect::<anyhow::Result<_>>()?;
        Ok(DrawnJobs { jobs, courses })
    }

    fn part(&self, policy: &ExamPolicy, course: &Course, jobs: &[ExamJob]) -> ExamPart {
        let mut by_end: Vec<(&ExamJob, &LabTask)> = jobs.iter().zip(&course.tasks).collect();
        by_end.sort_by_key(|(_, task)| Reverse(task.ended));
        let chart = chart(course, jobs);
        let mut questions = Vec::new();
        for number in 0..self.questions {
            // Of the jobs that end last, which is where mistakes show.
            let (job, task) = by_end[number / 2 % by_end.len()];
            questions.extend(question(number, job, task, course, &chart));
        }
        ExamPart {
            policy: policy.spec.name.clone(),
            summary: policy.summary.clone(),
            rules: policy.rules.clone(),
            chart,
            questions,
        }
    }
}

impl ExamPolicy {
    fn find(services: &Services<'_>, name: &str) -> anyhow::Result<Self> {
        let spec = policy::find(services, name)?;
        let image = image(&spec)?;
        if draws_at_random(&image) {
            let what = Advised::new(
                format!("`{name}` draws at random: nobody can say what it does"),
                "ask about another policy",
            );
            return Err(UsageError::new(what).into());
        }
        let shipped = name.split(':').next().and_then(policies::find);
        Ok(Self {
            rules: rules(&spec, &image),
            summary: shipped.map_or("", |it| it.summary).to_owned(),
            spec,
        })
    }
}

/// Jobs, and what became of them under each policy.
struct DrawnJobs {
    jobs: Vec<ExamJob>,
    courses: Vec<Course>,
}

impl DrawnJobs {
    /// How often a job gets the CPU under each policy.
    fn bars(&self) -> Vec<usize> {
        let bars = |course: &Course| {
            course
                .turns
                .iter()
                .filter(|(.., who)| who.is_some())
                .count()
        };
        self.courses.iter().map(bars).collect()
    }
}

/// Refuses turns that no chart of a sheet can show: its columns are milliseconds.
fn in_whole_ms(policy: &str, course: &Course) -> Result<(), UsageError> {
    let mut times = course.turns.iter().map(|(time, ..)| *time);
    match times.find(|time| time.as_nanos() % MS != 0) {
        None => Ok(()),
        Some(time) => Err(UsageError::new(Advised::new(
            format!(
                "`{policy}` switches at {}: no chart of a sheet can show that",
                ms(time)
            ),
            "give it quanta of whole milliseconds, such as rr:slice_ns=2ms",
        ))),
    }
}

/// Jobs of 2 to 9 ms, the first of which arrives at once. No two arrive together.
fn jobs(rng: &mut Rng, count: usize) -> Vec<ExamJob> {
    let mut arrivals = BTreeSet::from([0]);
    while arrivals.len() < count {
        arrivals.insert(1 + rng.below(3 * count as u64));
    }
    let mut arrivals: Vec<u64> = arrivals.into_iter().collect();
    // The table is not in the order of arrival.
    for at in (1..arrivals.len()).rev() {
        arrivals.swap(at, rng.below(at as u64 + 1) as usize);
    }
    let letters = ('A'..='Z').zip(arrivals);
    let job = |(name, arrives)| ExamJob {
        name,
        arrives,
        length: 2 + rng.below(8),
    };
    letters.map(job).collect()
}

/// As a workload. A job's name ends in its length, for policies that read it there.
fn workload_of(jobs: &[ExamJob]) -> String {
    let mut text = "[workload]\nname = \"exam\"\n".to_owned();
    for ExamJob {
        name,
        arrives,
        length,
    } in jobs
    {
        let _ = write!(
            text,
            "[task.{name}_{length}]\nstart = \"{arrives}ms\"\ndo = \"run({length}ms)\"\n"
        );
    }
    text
}

/// Who has the CPU, as bars.
fn chart(course: &Course, jobs: &[ExamJob]) -> Vec<(u64, u64, Option<char>)> {
    let at = |time: SimTime| time.as_nanos() / MS;
    let ends = course
        .turns
        .iter()
        .skip(1)
        .map(|(time, ..)| *time)
        .chain([course.end]);
    let bars = course.turns.iter().zip(ends).map(|((from, _, who), to)| {
        let job = who.and_then(|who| jobs.get(who));
        (at(*from), at(to), job.map(|job| job.name))
    });
    bars.filter(|(from, to, _)| from < to).collect()
}

/// The question of this number, which is of the same kind on every sheet.
fn question(
    number: usize,
    job: &ExamJob,
    task: &LabTask,
    course: &Course,
    chart: &[(u64, u64, Option<char>)],
) -> Option<ExamQuestion> {
    let name = job.name;
    let arrives = SimTime::from_nanos(job.arrives * MS);
    let hundredths = |ns: u64| ExamAnswer::Time((ns + 5_000) / 10_000);
    let (text, answer) = match number {
        0 => (
            format!("What is the turnaround of {name}, from its arrival to its end?"),
            hundredths(task.ended?.since(arrives).get()),
        ),
        1 => (
            format!("What is the response time of {name}, from its arrival to its first run?"),
            hundredths(task.started?.since(arrives).get()),
        ),
        2 => (
            "What is the mean turnaround of all jobs?".to_owned(),
            hundredths(mean_turnaround(course)?),
        ),
        3 => (
            format!("How long does {name} wait for the CPU in all?"),
            hundredths(task.ended?.since(arrives).get() - job.length * MS),
        ),
        4 => (
            format!("When does {name} end?"),
            hundredths(task.ended?.as_nanos()),
        ),
        _ => {
            let (_, time, before) = *chart.get(chart.len().checked_sub(2)?)?;
            let next = chart.last()?.2;
            let word = |job: Option<char>| job.map_or("nobody".to_owned(), String::from);
            (
                format!(
                    "{} leaves the CPU at {time} ms. Who runs next?",
                    word(before)
                ),
                ExamAnswer::Job(word(next)),
            )
        }
    };
    Some(ExamQuestion { text, answer })
}

fn mean_turnaround(course: &Course) -> Option<u64> {
    let tasks = course.tasks.iter();
    let all: Option<u64> = tasks
        .map(|task| Some(task.ended?.since(task.ready?).get()))
        .sum();
    Some(all? / course.tasks.len().max(1) as u64)
}

#[cfg(test)]
mod tests {
    use model::Advice as _;

    use super::*;
    use crate::services::tests::FILES;

    #[test]
    fn a_quantum_that_no_chart_can_show_is_refused() {
        let read = |quantum: &str| {
            let text = format!(
                "[exam]\ntitle = \"x\"\nkey = \"k\"\npolicies = [\"rr:slice_ns={quantum}\"]\n"
            );
            Exam::read(&FILES, &text, "exam.toml")
        };
        read("2ms").unwrap();
        let error = read("1500us").unwrap_err();
        assert!(error.to_string().contains(" switches at "), "{error}");
        assert!(error.to_string().contains(".5 ms"), "{error}");
        assert!(error.advice().unwrap().contains("whole milliseconds"));
    }
}

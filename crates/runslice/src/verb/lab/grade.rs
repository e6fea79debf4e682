//! `runslice lab --grade FOLDER`: policies that students have written.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use ask::input;
use ask::lab::{self, Exercise, Grade, GradedPolicy, HandedIn, file_name_of};
use ask::policy;
use model::{Advised, PolicySpec};
use serde::{Deserialize, Serialize};
use show::lab::graded::{self, MarkedPolicy};

use crate::computer::COMPUTER;
use crate::exit::{BadSource, Status, UsageError, in_full};
use crate::files;
use crate::output;
use crate::progress::Bar;
use crate::say::{printable, say};
use crate::source::{self, Readable};
use crate::store::SIMULATES;

use super::put;

/// Objects and sources of a folder, at most.
const MOST: usize = 10_000;
/// Most characters of what a compiler says about a source.
const LONGEST: usize = 4000;
/// Bytes of an exercise, an object or a source, at most.
const FILE_MAX: u64 = 64 << 20;

/// Points for the policies of a folder.
pub struct Marking<'a> {
    /// The policies.
    pub folder: &'a Path,
    /// The exercise's file.
    pub exercise: &'a Path,
    /// Where the results go, if they are to be kept.
    pub results: Option<&'a Path>,
}

/// What is kept of a policy, so that an interrupted run goes on.
#[derive(Serialize, Deserialize)]
struct KeptMark {
    /// Of the policy, the exercise and this program.
    key: String,
    graded: GradedPolicy,
    /// Its code.
    code: Option<String>,
}

impl Marking<'_> {
    /// Marks all policies, those that are kept apart, and writes the results.
    ///
    /// # Errors
    /// When the exercise or the folder is bad, or the work is given up; what is done is kept then.
    pub fn run(&self) -> anyhow::Result<Status> {
        let text = input::text(&COMPUTER, self.exercise, FILE_MAX)?;
        let exercise = Exercise::read(&text, &input::shown(self.exercise))?;
        let handed_in = handed_in(self.folder)?;
        let wanted = exercise.wanted.iter().map(|(value, _)| value.clone());
        // A wanted policy that is not there is refused before anybody is graded by it.
        let loads = exercise.loads.clone();
        let question = Grade::new(&COMPUTER, loads, wanted.collect(), None)?;
        for folder in ["kept", "feedback"] {
            if let Some(results) = self.results {
                output::make_folder(&results.join(folder))?;
            }
        }
        let mut bar = Bar::of_things("policies", handed_in.len() as u64);
        let mut marks = Vec::new();
        for path in &handed_in {
            marks.push(self.mark(path, (&question, &exercise), &text)?);
            bar.set(marks.len() as u64);
        }
        bar.end();
        let marked = marked(&exercise, &marks);
        self.write(&marked)?;
        let mut to = output::open(None)?;
        graded::table(&marked, &mut to)?;
        if let Some(results) = self.results {
            let results = results.display();
            writeln!(
                to,
                "\n{results}/grades.csv has each property, {results}/feedback a text each"
            )?;
        }
        to.flush()?;
        let lacks = marked
            .iter()
            .any(|it| it.sum() < it.most() || !it.graded.passed);
        Ok(if lacks {
            Status::Exceeded
        } else {
            Status::Done
        })
    }

    fn mark(
        &self,
        path: &Path,
        (question, exercise): (&Grade, &Exercise),
        text: &str,
    ) -> anyhow::Result<KeptMark> {
        let file = path.file_name().unwrap_or_default();
        let name = printable(&file.to_string_lossy());
        let key = key(path, question, text);
        // Names that are no text may look alike.
        let slug = file_name_of(&files::text_of(file));
        let kept = self
            .results
            .map(|it| it.join("kept").join(format!("{slug}.json")));
        let kept = kept.zip(key);
        let known = kept.as_ref().and_then(|(path, key)| kept_mark(path, key));
        if let Some(mark) = known {
            return Ok(mark);
        }
        let given = HandedIn {
            name,
            policy: policy_in(path)?,
        };
        let graded = plain(question.ask(&COMPUTER, &given)?);
        let own = given.policy.as_ref().ok();
        if let Some(results) = self.results {
            let path = results.join("feedback").join(format!("{slug}.txt"));
            let parting = own.map(|own| question.parting(&COMPUTER, &graded, own));
            let parting = parting.transpose()?.flatten();
            let parting = parting.as_ref().map(|(name, it)| (*name, it));
            let marked = pointed(exercise, &graded);
            put(&path, |to| {
                graded::feedback(&exercise.title, &marked, parting, to)
            })?;
        }
        let mut mark = KeptMark {
            key: String::new(),
            graded,
            code: own
                .and_then(lab::fingerprint)
                .map(|it| format!("{it:016x}")),
        };
        if let Some((path, key)) = kept {
            mark.key = key;
            put(&path, |to| {
                Ok(writeln!(to, "{}", serde_json::to_string(&mark)?)?)
            })?;
        }
        Ok(mark)
    }

    fn write(&self, marked: &[MarkedPolicy]) -> anyhow::Result<()> {
        match self.results {
            Some(results) => put(&results.join("grades.csv"), |to| graded::csv(marked, to)),
            None => Ok(()),
        }
    }
}

/// The key of the file's result; `None` if it is none that is graded, or cannot be read.
fn key(path: &Path, question: &Grade, exercise: &str) -> Option<String> {
    let bytes = is_file(path).then(|| input::bytes(&COMPUTER, path, FILE_MAX));
    let key = question.key(SIMULATES, &bytes?.ok()?, exercise);
    Some(key.to_string())
}

/// Whether this is a file itself: a link could name what its author has not written, and a pipe or
/// a device may have no end.
fn is_file(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|it| it.is_file())
}

/// A result that is kept, if it is of this policy and exercise.
fn kept_mark(path: &Path, key: &str) -> Option<KeptMark> {
    let text = input::text(&COMPUTER, is_file(path).then_some(path)?, FILE_MAX).ok()?;
    let mark: KeptMark = serde_json::from_str(&text).ok()?;
    (mark.key == key).then_some(mark)
}

/// The results with their points, and who has whose code.
fn marked(exercise: &Exercise, marks: &[KeptMark]) -> Vec<MarkedPolicy> {
    let mut by_code: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    let shipped = lab::shipped();
    let shipped: BTreeMap<String, &String> = shipped
        .iter()
        .map(|(code, name)| (format!("{code:016x}"), name))
        .collect();
    for mark in marks {
        if let Some(code) = &mark.code {
            by_code
                .entry(code)
                .or_default()
                .push(mark.graded.object.clone());
        }
    }
    let all = marks.iter().map(|mark| {
        let code = mark.code.as_deref();
        let others = code
            .and_then(|code| by_code.get(code))
            .into_iter()
            .flatten();
        let others = others.filter(|name| **name != mark.graded.object).cloned();
        let ours = code.and_then(|code| shipped.get(code));
        MarkedPolicy {
            same_as: ours
                .map(|it| format!("the built-in {it}"))
                .into_iter()
                .chain(others)
                .collect(),
            ..pointed(exercise, &mark.graded)
        }
    });
    all.collect()
}

/// A result with its points: none of a policy that errs.
fn pointed(exercise: &Exercise, graded: &GradedPolicy) -> MarkedPolicy {
    let is_sound = graded.properties.first().is_some_and(|it| it.holds);
    let wanted = exercise.wanted.iter().zip(graded.properties.iter().skip(1));
    let own = wanted.map(|((_, points), it)| if is_sound && it.holds { *points } else { 0 });
    let of = exercise.wanted.iter().map(|(_, points)| *points);
    MarkedPolicy {
        points: std::iter::once(0).chain(own).collect(),
        of: std::iter::once(0).chain(of).collect(),
        same_as: Vec::new(),
        graded: graded.clone(),
    }
}

/// Names of tasks, which an answer quotes, come from anywhere.
pub fn plain(mut graded: GradedPolicy) -> GradedPolicy {
    for property in &mut graded.properties {
        property.why = property.why.as_deref().map(printable);
    }
    graded
}

/// Every object and every source of a folder, in the order of their names.
pub fn handed_in(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder);
    let entries = entries.map_err(model::CannotRead::at(folder.display()))?;
    let is_object = |path: &Path| path.extension().is_some_and(|it| it == "o");
    let mut handed_in = Vec::new();
    for entry in entries {
        let path = entry
            .map_err(model::CannotRead::at(folder.display()))?
            .path();
        if is_object(&path) || source::is_source(&path) {
            handed_in.push(path);
        }
    }
    handed_in.sort();
    if handed_in.len() > MOST {
        let what = format!("{} has more than {MOST} policies", folder.display());
        return Err(UsageError::new(Advised::new(what, "grade them in several folders")).into());
    }
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
/// but itself.
pub fn policy_in(path: &Path) -> anyhow::Result<Result<PolicySpec, String>> {
    if !is_file(path) {
        return Ok(Err(
            "it is a link, a folder or a device; hand in a file".to_owned()
        ));
    }
    let word = files::text_of(path.as_os_str());
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

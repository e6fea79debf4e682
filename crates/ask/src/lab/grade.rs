//! Objects, and policies in C, against properties.

use std::path::{Path, PathBuf};

use explain::why::{Finding, Right};
use model::{Advised, PolicySpec};
use serde_json::{Value, json};

use super::run::Course;
use super::{LabLoad, spec};
use crate::computer::COMPUTER;
use crate::exit::BadSource;
use crate::exit::UsageError;
use crate::policy;
use crate::say::{printable, say};
use crate::source::{self, Readable};
use crate::violation::{self, Property, Signature};

/// Objects and sources of a folder.
const MOST: usize = 10_000;

/// Most characters of what a compiler says about a source.
const LONGEST: usize = 4000;

/// What an object must have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WantedValue {
    /// A property of its runs.
    Property(Property),
    /// Every task ends when it does under this policy.
    Like(String),
}

impl WantedValue {
    /// Reads it.
    ///
    /// # Errors
    /// When there is no such property or policy.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text.trim().strip_prefix("like ") {
            Some(name) if policies::find(name.trim()).is_some() => {
                Ok(Self::Like(name.trim().to_owned()))
            }
            Some(name) => Err(format!("no built-in policy is called `{}`", name.trim())),
            None => Property::parse(text)
                .map(Self::Property)
                .map_err(|error| format!("{error}, or `like POLICY`")),
        }
    }

    fn text(&self) -> String {
        match self {
            Self::Property(property) => property.text(),
            Self::Like(name) => format!("like {name}"),
        }
    }
}

/// What every object is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// The loads.
    pub loads: &'a [LabLoad],
    /// What it must have besides that nobody starves and nothing errs.
    pub wanted: &'a [WantedValue],
    /// The right by which shares are judged; `None`: the one that the object declares.
    pub right: Option<Right>,
}

/// Grades every object of a folder, and every policy in C.
///
/// # Errors
/// When the folder cannot be read or has none of them, or a source cannot be compiled for a reason
/// that is not its own.
pub fn folder(folder: &Path, asked: &Asked<'_>) -> anyhow::Result<Value> {
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
        let message = Advised::new(
            format!(
                "{} has no BPF object (*.o) and no policy in C (*.c)",
                folder.display()
            ),
            "put what is to be graded there",
        );
        return Err(UsageError::new(message).into());
    }
    let graded = handed_in.iter().map(|path| object(path, asked));
    let graded: Vec<_> = graded.collect::<anyhow::Result<_>>()?;
    let passed = graded.iter().filter(|it| it["passed"] == true).count();
    Ok(json!({ "objects": graded.len(), "passed": passed, "results": graded }))
}

/// Grades one object or source. What is wrong with it is a result, not an error.
fn object(path: &Path, asked: &Asked<'_>) -> anyhow::Result<Value> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let policy = policy_in(path)?;
    let judge = |wanted| match &policy {
        Ok(policy) => judge(policy, asked, wanted),
        Err(why) => Err(why.clone()),
    };
    let mut results = vec![result("no fault", judge(None))];
    let others = asked.wanted.iter();
    results.extend(others.map(|wanted| result(&wanted.text(), judge(Some(wanted)))));
    let passed = results.iter().all(|it| it["holds"] == true);
    Ok(json!({ "object": printable(&name), "passed": passed, "properties": results }))
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
        return Ok(policy::find(&word).map_err(|error| crate::exit::in_full(&error)));
    }
    match source::compile(path, &Readable::source_alone()) {
        Ok((built, notes)) => {
            for note in notes {
                say("runslice", &note);
            }
            let found = policy::of_bytes(&word, built.object);
            Ok(found
                .map(|it| it.policy)
                .map_err(|error| crate::exit::in_full(&error)))
        }
        Err(error) if error.is::<BadSource>() => {
            Ok(Err(error.to_string().chars().take(LONGEST).collect()))
        }
        Err(error) => Err(error),
    }
}

fn result(property: &str, verdict: Result<(), String>) -> Value {
    json!({
        "property": property,
        "holds": verdict.is_ok(),
        "why": verdict.err().map(|why| printable(&why)),
    })
}

/// Whether the policy has a property under every load, or why not.
fn judge(
    policy: &PolicySpec,
    asked: &Asked<'_>,
    wanted: Option<&WantedValue>,
) -> Result<(), String> {
    let words = |error: anyhow::Error| crate::exit::in_full(&error);
    for load in asked.loads {
        let own = spec(policy.clone(), load);
        let mut properties = match wanted {
            Some(WantedValue::Like(name)) => {
                like(name, load, &Course::of(&own).map_err(words)?).map_err(words)??;
                continue;
            }
            Some(WantedValue::Property(property)) => vec![*property],
            None => Vec::new(),
        };
        properties.extend(asked.right.map(Property::Right));
        if let Some(finding) = violation::accused(&COMPUTER, &own, &properties).map_err(words)? {
            return Err(why(&finding, load));
        }
    }
    Ok(())
}

fn why(finding: &Finding, load: &LabLoad) -> String {
    let victim = finding.victim.as_ref();
    let victim = victim.map(|it| format!(", {} waits for {}", it.name, it.waited));
    format!(
        "{}{} (seed {})",
        Signature::of(finding).text(),
        victim.unwrap_or_default(),
        load.seed
    )
}

/// Whether every task ends when it does under the policy `name`.
fn like(name: &str, load: &LabLoad, own: &Course) -> anyhow::Result<Result<(), String>> {
    let wanted = Course::of(&spec(policy::find(name)?, load))?;
    let pairs = own.tasks.iter().zip(&wanted.tasks);
    let other = pairs.into_iter().find(|(own, it)| own.ended != it.ended);
    let at =
        |time: Option<model::SimTime>| time.map_or("never".to_owned(), |it| format!("at {it} s"));
    Ok(match other {
        None if own.tasks.len() == wanted.tasks.len() => Ok(()),
        None => Err(format!(
            "other tasks than under {name} (seed {})",
            load.seed
        )),
        Some((own, it)) => Err(format!(
            "{} ends {}, under {name} {} (seed {})",
            own.name,
            at(own.ended),
            at(it.ended),
            load.seed
        )),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wanted_property_is_one_of_a_run_or_another_policy() {
        assert_eq!(
            WantedValue::parse("like sjf"),
            Ok(WantedValue::Like("sjf".to_owned()))
        );
        assert_eq!(
            WantedValue::parse("weights"),
            Ok(WantedValue::Property(Property::Weights))
        );
        assert!(
            WantedValue::parse("like nothing")
                .unwrap_err()
                .contains("nothing")
        );
        assert!(
            WantedValue::parse("quick")
                .unwrap_err()
                .contains("like POLICY")
        );
    }
}

//! Which commit the gate refuses: between a good and a bad one of a git repository.
//!
//! Each commit is built in a copy of its own, so that the user's working tree stays as it is.

use std::collections::HashMap;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::Context as _;
use ask::evaluate::gate::{Gated, Passage, VersionGate};
use ask::policy::{self, FoundPolicy};
use ask::shrink::Case;
use ask::violation;
use explain::why::Fault;
use folder::OwnFolder;
use model::{Advised, PolicySpec};
use show::Format;
use show::gate::{self, Bisected};

use super::Gate;
use crate::bundle::Bundle;
use crate::computer::COMPUTER;
use crate::exit::{Status, UnsupportedError, UsageError};
use crate::say::say;
use crate::{input, look, output};

/// More commits are a mistake in one of the two.
const COMMITS_MAX: usize = 100_000;

/// Looks for the commit.
///
/// # Errors
/// When git refuses something, an end cannot be built, or the bad one is not refused.
pub fn run(request: &Gate, ends: &[String], form: Format) -> anyhow::Result<Status> {
    let [good, bad] = ends else {
        return Err(UsageError::new("--bisect takes two commits").into());
    };
    let mut search = Search::new(request, [good, bad])?;
    let bisected = search.bisect()?;
    let mut to = output::open(request.output.as_deref())?;
    match form {
        Format::Json => writeln!(to, "{:#}", gate::bisected_document(&bisected))?,
        _ => gate::bisected_text(&bisected, look::width(), &mut to)?,
    }
    to.flush()?;
    let is_found = bisected.suspects.len() == 1;
    Ok(if is_found {
        Status::Done
    } else {
        Status::Inconclusive
    })
}

struct Search<'a> {
    request: &'a Gate,
    top: String,
    good: String,
    /// From the one behind the good commit to the bad one.
    commits: Vec<String>,
    copies: OwnFolder,
    /// Whether objects of these bytes are refused.
    known: HashMap<Vec<u8>, bool>,
    /// What the last build that failed has said.
    said: String,
    bisected: Bisected,
}

/// How a commit is judged.
enum Judge {
    /// By the gate: with what it refuses of the bad commit.
    Gate(Box<(VersionGate, Gated)>),
    /// By one run: the class that it shows under the bad commit.
    Run(Box<(Case, Fault)>),
}

/// The class of fault that the run of `case` shows under another policy.
fn shown(case: &Case, policy: &PolicySpec) -> anyhow::Result<Option<Fault>> {
    let case = Case {
        policy: policy.clone(),
        ..case.clone()
    };
    let found = violation::find(&COMPUTER, &case.spec(&COMPUTER)?, &[])?;
    Ok(found.map(|finding| finding.fault))
}

/// Runs git, and gives what it prints.
fn git(folder: Option<&str>, words: &[&str]) -> anyhow::Result<String> {
    let mut command = Command::new("git");
    if let Some(folder) = folder {
        command.args(["-C", folder]);
    }
    let output = command.args(words).stdin(Stdio::null()).output();
    let output = output.map_err(|error| {
        UnsupportedError::new(Advised::new(
            format!("cannot run git: {error}"),
            "install it; on Debian: apt install git",
        ))
    })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout)
            .trim_end()
            .to_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let message = format!("git {}: {}", words.join(" "), said.trim_end());
    Err(UsageError::new(Advised::new(message, "name commits of this repository")).into())
}

fn commit_of(top: &str, name: &str) -> anyhow::Result<String> {
    let name = format!("{name}^{{commit}}");
    git(
        Some(top),
        &[
            "rev-parse",
            "--verify",
            "--quiet",
            "--end-of-options",
            &name,
        ],
    )
    .with_context(|| format!("`{name}` is no commit of {top}"))
}

impl<'a> Search<'a> {
    fn new(request: &'a Gate, [good, bad]: [&str; 2]) -> anyhow::Result<Self> {
        let top = git(None, &["rev-parse", "--show-toplevel"])?;
        let (good, bad) = (commit_of(&top, good)?, commit_of(&top, bad)?);
        let range = format!("{good}..{bad}");
        let listed = git(
            Some(&top),
            &["rev-list", "--reverse", "--first-parent", &range],
        )?;
        let commits: Vec<String> = listed.lines().map(str::to_owned).collect();
        let message = match commits.len() {
            0 => "the bad commit does not come after the good one",
            1..=COMMITS_MAX => "",
            _ => "there are too many commits between the two",
        };
        if !message.is_empty() {
            let advice = "give the older one, which is good, first";
            return Err(UsageError::new(Advised::new(message, advice)).into());
        }
        Ok(Self {
            request,
            top,
            good,
            commits,
            copies: OwnFolder::new().context("no folder for the commits")?,
            known: HashMap::new(),
            said: String::new(),
            bisected: Bisected::default(),
        })
    }

    fn bisect(&mut self) -> anyhow::Result<Bisected> {
        let good = self.good.clone();
        let Some(old) = self.built(&good)? else {
            return Err(self.unbuilt(&good));
        };
        let last = self.commits.len() - 1;
        let bad = self.commits[last].clone();
        let Some(new) = self.built(&bad)? else {
            return Err(self.unbuilt(&bad));
        };
        let judge = match &self.request.by {
            Some(file) => self.by_run(file, &old.policy, &new.policy)?,
            None => self.by_gate(&old, &new, [&good, &bad])?,
        };
        self.bisected.runs += 1;
        self.known.insert(bytes_of(&old.policy), false);
        self.known.insert(bytes_of(&new.policy), true);
        self.narrow(&judge)?;
        Ok(std::mem::take(&mut self.bisected))
    }

    /// Asks the gate about the bad commit, which it must refuse.
    fn by_gate(
        &mut self,
        old: &FoundPolicy,
        new: &FoundPolicy,
        [good, bad]: [&str; 2],
    ) -> anyhow::Result<Judge> {
        let question = self.request.question(new.clone(), old.clone());
        let gated = question.ask(&COMPUTER).map_err(ask::Error::into_cause)?;
        let Some(first) = gated.breaches.first() else {
            let message = Advised::new(
                format!("the gate does not refuse {bad} against {good}"),
                "more --trials or another --seed may find what is worse",
            );
            return Err(UsageError::new(message).into());
        };
        self.bisected.limit = first.limit.word().to_owned();
        self.bisected.words.clone_from(&first.words);
        Ok(Judge::Gate(Box::new((question, gated))))
    }

    /// Makes the run in `file` under both ends, of which the bad one alone must show a fault.
    fn by_run(&mut self, file: &Path, old: &PolicySpec, new: &PolicySpec) -> anyhow::Result<Judge> {
        let named = || file.display().to_string();
        let bytes = input::bytes(&COMPUTER, file, input::OBJECT)?;
        let bundle = Bundle::read(&COMPUTER, &bytes).with_context(named)?;
        let case = Case::of_bundle(bundle).with_context(named)?;
        let wrong = |what: &str| {
            let message = format!("the run of {} shows {what}", file.display());
            let advice =
                "give a run of `hunt` or `explain --shrink` that the bad commit alone fails";
            anyhow::Error::from(UsageError::new(Advised::new(message, advice)))
        };
        let Some(fault) = shown(&case, new)? else {
            return Err(wrong("no fault under the bad commit"));
        };
        if shown(&case, old)? == Some(fault) {
            return Err(wrong(&format!(
                "`{}` under the good commit, too",
                fault.word()
            )));
        }
        fault.word().clone_into(&mut self.bisected.limit);
        fault.sentence().clone_into(&mut self.bisected.words);
        Ok(Judge::Run(Box::new((case, fault))))
    }

    /// Halves the commits that may be the first bad one until one is left, or only such whose build
    /// fails lie between.
    fn narrow(&mut self, judge: &Judge) -> anyhow::Result<()> {
        // The commits before `from` are good; that at `to` is bad.
        let (mut from, mut to) = (0, self.commits.len() - 1);
        let mut unbuilt: Vec<usize> = Vec::new();
        while let Some(at) = next(from, to, &unbuilt) {
            COMPUTER.check()?;
            let commit = self.commits[at].clone();
            let Some(found) = self.built(&commit)? else {
                say(
                    "gate",
                    &format!("{}: the build fails, passed over", short(&commit)),
                );
                unbuilt.push(at);
                continue;
            };
            if self.is_bad(&found, judge)? {
                to = at;
            } else {
                from = at + 1;
            }
        }
        for at in from..=to {
            let format = "--format=%h %s";
            let line = git(
                Some(&self.top),
                &["show", "--no-patch", format, &self.commits[at]],
            )?;
            self.bisected.suspects.push(line);
        }
        self.bisected.passed_over = unbuilt.len();
        Ok(())
    }

    /// Whether it is as the bad commit is. Equal objects are asked about once.
    fn is_bad(&mut self, found: &FoundPolicy, judge: &Judge) -> anyhow::Result<bool> {
        let bytes = bytes_of(&found.policy);
        if let Some(known) = self.known.get(&bytes) {
            return Ok(*known);
        }
        self.bisected.runs += 1;
        let is_bad = match judge {
            Judge::Gate(asked) => self.is_refused(found, &asked.0, &asked.1)?,
            Judge::Run(wanted) => shown(&wanted.0, &found.policy)? == Some(wanted.1),
        };
        self.known.insert(bytes, is_bad);
        Ok(is_bad)
    }

    /// Whether the gate refuses it. What broke before is asked for first; only what no single run
    /// tells takes the whole gate.
    fn is_refused(
        &self,
        found: &FoundPolicy,
        question: &VersionGate,
        gated: &Gated,
    ) -> anyhow::Result<bool> {
        let mut can_tell = false;
        let mut is_bad = false;
        for breach in &gated.breaches {
            let repeats = question.repeats(&COMPUTER, breach, &found.policy)?;
            can_tell |= repeats.is_some();
            is_bad |= repeats == Some(true);
        }
        if can_tell {
            return Ok(is_bad);
        }
        let whole = self.request.question(found.clone(), question.old.clone());
        let gated = whole.ask(&COMPUTER).map_err(ask::Error::into_cause)?;
        Ok(gated.passage == Passage::Refused)
    }

    /// The policy of a commit; `None` if its build fails.
    fn built(&mut self, commit: &str) -> anyhow::Result<Option<FoundPolicy>> {
        let copy = self.copies.path().join(commit);
        let shown = copy.display().to_string();
        if !copy.exists() {
            git(
                None,
                &[
                    "clone",
                    "--quiet",
                    "--shared",
                    "--no-checkout",
                    &self.top,
                    &shown,
                ],
            )?;
            git(Some(&shown), &["checkout", "--quiet", "--detach", commit])?;
        }
        self.bisected.built += 1;
        if !self.builds(&copy)? {
            return Ok(None);
        }
        let path = copy.join(&self.request.new).display().to_string();
        match policy::open(&COMPUTER, &path) {
            Ok(found) => Ok(Some(found)),
            Err(error) => {
                say(
                    "gate",
                    &format!("{}: {}", short(commit), crate::exit::in_full(&error)),
                );
                Ok(None)
            }
        }
    }

    /// Runs the build command in `copy`, and keeps what it said last if it fails.
    fn builds(&mut self, copy: &Path) -> anyhow::Result<bool> {
        let Some((program, words)) = self.request.build.split_first() else {
            return Ok(true);
        };
        let mut command = Command::new(program);
        command.args(words).current_dir(copy).stdin(Stdio::null());
        let output = command.output().map_err(|error| {
            let message = format!("cannot run {program}: {error}");
            UsageError::new(Advised::new(message, "name the build command behind `--`"))
        })?;
        if !output.status.success() {
            self.said = last_lines(&[output.stdout, output.stderr].concat());
        }
        Ok(output.status.success())
    }

    fn unbuilt(&self, commit: &str) -> anyhow::Error {
        let mut message = format!("{commit}: the build fails, or gives no policy");
        if !self.said.is_empty() {
            message += &format!(". It said:\n{}", self.said);
        }
        UsageError::new(Advised::new(message, "give commits that can be built")).into()
    }
}

/// The last lines of what a build printed, each cut at 200 characters.
fn last_lines(printed: &[u8]) -> String {
    const LINES: usize = 8;
    let text = String::from_utf8_lossy(printed);
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    let last = &lines[lines.len().saturating_sub(LINES)..];
    let shown = last.iter().map(|line| {
        let cut: String = line.chars().take(200).collect();
        format!("  {}", model::plain::shown(&cut))
    });
    shown.collect::<Vec<_>>().join("\n")
}

/// The commit to try next: in the middle of those that may be the first bad one and can be built.
fn next(from: usize, to: usize, unbuilt: &[usize]) -> Option<usize> {
    let middle = from + (to - from) / 2;
    let open = (from..to).filter(|at| !unbuilt.contains(at));
    open.min_by_key(|at| (at.abs_diff(middle), *at))
}

fn bytes_of(policy: &PolicySpec) -> Vec<u8> {
    let set = format!("{:?}", policy.set);
    [&policy.object[..], set.as_bytes()].concat()
}

fn short(commit: &str) -> &str {
    commit.get(..12).unwrap_or(commit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_commit_that_can_be_built_is_next() {
        assert_eq!(next(0, 8, &[]), Some(4));
        assert_eq!(next(0, 8, &[4]), Some(3));
        assert_eq!(next(0, 8, &[4, 3]), Some(5));
        assert_eq!(next(5, 5, &[]), None);
        assert_eq!(next(5, 7, &[5, 6]), None);
    }
}

//! Whether a verdict would notice: each statement is judged again with what should change its
//! verdict, and with what should not.
//!
//! | mutant | is | the verdict should |
//! | --- | --- | --- |
//! | `null` | other seeds | stay |
//! | `half` | half of the time, where the workload says how long it runs | stay |
//! | `first` | the first second alone, where the workload says how long it runs | stay |
//! | `near` | a knob that makes the statement wrong: mutants.toml | turn |
//! | `gross` | another scheduler | turn |
//! | `reversed` | the results of the arms in reverse order | turn, where arms are compared |
//!
//! A statement that does not hold has nothing to turn: for it the last three are left out. A knob
//! that changes no number of any test is no mutant: "no effect".

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

use ask::policy;
use model::file::{self, Source};
use model::{Nanos, seeds};
use runslice::door::{COMPUTER, Reproduce, Store};
use serde::Deserialize;

use crate::experiments::cells::{CellId, ExperimentResults};
use crate::experiments::claim::{ClaimVerdict, Rules};
use crate::experiments::experiment::{self, Experiment, PointWork, Statement};
use crate::experiments::files::Files;
use crate::experiments::judge_all;
use crate::experiments::test::AskedQuestion;
use crate::machines::{ProgramFiles, RerunOptions, simulate};

/// What mutants.toml says of a statement.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wrong {
    /// Arms, and the policies that make it wrong by little.
    #[serde(default)]
    near: BTreeMap<String, String>,
    /// What these do.
    #[serde(default)]
    why: String,
    /// Arms, and other schedulers.
    #[serde(default)]
    gross: BTreeMap<String, String>,
}

type AllWrong = BTreeMap<String, Wrong>;

/// The seed of the first run under `null`.
const OTHER_SEED: u64 = 1001;

/// The scheduler of `gross` unless mutants.toml names one.
const OTHER: &str = "fifo";

/// The first line of the results.
const HEADER: &str = "statement,test,mutant,verdict,value,outcome";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mutant {
    Null,
    Half,
    First,
    Near,
    Gross,
    Reversed,
}

impl Mutant {
    const ALL: [Self; 6] = [
        Self::Null,
        Self::Half,
        Self::First,
        Self::Near,
        Self::Gross,
        Self::Reversed,
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Half => "half",
            Self::First => "first",
            Self::Near => "near",
            Self::Gross => "gross",
            Self::Reversed => "reversed",
        }
    }

    const fn should_turn(self) -> bool {
        matches!(self, Self::Near | Self::Gross | Self::Reversed)
    }

    /// What it says that the verdict was `before` and is `after`.
    fn outcome(self, before: ClaimVerdict, after: ClaimVerdict) -> &'static str {
        match (self, before == after) {
            (Self::Null, false) => "false alarm",
            (Self::Half | Self::First, false) => "depends on the length",
            (Self::Null | Self::Half | Self::First, true) => "stays",
            _ if after.holds() => "survived",
            _ => "killed",
        }
    }
}

/// Judges the experiments of these names and all mutants of their statements, and writes what came
/// of it as CSV.
///
/// # Errors
/// When a file is wrong, a run cannot be made, or `to` does not take it.
pub fn run(
    request: &Reproduce,
    (files, names): (&Files, &[String]),
    store: &Store,
    to: &mut dyn Write,
) -> anyhow::Result<()> {
    let trial = Trial {
        files,
        wrong: wrong(files)?,
        how: RerunOptions {
            quick: request.quick,
            store,
            jobs: request.jobs,
        },
    };
    writeln!(to, "{HEADER}")?;
    for name in names {
        let count = trial.read(name)?.statements.len();
        for statement in 0..count {
            trial.statement(name, statement, to)?;
        }
    }
    Ok(())
}

/// What mutants.toml says; nothing where the folder has no such file.
fn wrong(files: &Files) -> anyhow::Result<AllWrong> {
    let Some(text) = files.get("mutants.toml") else {
        return Ok(AllWrong::new());
    };
    let name = files.shown("mutants.toml");
    Ok(file::read(&Source { file: &name, text })?)
}

struct Trial<'a> {
    files: &'a Files,
    wrong: AllWrong,
    how: RerunOptions<'a>,
}

/// A verdict, and those of the tests with the first number that each rests on.
struct TrialVerdict {
    verdict: ClaimVerdict,
    tests: Vec<(String, ClaimVerdict, Option<f64>)>,
}

impl Trial<'_> {
    fn read(&self, name: &str) -> anyhow::Result<Experiment> {
        Ok(experiment::read(self.files, name, &ProgramFiles)?)
    }

    fn statement(&self, name: &str, index: usize, to: &mut dyn Write) -> anyhow::Result<()> {
        let of_one = || -> anyhow::Result<Experiment> {
            let mut experiment = self.read(name)?;
            let statement = experiment.statements.remove(index);
            keep_what_is_asked(&mut experiment, &statement);
            experiment.statements = vec![statement];
            Ok(experiment)
        };
        let whole = of_one()?;
        let id = whole.statements[0].id.clone();
        let before = self.judge(&whole, false)?;
        write((&id, ""), "whole", &before, "", to)?;
        if matches!(
            before.verdict,
            ClaimVerdict::CannotFail | ClaimVerdict::NotTestable
        ) {
            return Ok(());
        }
        for mutant in Mutant::ALL {
            if mutant.should_turn() && !before.verdict.holds() {
                continue;
            }
            let mut experiment = of_one()?;
            if !self.change(&mut experiment, mutant)? {
                writeln!(to, "{id},,{},,,not tried", mutant.name())?;
                continue;
            }
            let after = self.judge(&experiment, mutant == Mutant::Reversed)?;
            let outcome = if mutant == Mutant::Near && before.tests == after.tests {
                "no effect"
            } else {
                mutant.outcome(before.verdict, after.verdict)
            };
            let why = match mutant {
                Mutant::Near => self.wrong.get(&id).map_or("", |it| it.why.as_str()),
                _ => "",
            };
            write((&id, why), mutant.name(), &after, outcome, to)?;
            to.flush()?;
        }
        Ok(())
    }

    /// Makes the mutant of an experiment with one statement. Says whether there is one.
    fn change(&self, experiment: &mut Experiment, mutant: Mutant) -> anyhow::Result<bool> {
        let of_file = self.wrong.get(&experiment.statements[0].id);
        let of_file = of_file.cloned().unwrap_or_default();
        Ok(match mutant {
            Mutant::Null => {
                for set in &mut experiment.sets {
                    let count = set.seeds.len() as u64;
                    set.seeds = (0..count)
                        .map(|run| seeds::of_run(OTHER_SEED, run))
                        .collect();
                }
                true
            }
            Mutant::Half => shorten(experiment, |whole| Nanos::new(whole.get() / 2)),
            Mutant::First => shorten(experiment, |whole| whole.min(Nanos::from_secs(1))),
            Mutant::Near => set_policies(experiment, &of_file.near)?,
            Mutant::Gross if of_file.gross.is_empty() => {
                set_policies(experiment, &all_others(experiment))?
            }
            Mutant::Gross => set_policies(experiment, &of_file.gross)?,
            Mutant::Reversed => {
                let questions = experiment.statements[0].tests.iter();
                let mut questions = questions.flat_map(|test| &test.questions);
                questions.any(|(_, question)| {
                    let arms: BTreeSet<usize> = asked(question).iter().map(|id| id.arm).collect();
                    arms.len() > 1
                })
            }
        })
    }

    fn judge(&self, experiment: &Experiment, reversed: bool) -> anyhow::Result<TrialVerdict> {
        let experiments = std::slice::from_ref(experiment);
        let mut results = [ExperimentResults::default()];
        simulate::run(experiments, self.how, &mut results)?;
        if reversed {
            reverse(experiment, &mut results[0]);
        }
        let rules = Rules {
            quick: self.how.quick,
            ..Rules::default()
        };
        let judged = judge_all(experiments, &results, "sim", &rules);
        let judged = judged.into_iter().next().expect("one statement");
        let number =
            |parts: &[crate::experiments::claim::AnswerPart]| parts.first().map(|part| part.value);
        let tests = judged.parts.into_iter();
        Ok(TrialVerdict {
            verdict: judged.verdict,
            tests: tests
                .map(|(name, it)| (name, it.verdict, number(&it.parts)))
                .collect(),
        })
    }
}

/// A line for the statement, with what the mutant does, and one for each of its tests.
fn write(
    (id, why): (&str, &str),
    mutant: &str,
    said: &TrialVerdict,
    outcome: &str,
    to: &mut dyn Write,
) -> anyhow::Result<()> {
    let verdict = said.verdict.words();
    writeln!(to, "{id},{},{mutant},{verdict},,{outcome}", quoted(why))?;
    for (name, verdict, value) in &said.tests {
        let name = quoted(name.strip_prefix(id).unwrap_or(name).trim());
        let value = value.map_or_else(String::new, |value| format!("{value:.4}"));
        let verdict = verdict.words();
        writeln!(to, "{id},{name},{mutant},{verdict},{value},")?;
    }
    Ok(())
}

/// A field of CSV.
fn quoted(text: &str) -> String {
    if text.is_empty() {
        String::new()
    } else {
        format!("\"{}\"", text.replace('"', "\"\""))
    }
}

/// The cells that a question asks about.
fn asked(question: &AskedQuestion) -> BTreeSet<CellId> {
    let cells: RefCell<BTreeSet<CellId>> = RefCell::default();
    // A question that lacks something has been found wrong where it was read.
    let _ = question.fill(
        &|place| {
            cells.borrow_mut().insert(place.id);
            Ok::<_, String>(*place)
        },
        &|traced| {
            cells.borrow_mut().insert(traced.id);
            Ok::<_, String>(traced.clone())
        },
    );
    cells.into_inner()
}

/// Leaves the runs of the sets and arms that the statement asks about.
fn keep_what_is_asked(experiment: &mut Experiment, statement: &Statement) {
    let questions = statement.tests.iter().flat_map(|test| &test.questions);
    let cells: BTreeSet<CellId> = questions
        .flat_map(|(_, question)| asked(question))
        .collect();
    for (index, set) in experiment.sets.iter_mut().enumerate() {
        let is_asked = |arm: &usize| cells.iter().any(|id| id.set == index && id.arm == *arm);
        set.arms.retain(is_asked);
    }
}

/// Lets runs end at a part of the time that their workload says; whether any says one.
fn shorten(experiment: &mut Experiment, to: impl Fn(Nanos) -> Nanos) -> bool {
    let mut any = false;
    for set in experiment
        .sets
        .iter_mut()
        .filter(|set| !set.arms.is_empty())
    {
        let ends = set.points.iter().filter_map(|point| match &point.work {
            PointWork::Load(load) => load.stop.after,
            PointWork::Command(_) => None,
        });
        let end = set.duration.or(ends.min());
        any |= end.is_some();
        set.duration = end.map(&to);
    }
    any
}

/// Every arm that is asked about under another scheduler, but the baseline if there are others.
fn all_others(experiment: &Experiment) -> BTreeMap<String, String> {
    let asked: BTreeSet<usize> = experiment
        .sets
        .iter()
        .flat_map(|set| set.arms.clone())
        .collect();
    let names = asked.iter().map(|arm| experiment.arms[*arm].name.clone());
    let names: Vec<String> = names.collect();
    let is_base = |name: &String| Some(name) == experiment.baseline.as_ref();
    let others: Vec<&String> = names.iter().filter(|name| !is_base(name)).collect();
    let chosen = if others.is_empty() {
        names.iter().collect()
    } else {
        others
    };
    let chosen = chosen.into_iter();
    chosen
        .map(|name| (name.clone(), OTHER.to_owned()))
        .collect()
}

/// Gives arms these policies; whether there are any.
fn set_policies(
    experiment: &mut Experiment,
    policies: &BTreeMap<String, String>,
) -> anyhow::Result<bool> {
    for (arm, words) in policies {
        let Some(at) = experiment.arm(arm) else {
            anyhow::bail!("mutants.toml: {} has no arm `{arm}`", experiment.name);
        };
        experiment.arms[at].policy = policy::find(&COMPUTER, words)?;
    }
    Ok(!policies.is_empty())
}

/// Exchanges the results of each set's first arm with those of its last, and so on.
fn reverse(experiment: &Experiment, results: &mut ExperimentResults) {
    let cells = std::mem::take(&mut results.cells);
    for (id, samples) in cells {
        let arms = &experiment.sets[id.set].arms;
        let at = arms.iter().position(|arm| *arm == id.arm);
        let arm = at.map_or(id.arm, |at| arms[arms.len() - 1 - at]);
        results.cells.insert(CellId { arm, ..id }, samples);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mutant_of_the_file_has_its_statement_and_its_arms() {
        let files = Files::embedded();
        let mut wrong = wrong(&files).unwrap();
        for name in files.experiments() {
            let experiment = experiment::read(&files, name, &ProgramFiles).unwrap();
            for statement in &experiment.statements {
                let of_file = wrong.remove(&statement.id).unwrap_or_default();
                for (arm, policy) in of_file.near.iter().chain(&of_file.gross) {
                    assert!(experiment.arm(arm).is_some(), "{}: {arm}", statement.id);
                    policy::find(&COMPUTER, policy).unwrap();
                }
                let says_why = of_file.near.is_empty() || !of_file.why.is_empty();
                assert!(says_why, "{} has a mutant without a reason", statement.id);
            }
        }
        assert!(wrong.is_empty(), "no statement: {:?}", wrong.keys());
    }

    #[test]
    fn a_mutant_that_should_turn_a_verdict_is_killed_by_any_that_does_not_hold() {
        use ClaimVerdict::{NotReproduced, Reproduced, SameDirection, Undecided};
        for (mutant, after, want) in [
            (Mutant::Near, Reproduced, "survived"),
            (Mutant::Gross, SameDirection, "survived"),
            (Mutant::Near, Undecided, "killed"),
            (Mutant::Reversed, NotReproduced, "killed"),
            (Mutant::Null, Reproduced, "stays"),
            (Mutant::Null, Undecided, "false alarm"),
            (Mutant::First, NotReproduced, "depends on the length"),
        ] {
            assert_eq!(mutant.outcome(Reproduced, after), want, "{mutant:?}");
        }
    }

    /// What mutants.csv, which a rerun wrote, found out about a statement that holds stands beside
    /// its verdict.
    #[test]
    fn a_statement_tells_what_its_mutants_found() {
        let files = Files::embedded();
        let found = files.get("mutants.csv").expect("what a rerun wrote");
        let mut told = 0;
        for name in files.experiments() {
            let experiment = experiment::read(&files, name, &ProgramFiles).unwrap();
            for statement in &experiment.statements {
                let id = &statement.id;
                let of_it = |line: &&str| line.starts_with(&format!("{id},"));
                let lines: Vec<&str> = found.lines().filter(of_it).collect();
                let ends = |end: &str| lines.iter().any(|line| line.ends_with(end));
                let whole = format!("{id},,whole,");
                let whole = lines
                    .iter()
                    .find_map(|line| line.strip_prefix(whole.as_str()));
                if !matches!(whole, Some("reproduced,," | "same direction,,")) {
                    continue;
                }
                let note = statement.note.as_deref().unwrap_or_default();
                let length = ends(",depends on the length");
                assert_eq!(length, note.contains("first second alone"), "{id}");
                assert_eq!(ends(",survived"), statement.cannot_tell.is_some(), "{id}");
                told += usize::from(length);
            }
        }
        assert!(told > 0, "no statement depends on the length");
    }

    /// Runs that nothing asks about are not made.
    #[test]
    fn only_the_arms_that_a_statement_asks_about_are_run() {
        let files = Files::embedded();
        let mut experiment = experiment::read(&files, "000-rules", &ProgramFiles).unwrap();
        let at = experiment.statements.iter().position(|it| it.id == "A12");
        let statement = experiment.statements.remove(at.unwrap());
        keep_what_is_asked(&mut experiment, &statement);
        for set in &experiment.sets {
            let names: Vec<&str> = (set.arms.iter())
                .map(|arm| experiment.arms[*arm].name.as_str())
                .collect();
            let want: &[&str] = if set.name == "hogs" {
                &["off", "on", "compute"]
            } else {
                &[]
            };
            assert_eq!(names, want, "{}", set.name);
        }
    }
}

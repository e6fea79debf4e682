//! Published experiments, rerun: files in, runs asked for, verdicts out.
//!
//! experiments/README.md describes the files. [`experiment::read`] reads one, a [`Machine`] makes
//! the runs that it asks for ([`Experiment::runs`]), and [`judge_all`] says what they say of its
//! statements: [`claim`] answers the questions that `ask` makes of the tests. A [`Catalog`] has the
//! policies and workloads that experiments name. Nothing here runs, prints or keeps anything.

#![forbid(unsafe_code)]

mod ask;
mod catalog;
pub mod cells;
pub mod claim;
mod draft;
mod error;
pub mod expected;
pub mod experiment;
pub mod files;
#[cfg(test)]
mod tests;

pub use catalog::Catalog;
pub use draft::{Figure, OneOrMore, StatementText, Statements};
pub use error::{Cause, Error, Result};

use cells::Results;
use claim::{Finding, Rules, Verdict, judge, together};
use experiment::{Experiment, Statement};

/// What makes the runs of experiments: the simulated machine, guests, this computer.
pub trait Machine {
    /// Its kind, as tests call it in `machines`: one of [`MACHINES`].
    fn kind(&self) -> &'static str;

    /// Makes the runs that some experiments ask for ([`Experiment::runs`]) and puts what they gave
    /// into `results`, which has one entry an experiment. Says whether anything could be run.
    ///
    /// # Errors
    /// When a run cannot be made or kept. What only this computer lacks is a
    /// [failure](cells::Sample::failure) in the cells of the runs that need it.
    fn run(
        &mut self,
        experiments: &[Experiment],
        quick: bool,
        results: &mut [Results],
    ) -> Result<bool, Cause>;
}

pub use ask::MACHINES;

/// A statement with what the runs say of it.
#[derive(Debug)]
pub struct Judged<'a> {
    /// Index of its experiment among those that were judged.
    pub experiment: usize,
    /// What is said.
    pub statement: &'a Statement,
    /// Its parts, with their names.
    pub parts: Vec<(String, Finding)>,
    /// All parts together.
    pub verdict: Verdict,
}

/// Judges every statement of some experiments, whose results come from a `machine` of that kind.
/// All tests of the call are one family.
///
/// # Errors
/// When a test is wrong, with file, line and column.
pub fn judge_all<'a>(
    experiments: &'a [Experiment],
    results: &[Results],
    machine: &str,
    rules: &Rules,
) -> Result<Vec<Judged<'a>>> {
    let mut asked = Vec::new();
    let mut counts = Vec::new();
    for (index, (experiment, results)) in experiments.iter().zip(results).enumerate() {
        for statement in &experiment.statements {
            let questions = ask::questions(experiment, statement, results, machine, rules.quick)?;
            counts.push((index, statement, questions.len()));
            asked.extend(questions);
        }
    }
    let findings = judge(&asked, rules);
    let mut parts = asked.into_iter().map(|(name, _)| name).zip(findings);
    let judged = counts.into_iter().map(|(experiment, statement, count)| {
        let parts: Vec<_> = parts.by_ref().take(count).collect();
        let verdict = together(parts.iter().map(|(_, finding)| finding.verdict));
        Judged {
            experiment,
            statement,
            parts,
            verdict,
        }
    });
    Ok(judged.collect())
}

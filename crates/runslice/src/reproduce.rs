//! Published experiments, rerun: what they are, their runs, and what these say of their statements.
//!
//! experiments/README.md describes the files. Nothing here prints: `verb::reproduce` does.

mod ask;
pub mod cells;
pub mod draft;
pub mod expected;
pub mod experiment;
pub mod files;
#[cfg(feature = "live")]
pub mod kernels;
mod place;
pub mod simulate;
#[cfg(feature = "live")]
mod slices;

use stats::claim::{Finding, Rules, Verdict, judge, together};

use cells::Results;
use experiment::{Experiment, Statement};

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
) -> anyhow::Result<Vec<Judged<'a>>> {
    let mut asked = Vec::new();
    let mut counts = Vec::new();
    for (index, (experiment, results)) in experiments.iter().zip(results).enumerate() {
        for statement in &experiment.statements {
            let questions = ask::questions(experiment, statement, results, machine)?;
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

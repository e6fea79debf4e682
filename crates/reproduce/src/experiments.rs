//! Published experiments, rerun: files in, runs asked for, verdicts out.
//!
//! experiments/README.md describes the files. [`experiment::read`] reads one, a machine makes the
//! runs that it asks for ([`Experiment::runs`]), and [`judge_all`] says what they say of its
//! statements: [`claim`] answers the questions that the tests are. A [`Catalog`] has the
//! policies and workloads that experiments name. Nothing here runs, prints or keeps anything.

mod catalog;
pub mod cells;
pub mod claim;
#[cfg(test)]
mod coverage;
mod draft;
mod error;
pub mod expected;
pub mod experiment;
pub mod files;
pub mod probe;
mod questions;
pub(crate) mod test;
#[cfg(test)]
mod tests;

pub use catalog::Catalog;
pub use draft::{Figure, PublishedDocument};
pub use error::{Cause, Error};

use cells::ExperimentResults;
use claim::{ClaimFinding, ClaimVerdict, Rules, judge, together};
use experiment::{Experiment, Statement};

/// A statement with what the runs say of it.
#[derive(Debug)]
pub struct JudgedClaim<'a> {
    /// Index of its experiment among those that were judged.
    pub experiment: usize,
    /// What is said.
    pub statement: &'a Statement,
    /// Its parts, with their names.
    pub parts: Vec<(String, ClaimFinding)>,
    /// All parts together.
    pub verdict: ClaimVerdict,
}

impl JudgedClaim<'_> {
    /// Whether a document says it and the runs could have said otherwise.
    pub const fn counts(&self) -> bool {
        !self.statement.ours && self.verdict.counts()
    }
}

/// Judges every statement of some experiments, whose results come from a machine of that `kind`.
/// Each is judged as if it were the only one: what other experiments are judged in the same call
/// changes nothing.
pub fn judge_all<'a>(
    experiments: &'a [Experiment],
    results: &[ExperimentResults],
    kind: &str,
    rules: &Rules,
) -> Vec<JudgedClaim<'a>> {
    let mut judged = Vec::new();
    for (index, (experiment, results)) in experiments.iter().zip(results).enumerate() {
        for statement in &experiment.statements {
            let asked = questions::of(experiment, statement, results, (kind, rules.quick));
            let findings = judge(&asked, rules);
            let names = asked.into_iter().map(|(name, _)| name);
            let parts: Vec<(String, ClaimFinding)> = names.zip(findings).collect();
            let verdict = together(parts.iter().map(|(_, finding)| finding.verdict));
            judged.push(JudgedClaim {
                experiment: index,
                statement,
                verdict: if verdict.holds() && statement.cannot_tell.is_some() {
                    ClaimVerdict::CannotTell
                } else {
                    verdict
                },
                parts,
            });
        }
    }
    judged
}

/// How many of these statements are expected to be refuted by chance at most, were all true.
pub fn false_refutations(judged: &[JudgedClaim<'_>], rules: &Rules) -> f64 {
    let counted = judged.iter().filter(|it| it.counts()).count();
    counted as f64 * rules.alpha
}

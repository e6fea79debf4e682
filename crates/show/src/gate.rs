//! What a gate says about a new version of a policy.

use std::io::{self, Write};

use ask::AnswerKind;
use ask::evaluate::gate::{Gated, Passage};
use serde_json::{Value, json};

use crate::evaluation::{CandidateDocument, LimitDocument};
use crate::table::write_paragraph;

/// What no simulation sees, as sentences.
const NOT_SEEN: [&str; 4] = [
    "callbacks of several CPUs that overlap, and races between them",
    "caches beyond what a moved task must fill anew, threads of one core, and frequencies",
    "loads, machines and seeds that were not drawn, and what comes later than their ends",
    "the verifiers of real kernels: `runslice check --vm` asks them",
];

/// Which versions were held against each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GateFrame {
    /// The new version, as it was named.
    pub new: String,
    /// The old one.
    pub old: String,
    /// Seed of all draws.
    pub seed: u64,
}

/// The document, with the files that have the runs.
#[must_use]
pub fn document(frame: &GateFrame, gated: &Gated, capsules: &[Option<String>]) -> Value {
    let kernels = gated.kernels.iter().map(|it| it.name());
    let limits = LimitDocument::all(&gated.breaches, capsules);
    let evaluation = gated.evaluation.as_ref();
    let evaluation = evaluation.map(|it| CandidateDocument::of(it, 0, &[]));
    json!({
        AnswerKind::Gate.key(): AnswerKind::Gate.version(),
        "version": crate::VERSION,
        "new": frame.new,
        "old": frame.old,
        "seed": frame.seed,
        "answer": gated.passage.word(),
        "kernels": kernels.collect::<Vec<_>>(),
        "limits": limits,
        "may_be_worse": gated.open,
        "left_out": gated.left_out,
        "trials": gated.trials,
        "evaluation": evaluation,
        "not_seen": NOT_SEEN,
    })
}

/// The answer for people, in at most `room` columns.
///
/// # Errors
/// When `to` does not take it.
pub fn text(
    frame: &GateFrame,
    (gated, capsules): (&Gated, &[Option<String>]),
    room: usize,
    to: &mut dyn Write,
) -> io::Result<()> {
    let (new, old) = (&frame.new, &frame.old);
    let first = match gated.passage {
        Passage::Passed => format!("passed: {new} may replace {old}."),
        Passage::Refused => format!("refused: {new} is worse than {old}."),
        Passage::NotDecided => format!(
            "not decided: nothing is shown worse under {new} than under {old}, and not \
             everything is shown not to be."
        ),
    };
    let mut lines = vec![first];
    for limit in LimitDocument::all(&gated.breaches, capsules) {
        lines.push(limit.line());
    }
    if !gated.open.is_empty() {
        let open = gated.open.join(", ");
        lines.push(format!("May be worse by more than 5 %: {open}."));
    }
    lines.extend(gated.left_out.iter().map(|it| format!("Left out: {it}.")));
    let kernels: Vec<_> = gated.kernels.iter().map(|it| it.name()).collect();
    let (kernels, trials) = (kernels.join(", "), gated.trials);
    lines.push(format!(
        "Looked at: kernels {kernels}; {trials} random trials."
    ));
    lines.push(format!("This gate cannot see {}.", NOT_SEEN.join("; ")));
    lines
        .iter()
        .try_for_each(|line| write_paragraph(line, room, to))
}

/// What a search over commits has found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bisected {
    /// The commits that may be the first bad one, as `git show --format='%h %s'` has them; one if
    /// it was found.
    pub suspects: Vec<String>,
    /// The limit that the last one breaks.
    pub limit: String,
    /// The facts.
    pub words: String,
    /// Commits that were built.
    pub built: usize,
    /// Of those, objects that were run.
    pub runs: usize,
    /// Commits whose build fails.
    pub passed_over: usize,
}

/// The document of a search over commits.
#[must_use]
pub fn bisected_document(bisected: &Bisected) -> Value {
    let is_found = bisected.suspects.len() == 1;
    json!({
        AnswerKind::Gate.key(): AnswerKind::Gate.version(),
        "version": crate::VERSION,
        "first_bad": bisected.suspects.first().filter(|_| is_found),
        "suspects": bisected.suspects,
        "limit": bisected.limit,
        "words": bisected.words,
        "built": bisected.built,
        "runs": bisected.runs,
        "passed_over": bisected.passed_over,
    })
}

/// The same for people.
///
/// # Errors
/// When `to` does not take it.
pub fn bisected_text(bisected: &Bisected, room: usize, to: &mut dyn Write) -> io::Result<()> {
    let mut lines = match bisected.suspects.as_slice() {
        [one] => vec![format!("The first bad commit: {one}")],
        many => {
            let mut lines = vec!["The first bad commit is one of:".to_owned()];
            lines.extend(many.iter().map(|it| format!("  {it}")));
            lines
        }
    };
    let Bisected { limit, words, .. } = bisected;
    lines.push(format!("It breaks `{limit}`: {words}."));
    let Bisected {
        built,
        runs,
        passed_over,
        ..
    } = bisected;
    lines.push(format!(
        "{built} commits built, {runs} objects run, {passed_over} passed over."
    ));
    lines
        .iter()
        .try_for_each(|line| write_paragraph(line, room, to))
}

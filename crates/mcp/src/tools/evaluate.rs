//! How good policies are that programs write.

use std::path::Path;

use ask::evaluate;
use ask::evaluate::spec::Spec;
use runslice::door::{Status, secret};
use schemars::JsonSchema;
use serde::Deserialize;
use show::evaluation::{CandidateDocument, EvaluationFrame, document};

use crate::answer::Answered;
use crate::arguments::{Arguments, usage};
use crate::desk::Desk;

/// What an evaluation is asked for.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct EvaluatePart {
    /// TOML file with goals, loads, machines, limits and the baseline, see
    /// `runslice://docs/evaluate.md`. The least: `[[load]]` with `load = "desk"`.
    spec: String,
    /// Policies to evaluate: built-in names, BPF objects or C sources (.bpf.c), with knobs behind a
    /// colon.
    candidates: Vec<String>,
    /// Which draws of the key. Default: 0.
    epoch: Option<u64>,
}

/// Evaluates each candidate. Nothing is kept or counted: a search that is to end with a verdict
/// takes the command line.
///
/// # Errors
/// When the file or the baseline is bad, or a candidate cannot be read.
pub fn ask(arguments: &mut Arguments, desk: &Desk<'_>) -> anyhow::Result<Answered> {
    let own: EvaluatePart = arguments.take()?;
    if own.candidates.is_empty() {
        return Err(usage("`candidates` is empty", "name one or more").into());
    }
    let epoch = own.epoch.unwrap_or(0);
    let question = evaluate::Evaluate {
        spec: Spec::read(&desk.services, Path::new(&own.spec))?,
        candidates: own.candidates,
        key: desk.owner.key.clone(),
        epoch,
        has_gate: false,
        jobs: desk.jobs(),
    };
    let evaluated = question.ask(&desk.services);
    let evaluated = evaluated.map_err(ask::Error::into_cause)?;
    let all = evaluated.candidates.iter();
    let all: Vec<_> = all
        .map(|it| CandidateDocument::of(it, epoch, &[]))
        .collect();
    let frame = EvaluationFrame {
        spec: own.spec,
        baseline: evaluated.baseline,
        key_sha256: question.key.as_deref().map(secret::sha256),
    };
    let is_refused = all.iter().any(CandidateDocument::is_refused);
    Ok(Answered {
        status: if is_refused {
            Status::Ejected
        } else {
            Status::Done
        },
        ..Answered::done(document(&frame, &all))
    })
}

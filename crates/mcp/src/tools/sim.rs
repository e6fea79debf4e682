//! Schedulers under one load, simulated.

use ask::simulate::RUNS_MAX;
use runslice::door::Status;
use schemars::JsonSchema;
use serde::Deserialize;
use show::Origin;
use show::report::json;

use super::parts::{simulate, written};
use crate::answer::Answered;
use crate::arguments::{Arguments, within};
use crate::desk::Desk;

/// What of a simulation no other tool has.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct SimPart {
    /// Policies to simulate: built-in names (see `list`), BPF objects or C sources (.bpf.c), with
    /// knobs behind a colon, such as mlfq:queues=4.
    policies: Vec<String>,
    /// Runs of each policy, which differ in their seeds. Default: one.
    runs: Option<u64>,
}

/// Makes the runs.
///
/// # Errors
/// When an argument or a file is wrong.
pub fn ask(arguments: &mut Arguments, desk: &Desk<'_>) -> anyhow::Result<Answered> {
    let own: SimPart = arguments.take()?;
    let mut question = simulate(&own.policies, arguments, desk)?;
    question.runs = within("runs", own.runs, 1..=RUNS_MAX.into())?;
    let simulated = question.ask(&desk.services);
    let results = simulated.map_err(ask::Error::into_cause)?.results;
    let origin = Origin::new(arguments.command("sim", &["policies"]));
    let document = written(|to| match question.runs {
        Some(_) => json::write_runs(&results, &origin, to),
        None => json::write(&results, &origin, to),
    })?;
    let mut outcomes = results.outcomes.iter();
    let is_faulty = outcomes.any(|it| it.ejection().is_some() || !it.summary.starved.is_empty());
    Ok(Answered {
        status: if is_faulty {
            Status::Ejected
        } else {
            Status::Done
        },
        ..Answered::done(document)
    })
}

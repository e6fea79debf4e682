//! Why a task waited or a policy was ejected.

use anyhow::Context as _;
use ask::explain::{self, ExplainOf};
use ask::right;
use runslice::door::Status;
use schemars::JsonSchema;
use serde::Deserialize;
use show::Origin;
use show::explanation::json;

use super::parts::simulate;
use crate::answer::Answered;
use crate::arguments::{Arguments, parsed, usage, within};
use crate::desk::Desk;

/// What of an explanation no other tool has.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct ExplainPart {
    /// Policy to run, as those of `sim`, or a bundle. A bundle that `hunt` wrote brings its load.
    policy: Option<String>,
    /// A file of events with decisions to explain instead, which `sim --events FILE --decisions`
    /// of the command line wrote.
    events: Option<String>,
    /// A kernel's debug dump of sched_ext to explain instead.
    dump: Option<String>,
    /// Task, or group of tasks, whose waits are explained.
    task: Option<String>,
    /// Explain so many of the longest waits, 1 to 1000. Default: 1 with `task`, else none.
    worst: Option<u64>,
    /// Right by which shares of the CPUs are judged: weight, cgroup, rank, deadline or none.
    /// Default: the one that the policy declares.
    right: Option<String>,
}

/// Makes the run or reads the file, and explains it.
///
/// # Errors
/// When an argument or a file is wrong.
pub fn ask(arguments: &mut Arguments, desk: &Desk<'_>) -> anyhow::Result<Answered> {
    let own: ExplainPart = arguments.take()?;
    let question = explain::Explain {
        of: own.subject(arguments, desk)?,
        task: own.task.clone(),
        worst: within("worst", own.worst, 1..=1000)?,
        right: parsed("right", own.right.as_deref(), right::parse)?,
    };
    let explained = question.ask(&desk.services);
    let mut explanation = explained.map_err(ask::Error::into_cause)?;
    // The command line explains no rerun of a recording.
    let again = || Origin::new(arguments.command("explain", &["policy"])).again();
    explanation.again = (!arguments.has("from")).then(again);
    let document = serde_json::from_str(&json::of(&explanation))?;
    Ok(Answered {
        status: if explanation.accuses() {
            Status::Ejected
        } else {
            Status::Done
        },
        ..Answered::done(document)
    })
}

impl ExplainPart {
    fn subject(&self, arguments: &mut Arguments, desk: &Desk<'_>) -> anyhow::Result<ExplainOf> {
        match (&self.policy, &self.events, &self.dump) {
            (Some(policy), None, None) => {
                let question = simulate(std::slice::from_ref(policy), arguments, desk)?;
                let specs = question.specs(&desk.services);
                let specs = specs.map_err(ask::Error::into_cause)?;
                let spec = specs.into_iter().next().context("one policy is one run")?;
                Ok(ExplainOf::Run(Box::new(spec), question.options))
            }
            (None, Some(events), None) => {
                arguments.finish("`events` are those of a run that was made")?;
                Ok(ExplainOf::Events(events.into()))
            }
            (None, None, Some(dump)) => {
                arguments.finish("a `dump` is of a run that was made")?;
                Ok(ExplainOf::Dump(dump.into()))
            }
            _ => {
                let what = "give one of `policy`, `events` and `dump`";
                Err(usage(what, "`policy` takes a `workload`, too").into())
            }
        }
    }
}

//! How far the simulation of a recording can be trusted.

use ask::recording::parse_window;
use ask::score::{self, Release};
use runslice::door::Status;
use schemars::JsonSchema;
use serde::Deserialize;
use show::Origin;

use super::parts::{MachinePart, written};
use crate::answer::Answered;
use crate::arguments::{Arguments, parsed, usage};
use crate::desk::Desk;

/// What of a score no other tool has.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct ScorePart {
    /// The recording: a file of events, or another program's trace. The load is made of its first
    /// half and held against the second.
    recording: String,
    /// A second recording of the same load, to hold against all of the first.
    second: Option<String>,
    /// Policy that it was recorded under. Default: as the recording says.
    recorded_under: Option<String>,
    /// Kernel that it was recorded on, such as 5.10. Default: as the recording says.
    recorded_on: Option<String>,
    /// Part of a trace of another program, such as 1s..3s.
    window: Option<String>,
    /// Seed of the random resampling. Default: 1.
    resample_seed: Option<u64>,
}

/// Simulates a part of the recording and holds it against the rest.
///
/// # Errors
/// When a recording is bad, or nothing says what it was recorded under.
pub fn ask(arguments: &mut Arguments, desk: &Desk<'_>) -> anyhow::Result<Answered> {
    let own: ScorePart = arguments.take()?;
    let machine: MachinePart = arguments.take()?;
    if own.recorded_under.is_some() && own.recorded_on.is_some() {
        let what = "`recorded_on` cannot be used with `recorded_under`";
        return Err(usage(what, "leave one out").into());
    }
    let question = score::Score {
        recording: own.recording.into(),
        second: own.second.map(Into::into),
        recorded_under: own.recorded_under,
        recorded_on: parsed("recorded_on", own.recorded_on.as_deref(), Release::parse)?,
        window: parsed("window", own.window.as_deref(), parse_window)?.unwrap_or_default(),
        machine: machine.change()?,
        resample_seed: own.resample_seed.unwrap_or(1),
        jobs: desk.jobs(),
    };
    let scored = question.ask(&desk.services);
    let scored = scored.map_err(ask::Error::into_cause)?;
    let origin = Origin::new(arguments.command("score", &["recording", "second"]));
    let document = written(|to| show::score::json(&scored, &origin, to))?;
    Ok(Answered {
        status: if scored.is_decided() {
            Status::Done
        } else {
            Status::Inconclusive
        },
        ..Answered::done(document)
    })
}

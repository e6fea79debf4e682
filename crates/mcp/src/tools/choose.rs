//! Which scheduler is best for a load.

use ask::choose::{self, BASELINE, Candidate, RUNS_MAX};
use ask::compare::parse_percent;
use ask::goal::Goal;
use ask::policy;
use ask::program::ProgramOptions;
use ask::workload_arg::parse_duration;
use runslice::door::Status;
use schemars::JsonSchema;
use serde::Deserialize;
use show::{Origin, choice};

use super::parts::{LoadPart, MachinePart, written};
use crate::answer::Answered;
use crate::arguments::{Arguments, all_parsed, parsed, usage, within};
use crate::desk::Desk;

/// What of a choice no other tool has.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct ChoosePart {
    /// Policies to choose from, as those of `sim`. Default: every built-in policy.
    #[serde(default)]
    candidates: Vec<String>,
    /// The policy that is held against all others. Default: eevdf, the scheduler of today's
    /// kernels.
    baseline: Option<String>,
    /// What is to become better, such as "p99 wait of pointer". Default: the goals of the workload.
    #[serde(default)]
    goals: Vec<String>,
    /// Runs of each candidate, 1 to 10000. Default: as many as decide.
    runs: Option<u64>,
    /// Part of a figure that the simulation does not model, in per cent.
    not_modelled: Option<f64>,
    /// Ask again at every end of what is uncertain about the hardware.
    #[serde(default)]
    hardware_spread: bool,
}

/// Simulates the candidates and ranks them.
///
/// # Errors
/// When an argument or a file is wrong, or the baseline fails.
pub fn ask(arguments: &mut Arguments, desk: &Desk<'_>) -> anyhow::Result<Answered> {
    let own: ChoosePart = arguments.take()?;
    let load: LoadPart = arguments.take()?;
    let machine: MachinePart = arguments.take()?;
    let Some(source) = load.source()? else {
        let advice = "give `workload`, such as desk, or `from`";
        return Err(usage("there is no load", advice).into());
    };
    let not_modelled = own.not_modelled.map(|it| it.to_string());
    let question = choose::Choose {
        candidates: own.field(desk)?,
        goals: all_parsed("goals", &own.goals, str::parse::<Goal>)?,
        load: source,
        files: Vec::new(),
        scale: load.scale(),
        runs: within("runs", own.runs, 1..=RUNS_MAX.into())?,
        not_modelled: parsed("not_modelled", not_modelled.as_deref(), parse_percent)?,
        machine: machine.change()?,
        seed: load.seed,
        duration: parsed("duration", load.duration.as_deref(), parse_duration)?,
        start_jitter: None,
        spread: own.hardware_spread,
        jobs: desk.jobs(),
    };
    let chosen = question.ask(&desk.services);
    let chosen = chosen.map_err(ask::Error::into_cause)?;
    let origin = Origin::new(arguments.command("choose", &["candidates"]));
    let document = written(|to| choice::json(&chosen, &origin, to))?;
    Ok(Answered {
        status: if chosen.is_decided() {
            Status::Done
        } else {
            Status::Inconclusive
        },
        ..Answered::done(document)
    })
}

impl ChoosePart {
    /// The candidates, the baseline first.
    fn field(&self, desk: &Desk<'_>) -> anyhow::Result<Vec<Candidate>> {
        let named = |word: &str| {
            let found = policy::open(&desk.services, word)?;
            anyhow::Ok(Candidate::named(word, found))
        };
        let baseline = self.baseline.as_deref().unwrap_or(BASELINE);
        let all = self.candidates.iter().map(|it| named(it));
        choose::candidates(
            &desk.services,
            (baseline, named(baseline)?),
            (all.collect::<anyhow::Result<_>>()?, Vec::new()),
            (None, &ProgramOptions::default()),
        )
    }
}

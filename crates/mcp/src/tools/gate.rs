//! Whether a new version of a policy may replace an old one.

use ask::evaluate::Breach;
use ask::evaluate::gate::{Passage, VersionGate};
use ask::key::fingerprint;
use ask::policy;
use runslice::door::Status;
use schemars::JsonSchema;
use serde::Deserialize;
use show::gate::{GateFrame, document};

use crate::answer::Answered;
use crate::arguments::{Arguments, within};
use crate::desk::Desk;

/// Trials where the call does not say how many: the time of a call is short.
const TRIALS: u64 = 32;
/// Most trials of a call.
const TRIALS_MAX: u64 = 1_000_000;

/// What a gate is asked for.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct GatePart {
    /// New version: a built-in name, a BPF object or a C source (.bpf.c), with knobs behind a
    /// colon.
    new: String,
    /// Old version, which the new one is to replace.
    against: String,
    /// Workloads to run: built-in names or TOML files. Default: all that are built in, which takes
    /// minutes of CPU time.
    #[serde(default)]
    workloads: Vec<String>,
    /// Trials of the hunt for faults that the old version does not show. Default: 32.
    trials: Option<u64>,
    /// Seed of all draws. Default: 1.
    seed: Option<u64>,
}

/// Asks the gate. Runs that show what is worse are kept where that is allowed.
///
/// # Errors
/// When a version cannot be read or run.
pub fn ask(arguments: &mut Arguments, desk: &Desk<'_>) -> anyhow::Result<Answered> {
    let own: GatePart = arguments.take()?;
    let [new, old] = [&own.new, &own.against].map(|word| policy::open(&desk.services, word));
    let question = VersionGate {
        new: new?,
        old: old?,
        seed: own.seed.unwrap_or(1),
        trials: within("trials", own.trials, 0..=TRIALS_MAX)?.unwrap_or(TRIALS),
        loads: own.workloads,
        jobs: desk.jobs(),
    };
    let gated = question.ask(&desk.services);
    let gated = gated.map_err(ask::Error::into_cause)?;
    let breaches = gated.breaches.iter().enumerate();
    let capsules = breaches.map(|(at, breach)| kept(desk, at, breach));
    let capsules = capsules.collect::<anyhow::Result<Vec<_>>>()?;
    let frame = GateFrame {
        new: own.new,
        old: own.against,
        seed: question.seed,
    };
    Ok(Answered {
        status: match gated.passage {
            Passage::Passed => Status::Done,
            Passage::Refused => Status::Ejected,
            Passage::NotDecided => Status::Inconclusive,
        },
        ..Answered::done(document(&frame, &gated, &capsules))
    })
}

/// The file with the run of a breach, if it has one and there is a folder for it. Its name has what
/// the run depends on: the same question finds the file of the call before.
fn kept(desk: &Desk<'_>, at: usize, breach: &Breach) -> anyhow::Result<Option<String>> {
    let (Some(case), Some(_)) = (&breach.case, &desk.owner.folder) else {
        return Ok(None);
    };
    let bytes = case.bundle().write();
    let mark = fingerprint(&bytes);
    let name = format!("{}-{}-{mark:032x}.bundle", breach.limit.word(), at + 1);
    desk.keep(&name, &bytes).map(Some)
}

//! Tries what a finding says: repeats the run, does one thing, and looks whether the fault ends
//! (docs/explain.md, Trials).

mod cure;
mod pause;
mod share;
#[cfg(test)]
mod tests;
mod wait;

use explain::why::{Fault, Finding, Tier};
use model::{Nanos, SimTime};
use workload::RunSpec;

pub use cure::Cure;

use crate::services::Services;

/// Runs with a cure that count as proof, and how many of them may fail.
const CURED: u32 = 10;
const MAY_FAIL: u32 = 1;
/// Placebos of each kind, and how many of all may help.
const PLACEBOS: u32 = 10;
const MAY_HELP: u32 = 1;
/// The simulated time of all trials is at most so many times that of the run after the moment.
const EFFORT: u64 = 20;

/// A cure that was tried with controls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CureTrial {
    /// What was done.
    pub cure: Cure,
    /// When.
    pub at: SimTime,
    /// How long after that the task ran in the run without jitter; `None`: a rule that was judged
    /// by the whole run.
    pub after: Option<Nanos>,
    /// Runs with the cure, and those in which it ended the fault.
    pub tried: u32,
    /// See `tried`.
    pub helped: u32,
    /// Placebos, and those that ended the fault.
    pub placebos: u32,
    /// See `placebos`.
    pub placebos_helped: u32,
}

impl CureTrial {
    /// Before its first run.
    const fn new(cure: Cure, at: SimTime, after: Option<Nanos>) -> Self {
        Self {
            cure,
            at,
            after,
            tried: 0,
            helped: 0,
            placebos: 0,
            placebos_helped: 0,
        }
    }

    /// Whether it proves that the lack of the cure is the cause.
    #[must_use]
    pub const fn proves(&self) -> bool {
        self.tried == CURED
            && self.tried - self.helped <= MAY_FAIL
            && self.placebos == 2 * PLACEBOS
            && self.placebos_helped <= MAY_HELP
    }
}

/// What trials say of a finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trials {
    /// The kernel forbids what was found, or ended the policy for it: a fault in any case.
    pub is_contract: bool,
    /// The cures that were tried with controls. If one of them proves something, it is the last.
    pub tried: Vec<CureTrial>,
    /// Why nothing is proven, if that is so.
    pub unproven: Option<Unproven>,
}

/// Why a finding is supposed only.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unproven {
    /// Jitter alone ends the fault.
    AnyDisturbance,
    /// The policy ends it itself if the run goes on: it throttles, or gathers.
    ComesBack,
    /// No cure ends it and nothing else does.
    NoCure,
    /// The trials would have taken too long.
    TooLong,
    /// It cannot be tried, for this reason.
    NotTried(String),
}

impl Unproven {
    fn not_tried(why: &str) -> Self {
        Self::NotTried(why.to_owned())
    }

    /// A run with a change has ended in `error`.
    fn not_repeated(error: &anyhow::Error) -> Self {
        Self::NotTried(format!(
            "the run cannot be repeated with a change: {error:#}"
        ))
    }

    /// For people, as the end of a sentence that begins with "supposed:".
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Self::AnyDisturbance => {
                "any disturbance ends it, even short interrupts alone, so no line is accused"
                    .to_owned()
            }
            Self::ComesBack => {
                "the policy serves that queue again if the run goes on for as long as the task \
                 waits: it throttles tasks, or gathers them"
                    .to_owned()
            }
            Self::NoCure => "nothing that was tried ends it, or not it alone".to_owned(),
            Self::TooLong => "the trials would take too long".to_owned(),
            Self::NotTried(why) => why.clone(),
        }
    }
}

impl Trials {
    /// About what cannot be repeated.
    #[must_use]
    pub fn none(finding: &Finding, why: &str) -> Self {
        Self {
            is_contract: is_contract(finding),
            tried: Vec::new(),
            unproven: Some(Unproven::not_tried(why)),
        }
    }

    /// Whether the policy is accused: of a fault by the contract, or of a proven one.
    #[must_use]
    pub const fn accuses(&self) -> bool {
        self.is_contract || self.unproven.is_none()
    }

    /// The trial that proves the cause.
    #[must_use]
    pub fn proven(&self) -> Option<&CureTrial> {
        self.tried.last().filter(|trial| trial.proves())
    }
}

/// Whether the kernel forbids or ends what was found: see [`Tier::Contract`]. That nobody reads a
/// queue is certain only if nobody has looked at it since the task came.
#[must_use]
pub fn is_contract(finding: &Finding) -> bool {
    let is_unread = || {
        let queue = finding.queue.as_ref();
        queue.is_some_and(|queue| queue.looks.0 == 0)
    };
    let is_told = finding.message.is_some();
    finding.tier() == Some(Tier::Contract)
        && (is_told || finding.fault != Fault::UnreadQueue || is_unread())
}

/// Whether `finding` accuses the policy without any trial. A queue that nobody has read yet may be
/// read later: the policy may throttle its tasks, or gather them.
#[must_use]
pub fn is_certain(finding: &Finding) -> bool {
    is_contract(finding) && finding.fault != Fault::UnreadQueue
}

/// Tries what `finding` says of the run of `spec`, and makes it say what that has shown: no line
/// where any disturbance ends the fault, and a class where a cure has found one.
///
/// # Errors
/// When nobody waits for the answer any more.
pub fn attempt(
    services: &Services<'_>,
    (spec, options): (&RunSpec, sim::Options),
    finding: &mut Finding,
) -> anyhow::Result<Trials> {
    let (tried, unproven) = match untriable(spec, finding) {
        Some(why) => (Vec::new(), Some(Unproven::not_tried(why))),
        None if comes_back(services, (spec, options), finding)? => {
            (Vec::new(), Some(Unproven::ComesBack))
        }
        None if finding.fault == Fault::UnfairShare => {
            share::attempt(services, (spec, options), finding)?
        }
        None => wait::attempt(services, (spec, options), finding)?,
    };
    let mut trials = Trials {
        is_contract: is_contract(finding) && unproven != Some(Unproven::ComesBack),
        tried,
        unproven,
    };
    match (&trials.unproven, trials.proven()) {
        (Some(Unproven::AnyDisturbance), _) => finding.culprit = None,
        (None, Some(proof)) if !proof.cure.is_of(finding) => {
            become_what_ended(finding, proof.cure);
            trials.is_contract = is_contract(finding);
        }
        _ => {}
    }
    Ok(trials)
}

/// Whether the policy ends the wait itself a little later. A run that cannot go on says nothing.
fn comes_back(
    services: &Services<'_>,
    run: (&RunSpec, sim::Options),
    finding: &Finding,
) -> anyhow::Result<bool> {
    if !pause::may_end(finding) {
        return Ok(false);
    }
    let ends = pause::ends(services, run, finding);
    services.check()?;
    Ok(ends.unwrap_or(false))
}

/// A cure of another class has ended the fault, and none of its own did: the decisions that were
/// seen had suggested a class, or none, and what helps is the proof.
fn become_what_ended(finding: &mut Finding, cure: Cure) {
    finding.fault = cure.fault();
    let victim = finding.victim.as_ref();
    finding.culprit = victim.and_then(|victim| victim.put.clone());
    finding.also = None;
    if finding.verdict.share.is_none() {
        finding.verdict.tier = finding.fault.tier();
    }
}

/// Whether `finding` may turn out to be of the class that `cure` ends. Where nobody lags behind,
/// no cure of a share is tried: it would prove a fault that nobody has seen.
fn may_end(finding: &Finding, cure: Cure) -> bool {
    let is_share = cure.fault().tier() == Some(Tier::Share);
    let lags = finding.message.is_some() || finding.verdict.share.is_some();
    cure.is_of(finding) || !is_share || lags
}

/// When the run of `spec` begins for whoever follows it, on the machine's clock: that of a recorded
/// load may begin in its middle.
fn begin_of(spec: &RunSpec) -> Nanos {
    let begin = spec.workload.begin.as_ref();
    begin.map_or(Nanos::ZERO, |begin| begin.at)
}

/// Why there is nothing to try.
fn untriable(spec: &RunSpec, finding: &Finding) -> Option<&'static str> {
    let program = spec.policy.program.as_ref();
    if program.is_some_and(|program| program.recorded.is_none()) {
        return Some(
            "the scheduler's program is not repeated for trials: record the run with `runslice \
             bundle`, and explain the bundle",
        );
    }
    match finding.fault {
        Fault::Outranked => Some("no policy can end it"),
        Fault::Waited | Fault::Unknown => Some("there is no cause to try"),
        Fault::CpuNotAllowed
        | Fault::NoSuchCpu
        | Fault::NoSuchQueue
        | Fault::InsertedTwice
        | Fault::Reenqueued
        | Fault::EndlessLoop
        | Fault::WildAccess
        | Fault::TooDeep
        | Fault::OverLimit
        | Fault::InitFailed
        | Fault::Misuse
        | Fault::OwnError
        | Fault::Restart => Some("the kernel's message is the fact"),
        _ if finding.victim.is_none() => Some("nobody waits"),
        _ => None,
    }
}

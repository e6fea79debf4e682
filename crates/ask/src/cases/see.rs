//! What is seen of a case in one run.

use explain::why::{Fault, Finding, Observer, PolicyLine};
use model::{Advised, ExitKind, SimTime};
use workload::RunSpec;

use crate::goal::Goal;
use crate::right;
use crate::runner::Runner;
use crate::services::Services;

/// Most BPF instructions of a run, as in a hunt.
const BUDGET: u64 = 20_000_000_000;

/// What was seen in one run.
#[derive(Clone, Debug, Default)]
pub struct CaseSeen {
    /// The run's seed.
    pub seed: u64,
    /// The class of what is wrong, if anything is.
    pub fault: Option<Fault>,
    /// The task that suffers.
    pub victim: Option<String>,
    /// The line to look at.
    pub place: Option<PolicyLine>,
    /// When the fault was seen.
    pub at: Option<SimTime>,
    /// The kernel's reason and message, if it ended the policy.
    pub ended: Option<String>,
    /// Tasks that waited for long at the end, and had a right to a CPU.
    pub starved: usize,
    /// The number that the signature asks for.
    pub value: Option<f64>,
    /// Why the load has no such number, if the run went to its end without it.
    pub unknown: Option<Advised>,
}

impl CaseSeen {
    /// Makes the run of `spec` and measures `goal`.
    ///
    /// # Errors
    /// When the policy, its program or the machine is bad.
    pub fn of(
        services: &Services<'_>,
        spec: &RunSpec,
        goal: Option<&Goal>,
    ) -> anyhow::Result<Self> {
        let options = sim::Options {
            total_budget: Some(BUDGET),
            ..sim::Options::default()
        };
        let mut observer = right::observer(spec, None, Observer::new(0, None));
        let runner = Runner::new(spec, services).with_options(options);
        let (outcome, metrics) = runner.with_sink(&mut observer).measure()?;
        observer.set_blocked(&outcome.summary.blocked);
        let exit = &outcome.summary.exit;
        let ended = (exit.kind != ExitKind::Unreg || exit.fault.is_some())
            .then(|| format!("{}: {}", exit.kind.reason(), exit.message));
        let value = goal.and_then(|it| it.value(&metrics, &outcome.report));
        let whole = goal.filter(|_| ended.is_none());
        let unknown = whole.and_then(|it| it.check(&outcome.report).err());
        let finding = observer.finding();
        // As in `judge_starved()`, which leaves programs out.
        let is_fault = finding.as_ref().is_some_and(Finding::is_fault);
        let starved = if is_fault {
            outcome.summary.starved.len()
        } else {
            0
        };
        let seen = Self {
            seed: spec.seed,
            ended,
            starved,
            value,
            unknown,
            ..Self::default()
        };
        Ok(match finding {
            None => seen,
            Some(finding) => Self {
                fault: Some(finding.fault),
                victim: finding.victim.map(|it| it.name),
                place: finding.culprit.and_then(|it| it.place),
                at: Some(finding.time),
                ..seen
            },
        })
    }

    /// What is wrong, in a few words; `None` if the kernel did not end the policy and nobody
    /// starved.
    #[must_use]
    pub fn trouble(&self) -> Option<String> {
        let starved = || match self.starved {
            0 => None,
            count => Some(format!("{count} tasks starved")),
        };
        self.ended.clone().or_else(starved)
    }
}

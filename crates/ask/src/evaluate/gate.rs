//! Whether a new version of a policy may replace an old one: an evaluation with one baseline, and a
//! hunt for what the old version does not do.

use std::num::NonZeroUsize;
use std::path::Path;

use explain::why::Finding;
use model::{Advised, Kernel, PolicySpec};

use super::draw::{Draw, Secret};
use super::limits::{LimitKind, beyond, judged_by};
use super::score::WORSE;
use super::spec::Spec;
use super::taken::Taking;
use super::{Breach, Evaluation, Evaluator};
use crate::error::{Error, UsageError};
use crate::hunt::{Hunt, Range};
use crate::policy::FoundPolicy;
use crate::services::Services;
use crate::shrink::Case;
use crate::workload_arg::SHIPPED;
use crate::{kernel, right, violation, workload_arg};

/// Trials of one round of a hunt, which ends with the round that finds something.
const ROUND: u64 = 16;

/// Holds a new version of a policy against an old one.
#[derive(Clone, Debug)]
pub struct VersionGate {
    /// The new version.
    pub new: FoundPolicy,
    /// The old version.
    pub old: FoundPolicy,
    /// Seed of all draws.
    pub seed: u64,
    /// Trials of the hunt.
    pub trials: u64,
    /// Loads, by name; none: all that are built in.
    pub loads: Vec<String>,
    /// Threads; the number does not change the answer.
    pub jobs: Option<NonZeroUsize>,
}

/// How a gate ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passage {
    /// Nothing is worse, and that is shown.
    Passed,
    /// Something is worse.
    Refused,
    /// Nothing is shown worse, and not everything is shown not to be.
    NotDecided,
}

/// What a gate says.
#[derive(Debug)]
pub struct Gated {
    /// How it ends.
    pub passage: Passage,
    /// Kernels that load the old version.
    pub kernels: Vec<Kernel>,
    /// What is worse.
    pub breaches: Vec<Breach>,
    /// The evaluation; `None` if the new version cannot be loaded somewhere.
    pub evaluation: Option<Evaluation>,
    /// Loads that may be worse by more than 5 %.
    pub open: Vec<String>,
    /// Loads that the old version does not survive.
    pub left_out: Vec<String>,
    /// Trials that the hunt made.
    pub trials: u64,
}

impl Passage {
    /// In documents.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Refused => "refused",
            Self::NotDecided => "not-decided",
        }
    }
}

impl VersionGate {
    /// Asks the gate.
    ///
    /// # Errors
    /// When a version cannot be run at all, or nobody waits for the answer any more.
    pub fn ask(&self, services: &Services<'_>) -> Result<Gated, Error> {
        Ok(self.gated(services)?)
    }

    fn gated(&self, services: &Services<'_>) -> anyhow::Result<Gated> {
        for version in [&self.old.policy, &self.new.policy] {
            kernel::check_settings(version)?;
        }
        let kernels = Range::kernels_of(&self.old.policy);
        if kernels.is_empty() {
            let why = kernel::unloadable(&self.old.policy, Kernel::default());
            let why = why.unwrap_or_else(|| Advised::new("no kernel runs it", "name another"));
            let place = format!("the old version, {}", self.old.policy.name);
            return Err(UsageError::new(why.at(place)).into());
        }
        let mut gated = Gated {
            passage: Passage::Refused,
            breaches: self.unloadable(&kernels),
            kernels,
            evaluation: None,
            open: Vec::new(),
            left_out: Vec::new(),
            trials: 0,
        };
        if !gated.breaches.is_empty() {
            return Ok(gated);
        }
        let (spec, left_out) = self.spec(services, &gated.kernels)?;
        gated.left_out = left_out;
        if !spec.loads.is_empty() {
            self.evaluate(services, &spec, &mut gated)?;
        }
        if gated.breaches.is_empty() {
            self.hunt(services, &mut gated)?;
        }
        gated.passage = match (gated.breaches.as_slice(), gated.open.as_slice()) {
            ([_, ..], _) => Passage::Refused,
            ([], []) if !spec.loads.is_empty() => Passage::Passed,
            _ => Passage::NotDecided,
        };
        Ok(gated)
    }

    /// Kernels that load the old version and not the new one.
    fn unloadable(&self, kernels: &[Kernel]) -> Vec<Breach> {
        let loads = Range::kernels_of(&self.new.policy);
        let lost = kernels.iter().filter(|it| !loads.contains(it));
        let lost = lost.map(|it| {
            let name = it.name();
            let words = format!("kernel {name} loads the old version and not this one");
            match kernel::unloadable(&self.new.policy, *it) {
                Some(lack) => Breach::advised(LimitKind::Loads, lack.at(words)),
                None => Breach::of(LimitKind::Loads, words),
            }
        });
        lost.collect()
    }

    /// What is asked of both versions: all loads, on several machines.
    fn asked(&self, services: &Services<'_>, kernels: &[Kernel]) -> anyhow::Result<Spec> {
        // What is wrong with one is told without a place in the text below, which nobody wrote.
        for name in &self.loads {
            workload_arg::find(services, name, &[])?;
        }
        let names: Vec<&str> = match self.loads.as_slice() {
            [] => SHIPPED.iter().map(|it| it.name).collect(),
            named => named.iter().map(String::as_str).collect(),
        };
        let loads = names.iter().map(|it| format!("[[load]]\nload = {it:?}\n"));
        let listed = |all: &[Kernel]| -> Vec<&str> { all.iter().map(|it| it.name()).collect() };
        let tested = kernel::CHECKED
            .into_iter()
            .filter(|it| kernels.contains(it));
        let tested: Vec<Kernel> = tested.collect();
        let kernels = match tested.as_slice() {
            [] => listed(kernels),
            tested => listed(tested),
        };
        let text = format!(
            "draws = 10\n{}[machine]\ncpus = [2, 4, 8]\nhz = [250, 1000]\nkernel = {kernels:?}\n",
            loads.collect::<String>()
        );
        Ok(Spec {
            baseline: self.old.clone(),
            ..Spec::of_text(services, "gate", Path::new(""), text)?
        })
    }

    /// The same with the loads that the old version survives alone, and what is wrong with others.
    fn spec(
        &self,
        services: &Services<'_>,
        kernels: &[Kernel],
    ) -> anyhow::Result<(Spec, Vec<String>)> {
        let mut spec = self.asked(services, kernels)?;
        let mut left_out = Vec::new();
        let mut loads = Vec::new();
        for load in std::mem::take(&mut spec.loads) {
            let alone = Spec {
                loads: vec![load.clone()],
                ..spec.clone()
            };
            match Evaluator::new(services, &alone, (self.secret(), 0), self.jobs) {
                Ok(_) => loads.push(load),
                Err(error) if error.is::<crate::error::Cancelled>() => return Err(error),
                Err(error) => left_out.push(crate::error::words(&error)),
            }
        }
        spec.loads = loads;
        Ok((spec, left_out))
    }

    fn secret(&self) -> Secret {
        Secret::of(&self.seed.to_le_bytes())
    }

    fn evaluate(&self, services: &Services<'_>, spec: &Spec, to: &mut Gated) -> anyhow::Result<()> {
        let evaluator = Evaluator::new(services, spec, (self.secret(), 0), self.jobs)?;
        let word = self.new.policy.name.clone();
        let evaluation = evaluator.evaluate(&word, &self.new, false)?;
        to.breaches.clone_from(&evaluation.breaches);
        let loads = evaluation.scored.iter().flat_map(|it| &it.loads);
        let may_be_worse = loads.filter(|it| it.score[1] < -libm::log1p(WORSE));
        to.open = may_be_worse.map(|it| it.load.clone()).collect();
        to.evaluation = Some(evaluation);
        Ok(())
    }

    /// Looks for a fault that the old version does not show in the same run.
    fn hunt(&self, services: &Services<'_>, to: &mut Gated) -> anyhow::Result<()> {
        let hunt = Hunt {
            policy: self.new.policy.clone(),
            seed: self.seed,
            properties: Vec::new(),
            range: Range {
                kernels: to.kernels.clone(),
                ..Range::default()
            },
            against: Some(self.old.policy.clone()),
        };
        let jobs = services.jobs(self.jobs);
        while to.trials < self.trials {
            let end = (to.trials + ROUND).min(self.trials);
            let numbers: Vec<u64> = (to.trials..end).collect();
            let found = services.map(&numbers, jobs, "trials", |number| {
                hunt.trial(services, *number).map_err(Error::into_cause)
            })?;
            to.trials = end;
            if let Some((case, finding)) = found.into_iter().flatten().next() {
                to.breaches.push(hunted(case, finding));
                return Ok(());
            }
        }
        Ok(())
    }

    /// Whether `policy` breaks what `breach` says, in the same run and against the old version.
    /// `None`: it cannot be told by one run.
    ///
    /// # Errors
    /// When the run cannot be made.
    pub fn repeats(
        &self,
        services: &Services<'_>,
        breach: &Breach,
        policy: &PolicySpec,
    ) -> anyhow::Result<Option<bool>> {
        let Some(case) = &breach.case else {
            return Ok(None);
        };
        let case = Case {
            policy: policy.clone(),
            ..case.clone()
        };
        if breach.limit == LimitKind::Fault {
            let found = violation::find(services, &case.spec(services)?, &[])?;
            let known = breach.finding.as_ref().map(|it| it.fault);
            return Ok(Some(found.is_some_and(|it| Some(it.fault) == known)));
        }
        if breach.limit == LimitKind::WorseLoad {
            return Ok(None);
        }
        let spec = self.asked(services, &[case.machine.kernel])?;
        let draw = Draw {
            load: None,
            name: String::new(),
            case,
            subs: Vec::new(),
            names: Vec::new(),
            decoys: Vec::new(),
        };
        let [of_old, of_new] = [&self.old.policy, policy].map(right::declared);
        let taking = Taking {
            services,
            spec: &spec,
            right: judged_by(&spec.limits, of_new, of_old).0,
        };
        let base = taking.take(&draw, &self.old.policy, &[])?;
        let taken = taking.take_of_candidate(&draw, policy, &[])?;
        let found = beyond(&spec.limits, &base, &taken);
        Ok(Some(found.iter().any(|(kind, _)| *kind == breach.limit)))
    }
}

/// What a hunt has found.
fn hunted(case: Case, finding: Finding) -> Breach {
    let words = violation::Signature::of(&finding).text();
    Breach {
        load: Some(case.workload.file.clone()),
        finding: Some(finding),
        case: Some(case),
        ..Breach::of(LimitKind::Fault, words)
    }
}

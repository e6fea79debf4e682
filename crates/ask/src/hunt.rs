//! Random machines and loads, among which some may show a fault of a policy.

mod below;
mod range;

pub use range::Range;

use anyhow::Context as _;
use explain::why::{Fault, Finding};
use model::{Advised, Interleave, Nanos, PolicySpec};
use workload::{RunSpec, generate};

use crate::error::{Error, UsageError};
use crate::kernel;
use crate::machine::MachineChange;
use crate::policy::FoundPolicy;
use crate::races::{Races, RacingVariable};
use crate::services::Services;
use crate::shrink::Case;
use crate::unset;
use crate::violation::{self, Property};

/// Races are looked for in so much of a trial's run: two detectors look at each access.
const RACES_FOR: Nanos = Nanos::from_millis(50);

/// Hunts for faults of a policy.
#[derive(Clone, Debug)]
pub struct Hunt {
    /// The policy.
    pub policy: PolicySpec,
    /// Seed of the trials. The same seed tries the same machines and loads.
    pub seed: u64,
    /// What a run must keep, besides that nobody starves and nothing errs.
    pub properties: Vec<Property>,
    /// Which machines and loads are tried.
    pub range: Range,
    /// An earlier version: what is wrong with that one, too, is not looked for.
    pub against: Option<PolicySpec>,
}

impl Hunt {
    /// A search for faults of `found` with seed 1: under any load, and, where `machine` names no
    /// kernel, on each that can load it.
    ///
    /// # Errors
    /// When it is a recording of one run, which fits no other load.
    pub fn new(
        services: &Services<'_>,
        found: FoundPolicy,
        machine: MachineChange,
    ) -> Result<Self, UsageError> {
        let FoundPolicy {
            policy,
            machine: recorded_on,
            ..
        } = found;
        let recorded = policy.program.as_ref();
        let recorded = recorded.and_then(|program| program.recorded.as_ref());
        if recorded.is_some_and(|recorded| !recorded.setup_only) {
            let message = Advised::new(
                format!(
                    "{} is a recording of one run, which fits no other load",
                    policy.name
                ),
                "record the program with `bundle --setup-only`, or give --scheduler",
            );
            return Err(UsageError::new(message));
        }
        let is_recorded = recorded.is_some();
        let has_cids = kernel::has_cids(&policy);
        unset::say_of(services, &policy, &recorded_on.clone().unwrap_or_default());
        let kernels = match machine.kernel {
            Some(_) => Vec::new(),
            None => Range::kernels_of(&policy),
        };
        Ok(Self {
            policy,
            seed: 1,
            properties: Vec::new(),
            range: Range {
                machine,
                recorded_on: recorded_on.filter(|_| is_recorded),
                kernels,
                has_cids,
                ..Range::default()
            },
            against: None,
        })
    }

    /// Makes the trial of this number: its run, and what is wrong with it, if anything is.
    ///
    /// # Errors
    /// When the policy is bad.
    pub fn trial(
        &self,
        services: &Services<'_>,
        number: u64,
    ) -> Result<Option<(Case, Finding)>, Error> {
        Ok(self.tried(services, number)?)
    }

    /// Looks for races in the first 50 ms of a trial's run, on variables that are not `known`. Each
    /// is with its run, which has the stall that shows the race, if one does.
    ///
    /// # Errors
    /// When the policy is bad.
    pub fn races(
        &self,
        services: &Services<'_>,
        number: u64,
        known: &[String],
    ) -> Result<Vec<(Case, RacingVariable)>, Error> {
        Ok(self.racing(services, number, known)?)
    }

    fn racing(
        &self,
        services: &Services<'_>,
        number: u64,
        known: &[String],
    ) -> anyhow::Result<Vec<(Case, RacingVariable)>> {
        let drawn = (self.seed, number, true);
        let mut case = self.range.case(services, &self.policy, drawn)?;
        case.duration = Some(case.duration.unwrap_or(RACES_FOR).min(RACES_FOR));
        let look = Races {
            spec: case.spec(services).context("the load of a trial")?,
            accepted: known.to_vec(),
        };
        let found = look.others(services)?.into_iter();
        let with_run = found.map(|variable| {
            let mut case = case.clone();
            let shown = variable.shown.as_ref();
            case.machine.interleave = shown.map(|it| Interleave::At(vec![it.stall]));
            (case, variable)
        });
        Ok(with_run.collect())
    }

    /// What a search must have in common with the one that it continues.
    #[must_use]
    pub fn key(&self) -> String {
        let policy = &self.policy;
        let mut hash = model::Fnv1a::new();
        hash.write(&policy.object);
        hash.write(format!("{:?}{:?}{:?}", policy.set, policy.setup, policy.table).as_bytes());
        for sub in &policy.subs {
            let (own, times) = (&sub.policy, (sub.attach_at, sub.detach_at));
            hash.write(&own.object);
            hash.write(format!("{}{times:?}{:?}{:?}", sub.cgroup, own.set, own.setup).as_bytes());
        }
        let command = policy.program.as_ref().map(|program| &program.command);
        hash.write(format!("{command:?}").as_bytes());
        if let Some(old) = &self.against {
            hash.write(&old.object);
            hash.write(format!("{:?}{:?}{:?}", old.name, old.set, old.setup).as_bytes());
        }
        let properties: Vec<_> = self.properties.iter().map(|it| it.text()).collect();
        format!(
            "trials of version {}, seed {}, policy {:016x}, properties [{}], {}",
            generate::VERSION,
            self.seed,
            hash.value(),
            properties.join("; "),
            self.range.key()
        )
    }

    /// The run of a trial, if it shows a fault.
    fn tried(
        &self,
        services: &Services<'_>,
        number: u64,
    ) -> anyhow::Result<Option<(Case, Finding)>> {
        let (case, finding) = self.try_it(services, number, true)?;
        // A policy without callbacks for CPUs that come and go leaves when one does, as it should.
        // That is no fault, but it would hide all others of such a policy.
        let (case, finding) = match finding {
            Some(finding) if leaves(&finding) => self.try_it(services, number, false)?,
            finding => (case, finding),
        };
        let Some(finding) = finding else {
            return Ok(None);
        };
        if let Some(like) = &self.range.like
            && !like.is_shown_by(&finding, &case.spec(services)?.workload)
        {
            return Ok(None);
        }
        // The last question, for it takes another run.
        let is_old = self.is_old(services, &case, &finding)?;
        Ok((!is_old).then_some((case, finding)))
    }

    /// Whether the earlier version shows a fault of this class in the same run. Its lines differ.
    fn is_old(
        &self,
        services: &Services<'_>,
        case: &Case,
        finding: &Finding,
    ) -> anyhow::Result<bool> {
        let Some(old) = &self.against else {
            return Ok(false);
        };
        let case = Case {
            policy: old.clone(),
            ..case.clone()
        };
        let spec = case.spec(services)?;
        let found = violation::find(services, &spec, &self.properties)?;
        Ok(found.is_some_and(|found| found.fault == finding.fault))
    }

    fn try_it(
        &self,
        services: &Services<'_>,
        number: u64,
        has_hotplug: bool,
    ) -> anyhow::Result<(Case, Option<Finding>)> {
        let drawn = (self.seed, number, has_hotplug);
        let case = self.range.case(services, &self.policy, drawn)?;
        let spec = case.spec(services).context("the load of a trial")?;
        let finding = self.judge(services, &spec)?;
        Ok((case, finding))
    }

    /// What is wrong with a run, if anything is.
    ///
    /// # Errors
    /// When the policy or the machine is bad.
    pub fn judge(
        &self,
        services: &Services<'_>,
        spec: &RunSpec,
    ) -> anyhow::Result<Option<Finding>> {
        // The kernel that wrote a dump has ended the policy: no trial is needed to accuse it.
        match &self.range.like {
            Some(_) => violation::find(services, spec, &self.properties),
            None => violation::accused(services, spec, &self.properties),
        }
    }
}

/// Whether the kernel ended the policy for want of callbacks, which is no fault.
fn leaves(finding: &Finding) -> bool {
    finding.fault == Fault::Restart
}

#[cfg(test)]
mod tests {
    use model::{Program, Recorded};

    use super::*;
    use crate::policy;
    use crate::services::tests::FILES;

    #[test]
    fn a_recording_of_one_run_is_searched_under_no_other_load() {
        let hunt = |setup_only| {
            let mut policy = policy::find(&FILES, "fifo").unwrap();
            policy.program = Some(Program {
                recorded: Some(Recorded {
                    bytes: b"x"[..].into(),
                    setup_only,
                }),
                ..Program::default()
            });
            let found = FoundPolicy::of_policy(policy);
            Hunt::new(&FILES, found, MachineChange::default())
        };
        let refused = hunt(false).unwrap_err().to_string();
        assert!(refused.contains("fits no other load"), "{refused}");
        assert!(hunt(true).is_ok());
    }
}

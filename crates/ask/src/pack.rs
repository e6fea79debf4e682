//! A scheduler with everything that was decided about it, as a bundle.

use anyhow::Context as _;
use model::{Advised, Nanos};
use traces::TraceHash;
use workload::RunSpec;

use crate::bundle::{Bound, Bundle};
use crate::error::{self, Error, UsageError};
use crate::machine::MachineChange;
use crate::note::Topic;
use crate::outcome::ejection;
use crate::policy::FoundPolicy;
use crate::program;
use crate::runs::{Asked, StartJitter};
use crate::services::Services;
use crate::workload_arg::Written;

/// What a program is loaded under that does nothing afterwards.
const IDLE_LOAD: &str = "desk";

/// Makes a bundle of a policy, or records a scheduler's own program.
#[derive(Clone, Debug)]
pub struct Pack {
    /// The scheduler.
    pub scheduler: FoundPolicy,
    /// Whether a program is recorded up to when it has attached its policy.
    pub setup_only: bool,
    /// The workload of the run to save.
    pub workload: Option<String>,
    /// Parameters of the workload.
    pub scale: Vec<(String, i64)>,
    /// Changes to the machine.
    pub machine: MachineChange,
    /// Seed of the run.
    pub seed: Option<u64>,
    /// When the run ends at the latest.
    pub duration: Option<Nanos>,
}

/// A bundle that was made.
#[derive(Debug)]
pub struct Packed {
    /// The bundle.
    pub bundle: Bundle,
    /// Whether the policy was ejected in the run that was recorded.
    pub is_ejected: bool,
}

impl Pack {
    /// Checks that the policy can be made ready, or records its program.
    ///
    /// # Errors
    /// When the object is bad, something cannot be set, or the program attaches nothing.
    pub fn ask(&self, services: &Services<'_>) -> Result<Packed, Error> {
        let policy = &self.scheduler.policy;
        Ok(match &policy.program {
            Some(program) if program.recorded.is_some() => {
                let name = &policy.name;
                let message = format!("{name} is a recording of a program already");
                return Err(anyhow::Error::from(UsageError::new(message)).into());
            }
            Some(_) => self.record(services)?,
            None => self.object(services)?,
        })
    }

    /// A policy's object, with what is to be set; and its run, if a workload is named.
    fn object(&self, services: &Services<'_>) -> anyhow::Result<Packed> {
        let bundle = match &self.workload {
            Some(name) => {
                let spec = self.spec(services)?;
                Bundle {
                    bound: Some(self.bound(services, &spec, name)?),
                    policy: spec.policy,
                    machine: spec.machine,
                }
            }
            None => {
                let found = self.scheduler.clone();
                let machine = found.machine.unwrap_or_default();
                Bundle {
                    policy: found.policy,
                    machine: self.machine.change(services, &machine)?,
                    bound: None,
                }
            }
        };
        let (policy, machine) = (&bundle.policy, &bundle.machine);
        sim::check_machine(machine).map_err(|error| UsageError::new(Advised::of(&error)))?;
        sim::check_policy(policy, machine).map_err(error::of_run)?;
        Ok(Packed {
            bundle,
            is_ejected: false,
        })
    }

    /// What a bundle keeps of the run of `spec`, whose workload was named so.
    fn bound(&self, services: &Services<'_>, spec: &RunSpec, name: &str) -> anyhow::Result<Bound> {
        Ok(Bound {
            workload: Written::find(services, name)?,
            scale: self.scale.clone(),
            seed: spec.seed,
            duration_ns: spec.duration.map(Nanos::get),
        })
    }

    /// The run to save: under `--setup-only` none, but the program has a machine to look at.
    fn spec(&self, services: &Services<'_>) -> anyhow::Result<RunSpec> {
        let workload = match (&self.workload, self.setup_only) {
            (Some(name), _) => name,
            (None, true) => IDLE_LOAD,
            (None, false) => {
                let message = Advised::new(
                    "a recording is of one run: name its --workload",
                    "or give --setup-only, if the program does nothing after it has attached",
                );
                return Err(UsageError::new(message).into());
            }
        };
        let asked = Asked {
            workload: Some(workload),
            scale: &self.scale,
            machine: &self.machine,
            seed: self.seed,
            duration: self.duration,
            start_jitter: StartJitter::OfLoad,
        };
        let specs = asked.specs(services, vec![self.scheduler.clone()], None)?;
        let spec = specs.into_iter().next().context("one policy is one run")?;
        sim::check_machine(&spec.machine).map_err(|error| UsageError::new(Advised::of(&error)))?;
        Ok(spec)
    }

    /// Runs the program and writes down what it does.
    fn record(&self, services: &Services<'_>) -> anyhow::Result<Packed> {
        let mut spec = self.spec(services)?;
        let mut program = spec.policy.program.take().context("it has a program")?;
        // What it does while it loads costs nothing, and its threads take no part in a run.
        program.free |= self.setup_only;
        let mut hash = TraceHash::new();
        let sink = (!self.setup_only).then_some(&mut hash as &mut dyn model::Sink);
        let (summary, recorded) = program::record(services, &program, &spec, sink)?;
        let mut is_ejected = false;
        if let Some(summary) = summary {
            let (events, hash) = (hash.count(), hash.value());
            services.note(Topic::Bundle, format!("{events} events, hash {hash:016x}"));
            for note in summary.told() {
                services.note(Topic::Bundle, note);
            }
            if let Some(line) = ejection(&spec.policy.name, &summary.exit) {
                services.note(Topic::Bundle, line);
                is_ejected = true;
            }
        }
        program.recorded = Some(recorded);
        let bound = match (&self.workload, self.setup_only) {
            (Some(name), false) => Some(self.bound(services, &spec, name)?),
            _ => None,
        };
        let mut policy = spec.policy;
        policy.program = Some(program);
        let bundle = Bundle {
            policy,
            machine: spec.machine,
            bound,
        };
        Ok(Packed { bundle, is_ejected })
    }
}

//! The two halves of a recording, and the two simulations of the first.

use anyhow::{Context as _, bail};
use model::{Kernel, MachineSpec, Nanos, SimTime};
use stats::Blocks;
use stats::compare::skill::{BLOCKS, Trial};
use workload::{RunSpec, Workload};

use super::{Score, Under};
use crate::error::UsageError;
use crate::goal::family;
use crate::outcome::ejection;
use crate::policy;
use crate::recording::halves::KnownRecording;
use crate::runner::Runner;
use crate::runs::{Asked, StartJitter};
use crate::score_file::Identity;
use crate::services::Services;

/// The null model: who comes first is served first, on any CPU.
pub const NULL: &str = "fifo";

/// A simulation ends after so many times the length of what was recorded.
const LONGEST: u64 = 8;

/// Blocks of a simulation that lasts as long as the recording: enough to cut one that takes an
/// eighth of the time.
const FINE: usize = BLOCKS * 8;

/// A recording, held against its simulation.
#[derive(Debug)]
pub struct Held {
    /// Its name.
    pub name: String,
    /// Which bytes it has.
    pub identity: Identity,
    /// That of the second one, if there is one.
    pub second: Option<String>,
    /// The scheduler that it was recorded under.
    pub under: Under,
    /// The simulated machine.
    pub machine: MachineSpec,
    /// How long the first half is, and the second.
    pub lengths: [Nanos; 2],
    /// What is compared.
    pub trial: Trial,
    /// Failures of simulations.
    pub notes: Vec<String>,
}

impl Held {
    /// Reads the recordings again, and simulates the first half of the load.
    ///
    /// # Errors
    /// When the recordings are too short or do not fit together, or a policy is bad.
    pub(super) fn make(request: &Score, services: &Services<'_>) -> anyhow::Result<Self> {
        let (known, second) = request.recordings(services)?;
        let name = request.recording.display().to_string();
        let under = request.under(services, &known)?;
        if let Some(other) = &second {
            let theirs = request.under(services, other)?;
            if theirs.policy != under.policy {
                bail!(UsageError::new(format!(
                    "the recordings were made under two schedulers, {} and {}",
                    under.policy, theirs.policy
                )));
            }
        }
        let cut = match second {
            Some(_) => known.end,
            None => SimTime::from_nanos(known.end.as_nanos() / 2),
        };
        if cut.as_nanos() < BLOCKS as u64 {
            bail!("{name}: it is too short to be cut into {BLOCKS} blocks");
        }
        let (load, first, later) = halves(services, (&known, second.as_ref()), cut)?;
        let specs = specs(request, services, (&under, load), cut)?;
        let jobs = services.jobs(request.jobs);
        let made = services.map(&specs, jobs, "simulations", |spec| {
            simulated(spec, services, cut)
        })?;
        let mut made = made.into_iter();
        let (Some((simulated, one)), Some((null, other))) = (made.next(), made.next()) else {
            unreachable!("two runs were asked for");
        };
        let rest = match &second {
            Some(second) => second.length(),
            None => known.end.since(cut),
        };
        Ok(Self {
            identity: Identity::of(services, &request.recording).with_context(|| name.clone())?,
            name,
            second: request.second.as_ref().map(|it| it.display().to_string()),
            under,
            machine: specs[0].machine.clone(),
            lengths: [cut.since(SimTime::ZERO), rest],
            trial: Trial {
                first,
                second: later,
                simulated: simulated.whole(BLOCKS),
                null: null.whole(BLOCKS),
            },
            notes: [one, other].into_iter().flatten().collect(),
        })
    }
}

/// The load of the first half, and what was recorded in both.
fn halves(
    services: &Services<'_>,
    (known, second): (&KnownRecording, Option<&KnownRecording>),
    cut: SimTime,
) -> anyhow::Result<(Workload, stats::Half, stats::Half)> {
    let Some(second) = second else {
        let (blocks, load) = known.cut(services, 2 * BLOCKS, cut)?;
        return Ok((load, blocks.part(0, BLOCKS), blocks.part(BLOCKS, BLOCKS)));
    };
    let (first, load) = known.cut(services, BLOCKS, cut)?;
    let (later, _) = second.cut(services, BLOCKS, SimTime::from_nanos(u64::MAX))?;
    Ok((load, first.part(0, BLOCKS), later.part(0, BLOCKS)))
}

/// The run under the scheduler of the recording, and that of the null model.
fn specs(
    request: &Score,
    services: &Services<'_>,
    (under, load): (&Under, Workload),
    cut: SimTime,
) -> anyhow::Result<Vec<RunSpec>> {
    let [found, null] = [
        policy::open(services, &under.policy)?,
        policy::open(services, NULL)?,
    ];
    if found.policy.object == null.policy.object {
        let message = format!(
            "the recording was made under {NULL}, which is what skill is measured from: nothing \
             can be told"
        );
        return Err(UsageError::new(message).into());
    }
    let asked = Asked {
        workload: None,
        scale: &[],
        machine: &request.machine,
        seed: None,
        duration: Some(Nanos::new(cut.as_nanos().saturating_mul(LONGEST))),
        start_jitter: StartJitter::OfLoad,
    };
    let mut specs = asked.specs(services, vec![found, null], Some(load))?;
    specs[1].machine = specs[0].machine.clone();
    Ok(specs)
}

/// What tasks went through in a simulation, and what is to be said of its end.
fn simulated(
    spec: &RunSpec,
    services: &Services<'_>,
    cut: SimTime,
) -> anyhow::Result<(Blocks, Option<String>)> {
    let length = cut.since(SimTime::ZERO);
    let mut blocks = Blocks::new(length, FINE, family);
    let summary = Runner::new(spec, services).with_sink(&mut blocks).start()?;
    let is_cut = spec
        .duration
        .is_some_and(|it| blocks.end() >= SimTime::ZERO + it);
    let note = match ejection(&spec.policy.name, &summary.exit) {
        Some(line) => Some(format!("the simulation is used up to its end: {line}")),
        None if is_cut => Some(format!(
            "under {} the load was not done after {LONGEST} times its length; what came until \
             then is used",
            spec.policy.name
        )),
        None => None,
    };
    Ok((blocks, note))
}

/// The kernel whose sched_ext the simulated machine has, in words.
#[must_use]
pub fn kernel(machine: &MachineSpec) -> &'static str {
    Kernel::name(machine.kernel)
}

//! The simulated machine: runs the very object that a kernel would load, on simulated CPUs, with
//! the same events every time.
//!
//! [`run`] is the door, and [`Simulation`] the same door with more to ask for. Behind it, a
//! [`workload::RunSpec`] becomes an object machine (crate `bpf`), a workload in execution
//! ([`work`]) and a machine that turns both (`machine.rs` leads on). The rules are those of Linux
//! 6.18's `kernel/sched/ext.c`; docs/fidelity.md says, rule by rule, what is exact, what is
//! approximated and what is left out.
//!
//! No clock, environment, thread or hash order reaches a run.

#![forbid(unsafe_code)]

mod attach;
mod book_instant;
mod buffer;
mod cause;
mod cgroup;
mod change;
mod checkpoint;
mod cid;
mod cid_form;
mod cids;
mod clock;
mod context;
pub mod costs;
mod counters;
mod cpu;
mod custody;
mod deadline;
mod decision;
mod deed;
mod deferred;
mod dispatch;
mod drive;
mod dsq;
mod enqueue;
mod entries;
mod family;
mod fetched;
mod fit;
mod flags;
mod frequency;
mod host;
mod hotplug;
mod idle;
mod idleness;
mod immed;
mod interleave;
mod intervention;
mod kernels;
mod kfunc;
mod kick;
mod life;
mod lock;
mod log;
mod machine;
mod mask;
mod mirror;
mod moment;
mod ops;
mod pending;
mod places;
mod prepare;
mod profile;
mod program;
mod queue;
mod rescues;
mod rq_clock;
mod rt;
mod runs;
mod sample;
mod sched;
mod schedulers;
mod section;
mod setup;
mod sorted;
mod speed;
mod speeds;
mod sub;
mod subs;
mod tally;
mod target;
mod task;
mod textbook;
mod tick;
mod timers;
mod topology;
mod turn;
mod view;
mod wake;
mod watchdog;
pub mod work;

pub use bpf::Backend;
use bpf::{Image, InstanceError, LoadError, SetError, SetUpError};
use model::{Advice, Advised, CPUS_MAX, MachineSpec, Nanos, PolicySpec};
use workload::{Arrival, Group, Operation, RunSpec, Step};

pub use crate::checkpoint::{Checkpoint, ResumedRun};
pub use crate::deed::{Deed, Intervention, Rule};
pub use crate::entries::EntryError;
pub use crate::frequency::reads_frequency_limits;
pub use crate::interleave::races::{FoundRace, MetWrite, RaceClass};
pub use crate::mirror::{MirrorError, cgroups};
pub use crate::ops::OpsError;
use crate::prepare::{Noted, prepare};
pub use crate::program::ProgramReport;
pub use crate::runs::{Finished, Interleaved, Simulation, run};
pub use crate::tally::Tally;
pub use crate::target::{host_functions, target};
pub use crate::view::{Queue, View, Watcher};
use crate::work::WorkError;
use model::user_space::UserSpaceError;

/// Why a run cannot be made, or cannot go on. A policy that misbehaves is no error: its run ends
/// with an [`model::Exit`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The policy cannot be made ready to run.
    #[error("policy `{policy}`")]
    Policy {
        /// The policy.
        policy: String,
        /// Why.
        source: PolicyError,
    },
    /// A set-up program or a map did not do its work, so that a loader would have given up.
    #[error("policy `{policy}`: {what} failed: {why}")]
    SetUpFailed {
        /// The policy.
        policy: String,
        /// The program or the entry of a map.
        what: String,
        /// Its result, or where it stopped.
        why: String,
    },
    /// The workload cannot go on.
    #[error(transparent)]
    Work(#[from] WorkError),
    /// The scheduler's own program cannot go on, or did not attach a policy.
    #[error(transparent)]
    Program(#[from] UserSpaceError),
    /// The mirrors of kernel objects cannot be made.
    #[error(transparent)]
    Mirror(#[from] MirrorError),
    /// The tasks need more memory than the region of kernel objects has.
    #[error("too many tasks")]
    Memory(#[from] bpf::OutOfMemory),
    /// A scheduler that cannot be attached below the root.
    #[error(transparent)]
    Sub(Advised),
    /// CPUs that cannot differ so.
    #[error(transparent)]
    Hardware(Advised),
    /// CPUs cannot come in between here.
    #[error("callbacks of several CPUs cannot be interleaved: {why}")]
    Interleave {
        /// Why.
        why: &'static str,
        /// What to do.
        advice: &'static str,
    },
    /// What a machine as textbooks have it does not have.
    #[error(transparent)]
    Textbook(Advised),
    /// A machine that cannot be.
    #[error("{what} is {value}")]
    Machine {
        /// The property.
        part: MachinePart,
        /// Which property.
        what: &'static str,
        /// What was asked for.
        value: u64,
        /// What there is.
        expected: &'static str,
    },
}

/// A property of a machine, by its key in a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MachinePart {
    /// The number of CPUs.
    Cpus,
    /// Ticks a second.
    Hz,
    /// Threads of a core.
    Smt,
    /// CPUs that share a cache.
    Llc,
    /// CPUs of a node.
    Node,
}

impl Advice for Error {
    fn advice(&self) -> Option<String> {
        match self {
            Self::Policy { source, .. } => source.advice(),
            Self::Work(error) => error.advice(),
            Self::Program(error) => error.advice(),
            Self::Mirror(error) => error.advice(),
            Self::Machine { expected, .. } => Some(format!("expected {expected}")),
            Self::Hardware(error) | Self::Textbook(error) | Self::Sub(error) => error.advice(),
            Self::Interleave { advice, .. } => Some((*advice).to_owned()),
            Self::SetUpFailed { .. } | Self::Memory(_) => None,
        }
    }
}

/// Why a policy cannot be made ready to run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyError {
    /// The object cannot be loaded.
    #[error(transparent)]
    Load(#[from] Box<LoadError>),
    /// A knob or variable cannot be set.
    #[error(transparent)]
    Set(#[from] Box<SetError>),
    /// A variable cannot be set at that time.
    #[error("`{name}`: {why}")]
    When {
        /// The variable and the time.
        name: String,
        /// What is wrong with the time.
        why: String,
    },
    /// A set-up program cannot be run with what it was given.
    #[error(transparent)]
    SetUp(#[from] Box<SetUpError>),
    /// An entry of a map cannot be made.
    #[error(transparent)]
    Entry(#[from] EntryError),
    /// The object cannot be made ready to run.
    #[error(transparent)]
    Instance(#[from] Box<InstanceError>),
    /// A kernel would refuse to attach the table of callbacks.
    #[error(transparent)]
    Ops(#[from] OpsError),
}

impl Advice for PolicyError {
    fn advice(&self) -> Option<String> {
        match self {
            Self::Load(error) => error.advice(),
            Self::Set(error) => error.advice(),
            Self::SetUp(error) => error.advice(),
            Self::Entry(error) => error.advice(),
            Self::Instance(error) => error.advice(),
            Self::Ops(error) => error.advice(),
            Self::When { .. } => Some("write NAME@TIME=VALUE, such as interactive@5s=0".to_owned()),
        }
    }
}

impl PolicyError {
    /// For `map_err`: says which policy it was.
    fn of<E: Into<Self>>(policy: &PolicySpec) -> impl Fn(E) -> Error + Copy {
        |source| Error::Policy {
            policy: policy.name.clone(),
            source: source.into(),
        }
    }
}

/// Checks that a machine as textbooks have it has nothing else.
fn check_book(machine: &MachineSpec) -> Result<(), Error> {
    let Some(what) = machine.outside_the_book() else {
        return Ok(());
    };
    Err(Error::Textbook(Advised::new(
        format!("a textbook machine has {what}"),
        "leave that out, or the textbook",
    )))
}

/// Checks that the machine can be simulated.
///
/// # Errors
/// [`Error::Machine`] names the property and what it may be.
pub fn check_machine(machine: &MachineSpec) -> Result<(), Error> {
    check_book(machine)?;
    let wrong = |part, what, value: u64, expected| {
        Err(Error::Machine {
            part,
            what,
            value,
            expected,
        })
    };
    if !(1..=CPUS_MAX).contains(&machine.cpus) {
        return wrong(
            MachinePart::Cpus,
            "the number of CPUs",
            machine.cpus.into(),
            "1 to 1024",
        );
    }
    if ![100, 250, 300, 1000].contains(&machine.hz) {
        return wrong(
            MachinePart::Hz,
            "HZ",
            machine.hz.into(),
            "100, 250, 300 or 1000",
        );
    }
    if ![1, 2].contains(&machine.smt) {
        return wrong(
            MachinePart::Smt,
            "the number of threads of a core",
            machine.smt.into(),
            "1 or 2",
        );
    }
    if !machine.node_size().is_multiple_of(machine.cache_size()) {
        return wrong(
            MachinePart::Node,
            "the number of CPUs of a node",
            machine.node_size().into(),
            "a multiple of the CPUs that share a cache (llc)",
        );
    }
    for (part, what, size) in [
        (
            MachinePart::Llc,
            "the number of CPUs that share a cache",
            machine.cache_size(),
        ),
        (
            MachinePart::Node,
            "the number of CPUs of a node",
            machine.node_size(),
        ),
    ] {
        if !size.is_multiple_of(machine.smt) && machine.cpus.is_multiple_of(machine.smt) {
            return wrong(part, what, size.into(), "a multiple of the threads a core");
        }
    }
    if !machine.cpus.is_multiple_of(machine.smt) {
        return wrong(
            MachinePart::Cpus,
            "the number of CPUs",
            machine.cpus.into(),
            "a multiple of the threads a core",
        );
    }
    let hardware = machine.hardware.as_ref();
    let checked = hardware.map(|it| it.check(machine.cpus));
    checked.transpose().map_err(Error::Hardware)?;
    Ok(())
}

/// Checks that a policy can be made ready on `machine`: that its object loads, that its variables
/// and its table can be set, that its set-up programs exist and that nothing it calls is missing.
///
/// # Errors
/// What [`run`] would say before it begins.
pub fn check_policy(policy: &PolicySpec, machine: &MachineSpec) -> Result<(), Error> {
    let ready = prepare(policy, machine, Options::default(), Noted::default())?;
    ready.instance(policy).map(|_| ())
}

/// The policy's object as `machine` would run it: linked, with its variables set.
///
/// # Errors
/// What [`run`] would say of the object and of its variables before it begins.
pub fn image(policy: &PolicySpec, machine: &MachineSpec) -> Result<Image, Error> {
    prepare::image(policy, machine)
}

/// How a run is computed. Only the clock changes the result of a policy whose callbacks end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Back end that executes the policy's programs.
    pub backend: Backend,
    /// Instructions after which a callback is taken for an endless loop; `None`: as many as no
    /// sane policy needs.
    pub budget: Option<u64>,
    /// Instructions that the whole run may retire, with what the kernel's functions do for the
    /// policy; `None`: no limit.
    pub total_budget: Option<u64>,
    /// Bytes that the policy may make this process take; `None`: more than any sane one needs.
    pub memory_bytes: Option<u64>,
    /// Whether `bpf_ktime_get_ns()` goes on within a callback, by what that is charged for. Where
    /// nothing costs time, or without this, it stands still there.
    pub moving_clock: bool,
}

/// When the run ends at the latest, and the words for it where that is not what was asked for.
#[must_use]
pub fn latest_end(spec: &RunSpec) -> (Option<Nanos>, Option<String>) {
    let stop = &spec.workload.stop;
    match (spec.duration, stop.after) {
        (Some(asked), Some(after)) => {
            let note = format!(
                "the workload ends after {after}, as its `stop` says: a duration of {asked} cannot \
                 lengthen it"
            );
            (Some(asked.min(after)), (asked > after).then_some(note))
        }
        (None, None) if stop.groups.is_empty() && stop.requests.is_empty() => {
            let mut tasks = spec.workload.groups.iter();
            let is_endless = |group: &&Group| !group.background && is_endless(&group.body);
            let Some(endless) = tasks.find(is_endless) else {
                return (None, None);
            };
            let note = format!(
                "nothing says when the run ends, and `{}` never does: it ends after \
                 {MOST_WITHOUT_END} at the latest; a duration or the workload's `stop` can say \
                 otherwise",
                endless.name
            );
            (Some(MOST_WITHOUT_END), Some(note))
        }
        (asked, after) => (asked.or(after), None),
    }
}

/// How long a run lasts of which nothing says when it ends, if something goes on for ever. Without
/// this limit, a load of hogs and no `--duration` would never come back.
const MOST_WITHOUT_END: Nanos = Nanos::from_secs(3_600);

/// What goes on after all tasks have begun to wait for what never comes: interrupts, and threads in
/// the background. Without it such a run is over, because nothing can happen.
fn disturber(spec: &RunSpec) -> Option<&str> {
    let mut sources = spec.workload.interrupts.iter();
    let source = sources.find(|source| source.arrival != Arrival::Once);
    let thread = || spec.machine.profile.background().first();
    source
        .map(|source| source.name.as_str())
        .or_else(|| thread().map(|thread| thread.name.as_str()))
}

/// Whether a task that does these steps never comes to their end.
fn is_endless(steps: &[Step]) -> bool {
    steps.iter().any(|step| match &step.op {
        Operation::Run(None) | Operation::Loop { count: None, .. } => true,
        Operation::Loop { body, .. } | Operation::While { body, .. } => is_endless(body),
        Operation::If {
            then, otherwise, ..
        } => is_endless(then) || is_endless(otherwise),
        Operation::Choose(ways) => ways.iter().any(|(_, way)| is_endless(way)),
        _ => false,
    })
}

//! The simulated machine: runs the very object that a kernel would load, on simulated CPUs, with
//! the same events every time.
//!
//! [`run`] is the door. Behind it, a [`model::RunSpec`] becomes an object machine (crate `bpf`),
//! a workload in execution ([`work`]) and a machine that turns both (`machine.rs` leads on). The
//! rules are those of Linux 6.18's `kernel/sched/ext.c`; docs/fidelity.md says, rule by rule, what
//! is exact, what is approximated and what is left out.
//!
//! No clock, environment, thread or hash order reaches a run.

#![forbid(unsafe_code)]

mod attach;
mod change;
pub mod costs;
mod cpu;
mod dispatch;
mod drive;
mod dsq;
mod enqueue;
mod flags;
mod host;
mod idle;
mod kernel_types;
mod kfunc;
mod kick;
mod life;
mod machine;
mod mask;
mod mirror;
mod ops;
mod profile;
mod queue;
mod rt;
mod sched;
mod sorted;
mod tally;
mod target;
mod task;
mod version;
mod view;
mod wake;
mod watchdog;
pub mod work;

use std::collections::BTreeMap;
use std::sync::Arc;

pub use bpf::Backend;
use bpf::{Config, Image, Instance, InstanceError, LoadError, Object, SetError};
use model::{CpuId, EventMask, MachineSpec, RunSpec, SimTime, Sink, Summary};

use crate::machine::{Machine, Parts, Vm};
use crate::mirror::Mirror;
pub use crate::mirror::MirrorError;
use crate::ops::Ops;
pub use crate::ops::OpsError;
pub use crate::profile::Costs;
use crate::queue::Pending;
pub use crate::tally::Tally;
pub use crate::target::{host_functions, target};
use crate::view::Audience;
pub use crate::view::{Queue, View, Watcher};
use crate::work::{Work, WorkError};

/// Most CPUs that a machine may have.
pub const MAX_CPUS: u16 = 1024;

/// Why a run cannot be made, or cannot go on. A policy that misbehaves is no error: its run ends
/// with an [`model::Exit`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The object cannot be loaded.
    #[error("policy `{policy}`")]
    Load {
        /// The policy.
        policy: String,
        /// Why.
        source: Box<LoadError>,
    },
    /// A knob or variable cannot be set.
    #[error("policy `{policy}`")]
    Set {
        /// The policy.
        policy: String,
        /// Why.
        source: Box<SetError>,
    },
    /// The object cannot be made ready to run.
    #[error("policy `{policy}`")]
    Instance {
        /// The policy.
        policy: String,
        /// Why.
        source: Box<InstanceError>,
    },
    /// A kernel would refuse to attach the table of callbacks.
    #[error("policy `{policy}`")]
    Ops {
        /// The policy.
        policy: String,
        /// Why.
        source: OpsError,
    },
    /// The workload cannot go on.
    #[error(transparent)]
    Work(#[from] WorkError),
    /// The mirrors of kernel objects cannot be made.
    #[error(transparent)]
    Mirror(#[from] MirrorError),
    /// The tasks need more memory than the region of kernel objects has.
    #[error("too many tasks")]
    Memory(#[from] bpf::OutOfMemory),
    /// A machine that cannot be.
    #[error("{what} is {value}; expected {expected}")]
    Machine {
        /// Which property.
        what: &'static str,
        /// What was asked for.
        value: u64,
        /// What there is.
        expected: &'static str,
    },
}

/// Checks that the machine can be simulated.
///
/// # Errors
/// [`Error::Machine`] names the property and what it may be.
pub fn check_machine(machine: &MachineSpec) -> Result<(), Error> {
    let wrong = |what, value: u64, expected| {
        Err(Error::Machine {
            what,
            value,
            expected,
        })
    };
    if !(1..=MAX_CPUS).contains(&machine.cpus) {
        return wrong("the number of CPUs", machine.cpus.into(), "1 to 1024");
    }
    if ![100, 250, 300, 1000].contains(&machine.hz) {
        return wrong("HZ", machine.hz.into(), "100, 250, 300 or 1000");
    }
    if ![1, 2].contains(&machine.smt) {
        return wrong(
            "the number of threads of a core",
            machine.smt.into(),
            "1 or 2",
        );
    }
    if !machine.cpus.is_multiple_of(machine.smt) {
        return wrong(
            "the number of CPUs",
            machine.cpus.into(),
            "a multiple of the threads a core",
        );
    }
    Ok(())
}

/// Runs a policy on a workload. The events go to `sink`, what else is left is the summary.
///
/// The result is a function of `spec` alone.
///
/// # Errors
/// If the object, the workload or the machine is no good. A policy that misbehaves ends with an
/// [`model::Exit`] in the summary.
pub fn run(spec: &RunSpec, sink: &mut dyn Sink) -> Result<Summary, Error> {
    run_with(spec, sink, Options::default())
}

/// How a run is computed. Nothing of it changes the result of a policy whose callbacks end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// What executes the policy's programs.
    pub backend: Backend,
    /// Instructions after which a callback is taken for an endless loop; `None`: as many as no
    /// sane policy needs.
    pub budget: Option<u64>,
}

/// As [`run`], computed as `options` say.
///
/// # Errors
/// As [`run`]; also if a back end is demanded that cannot execute the policy.
pub fn run_with(spec: &RunSpec, sink: &mut dyn Sink, options: Options) -> Result<Summary, Error> {
    run_before(spec, Audience::Listens(sink), options, false).map(|(summary, _)| summary)
}

/// As [`run`], and says what the callbacks did, each under its kernel's name.
///
/// # Errors
/// As [`run`].
pub fn run_tallied(
    spec: &RunSpec,
    sink: &mut dyn Sink,
) -> Result<(Summary, BTreeMap<&'static str, Tally>), Error> {
    run_before(spec, Audience::Listens(sink), Options::default(), true)
}

/// As [`run`], with somebody who looks into the machine between events.
///
/// # Errors
/// As [`run`].
pub fn run_watched(spec: &RunSpec, watcher: &mut dyn Watcher) -> Result<Summary, Error> {
    let audience = Audience::Watches(watcher);
    run_before(spec, audience, Options::default(), false).map(|(summary, _)| summary)
}

fn run_before(
    spec: &RunSpec,
    mut audience: Audience<'_>,
    options: Options,
    tally: bool,
) -> Result<(Summary, BTreeMap<&'static str, Tally>), Error> {
    check_machine(&spec.machine)?;
    let (mut machine, mut vm) = assemble(spec, audience.sink().wants(), options, tally)?;
    let duration = match (spec.duration, machine.work.duration()) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    };
    let header = spec
        .workload
        .header(&spec.policy.name, &spec.machine, spec.seed, duration);
    audience.sink().begin(&header);
    if let Some(duration) = duration {
        machine.end_at(duration);
    }
    for birth in machine.work.initial() {
        machine.create(&mut vm, &birth)?;
    }
    for (source, cpu, time) in machine.work.interrupts() {
        machine.queue.push(time, cpu, Pending::Interrupt { source });
    }
    machine
        .queue
        .push(SimTime::ZERO + spec.attach_after, CpuId(0), Pending::Attach);
    machine.run(&mut vm, &mut audience)?;
    if let Some(error) = machine.work_error.take() {
        return Err(error.into());
    }
    // Detaching calls the policy, too, and that is no part of the run.
    let tally = machine.tally.take().unwrap_or_default();
    Ok((finish(&mut machine, &mut vm, audience.sink()), tally))
}

/// Loads the object and builds the machine around it.
fn assemble(
    spec: &RunSpec,
    wants: EventMask,
    options: Options,
    tally: bool,
) -> Result<(Machine, Vm), Error> {
    let policy = || spec.policy.name.clone();
    let target = target(&spec.machine);
    let image = load(spec, &target)?;
    let ops =
        Ops::of(&image, spec.policy.table.as_deref(), spec.machine.kernel).map_err(|source| {
            Error::Ops {
                policy: policy(),
                source,
            }
        })?;
    let usual = Config::default();
    let is_ideal = Costs::of(spec.machine.profile).is_none();
    let config = Config {
        cpus: u32::from(spec.machine.cpus),
        backend: options.backend,
        tally,
        builtin_cost_ps: if is_ideal {
            |_| 0
        } else {
            |name| Costs::of_function(name)
        },
        budget: options.budget.unwrap_or(usual.budget),
        ..usual
    };
    let mut functions = kfunc::table();
    if !is_ideal {
        for function in &mut functions {
            function.cost_ps = Costs::of_function(function.name);
        }
    }
    let mut vm =
        Instance::new(Arc::new(image), &functions, config).map_err(|source| Error::Instance {
            policy: policy(),
            source: Box::new(source),
        })?;
    let mirror = Mirror::new(&target, &spec.machine, &mut vm)?;
    let work = Work::new(Arc::clone(&spec.workload), spec.machine.cpus, spec.seed)?;
    let machine = Machine::new(Parts {
        spec: spec.machine.clone(),
        workload: Arc::clone(&spec.workload),
        seed: spec.seed,
        tie_seed: spec.tie_seed,
        ops,
        mirror,
        work,
        wants,
        tally,
    });
    Ok((machine, vm))
}

fn load(spec: &RunSpec, target: &bpf::Target) -> Result<Image, Error> {
    let policy = || spec.policy.name.clone();
    let load = |source| Error::Load {
        policy: policy(),
        source: Box::new(source),
    };
    let object = Object::parse(&spec.policy.object).map_err(load)?;
    let mut image = object.link(target).map_err(load)?;
    for (name, value) in &spec.policy.set {
        image.set_global(name, value).map_err(|source| Error::Set {
            policy: policy(),
            source: Box::new(source),
        })?;
    }
    Ok(image)
}

/// Detaches the policy, closes the books and hands the last events over.
fn finish(machine: &mut Machine, vm: &mut Vm, sink: &mut dyn Sink) -> Summary {
    machine.close_books();
    let exit = machine.detach(vm);
    sink.events(machine.recorded());
    machine.recorded().clear();
    let end = machine.now;
    sink.finish(end);
    Summary {
        end,
        exit,
        cpus: machine.cpus.iter().map(|cpu| cpu.times).collect(),
        tasks: machine.tasks.iter().map(|task| task.times).collect(),
        counters: machine.counters.named(machine.spec.kernel),
        policy_counters: policy_counters(vm),
        printed: std::mem::take(&mut machine.printed),
        instructions: vm.retired(),
        callbacks: machine.callbacks,
        notes: std::mem::take(&mut machine.notes),
    }
}

/// Reads the counters that the policy keeps (policies/include/report.bpf.h): a per-CPU array of
/// them, and their names in a table of 32 bytes each.
fn policy_counters(vm: &mut Vm) -> Vec<(String, u64)> {
    const NAME_LEN: u64 = 32;
    let Some(map) = vm.map_by_name("runslice_counters") else {
        return Vec::new();
    };
    let Some((names, size)) = vm.symbol_address("runslice_counter_names") else {
        return Vec::new();
    };
    (0..size / NAME_LEN as u32)
        .filter_map(|index| {
            let at = names + u64::from(index) * NAME_LEN;
            let bytes = vm.memory().bytes(at, NAME_LEN)?;
            let name = bytes.split(|&byte| byte == 0).next().unwrap_or_default();
            let name = String::from_utf8_lossy(name).into_owned();
            Some((name, vm.map_sum(map, &index.to_le_bytes(), 0)?))
        })
        .collect()
}

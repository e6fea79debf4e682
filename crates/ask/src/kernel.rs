//! The kernels that can be simulated, as an object meets them.

use std::sync::Arc;

use bpf::{
    Config, Image, Instance, InstanceError, LoadError, MissingFunction, Object, Stop,
    StructOpsProblem,
};
use model::{Advised, Kernel, MachineSpec, PolicySpec};

use crate::error::{UsageError, advised, of_run};

/// The kernels that `check` speaks of: one of either kind of interface. `make kernels` asks all.
pub const CHECKED: [Kernel; 2] = [Kernel::V6_18, Kernel::V7_2];

/// The kernels that `check` speaks of to whoever has this object: of one whose table of callbacks
/// is of a type that came later, those that have it.
#[must_use]
pub fn checked(object: &Object) -> Vec<Kernel> {
    const NEWEST: Kernel = Kernel::ALL[Kernel::ALL.len() - 1];
    let problem = |kernel| match link(object, kernel) {
        Err(LoadError::StructOps { problem, .. }) => Some(problem),
        _ => None,
    };
    let [oldest, newer] = CHECKED;
    if !matches!(problem(oldest), Some(StructOpsProblem::UnknownType(_))) {
        return CHECKED.to_vec();
    }
    let mut later = vec![newer, NEWEST];
    later.retain(|kernel| problem(*kernel).is_none());
    if later.is_empty() {
        return CHECKED.to_vec();
    }
    later
}

/// Reads a kernel's version, such as `6.18`.
///
/// # Errors
/// When that kernel cannot be simulated; the message says which can.
pub fn parse(text: &str) -> Result<Kernel, String> {
    let found = Kernel::ALL.into_iter().find(|kernel| kernel.name() == text);
    found.ok_or_else(|| {
        let names = Kernel::ALL.map(Kernel::name).join(", ");
        format!("there are: {names}")
    })
}

/// Binds an object to `kernel`.
///
/// # Errors
/// When it is no object, or the kernel lacks what it needs.
pub fn link(object: &Object, kernel: Kernel) -> Result<Image, LoadError> {
    object.link(&sim::target(&machine_of(kernel)))
}

fn machine_of(kernel: Kernel) -> MachineSpec {
    MachineSpec {
        kernel,
        ..MachineSpec::default()
    }
}

/// Whether the policy is told topological numbers (cids) where others are told CPUs.
#[must_use]
pub fn has_cids(policy: &PolicySpec) -> bool {
    let image = sim::image(policy, &machine_of(Kernel::V7_3));
    let is_cid_form = |image: Image| {
        let mut tables = image.struct_ops.iter();
        tables.any(|it| it.type_name == "sched_ext_ops_cid")
    };
    image.is_ok_and(is_cid_form)
}

/// Why `kernel` does not load the policy, or lacks a function that its callbacks can come to;
/// `None`: it has all.
#[must_use]
pub fn unloadable(policy: &PolicySpec, kernel: Kernel) -> Option<Advised> {
    match sim::image(policy, &machine_of(kernel)) {
        Err(error) => Some(advised(&of_run(error))),
        Ok(image) if image.struct_ops.is_empty() => Some(Advised::new(
            "no policy, since it has no table of callbacks",
            "write one with SCX_OPS_DEFINE or POLICY",
        )),
        Ok(image) => {
            let reached = image.reached();
            let first = *reached.poisons.first()?;
            let what = image.poisons.get(first).cloned().unwrap_or_default();
            Some(Advised { what, advice: None })
        }
    }
}

/// Whether a program was stopped with `message` because `kernel` lacks what it called or read.
#[must_use]
pub fn lacks(policy: &PolicySpec, kernel: Kernel, message: &str) -> bool {
    let Ok(image) = sim::image(policy, &machine_of(kernel)) else {
        return false;
    };
    image.poisons.iter().any(|it| it == message)
        || (image.imports.iter()).any(|it| message == Stop::not_simulated(&it.name).to_string())
}

/// Refuses settings that no kernel takes: an unknown knob, or a value out of its range.
///
/// # Errors
/// What is wrong with the setting.
pub fn check_settings(policy: &PolicySpec) -> anyhow::Result<()> {
    match sim::image(policy, &machine_of(Kernel::default())).map_err(of_run) {
        Err(error) if error.is::<UsageError>() => Err(error),
        _ => Ok(()),
    }
}

/// What to try where `kernel` lacks something that the object asks for and others have: `None` if
/// it has all, or no kernel has.
pub fn elsewhere(object: &[u8], kernel: Kernel) -> Option<String> {
    let object = Object::parse(object).ok()?;
    let has_all = |kernel: &Kernel| {
        let image = link(&object, *kernel);
        image.is_ok_and(|it| it.poisons.is_empty() && missing(&it).is_ok_and(|it| it.is_empty()))
    };
    if has_all(&kernel) {
        return None;
    }
    let others = Kernel::ALL.into_iter().filter(has_all);
    let names: Vec<&str> = others.map(Kernel::name).collect();
    let last = names.last()?;
    let (all, own) = (names.join(", "), kernel.name());
    Some(format!(
        "kernel {own} lacks what it calls, try --kernel {last} (it runs on {all})"
    ))
}

/// The functions that the object calls and the simulated kernel does not offer.
///
/// # Errors
/// When the object cannot be made ready to run for another reason.
pub fn missing(image: &Image) -> Result<Vec<MissingFunction>, InstanceError> {
    let instance = Instance::new(
        Arc::new(image.clone()),
        &sim::host_functions(),
        Config::default(),
    );
    match instance {
        Ok(_) => Ok(Vec::new()),
        Err(InstanceError::Missing(missing)) => Ok(missing),
        Err(error) => Err(error),
    }
}

//! The kernels that can be simulated, as an object meets them.

use std::sync::Arc;

use bpf::{
    Config, Image, Instance, InstanceError, LoadError, MissingFunction, Object, StructOpsProblem,
};
use model::{Kernel, MachineSpec, PolicySpec};

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

/// Why `kernel` does not load the policy, or lacks a function that its callbacks can come to;
/// `None`: it has all.
#[must_use]
pub fn unloadable(policy: &PolicySpec, kernel: Kernel) -> Option<String> {
    match sim::image(policy, &machine_of(kernel)) {
        Err(error) => Some(crate::error::words(&crate::error::of_run(error))),
        Ok(image) => {
            let reached = image.reached();
            let first = *reached.poisons.first()?;
            Some(image.poisons.get(first).cloned().unwrap_or_default())
        }
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

//! Which function stands behind each function that an object calls.

use std::collections::BTreeSet;

use crate::config::Config;
use crate::host::{Binding, Host, HostFunction, only_ends};
use crate::instance_error::{InstanceError, MissingFunction};
use crate::intrinsic::Intrinsic;
use crate::reach;
use crate::{Image, Import};

/// Finds every import in `table`, then among `builtins`, the machine's own functions. One that
/// nobody offers and only programs call that no host calls ends the program that reaches it.
pub(crate) fn bind<H: Host>(
    image: &Image,
    table: &[HostFunction<H>],
    builtins: &[HostFunction<H>],
    config: &Config,
) -> Result<Vec<Binding<H>>, InstanceError> {
    let mut bindings = Vec::with_capacity(image.imports.len());
    let mut missing = Vec::new();
    let called = reach::called(image);
    let names: BTreeSet<&str> = called
        .iter()
        .map(|function| &*image.functions[*function as usize].name)
        .collect();
    let is_called = |import: &Import| {
        let callers = &import.callers;
        callers.is_empty() || callers.iter().any(|caller| names.contains(&**caller))
    };
    for import in &image.imports {
        match find(import, table, builtins, config) {
            // Both short cuts of native code pass the counter by.
            Some(binding) if config.tally => bindings.push(Binding {
                direct: None,
                intrinsic: None,
                ..binding
            }),
            Some(binding) => bindings.push(binding),
            None => {
                bindings.push(Binding::absent());
                if is_called(import) {
                    missing.push(describe(import, table.iter().chain(builtins)));
                }
            }
        }
    }
    if missing.is_empty() || config.lenient {
        return Ok(bindings);
    }
    Err(InstanceError::Missing(missing))
}

/// What `import` stands for; `None` if nobody offers it.
pub(crate) fn find<H: Host>(
    import: &Import,
    table: &[HostFunction<H>],
    builtins: &[HostFunction<H>],
    config: &Config,
) -> Option<Binding<H>> {
    let wanted = |function: &&HostFunction<H>| function.body.is_some() && matches(function, import);
    let binding = |function: &HostFunction<H>, intrinsic| Binding {
        body: function.body,
        cost_ps: function.cost_ps,
        given: None,
        direct: function.direct,
        calls: 0,
        intrinsic,
        ends: only_ends(function.name),
    };
    if let Some(function) = table.iter().find(wanted) {
        return Some(binding(function, of_host::<H>(function.name)));
    }
    let function = builtins.iter().find(wanted)?;
    let intrinsic = Intrinsic::of_builtin(function.name);
    let intrinsic = intrinsic.filter(|it| *it != Intrinsic::Clock || !config.moving_clock);
    Some(binding(function, intrinsic))
}

/// What native code has built in for a function of the host.
fn of_host<H: Host>(name: &str) -> Option<Intrinsic> {
    let is_clock = H::clock_functions().contains(&name);
    is_clock.then_some(Intrinsic::Clock)
}

fn matches<H: Host>(function: &HostFunction<H>, import: &Import) -> bool {
    function.name == import.name && function.prototype == import.prototype
}

fn describe<'a, H: Host + 'a>(
    import: &Import,
    offers: impl Iterator<Item = &'a HostFunction<H>>,
) -> MissingFunction {
    let namesakes = offers.filter(|function| function.name == import.name);
    let others = namesakes.map(|function| function.prototype);
    MissingFunction {
        name: import.name.clone(),
        prototype: import.prototype.clone(),
        offered: others
            .filter(|prototype| *prototype != import.prototype)
            .collect(),
        callers: import.callers.clone(),
    }
}

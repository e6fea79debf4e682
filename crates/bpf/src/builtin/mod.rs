//! Functions of the kernel that know no scheduling, by name and prototype.
//!
//! A host may offer its own under the same name; that one is taken.

#[macro_use]
mod line;
mod arena;
mod iterate;
mod maps;
mod memory;
mod objects;
mod print;
mod queues;
mod ringbuf;
mod sections;
mod storage;
mod timers;
mod world;

use crate::config::Prices;
use crate::host::{Host, HostFunction};
#[cfg(feature = "jit")]
pub(crate) use iterate::MAX_TURNS;
use line::Line;

/// All built-in functions, each with its price.
pub(crate) fn table<H: Host>(prices: &Prices) -> Vec<HostFunction<H>> {
    let lines = [
        &maps::table::<H>()[..],
        &queues::table(),
        &storage::table(),
        &timers::table(),
        &world::table(),
        &memory::table(),
        &sections::table(),
        &print::table(),
        &ringbuf::table(),
        &iterate::table(),
        &arena::table(),
        &objects::table(),
    ]
    .concat();
    let function = |(name, prototype, body, direct): Line<H>| HostFunction {
        name,
        prototype,
        cost_ps: prices.of(name),
        body: Some(body),
        direct: Some(direct),
    };
    lines.into_iter().map(function).collect()
}

/// Every test runs on both back ends.
#[cfg(test)]
#[path = "."]
mod interpreted {
    const BACKEND: crate::Backend = crate::Backend::Interpreter;

    #[path = "tests.rs"]
    mod tests;

    #[path = "objects_tests.rs"]
    mod objects_tests;
}

#[cfg(all(test, feature = "jit"))]
#[path = "."]
mod native {
    const BACKEND: crate::Backend = crate::Backend::Jit;

    #[expect(clippy::duplicate_mod, reason = "the same tests with another back end")]
    #[path = "tests.rs"]
    mod tests;

    #[expect(clippy::duplicate_mod, reason = "the same tests with another back end")]
    #[path = "objects_tests.rs"]
    mod objects_tests;
}

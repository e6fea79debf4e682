//! Functions of the kernel that know no scheduling, by name and prototype.
//!
//! A host may offer its own under the same name; that one is taken.

/// Lines of a table, each of name, prototype and body.
macro_rules! lines {
    ($(($name:literal, $prototype:literal, $body:path $(,)?)),+ $(,)?) => {
        [$(($name, $prototype, $body, $crate::Direct::of($body))),+]
    };
}

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

use crate::host::{Body, Host, HostFunction, Stop};
use crate::map::hash::InsertError;
use crate::{Direct, Prices};

use crate::{Errno, Instance};
#[cfg(feature = "jit")]
pub(crate) use iterate::MAX_TURNS;

/// A line of a table of functions: name, prototype (empty for helpers), body, twice.
type Line<H> = (&'static str, &'static str, Body<H>, Direct<H>);

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

/// Bytes that a program points to, for reading.
///
/// A verifier makes sure that they exist, so a pointer elsewhere is misuse.
fn argument<'a, H: Host>(
    vm: &'a mut Instance<H>,
    address: u64,
    len: u64,
    what: &str,
) -> Result<&'a [u8], Stop> {
    vm.spend(len);
    let refused = || Stop::Refused(format!("{what} at {address:#x} lies outside memory"));
    vm.memory.bytes(address, len).ok_or_else(refused)
}

/// Writes bytes where a program wants them, if it may write there.
#[inline]
fn deliver<H: Host>(vm: &mut Instance<H>, address: u64, bytes: &[u8]) -> Result<(), Stop> {
    vm.spend(bytes.len() as u64);
    if vm.memory.store_bytes(address, bytes) {
        return Ok(());
    }
    deliver_elsewhere(vm, address, bytes)
}

/// [`deliver`], but not into plain writable memory.
#[cold]
fn deliver_elsewhere<H: Host>(
    vm: &mut Instance<H>,
    address: u64,
    bytes: &[u8],
) -> Result<(), Stop> {
    use crate::memory::Verdict;
    match vm.memory.verdict(address, bytes.len() as u64) {
        Verdict::Allowed => vm.memory.write(address, bytes),
        Verdict::Dropped => {}
        Verdict::Protected | Verdict::Wild => {
            let size = u8::try_from(bytes.len()).unwrap_or(u8::MAX);
            return Err(Stop::WildStore { address, size });
        }
    }
    Ok(())
}

impl<H: Host> Instance<H> {
    /// Writes what a program asked for to where it pointed, if it may write there.
    ///
    /// # Errors
    /// [`Stop::WildStore`] if it may not.
    #[inline]
    pub fn deliver(&mut self, address: u64, bytes: &[u8]) -> Result<(), Stop> {
        deliver(self, address, bytes)
    }
}

/// What a program sees of an insertion: the cap on map memory looks like a kernel out of memory.
const fn inserted(result: &Result<(), InsertError>) -> u64 {
    match result {
        Ok(()) => 0,
        Err(InsertError::Errno(errno)) => errno.to_r0(),
        Err(InsertError::Memory(_)) => Errno::ENOMEM.to_r0(),
    }
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

//! What the tables share: their lines, and what programs point to.

use crate::host::{Body, Direct, Host};
use crate::map::hash::InsertError;
use crate::memory::StoreVerdict;
use crate::stop::Stop;
use crate::{Errno, Instance};

/// Lines of a table, each of name, prototype and body.
macro_rules! lines {
    ($(($name:literal, $prototype:literal, $body:path $(,)?)),+ $(,)?) => {
        [$(($name, $prototype, $body, $crate::Direct::of($body))),+]
    };
}

/// A line of a table of functions: name, prototype (empty for helpers), body, twice.
pub(super) type Line<H> = (&'static str, &'static str, Body<H>, Direct<H>);

/// Buffers of programs are small; more is misuse, and must not make us allocate.
pub(super) const MAX_BUFFER: u64 = 1 << 20;

/// The size of a buffer.
pub(super) fn buffer(size: u64) -> Result<usize, Stop> {
    match size {
        0..=MAX_BUFFER => Ok(size as usize),
        _ => Err(Stop::Refused(format!("a buffer of {size} bytes"))),
    }
}

/// Bytes that a program points to, for reading.
///
/// A verifier makes sure that they exist, so a pointer elsewhere is misuse.
pub(super) fn argument<'a, H: Host>(
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
pub(super) fn deliver<H: Host>(
    vm: &mut Instance<H>,
    address: u64,
    bytes: &[u8],
) -> Result<(), Stop> {
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
    match vm.memory.verdict(address, bytes.len() as u64) {
        StoreVerdict::Allowed => vm.memory.write(address, bytes),
        StoreVerdict::Dropped => {}
        StoreVerdict::Protected | StoreVerdict::Wild => {
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

/// What a program sees of an insertion. One that the limit on memory refuses ends the program
/// before it sees anything ([`Memory::within_limit`](crate::Memory::within_limit)); what else has
/// no memory looks like a kernel out of memory.
pub(super) const fn inserted(result: &Result<(), InsertError>) -> u64 {
    match result {
        Ok(()) => 0,
        Err(InsertError::Errno(errno)) => errno.to_r0(),
        Err(InsertError::Memory(_)) => Errno::ENOMEM.to_r0(),
    }
}

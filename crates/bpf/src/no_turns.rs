//! In place of turns that wait, on platforms with one stack.

use std::marker::PhantomData;

use crate::host::Host;
use crate::instance::Instance;
use crate::memory::OutOfMemory;

/// Turns of a host, each of which ends when it begins.
pub struct TurnStacks<H: Host + 'static>(PhantomData<fn(H)>);

impl<H: Host + 'static> TurnStacks<H> {
    /// Whether there are stacks to wait on.
    pub const EXIST: bool = false;

    /// No turns.
    ///
    /// # Errors
    /// None.
    pub fn new(_: &mut Instance<H>, _: usize) -> Result<Self, OutOfMemory> {
        Ok(Self(PhantomData))
    }

    /// Does `body` to its end.
    pub fn begin(
        &mut self,
        _: usize,
        (host, vm): (&mut H, &mut Instance<H>),
        body: impl FnOnce(&mut H, &mut Instance<H>) + 'static,
    ) -> bool {
        body(host, vm);
        true
    }

    /// No turn waits.
    ///
    /// # Panics
    /// Always.
    pub fn resume(&mut self, number: usize, _: (&mut H, &mut Instance<H>)) -> bool {
        panic!("turn {number} does not wait")
    }
}

impl<H: Host + 'static> Instance<H> {
    /// Whether [`Instance::suspend`] would wait.
    #[must_use]
    pub const fn is_in_turn(&self) -> bool {
        false
    }

    /// Does nothing.
    pub fn suspend(&mut self, _: &mut H) {}
}

//! In place of the native back end, when runslice is built without it.

use crate::backend::{Execution, Refusal};
use crate::interp::Trap;
use crate::{CallCtx, Host, Instance, Stop};

/// Native code. There is none.
#[derive(Debug)]
pub(crate) enum Program {}

/// A host function as native code calls it. Nothing calls it.
pub struct Direct<H: Host>(std::marker::PhantomData<fn(H)>);

impl<H: Host> Direct<H> {
    /// From the name of a function, or a closure that captures nothing.
    #[must_use]
    pub const fn of<F>(_: F) -> Self
    where
        F: Fn(&mut CallCtx<'_, H>, [u64; 5]) -> Result<u64, Stop> + Copy,
    {
        const { assert!(size_of::<F>() == 0, "the body must be known by its type") };
        Self(std::marker::PhantomData)
    }
}

impl<H: Host> Clone for Direct<H> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<H: Host> Copy for Direct<H> {}

impl<H: Host> std::fmt::Debug for Direct<H> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Direct")
    }
}

/// Where a function's native code begins.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Entry {}

impl Program {
    pub(crate) const fn size(&self) -> Execution {
        match *self {}
    }

    pub(crate) const fn entries(&self) -> &[Option<Entry>] {
        match *self {}
    }

    pub(crate) const fn entry(&self, _: u32) -> Option<Entry> {
        match *self {}
    }
}

/// What native code needs while it runs.
#[derive(Debug, Default)]
pub(crate) struct Scratch;

impl Scratch {
    pub(crate) const fn has_room(&self) -> bool {
        false
    }

    pub(crate) const fn limit_frames(&mut self, _: u64) {}
}

pub(crate) fn translate<H: Host>(_: &Instance<H>) -> Result<Program, Refusal> {
    Err(Refusal::NotBuilt)
}

pub(crate) fn run<H: Host>(
    _: &mut Instance<H>,
    _: &mut H,
    entry: Entry,
    _: u32,
    _: [u64; 5],
) -> Result<u64, Trap> {
    match entry {}
}

pub(crate) fn run_outermost<H: Host>(
    _: &mut Instance<H>,
    _: &mut H,
    entry: Entry,
    _: u64,
) -> Option<u64> {
    match entry {}
}

pub(crate) fn trap_outermost<H: Host>(_: &Instance<H>) -> Trap {
    unreachable!("there is no native code that could have stopped")
}

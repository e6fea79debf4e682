//! In place of the native back end, when runslice is built without it.

use crate::backend::{Execution, Refusal};
use crate::interp::Trap;
use crate::{Host, Instance};

/// Native code. There is none.
#[derive(Debug)]
pub(crate) enum Program {}

/// Where a function's native code begins.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Entry {}

impl Program {
    pub(crate) const fn size(&self) -> Execution {
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

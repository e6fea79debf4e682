//! In place of the native back end, when runslice is built without it.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::backend::{Execution, Refusal};
use crate::frame::Trap;
use crate::{Host, Instance, Memory};

/// Native code. There is none.
#[derive(Debug)]
pub(crate) enum NativeProgram {}

/// A host function as native code calls it. Nothing calls it.
pub(crate) type HostEntry<H> = std::marker::PhantomData<fn(H)>;

pub(crate) const fn host_entry<H, F: Copy>(_: F) -> HostEntry<H> {
    std::marker::PhantomData
}

/// Where a function's native code begins.
#[derive(Clone, Copy, Debug)]
pub(crate) enum NativeEntry {}

/// How an outermost call of a function begins.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ProgramEntry {}

impl NativeProgram {
    pub(crate) const fn size(&self) -> Execution {
        match *self {}
    }

    pub(crate) const fn has(&self, _: &BTreeSet<u32>) -> bool {
        match *self {}
    }

    pub(crate) fn program_entries<H: Host>(&self) -> Box<[ProgramEntry]> {
        match *self {}
    }

    pub(crate) const fn entry(&self, _: u32, _: &[u64; 5], _: &Memory) -> Option<NativeEntry> {
        match *self {}
    }
}

/// What native code needs while it runs.
#[derive(Debug, Default)]
pub(crate) struct Scratch(());

impl Scratch {
    pub(crate) const fn has_room(&self) -> bool {
        false
    }

    pub(crate) const fn rest(&mut self, _: u64) {}
}

pub(crate) fn translate<H: Host>(
    _: &Instance<H>,
    _: &BTreeSet<u32>,
) -> Result<Arc<NativeProgram>, Refusal> {
    Err(Refusal::NotBuilt)
}

/// What others have made of the same code: nothing.
#[derive(Debug, Default)]
pub(crate) struct KnownCode {
    pub(crate) program: Option<Arc<NativeProgram>>,
    pub(crate) interpreted: u64,
}

pub(crate) fn known<H: Host>(_: &Instance<H>, _: &BTreeSet<u32>) -> KnownCode {
    KnownCode::default()
}

pub(crate) const fn remember<H: Host>(_: &Instance<H>, _: u64) {}

pub(crate) fn run<H: Host>(
    _: &mut Instance<H>,
    _: &mut H,
    entry: NativeEntry,
    _: u32,
    _: [u64; 5],
) -> Result<u64, Trap> {
    match entry {}
}

pub(crate) fn put_arguments<H: Host>(vm: &mut Instance<H>, context: u64, args: &[u64]) {
    vm.memory.put_words(context, args);
}

pub(crate) fn run_outermost<H: Host>(
    _: &mut Instance<H>,
    _: &mut H,
    entry: ProgramEntry,
    _: u64,
) -> u64 {
    match entry {}
}

pub(crate) const fn report_stores_behind<H: Host>(_: &Instance<H>, _: &H, value: u64) -> u64 {
    value
}

pub(crate) const fn is_plain<H: Host>(_: &Instance<H>) -> bool {
    true
}

pub(crate) fn settle_outermost<H: Host>(_: &Instance<H>, value: u64) -> Option<Result<u64, Trap>> {
    Some(Ok(value))
}

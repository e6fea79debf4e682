//! How native code is entered, what it shares with Rust, and how it comes back.
//!
//! See `native.rs` about safety.

use std::any::Any;
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::stack::Room;
use crate::{CallCtx, Host, Instance, Stop};

pub(super) type Code = unsafe extern "C" fn(*mut c_void, u64, u64, u64, u64, u64) -> NativeEnding;

/// A program's: it has a context and no other argument.
pub(super) type ProgramCode = unsafe extern "C" fn(*mut c_void, u64) -> NativeEnding;

/// What native code and the functions that it calls return, in two registers. If the program has
/// come to a stop, [`Scratch`] says why.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct NativeEnding {
    /// `r0`, if the program was not stopped.
    pub(super) value: u64,
    /// What is left of the budget, see `Progress::fuel`. [`NO_FUEL`] from a function of the host
    /// that has stopped the program.
    pub(super) fuel: i64,
}

/// Less than any block needs and than any program can have left, so that the budget test behind
/// the call of a host function also finds out whether it has stopped the program.
const NO_FUEL: i64 = i64::MIN;

/// Where a function's native code begins.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NativeEntry(pub(super) Code);

impl NativeEntry {
    /// # Safety
    /// `code` is finished code with the signature of `signature.rs`.
    pub(super) unsafe fn new(code: *const u8) -> Self {
        // SAFETY: The caller says so. A data pointer and a function
        // pointer have the same representation on the processors that there is a translator for.
        Self(unsafe { std::mem::transmute::<*const u8, Code>(code) })
    }
}

/// How an outermost call of a function begins.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProgramEntry(pub(super) ProgramCode);

impl ProgramEntry {
    /// # Safety
    /// `entry` is that of a program, which expects an address in the region as its only argument.
    pub(super) unsafe fn of(entry: NativeEntry) -> Self {
        // SAFETY: Only the parameters differ; the caller says that there are no others.
        Self(unsafe { std::mem::transmute::<Code, ProgramCode>(entry.0) })
    }

    /// For what cannot be called so.
    pub(super) const fn absent<H: Host>() -> Self {
        Self(absent::<H>)
    }
}

/// Why native code returned; 0: because the program ended.
pub(super) mod stop {
    pub(crate) const BUDGET: u32 = 1;
    pub(crate) const POISON: u32 = 2;
    pub(crate) const FRAMES: u32 = 3;
    pub(crate) const HOST: u32 = 4;
    /// The function was not called at all.
    pub(crate) const ABSENT: u32 = 5;
}

/// No operation: the second half of one whose first half has told of its fault.
pub(super) struct Quiet;

impl Quiet {
    /// Stands for no operation.
    pub(super) const OP: usize = u32::MAX as usize;
}

/// What native code needs while it runs, in the instance.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    pub(super) activation: Activation,
    /// The import or helper that is called.
    pub(super) callee: u64,
    /// Why native code returns; 0 while it does not.
    pub(super) stop: u32,
    /// The operation that stopped it.
    pub(super) op: u32,
    /// The operation that accesses the arena slowly; [`Quiet::OP`] if a fault is not to be counted.
    pub(super) arena_op: u32,
    /// What it has loaded.
    pub(super) arena_value: u64,
    /// With [`stop::HOST`].
    pub(super) outcome: Option<NativeOutcome>,
    room: Room,
}

/// A call from Rust into native code; one in another puts the outer one aside.
///
/// Aligned so that clock and CPU do not lie in two lines of the cache, because both may be stored
/// by one instruction.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(16))]
pub(super) struct Activation {
    pub(super) now_ns: u64,
    pub(super) cpu: u64,
    /// Greatest frame pointer with which a function may call another.
    pub(super) frame_limit: u64,
    /// The address of the host, which every call exposes anew.
    pub(super) host: usize,
}

pub(super) enum NativeOutcome {
    Stop(Stop),
    Panic(Box<dyn Any + Send>),
}

// SAFETY: A panic's payload is `Send` and taken out by value; no reference to it is handed out.
unsafe impl Sync for NativeOutcome {}

impl std::fmt::Debug for NativeOutcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Stop(stop) => stop.fmt(f),
            Self::Panic(_) => f.write_str("a panic"),
        }
    }
}

impl Scratch {
    /// Whether this thread's stack has room for native code and what it calls.
    #[inline]
    pub(crate) fn has_room(&mut self) -> bool {
        self.room.is_here()
    }

    /// Prepares `run_outermost`: with which frame pointers functions may call others.
    pub(crate) const fn rest(&mut self, frame_limit: u64) {
        self.activation.frame_limit = frame_limit;
    }
}

impl<H: Host> Instance<H> {
    /// Native code is to return, because of `outcome`.
    #[cold]
    #[inline(never)]
    fn stop_native(&mut self, outcome: NativeOutcome) {
        self.scratch.stop = stop::HOST;
        self.scratch.outcome = Some(outcome);
        self.stack.progress.put_aside();
    }
}

/// Stands in the table of programs for what `run_outermost` cannot run.
unsafe extern "C" fn absent<H: Host>(vm: *mut c_void, _: u64) -> NativeEnding {
    // SAFETY: The pointer is that of `run_outermost`, which does not use the instance meanwhile.
    let vm = unsafe { &mut *vm.cast::<Instance<H>>() };
    vm.scratch.stop = stop::ABSENT;
    vm.stack.progress.put_aside();
    NativeEnding {
        value: 0,
        fuel: vm.stack.progress.fuel,
    }
}

/// Tells the host which of its open words native code has stored into.
#[inline(always)]
pub(super) fn report_stores<H: Host>(vm: &mut Instance<H>, host: &mut H) {
    if vm.memory.open_words.is_waiting() {
        report_waiting(vm, host);
    }
}

/// As [`report_stores`], behind a call that has given `value`, which is handed through: else a
/// register would have to be saved for it at every call.
#[inline(always)]
pub(crate) fn report_stores_behind<H: Host>(vm: &mut Instance<H>, host: &mut H, value: u64) -> u64 {
    if vm.memory.open_words.is_waiting() {
        return report_waiting_behind(vm, host, value);
    }
    value
}

#[inline(never)]
fn report_waiting_behind<H: Host>(vm: &mut Instance<H>, host: &mut H, value: u64) -> u64 {
    report_waiting(vm, host);
    value
}

/// As [`report_stores`], of one or several.
#[inline(always)]
fn report_waiting<H: Host>(vm: &mut Instance<H>, host: &mut H) {
    let waiting = vm.memory.open_words.take();
    if waiting > 1 {
        return report_many(vm, host, waiting);
    }
    let address = vm.memory.open_words.note(0);
    host.word_stored(&mut vm.memory, address);
}

#[cold]
#[inline(never)]
fn report_many<H: Host>(vm: &mut Instance<H>, host: &mut H, waiting: usize) {
    for at in 0..waiting {
        let address = vm.memory.open_words.note(at);
        host.word_stored(&mut vm.memory, address);
    }
}

/// Runs `body` with instance and host; if it fails, native code is told to return.
#[inline]
pub(super) fn leave_native<H: Host>(
    vm: *mut Instance<H>,
    body: impl FnOnce(&mut Instance<H>, &mut H) -> Result<u64, Stop>,
) -> NativeEnding {
    // SAFETY: The pointer is that of `call`, which has the instance borrowed mutably and does not
    // use it before native code returns; the same goes for the host.
    let vm = unsafe { &mut *vm };
    let host = std::ptr::with_exposed_provenance_mut::<H>(vm.scratch.activation.host);
    // SAFETY: As above. The type is that of the call which exposed the address, because all of an
    // instance's native code was made for one `H`.
    let host = unsafe { &mut *host };
    let result = catch_unwind(AssertUnwindSafe(|| {
        report_stores(vm, host);
        // Looked at here, so that two plain words come out of `catch_unwind`.
        match body(vm, host) {
            Ok(value) => (value, vm.stack.progress.fuel),
            Err(stop) => {
                vm.stop_native(NativeOutcome::Stop(stop));
                (0, NO_FUEL)
            }
        }
    }));
    match result {
        Ok((value, fuel)) => NativeEnding { value, fuel },
        Err(panic) => {
            vm.stop_native(NativeOutcome::Panic(panic));
            NativeEnding {
                value: 0,
                fuel: NO_FUEL,
            }
        }
    }
}

/// A host function as native code calls it.
pub(crate) type HostEntry<H> =
    unsafe extern "C" fn(*mut Instance<H>, u64, u64, u64, u64, u64) -> NativeEnding;

/// Made for the one body whose type is `F`, of which there is a value.
pub(crate) const fn host_entry<H, F>(_: F) -> HostEntry<H>
where
    H: Host,
    F: Fn(&mut CallCtx<'_, H>, [u64; 5]) -> Result<u64, Stop> + Copy,
{
    const { assert!(size_of::<F>() == 0, "the body must be known by its type") };
    call_direct::<H, F>
}

/// Calls the host function whose type is `F`.
unsafe extern "C" fn call_direct<H, F>(
    vm: *mut Instance<H>,
    a: u64,
    b: u64,
    c: u64,
    d: u64,
    e: u64,
) -> NativeEnding
where
    H: Host,
    F: Fn(&mut CallCtx<'_, H>, [u64; 5]) -> Result<u64, Stop> + Copy,
{
    // SAFETY: `host_entry` had a value of this type, which has no bytes and can be copied.
    let body = unsafe { std::ptr::NonNull::<F>::dangling().read() };
    leave_native(vm, |vm, host| {
        body(&mut CallCtx { vm, host }, [a, b, c, d, e])
    })
}

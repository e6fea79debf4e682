//! Where native code and Rust meet.
//!
//! Native code gets the address of the instance, and reads and writes those of its fields that
//! [`Offsets`] lists. It calls back into the functions below with the same address. They catch
//! panics of host functions and put them aside; native code sees that `stop` is set, returns, and
//! [`run`] lets the panic go on. So nothing ever unwinds through native frames.
//!
//! # Safety
//!
//! [`run`] has the instance and the host borrowed mutably for as long as native code runs, and does
//! not touch them meanwhile; the functions that native code calls are the only users, one at a
//! time, and each ends before native code goes on. They are called by native code only, with the
//! address that it got.

use std::any::Any;
use std::ffi::c_void;
use std::mem::offset_of;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use super::stack::Room;
use super::words::OpenWords;
use crate::interp::{FRAME_BYTES, MAX_FRAMES, Trap, slow_store};
use crate::nesting::Nesting;
use crate::progress::Progress;
use crate::{CallCtx, Host, Instance, Memory, Stop};

type Code = unsafe extern "C" fn(*mut c_void, u64, u64, u64, u64, u64) -> Ending;

/// A program's: it has a context and no other argument.
type ProgramCode = unsafe extern "C" fn(*mut c_void, u64) -> Ending;

/// What native code and the functions that it calls return, in two registers. If the program has
/// come to a stop, [`Scratch`] says why.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Ending {
    value: u64,
    fuel: i64,
}

impl Ending {
    /// `r0`, if the program was not stopped.
    #[inline]
    pub(crate) const fn value(self) -> u64 {
        self.value
    }

    /// What is left of the budget, see [`Progress::fuel`]. [`NO_FUEL`] from a function of the host
    /// that has stopped the program.
    #[inline]
    pub(crate) const fn fuel(self) -> i64 {
        self.fuel
    }
}

/// Less than any block needs and than any program can have left, so that the budget test behind
/// the call of a host function also finds out whether it has stopped the program.
const NO_FUEL: i64 = i64::MIN;

/// Where a function's native code begins.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry(Code);

impl Entry {
    /// # Safety
    /// `code` is finished code with the signature of [`super::signature`].
    pub(super) unsafe fn new(code: *const u8) -> Self {
        // SAFETY: The caller says so. A data pointer and a function
        // pointer have the same representation on the processors that there is a translator for.
        Self(unsafe { std::mem::transmute::<*const u8, Code>(code) })
    }
}

/// How an outermost call of a function begins.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProgramEntry(ProgramCode);

impl ProgramEntry {
    /// # Safety
    /// `entry` is that of a program, which expects an address in the region as its only argument.
    pub(super) unsafe fn of(entry: Entry) -> Self {
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

/// What native code needs while it runs, in the instance.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    activation: Activation,
    /// The import or helper that is called.
    callee: u64,
    /// Why native code returns; 0 while it does not.
    stop: u32,
    /// The operation that stopped it.
    op: u32,
    /// With [`stop::HOST`].
    outcome: Option<Outcome>,
    room: Room,
    /// Where the context of an outermost call lies in this process.
    context_at: u64,
}

/// A call from Rust into native code; one in another puts the outer one aside.
///
/// Aligned so that clock and CPU do not lie in two lines of the cache, because both may be stored
/// by one instruction.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(16))]
struct Activation {
    now_ns: u64,
    cpu: u64,
    /// Greatest frame pointer with which a function may call another.
    frame_limit: u64,
    /// The address of the host, which every call exposes anew.
    host: usize,
}

enum Outcome {
    Stop(Stop),
    Panic(Box<dyn Any + Send>),
}

// SAFETY: A panic's payload is `Send` and taken out by value; no reference to it is handed out.
unsafe impl Sync for Outcome {}

impl std::fmt::Debug for Outcome {
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

    /// Prepares [`run_outermost`]: with which frame pointers functions may call others, and where
    /// the context lies in this process.
    pub(crate) const fn rest(&mut self, frame_limit: u64, context_at: u64) {
        self.activation.frame_limit = frame_limit;
        self.context_at = context_at;
    }
}

impl<H: Host> Instance<H> {
    /// Native code is to return, because of `outcome`.
    #[cold]
    #[inline(never)]
    fn stop_native(&mut self, outcome: Outcome) {
        self.scratch.stop = stop::HOST;
        self.scratch.outcome = Some(outcome);
        self.progress.put_aside();
    }
}

/// Where native code finds what it shares with Rust, from the address of the instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Offsets {
    pub(super) fuel: i32,
    pub(super) budget_end: i32,
    pub(super) charged_ps: i32,
    pub(super) frame: i32,
    pub(super) untidy: i32,
    pub(super) rcu: i32,
    pub(super) preemption: i32,
    pub(super) frame_limit: i32,
    pub(super) now_ns: i32,
    pub(super) cpu: i32,
    pub(super) callee: i32,
    pub(super) stop: i32,
    pub(super) op: i32,
    pub(super) writable: i32,
    pub(super) delta: i32,
    pub(super) word_flags: i32,
    pub(super) word_count: i32,
    pub(super) words_waiting: i32,
    pub(super) word_notes: i32,
}

impl Offsets {
    pub(super) const fn of<H: Host>() -> Self {
        let progress = offset_of!(Instance<H>, progress);
        let nesting = progress + offset_of!(Progress, nesting);
        let scratch = offset_of!(Instance<H>, scratch);
        let activation = scratch + offset_of!(Scratch, activation);
        let memory = offset_of!(Instance<H>, memory);
        let words = memory + Memory::OPEN_WORDS;
        Self {
            fuel: (progress + offset_of!(Progress, fuel)) as i32,
            budget_end: (progress + offset_of!(Progress, budget_end)) as i32,
            charged_ps: (progress + offset_of!(Progress, charged_ps)) as i32,
            frame: (progress + offset_of!(Progress, frame)) as i32,
            untidy: (progress + offset_of!(Progress, untidy)) as i32,
            rcu: (nesting + offset_of!(Nesting, rcu)) as i32,
            preemption: (nesting + offset_of!(Nesting, preemption)) as i32,
            frame_limit: (activation + offset_of!(Activation, frame_limit)) as i32,
            now_ns: (activation + offset_of!(Activation, now_ns)) as i32,
            cpu: (activation + offset_of!(Activation, cpu)) as i32,
            callee: (scratch + offset_of!(Scratch, callee)) as i32,
            stop: (scratch + offset_of!(Scratch, stop)) as i32,
            op: (scratch + offset_of!(Scratch, op)) as i32,
            writable: (memory + Memory::WRITABLE) as i32,
            delta: (memory + Memory::DELTA) as i32,
            word_flags: (words + OpenWords::FLAGS_AT) as i32,
            word_count: (words + OpenWords::COUNT) as i32,
            words_waiting: (words + OpenWords::WAITING) as i32,
            word_notes: (words + OpenWords::NOTES_AT) as i32,
        }
    }
}

/// Runs a function until it exits. The counterpart of the interpreter's `run`.
#[inline]
pub(crate) fn run<H: Host>(
    vm: &mut Instance<H>,
    host: &mut H,
    entry: Entry,
    function: u32,
    args: [u64; 5],
) -> Result<u64, Trap> {
    let first = vm.first_frame();
    if first + FRAME_BYTES > vm.stack_end {
        return Err(no_stack(vm, function));
    }
    let activation = Activation {
        frame_limit: vm.frame_limit(),
        now_ns: host.now_ns(),
        cpu: host.cpu().into(),
        host: (&raw mut *host).expose_provenance(),
    };
    let outer = std::mem::replace(&mut vm.scratch.activation, activation);
    let outer_frame = std::mem::replace(&mut vm.progress.frame, first);
    let ending = call(vm, entry, args);
    vm.progress.fuel = ending.fuel;
    report_stores(vm, host);
    if vm.depth > 1 {
        vm.scratch.activation = outer;
    }
    let reached = std::mem::replace(&mut vm.progress.frame, outer_frame);
    if vm.scratch.stop == 0 {
        return Ok(ending.value);
    }
    Err(trap(vm, reached - first))
}

/// As [`run`], for the outermost call of a program with a context of `args`, at most as many as
/// fit. [`Progress::fuel`] is the caller's to set; if not [`is_plain`], then [`settle_outermost`]
/// must follow.
///
/// The stack has room for a frame, and [`Scratch::rest`] was called. All else that native code
/// needs is as every call leaves it.
#[inline]
pub(crate) fn run_outermost<H: Host>(
    vm: &mut Instance<H>,
    host: &mut H,
    entry: ProgramEntry,
    context: u64,
    args: &[u64],
) -> Ending {
    let at = std::ptr::with_exposed_provenance_mut::<u64>(vm.scratch.context_at as usize);
    let put = |word: usize, arg: u64| {
        // Volatile, so that they are stored one by one: a larger word that the compiler made of
        // two would have to wait for the two stores by which the caller has just made them.
        // SAFETY: The context lies in the region, which never moves and is borrowed with the
        // instance, is aligned, and has room for all arguments.
        unsafe { at.add(word).write_volatile(arg.to_le()) };
    };
    // Nearly all callbacks have one or two.
    match *args {
        [a] => put(0, a),
        [a, b] => {
            put(0, a);
            put(1, b);
        }
        ref all => all
            .iter()
            .enumerate()
            .for_each(|(word, arg)| put(word, *arg)),
    }
    let activation = &mut vm.scratch.activation;
    activation.now_ns = host.now_ns();
    activation.cpu = host.cpu().into();
    activation.host = (&raw mut *host).expose_provenance();
    let pointer: *mut Instance<H> = vm;
    // SAFETY: As in `call`; a program has only these two parameters.
    let ending = unsafe { (entry.0)(pointer.cast(), context) };
    report_stores(vm, host);
    ending
}

/// Whether nothing is to be said or done after a call: it was not stopped, holds no lock, and has
/// put nothing aside.
#[inline]
pub(crate) const fn is_plain<H: Host>(vm: &Instance<H>) -> bool {
    vm.progress.untidy == 0
}

/// What has become of a call by [`run_outermost`], which has given `value`; `None` if there is no
/// native code of the function, or none that can be entered so, and it is still to be called.
pub(crate) fn settle_outermost<H: Host>(
    vm: &mut Instance<H>,
    value: u64,
) -> Option<Result<u64, Trap>> {
    let reached = std::mem::replace(&mut vm.progress.frame, vm.stack_start);
    match vm.scratch.stop {
        0 => Some(Ok(value)),
        stop::ABSENT => {
            vm.scratch.stop = 0;
            vm.progress.untidy = 0;
            None
        }
        _ => Some(Err(trap(vm, reached - vm.stack_start))),
    }
}

/// Stands in the table of programs for what [`run_outermost`] cannot run.
unsafe extern "C" fn absent<H: Host>(vm: *mut c_void, _: u64) -> Ending {
    // SAFETY: The pointer is that of `run_outermost`, which does not use the instance meanwhile.
    let vm = unsafe { &mut *vm.cast::<Instance<H>>() };
    vm.scratch.stop = stop::ABSENT;
    vm.progress.put_aside();
    Ending {
        value: 0,
        fuel: vm.progress.fuel,
    }
}

#[inline]
fn call<H: Host>(vm: &mut Instance<H>, entry: Entry, args: [u64; 5]) -> Ending {
    let [a, b, c, d, e] = args;
    let pointer: *mut Instance<H> = vm;
    // SAFETY: The code was made for this instance or one like it, by `translate`. It touches the
    // fields in `Offsets`, the instance's region within its bounds, and calls the functions below.
    unsafe { (entry.0)(pointer.cast(), a, b, c, d, e) }
}

/// Tells the host which of its open words native code has stored into.
#[inline(always)]
fn report_stores<H: Host>(vm: &mut Instance<H>, host: &mut H) {
    if vm.memory.open_words.is_waiting() {
        report_waiting(vm, host);
    }
}

fn report_waiting<H: Host>(vm: &mut Instance<H>, host: &mut H) {
    let count = vm.memory.open_words.take();
    let mut at = 0;
    while let Some(address) = vm.memory.open_words.note(at, count) {
        host.word_stored(&mut vm.memory, address);
        at += 1;
    }
}

#[cold]
fn no_stack<H: Host>(vm: &Instance<H>, function: u32) -> Trap {
    let limit = vm.stack_bytes();
    Trap {
        stop: Stop::StackOverflow { limit },
        op: vm.code.entries[function as usize].op as usize,
    }
}

/// Why native code has stopped, with `used` bytes of frames below that of the function that did.
#[cold]
fn trap<H: Host>(vm: &mut Instance<H>, used: u64) -> Trap {
    let op = vm.scratch.op as usize;
    let outcome = vm.scratch.outcome.take();
    let stop = match std::mem::take(&mut vm.scratch.stop) {
        stop::BUDGET => Stop::Budget {
            budget: vm.budget(),
        },
        stop::POISON => Stop::Poison(vm.image().poisons[vm.code.ops[op].imm as usize].clone()),
        stop::FRAMES if used >= FRAME_BYTES * (MAX_FRAMES as u64 - 1) => Stop::CallDepth {
            limit: MAX_FRAMES as u32,
        },
        stop::FRAMES => Stop::StackOverflow {
            limit: vm.stack_bytes(),
        },
        _ => match outcome {
            Some(Outcome::Stop(stop)) => stop,
            Some(Outcome::Panic(panic)) => resume_unwind(panic),
            None => unreachable!("native code stopped for no reason"),
        },
    };
    Trap { stop, op }
}

/// Runs `body` with instance and host; if it fails, native code is told to return.
#[inline]
fn leave_native<H: Host>(
    vm: *mut Instance<H>,
    body: impl FnOnce(&mut Instance<H>, &mut H) -> Result<u64, Stop>,
) -> Ending {
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
            Ok(value) => (value, vm.progress.fuel),
            Err(stop) => {
                vm.stop_native(Outcome::Stop(stop));
                (0, NO_FUEL)
            }
        }
    }));
    match result {
        Ok((value, fuel)) => Ending { value, fuel },
        Err(panic) => {
            vm.stop_native(Outcome::Panic(panic));
            Ending {
                value: 0,
                fuel: NO_FUEL,
            }
        }
    }
}

/// A host function as native code calls it.
pub(crate) type HostEntry<H> =
    unsafe extern "C" fn(*mut Instance<H>, u64, u64, u64, u64, u64) -> Ending;

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
) -> Ending
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

/// The functions that native code calls, as addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Callees {
    pub(super) import: usize,
    pub(super) helper: usize,
    /// For stores of 1, 2, 4 and 8 bytes.
    pub(super) store: [usize; 4],
}

impl Callees {
    pub(super) fn of<H: Host>() -> Self {
        Self {
            import: call_import::<H> as *const () as usize,
            helper: call_helper::<H> as *const () as usize,
            store: [
                store::<H, 1> as *const () as usize,
                store::<H, 2> as *const () as usize,
                store::<H, 4> as *const () as usize,
                store::<H, 8> as *const () as usize,
            ],
        }
    }
}

/// Calls the import `callee`.
unsafe extern "C" fn call_import<H: Host>(
    vm: *mut Instance<H>,
    a: u64,
    b: u64,
    c: u64,
    d: u64,
    e: u64,
) -> Ending {
    leave_native(vm, |vm, host| {
        let import = vm.scratch.callee as usize;
        vm.call_import(host, import, [a, b, c, d, e])
    })
}

/// Calls the helper whose number is `callee`.
unsafe extern "C" fn call_helper<H: Host>(
    vm: *mut Instance<H>,
    a: u64,
    b: u64,
    c: u64,
    d: u64,
    e: u64,
) -> Ending {
    leave_native(vm, |vm, host| {
        let import = vm.helper(vm.scratch.callee)?;
        vm.call_import(host, import, [a, b, c, d, e])
    })
}

/// A store of `N` bytes outside the plain writable memory. Native code has not made its counts
/// known, because nobody can see them here; it does so if the store stops it.
unsafe extern "C" fn store<H: Host, const N: usize>(
    vm: *mut Instance<H>,
    address: u64,
    value: u64,
) -> Ending {
    leave_native(vm, |vm, host| {
        let bytes = value.to_le_bytes();
        let low = bytes
            .first_chunk::<N>()
            .expect("a store has at most 8 bytes");
        slow_store(vm, host, address, *low)?;
        Ok(0)
    })
}

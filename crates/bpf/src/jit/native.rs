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
use crate::interp::{FRAME_BYTES, MAX_FRAMES, Trap, slow_store};
use crate::nesting::Nesting;
use crate::progress::Progress;
use crate::{Host, Instance, Memory, Stop};

type Code = unsafe extern "C" fn(*mut c_void, u64, u64, u64, u64, u64) -> u64;

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

/// Why native code returned; 0: because the program ended.
pub(super) mod stop {
    pub(crate) const BUDGET: u32 = 1;
    pub(crate) const POISON: u32 = 2;
    pub(crate) const FRAMES: u32 = 3;
    pub(crate) const HOST: u32 = 4;
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
}

/// A call from Rust into native code; one in another puts the outer one aside.
#[derive(Clone, Copy, Debug, Default)]
struct Activation {
    /// Greatest frame pointer with which a function may call another.
    frame_limit: u64,
    now_ns: u64,
    cpu: u64,
    host: HostPointer,
}

/// The host of the call in progress.
#[derive(Clone, Copy, Debug)]
struct HostPointer(*mut c_void);

impl Default for HostPointer {
    fn default() -> Self {
        Self(std::ptr::null_mut())
    }
}

// SAFETY: The pointer is set and used within one call of `run`, hence in one thread.
unsafe impl Send for HostPointer {}
// SAFETY: As above; a shared reference to the instance gives no way to use it.
unsafe impl Sync for HostPointer {}

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

    #[cold]
    fn stop(&mut self, outcome: Outcome) -> u64 {
        self.stop = stop::HOST;
        self.outcome = Some(outcome);
        0
    }
}

/// Where native code finds what it shares with Rust, from the address of the instance.
#[derive(Clone, Copy)]
pub(super) struct Offsets {
    pub(super) fuel: i32,
    pub(super) budget_end: i32,
    pub(super) charged_ps: i32,
    pub(super) stack_top: i32,
    pub(super) rcu: i32,
    pub(super) preemption: i32,
    pub(super) frame_limit: i32,
    pub(super) now_ns: i32,
    pub(super) cpu: i32,
    pub(super) callee: i32,
    pub(super) stop: i32,
    pub(super) op: i32,
    pub(super) writable: i32,
}

impl Offsets {
    pub(super) const fn of<H: Host>() -> Self {
        let progress = offset_of!(Instance<H>, progress);
        let nesting = progress + offset_of!(Progress, nesting);
        let scratch = offset_of!(Instance<H>, scratch);
        let activation = scratch + offset_of!(Scratch, activation);
        Self {
            fuel: (progress + offset_of!(Progress, fuel)) as i32,
            budget_end: (progress + offset_of!(Progress, budget_end)) as i32,
            charged_ps: (progress + offset_of!(Progress, charged_ps)) as i32,
            stack_top: (progress + offset_of!(Progress, stack_top)) as i32,
            rcu: (nesting + offset_of!(Nesting, rcu)) as i32,
            preemption: (nesting + offset_of!(Nesting, preemption)) as i32,
            frame_limit: (activation + offset_of!(Activation, frame_limit)) as i32,
            now_ns: (activation + offset_of!(Activation, now_ns)) as i32,
            cpu: (activation + offset_of!(Activation, cpu)) as i32,
            callee: (scratch + offset_of!(Scratch, callee)) as i32,
            stop: (scratch + offset_of!(Scratch, stop)) as i32,
            op: (scratch + offset_of!(Scratch, op)) as i32,
            writable: (offset_of!(Instance<H>, memory) + Memory::WRITABLE) as i32,
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
    let stack_top = vm.progress.stack_top;
    let frame = stack_top + FRAME_BYTES;
    if frame > vm.stack_end {
        return Err(no_stack(vm, function));
    }
    let (cpu, now_ns) = (u64::from(host.cpu()), host.now_ns());
    // By depth, and by stack.
    let deepest = stack_top + FRAME_BYTES * (MAX_FRAMES as u64 - 1);
    let activation = Activation {
        frame_limit: deepest.min(vm.stack_end - FRAME_BYTES),
        now_ns,
        cpu,
        host: HostPointer((&raw mut *host).cast()),
    };
    let outer = std::mem::replace(&mut vm.scratch.activation, activation);
    vm.progress.stack_top = frame;
    let [a, b, c, d, e] = args;
    let pointer: *mut Instance<H> = vm;
    // SAFETY: The code was made for this instance, by `translate`. It touches the fields in
    // `Offsets`, the instance's region within its bounds, and calls the functions below.
    let result = unsafe { (entry.0)(pointer.cast(), a, b, c, d, e) };
    // SAFETY: Native code has returned; the pointer is `vm`.
    let vm = unsafe { &mut *pointer };
    if vm.depth > 1 {
        vm.scratch.activation = outer;
    }
    let reached = std::mem::replace(&mut vm.progress.stack_top, stack_top);
    if vm.scratch.stop == 0 {
        return Ok(result);
    }
    Err(trap(vm, reached - stack_top))
}

#[cold]
fn no_stack<H: Host>(vm: &Instance<H>, function: u32) -> Trap {
    let limit = vm.stack_bytes();
    Trap {
        stop: Stop::StackOverflow { limit },
        op: vm.code.entries[function as usize].op as usize,
    }
}

/// Why native code has stopped, with `used` bytes of frames.
#[cold]
fn trap<H: Host>(vm: &mut Instance<H>, used: u64) -> Trap {
    let op = vm.scratch.op as usize;
    let outcome = vm.scratch.outcome.take();
    let stop = match std::mem::take(&mut vm.scratch.stop) {
        stop::BUDGET => Stop::Budget {
            budget: vm.budget(),
        },
        stop::POISON => Stop::Poison(vm.image().poisons[vm.code.ops[op].imm as usize].clone()),
        stop::FRAMES if used >= FRAME_BYTES * MAX_FRAMES as u64 => Stop::CallDepth {
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
fn leave_native<H: Host, T: Default>(
    vm: *mut Instance<H>,
    body: impl FnOnce(&mut Instance<H>, &mut H) -> Result<T, Stop>,
) -> T {
    // SAFETY: The pointer is that of `run`, which has the instance borrowed mutably and does not
    // use it before native code returns; the same goes for the host.
    let vm = unsafe { &mut *vm };
    // SAFETY: As above. The type is that of the `run` which set the pointer, because all of an
    // instance's native code was made for one `H`.
    let host = unsafe { &mut *vm.scratch.activation.host.0.cast::<H>() };
    let result = catch_unwind(AssertUnwindSafe(|| body(vm, host)));
    match result {
        Ok(Ok(value)) => return value,
        Ok(Err(stop)) => vm.scratch.stop(Outcome::Stop(stop)),
        Err(panic) => vm.scratch.stop(Outcome::Panic(panic)),
    };
    T::default()
}

/// The functions that native code calls, as addresses.
#[derive(Clone, Copy)]
pub(super) struct Callees {
    pub(super) import: usize,
    pub(super) helper: usize,
    pub(super) store: usize,
}

impl Callees {
    pub(super) fn of<H: Host>() -> Self {
        Self {
            import: call_import::<H> as *const () as usize,
            helper: call_helper::<H> as *const () as usize,
            store: store::<H> as *const () as usize,
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
) -> u64 {
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
) -> u64 {
    leave_native(vm, |vm, host| {
        let import = vm.helper(vm.scratch.callee)?;
        vm.call_import(host, import, [a, b, c, d, e])
    })
}

/// A store of 1, 2, 4 or 8 bytes outside the plain writable memory. Native code has not made its
/// counts known, because nobody can see them here; it does so if the store stops it.
unsafe extern "C" fn store<H: Host>(vm: *mut Instance<H>, address: u64, value: u64, size: u64) {
    leave_native(vm, |vm, host| match size {
        1 => slow_store(vm, host, address, (value as u8).to_le_bytes()),
        2 => slow_store(vm, host, address, (value as u16).to_le_bytes()),
        4 => slow_store(vm, host, address, (value as u32).to_le_bytes()),
        _ => slow_store(vm, host, address, value.to_le_bytes()),
    });
}

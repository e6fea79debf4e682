//! Where native code and Rust meet.
//!
//! Native code gets a pointer to a [`Shared`] record, the head of a [`Context`] on the Rust stack
//! of [`run`]. It calls back into the functions below with the same pointer. They catch panics of
//! host functions and put them into the context; native code sees that `stop` is set, returns, and
//! [`run`] lets the panic go on. So nothing ever unwinds through native frames.
//!
//! # Safety
//!
//! [`run`] has the instance and the host borrowed mutably for as long as native code runs, and does
//! not touch them meanwhile; the functions that native code calls are the only users, one at a
//! time, and each ends before native code goes on.

use std::any::Any;
use std::ffi::c_void;
use std::mem::offset_of;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use crate::interp::{FRAME_BYTES, MAX_FRAMES, Trap, slow_store};
use crate::nesting::Nesting;
use crate::{Host, Instance, Stop};

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

/// What native code reads and writes.
#[repr(C)]
pub(super) struct Shared {
    /// Instructions until the budget is spent. Exact whenever native code calls or returns.
    fuel: i64,
    /// Frame pointer of the function that executes.
    stack_top: u64,
    /// Greatest frame pointer with which a function may call another.
    frame_limit: u64,
    /// A store of any size that begins at most so far into the writable half is allowed.
    writable: u64,
    now_ns: u64,
    cpu: u64,
    budget_end: *mut u64,
    charged_ps: *mut u64,
    nesting: *mut Nesting,
    /// The import or helper that is called.
    callee: u64,
    /// Why native code returns.
    stop: u32,
    /// The operation that stopped it.
    op: u32,
}

/// Offsets in [`Shared`].
pub(super) mod at {
    use super::{Nesting, Shared, offset_of};

    pub(crate) const FUEL: i32 = offset_of!(Shared, fuel) as i32;
    pub(crate) const STACK_TOP: i32 = offset_of!(Shared, stack_top) as i32;
    pub(crate) const FRAME_LIMIT: i32 = offset_of!(Shared, frame_limit) as i32;
    pub(crate) const WRITABLE: i32 = offset_of!(Shared, writable) as i32;
    pub(crate) const NOW_NS: i32 = offset_of!(Shared, now_ns) as i32;
    pub(crate) const CPU: i32 = offset_of!(Shared, cpu) as i32;
    pub(crate) const BUDGET_END: i32 = offset_of!(Shared, budget_end) as i32;
    pub(crate) const CHARGED_PS: i32 = offset_of!(Shared, charged_ps) as i32;
    pub(crate) const NESTING: i32 = offset_of!(Shared, nesting) as i32;
    pub(crate) const CALLEE: i32 = offset_of!(Shared, callee) as i32;
    pub(crate) const STOP: i32 = offset_of!(Shared, stop) as i32;
    pub(crate) const OP: i32 = offset_of!(Shared, op) as i32;
    /// In [`Nesting`].
    pub(crate) const RCU: i32 = offset_of!(Nesting, rcu) as i32;
    /// In [`Nesting`].
    pub(crate) const PREEMPTION: i32 = offset_of!(Nesting, preemption) as i32;
}

/// One activation: a call from Rust into native code.
#[repr(C)]
struct Context<H: Host> {
    shared: Shared,
    vm: *mut Instance<H>,
    host: *mut H,
    /// With [`stop::HOST`].
    outcome: Option<Outcome>,
}

enum Outcome {
    Stop(Stop),
    Panic(Box<dyn Any + Send>),
}

/// Runs a function until it exits. The counterpart of the interpreter's `run`.
pub(crate) fn run<H: Host>(
    vm: &mut Instance<H>,
    host: &mut H,
    entry: Entry,
    function: u32,
    args: [u64; 5],
) -> Result<u64, Trap> {
    let stack_top = vm.stack_top;
    if stack_top + FRAME_BYTES > vm.stack_end {
        let limit = vm.stack_bytes();
        let op = vm.code.entries[function as usize].op as usize;
        return Err(Trap {
            stop: Stop::StackOverflow { limit },
            op,
        });
    }
    let (cpu, now_ns) = (u64::from(host.cpu()), host.now_ns());
    let vm: *mut Instance<H> = vm;
    // SAFETY: `vm` was a mutable reference just now; see the module.
    let shared = unsafe {
        Shared {
            fuel: fuel(&*vm),
            stack_top: stack_top + FRAME_BYTES,
            frame_limit: frame_limit(&*vm),
            writable: (*vm).memory.writable(),
            now_ns,
            cpu,
            budget_end: &raw mut (*vm).budget_end,
            charged_ps: &raw mut (*vm).charged_ps,
            nesting: &raw mut (*vm).nesting,
            callee: 0,
            stop: 0,
            op: 0,
        }
    };
    let mut context = Context {
        shared,
        vm,
        host,
        outcome: None,
    };
    let [a, b, c, d, e] = args;
    let pointer = (&raw mut context).cast();
    // SAFETY: The code was made for this instance, by `translate`; it touches the context, the
    // instance's region within its bounds, and calls the functions below.
    let result = unsafe { (entry.0)(pointer, a, b, c, d, e) };
    // SAFETY: Native code has returned; see the module.
    let vm = unsafe { &mut *vm };
    vm.retired = vm
        .budget_end
        .wrapping_sub(context.shared.fuel.cast_unsigned());
    vm.stack_top = stack_top;
    if context.shared.stop == 0 {
        return Ok(result);
    }
    Err(context.trap(vm, stack_top))
}

/// Instructions until the budget is spent; negative when built-in functions have overdrawn it.
const fn fuel<H: Host>(vm: &Instance<H>) -> i64 {
    vm.budget_end.wrapping_sub(vm.retired).cast_signed()
}

/// The frame pointer of the last function that may call another, by depth or by stack.
fn frame_limit<H: Host>(vm: &Instance<H>) -> u64 {
    let by_depth = vm.stack_top + FRAME_BYTES * (MAX_FRAMES as u64 - 1);
    by_depth.min(vm.stack_end - FRAME_BYTES)
}

impl<H: Host> Context<H> {
    #[cold]
    fn trap(self, vm: &Instance<H>, stack_top: u64) -> Trap {
        let op = self.shared.op as usize;
        let stop = match self.shared.stop {
            stop::BUDGET => Stop::Budget {
                budget: vm.budget(),
            },
            stop::POISON => Stop::Poison(vm.image().poisons[vm.code.ops[op].imm as usize].clone()),
            stop::FRAMES => {
                let deepest = stack_top + FRAME_BYTES * MAX_FRAMES as u64;
                if self.shared.stack_top >= deepest {
                    Stop::CallDepth {
                        limit: MAX_FRAMES as u32,
                    }
                } else {
                    Stop::StackOverflow {
                        limit: vm.stack_bytes(),
                    }
                }
            }
            _ => match self.outcome {
                Some(Outcome::Stop(stop)) => stop,
                Some(Outcome::Panic(panic)) => resume_unwind(panic),
                None => unreachable!("native code stopped for no reason"),
            },
        };
        Trap { stop, op }
    }

    /// Calls `body` with instance and host, after native code has made its counts known; lets
    /// native code know what has changed, or why it must return.
    fn leave_native(
        &mut self,
        body: impl FnOnce(&mut Instance<H>, &mut H, u64) -> Result<u64, Stop>,
    ) -> u64 {
        // SAFETY: `run` holds both mutable borrows and uses neither; see the module.
        let (vm, host) = unsafe { (&mut *self.vm, &mut *self.host) };
        let Shared { fuel, callee, .. } = self.shared;
        vm.retired = vm.budget_end.wrapping_sub(fuel.cast_unsigned());
        vm.stack_top = self.shared.stack_top;
        let result = catch_unwind(AssertUnwindSafe(|| body(vm, host, callee)));
        self.shared.fuel = self::fuel(vm);
        self.shared.writable = vm.memory.writable();
        match result {
            Ok(Ok(value)) => value,
            Ok(Err(stop)) => self.stop(Outcome::Stop(stop)),
            Err(panic) => self.stop(Outcome::Panic(panic)),
        }
    }

    #[cold]
    fn stop(&mut self, outcome: Outcome) -> u64 {
        self.shared.stop = stop::HOST;
        self.outcome = Some(outcome);
        0
    }
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
///
/// # Safety
/// `context` is the pointer that native code got.
unsafe extern "C" fn call_import<H: Host>(
    context: *mut Context<H>,
    a: u64,
    b: u64,
    c: u64,
    d: u64,
    e: u64,
) -> u64 {
    // SAFETY: The pointer is that of `run`'s context, which nobody else uses now.
    let context = unsafe { &mut *context };
    context.leave_native(|vm, host, import| vm.call_import(host, import as usize, [a, b, c, d, e]))
}

/// Calls the helper whose number is `callee`.
///
/// # Safety
/// `context` is the pointer that native code got.
unsafe extern "C" fn call_helper<H: Host>(
    context: *mut Context<H>,
    a: u64,
    b: u64,
    c: u64,
    d: u64,
    e: u64,
) -> u64 {
    // SAFETY: As in `call_import`.
    let context = unsafe { &mut *context };
    context.leave_native(|vm, host, number| {
        let import = vm.helper(number)?;
        vm.call_import(host, import, [a, b, c, d, e])
    })
}

/// A store outside the plain writable memory. Native code has not made its counts known, because
/// nobody can see them here; it does so if the store stops it.
///
/// # Safety
/// `context` is the pointer that native code got; `size` is 1, 2, 4 or 8.
unsafe extern "C" fn store<H: Host>(context: *mut Context<H>, at: u64, value: u64, size: u64) {
    // SAFETY: As in `call_import`.
    let context = unsafe { &mut *context };
    // SAFETY: As in `leave_native`.
    let (vm, host) = unsafe { (&mut *context.vm, &mut *context.host) };
    let bytes = value.to_le_bytes();
    let bytes = &bytes[..size as usize];
    let result = catch_unwind(AssertUnwindSafe(|| slow_store(vm, host, at, bytes)));
    context.shared.writable = vm.memory.writable();
    match result {
        Ok(Ok(())) => {}
        Ok(Err(stop)) => _ = context.stop(Outcome::Stop(stop)),
        Err(panic) => _ = context.stop(Outcome::Panic(panic)),
    }
}

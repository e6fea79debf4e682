//! Where native code and Rust meet.
//!
//! Native code gets the address of the instance, and reads and writes those of its fields that
//! [`Offsets`] lists. It calls back into the functions below with the same address. They catch
//! panics of host functions and put them aside; native code sees that `stop` is set, returns, and
//! [`run`] lets the panic go on. So nothing ever unwinds through native frames. `entry.rs` has the
//! record that both share, and the way back into Rust.
//!
//! # Safety
//!
//! [`run`] has the instance and the host borrowed mutably for as long as native code runs, and does
//! not touch them meanwhile; the functions that native code calls are the only users, one at a
//! time, and each ends before native code goes on. They are called by native code only, with the
//! address that it got.

use std::mem::offset_of;
use std::panic::resume_unwind;

use super::entry::{
    Activation, NativeEnding, NativeEntry, NativeOutcome, ProgramEntry, Scratch, leave_native,
    report_stores, stop,
};
use crate::frame::{FRAME_BYTES, MAX_FRAMES, Trap};
use crate::interp::slow_store;
use crate::memory::OpenWords;
use crate::nesting::Nesting;
use crate::progress::Progress;
use crate::{Host, Instance, Memory, Stop};

/// Where native code finds what it shares with Rust, from the address of the instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Offsets {
    pub(super) fuel: i32,
    pub(super) budget_end: i32,
    pub(super) charged_ps: i32,
    pub(super) frame: i32,
    pub(super) untidy: i32,
    pub(super) place: i32,
    pub(super) rcu: i32,
    pub(super) preemption: i32,
    pub(super) frame_limit: i32,
    pub(super) now_ns: i32,
    pub(super) cpu: i32,
    pub(super) callee: i32,
    pub(super) stop: i32,
    pub(super) op: i32,
    pub(super) arena_op: i32,
    pub(super) arena_value: i32,
    pub(super) arena_flags: i32,
    pub(super) writable: i32,
    pub(super) delta: i32,
    pub(super) word_flags: i32,
    pub(super) word_count: i32,
    pub(super) words_waiting: i32,
    pub(super) word_notes: i32,
}

impl Offsets {
    pub(super) const fn of<H: Host>() -> Self {
        let progress = offset_of!(Instance<H>, stack.progress);
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
            place: (progress + offset_of!(Progress, place)) as i32,
            rcu: (nesting + offset_of!(Nesting, rcu)) as i32,
            preemption: (nesting + offset_of!(Nesting, preemption)) as i32,
            frame_limit: (activation + offset_of!(Activation, frame_limit)) as i32,
            now_ns: (activation + offset_of!(Activation, now_ns)) as i32,
            cpu: (activation + offset_of!(Activation, cpu)) as i32,
            callee: (scratch + offset_of!(Scratch, callee)) as i32,
            stop: (scratch + offset_of!(Scratch, stop)) as i32,
            op: (scratch + offset_of!(Scratch, op)) as i32,
            arena_op: (scratch + offset_of!(Scratch, arena_op)) as i32,
            arena_value: (scratch + offset_of!(Scratch, arena_value)) as i32,
            arena_flags: (memory + Memory::ARENA_FLAGS) as i32,
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
    entry: NativeEntry,
    function: u32,
    args: [u64; 5],
) -> Result<u64, Trap> {
    let first = vm.stack.first_frame();
    if first + FRAME_BYTES > vm.stack.end {
        return Err(no_stack(vm, function));
    }
    let activation = Activation {
        frame_limit: vm.stack.frame_limit(),
        now_ns: host.now_ns(),
        cpu: host.cpu().into(),
        host: (&raw mut *host).expose_provenance(),
    };
    let outer = std::mem::replace(&mut vm.scratch.activation, activation);
    vm.stack.progress.frame = first;
    let ending = call(vm, entry, args);
    vm.stack.progress.fuel = ending.fuel;
    report_stores(vm, host);
    if vm.stack.depth > 1 {
        vm.scratch.activation = outer;
    }
    if vm.scratch.stop == 0 {
        return Ok(ending.value);
    }
    Err(trap(vm, first))
}

/// Makes `args`, at most as many as fit, the context of the next outermost call, whose guest
/// address is `_context`.
#[inline(always)]
pub(crate) fn put_arguments<H: Host>(vm: &mut Instance<H>, _context: u64, args: &[u64]) {
    let at = std::ptr::with_exposed_provenance_mut::<u64>(vm.stack.contexts_at as usize);
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
}

/// As [`run`], for the outermost call of a program, whose `context` is in its place.
/// The caller calls [`report_stores_behind`]; if not [`is_plain`], then [`settle_outermost`] must
/// follow.
///
/// The stack has room for a frame, and [`Scratch::rest`] was called. All else that native code
/// needs is as every call leaves it.
#[inline]
pub(crate) fn run_outermost<H: Host>(
    vm: &mut Instance<H>,
    host: &mut H,
    entry: ProgramEntry,
    context: u64,
) -> u64 {
    let activation = &mut vm.scratch.activation;
    activation.now_ns = host.now_ns();
    activation.cpu = host.cpu().into();
    activation.host = (&raw mut *host).expose_provenance();
    let pointer: *mut Instance<H> = vm;
    // SAFETY: As in `call`; a program has only these two parameters.
    let ending = unsafe { (entry.0)(pointer.cast(), context) };
    vm.stack.progress.fuel = ending.fuel;
    ending.value
}

/// Whether nothing is to be said or done after a call: it was not stopped, holds no lock, and has
/// put nothing aside.
#[inline]
pub(crate) const fn is_plain<H: Host>(vm: &Instance<H>) -> bool {
    vm.stack.progress.untidy == 0
}

/// What has become of a call by [`run_outermost`], which has given `value`; `None` if there is no
/// native code of the function, or none that can be entered so, and it is still to be called.
pub(crate) fn settle_outermost<H: Host>(
    vm: &mut Instance<H>,
    value: u64,
) -> Option<Result<u64, Trap>> {
    match vm.scratch.stop {
        0 => Some(Ok(value)),
        stop::ABSENT => {
            vm.scratch.stop = 0;
            vm.stack.progress.untidy = 0;
            None
        }
        _ => Some(Err(trap(vm, vm.stack.start))),
    }
}

#[inline]
fn call<H: Host>(vm: &mut Instance<H>, entry: NativeEntry, args: [u64; 5]) -> NativeEnding {
    let [a, b, c, d, e] = args;
    let pointer: *mut Instance<H> = vm;
    // SAFETY: The code was made for this instance or one like it, by `translate`. It touches the
    // fields in `Offsets`, the instance's region within its bounds, and calls the functions below.
    unsafe { (entry.0)(pointer.cast(), a, b, c, d, e) }
}

#[cold]
fn no_stack<H: Host>(vm: &Instance<H>, function: u32) -> Trap {
    let limit = vm.stack_bytes();
    Trap {
        stop: Stop::StackOverflow { limit },
        op: vm.code.entries[function as usize].op as usize,
    }
}

/// Why native code has stopped, in a call whose frames begin at `first`.
#[cold]
fn trap<H: Host>(vm: &mut Instance<H>, first: u64) -> Trap {
    let op = vm.scratch.op as usize;
    let outcome = vm.scratch.outcome.take();
    let stop = match std::mem::take(&mut vm.scratch.stop) {
        stop::BUDGET => vm.budget_stop(),
        stop::POISON => Stop::Poison(vm.image().poisons[vm.code.ops[op].imm as usize].clone()),
        stop::FRAMES => frame_stop(vm, first),
        _ => match outcome {
            Some(NativeOutcome::Stop(stop)) => stop,
            Some(NativeOutcome::Panic(panic)) => resume_unwind(panic),
            None => unreachable!("native code stopped for no reason"),
        },
    };
    Trap { stop, op }
}

/// Why a function can call no other, in a call whose frames begin at `first`: what
/// `Instance::frame_limit` says there is the stack's end, or how deep functions may call.
fn frame_stop<H: Host>(vm: &Instance<H>, first: u64) -> Stop {
    let deepest = first + FRAME_BYTES * (MAX_FRAMES as u64 - 1);
    if deepest <= vm.stack.end.saturating_sub(FRAME_BYTES) {
        return Stop::CallDepth {
            limit: MAX_FRAMES as u32,
        };
    }
    Stop::StackOverflow {
        limit: vm.stack_bytes(),
    }
}

/// The functions that native code calls, as addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Callees {
    pub(super) import: usize,
    pub(super) helper: usize,
    /// For stores of 1, 2, 4 and 8 bytes.
    pub(super) store: [usize; 4],
    /// The same for loads from the arena, and for stores there.
    pub(super) arena: ([usize; 4], [usize; 4]),
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
            arena: (
                [
                    load_arena::<H, 1> as *const () as usize,
                    load_arena::<H, 2> as *const () as usize,
                    load_arena::<H, 4> as *const () as usize,
                    load_arena::<H, 8> as *const () as usize,
                ],
                [
                    store_arena::<H, 1> as *const () as usize,
                    store_arena::<H, 2> as *const () as usize,
                    store_arena::<H, 4> as *const () as usize,
                    store_arena::<H, 8> as *const () as usize,
                ],
            ),
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
) -> NativeEnding {
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
) -> NativeEnding {
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
) -> NativeEnding {
    leave_native(vm, |vm, host| {
        let bytes = value.to_le_bytes();
        let low = bytes
            .first_chunk::<N>()
            .expect("a store has at most 8 bytes");
        slow_store(vm, host, address, *low)?;
        Ok(0)
    })
}

/// A load of `N` bytes from pages of the arena that may not be there. `is_store` if it is told of
/// as a store.
unsafe extern "C" fn load_arena<H: Host, const N: u64>(
    vm: *mut Instance<H>,
    address: u64,
    is_store: u64,
) -> NativeEnding {
    leave_native(vm, |vm, _| {
        let there = vm.arena_touch(vm.scratch.arena_op, address, (N, is_store != 0));
        let value = if there {
            vm.memory.load_u64(address)
        } else {
            0
        };
        // Only the low bytes are looked at.
        vm.scratch.arena_value = value.to_le();
        Ok(0)
    })
}

/// A store of `N` bytes to pages of the arena that may not be there.
unsafe extern "C" fn store_arena<H: Host, const N: u64>(
    vm: *mut Instance<H>,
    address: u64,
    value: u64,
) -> NativeEnding {
    leave_native(vm, |vm, _| {
        if vm.arena_touch(vm.scratch.arena_op, address, (N, true)) {
            vm.memory.write(address, &value.to_le_bytes()[..N as usize]);
        }
        Ok(0)
    })
}

//! What each operation does: a function for each.
//!
//! # Safety
//!
//! The unsafe functions are those of an operation's cell and call [`Pc::next`] or [`Pc::target`].
//! They want what `Executed` in `cell.rs` says: `pc` is a cell that has got the function from
//! [`function`], so that behind it there is another, and a function of jumps is a jump's. Functions
//! that such a function calls want the same.

use super::arithmetic::{arsh32, arsh64, sdiv32, sdiv64, signed, signed32, smod32, smod64};
use super::cell::{Next, Pc};
use super::machine::{Machine, Run};
use super::{rare, slow_store};
use crate::intrinsic::Intrinsic;
use crate::op::{Kind, Op};
use crate::{Host, Instance, Stop};

/// Goes on behind the cell at `pc`, within its block.
#[inline(always)]
pub(super) unsafe fn next<'a, H: Host>(
    pc: Pc<'a, H>,
    m: &mut Machine<'a, H>,
    fuel: i64,
) -> Next<'a, H> {
    // SAFETY: The caller says so.
    unsafe { pc.next() }.run(m, fuel)
}

/// Begins the block at `to`, which is charged as a whole.
#[inline(always)]
fn enter<'a, H: Host>(to: Pc<'a, H>, m: &mut Machine<'a, H>, fuel: i64) -> Next<'a, H> {
    let left = fuel - i64::from(to.cell().len);
    if left < 0 {
        return pause(to, m, fuel);
    }
    to.run(m, left)
}

/// Returns from the chain; `pc` comes next.
#[cold]
#[inline(never)]
fn pause<'a, H: Host>(pc: Pc<'a, H>, m: &mut Machine<'a, H>, fuel: i64) -> Next<'a, H> {
    m.rest += fuel;
    Some(pc)
}

/// Returns from the chain within a block.
pub(super) fn hold<'a, H: Host>(pc: Pc<'a, H>, m: &mut Machine<'a, H>, fuel: i64) -> Next<'a, H> {
    m.holds = true;
    pause(pc, m, fuel)
}

/// Stands behind the last operation, which goes nowhere.
pub(super) fn behind_the_last<'a, H: Host>(
    _: Pc<'a, H>,
    _: &mut Machine<'a, H>,
    _: i64,
) -> Next<'a, H> {
    unreachable!("every function ends with an exit or a jump")
}

/// The function that executes `op`.
pub(super) fn function<H: Host>(vm: &Instance<H>, op: Op) -> Run<H> {
    if op.arena {
        return rare::run;
    }
    if let Some(run) = arithmetic(op.kind).or_else(|| access(op.kind)) {
        return run;
    }
    match (op.kind, vm.config.places) {
        (Kind::CallHost, places) => call(vm, op.imm as usize, places),
        (kind, false) => control::<H, false>(kind),
        (kind, true) => control::<H, true>(kind),
    }
}

/// `k` is arithmetic with the immediate, `x` with the source register; both on all 64 bits or on
/// the low 32.
macro_rules! arithmetic {
    ($m:ident, $cell:ident, $dst:ty, $b:expr, $f:expr) => {{
        unsafe fn run<'a, H: Host>(
            pc: Pc<'a, H>,
            $m: &mut Machine<'a, H>,
            fuel: i64,
        ) -> Next<'a, H> {
            let $cell = pc.cell();
            let result: $dst = $f($m.get($cell.dst) as $dst, $b as $dst);
            $m.set($cell.dst, u64::from(result));
            // SAFETY: This cell is that of an operation.
            unsafe { next(pc, $m, fuel) }
        }
        run
    }};
}
macro_rules! k64 {
    ($f:expr) => {
        arithmetic!(m, cell, u64, cell.arg, $f)
    };
}
macro_rules! x64 {
    ($f:expr) => {
        arithmetic!(m, cell, u64, m.get(cell.src), $f)
    };
}
macro_rules! k32 {
    ($f:expr) => {
        arithmetic!(m, cell, u32, cell.arg, $f)
    };
}
macro_rules! x32 {
    ($f:expr) => {
        arithmetic!(m, cell, u32, m.get(cell.src), $f)
    };
}

#[expect(clippy::too_many_lines, reason = "one arm for each operation")]
#[rustfmt::skip]
fn arithmetic<H: Host>(kind: Kind) -> Option<Run<H>> {
    Some(match kind {
        Kind::Add64K => k64!(u64::wrapping_add),
        Kind::Add64X => x64!(u64::wrapping_add),
        Kind::Add32K => k32!(u32::wrapping_add),
        Kind::Add32X => x32!(u32::wrapping_add),
        Kind::Sub64K => k64!(u64::wrapping_sub),
        Kind::Sub64X => x64!(u64::wrapping_sub),
        Kind::Sub32K => k32!(u32::wrapping_sub),
        Kind::Sub32X => x32!(u32::wrapping_sub),
        Kind::Mul64K => k64!(u64::wrapping_mul),
        Kind::Mul64X => x64!(u64::wrapping_mul),
        Kind::Mul32K => k32!(u32::wrapping_mul),
        Kind::Mul32X => x32!(u32::wrapping_mul),
        // RFC 9669, section 4.1: division by zero gives zero, modulo by zero the dividend.
        Kind::Div64K => k64!(|a: u64, b| a.checked_div(b).unwrap_or(0)),
        Kind::Div64X => x64!(|a: u64, b| a.checked_div(b).unwrap_or(0)),
        Kind::Div32K => k32!(|a: u32, b| a.checked_div(b).unwrap_or(0)),
        Kind::Div32X => x32!(|a: u32, b| a.checked_div(b).unwrap_or(0)),
        Kind::Sdiv64K => k64!(sdiv64),
        Kind::Sdiv64X => x64!(sdiv64),
        Kind::Sdiv32K => k32!(sdiv32),
        Kind::Sdiv32X => x32!(sdiv32),
        Kind::Mod64K => k64!(|a: u64, b| a.checked_rem(b).unwrap_or(a)),
        Kind::Mod64X => x64!(|a: u64, b| a.checked_rem(b).unwrap_or(a)),
        Kind::Mod32K => k32!(|a: u32, b| a.checked_rem(b).unwrap_or(a)),
        Kind::Mod32X => x32!(|a: u32, b| a.checked_rem(b).unwrap_or(a)),
        Kind::Smod64K => k64!(smod64),
        Kind::Smod64X => x64!(smod64),
        Kind::Smod32K => k32!(smod32),
        Kind::Smod32X => x32!(smod32),
        Kind::Or64K => k64!(|a, b| a | b),
        Kind::Or64X => x64!(|a, b| a | b),
        Kind::Or32K => k32!(|a, b| a | b),
        Kind::Or32X => x32!(|a, b| a | b),
        Kind::And64K => k64!(|a, b| a & b),
        Kind::And64X => x64!(|a, b| a & b),
        Kind::And32K => k32!(|a, b| a & b),
        Kind::And32X => x32!(|a, b| a & b),
        Kind::Xor64K => k64!(|a, b| a ^ b),
        Kind::Xor64X => x64!(|a, b| a ^ b),
        Kind::Xor32K => k32!(|a, b| a ^ b),
        Kind::Xor32X => x32!(|a, b| a ^ b),
        // Wrapping shifts mask the count to the width, as the RFC demands.
        Kind::Lsh64K => k64!(|a: u64, b| a.wrapping_shl(b as u32)),
        Kind::Lsh64X => x64!(|a: u64, b| a.wrapping_shl(b as u32)),
        Kind::Lsh32K => k32!(u32::wrapping_shl),
        Kind::Lsh32X => x32!(u32::wrapping_shl),
        Kind::Rsh64K => k64!(|a: u64, b| a.wrapping_shr(b as u32)),
        Kind::Rsh64X => x64!(|a: u64, b| a.wrapping_shr(b as u32)),
        Kind::Rsh32K => k32!(u32::wrapping_shr),
        Kind::Rsh32X => x32!(u32::wrapping_shr),
        Kind::Arsh64K => k64!(arsh64),
        Kind::Arsh64X => x64!(arsh64),
        Kind::Arsh32K => k32!(arsh32),
        Kind::Arsh32X => x32!(arsh32),
        Kind::Neg64 => k64!(|a: u64, _| a.wrapping_neg()),
        Kind::Neg32 => k32!(|a: u32, _| a.wrapping_neg()),
        Kind::Mov64K => k64!(|_, b| b),
        Kind::Mov64X => x64!(|_, b| b),
        Kind::Mov32K => k32!(|_, b| b),
        Kind::Mov32X => x32!(|_, b| b),
        Kind::Movs64X8 => x64!(|_, b| i64::from(b as i8).cast_unsigned()),
        Kind::Movs64X16 => x64!(|_, b| i64::from(b as i16).cast_unsigned()),
        Kind::Movs64X32 => x64!(|_, b| i64::from(b as i32).cast_unsigned()),
        Kind::Movs32X8 => x32!(|_, b| i32::from(b as i8).cast_unsigned()),
        Kind::Movs32X16 => x32!(|_, b| i32::from(b as i16).cast_unsigned()),
        // The simulated machine is little endian whatever the host is.
        Kind::Le16 => k64!(|a, _| a & 0xffff),
        Kind::Le32 => k32!(|a, _| a),
        Kind::Le64 => k64!(|a, _| a),
        Kind::Be16 | Kind::Swap16 => k64!(|a, _| u64::from((a as u16).swap_bytes())),
        Kind::Be32 | Kind::Swap32 => k32!(|a: u32, _| a.swap_bytes()),
        Kind::Be64 | Kind::Swap64 => k64!(|a: u64, _| a.swap_bytes()),
        _ => return None,
    })
}

macro_rules! load {
    ($load:ident, $narrow:ty) => {{
        unsafe fn run<'a, H: Host>(
            pc: Pc<'a, H>,
            m: &mut Machine<'a, H>,
            fuel: i64,
        ) -> Next<'a, H> {
            let cell = pc.cell();
            let address = m.get(cell.src).wrapping_add(cell.arg);
            let value = m.vm.memory.$load(address) as $narrow;
            m.set(cell.dst, i64::from(value).cast_unsigned());
            // SAFETY: This cell is that of an operation.
            unsafe { next(pc, m, fuel) }
        }
        run
    }};
}

macro_rules! store {
    ($cell:ident, $m:ident, $off:expr, $value:expr, $width:ty) => {{
        unsafe fn run<'a, H: Host>(
            pc: Pc<'a, H>,
            $m: &mut Machine<'a, H>,
            fuel: i64,
        ) -> Next<'a, H> {
            let $cell = pc.cell();
            let address = $m.get($cell.dst).wrapping_add($off);
            let bytes = ($value as $width).to_le_bytes();
            let is_done = $m.vm.memory.store(address, bytes);
            // SAFETY: This cell is that of an operation.
            unsafe {
                if is_done {
                    next(pc, $m, fuel)
                } else {
                    store_slowly(pc, $m, fuel, (address, bytes))
                }
            }
        }
        run
    }};
}
macro_rules! store_k {
    ($width:ty) => {
        store!(cell, m, cell.off().cast_unsigned(), cell.imm(), $width)
    };
}
macro_rules! store_x {
    ($width:ty) => {
        store!(cell, m, cell.arg, m.get(cell.src), $width)
    };
}

#[rustfmt::skip]
fn access<H: Host>(kind: Kind) -> Option<Run<H>> {
    Some(match kind {
        Kind::LoadU8 => load!(load_u8, i64),
        Kind::LoadU16 => load!(load_u16, i64),
        Kind::LoadU32 => load!(load_u32, i64),
        Kind::LoadU64 => load!(load_u64, i64),
        Kind::LoadS8 => load!(load_u8, i8),
        Kind::LoadS16 => load!(load_u16, i16),
        Kind::LoadS32 => load!(load_u32, i32),
        Kind::StoreK8 => store_k!(u8),
        Kind::StoreK16 => store_k!(u16),
        Kind::StoreK32 => store_k!(u32),
        Kind::StoreK64 => store_k!(u64),
        Kind::StoreX8 => store_x!(u8),
        Kind::StoreX16 => store_x!(u16),
        Kind::StoreX32 => store_x!(u32),
        Kind::StoreX64 => store_x!(u64),
        Kind::Atomic32 | Kind::Atomic64 => rare::run,
        Kind::CastArena => cast_arena,
        _ => return None,
    })
}

/// A store outside the plain writable memory.
#[inline(never)]
unsafe fn store_slowly<'a, H: Host, const N: usize>(
    pc: Pc<'a, H>,
    m: &mut Machine<'a, H>,
    fuel: i64,
    (address, bytes): (u64, [u8; N]),
) -> Next<'a, H> {
    m.vm.stack.progress.place = m.op(pc) as u32;
    match slow_store(m.vm, m.host, address, bytes) {
        // SAFETY: The caller says so.
        Ok(()) => unsafe { next(pc, m, fuel) },
        Err(stop) => m.fail(pc, fuel, stop),
    }
}

unsafe fn cast_arena<'a, H: Host>(pc: Pc<'a, H>, m: &mut Machine<'a, H>, fuel: i64) -> Next<'a, H> {
    let cell = pc.cell();
    let value = m.vm.cast_arena(m.get(cell.src), cell.arg.cast_signed());
    m.set(cell.dst, value);
    // SAFETY: This cell is that of an operation.
    unsafe { next(pc, m, fuel) }
}

/// A conditional jump, which is a place if `P` says that anybody asks for those.
macro_rules! jump {
    ($cell:ident, $m:ident, $p:expr, $taken:expr) => {{
        unsafe fn run<'a, H: Host, const P: bool>(
            pc: Pc<'a, H>,
            $m: &mut Machine<'a, H>,
            fuel: i64,
        ) -> Next<'a, H> {
            let $cell = pc.cell();
            if $p {
                $m.vm.stack.progress.place = $m.op(pc) as u32;
            }
            let is_taken = $taken;
            // SAFETY: This cell is that of a jump: `control` gives this function to no other.
            let to = unsafe { if is_taken { pc.target() } else { pc.next() } };
            enter(to, $m, fuel)
        }
        run::<H, P>
    }};
}
macro_rules! jump_k64 {
    ($f:expr) => {
        jump!(cell, m, P, $f(&m.get(cell.dst), &cell.imm()))
    };
}
macro_rules! jump_x64 {
    ($f:expr) => {
        jump!(cell, m, P, $f(&m.get(cell.dst), &m.get(cell.src)))
    };
}
macro_rules! jump_k32 {
    ($f:expr) => {
        jump!(
            cell,
            m,
            P,
            $f(&(m.get(cell.dst) as u32), &(cell.imm() as u32))
        )
    };
}
macro_rules! jump_x32 {
    ($f:expr) => {
        jump!(
            cell,
            m,
            P,
            $f(&(m.get(cell.dst) as u32), &(m.get(cell.src) as u32))
        )
    };
}
macro_rules! end_of_loop {
    ($f:expr) => {
        jump!(cell, m, false, $f(&m.get(cell.dst), &0))
    };
}

#[rustfmt::skip]
fn control<H: Host, const P: bool>(kind: Kind) -> Run<H> {
    match kind {
        Kind::Jump => always,
        Kind::MayGoto => may_goto::<H, P>,
        Kind::Jeq64K => jump_k64!(u64::eq),
        Kind::Jeq64X => jump_x64!(u64::eq),
        Kind::Jeq32K => jump_k32!(u32::eq),
        Kind::Jeq32X => jump_x32!(u32::eq),
        Kind::Jne64K => jump_k64!(u64::ne),
        Kind::JeqNext => end_of_loop!(u64::eq),
        Kind::JneNext => end_of_loop!(u64::ne),
        Kind::Jne64X => jump_x64!(u64::ne),
        Kind::Jne32K => jump_k32!(u32::ne),
        Kind::Jne32X => jump_x32!(u32::ne),
        Kind::Jgt64K => jump_k64!(u64::gt),
        Kind::Jgt64X => jump_x64!(u64::gt),
        Kind::Jgt32K => jump_k32!(u32::gt),
        Kind::Jgt32X => jump_x32!(u32::gt),
        Kind::Jge64K => jump_k64!(u64::ge),
        Kind::Jge64X => jump_x64!(u64::ge),
        Kind::Jge32K => jump_k32!(u32::ge),
        Kind::Jge32X => jump_x32!(u32::ge),
        Kind::Jlt64K => jump_k64!(u64::lt),
        Kind::Jlt64X => jump_x64!(u64::lt),
        Kind::Jlt32K => jump_k32!(u32::lt),
        Kind::Jlt32X => jump_x32!(u32::lt),
        Kind::Jle64K => jump_k64!(u64::le),
        Kind::Jle64X => jump_x64!(u64::le),
        Kind::Jle32K => jump_k32!(u32::le),
        Kind::Jle32X => jump_x32!(u32::le),
        Kind::Jset64K => jump_k64!(|a: &u64, b: &u64| a & b != 0),
        Kind::Jset64X => jump_x64!(|a: &u64, b: &u64| a & b != 0),
        Kind::Jset32K => jump_k32!(|a: &u32, b: &u32| a & b != 0),
        Kind::Jset32X => jump_x32!(|a: &u32, b: &u32| a & b != 0),
        Kind::Jsgt64K => jump_k64!(|a: &u64, b: &u64| signed(*a) > signed(*b)),
        Kind::Jsgt64X => jump_x64!(|a: &u64, b: &u64| signed(*a) > signed(*b)),
        Kind::Jsgt32K => jump_k32!(|a: &u32, b: &u32| signed32(*a) > signed32(*b)),
        Kind::Jsgt32X => jump_x32!(|a: &u32, b: &u32| signed32(*a) > signed32(*b)),
        Kind::Jsge64K => jump_k64!(|a: &u64, b: &u64| signed(*a) >= signed(*b)),
        Kind::Jsge64X => jump_x64!(|a: &u64, b: &u64| signed(*a) >= signed(*b)),
        Kind::Jsge32K => jump_k32!(|a: &u32, b: &u32| signed32(*a) >= signed32(*b)),
        Kind::Jsge32X => jump_x32!(|a: &u32, b: &u32| signed32(*a) >= signed32(*b)),
        Kind::Jslt64K => jump_k64!(|a: &u64, b: &u64| signed(*a) < signed(*b)),
        Kind::Jslt64X => jump_x64!(|a: &u64, b: &u64| signed(*a) < signed(*b)),
        Kind::Jslt32K => jump_k32!(|a: &u32, b: &u32| signed32(*a) < signed32(*b)),
        Kind::Jslt32X => jump_x32!(|a: &u32, b: &u32| signed32(*a) < signed32(*b)),
        Kind::Jsle64K => jump_k64!(|a: &u64, b: &u64| signed(*a) <= signed(*b)),
        Kind::Jsle64X => jump_x64!(|a: &u64, b: &u64| signed(*a) <= signed(*b)),
        Kind::Jsle32K => jump_k32!(|a: &u32, b: &u32| signed32(*a) <= signed32(*b)),
        Kind::Jsle32X => jump_x32!(|a: &u32, b: &u32| signed32(*a) <= signed32(*b)),
        Kind::CallHelper => call_helper,
        Kind::CallLocal => call_local,
        Kind::Poison => poison,
        Kind::Exit => exit,
        Kind::Fall => fall,
        _ => unreachable!("arithmetic and accesses have functions, too"),
    }
}

unsafe fn always<'a, H: Host>(pc: Pc<'a, H>, m: &mut Machine<'a, H>, fuel: i64) -> Next<'a, H> {
    // SAFETY: This cell is that of a jump.
    enter(unsafe { pc.target() }, m, fuel)
}

unsafe fn may_goto<'a, H: Host, const P: bool>(
    pc: Pc<'a, H>,
    m: &mut Machine<'a, H>,
    fuel: i64,
) -> Next<'a, H> {
    if P {
        m.vm.stack.progress.place = m.op(pc) as u32;
    }
    let exhausted = m.may_goto == 0;
    m.may_goto = m.may_goto.saturating_sub(1);
    // SAFETY: This cell is that of a jump.
    let to = unsafe { if exhausted { pc.target() } else { pc.next() } };
    enter(to, m, fuel)
}

/// No instruction: a block ends that a jump leads behind.
unsafe fn fall<'a, H: Host>(pc: Pc<'a, H>, m: &mut Machine<'a, H>, fuel: i64) -> Next<'a, H> {
    // SAFETY: This cell is that of an operation.
    enter(unsafe { pc.next() }, m, fuel)
}

fn exit<'a, H: Host>(pc: Pc<'a, H>, m: &mut Machine<'a, H>, fuel: i64) -> Next<'a, H> {
    if m.is_called() {
        return exit_to_caller(pc, m, fuel);
    }
    m.rest += fuel;
    None
}

#[inline(never)]
fn exit_to_caller<'a, H: Host>(_: Pc<'a, H>, m: &mut Machine<'a, H>, fuel: i64) -> Next<'a, H> {
    let back = m.return_to_caller();
    enter(back, m, fuel)
}

fn call_local<'a, H: Host>(pc: Pc<'a, H>, m: &mut Machine<'a, H>, fuel: i64) -> Next<'a, H> {
    match m.call_local(pc.cell().arg as usize, pc) {
        Ok(entry) => enter(entry, m, fuel),
        Err(stop) => m.fail(pc, fuel, stop),
    }
}

#[cold]
fn poison<'a, H: Host>(pc: Pc<'a, H>, m: &mut Machine<'a, H>, fuel: i64) -> Next<'a, H> {
    let text = m.vm.image().poisons[pc.cell().arg as usize].clone();
    m.fail(pc, fuel, Stop::Poison(text))
}

unsafe fn call_helper<'a, H: Host>(
    pc: Pc<'a, H>,
    m: &mut Machine<'a, H>,
    fuel: i64,
) -> Next<'a, H> {
    m.vm.stack.progress.place = m.op(pc) as u32;
    match m.vm.helper(m.get(pc.cell().dst)) {
        // SAFETY: This cell is that of an operation.
        Ok(import) => unsafe { call_import(pc, m, fuel, import) },
        Err(stop) => m.fail(pc, fuel, stop),
    }
}

/// What calls the host's function number `import`. `places` says whether anybody asks for places.
fn call<H: Host>(vm: &Instance<H>, import: usize, places: bool) -> Run<H> {
    let binding = &vm.bindings[import];
    match binding.intrinsic {
        _ if places && !binding.ends => call_host::<H, true>,
        Some(Intrinsic::Clock) => clock,
        Some(Intrinsic::Cpu) => cpu,
        Some(Intrinsic::Lookup) => lookup,
        _ => call_host::<H, false>,
    }
}

unsafe fn call_host<'a, H: Host, const P: bool>(
    pc: Pc<'a, H>,
    m: &mut Machine<'a, H>,
    fuel: i64,
) -> Next<'a, H> {
    if P {
        m.vm.stack.progress.place = m.op(pc) as u32;
    }
    // SAFETY: This cell is that of an operation.
    unsafe { call_import(pc, m, fuel, pc.cell().arg as usize) }
}

#[inline(always)]
unsafe fn call_import<'a, H: Host>(
    pc: Pc<'a, H>,
    m: &mut Machine<'a, H>,
    fuel: i64,
    import: usize,
) -> Next<'a, H> {
    let fuel = m.call_host(import, pc, fuel);
    // SAFETY: The caller says so.
    let to = unsafe { pc.next() };
    let left = fuel - i64::from(to.cell().len);
    if left < 0 {
        return end_or_pause(to, m, fuel);
    }
    to.run(m, left)
}

/// What the host has left is too little for the block at `pc`, or it has stopped the program.
#[cold]
#[inline(never)]
fn end_or_pause<'a, H: Host>(pc: Pc<'a, H>, m: &mut Machine<'a, H>, fuel: i64) -> Next<'a, H> {
    if m.is_stopped() {
        return None;
    }
    pause(pc, m, fuel)
}

/// A look-up in an array; in any other map it is the host's.
unsafe fn lookup<'a, H: Host>(pc: Pc<'a, H>, m: &mut Machine<'a, H>, fuel: i64) -> Next<'a, H> {
    let found = m.look_up_in_array();
    // SAFETY: This cell is that of an operation, a call.
    unsafe {
        match found {
            Some(value) => answer(pc, m, fuel, value),
            None => call_host::<H, false>(pc, m, fuel),
        }
    }
}

unsafe fn clock<'a, H: Host>(pc: Pc<'a, H>, m: &mut Machine<'a, H>, fuel: i64) -> Next<'a, H> {
    let now = m.host.now_ns();
    // SAFETY: This cell is that of an operation.
    unsafe { answer(pc, m, fuel, now) }
}

unsafe fn cpu<'a, H: Host>(pc: Pc<'a, H>, m: &mut Machine<'a, H>, fuel: i64) -> Next<'a, H> {
    let cpu = m.host.cpu();
    // SAFETY: This cell is that of an operation.
    unsafe { answer(pc, m, fuel, cpu.into()) }
}

/// What a function gives that only says something.
#[inline(always)]
unsafe fn answer<'a, H: Host>(
    pc: Pc<'a, H>,
    m: &mut Machine<'a, H>,
    fuel: i64,
    value: u64,
) -> Next<'a, H> {
    let cost_ps = m.vm.bindings[pc.cell().arg as usize].cost_ps;
    m.vm.stack.progress.charged_ps += cost_ps;
    m.answer(value);
    // SAFETY: The caller says so.
    enter(unsafe { pc.next() }, m, fuel)
}

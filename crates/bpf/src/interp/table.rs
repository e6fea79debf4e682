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
use super::machine::{CellActivation, RunCell};
use super::{rare, slow_store};
use crate::intrinsic::Intrinsic;
use crate::op::{Op, OpKind};
use crate::{Host, Instance, Stop};

/// Goes on behind the cell at `pc`, within its block.
#[inline(always)]
pub(super) unsafe fn next<'a, H: Host>(
    pc: Pc<'a, H>,
    m: &mut CellActivation<'a, H>,
    fuel: i64,
) -> Next<'a, H> {
    // SAFETY: The caller says so.
    unsafe { pc.next() }.run(m, fuel)
}

/// Begins the block at `to`, which is charged as a whole.
#[inline(always)]
fn enter<'a, H: Host>(to: Pc<'a, H>, m: &mut CellActivation<'a, H>, fuel: i64) -> Next<'a, H> {
    let left = fuel - i64::from(to.cell().len);
    if left < 0 {
        return pause(to, m, fuel);
    }
    to.run(m, left)
}

/// Returns from the chain; `pc` comes next.
#[cold]
#[inline(never)]
fn pause<'a, H: Host>(pc: Pc<'a, H>, m: &mut CellActivation<'a, H>, fuel: i64) -> Next<'a, H> {
    m.rest += fuel;
    Some(pc)
}

/// Returns from the chain within a block.
pub(super) fn hold<'a, H: Host>(
    pc: Pc<'a, H>,
    m: &mut CellActivation<'a, H>,
    fuel: i64,
) -> Next<'a, H> {
    m.holds = true;
    pause(pc, m, fuel)
}

/// Stands in front of an operation that others can see, or that sees what others do.
pub(super) unsafe fn point<'a, H: Host>(
    pc: Pc<'a, H>,
    m: &mut CellActivation<'a, H>,
    fuel: i64,
) -> Next<'a, H> {
    m.stop_at_point(pc, fuel);
    // SAFETY: It is the function that the operation's cell would have, but for the point.
    unsafe { m.behind(pc)(pc, m, fuel) }
}

/// Stands behind the last operation, which goes nowhere.
pub(super) fn behind_the_last<'a, H: Host>(
    _: Pc<'a, H>,
    _: &mut CellActivation<'a, H>,
    _: i64,
) -> Next<'a, H> {
    unreachable!("every function ends with an exit or a jump")
}

/// The function that executes `op`.
pub(super) fn function<H: Host>(vm: &Instance<H>, at: usize, op: Op) -> RunCell<H> {
    if op.arena {
        return rare::run;
    }
    if let Some(run) = arithmetic(op.kind).or_else(|| access(op.kind)) {
        return run;
    }
    let is_place = vm.config.places && vm.code.is_own(at);
    match (op.kind, is_place) {
        (OpKind::CallLocal, _) if vm.config.places && vm.code.calls_header(at) => {
            call_local::<H, true>
        }
        (OpKind::CallHost, places) => call(vm, op.imm as usize, places),
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
            $m: &mut CellActivation<'a, H>,
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
fn arithmetic<H: Host>(kind: OpKind) -> Option<RunCell<H>> {
    Some(match kind {
        OpKind::Add64K => k64!(u64::wrapping_add),
        OpKind::Add64X => x64!(u64::wrapping_add),
        OpKind::Add32K => k32!(u32::wrapping_add),
        OpKind::Add32X => x32!(u32::wrapping_add),
        OpKind::Sub64K => k64!(u64::wrapping_sub),
        OpKind::Sub64X => x64!(u64::wrapping_sub),
        OpKind::Sub32K => k32!(u32::wrapping_sub),
        OpKind::Sub32X => x32!(u32::wrapping_sub),
        OpKind::Mul64K => k64!(u64::wrapping_mul),
        OpKind::Mul64X => x64!(u64::wrapping_mul),
        OpKind::Mul32K => k32!(u32::wrapping_mul),
        OpKind::Mul32X => x32!(u32::wrapping_mul),
        // RFC 9669, section 4.1: division by zero gives zero, modulo by zero the dividend.
        OpKind::Div64K => k64!(|a: u64, b| a.checked_div(b).unwrap_or(0)),
        OpKind::Div64X => x64!(|a: u64, b| a.checked_div(b).unwrap_or(0)),
        OpKind::Div32K => k32!(|a: u32, b| a.checked_div(b).unwrap_or(0)),
        OpKind::Div32X => x32!(|a: u32, b| a.checked_div(b).unwrap_or(0)),
        OpKind::Sdiv64K => k64!(sdiv64),
        OpKind::Sdiv64X => x64!(sdiv64),
        OpKind::Sdiv32K => k32!(sdiv32),
        OpKind::Sdiv32X => x32!(sdiv32),
        OpKind::Mod64K => k64!(|a: u64, b| a.checked_rem(b).unwrap_or(a)),
        OpKind::Mod64X => x64!(|a: u64, b| a.checked_rem(b).unwrap_or(a)),
        OpKind::Mod32K => k32!(|a: u32, b| a.checked_rem(b).unwrap_or(a)),
        OpKind::Mod32X => x32!(|a: u32, b| a.checked_rem(b).unwrap_or(a)),
        OpKind::Smod64K => k64!(smod64),
        OpKind::Smod64X => x64!(smod64),
        OpKind::Smod32K => k32!(smod32),
        OpKind::Smod32X => x32!(smod32),
        OpKind::Or64K => k64!(|a, b| a | b),
        OpKind::Or64X => x64!(|a, b| a | b),
        OpKind::Or32K => k32!(|a, b| a | b),
        OpKind::Or32X => x32!(|a, b| a | b),
        OpKind::And64K => k64!(|a, b| a & b),
        OpKind::And64X => x64!(|a, b| a & b),
        OpKind::And32K => k32!(|a, b| a & b),
        OpKind::And32X => x32!(|a, b| a & b),
        OpKind::Xor64K => k64!(|a, b| a ^ b),
        OpKind::Xor64X => x64!(|a, b| a ^ b),
        OpKind::Xor32K => k32!(|a, b| a ^ b),
        OpKind::Xor32X => x32!(|a, b| a ^ b),
        // Wrapping shifts mask the count to the width, as the RFC demands.
        OpKind::Lsh64K => k64!(|a: u64, b| a.wrapping_shl(b as u32)),
        OpKind::Lsh64X => x64!(|a: u64, b| a.wrapping_shl(b as u32)),
        OpKind::Lsh32K => k32!(u32::wrapping_shl),
        OpKind::Lsh32X => x32!(u32::wrapping_shl),
        OpKind::Rsh64K => k64!(|a: u64, b| a.wrapping_shr(b as u32)),
        OpKind::Rsh64X => x64!(|a: u64, b| a.wrapping_shr(b as u32)),
        OpKind::Rsh32K => k32!(u32::wrapping_shr),
        OpKind::Rsh32X => x32!(u32::wrapping_shr),
        OpKind::Arsh64K => k64!(arsh64),
        OpKind::Arsh64X => x64!(arsh64),
        OpKind::Arsh32K => k32!(arsh32),
        OpKind::Arsh32X => x32!(arsh32),
        OpKind::Neg64 => k64!(|a: u64, _| a.wrapping_neg()),
        OpKind::Neg32 => k32!(|a: u32, _| a.wrapping_neg()),
        OpKind::Mov64K => k64!(|_, b| b),
        OpKind::Mov64X => x64!(|_, b| b),
        OpKind::Mov32K => k32!(|_, b| b),
        OpKind::Mov32X => x32!(|_, b| b),
        OpKind::Movs64X8 => x64!(|_, b| i64::from(b as i8).cast_unsigned()),
        OpKind::Movs64X16 => x64!(|_, b| i64::from(b as i16).cast_unsigned()),
        OpKind::Movs64X32 => x64!(|_, b| i64::from(b as i32).cast_unsigned()),
        OpKind::Movs32X8 => x32!(|_, b| i32::from(b as i8).cast_unsigned()),
        OpKind::Movs32X16 => x32!(|_, b| i32::from(b as i16).cast_unsigned()),
        // The simulated machine is little endian whatever the host is.
        OpKind::Le16 => k64!(|a, _| a & 0xffff),
        OpKind::Le32 => k32!(|a, _| a),
        OpKind::Le64 => k64!(|a, _| a),
        OpKind::Be16 | OpKind::Swap16 => k64!(|a, _| u64::from((a as u16).swap_bytes())),
        OpKind::Be32 | OpKind::Swap32 => k32!(|a: u32, _| a.swap_bytes()),
        OpKind::Be64 | OpKind::Swap64 => k64!(|a: u64, _| a.swap_bytes()),
        _ => return None,
    })
}

macro_rules! load {
    ($load:ident, $narrow:ty) => {{
        unsafe fn run<'a, H: Host>(
            pc: Pc<'a, H>,
            m: &mut CellActivation<'a, H>,
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
            $m: &mut CellActivation<'a, H>,
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
fn access<H: Host>(kind: OpKind) -> Option<RunCell<H>> {
    Some(match kind {
        OpKind::LoadU8 => load!(load_u8, i64),
        OpKind::LoadU16 => load!(load_u16, i64),
        OpKind::LoadU32 => load!(load_u32, i64),
        OpKind::LoadU64 => load!(load_u64, i64),
        OpKind::LoadS8 => load!(load_u8, i8),
        OpKind::LoadS16 => load!(load_u16, i16),
        OpKind::LoadS32 => load!(load_u32, i32),
        OpKind::StoreK8 => store_k!(u8),
        OpKind::StoreK16 => store_k!(u16),
        OpKind::StoreK32 => store_k!(u32),
        OpKind::StoreK64 => store_k!(u64),
        OpKind::StoreX8 => store_x!(u8),
        OpKind::StoreX16 => store_x!(u16),
        OpKind::StoreX32 => store_x!(u32),
        OpKind::StoreX64 => store_x!(u64),
        OpKind::Atomic32 | OpKind::Atomic64 => rare::run,
        OpKind::CastArena => cast_arena,
        _ => return None,
    })
}

/// A store outside the plain writable memory.
#[inline(never)]
unsafe fn store_slowly<'a, H: Host, const N: usize>(
    pc: Pc<'a, H>,
    m: &mut CellActivation<'a, H>,
    fuel: i64,
    (address, bytes): (u64, [u8; N]),
) -> Next<'a, H> {
    let at = m.op(pc);
    if m.vm.config.places && m.vm.code.is_own(at) {
        m.vm.stack.progress.place = at as u32;
    }
    match slow_store(m.vm, m.host, address, bytes) {
        // SAFETY: The caller says so.
        Ok(()) => unsafe { next(pc, m, fuel) },
        Err(stop) => m.fail(pc, fuel, stop),
    }
}

unsafe fn cast_arena<'a, H: Host>(
    pc: Pc<'a, H>,
    m: &mut CellActivation<'a, H>,
    fuel: i64,
) -> Next<'a, H> {
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
            $m: &mut CellActivation<'a, H>,
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
fn control<H: Host, const P: bool>(kind: OpKind) -> RunCell<H> {
    match kind {
        OpKind::Jump => always,
        OpKind::MayGoto => may_goto::<H, P>,
        OpKind::Jeq64K => jump_k64!(u64::eq),
        OpKind::Jeq64X => jump_x64!(u64::eq),
        OpKind::Jeq32K => jump_k32!(u32::eq),
        OpKind::Jeq32X => jump_x32!(u32::eq),
        OpKind::Jne64K => jump_k64!(u64::ne),
        OpKind::JeqNext => end_of_loop!(u64::eq),
        OpKind::JneNext => end_of_loop!(u64::ne),
        OpKind::Jne64X => jump_x64!(u64::ne),
        OpKind::Jne32K => jump_k32!(u32::ne),
        OpKind::Jne32X => jump_x32!(u32::ne),
        OpKind::Jgt64K => jump_k64!(u64::gt),
        OpKind::Jgt64X => jump_x64!(u64::gt),
        OpKind::Jgt32K => jump_k32!(u32::gt),
        OpKind::Jgt32X => jump_x32!(u32::gt),
        OpKind::Jge64K => jump_k64!(u64::ge),
        OpKind::Jge64X => jump_x64!(u64::ge),
        OpKind::Jge32K => jump_k32!(u32::ge),
        OpKind::Jge32X => jump_x32!(u32::ge),
        OpKind::Jlt64K => jump_k64!(u64::lt),
        OpKind::Jlt64X => jump_x64!(u64::lt),
        OpKind::Jlt32K => jump_k32!(u32::lt),
        OpKind::Jlt32X => jump_x32!(u32::lt),
        OpKind::Jle64K => jump_k64!(u64::le),
        OpKind::Jle64X => jump_x64!(u64::le),
        OpKind::Jle32K => jump_k32!(u32::le),
        OpKind::Jle32X => jump_x32!(u32::le),
        OpKind::Jset64K => jump_k64!(|a: &u64, b: &u64| a & b != 0),
        OpKind::Jset64X => jump_x64!(|a: &u64, b: &u64| a & b != 0),
        OpKind::Jset32K => jump_k32!(|a: &u32, b: &u32| a & b != 0),
        OpKind::Jset32X => jump_x32!(|a: &u32, b: &u32| a & b != 0),
        OpKind::Jsgt64K => jump_k64!(|a: &u64, b: &u64| signed(*a) > signed(*b)),
        OpKind::Jsgt64X => jump_x64!(|a: &u64, b: &u64| signed(*a) > signed(*b)),
        OpKind::Jsgt32K => jump_k32!(|a: &u32, b: &u32| signed32(*a) > signed32(*b)),
        OpKind::Jsgt32X => jump_x32!(|a: &u32, b: &u32| signed32(*a) > signed32(*b)),
        OpKind::Jsge64K => jump_k64!(|a: &u64, b: &u64| signed(*a) >= signed(*b)),
        OpKind::Jsge64X => jump_x64!(|a: &u64, b: &u64| signed(*a) >= signed(*b)),
        OpKind::Jsge32K => jump_k32!(|a: &u32, b: &u32| signed32(*a) >= signed32(*b)),
        OpKind::Jsge32X => jump_x32!(|a: &u32, b: &u32| signed32(*a) >= signed32(*b)),
        OpKind::Jslt64K => jump_k64!(|a: &u64, b: &u64| signed(*a) < signed(*b)),
        OpKind::Jslt64X => jump_x64!(|a: &u64, b: &u64| signed(*a) < signed(*b)),
        OpKind::Jslt32K => jump_k32!(|a: &u32, b: &u32| signed32(*a) < signed32(*b)),
        OpKind::Jslt32X => jump_x32!(|a: &u32, b: &u32| signed32(*a) < signed32(*b)),
        OpKind::Jsle64K => jump_k64!(|a: &u64, b: &u64| signed(*a) <= signed(*b)),
        OpKind::Jsle64X => jump_x64!(|a: &u64, b: &u64| signed(*a) <= signed(*b)),
        OpKind::Jsle32K => jump_k32!(|a: &u32, b: &u32| signed32(*a) <= signed32(*b)),
        OpKind::Jsle32X => jump_x32!(|a: &u32, b: &u32| signed32(*a) <= signed32(*b)),
        OpKind::CallHelper => call_helper::<H, P>,
        OpKind::CallLocal => call_local::<H, false>,
        OpKind::Poison => poison,
        OpKind::Exit => exit,
        OpKind::Fall => fall,
        _ => unreachable!("arithmetic and accesses have functions, too"),
    }
}

unsafe fn always<'a, H: Host>(
    pc: Pc<'a, H>,
    m: &mut CellActivation<'a, H>,
    fuel: i64,
) -> Next<'a, H> {
    // SAFETY: This cell is that of a jump.
    enter(unsafe { pc.target() }, m, fuel)
}

unsafe fn may_goto<'a, H: Host, const P: bool>(
    pc: Pc<'a, H>,
    m: &mut CellActivation<'a, H>,
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
unsafe fn fall<'a, H: Host>(
    pc: Pc<'a, H>,
    m: &mut CellActivation<'a, H>,
    fuel: i64,
) -> Next<'a, H> {
    // SAFETY: This cell is that of an operation.
    enter(unsafe { pc.next() }, m, fuel)
}

fn exit<'a, H: Host>(pc: Pc<'a, H>, m: &mut CellActivation<'a, H>, fuel: i64) -> Next<'a, H> {
    if m.is_called() {
        return exit_to_caller(pc, m, fuel);
    }
    m.rest += fuel;
    None
}

#[inline(never)]
fn exit_to_caller<'a, H: Host>(
    _: Pc<'a, H>,
    m: &mut CellActivation<'a, H>,
    fuel: i64,
) -> Next<'a, H> {
    let back = m.return_to_caller();
    enter(back, m, fuel)
}

fn call_local<'a, H: Host, const P: bool>(
    pc: Pc<'a, H>,
    m: &mut CellActivation<'a, H>,
    fuel: i64,
) -> Next<'a, H> {
    if P {
        m.vm.stack.progress.place = m.op(pc) as u32;
    }
    match m.call_local(pc.cell().arg as usize, pc) {
        Ok(entry) => enter(entry, m, fuel),
        Err(stop) => m.fail(pc, fuel, stop),
    }
}

#[cold]
fn poison<'a, H: Host>(pc: Pc<'a, H>, m: &mut CellActivation<'a, H>, fuel: i64) -> Next<'a, H> {
    let text = m.vm.image().poisons[pc.cell().arg as usize].clone();
    m.fail(pc, fuel, Stop::Poison(text))
}

unsafe fn call_helper<'a, H: Host, const P: bool>(
    pc: Pc<'a, H>,
    m: &mut CellActivation<'a, H>,
    fuel: i64,
) -> Next<'a, H> {
    if P {
        m.vm.stack.progress.place = m.op(pc) as u32;
    }
    match m.vm.helper(m.get(pc.cell().dst)) {
        // SAFETY: This cell is that of an operation.
        Ok(import) => unsafe { call_import(pc, m, fuel, import) },
        Err(stop) => m.fail(pc, fuel, stop),
    }
}

/// What calls the host's function number `import`. `places` says whether anybody asks for places.
fn call<H: Host>(vm: &Instance<H>, import: usize, places: bool) -> RunCell<H> {
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
    m: &mut CellActivation<'a, H>,
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
    m: &mut CellActivation<'a, H>,
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
fn end_or_pause<'a, H: Host>(
    pc: Pc<'a, H>,
    m: &mut CellActivation<'a, H>,
    fuel: i64,
) -> Next<'a, H> {
    if m.is_stopped() {
        return None;
    }
    pause(pc, m, fuel)
}

/// A look-up in an array; in any other map it is the host's.
unsafe fn lookup<'a, H: Host>(
    pc: Pc<'a, H>,
    m: &mut CellActivation<'a, H>,
    fuel: i64,
) -> Next<'a, H> {
    let found = m.look_up_in_array();
    // SAFETY: This cell is that of an operation, a call.
    unsafe {
        match found {
            Some(value) => answer(pc, m, fuel, value),
            None => call_host::<H, false>(pc, m, fuel),
        }
    }
}

unsafe fn clock<'a, H: Host>(
    pc: Pc<'a, H>,
    m: &mut CellActivation<'a, H>,
    fuel: i64,
) -> Next<'a, H> {
    let now = m.host.now_ns();
    // SAFETY: This cell is that of an operation.
    unsafe { answer(pc, m, fuel, now) }
}

unsafe fn cpu<'a, H: Host>(pc: Pc<'a, H>, m: &mut CellActivation<'a, H>, fuel: i64) -> Next<'a, H> {
    let cpu = m.host.cpu();
    // SAFETY: This cell is that of an operation.
    unsafe { answer(pc, m, fuel, cpu.into()) }
}

/// What a function gives that only says something.
#[inline(always)]
unsafe fn answer<'a, H: Host>(
    pc: Pc<'a, H>,
    m: &mut CellActivation<'a, H>,
    fuel: i64,
    value: u64,
) -> Next<'a, H> {
    let cost_ps = m.vm.bindings[pc.cell().arg as usize].cost_ps;
    m.vm.stack.progress.charged_ps += cost_ps;
    m.answer(value);
    // SAFETY: The caller says so.
    enter(unsafe { pc.next() }, m, fuel)
}

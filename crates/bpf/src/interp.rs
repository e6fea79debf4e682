//! The interpreter: the oracle for every other back end.
//!
//! It knows operations and frames only. What a call of the host means, where memory is and how
//! faults are reported stand in back-end-neutral modules.

use crate::decode::atomic;
use crate::frame::{FRAME_BYTES, Frame, MAX_FRAMES, MAY_GOTO_TURNS, Trap};
use crate::memory::Verdict;
use crate::op::{Code, Entry, Kind, Op};
use crate::{Host, Instance, Stop};

/// Registers; the ISA has 11, and a power of two needs no bounds check.
type Registers = [u64; 16];

/// Runs `function` until it exits, in the first frame of the call.
pub(crate) fn run<H: Host>(
    vm: &mut Instance<H>,
    host: &mut H,
    function: u32,
    args: [u64; 5],
) -> Result<u64, Trap> {
    let code = vm.lend_code();
    let outer = vm.progress.frame;
    let retired = vm.retired();
    let mut activation = Activation {
        regs: [0; 16],
        frames: vm.frames.len(),
        may_goto: MAY_GOTO_TURNS,
        retired,
        limit: vm.progress.budget_end,
    };
    activation.regs[1..6].copy_from_slice(&args);
    activation.regs[10] = vm.first_frame();
    let result = activation.execute(&code, vm, host, function);
    vm.frames.truncate(activation.frames);
    vm.progress.set_retired(activation.retired);
    vm.progress.frame = outer;
    vm.take_code_back(code);
    result
}

struct Activation {
    regs: Registers,
    /// Frames of the instance that belong to earlier activations.
    frames: usize,
    may_goto: u32,
    /// Charged when a block is entered.
    retired: u64,
    limit: u64,
}

impl Activation {
    #[inline]
    fn get(&self, register: u8) -> u64 {
        self.regs[usize::from(register & 15)]
    }

    #[inline]
    fn set(&mut self, register: u8, value: u64) {
        self.regs[usize::from(register & 15)] = value;
    }

    #[inline]
    fn set32(&mut self, register: u8, value: u32) {
        self.set(register, u64::from(value));
    }

    /// Runs from the beginning of `function` until it exits.
    #[expect(clippy::too_many_lines, reason = "one arm for each operation")]
    #[rustfmt::skip]
    fn execute<H: Host>(
        &mut self,
        code: &Code,
        vm: &mut Instance<H>,
        host: &mut H,
        function: u32,
    ) -> Result<u64, Trap> {
        let Code { ops, block_len, entries, .. } = code;
        let entry = entries[function as usize];
        let mut at = entry.op as usize;
        self.push_stack(vm, entry.clear).map_err(|stop| Trap { stop, op: at })?;
        // Begins the block at an operation, which is charged as a whole.
        macro_rules! enter {
            ($next:expr) => {{
                at = $next;
                let len = u64::from(block_len[at]);
                if self.retired + len > self.limit {
                    return Err(Trap { stop: vm.budget_stop(), op: at });
                }
                self.retired += len;
            }};
        }
        // Takes a result, or ends the program at this operation.
        macro_rules! attempt {
            ($result:expr) => {
                match $result {
                    Ok(value) => value,
                    Err(stop) => return Err(self.fail(code, at, stop)),
                }
            };
        }
        // `K` is an operation's immediate, `X` its source register.
        macro_rules! k { ($op:ident) => { $op.imm.cast_unsigned() }; }
        macro_rules! x { ($op:ident) => { self.get($op.src) }; }
        macro_rules! alu64 {
            ($op:ident, $b:ident, $f:expr) => {{
                let result = $f(self.get($op.dst), $b!($op));
                self.set($op.dst, result);
            }};
        }
        macro_rules! alu32 {
            ($op:ident, $b:ident, $f:expr) => {{
                let result = $f(self.get($op.dst) as u32, $b!($op) as u32);
                self.set32($op.dst, result);
            }};
        }
        macro_rules! jump {
            ($op:ident, $taken:expr) => {
                {
                    vm.progress.place = at as u32;
                    enter!(if $taken { $op.off as usize } else { at + 1 });
                    continue;
                }
            };
        }
        macro_rules! jump64 {
            ($op:ident, $b:ident, $f:expr) => { jump!($op, $f(&self.get($op.dst), &$b!($op))) };
        }
        macro_rules! jump32 {
            ($op:ident, $b:ident, $f:expr) => {
                jump!($op, $f(&(self.get($op.dst) as u32), &($b!($op) as u32)))
            };
        }
        macro_rules! load {
            ($op:ident, $load:ident, $len:literal) => {{
                let mut address = self.get($op.src).wrapping_add_signed(i64::from($op.off));
                let mut there = true;
                if $op.arena {
                    (address, there) = vm.arena_access(at, self.get($op.src), ($len, false));
                }
                self.set($op.dst, if there { vm.memory.$load(address) } else { 0 });
            }};
        }
        macro_rules! load_signed {
            ($op:ident, $load:ident, $narrow:ty, $len:literal) => {{
                load!($op, $load, $len);
                self.set($op.dst, i64::from(self.get($op.dst) as $narrow).cast_unsigned());
            }};
        }
        macro_rules! store {
            ($op:ident, $value:expr, $width:ty) => {{
                let mut address = self.get($op.dst).wrapping_add_signed(i64::from($op.off));
                let bytes = ($value as $width).to_le_bytes();
                let mut there = true;
                if $op.arena {
                    let len = size_of::<$width>() as u64;
                    (address, there) = vm.arena_access(at, self.get($op.dst), (len, true));
                }
                if there && !vm.memory.store(address, bytes) {
                    vm.progress.place = at as u32;
                    attempt!(slow_store(vm, host, address, bytes));
                }
            }};
        }
        enter!(at);
        loop {
            let op = ops[at];
            match op.kind {
                Kind::Add64K => alu64!(op, k, u64::wrapping_add),
                Kind::Add64X => alu64!(op, x, u64::wrapping_add),
                Kind::Add32K => alu32!(op, k, u32::wrapping_add),
                Kind::Add32X => alu32!(op, x, u32::wrapping_add),
                Kind::Sub64K => alu64!(op, k, u64::wrapping_sub),
                Kind::Sub64X => alu64!(op, x, u64::wrapping_sub),
                Kind::Sub32K => alu32!(op, k, u32::wrapping_sub),
                Kind::Sub32X => alu32!(op, x, u32::wrapping_sub),
                Kind::Mul64K => alu64!(op, k, u64::wrapping_mul),
                Kind::Mul64X => alu64!(op, x, u64::wrapping_mul),
                Kind::Mul32K => alu32!(op, k, u32::wrapping_mul),
                Kind::Mul32X => alu32!(op, x, u32::wrapping_mul),
                // RFC 9669, section 4.1: division by zero gives zero, modulo by zero the dividend.
                Kind::Div64K => alu64!(op, k, |a: u64, b| a.checked_div(b).unwrap_or(0)),
                Kind::Div64X => alu64!(op, x, |a: u64, b| a.checked_div(b).unwrap_or(0)),
                Kind::Div32K => alu32!(op, k, |a: u32, b| a.checked_div(b).unwrap_or(0)),
                Kind::Div32X => alu32!(op, x, |a: u32, b| a.checked_div(b).unwrap_or(0)),
                Kind::Sdiv64K => alu64!(op, k, sdiv64),
                Kind::Sdiv64X => alu64!(op, x, sdiv64),
                Kind::Sdiv32K => alu32!(op, k, sdiv32),
                Kind::Sdiv32X => alu32!(op, x, sdiv32),
                Kind::Mod64K => alu64!(op, k, |a: u64, b| a.checked_rem(b).unwrap_or(a)),
                Kind::Mod64X => alu64!(op, x, |a: u64, b| a.checked_rem(b).unwrap_or(a)),
                Kind::Mod32K => alu32!(op, k, |a: u32, b| a.checked_rem(b).unwrap_or(a)),
                Kind::Mod32X => alu32!(op, x, |a: u32, b| a.checked_rem(b).unwrap_or(a)),
                Kind::Smod64K => alu64!(op, k, smod64),
                Kind::Smod64X => alu64!(op, x, smod64),
                Kind::Smod32K => alu32!(op, k, smod32),
                Kind::Smod32X => alu32!(op, x, smod32),
                Kind::Or64K => alu64!(op, k, |a, b| a | b),
                Kind::Or64X => alu64!(op, x, |a, b| a | b),
                Kind::Or32K => alu32!(op, k, |a, b| a | b),
                Kind::Or32X => alu32!(op, x, |a, b| a | b),
                Kind::And64K => alu64!(op, k, |a, b| a & b),
                Kind::And64X => alu64!(op, x, |a, b| a & b),
                Kind::And32K => alu32!(op, k, |a, b| a & b),
                Kind::And32X => alu32!(op, x, |a, b| a & b),
                Kind::Xor64K => alu64!(op, k, |a, b| a ^ b),
                Kind::Xor64X => alu64!(op, x, |a, b| a ^ b),
                Kind::Xor32K => alu32!(op, k, |a, b| a ^ b),
                Kind::Xor32X => alu32!(op, x, |a, b| a ^ b),
                // Wrapping shifts mask the count to the width, as the RFC demands.
                Kind::Lsh64K => alu64!(op, k, |a: u64, b| a.wrapping_shl(b as u32)),
                Kind::Lsh64X => alu64!(op, x, |a: u64, b| a.wrapping_shl(b as u32)),
                Kind::Lsh32K => alu32!(op, k, u32::wrapping_shl),
                Kind::Lsh32X => alu32!(op, x, u32::wrapping_shl),
                Kind::Rsh64K => alu64!(op, k, |a: u64, b| a.wrapping_shr(b as u32)),
                Kind::Rsh64X => alu64!(op, x, |a: u64, b| a.wrapping_shr(b as u32)),
                Kind::Rsh32K => alu32!(op, k, u32::wrapping_shr),
                Kind::Rsh32X => alu32!(op, x, u32::wrapping_shr),
                Kind::Arsh64K => alu64!(op, k, arsh64),
                Kind::Arsh64X => alu64!(op, x, arsh64),
                Kind::Arsh32K => alu32!(op, k, arsh32),
                Kind::Arsh32X => alu32!(op, x, arsh32),
                Kind::Neg64 => self.set(op.dst, self.get(op.dst).wrapping_neg()),
                Kind::Neg32 => self.set32(op.dst, (self.get(op.dst) as u32).wrapping_neg()),
                Kind::Mov64K => self.set(op.dst, k!(op)),
                Kind::Mov64X => self.set(op.dst, x!(op)),
                Kind::Mov32K => self.set32(op.dst, k!(op) as u32),
                Kind::Mov32X => self.set32(op.dst, x!(op) as u32),
                Kind::Movs64X8 => self.set(op.dst, i64::from(x!(op) as i8).cast_unsigned()),
                Kind::Movs64X16 => self.set(op.dst, i64::from(x!(op) as i16).cast_unsigned()),
                Kind::Movs64X32 => self.set(op.dst, i64::from(x!(op) as i32).cast_unsigned()),
                Kind::Movs32X8 => self.set32(op.dst, i32::from(x!(op) as i8).cast_unsigned()),
                Kind::Movs32X16 => self.set32(op.dst, i32::from(x!(op) as i16).cast_unsigned()),
                // The simulated machine is little endian whatever the host is.
                Kind::Le16 => self.set(op.dst, u64::from(self.get(op.dst) as u16)),
                Kind::Le32 => self.set32(op.dst, self.get(op.dst) as u32),
                Kind::Le64 => {}
                Kind::Be16 | Kind::Swap16 => {
                    self.set(op.dst, u64::from((self.get(op.dst) as u16).swap_bytes()));
                }
                Kind::Be32 | Kind::Swap32 => {
                    self.set32(op.dst, (self.get(op.dst) as u32).swap_bytes());
                }
                Kind::Be64 | Kind::Swap64 => self.set(op.dst, self.get(op.dst).swap_bytes()),
                Kind::CastArena => self.set(op.dst, vm.cast_arena(x!(op), op.imm)),

                Kind::LoadU8 => load!(op, load_u8, 1),
                Kind::LoadU16 => load!(op, load_u16, 2),
                Kind::LoadU32 => load!(op, load_u32, 4),
                Kind::LoadU64 => load!(op, load_u64, 8),
                Kind::LoadS8 => load_signed!(op, load_u8, i8, 1),
                Kind::LoadS16 => load_signed!(op, load_u16, i16, 2),
                Kind::LoadS32 => load_signed!(op, load_u32, i32, 4),
                Kind::StoreK8 => store!(op, op.imm, u8),
                Kind::StoreK16 => store!(op, op.imm, u16),
                Kind::StoreK32 => store!(op, op.imm, u32),
                Kind::StoreK64 => store!(op, op.imm, u64),
                Kind::StoreX8 => store!(op, x!(op), u8),
                Kind::StoreX16 => store!(op, x!(op), u16),
                Kind::StoreX32 => store!(op, x!(op), u32),
                Kind::StoreX64 => store!(op, x!(op), u64),
                Kind::Atomic32 => attempt!(self.atomic32(vm, host, at, op)),
                Kind::Atomic64 => attempt!(self.atomic64(vm, host, at, op)),

                Kind::Jump => {
                    enter!(op.off as usize);
                    continue;
                }
                Kind::MayGoto => {
                    let exhausted = self.may_goto == 0;
                    self.may_goto = self.may_goto.saturating_sub(1);
                    jump!(op, exhausted);
                }
                Kind::Jeq64K => jump64!(op, k, u64::eq),
                Kind::Jeq64X => jump64!(op, x, u64::eq),
                Kind::Jeq32K => jump32!(op, k, u32::eq),
                Kind::Jeq32X => jump32!(op, x, u32::eq),
                Kind::Jne64K => jump64!(op, k, u64::ne),
                Kind::JeqNext | Kind::JneNext => {
                    let ends = (self.get(op.dst) == 0) == (op.kind == Kind::JeqNext);
                    enter!(if ends { op.off as usize } else { at + 1 });
                    continue;
                }
                Kind::Jne64X => jump64!(op, x, u64::ne),
                Kind::Jne32K => jump32!(op, k, u32::ne),
                Kind::Jne32X => jump32!(op, x, u32::ne),
                Kind::Jgt64K => jump64!(op, k, u64::gt),
                Kind::Jgt64X => jump64!(op, x, u64::gt),
                Kind::Jgt32K => jump32!(op, k, u32::gt),
                Kind::Jgt32X => jump32!(op, x, u32::gt),
                Kind::Jge64K => jump64!(op, k, u64::ge),
                Kind::Jge64X => jump64!(op, x, u64::ge),
                Kind::Jge32K => jump32!(op, k, u32::ge),
                Kind::Jge32X => jump32!(op, x, u32::ge),
                Kind::Jlt64K => jump64!(op, k, u64::lt),
                Kind::Jlt64X => jump64!(op, x, u64::lt),
                Kind::Jlt32K => jump32!(op, k, u32::lt),
                Kind::Jlt32X => jump32!(op, x, u32::lt),
                Kind::Jle64K => jump64!(op, k, u64::le),
                Kind::Jle64X => jump64!(op, x, u64::le),
                Kind::Jle32K => jump32!(op, k, u32::le),
                Kind::Jle32X => jump32!(op, x, u32::le),
                Kind::Jset64K => jump64!(op, k, |a: &u64, b: &u64| a & b != 0),
                Kind::Jset64X => jump64!(op, x, |a: &u64, b: &u64| a & b != 0),
                Kind::Jset32K => jump32!(op, k, |a: &u32, b: &u32| a & b != 0),
                Kind::Jset32X => jump32!(op, x, |a: &u32, b: &u32| a & b != 0),
                Kind::Jsgt64K => jump64!(op, k, |a: &u64, b: &u64| signed(*a) > signed(*b)),
                Kind::Jsgt64X => jump64!(op, x, |a: &u64, b: &u64| signed(*a) > signed(*b)),
                Kind::Jsgt32K => jump32!(op, k, |a: &u32, b: &u32| signed32(*a) > signed32(*b)),
                Kind::Jsgt32X => jump32!(op, x, |a: &u32, b: &u32| signed32(*a) > signed32(*b)),
                Kind::Jsge64K => jump64!(op, k, |a: &u64, b: &u64| signed(*a) >= signed(*b)),
                Kind::Jsge64X => jump64!(op, x, |a: &u64, b: &u64| signed(*a) >= signed(*b)),
                Kind::Jsge32K => jump32!(op, k, |a: &u32, b: &u32| signed32(*a) >= signed32(*b)),
                Kind::Jsge32X => jump32!(op, x, |a: &u32, b: &u32| signed32(*a) >= signed32(*b)),
                Kind::Jslt64K => jump64!(op, k, |a: &u64, b: &u64| signed(*a) < signed(*b)),
                Kind::Jslt64X => jump64!(op, x, |a: &u64, b: &u64| signed(*a) < signed(*b)),
                Kind::Jslt32K => jump32!(op, k, |a: &u32, b: &u32| signed32(*a) < signed32(*b)),
                Kind::Jslt32X => jump32!(op, x, |a: &u32, b: &u32| signed32(*a) < signed32(*b)),
                Kind::Jsle64K => jump64!(op, k, |a: &u64, b: &u64| signed(*a) <= signed(*b)),
                Kind::Jsle64X => jump64!(op, x, |a: &u64, b: &u64| signed(*a) <= signed(*b)),
                Kind::Jsle32K => jump32!(op, k, |a: &u32, b: &u32| signed32(*a) <= signed32(*b)),
                Kind::Jsle32X => jump32!(op, x, |a: &u32, b: &u32| signed32(*a) <= signed32(*b)),

                Kind::CallHost => {
                    if !vm.bindings[op.imm as usize].ends {
                        vm.progress.place = at as u32;
                    }
                    attempt!(self.call_host(vm, host, op.imm as usize));
                    enter!(at + 1);
                    continue;
                }
                Kind::CallHelper => {
                    vm.progress.place = at as u32;
                    let import = attempt!(vm.helper(self.get(op.dst)));
                    attempt!(self.call_host(vm, host, import));
                    enter!(at + 1);
                    continue;
                }
                Kind::CallLocal => {
                    let entry = entries[op.imm as usize];
                    attempt!(self.call_local(vm, entry, at));
                    enter!(entry.op as usize);
                    continue;
                }
                Kind::Poison => {
                    let text = vm.image().poisons[op.imm as usize].clone();
                    return Err(self.fail(code, at, Stop::Poison(text)));
                }
                Kind::Exit => match self.leave(vm) {
                    Some(back) => {
                        enter!(back);
                        continue;
                    }
                    None => return Ok(self.regs[0]),
                },
                Kind::Fall => {
                    enter!(at + 1);
                    continue;
                }
            }
            at += 1;
        }
    }

    /// Takes a frame above the current one, clears its upper `clear` bytes and points `r10` to
    /// its end.
    fn push_stack<H: Host>(&mut self, vm: &mut Instance<H>, clear: u32) -> Result<(), Stop> {
        let frame = self.regs[10];
        if frame + FRAME_BYTES > vm.stack_end {
            return Err(Stop::StackOverflow {
                limit: vm.stack_bytes(),
            });
        }
        self.regs[10] = frame + FRAME_BYTES;
        let clear = u64::from(clear);
        vm.memory.clear(self.regs[10] - clear, clear);
        vm.progress.frame = frame;
        Ok(())
    }

    /// The program ends inside a block: what it did not execute is not counted.
    #[cold]
    fn fail(&mut self, code: &Code, op: usize, stop: Stop) -> Trap {
        self.retired -= code.left_in_block(op);
        Trap { stop, op }
    }

    fn call_local<H: Host>(
        &mut self,
        vm: &mut Instance<H>,
        entry: Entry,
        at: usize,
    ) -> Result<(), Stop> {
        if vm.frames.len() - self.frames >= MAX_FRAMES - 1 {
            return Err(Stop::CallDepth {
                limit: MAX_FRAMES as u32,
            });
        }
        let [_, _, _, _, _, _, r6, r7, r8, r9, ..] = self.regs;
        self.push_stack(vm, entry.clear)?;
        self.regs[0] = 0;
        self.regs[6..10].fill(0);
        let kept = [r6, r7, r8, r9];
        vm.frames.push(Frame {
            kept,
            back: at + 1,
            may_goto: self.may_goto,
        });
        self.may_goto = MAY_GOTO_TURNS;
        Ok(())
    }

    /// Returns to the caller; `None` when there is none in this activation.
    fn leave<H: Host>(&mut self, vm: &mut Instance<H>) -> Option<usize> {
        if vm.frames.len() == self.frames {
            return None;
        }
        let frame = vm.frames.pop()?;
        self.regs[1..6].fill(0);
        self.regs[6..10].copy_from_slice(&frame.kept);
        self.regs[10] -= FRAME_BYTES;
        vm.progress.frame -= FRAME_BYTES;
        self.may_goto = frame.may_goto;
        Some(frame.back)
    }

    /// Calls the host. A nested program counts on from here.
    fn call_host<H: Host>(
        &mut self,
        vm: &mut Instance<H>,
        host: &mut H,
        import: usize,
    ) -> Result<(), Stop> {
        let [_, a, b, c, d, e, ..] = self.regs;
        vm.progress.set_retired(self.retired);
        let result = vm.call_import(host, import, [a, b, c, d, e]);
        self.retired = vm.retired();
        self.limit = vm.progress.budget_end;
        self.regs[0] = result?;
        self.regs[1..6].fill(0);
        Ok(())
    }

    fn atomic64<H: Host>(
        &mut self,
        vm: &mut Instance<H>,
        host: &mut H,
        at: usize,
        op: Op,
    ) -> Result<(), Stop> {
        let (address, there) = self.atomic_place(vm, at, op, 8);
        let old = if there {
            vm.memory.load_u64(address)
        } else {
            0
        };
        let (new, result) = self.atomic(op, old, self.get(op.src), self.regs[0]);
        if let Some(new) = new.filter(|_| there) {
            let bytes = new.to_le_bytes();
            if !vm.memory.store(address, bytes) {
                slow_store(vm, host, address, bytes)?;
            }
        }
        if let Some(register) = result {
            self.set(register, old);
        }
        Ok(())
    }

    fn atomic32<H: Host>(
        &mut self,
        vm: &mut Instance<H>,
        host: &mut H,
        at: usize,
        op: Op,
    ) -> Result<(), Stop> {
        let (address, there) = self.atomic_place(vm, at, op, 4);
        let old = if there {
            vm.memory.load_u32(address)
        } else {
            0
        };
        let low = |value: u64| value & u64::from(u32::MAX);
        let (new, result) = self.atomic(op, old, low(self.get(op.src)), low(self.regs[0]));
        if let Some(new) = new.filter(|_| there) {
            let bytes = (new as u32).to_le_bytes();
            if !vm.memory.store(address, bytes) {
                slow_store(vm, host, address, bytes)?;
            }
        }
        if let Some(register) = result {
            self.set(register, old);
        }
        Ok(())
    }

    /// Where an atomic operation of `len` bytes goes. False if nothing is there: then what it
    /// found is 0, and it stores nothing.
    #[inline]
    fn atomic_place<H: Host>(
        &self,
        vm: &mut Instance<H>,
        at: usize,
        op: Op,
        len: u64,
    ) -> (u64, bool) {
        let pointer = self.get(op.dst);
        match op.arena {
            true => vm.arena_access(at, pointer, (len, true)),
            false => (pointer.wrapping_add_signed(i64::from(op.off)), true),
        }
    }

    /// The new value to store, if any, and the register that gets the old one, if any.
    ///
    /// A failed compare-and-exchange stores nothing, so it may fail on memory that is read-only.
    fn atomic(&self, op: Op, old: u64, value: u64, expected: u64) -> (Option<u64>, Option<u8>) {
        let imm = op.imm as i32;
        match imm {
            atomic::XCHG => return (Some(value), Some(op.src)),
            atomic::CMPXCHG => return ((old == expected).then_some(value), Some(0)),
            _ => {}
        }
        let new = match imm & !atomic::FETCH {
            atomic::ADD => old.wrapping_add(value),
            atomic::OR => old | value,
            atomic::AND => old & value,
            _ => old ^ value,
        };
        (Some(new), (imm & atomic::FETCH != 0).then_some(op.src))
    }
}

/// A store outside the plain writable memory: into the arena, into a kernel object, or nowhere.
#[inline]
pub(crate) fn slow_store<H: Host, const N: usize>(
    vm: &mut Instance<H>,
    host: &mut H,
    address: u64,
    bytes: [u8; N],
) -> Result<(), Stop> {
    if !vm.memory.is_kernel_object(address, N as u64) {
        return store_elsewhere(vm, address, &bytes);
    }
    if vm.config.places {
        host.stores_at(vm.here());
    }
    let mut value = [0; 8];
    value[..N].copy_from_slice(&bytes);
    host.store_protected(&mut vm.memory, address, N as u8, u64::from_le_bytes(value))
}

#[cold]
fn store_elsewhere<H: Host>(vm: &mut Instance<H>, address: u64, bytes: &[u8]) -> Result<(), Stop> {
    match vm.memory.verdict(address, bytes.len() as u64) {
        Verdict::Allowed => {
            vm.memory.write(address, bytes);
            Ok(())
        }
        Verdict::Dropped => Ok(()),
        Verdict::Protected | Verdict::Wild => Err(Stop::WildStore {
            address,
            size: bytes.len() as u8,
        }),
    }
}

const fn signed(value: u64) -> i64 {
    value.cast_signed()
}

const fn signed32(value: u32) -> i32 {
    value.cast_signed()
}

const fn arsh64(a: u64, b: u64) -> u64 {
    signed(a).wrapping_shr(b as u32).cast_unsigned()
}

const fn arsh32(a: u32, b: u32) -> u32 {
    signed32(a).wrapping_shr(b).cast_unsigned()
}

const fn sdiv64(a: u64, b: u64) -> u64 {
    if b == 0 {
        0
    } else {
        signed(a).wrapping_div(signed(b)).cast_unsigned()
    }
}

const fn sdiv32(a: u32, b: u32) -> u32 {
    if b == 0 {
        0
    } else {
        signed32(a).wrapping_div(signed32(b)).cast_unsigned()
    }
}

const fn smod64(a: u64, b: u64) -> u64 {
    if b == 0 {
        a
    } else {
        signed(a).wrapping_rem(signed(b)).cast_unsigned()
    }
}

const fn smod32(a: u32, b: u32) -> u32 {
    if b == 0 {
        a
    } else {
        signed32(a).wrapping_rem(signed32(b)).cast_unsigned()
    }
}

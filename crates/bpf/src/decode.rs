//! From the loader's instruction slots to operations. Encodings: RFC 9669.

use crate::frame::FRAME_BYTES;
use crate::isa::LD_IMM64;
use crate::op::{self, Code, FunctionEntry, Op, OpKind};
use crate::{Function, Image, Insn, MapKind, header, spaces};
use model::Advice;

/// Guest addresses that a program's constants refer to.
pub(crate) trait Addresses {
    /// Of a map's handle.
    fn map_handle(&self, map: u32) -> Option<u64>;
    /// Of the first value of a map.
    fn map_value(&self, map: u32) -> Option<u64>;
    /// Of a kernel variable.
    fn variable(&self, variable: u32) -> Option<u64>;
    /// Of a function, for callbacks.
    fn function(&self, function: u32) -> Option<u64>;
}

/// An instruction that is no instruction of this machine. The loader lets none through; an image
/// that somebody built by hand may have one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{function}+{insn}: {what} (opcode {code:#04x})")]
pub struct BadInsn {
    /// The function.
    pub function: String,
    /// Slot within the function.
    pub insn: u32,
    /// The operation byte.
    pub code: u8,
    /// What is wrong.
    pub what: &'static str,
}

impl Advice for BadInsn {
    fn advice(&self) -> Option<String> {
        None
    }
}

type Decoded<T> = Result<T, &'static str>;

/// Decodes all functions.
pub(crate) fn decode(image: &Image, addresses: &impl Addresses) -> Result<Code, BadInsn> {
    let mut code = Code::default();
    decode_rest(image, addresses, &mut code)?;
    Ok(code)
}

/// Decodes the functions that `code` does not have yet. If one of them is bad, `code` stays as it
/// was.
pub(crate) fn decode_rest(
    image: &Image,
    addresses: &impl Addresses,
    code: &mut Code,
) -> Result<(), BadInsn> {
    let (functions, ops) = (code.entries.len(), code.ops.len());
    for function in &image.functions[functions..] {
        let decoded = decode_function(image, function, addresses, code);
        if let Err((slot, what)) = decoded {
            code.entries.truncate(functions);
            code.ops.truncate(ops);
            code.origin.truncate(ops);
            let insn = image.code.get(function.start as usize + slot);
            return Err(BadInsn {
                function: function.name.clone(),
                insn: slot as u32,
                code: insn.map_or(0, |insn| insn.code),
                what,
            });
        }
    }
    header::mark(image, &mut code.entries, functions);
    count_blocks(code, ops);
    if image.maps.iter().any(|map| map.kind == MapKind::Arena) {
        spaces::mark(code, functions);
    }
    Ok(())
}

fn decode_function(
    image: &Image,
    function: &Function,
    addresses: &impl Addresses,
    code: &mut Code,
) -> Result<(), (usize, &'static str)> {
    let start = function.start as usize;
    let end = start.checked_add(function.len as usize);
    let slots = end
        .and_then(|end| image.code.get(start..end))
        .ok_or((0, "outside the code"))?;
    if slots.is_empty() {
        return Err((0, "the function is empty"));
    }
    let leaders = leaders(slots)?;
    let first_op = code.ops.len() as u32;
    let mut op_of_slot = vec![u32::MAX; slots.len()];
    let mut slot = 0;
    while slot < slots.len() {
        let falls_in = leaders[slot] && code.ops.len() as u32 > first_op;
        if falls_in && !code.ops.last().is_some_and(|op| op.kind.ends_block()) {
            code.push(
                Op {
                    kind: OpKind::Fall,
                    dst: 0,
                    src: 0,
                    arena: false,
                    off: 0,
                    imm: 0,
                },
                start + slot,
            );
        }
        op_of_slot[slot] = code.ops.len() as u32;
        let next = slots.get(slot + 1);
        let op = decode_one(image, slots[slot], next, addresses).map_err(|what| (slot, what))?;
        code.push(op, start + slot);
        slot += slot_count(slots[slot]);
    }
    if !matches!(
        code.ops.last().map(|op| op.kind),
        Some(OpKind::Exit | OpKind::Jump | OpKind::Poison)
    ) {
        return Err((
            slots.len().saturating_sub(1),
            "control flows off the end of the function",
        ));
    }
    mark_ends_of_loops(image, &mut code.ops[first_op as usize..]);
    resolve_jumps(
        slots,
        start,
        &op_of_slot,
        &mut code.ops[first_op as usize..],
        &code.origin,
    );
    let ops = &code.ops[first_op as usize..];
    code.entries.push(FunctionEntry {
        op: first_op,
        len: ops.len() as u32,
        clear: stack_reach(ops),
        begin: first_op + first_place(ops),
        arena: 0,
        is_header: false,
    });
    Ok(())
}

/// Tells the tests for an iterator's end from other conditions.
fn mark_ends_of_loops(image: &Image, ops: &mut [Op]) {
    for at in 0..ops.len() {
        let import = usize::try_from(ops[at].imm).ok();
        let import = import.and_then(|import| image.imports.get(import));
        if ops[at].kind != OpKind::CallHost || import.is_none_or(|it| !op::is_next(&it.name)) {
            continue;
        }
        // A compiler may copy the result before it tests it.
        let copies = ops[at + 1..]
            .iter()
            .take_while(|op| op.kind == OpKind::Mov64X);
        let test = at + 1 + copies.count();
        let Some(op) = ops.get_mut(test).filter(|op| op.imm == 0) else {
            continue;
        };
        op.kind = match op.kind {
            OpKind::Jeq64K => OpKind::JeqNext,
            OpKind::Jne64K => OpKind::JneNext,
            kind => kind,
        };
    }
}

/// The operation that says what a function does which neither calls nor chooses: its last store
/// beside the stack. Otherwise the first one.
fn first_place(ops: &[Op]) -> u32 {
    let straight = ops.iter().take_while(|op| !op.kind.ends_block()).count();
    if ops.get(straight).is_none_or(|op| op.kind != OpKind::Exit) {
        return 0;
    }
    let stores = |op: &Op| op.kind.is_store() && op.dst != 10;
    ops[..straight].iter().rposition(stores).unwrap_or(0) as u32
}

/// How far below `r10` the operations of a function reach, bytes, a multiple of 8.
fn stack_reach(ops: &[Op]) -> u32 {
    let mut reach = 0;
    for (at, op) in ops.iter().enumerate() {
        let offset = match op.kind {
            _ if op.src != 10 && op.dst != 10 => continue,
            kind if kind.is_load() && op.src == 10 => i64::from(op.off),
            kind if kind.is_store()
                && op.dst == 10
                && (kind.stores_immediate() || op.src != 10) =>
            {
                i64::from(op.off)
            }
            OpKind::Mov64X => match ops.get(at + 1) {
                Some(next) if next.kind == OpKind::Add64K && next.dst == op.dst => next.imm,
                _ => return FRAME_BYTES as u32,
            },
            // `call` and the like say something else with these fields.
            OpKind::Jump
            | OpKind::MayGoto
            | OpKind::CallHost
            | OpKind::CallLocal
            | OpKind::Fall => continue,
            _ => return FRAME_BYTES as u32,
        };
        reach = reach.max(offset.saturating_neg());
    }
    (reach.clamp(0, FRAME_BYTES as i64) as u32).next_multiple_of(8)
}

impl Code {
    fn push(&mut self, op: Op, slot: usize) {
        self.ops.push(op);
        self.origin.push(slot as u32);
    }
}

const fn slot_count(insn: Insn) -> usize {
    if insn.code == LD_IMM64 { 2 } else { 1 }
}

/// The slots that some jump leads to, each checked to be the first slot of an instruction.
fn leaders(slots: &[Insn]) -> Result<Vec<bool>, (usize, &'static str)> {
    let mut leaders = vec![false; slots.len()];
    let mut begins = vec![false; slots.len()];
    let mut slot = 0;
    while slot < slots.len() {
        begins[slot] = true;
        if let Some(target) = target_of(slots[slot], slot) {
            let target = usize::try_from(target)
                .ok()
                .filter(|target| *target < slots.len());
            leaders[target.ok_or((slot, "jump out of the function"))?] = true;
        }
        slot += slot_count(slots[slot]);
    }
    match leaders
        .iter()
        .zip(&begins)
        .position(|(leader, begins)| *leader && !begins)
    {
        Some(slot) => Err((slot, "jump into the middle of an instruction")),
        None => Ok(leaders),
    }
}

/// Where a jump at `slot` leads; `None` when the instruction is no jump.
fn target_of(insn: Insn, slot: usize) -> Option<i64> {
    let (class, operation) = (insn.code & 0x07, insn.code & 0xf0);
    let is_jump = (class == 5 || class == 6) && operation != 0x80 && operation != 0x90;
    let distance = if insn.code == 0x06 {
        i64::from(insn.imm)
    } else {
        i64::from(insn.off)
    };
    is_jump.then(|| slot as i64 + 1 + distance)
}

/// Replaces the slots that jumps lead to by operations.
fn resolve_jumps(slots: &[Insn], start: usize, ops_of: &[u32], ops: &mut [Op], origin: &[u32]) {
    let origin = &origin[origin.len() - ops.len()..];
    for (op, slot) in ops.iter_mut().zip(origin) {
        let slot = *slot as usize - start;
        if let Some(target) = target_of(slots[slot], slot).filter(|_| op.kind != OpKind::Fall) {
            op.off = ops_of[target as usize].cast_signed();
        }
    }
}

/// Every operation from `first` on, where a function begins, gets the length of the block that
/// would begin there.
fn count_blocks(code: &mut Code, first: usize) {
    code.block_len.resize(code.ops.len(), 0);
    let mut len = 0;
    for (at, op) in code.ops.iter().enumerate().skip(first).rev() {
        if op.kind.ends_block() {
            len = 0;
        }
        len += u32::from(op.kind != OpKind::Fall);
        code.block_len[at] = len;
    }
}

fn decode_one(
    image: &Image,
    insn: Insn,
    next: Option<&Insn>,
    addresses: &impl Addresses,
) -> Decoded<Op> {
    if insn.dst > 10 || (insn.src > 10 && insn.src != Insn::POISON) {
        return Err("no such register");
    }
    if writes_frame_pointer(insn) {
        return Err("r10 is written, which is read-only");
    }
    let op = Op {
        kind: OpKind::Exit,
        dst: insn.dst,
        src: insn.src,
        arena: false,
        off: i32::from(insn.off),
        imm: i64::from(insn.imm),
    };
    match insn.code & 0x07 {
        0 => load_constant(insn, next, addresses).map(|imm| Op {
            kind: OpKind::Mov64K,
            imm,
            ..op
        }),
        1..=3 => Ok(Op {
            kind: memory_kind(insn)?,
            ..op
        }),
        4 | 7 => Ok(Op {
            kind: arithmetic_kind(insn)?,
            ..op
        }),
        _ if insn.code == 0x85 => call(image, insn).map(|kind| Op { kind, ..op }),
        _ => Ok(Op {
            kind: jump_kind(insn)?,
            ..op
        }),
    }
}

const fn writes_frame_pointer(insn: Insn) -> bool {
    match insn.code & 0x07 {
        0 | 1 | 4 | 7 => insn.dst == 10,
        3 if insn.code & 0xe0 == 0xc0 => match insn.imm {
            atomic::LOAD_ACQUIRE => insn.dst == 10,
            atomic::STORE_RELEASE | atomic::CMPXCHG => false,
            operation => operation & atomic::FETCH != 0 && insn.src == 10,
        },
        _ => false,
    }
}

fn load_constant(insn: Insn, next: Option<&Insn>, addresses: &impl Addresses) -> Decoded<i64> {
    if insn.code != LD_IMM64 {
        return Err("legacy packet access");
    }
    let high = next
        .ok_or("the second slot is missing")?
        .imm
        .cast_unsigned();
    let low = insn.imm.cast_unsigned();
    let (base, offset) = match insn.src {
        0 => (Some(u64::from(high) << 32 | u64::from(low)), 0),
        1 => (addresses.map_handle(low), 0),
        2 => (addresses.map_value(low), high),
        // An absent variable has the address 0, whatever the offset: programs test for it.
        3 => match addresses.variable(low) {
            Some(0) => (Some(0), 0),
            address => (address, high),
        },
        4 => (addresses.function(low), 0),
        _ => (None, 0),
    };
    let base = base.ok_or("the constant refers to nothing")?;
    Ok(base.wrapping_add(u64::from(offset)).cast_signed())
}

fn call(image: &Image, insn: Insn) -> Decoded<OpKind> {
    let (kind, count) = match insn.src {
        0 => (OpKind::CallHost, image.imports.len()),
        1 => (OpKind::CallLocal, image.functions.len()),
        Insn::POISON => (OpKind::Poison, image.poisons.len()),
        _ => return Err("no such kind of call"),
    };
    let known = usize::try_from(insn.imm).is_ok_and(|index| index < count);
    known.then_some(kind).ok_or("call of nothing")
}

fn memory_kind(insn: Insn) -> Decoded<OpKind> {
    Ok(match insn.code {
        0x71 => OpKind::LoadU8,
        0x69 => OpKind::LoadU16,
        0x61 => OpKind::LoadU32,
        0x79 => OpKind::LoadU64,
        0x91 => OpKind::LoadS8,
        0x89 => OpKind::LoadS16,
        0x81 => OpKind::LoadS32,
        0x72 => OpKind::StoreK8,
        0x6a => OpKind::StoreK16,
        0x62 => OpKind::StoreK32,
        0x7a => OpKind::StoreK64,
        0x73 => OpKind::StoreX8,
        0x6b => OpKind::StoreX16,
        0x63 => OpKind::StoreX32,
        0x7b => OpKind::StoreX64,
        0xc3 | 0xdb | 0xcb | 0xd3 => return atomic_kind(insn),
        _ => return Err("no such load or store"),
    })
}

/// Atomic operations by their immediate.
pub(crate) mod atomic {
    pub(crate) const ADD: i32 = 0x00;
    pub(crate) const OR: i32 = 0x40;
    pub(crate) const AND: i32 = 0x50;
    pub(crate) const XOR: i32 = 0xa0;
    pub(crate) const FETCH: i32 = 0x01;
    pub(crate) const XCHG: i32 = 0xe1;
    pub(crate) const CMPXCHG: i32 = 0xf1;
    /// Linux 6.15 and later (include/uapi/linux/bpf.h); not in RFC 9669.
    pub(crate) const LOAD_ACQUIRE: i32 = 0x100;
    /// As [`LOAD_ACQUIRE`].
    pub(crate) const STORE_RELEASE: i32 = 0x110;
}

/// With one thread of execution, ordered loads and stores are plain ones.
fn atomic_kind(insn: Insn) -> Decoded<OpKind> {
    use atomic::{ADD, AND, CMPXCHG, FETCH, LOAD_ACQUIRE, OR, STORE_RELEASE, XCHG, XOR};
    let by_size = |kinds: [OpKind; 4]| match insn.code {
        0xd3 => kinds[0],
        0xcb => kinds[1],
        0xc3 => kinds[2],
        _ => kinds[3],
    };
    match insn.imm {
        LOAD_ACQUIRE => Ok(by_size([
            OpKind::LoadU8,
            OpKind::LoadU16,
            OpKind::LoadU32,
            OpKind::LoadU64,
        ])),
        STORE_RELEASE => Ok(by_size([
            OpKind::StoreX8,
            OpKind::StoreX16,
            OpKind::StoreX32,
            OpKind::StoreX64,
        ])),
        XCHG | CMPXCHG => atomic_width(insn.code),
        imm if matches!(imm & !FETCH, ADD | OR | AND | XOR) => atomic_width(insn.code),
        _ => Err("no such atomic operation"),
    }
}

const fn atomic_width(code: u8) -> Decoded<OpKind> {
    match code {
        0xc3 => Ok(OpKind::Atomic32),
        0xdb => Ok(OpKind::Atomic64),
        _ => Err("no atomic operation of this size"),
    }
}

fn arithmetic_kind(insn: Insn) -> Decoded<OpKind> {
    let wide = insn.code & 0x07 == 7;
    match (insn.code & 0xf0, wide) {
        (0xd0, _) => return swap_kind(insn, wide),
        (0x80, true) if insn.code == 0x87 => return Ok(OpKind::Neg64),
        (0x80, false) if insn.code == 0x84 => return Ok(OpKind::Neg32),
        (0xb0, _) if insn.code & 0x08 != 0 && insn.off != 0 => return move_kind(insn.off, wide),
        _ => {}
    }
    let kinds = arithmetic_kinds(insn.code & 0xf0, insn.off).ok_or("no such arithmetic")?;
    Ok(select(kinds, insn.code & 0x08 != 0, wide))
}

/// Picks among the forms of one operation: 64K, 64X, 32K, 32X.
const fn select(kinds: [OpKind; 4], register: bool, wide: bool) -> OpKind {
    kinds[register as usize + if wide { 0 } else { 2 }]
}

#[rustfmt::skip]
const fn arithmetic_kinds(operation: u8, off: i16) -> Option<[OpKind; 4]> {
    use OpKind::*;
    Some(match (operation, off) {
        (0x00, 0) => [Add64K, Add64X, Add32K, Add32X],
        (0x10, 0) => [Sub64K, Sub64X, Sub32K, Sub32X],
        (0x20, 0) => [Mul64K, Mul64X, Mul32K, Mul32X],
        (0x30, 0) => [Div64K, Div64X, Div32K, Div32X],
        (0x30, 1) => [Sdiv64K, Sdiv64X, Sdiv32K, Sdiv32X],
        (0x40, 0) => [Or64K, Or64X, Or32K, Or32X],
        (0x50, 0) => [And64K, And64X, And32K, And32X],
        (0x60, 0) => [Lsh64K, Lsh64X, Lsh32K, Lsh32X],
        (0x70, 0) => [Rsh64K, Rsh64X, Rsh32K, Rsh32X],
        (0x90, 0) => [Mod64K, Mod64X, Mod32K, Mod32X],
        (0x90, 1) => [Smod64K, Smod64X, Smod32K, Smod32X],
        (0xa0, 0) => [Xor64K, Xor64X, Xor32K, Xor32X],
        (0xb0, 0) => [Mov64K, Mov64X, Mov32K, Mov32X],
        (0xc0, 0) => [Arsh64K, Arsh64X, Arsh32K, Arsh32X],
        _ => return None,
    })
}

const fn move_kind(off: i16, wide: bool) -> Decoded<OpKind> {
    Ok(match (off, wide) {
        // BPF_ADDR_SPACE_CAST, Linux 6.9 (include/linux/filter.h); the immediate says which way.
        (1, true) => OpKind::CastArena,
        (8, true) => OpKind::Movs64X8,
        (16, true) => OpKind::Movs64X16,
        (32, true) => OpKind::Movs64X32,
        (8, false) => OpKind::Movs32X8,
        (16, false) => OpKind::Movs32X16,
        _ => return Err("no such move"),
    })
}

const fn swap_kind(insn: Insn, wide: bool) -> Decoded<OpKind> {
    Ok(match (wide, insn.code & 0x08 != 0, insn.imm) {
        (false, false, 16) => OpKind::Le16,
        (false, false, 32) => OpKind::Le32,
        (false, false, 64) => OpKind::Le64,
        (false, true, 16) => OpKind::Be16,
        (false, true, 32) => OpKind::Be32,
        (false, true, 64) => OpKind::Be64,
        (true, false, 16) => OpKind::Swap16,
        (true, false, 32) => OpKind::Swap32,
        (true, false, 64) => OpKind::Swap64,
        _ => return Err("no such byte swap"),
    })
}

fn jump_kind(insn: Insn) -> Decoded<OpKind> {
    match insn.code {
        0x05 | 0x06 => return Ok(OpKind::Jump),
        0x95 => return Ok(OpKind::Exit),
        // A helper whose number is in a register. RFC 9669 knows it no longer and the kernel
        // refuses it, as the loader does; the public vectors have it.
        0x8d => return Ok(OpKind::CallHelper),
        // BPF_JCOND with BPF_MAY_GOTO, Linux 6.9 (include/uapi/linux/bpf.h).
        0xe5 if insn.src == 0 => return Ok(OpKind::MayGoto),
        _ => {}
    }
    let kinds = jump_kinds(insn.code & 0xf0).ok_or("no such jump")?;
    Ok(select(kinds, insn.code & 0x08 != 0, insn.code & 0x07 == 5))
}

#[rustfmt::skip]
const fn jump_kinds(operation: u8) -> Option<[OpKind; 4]> {
    use OpKind::*;
    Some(match operation {
        0x10 => [Jeq64K, Jeq64X, Jeq32K, Jeq32X],
        0x20 => [Jgt64K, Jgt64X, Jgt32K, Jgt32X],
        0x30 => [Jge64K, Jge64X, Jge32K, Jge32X],
        0x40 => [Jset64K, Jset64X, Jset32K, Jset32X],
        0x50 => [Jne64K, Jne64X, Jne32K, Jne32X],
        0x60 => [Jsgt64K, Jsgt64X, Jsgt32K, Jsgt32X],
        0x70 => [Jsge64K, Jsge64X, Jsge32K, Jsge32X],
        0xa0 => [Jlt64K, Jlt64X, Jlt32K, Jlt32X],
        0xb0 => [Jle64K, Jle64X, Jle32K, Jle32X],
        0xc0 => [Jslt64K, Jslt64X, Jslt32K, Jslt32X],
        0xd0 => [Jsle64K, Jsle64X, Jsle32K, Jsle32X],
        _ => return None,
    })
}

//! Which loads and stores go through pointers into the arena.
//!
//! A kernel's verifier knows that of each instruction. Such an access is to where the arena lies in
//! the kernel, plus the low 32 bits of the register, plus the offset; so a pointer of 0 is no null
//! pointer, but the arena's first page if that lies at a multiple of 4 GiB. Every other access is
//! to the address in the register. Pointers are followed as there: from a cast through registers,
//! the frame, arithmetic, and arguments and results of local calls. A verifier refuses code in
//! which one instruction is both kinds of access. So where ways meet, a register points into the
//! arena if it does on one of them.
//!
//! Source: `PTR_TO_ARENA` in kernel/bpf/verifier.c, `BPF_PROBE_MEM32` in
//! `arch/x86/net/bpf_jit_comp.c`, kernel 7.3.

use std::collections::{BTreeMap, BTreeSet};

use crate::decode::atomic;
use crate::frame::FRAME_BYTES;
use crate::isa::TO_USER;
use crate::op::{Code, Op, OpKind};

/// What is known of a register.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Register {
    #[default]
    Other,
    /// It points into the arena.
    Arena,
    /// It is the frame pointer plus so many bytes.
    Frame(i64),
}

/// What is known where a block begins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct BlockState {
    registers: [Register; 11],
    /// The words of the frame that hold pointers into the arena, the lowest one first.
    slots: u64,
}

/// The result's bit in [`Entry::arena`](crate::op::FunctionEntry::arena); argument N has the bit N.
const RESULT: u8 = 1;

/// Marks the operations of the functions from `first` on, and again of others that they call.
pub(crate) fn mark(code: &mut Code, first: usize) {
    let mut pending: BTreeSet<usize> = (first..code.entries.len()).collect();
    while let Some(function) = pending.pop_first() {
        if !may_touch(code, function) {
            continue;
        }
        let found = Walk::of(code, function);
        for at in found.accesses {
            code.ops[at].arena = true;
        }
        for (callee, arguments) in found.calls {
            let entry = &mut code.entries[callee];
            if entry.arena | arguments != entry.arena {
                entry.arena |= arguments;
                pending.insert(callee);
            }
        }
        let entry = &mut code.entries[function];
        if found.returns && entry.arena & RESULT == 0 {
            entry.arena |= RESULT;
            pending.extend(callers(code, function));
        }
    }
}

/// Whether a pointer into the arena can come up in `function` at all.
fn may_touch(code: &Code, function: usize) -> bool {
    let comes_up = |op: &Op| match op.kind {
        OpKind::CastArena => op.imm != TO_USER,
        OpKind::CallLocal => code.entries[op.imm as usize].arena & RESULT != 0,
        _ => false,
    };
    let has_argument = code.entries[function].arena & !RESULT != 0;
    has_argument || code.ops_of(function as u32).iter().any(comes_up)
}

fn callers(code: &Code, callee: usize) -> impl Iterator<Item = usize> + '_ {
    let calls = move |op: &Op| op.kind == OpKind::CallLocal && op.imm as usize == callee;
    let all = 0..code.entries.len();
    all.filter(move |function| code.ops_of(*function as u32).iter().any(calls))
}

/// What one function does.
#[derive(Default)]
struct Walk {
    /// Operations that access the arena.
    accesses: BTreeSet<usize>,
    /// Functions that get pointers into the arena, and as which arguments.
    calls: BTreeMap<usize, u8>,
    returns: bool,
}

impl Walk {
    fn of(code: &Code, function: usize) -> Self {
        let entry = code.entries[function];
        let mut begin = BlockState::default();
        begin.registers[10] = Register::Frame(0);
        for argument in 1..=5 {
            if entry.arena & 1 << argument != 0 {
                begin.registers[argument] = Register::Arena;
            }
        }
        let mut walk = Self::default();
        let mut states = BTreeMap::from([(entry.op as usize, begin)]);
        let mut pending = BTreeSet::from([entry.op as usize]);
        while let Some(block) = pending.pop_first() {
            let mut state = states[&block].clone();
            for next in walk.block(code, block, &mut state) {
                let met = states.entry(next).or_insert_with(|| {
                    pending.insert(next);
                    state.clone()
                });
                if met.meet(&state) {
                    pending.insert(next);
                }
            }
        }
        walk
    }

    /// Follows the block that begins at operation `at`; where blocks begin that can be next.
    fn block(&mut self, code: &Code, mut at: usize, state: &mut BlockState) -> Vec<usize> {
        loop {
            let op = code.ops[at];
            match op.kind {
                OpKind::Exit => {
                    self.returns |= state.registers[0] == Register::Arena;
                    return Vec::new();
                }
                OpKind::Poison => return Vec::new(),
                OpKind::Jump => return vec![op.off as usize],
                OpKind::CallLocal => self.call(code, op, state),
                OpKind::CallHost | OpKind::CallHelper => {
                    state.registers[..=5].fill(Register::Other);
                }
                OpKind::Fall => {}
                kind if kind.ends_block() => return vec![at + 1, op.off as usize],
                _ => {
                    let base = if op.kind.is_load() { op.src } else { op.dst };
                    let accesses = op.kind.is_load() || op.kind.is_store();
                    if accesses && state.get(base) == Register::Arena {
                        self.accesses.insert(at);
                    }
                    state.step(op);
                }
            }
            at += 1;
            if op.kind.ends_block() {
                return vec![at];
            }
        }
    }

    fn call(&mut self, code: &Code, op: Op, state: &mut BlockState) {
        let callee = op.imm as usize;
        let given = (1..=5_u8).filter(|register| state.get(*register) == Register::Arena);
        let arguments = given.fold(0, |all, register| all | 1 << register);
        if arguments != 0 {
            *self.calls.entry(callee).or_default() |= arguments;
        }
        state.registers[..=5].fill(Register::Other);
        if code.entries[callee].arena & RESULT != 0 {
            state.registers[0] = Register::Arena;
        }
    }
}

impl BlockState {
    fn get(&self, register: u8) -> Register {
        self.registers[usize::from(register)]
    }

    fn set(&mut self, register: u8, value: Register) {
        self.registers[usize::from(register)] = value;
    }

    /// Another way leads here, too. Whether that says more.
    fn meet(&mut self, other: &Self) -> bool {
        let before = self.clone();
        for (one, other) in self.registers.iter_mut().zip(other.registers) {
            if *one != other {
                let points = *one == Register::Arena || other == Register::Arena;
                *one = if points {
                    Register::Arena
                } else {
                    Register::Other
                };
            }
        }
        self.slots |= other.slots;
        *self != before
    }

    /// Executes an operation that ends no block.
    fn step(&mut self, op: Op) {
        match op.kind {
            OpKind::CastArena if op.imm == TO_USER => self.set(op.dst, Register::Other),
            OpKind::CastArena => self.set(op.dst, Register::Arena),
            OpKind::Mov64X => self.set(op.dst, self.get(op.src)),
            OpKind::Atomic32 | OpKind::Atomic64 => {
                self.spill(op, Register::Other);
                match op.imm as i32 {
                    atomic::CMPXCHG => self.set(0, Register::Other),
                    imm if imm & atomic::FETCH != 0 => self.set(op.src, Register::Other),
                    _ => {}
                }
            }
            kind if kind.is_store() => {
                let whole = kind == OpKind::StoreX64;
                let stored = if whole {
                    self.get(op.src)
                } else {
                    Register::Other
                };
                self.spill(op, stored);
            }
            kind if kind.is_load() => {
                let slot = self.slot(op.src, op.off);
                let held = slot.is_some_and(|slot| self.slots & 1 << slot != 0);
                let fills = held && kind == OpKind::LoadU64;
                self.set(
                    op.dst,
                    if fills {
                        Register::Arena
                    } else {
                        Register::Other
                    },
                );
            }
            kind if kind.is_move() => self.set(op.dst, Register::Other),
            kind => {
                let from = kind.has_source().then(|| self.get(op.src));
                let result = match (self.get(op.dst), from) {
                    (Register::Arena, _) | (_, Some(Register::Arena)) => Register::Arena,
                    (Register::Frame(at), None) if kind == OpKind::Add64K => {
                        Register::Frame(at.saturating_add(op.imm))
                    }
                    _ => Register::Other,
                };
                self.set(op.dst, result);
            }
        }
    }

    /// A store, to the frame or elsewhere.
    fn spill(&mut self, op: Op, stored: Register) {
        if let Some(slot) = self.slot(op.dst, op.off) {
            self.slots &= !(1 << slot);
            self.slots |= u64::from(stored == Register::Arena) << slot;
        }
    }

    /// The word of the frame at `offset` from `register`.
    fn slot(&self, register: u8, offset: i32) -> Option<u32> {
        let Register::Frame(at) = self.get(register) else {
            return None;
        };
        let from_start = at
            .checked_add(offset.into())?
            .checked_add(FRAME_BYTES as i64)?;
        let inside = (0..FRAME_BYTES as i64).contains(&from_start);
        inside.then_some((from_start / 8) as u32)
    }
}

#[cfg(test)]
mod tests;

//! Pre-decoded instructions: one dense operation for each instruction, operands resolved.
//!
//! Basic blocks are part of the meaning, because instructions are counted by block (see
//! [`Instance`](crate::Instance)). A block ends with a jump, a call, an exit, or before an
//! instruction that some jump leads to.

use std::collections::BTreeSet;

/// What an [`Op`] does.
///
/// `64` and `32`: width of the operation. `K`: the second operand is the immediate; `X`: it is the
/// source register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[rustfmt::skip]
pub(crate) enum OpKind {
    Add64K, Add64X, Add32K, Add32X,
    Sub64K, Sub64X, Sub32K, Sub32X,
    Mul64K, Mul64X, Mul32K, Mul32X,
    Div64K, Div64X, Div32K, Div32X,
    Sdiv64K, Sdiv64X, Sdiv32K, Sdiv32X,
    Or64K, Or64X, Or32K, Or32X,
    And64K, And64X, And32K, And32X,
    Lsh64K, Lsh64X, Lsh32K, Lsh32X,
    Rsh64K, Rsh64X, Rsh32K, Rsh32X,
    Neg64, Neg32,
    Mod64K, Mod64X, Mod32K, Mod32X,
    Smod64K, Smod64X, Smod32K, Smod32X,
    Xor64K, Xor64X, Xor32K, Xor32X,
    Mov64K, Mov64X, Mov32K, Mov32X,
    Movs64X8, Movs64X16, Movs64X32, Movs32X8, Movs32X16,
    Arsh64K, Arsh64X, Arsh32K, Arsh32X,
    Le16, Le32, Le64, Be16, Be32, Be64, Swap16, Swap32, Swap64,
    CastArena,

    LoadU8, LoadU16, LoadU32, LoadU64, LoadS8, LoadS16, LoadS32,
    StoreK8, StoreK16, StoreK32, StoreK64,
    StoreX8, StoreX16, StoreX32, StoreX64,
    Atomic32, Atomic64,

    Jump, MayGoto,
    Jeq64K, Jeq64X, Jeq32K, Jeq32X,
    Jgt64K, Jgt64X, Jgt32K, Jgt32X,
    Jge64K, Jge64X, Jge32K, Jge32X,
    Jset64K, Jset64X, Jset32K, Jset32X,
    Jne64K, Jne64X, Jne32K, Jne32X,
    /// As `Jeq64K` and `Jne64K` with 0, of what the `next` of an iterator has returned: the end of
    /// a loop, which is no place that says what a program decided.
    JeqNext, JneNext,
    Jsgt64K, Jsgt64X, Jsgt32K, Jsgt32X,
    Jsge64K, Jsge64X, Jsge32K, Jsge32X,
    Jlt64K, Jlt64X, Jlt32K, Jlt32X,
    Jle64K, Jle64X, Jle32K, Jle32X,
    Jslt64K, Jslt64X, Jslt32K, Jslt32X,
    Jsle64K, Jsle64X, Jsle32K, Jsle32X,

    CallHost, CallHelper, CallLocal, Poison, Exit,
    /// No instruction: the next operation begins a block that a jump also leads to.
    Fall,
}

impl OpKind {
    /// Whether a block ends after this operation.
    pub(crate) const fn ends_block(self) -> bool {
        self as u8 >= Self::Jump as u8
    }

    /// Whether it is a jump, conditional or not.
    pub(crate) const fn is_jump(self) -> bool {
        self as u8 >= Self::Jump as u8 && self as u8 <= Self::Jsle32X as u8
    }

    /// Whether it loads from memory and does nothing else.
    pub(crate) const fn is_load(self) -> bool {
        self as u8 >= Self::LoadU8 as u8 && self as u8 <= Self::LoadS32 as u8
    }

    /// Whether it stores to memory, atomic operations included.
    pub(crate) const fn is_store(self) -> bool {
        self as u8 >= Self::StoreK8 as u8 && self as u8 <= Self::Atomic64 as u8
    }

    /// Whether it only moves a value, and perhaps cuts or extends it.
    pub(crate) const fn is_move(self) -> bool {
        self as u8 >= Self::Mov64K as u8 && self as u8 <= Self::Movs32X16 as u8
    }

    /// Whether it is arithmetic whose second operand is the source register.
    #[rustfmt::skip]
    pub(crate) const fn has_source(self) -> bool {
        use OpKind::*;
        matches!(
            self,
            Add64X | Add32X | Sub64X | Sub32X | Mul64X | Mul32X | Div64X | Div32X
                | Sdiv64X | Sdiv32X | Or64X | Or32X | And64X | And32X | Lsh64X | Lsh32X
                | Rsh64X | Rsh32X | Mod64X | Mod32X | Smod64X | Smod32X | Xor64X | Xor32X
                | Arsh64X | Arsh32X
        )
    }

    /// Whether it stores its immediate.
    pub(crate) const fn stores_immediate(self) -> bool {
        self as u8 >= Self::StoreK8 as u8 && self as u8 <= Self::StoreK64 as u8
    }
}

/// Whether a function of this name gives an iterator's next element, or null at its end.
pub(crate) fn is_next(name: &str) -> bool {
    name.starts_with("bpf_iter_") && name.ends_with("_next")
}

/// A decoded instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Op {
    pub(crate) kind: OpKind,
    pub(crate) dst: u8,
    pub(crate) src: u8,
    /// A load or store goes to the arena; see `spaces.rs`.
    pub(crate) arena: bool,
    /// Offset of a load or store; index of a jump's target operation.
    pub(crate) off: i32,
    /// The immediate, sign-extended; the index for calls.
    pub(crate) imm: i64,
}

/// Where a function begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FunctionEntry {
    pub(crate) op: u32,
    /// Operations.
    pub(crate) len: u32,
    /// Bytes below the frame pointer that are cleared on entry: as far down as the function's
    /// offsets from `r10` reach, or the whole frame when it uses `r10` in another way.
    pub(crate) clear: u32,
    /// Where the function is until it comes to a place: its begin, or, when it comes to none, the
    /// last store beside the stack.
    pub(crate) begin: u32,
    /// What points into the arena: the result (bit 0) and arguments (their bits); see `spaces.rs`.
    pub(crate) arena: u8,
    /// It comes from a header of others: see `header.rs`.
    pub(crate) is_header: bool,
}

/// A decoded object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Code {
    pub(crate) ops: Vec<Op>,
    /// For each operation that begins a block: instructions of the block.
    pub(crate) block_len: Vec<u32>,
    /// Instruction slot of each operation.
    pub(crate) origin: Vec<u32>,
    /// By function.
    pub(crate) entries: Vec<FunctionEntry>,
}

impl Code {
    /// The operations of a function.
    pub(crate) fn ops_of(&self, function: u32) -> &[Op] {
        let FunctionEntry { op, len, .. } = self.entries[function as usize];
        &self.ops[op as usize..][..len as usize]
    }

    /// Whether operation `at` can be a place: it is none of a header's.
    pub(crate) fn is_own(&self, at: usize) -> bool {
        let after = self
            .entries
            .partition_point(|entry| entry.op as usize <= at);
        let entry = after.checked_sub(1).map(|index| self.entries[index]);
        entry.is_none_or(|entry| !entry.is_header)
    }

    /// Whether operation `at` calls a function of a header, whose place is the call.
    pub(crate) fn calls_header(&self, at: usize) -> bool {
        let op = self.ops[at];
        op.kind == OpKind::CallLocal && self.entries[op.imm as usize].is_header && self.is_own(at)
    }

    /// Instructions of these functions.
    pub(crate) fn instructions(&self, functions: &BTreeSet<u32>) -> u64 {
        let of = |function: &u32| {
            let ops = self.ops_of(*function).iter();
            ops.filter(|op| op.kind != OpKind::Fall).count() as u64
        };
        functions.iter().map(of).sum()
    }

    /// Instructions that follow operation `at` in its block.
    pub(crate) fn left_in_block(&self, at: usize) -> u64 {
        let mut left = 0;
        let mut op = at;
        while !self.ops[op].kind.ends_block() {
            op += 1;
            left += u64::from(self.ops[op].kind != OpKind::Fall);
        }
        left
    }
}

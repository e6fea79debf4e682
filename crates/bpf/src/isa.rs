//! The instruction set's numbers: RFC 9669, and from kernel 6.18 what the RFC leaves out.

use crate::Insn;

/// The immediate of an `addr_space_cast` to user space, from address space 0 to 1 (kernel 6.18,
/// include/linux/filter.h, `insn_is_cast_user()`).
pub(crate) const TO_USER: i64 = 1 << 16;

/// Bytes of one instruction slot.
pub(crate) const SLOT: usize = 8;

/// 64-bit immediate load; the only instruction of two slots.
pub(crate) const LD_IMM64: u8 = 0x18;
/// Jump by `off`.
pub(crate) const JA: u8 = 0x05;
/// Jump by `imm` (ISA v4).
pub(crate) const GOTOL: u8 = 0x06;
/// `may_goto` (kernel 6.9, `include/uapi/linux/bpf.h`, `BPF_JCOND`).
pub(crate) const MAY_GOTO: u8 = 0xe5;
/// Function call.
pub(crate) const CALL: u8 = 0x85;
/// Return.
pub(crate) const EXIT: u8 = 0x95;

/// Mask of the instruction class.
pub(crate) const CLASS: u8 = 0x07;
/// Load into a register.
pub(crate) const LDX: u8 = 1;
/// Store of an immediate.
pub(crate) const ST: u8 = 2;
/// Store of a register.
pub(crate) const STX: u8 = 3;
/// 32-bit arithmetic.
pub(crate) const ALU: u8 = 4;
/// 64-bit conditional jumps.
pub(crate) const JMP: u8 = 5;
/// 32-bit conditional jumps.
pub(crate) const JMP32: u8 = 6;
/// 64-bit arithmetic.
pub(crate) const ALU64: u8 = 7;

/// Set when the second operand is a register.
pub(crate) const SOURCE_REGISTER: u8 = 0x08;
/// Mask of the operation of arithmetic and jumps.
pub(crate) const OPERATION: u8 = 0xf0;
/// Mask of the mode of loads and stores.
pub(crate) const MODE: u8 = 0xe0;
/// Mask of the size of loads and stores.
pub(crate) const SIZE: u8 = 0x18;
/// 8 bytes; the other sizes are 0x00 (4), 0x08 (2) and 0x10 (1).
pub(crate) const SIZE_DW: u8 = 0x18;

/// `src` of a call to a function of the object.
pub(crate) const CALL_LOCAL: u8 = 1;

/// What the `src` of an [`LD_IMM64`] says; see the table of [`Image`](crate::Image).
pub(crate) mod ld_imm64 {
    pub(crate) const CONSTANT: u8 = 0;
    pub(crate) const MAP: u8 = 1;
    pub(crate) const MAP_VALUE: u8 = 2;
    pub(crate) const VARIABLE: u8 = 3;
    pub(crate) const FUNCTION: u8 = 4;
}

impl Insn {
    /// Decodes one slot of 8 bytes, little-endian. Every word decodes; whether it is an
    /// instruction is for [`Image::check`](crate::Image::check) to say.
    #[must_use]
    pub fn decode(word: [u8; 8]) -> Self {
        let [code, registers, off_low, off_high, imm @ ..] = word;
        Self {
            code,
            dst: registers & 0x0f,
            src: registers >> 4,
            off: i16::from_le_bytes([off_low, off_high]),
            imm: i32::from_le_bytes(imm),
        }
    }

    /// Bytes that a load or store moves.
    pub(crate) fn access_size(self) -> u32 {
        match self.code & SIZE {
            0x00 => 4,
            0x08 => 2,
            0x10 => 1,
            _ => 8,
        }
    }
}

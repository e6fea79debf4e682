//! The structural check: what every back end may rely on without looking.
//!
//! It is no verifier. It says nothing of types, bounds or termination; the machine checks accesses
//! and counts instructions while the program runs. Rules: RFC 9669, and kernel 6.18,
//! `kernel/bpf/verifier.c`, where the RFC leaves a choice.

use crate::isa::{
    ALU, ALU64, CALL, CALL_LOCAL, CLASS, EXIT, GOTOL, JA, JMP, JMP32, LD_IMM64, LDX, MAY_GOTO,
    MODE, OPERATION, SIZE, SIZE_DW, SOURCE_REGISTER, ST, STX, ld_imm64,
};
use crate::{Image, Insn, LoadError};
use model::Advice;

/// A rule of the instruction set that an instruction breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Violation {
    /// No such operation in ISA v4.
    #[error("unknown operation {0:#04x}")]
    UnknownOperation(u8),
    /// An operation that only programs for network packets had.
    #[error("legacy packet access {0:#04x}; no scheduler may use it")]
    LegacyPacketAccess(u8),
    /// A field that the operation does not use is not zero.
    #[error("operation {code:#04x} does not use the field `{field}`, which must be 0")]
    ReservedField {
        /// Operation.
        code: u8,
        /// `dst`, `src`, `off` or `imm`.
        field: &'static str,
    },
    /// A field has a value that the operation does not define.
    #[error("operation {code:#04x} has no meaning for {value} in the field `{field}`")]
    UndefinedField {
        /// Operation.
        code: u8,
        /// `src`, `off` or `imm`.
        field: &'static str,
        /// What it holds.
        value: i32,
    },
    /// There are registers r0 to r10.
    #[error("there is no register r{0}")]
    NoRegister(u8),
    /// r10 points to the stack frame and never changes.
    #[error("it writes r10, the read-only frame pointer")]
    FramePointerWritten,
    /// A jump leaves its function.
    #[error("it jumps to instruction {0}, outside the function")]
    JumpOutside(i64),
    /// A jump into the second half of a 64-bit load.
    #[error("it jumps to instruction {0}, the second half of a 64-bit load")]
    JumpIntoLoad(i64),
    /// The second slot of a 64-bit load is missing or not empty.
    #[error("the second half of a 64-bit load is missing or has a code, register or offset")]
    BrokenLoad,
    /// Control would run past the end of the function.
    #[error("the function ends without exit or jump")]
    NoEnd,
    /// An index into a table of the image that is too large.
    #[error("it refers to entry {index} of the {table}, which do not reach that far")]
    NoSuchEntry {
        /// Plural name of the table.
        table: &'static str,
        /// The index.
        index: i32,
    },
    /// An offset behind the end of a map's value.
    #[error("its offset {0} lies outside the map's value")]
    OffsetOutside(i32),
    /// The function is empty, or lies outside the code.
    #[error("the function is empty or outside the code")]
    NoCode,
}

impl Advice for Violation {
    fn advice(&self) -> Option<String> {
        None
    }
}

use Violation::{
    BrokenLoad, FramePointerWritten, JumpIntoLoad, JumpOutside, LegacyPacketAccess, NoCode, NoEnd,
    NoRegister, NoSuchEntry, OffsetOutside, ReservedField, UndefinedField, UnknownOperation,
};

type Verdict = Result<(), Violation>;

impl Image {
    /// Checks what [`Image::code`] promises: known operations, reserved fields zero, registers in
    /// range, r10 never written, jumps within their function and not into a 64-bit load, an exit
    /// or jump at the end, indices within their tables.
    ///
    /// The loader has done this for every image that it returned; call it for one made by hand.
    ///
    /// # Errors
    /// [`LoadError::Structure`] names function, instruction and rule.
    pub fn check(&self) -> Result<(), LoadError> {
        self.check_from(0)
    }

    /// As [`Image::check`], but only the functions from `first` on.
    pub(crate) fn check_from(&self, first: usize) -> Result<(), LoadError> {
        for function in &self.functions[first..] {
            let start = function.start as usize;
            let code = start
                .checked_add(function.len as usize)
                .and_then(|end| self.code.get(start..end))
                .unwrap_or_default();
            let fault = |(insn, violation): (usize, Violation)| LoadError::Structure {
                function: function.name.clone(),
                insn: u32::try_from(insn).unwrap_or(u32::MAX),
                violation,
            };
            self.check_function(code).map_err(fault)?;
        }
        Ok(())
    }

    fn check_function(&self, code: &[Insn]) -> Result<(), (usize, Violation)> {
        let Some(last) = code.last() else {
            return Err((0, NoCode));
        };
        let mut is_second_half = vec![false; code.len()];
        let mut at = 0;
        while at < code.len() {
            let insn = code[at];
            check_insn(insn).map_err(|violation| (at, violation))?;
            self.check_indices(insn, code.get(at + 1))
                .map_err(|violation| (at, violation))?;
            if insn.code == LD_IMM64 {
                check_second_half(code.get(at + 1)).map_err(|violation| (at, violation))?;
                is_second_half[at + 1] = true;
                at += 1;
            }
            at += 1;
        }
        let ends = matches!(last.code, EXIT | JA | GOTOL) && !is_second_half[code.len() - 1];
        if !ends {
            return Err((code.len() - 1, NoEnd));
        }
        check_jumps(code, &is_second_half)
    }

    fn check_indices(&self, insn: Insn, second: Option<&Insn>) -> Verdict {
        let (table, len) = match (insn.code, insn.src) {
            (LD_IMM64, ld_imm64::MAP | ld_imm64::MAP_VALUE) => ("maps", self.maps.len()),
            (LD_IMM64, ld_imm64::VARIABLE) => ("variables", self.variables.len()),
            (LD_IMM64, ld_imm64::FUNCTION) | (CALL, CALL_LOCAL) => {
                ("functions", self.functions.len())
            }
            (CALL, 0) => ("imports", self.imports.len()),
            (CALL, Insn::POISON) => ("poisons", self.poisons.len()),
            _ => return Ok(()),
        };
        let index = usize::try_from(insn.imm).ok().filter(|&index| index < len);
        let Some(index) = index else {
            return Err(NoSuchEntry {
                table,
                index: insn.imm,
            });
        };
        let offset = second.map_or(0, |second| second.imm);
        if insn.code == LD_IMM64 && insn.src == ld_imm64::MAP_VALUE {
            let map = &self.maps[index];
            let initial = map.initial.as_ref().map_or(0, |bytes| bytes.len());
            let end = initial.max(map.value_size as usize);
            return usize::try_from(offset)
                .is_ok_and(|offset| offset < end)
                .then_some(())
                .ok_or(OffsetOutside(offset));
        }
        Ok(())
    }
}

fn check_second_half(slot: Option<&Insn>) -> Verdict {
    match slot {
        Some(Insn {
            code: 0,
            dst: 0,
            src: 0,
            off: 0,
            ..
        }) => Ok(()),
        _ => Err(BrokenLoad),
    }
}

fn check_jumps(code: &[Insn], is_second_half: &[bool]) -> Result<(), (usize, Violation)> {
    for (at, insn) in code.iter().enumerate() {
        let Some(distance) = jump(*insn).filter(|_| !is_second_half[at]) else {
            continue;
        };
        let target = at as i64 + 1 + distance;
        match usize::try_from(target)
            .ok()
            .and_then(|target| is_second_half.get(target))
        {
            Some(false) => {}
            Some(true) => return Err((at, JumpIntoLoad(target))),
            None => return Err((at, JumpOutside(target))),
        }
    }
    Ok(())
}

/// How far an instruction may jump, counted from the next one.
fn jump(insn: Insn) -> Option<i64> {
    match (insn.code, insn.code & CLASS) {
        (CALL | EXIT, _) => None,
        (GOTOL, _) => Some(insn.imm.into()),
        (_, JMP | JMP32) => Some(insn.off.into()),
        _ => None,
    }
}

/// The rules that one instruction must keep by itself.
fn check_insn(insn: Insn) -> Verdict {
    match insn.code & CLASS {
        LDX => check_load(insn),
        ST => check_store(insn),
        STX if insn.code & MODE == 0xc0 => check_atomic(insn),
        STX => check_store_register(insn),
        ALU | ALU64 => check_arithmetic(insn),
        JMP | JMP32 => check_jump(insn),
        _ => check_load_immediate(insn),
    }
}

fn check_load_immediate(insn: Insn) -> Verdict {
    // Modes 0x20 and 0x40 of this class read packets, from a fixed and from a computed offset.
    if matches!(insn.code & MODE, 0x20 | 0x40) {
        return Err(LegacyPacketAccess(insn.code));
    }
    known(insn, insn.code == LD_IMM64)?;
    written(insn.dst)?;
    if insn.src > ld_imm64::FUNCTION {
        return Err(undefined(insn, "src", insn.src.into()));
    }
    unused(insn, "off", insn.off)
}

fn check_load(insn: Insn) -> Verdict {
    let sign_extends = insn.code & MODE == 0x80;
    let plain = insn.code & MODE == 0x60;
    known(insn, plain || sign_extends && insn.code & SIZE != SIZE_DW)?;
    written(insn.dst)?;
    register(insn.src)?;
    unused(insn, "imm", insn.imm)
}

fn check_store(insn: Insn) -> Verdict {
    known(insn, insn.code & MODE == 0x60)?;
    register(insn.dst)?;
    unused(insn, "src", insn.src)
}

fn check_store_register(insn: Insn) -> Verdict {
    known(insn, insn.code & MODE == 0x60)?;
    register(insn.dst)?;
    register(insn.src)?;
    unused(insn, "imm", insn.imm)
}

fn check_atomic(insn: Insn) -> Verdict {
    register(insn.dst)?;
    register(insn.src)?;
    let is_wide = matches!(insn.access_size(), 4 | 8);
    match insn.imm {
        // Load-acquire and store-release take every size.
        0x100 => written(insn.dst),
        0x110 => Ok(()),
        // Add, or, and, xor.
        0x00 | 0x40 | 0x50 | 0xa0 => known(insn, is_wide),
        // The same with fetch, and exchange: the old value goes to `src`.
        0x01 | 0x41 | 0x51 | 0xa1 | 0xe1 => known(insn, is_wide).and_then(|()| written(insn.src)),
        // Compare and exchange: the old value goes to r0.
        0xf1 => known(insn, is_wide),
        other => Err(undefined(insn, "imm", other)),
    }
}

fn check_arithmetic(insn: Insn) -> Verdict {
    let is_64 = insn.code & CLASS == ALU64;
    let by_register = insn.code & SOURCE_REGISTER != 0;
    written(insn.dst)?;
    match insn.code & OPERATION {
        // Negation.
        0x80 => {
            known(insn, !by_register)?;
            unused(insn, "src", insn.src)?;
            unused(insn, "off", insn.off)?;
            unused(insn, "imm", insn.imm)
        }
        // Byte swaps: to little or big endian, or (64-bit class) always.
        0xd0 => {
            known(insn, !(is_64 && by_register))?;
            unused(insn, "src", insn.src)?;
            unused(insn, "off", insn.off)?;
            defined(insn, "imm", insn.imm, &[16, 32, 64])
        }
        // Move; the offset makes it sign-extending or a cast between address spaces.
        0xb0 if by_register => check_move(insn, is_64),
        // Division and remainder; the offset makes them signed.
        0x30 | 0x90 => {
            operand(insn)?;
            defined(insn, "off", insn.off.into(), &[0, 1])
        }
        0x00..=0xc0 => {
            operand(insn)?;
            unused(insn, "off", insn.off)
        }
        _ => Err(UnknownOperation(insn.code)),
    }
}

fn check_move(insn: Insn, is_64: bool) -> Verdict {
    register(insn.src)?;
    match (insn.off, is_64) {
        // Kernel 6.9, BPF_ADDR_SPACE_CAST: from the arena's address space 1 to 0, or back.
        (1, true) => defined(insn, "imm", insn.imm, &[1, 1 << 16]),
        (0 | 8 | 16, _) | (32, true) => unused(insn, "imm", insn.imm),
        _ => Err(undefined(insn, "off", insn.off.into())),
    }
}

fn check_jump(insn: Insn) -> Verdict {
    match insn.code {
        JA | MAY_GOTO => {
            unused(insn, "dst", insn.dst)?;
            unused(insn, "src", insn.src)?;
            unused(insn, "imm", insn.imm)
        }
        GOTOL => {
            unused(insn, "dst", insn.dst)?;
            unused(insn, "src", insn.src)?;
            unused(insn, "off", insn.off)
        }
        CALL => {
            unused(insn, "dst", insn.dst)?;
            unused(insn, "off", insn.off)?;
            let known = [0, CALL_LOCAL.into(), Insn::POISON.into()];
            defined(insn, "src", insn.src.into(), &known)
        }
        EXIT => {
            unused(insn, "dst", insn.dst)?;
            unused(insn, "src", insn.src)?;
            unused(insn, "off", insn.off)?;
            unused(insn, "imm", insn.imm)
        }
        _ => {
            known(
                insn,
                matches!(insn.code & OPERATION, 0x10..=0x70 | 0xa0..=0xd0),
            )?;
            register(insn.dst)?;
            operand(insn)
        }
    }
}

/// The second operand is a register or an immediate; the field of the other must be empty.
fn operand(insn: Insn) -> Verdict {
    if insn.code & SOURCE_REGISTER == 0 {
        return unused(insn, "src", insn.src);
    }
    register(insn.src)?;
    unused(insn, "imm", insn.imm)
}

fn known(insn: Insn, is_known: bool) -> Verdict {
    if is_known {
        Ok(())
    } else {
        Err(UnknownOperation(insn.code))
    }
}

fn register(number: u8) -> Verdict {
    if number <= 10 {
        Ok(())
    } else {
        Err(NoRegister(number))
    }
}

fn written(number: u8) -> Verdict {
    register(number)?;
    if number == 10 {
        Err(FramePointerWritten)
    } else {
        Ok(())
    }
}

fn unused<T: Copy + Default + PartialEq>(insn: Insn, field: &'static str, value: T) -> Verdict {
    let is_zero = value == T::default();
    if is_zero {
        Ok(())
    } else {
        Err(ReservedField {
            code: insn.code,
            field,
        })
    }
}

fn defined(insn: Insn, field: &'static str, value: i32, meanings: &[i32]) -> Verdict {
    if meanings.contains(&value) {
        Ok(())
    } else {
        Err(undefined(insn, field, value))
    }
}

fn undefined(insn: Insn, field: &'static str, value: i32) -> Violation {
    UndefinedField {
        code: insn.code,
        field,
        value,
    }
}

#[cfg(test)]
mod tests;

//! Writing an answer into an instruction.

use super::{Access, Answer, Reason};
use crate::Insn;
use crate::isa::{ALU, ALU64, CLASS, LD_IMM64, LDX, MODE, SIZE, SOURCE_REGISTER, ST, STX};

/// Writes an answer into the instruction at `at`, or says why that cannot be.
pub(crate) fn apply(code: &mut [Insn], at: usize, answer: Answer) -> Result<(), Reason> {
    let Some(insn) = code.get_mut(at) else {
        return Err("a CO-RE relocation lies outside its function".to_owned());
    };
    match (insn.code, insn.code & CLASS) {
        (LD_IMM64, _) => {
            check_old(answer, u64::from(insn.imm.cast_unsigned()))?;
            insn.imm = (answer.new as u32).cast_signed();
            if let Some(second) = code.get_mut(at + 1) {
                second.imm = ((answer.new >> 32) as u32).cast_signed();
            }
        }
        (code, ALU | ALU64) if code & SOURCE_REGISTER == 0 => {
            check_old(answer, u64::from(insn.imm.cast_unsigned()))?;
            insn.imm = immediate(answer.new)?;
        }
        (_, LDX | ST | STX) => {
            check_old(answer, i64::from(insn.off).cast_unsigned())?;
            insn.off = i16::try_from(answer.new)
                .map_err(|_| format!("the offset {} is too large for a load", answer.new))?;
            resize(insn, answer.access)?;
        }
        (code, _) => return Err(format!("a CO-RE relocation of the operation {code:#04x}")),
    }
    Ok(())
}

fn check_old(answer: Answer, found: u64) -> Result<(), Reason> {
    match answer.old {
        Some(old) if old as u32 != found as u32 => Err(format!(
            "the instruction holds {found}, but its own type says {old}; the object is damaged"
        )),
        _ => Ok(()),
    }
}

/// The 32 bits of an immediate that a program reads back as the answer.
fn immediate(value: u64) -> Result<i32, Reason> {
    if let Ok(small) = u32::try_from(value) {
        return Ok(small.cast_signed());
    }
    i32::try_from(value.cast_signed())
        .map_err(|_| format!("the value {value:#x} does not fit an immediate"))
}

fn resize(insn: &mut Insn, access: Access) -> Result<(), Reason> {
    let bits = match access {
        Access::Same => return Ok(()),
        Access::Resized(1) => 0x10,
        Access::Resized(2) => 0x08,
        Access::Resized(4) => 0x00,
        Access::Resized(8) => 0x18,
        Access::Resized(size) => return Err(format!("no load moves {size} bytes")),
        Access::Impossible => {
            return Err("the field has another size or sign in the target kernel".to_owned());
        }
    };
    // Mode 0x80 is the load that sign-extends; its field would be signed.
    if insn.code & MODE == 0x80 {
        return Err("a sign-extending load of a field of another size".to_owned());
    }
    insn.code = insn.code & !SIZE | bits;
    Ok(())
}

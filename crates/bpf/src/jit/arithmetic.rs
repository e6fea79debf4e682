//! Arithmetic and comparisons.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I8, I16, I32, I64};
use cranelift_codegen::ir::{InstBuilder, Type, Value};
use cranelift_frontend::FunctionBuilder;

use super::function::Translator;
use super::known::Known;
use crate::isa::TO_USER;
use crate::op::{Op, OpKind};

/// Emits an operation on two values of one width.
type Emit = fn(&mut FunctionBuilder<'_>, Value, Value) -> Value;

impl Translator<'_, '_> {
    /// Translates `op` if it is arithmetic.
    #[rustfmt::skip]
    pub(super) fn arithmetic(&mut self, op: Op) -> bool {
        use OpKind::*;
        match op.kind {
            Mov64K => self.set_number(op.dst, op.imm.cast_unsigned()),
            Mov32K => self.set_number(op.dst, u64::from(op.imm as u32)),
            Mov64X => self.copy(op),
            Add64K => self.add_immediate(op),

            Add64X => self.wide_x(op, |b, x, y| b.ins().iadd(x, y)),
            Add32K => self.narrow_k(op, |b, x, y| b.ins().iadd(x, y)),
            Add32X => self.narrow_x(op, |b, x, y| b.ins().iadd(x, y)),
            Sub64K => self.wide_k(op, |b, x, y| b.ins().isub(x, y)),
            Sub64X => self.wide_x(op, |b, x, y| b.ins().isub(x, y)),
            Sub32K => self.narrow_k(op, |b, x, y| b.ins().isub(x, y)),
            Sub32X => self.narrow_x(op, |b, x, y| b.ins().isub(x, y)),
            Mul64K => self.wide_k(op, |b, x, y| b.ins().imul(x, y)),
            Mul64X => self.wide_x(op, |b, x, y| b.ins().imul(x, y)),
            Mul32K => self.narrow_k(op, |b, x, y| b.ins().imul(x, y)),
            Mul32X => self.narrow_x(op, |b, x, y| b.ins().imul(x, y)),
            Div64K => self.wide_k(op, divide),
            Div64X => self.wide_x(op, divide),
            Div32K => self.narrow_k(op, divide),
            Div32X => self.narrow_x(op, divide),
            Sdiv64K => self.wide_k(op, divide_signed),
            Sdiv64X => self.wide_x(op, divide_signed),
            Sdiv32K => self.narrow_k(op, divide_signed),
            Sdiv32X => self.narrow_x(op, divide_signed),
            Mod64K => self.wide_k(op, modulo),
            Mod64X => self.wide_x(op, modulo),
            Mod32K => self.narrow_k(op, modulo),
            Mod32X => self.narrow_x(op, modulo),
            Smod64K => self.wide_k(op, modulo_signed),
            Smod64X => self.wide_x(op, modulo_signed),
            Smod32K => self.narrow_k(op, modulo_signed),
            Smod32X => self.narrow_x(op, modulo_signed),
            Or64K => self.wide_k(op, |b, x, y| b.ins().bor(x, y)),
            Or64X => self.wide_x(op, |b, x, y| b.ins().bor(x, y)),
            Or32K => self.narrow_k(op, |b, x, y| b.ins().bor(x, y)),
            Or32X => self.narrow_x(op, |b, x, y| b.ins().bor(x, y)),
            And64K => self.wide_k(op, |b, x, y| b.ins().band(x, y)),
            And64X => self.wide_x(op, |b, x, y| b.ins().band(x, y)),
            And32K => self.narrow_k(op, |b, x, y| b.ins().band(x, y)),
            And32X => self.narrow_x(op, |b, x, y| b.ins().band(x, y)),
            Xor64K => self.wide_k(op, |b, x, y| b.ins().bxor(x, y)),
            Xor64X => self.wide_x(op, |b, x, y| b.ins().bxor(x, y)),
            Xor32K => self.narrow_k(op, |b, x, y| b.ins().bxor(x, y)),
            Xor32X => self.narrow_x(op, |b, x, y| b.ins().bxor(x, y)),
            // The generator's shifts mask their count, as the RFC demands.
            Lsh64K => self.wide_k(op, |b, x, y| b.ins().ishl(x, y)),
            Lsh64X => self.wide_x(op, |b, x, y| b.ins().ishl(x, y)),
            Lsh32K => self.narrow_k(op, |b, x, y| b.ins().ishl(x, y)),
            Lsh32X => self.narrow_x(op, |b, x, y| b.ins().ishl(x, y)),
            Rsh64K => self.wide_k(op, |b, x, y| b.ins().ushr(x, y)),
            Rsh64X => self.wide_x(op, |b, x, y| b.ins().ushr(x, y)),
            Rsh32K => self.narrow_k(op, |b, x, y| b.ins().ushr(x, y)),
            Rsh32X => self.narrow_x(op, |b, x, y| b.ins().ushr(x, y)),
            Arsh64K => self.wide_k(op, |b, x, y| b.ins().sshr(x, y)),
            Arsh64X => self.wide_x(op, |b, x, y| b.ins().sshr(x, y)),
            Arsh32K => self.narrow_k(op, |b, x, y| b.ins().sshr(x, y)),
            Arsh32X => self.narrow_x(op, |b, x, y| b.ins().sshr(x, y)),
            Neg64 => self.wide_k(op, |b, x, _| b.ins().ineg(x)),
            Neg32 => self.narrow_k(op, |b, x, _| b.ins().ineg(x)),
            Mov32X => self.narrow_x(op, |_, _, y| y),
            _ => return self.conversion(op),
        }
        true
    }

    /// Translates `op` if it extends, cuts or swaps a register.
    fn conversion(&mut self, op: Op) -> bool {
        use OpKind::*;
        match op.kind {
            Movs64X8 => self.extend(op, I8, I64),
            Movs64X16 => self.extend(op, I16, I64),
            Movs64X32 => self.extend(op, I32, I64),
            Movs32X8 => self.extend(op, I8, I32),
            Movs32X16 => self.extend(op, I16, I32),
            // The simulated machine is little endian whatever the host is.
            Le16 => self.cut(op, I16, false),
            Le32 => self.cut(op, I32, false),
            Le64 => {}
            Be16 | Swap16 => self.cut(op, I16, true),
            Be32 | Swap32 => self.cut(op, I32, true),
            Be64 | Swap64 => self.wide_k(op, |b, x, _| b.ins().bswap(x)),
            CastArena => self.cast_arena(op),
            _ => return false,
        }
        true
    }

    /// Whether the conditional jump `op` is taken.
    #[rustfmt::skip]
    pub(super) fn comparison(&mut self, op: Op) -> Value {
        use OpKind::*;
        let (condition, wide, register) = match op.kind {
            Jeq64K | JeqNext => (IntCC::Equal, true, false),
            Jeq64X => (IntCC::Equal, true, true),
            Jeq32K => (IntCC::Equal, false, false),
            Jeq32X => (IntCC::Equal, false, true),
            Jne64K | JneNext => (IntCC::NotEqual, true, false),
            Jne64X => (IntCC::NotEqual, true, true),
            Jne32K => (IntCC::NotEqual, false, false),
            Jne32X => (IntCC::NotEqual, false, true),
            Jgt64K => (IntCC::UnsignedGreaterThan, true, false),
            Jgt64X => (IntCC::UnsignedGreaterThan, true, true),
            Jgt32K => (IntCC::UnsignedGreaterThan, false, false),
            Jgt32X => (IntCC::UnsignedGreaterThan, false, true),
            Jge64K => (IntCC::UnsignedGreaterThanOrEqual, true, false),
            Jge64X => (IntCC::UnsignedGreaterThanOrEqual, true, true),
            Jge32K => (IntCC::UnsignedGreaterThanOrEqual, false, false),
            Jge32X => (IntCC::UnsignedGreaterThanOrEqual, false, true),
            Jlt64K => (IntCC::UnsignedLessThan, true, false),
            Jlt64X => (IntCC::UnsignedLessThan, true, true),
            Jlt32K => (IntCC::UnsignedLessThan, false, false),
            Jlt32X => (IntCC::UnsignedLessThan, false, true),
            Jle64K => (IntCC::UnsignedLessThanOrEqual, true, false),
            Jle64X => (IntCC::UnsignedLessThanOrEqual, true, true),
            Jle32K => (IntCC::UnsignedLessThanOrEqual, false, false),
            Jle32X => (IntCC::UnsignedLessThanOrEqual, false, true),
            Jsgt64K => (IntCC::SignedGreaterThan, true, false),
            Jsgt64X => (IntCC::SignedGreaterThan, true, true),
            Jsgt32K => (IntCC::SignedGreaterThan, false, false),
            Jsgt32X => (IntCC::SignedGreaterThan, false, true),
            Jsge64K => (IntCC::SignedGreaterThanOrEqual, true, false),
            Jsge64X => (IntCC::SignedGreaterThanOrEqual, true, true),
            Jsge32K => (IntCC::SignedGreaterThanOrEqual, false, false),
            Jsge32X => (IntCC::SignedGreaterThanOrEqual, false, true),
            Jslt64K => (IntCC::SignedLessThan, true, false),
            Jslt64X => (IntCC::SignedLessThan, true, true),
            Jslt32K => (IntCC::SignedLessThan, false, false),
            Jslt32X => (IntCC::SignedLessThan, false, true),
            Jsle64K => (IntCC::SignedLessThanOrEqual, true, false),
            Jsle64X => (IntCC::SignedLessThanOrEqual, true, true),
            Jsle32K => (IntCC::SignedLessThanOrEqual, false, false),
            Jsle32X => (IntCC::SignedLessThanOrEqual, false, true),
            Jset64K => return self.any_bit(op, true, false),
            Jset64X => return self.any_bit(op, true, true),
            Jset32K => return self.any_bit(op, false, false),
            Jset32X => return self.any_bit(op, false, true),
            other => unreachable!("{other:?} is no conditional jump"),
        };
        let (x, y) = self.operands(op, wide, register);
        self.b.ins().icmp(condition, x, y)
    }

    /// Whether the operands share a set bit.
    fn any_bit(&mut self, op: Op, wide: bool, register: bool) -> Value {
        let (x, y) = self.operands(op, wide, register);
        let both = self.b.ins().band(x, y);
        self.b.ins().icmp_imm_u(IntCC::NotEqual, both, 0)
    }

    /// Both operands, at full width or cut to 32 bits.
    fn operands(&mut self, op: Op, wide: bool, register: bool) -> (Value, Value) {
        let x = self.get(op.dst);
        let y = if register {
            self.get(op.src)
        } else {
            self.number(op.imm.cast_unsigned())
        };
        if wide {
            (x, y)
        } else {
            (self.b.ins().ireduce(I32, x), self.b.ins().ireduce(I32, y))
        }
    }

    fn wide_k(&mut self, op: Op, emit: Emit) {
        self.wide(op, false, emit);
    }

    fn wide_x(&mut self, op: Op, emit: Emit) {
        self.wide(op, true, emit);
    }

    fn wide(&mut self, op: Op, register: bool, emit: Emit) {
        let (x, y) = self.operands(op, true, register);
        let result = emit(&mut self.b, x, y);
        self.set(op.dst, result);
    }

    fn narrow_k(&mut self, op: Op, emit: Emit) {
        self.narrow(op, false, emit);
    }

    fn narrow_x(&mut self, op: Op, emit: Emit) {
        self.narrow(op, true, emit);
    }

    /// 32-bit operations clear the upper half.
    fn narrow(&mut self, op: Op, register: bool, emit: Emit) {
        let (x, y) = self.operands(op, false, register);
        let result = emit(&mut self.b, x, y);
        let result = self.b.ins().uextend(I64, result);
        self.set(op.dst, result);
    }

    fn copy(&mut self, op: Op) {
        let (value, known) = (self.get(op.src), self.known(op.src));
        self.set(op.dst, value);
        self.known[usize::from(op.dst)] = known;
    }

    fn add_immediate(&mut self, op: Op) {
        let known = self.known(op.dst).plus(op.imm);
        if let Known::Number(number) = known {
            return self.set_number(op.dst, number);
        }
        let value = self.get(op.dst);
        let sum = self.b.ins().iadd_imm_s(value, op.imm);
        self.set(op.dst, sum);
        self.known[usize::from(op.dst)] = known;
    }

    /// Sign-extends the low bits `from` to `to`, and clears what lies above.
    fn extend(&mut self, op: Op, from: Type, to: Type) {
        let value = self.get(op.src);
        let low = self.b.ins().ireduce(from, value);
        let mut result = self.b.ins().sextend(to, low);
        if to != I64 {
            result = self.b.ins().uextend(I64, result);
        }
        self.set(op.dst, result);
    }

    /// Keeps the low bits, swapped if asked for.
    fn cut(&mut self, op: Op, ty: Type, swap: bool) {
        let value = self.get(op.dst);
        let mut low = self.b.ins().ireduce(ty, value);
        if swap {
            low = self.b.ins().bswap(low);
        }
        let result = self.b.ins().uextend(I64, low);
        self.set(op.dst, result);
    }

    /// As [`crate::Instance::cast_arena`].
    fn cast_arena(&mut self, op: Op) {
        let value = self.get(op.src);
        let low = self.b.ins().ireduce(I32, value);
        let low = self.b.ins().uextend(I64, low);
        let Some(pages) = self.plan.memory.arena() else {
            return self.set(op.dst, low);
        };
        let base = self.number(match op.imm {
            TO_USER => pages.user(),
            _ => pages.base(),
        });
        let cast = self.b.ins().bor(low, base);
        let null = self.b.ins().icmp_imm_u(IntCC::Equal, low, 0);
        let result = self.b.ins().select(null, low, cast);
        self.set(op.dst, result);
    }
}

/// RFC 9669, section 4.1: division by zero gives zero, modulo by zero the dividend.
fn divide(b: &mut FunctionBuilder<'_>, x: Value, y: Value) -> Value {
    let ty = b.func.dfg.value_type(x);
    let (zero, one) = (b.ins().iconst(ty, 0), b.ins().iconst(ty, 1));
    let by_zero = b.ins().icmp(IntCC::Equal, y, zero);
    let divisor = b.ins().select(by_zero, one, y);
    let quotient = b.ins().udiv(x, divisor);
    b.ins().select(by_zero, zero, quotient)
}

fn modulo(b: &mut FunctionBuilder<'_>, x: Value, y: Value) -> Value {
    let ty = b.func.dfg.value_type(x);
    let (zero, one) = (b.ins().iconst(ty, 0), b.ins().iconst(ty, 1));
    let by_zero = b.ins().icmp(IntCC::Equal, y, zero);
    let divisor = b.ins().select(by_zero, one, y);
    let rest = b.ins().urem(x, divisor);
    b.ins().select(by_zero, x, rest)
}

/// By -1, the least number gives itself; the processor would trap.
fn divide_signed(b: &mut FunctionBuilder<'_>, x: Value, y: Value) -> Value {
    let ty = b.func.dfg.value_type(x);
    let (zero, one) = (b.ins().iconst(ty, 0), b.ins().iconst(ty, 1));
    let by_zero = b.ins().icmp(IntCC::Equal, y, zero);
    let by_minus_one = b.ins().icmp_imm_s(IntCC::Equal, y, -1);
    let special = b.ins().bor(by_zero, by_minus_one);
    let divisor = b.ins().select(special, one, y);
    let quotient = b.ins().sdiv(x, divisor);
    let negated = b.ins().ineg(x);
    let quotient = b.ins().select(by_minus_one, negated, quotient);
    b.ins().select(by_zero, zero, quotient)
}

fn modulo_signed(b: &mut FunctionBuilder<'_>, x: Value, y: Value) -> Value {
    let ty = b.func.dfg.value_type(x);
    let (zero, one) = (b.ins().iconst(ty, 0), b.ins().iconst(ty, 1));
    let by_zero = b.ins().icmp(IntCC::Equal, y, zero);
    let by_minus_one = b.ins().icmp_imm_s(IntCC::Equal, y, -1);
    let special = b.ins().bor(by_zero, by_minus_one);
    // Modulo 1 is zero, and so is modulo -1.
    let divisor = b.ins().select(special, one, y);
    let rest = b.ins().srem(x, divisor);
    b.ins().select(by_zero, x, rest)
}

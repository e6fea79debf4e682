//! Loads, stores and atomic operations.
//!
//! An address in the region is told from others by its upper bits, which the whole region shares.
//! What is checked is a pointer, once for all loads at fixed distances from it: what lies around
//! the region reads as zero, and so do the region's ends (`memory.rs`, `GUARD`), so that a load at
//! a signed 16-bit distance from a pointer in the region can be done as it is, and any other gives
//! zero. A store into the writable half is done if it ends before the last allocation does; any
//! other is decided in Rust. No check is needed at a fixed distance from `r10` inside the frame, at
//! a constant address, and in an array's element that a look-up has found.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I8, I16, I32, I64};
use cranelift_codegen::ir::{Block, BlockArg, InstBuilder, Type, Value};

use super::arena::Access;
use super::function::{TRUSTED, Translator, guest_flags};
use super::known::Known;
use crate::BASE;
use crate::decode::atomic;
use crate::frame::FRAME_BYTES;
use crate::op::{Op, OpKind};

/// Where an access goes.
#[derive(Clone, Copy)]
pub(super) enum AccessPlace {
    /// A host address that needs no check, and an offset.
    Direct(Value, i32),
    /// A guest address that needs none either, and the host address.
    Fixed(u64, Value),
    /// A guest address, not looked at yet.
    Somewhere(Value),
}

/// Where a store goes, and from where.
#[derive(Clone, Copy)]
struct Target {
    place: AccessPlace,
    /// In the arena: of an atomic operation, whose load has told where nothing is.
    arena: Option<Access>,
    ty: Type,
    /// The operation that stores.
    at: usize,
    /// An open word is most likely.
    object: bool,
}

impl Translator<'_, '_> {
    /// Translates `op`, the operation `at`, if it accesses memory.
    pub(super) fn memory(&mut self, op: Op, at: usize) -> bool {
        match op.kind {
            kind if op.arena => return self.arena_access(op, kind, at),
            OpKind::LoadU8 => self.load(op, I8, false),
            OpKind::LoadU16 => self.load(op, I16, false),
            OpKind::LoadU32 => self.load(op, I32, false),
            OpKind::LoadU64 => self.load(op, I64, false),
            OpKind::LoadS8 => self.load(op, I8, true),
            OpKind::LoadS16 => self.load(op, I16, true),
            OpKind::LoadS32 => self.load(op, I32, true),
            OpKind::StoreK8 => self.store_immediate(op, I8, at),
            OpKind::StoreK16 => self.store_immediate(op, I16, at),
            OpKind::StoreK32 => self.store_immediate(op, I32, at),
            OpKind::StoreK64 => self.store_immediate(op, I64, at),
            OpKind::StoreX8 => self.store_register(op, I8, at),
            OpKind::StoreX16 => self.store_register(op, I16, at),
            OpKind::StoreX32 => self.store_register(op, I32, at),
            OpKind::StoreX64 => self.store_register(op, I64, at),
            OpKind::Atomic32 => self.atomic(op, I32, at),
            OpKind::Atomic64 => self.atomic(op, I64, at),
            _ => return false,
        }
        true
    }

    /// Translates an access to the arena.
    fn arena_access(&mut self, op: Op, kind: OpKind, at: usize) -> bool {
        use OpKind::*;
        let (ty, signed) = match kind {
            LoadU8 | StoreK8 | StoreX8 => (I8, false),
            LoadU16 | StoreK16 | StoreX16 => (I16, false),
            LoadU32 | StoreK32 | StoreX32 | Atomic32 => (I32, false),
            LoadU64 | StoreK64 | StoreX64 | Atomic64 => (I64, false),
            LoadS8 => (I8, true),
            LoadS16 => (I16, true),
            LoadS32 => (I32, true),
            _ => return false,
        };
        let register = if kind.is_load() { op.src } else { op.dst };
        let access = Access {
            register,
            offset: op.off,
            ty,
            at,
        };
        if kind.is_load() {
            let value = self.load_arena(access, false);
            let value = self.widen(value, ty, signed);
            self.set(op.dst, value);
        } else if matches!(kind, Atomic32 | Atomic64) {
            self.atomic(op, ty, at);
        } else {
            let value = if kind.stores_immediate() {
                self.number(op.imm.cast_unsigned())
            } else {
                self.get(op.src)
            };
            self.store_arena(access, value, false);
        }
        true
    }

    /// A value of type `ty` in 64 bits.
    fn widen(&mut self, value: Value, ty: Type, signed: bool) -> Value {
        match (ty, signed) {
            (I64, _) => value,
            (_, false) => self.b.ins().uextend(I64, value),
            (_, true) => self.b.ins().sextend(I64, value),
        }
    }

    fn load(&mut self, op: Op, ty: Type, signed: bool) {
        if let Some(number) = self.constant(op, ty, signed) {
            return self.set_number(op.dst, number);
        }
        let told = match self.known(op.src) {
            Known::Checked(host, _) if ty == I64 && self.told == Some(host) => Known::Argument,
            _ => Known::Nothing,
        };
        let value = self.load_at(op.src, op.off, ty);
        let value = self.widen(value, ty, signed);
        self.set(op.dst, value);
        self.known[usize::from(op.dst)] = told;
    }

    /// The value of a load from a frozen section, or from no memory at all.
    fn constant(&self, op: Op, ty: Type, signed: bool) -> Option<u64> {
        let Known::Number(address) = self.known(op.src).plus(op.off.into()) else {
            return None;
        };
        let memory = self.plan.memory;
        let size = u64::from(ty.bytes());
        let mut bytes = [0; 8];
        match memory.bytes(address, size) {
            None => return Some(0),
            Some(_) if !memory.is_constant(address, size) => return None,
            Some(found) => bytes[..found.len()].copy_from_slice(found),
        }
        let value = u64::from_le_bytes(bytes);
        let above = 64 - 8 * ty.bytes();
        let extended = value.cast_signed() << above >> above;
        Some(if signed {
            extended.cast_unsigned()
        } else {
            value
        })
    }

    /// Where an access of type `ty` at `offset` from `register` goes.
    pub(super) fn place(&mut self, register: u8, offset: i32, ty: Type) -> AccessPlace {
        let size = i64::from(ty.bytes());
        match self.known(register).plus(offset.into()) {
            Known::Frame(at) if (-(FRAME_BYTES as i64)..=-size).contains(&at) => {
                AccessPlace::Direct(self.frame, at as i32)
            }
            Known::Number(address) if self.plan.memory.bytes(address, size as u64).is_some() => {
                let guest = self.number(address);
                let host = self.host_address(guest);
                AccessPlace::Fixed(address, host)
            }
            Known::Element(at, len) if at >= 0 && at.cast_unsigned() + size as u64 <= len => {
                let base = self.get(register);
                AccessPlace::Direct(self.host_address(base), offset)
            }
            _ => {
                let base = self.get(register);
                AccessPlace::Somewhere(self.b.ins().iadd_imm_s(base, i64::from(offset)))
            }
        }
    }

    /// Loads a value of type `ty` at `offset` from `register`; 0 outside the region.
    fn load_at(&mut self, register: u8, offset: i32, ty: Type) -> Value {
        let (host, offset) = match self.place(register, offset, ty) {
            AccessPlace::Direct(host, offset) => (host, offset),
            AccessPlace::Fixed(_, host) => (host, 0),
            AccessPlace::Somewhere(_) => self.checked(register, offset),
        };
        self.b.ins().load(ty, guest_flags(), host, offset)
    }

    /// A host address and a distance from it where a load at `offset` from `register` can be done
    /// and gives what it must, whatever is in the register.
    fn checked(&mut self, register: u8, offset: i32) -> (Value, i32) {
        let known = self.known(register);
        if let Known::Checked(host, at) = known
            && let Ok(distance) = i16::try_from(at.saturating_add(offset.into()))
        {
            return (host, distance.into());
        }
        let address = self.get(register);
        let (bits, shared) = self.plan.memory.shared_bits();
        let upper = self.b.ins().ushr_imm_u(address, i64::from(bits));
        let upper = self.b.ins().ireduce(I32, upper);
        let wild = self
            .b
            .ins()
            .icmp_imm_u(IntCC::NotEqual, upper, shared.cast_signed());
        let done = self.b.create_block();
        self.b.append_block_param(done, I64);
        let inside = self.branch_cold(wild);
        // Zeros lie on both sides of the region's beginning.
        let base = self.number(BASE);
        let zeros = self.host_address(base);
        self.b.ins().jump(done, &[BlockArg::from(zeros)]);
        self.b.switch_to_block(inside);
        let host = self.host_address(address);
        self.b.ins().jump(done, &[BlockArg::from(host)]);
        self.b.switch_to_block(done);
        let host = self.b.block_params(done)[0];
        if known == Known::Argument {
            self.objects.insert(host);
        }
        if matches!(known, Known::Nothing | Known::Checked(..) | Known::Argument) {
            self.known[usize::from(register)] = Known::Checked(host, 0);
        }
        (host, offset)
    }

    /// Notes that the pointer in `register` lies in the region.
    pub(super) fn trust(&mut self, register: u8) {
        let address = self.get(register);
        let host = self.host_address(address);
        self.known[usize::from(register)] = Known::Checked(host, 0);
        self.told = Some(host);
    }

    /// Whether `register` most likely points to a kernel object.
    fn is_object(&self, register: u8) -> bool {
        match self.known(register) {
            Known::Argument => true,
            Known::Checked(host, _) => self.objects.contains(&host),
            _ => false,
        }
    }

    pub(super) fn host_address(&mut self, address: Value) -> Value {
        self.b.ins().iadd(address, self.delta)
    }

    fn store_immediate(&mut self, op: Op, ty: Type, at: usize) {
        let value = self.number(op.imm.cast_unsigned());
        let to = Target {
            object: self.is_object(op.dst),
            ..self.target(op, ty, at)
        };
        self.store_to(to, value);
    }

    fn store_register(&mut self, op: Op, ty: Type, at: usize) {
        let value = self.get(op.src);
        let to = Target {
            object: self.is_object(op.dst),
            ..self.target(op, ty, at)
        };
        self.store_to(to, value);
    }

    fn target(&mut self, op: Op, ty: Type, at: usize) -> Target {
        let access = Access {
            register: op.dst,
            offset: op.off,
            ty,
            at,
        };
        Target {
            place: if op.arena {
                AccessPlace::Somewhere(self.get(op.dst))
            } else {
                self.place(op.dst, op.off, ty)
            },
            arena: op.arena.then_some(access),
            ty,
            at,
            object: false,
        }
    }

    /// Stores the low bits of `value`, 64 bits wide. Into the writable half, an open word or
    /// elsewhere.
    fn store_to(&mut self, to: Target, value: Value) {
        let Target {
            place,
            arena,
            ty,
            at,
            object,
        } = to;
        if let Some(access) = arena {
            return self.store_arena(access, value, true);
        }
        let low = match ty {
            I64 => value,
            _ => self.b.ins().ireduce(ty, value),
        };
        let start = self.plan.memory.writable_start();
        let address = match place {
            AccessPlace::Direct(host, offset) => {
                self.b.ins().store(guest_flags(), low, host, offset);
                return;
            }
            AccessPlace::Fixed(address, host) => {
                if self.plan.is_writable(address, ty.bytes().into()) {
                    self.b.ins().store(guest_flags(), low, host, 0);
                    return;
                }
                self.number(address)
            }
            AccessPlace::Somewhere(address) => address,
        };
        let done = self.b.create_block();
        // Of a store that it hears of later, nobody could say where it was.
        let may_note = ty == I64 && !self.plan.places;
        let object = object && may_note;
        if object {
            self.store_word(address, value, done);
        }
        let start = self.number(start);
        let distance = self.b.ins().isub(address, start);
        let writable = self.shared(I64, self.plan.at.writable);
        let beyond = self
            .b
            .ins()
            .icmp(IntCC::UnsignedGreaterThan, distance, writable);
        let inside = self.branch_cold(beyond);
        if object {
            self.b.set_cold_block(inside);
        } else if may_note {
            self.store_word(address, value, done);
        }
        self.note_place(at);
        self.store_slowly(address, value, ty, at);
        self.b.ins().jump(done, &[]);
        self.b.switch_to_block(inside);
        let host = self.host_address(address);
        self.b.ins().store(guest_flags(), low, host, 0);
        self.b.ins().jump(done, &[]);
        self.b.switch_to_block(done);
    }

    /// Stores 64 bits into an open word of a kernel object, notes that, and goes to `done`; leaves
    /// the builder where it is none. See `words.rs`.
    fn store_word(&mut self, address: Value, value: Value, done: Block) {
        let base = self.number(BASE);
        let distance = self.b.ins().isub(address, base);
        // Of an address that is not aligned, the low bits make this a number far too large.
        let word = self.b.ins().rotr_imm_u(distance, 3);
        let count = self.shared(I64, self.plan.at.word_count);
        let (slow, known) = (self.b.create_block(), self.b.create_block());
        let open = self.b.create_block();
        let below = self.b.ins().icmp(IntCC::UnsignedLessThan, word, count);
        self.b.ins().brif(below, known, &[], slow, &[]);
        self.b.switch_to_block(known);
        let flags = self.shared(I64, self.plan.at.word_flags);
        let flag = self.b.ins().iadd(flags, word);
        let room = self.b.ins().uload8(I64, TRUSTED, flag, 0);
        let waiting = self.shared(I64, self.plan.at.words_waiting);
        let fits = self.b.ins().icmp(IntCC::UnsignedLessThan, waiting, room);
        self.b.ins().brif(fits, open, &[], slow, &[]);
        self.b.switch_to_block(open);
        let host = self.host_address(address);
        self.b.ins().store(guest_flags(), value, host, 0);
        let offset = self.b.ins().ishl_imm_u(waiting, 3);
        let note = self.b.ins().iadd(self.context, offset);
        let notes_at = self.plan.at.word_notes;
        self.b.ins().store(TRUSTED, address, note, notes_at);
        let waiting = self.b.ins().iadd_imm_s(waiting, 1);
        self.set_shared(self.plan.at.words_waiting, waiting);
        self.b.ins().jump(done, &[]);
        self.b.set_cold_block(slow);
        self.b.switch_to_block(slow);
    }

    /// Lets Rust decide about a store; ends the function if it is refused.
    fn store_slowly(&mut self, address: Value, value: Value, ty: Type, at: usize) {
        let store = self.stores[ty.bytes().ilog2() as usize];
        let args = [self.context, address, value];
        self.b.ins().call(store, &args);
        let stopped = self.shared(I32, self.plan.at.stop);
        let on = self.branch_cold(stopped);
        let fuel = self.b.use_var(self.fuel);
        let unused = self.plan.code.left_in_block(at).cast_signed();
        let fuel = self.b.ins().iadd_imm_s(fuel, unused);
        self.leave(at, fuel);
        self.b.switch_to_block(on);
    }

    /// Atomic operations are plain ones: there is one thread of execution.
    fn atomic(&mut self, op: Op, ty: Type, at: usize) {
        let value = self.get(op.src);
        let to = self.target(op, ty, at);
        let old = match to.arena {
            Some(access) => self.load_arena(access, true),
            None => self.load_at(op.dst, op.off, ty),
        };
        let old = match ty {
            I64 => old,
            _ => self.b.ins().uextend(I64, old),
        };
        let imm = op.imm as i32;
        let new = match imm & !atomic::FETCH {
            _ if imm == atomic::XCHG => value,
            _ if imm == atomic::CMPXCHG => {
                self.exchange_if_equal(to, old, value);
                return self.set(0, old);
            }
            atomic::ADD => self.b.ins().iadd(old, value),
            atomic::OR => self.b.ins().bor(old, value),
            atomic::AND => self.b.ins().band(old, value),
            _ => self.b.ins().bxor(old, value),
        };
        self.store_to(to, new);
        if imm & atomic::FETCH != 0 {
            self.set(op.src, old);
        }
    }

    /// Stores `value` if `old` is what `r0` expects. Otherwise nothing is stored, so it may fail
    /// on memory that is read-only.
    fn exchange_if_equal(&mut self, to: Target, old: Value, value: Value) {
        let expected = self.get(0);
        let expected = match to.ty {
            I64 => expected,
            _ => {
                let low = self.b.ins().ireduce(to.ty, expected);
                self.b.ins().uextend(I64, low)
            }
        };
        let equal = self.b.ins().icmp(IntCC::Equal, old, expected);
        let (store, done) = (self.b.create_block(), self.b.create_block());
        self.b.ins().brif(equal, store, &[], done, &[]);
        self.b.switch_to_block(store);
        self.store_to(to, value);
        self.b.ins().jump(done, &[]);
        self.b.switch_to_block(done);
    }
}

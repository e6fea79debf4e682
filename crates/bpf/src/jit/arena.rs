//! Accesses to the arena.
//!
//! Where one goes is computed and not checked: all of the window can be addressed, and what lies
//! beside it as far as an offset reaches (`memory.rs`, `GUARD`). A byte for each page says whether
//! it is allocated. If it is not, or if the access goes over the end of a page, Rust decides.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I32, I64};
use cranelift_codegen::ir::{BlockArg, InstBuilder, Type, Value};

use super::entry::Quiet;
use super::function::{TRUSTED, Translator, guest_flags};
use crate::memory::Pages;

/// An access: its register, the offset from there, what it loads or stores, and which operation it
/// is.
#[derive(Clone, Copy)]
pub(super) struct Access {
    pub(super) register: u8,
    pub(super) offset: i32,
    pub(super) ty: Type,
    pub(super) at: usize,
}

impl Translator<'_, '_> {
    /// The guest address of an access, and whether Rust must do it.
    fn arena_place(&mut self, access: Access) -> (Value, Value) {
        let pointer = self.get(access.register);
        let low = self.b.ins().ireduce(I32, pointer);
        let low = self.b.ins().uextend(I64, low);
        let at = self.b.ins().iadd_imm_s(low, i64::from(access.offset));
        let page = self.b.ins().sshr_imm_u(at, i64::from(Pages::SIZE.ilog2()));
        let flags = self.shared(I64, self.plan.at.arena_flags);
        let flag = self.b.ins().iadd(flags, page);
        let flag = self.b.ins().uload8(I64, TRUSTED, flag, 0);
        let mut slow = self.b.ins().icmp_imm_u(IntCC::Equal, flag, 0);
        let size = i64::from(access.ty.bytes());
        if size > 1 {
            let within = self.b.ins().band_imm_u(at, Pages::SIZE as i64 - 1);
            let last = Pages::SIZE as i64 - size;
            let crosses = self
                .b
                .ins()
                .icmp_imm_u(IntCC::UnsignedGreaterThan, within, last);
            slow = self.b.ins().bor(slow, crosses);
        }
        let arena = self.plan.memory.arena();
        let base = self.number(arena.map_or(0, Pages::base));
        (self.b.ins().iadd(base, at), slow)
    }

    /// Loads; 0 where nothing is, which is counted, for an atomic operation as a store.
    pub(super) fn load_arena(&mut self, access: Access, is_atomic: bool) -> Value {
        let (address, slow) = self.arena_place(access);
        let done = self.b.create_block();
        self.b.append_block_param(done, access.ty);
        let there = self.branch_cold(slow);
        self.say_access(access.at);
        let load = self.arena.0[access.ty.bytes().ilog2() as usize];
        let is_store = self.number(u64::from(is_atomic));
        self.b.ins().call(load, &[self.context, address, is_store]);
        let value = self.shared(access.ty, self.plan.at.arena_value);
        self.b.ins().jump(done, &[BlockArg::from(value)]);
        self.b.switch_to_block(there);
        let host = self.host_address(address);
        let value = self.b.ins().load(access.ty, guest_flags(), host, 0);
        self.b.ins().jump(done, &[BlockArg::from(value)]);
        self.b.switch_to_block(done);
        self.b.block_params(done)[0]
    }

    /// Stores the low bits of `value`, 64 bits wide; nothing where nothing is, which is counted
    /// unless a load of the same operation has been.
    pub(super) fn store_arena(&mut self, access: Access, value: Value, is_atomic: bool) {
        let (address, slow) = self.arena_place(access);
        let done = self.b.create_block();
        let there = self.branch_cold(slow);
        self.say_access(if is_atomic { Quiet::OP } else { access.at });
        let store = self.arena.1[access.ty.bytes().ilog2() as usize];
        self.b.ins().call(store, &[self.context, address, value]);
        self.b.ins().jump(done, &[]);
        self.b.switch_to_block(there);
        let host = self.host_address(address);
        let low = match access.ty {
            I64 => value,
            ty => self.b.ins().ireduce(ty, value),
        };
        self.b.ins().store(guest_flags(), low, host, 0);
        self.b.ins().jump(done, &[]);
        self.b.switch_to_block(done);
    }

    /// Tells the function that is called next which operation it is for.
    fn say_access(&mut self, at: usize) {
        let at = self.b.ins().iconst(I32, at as i64);
        self.set_shared(self.plan.at.arena_op, at);
    }
}

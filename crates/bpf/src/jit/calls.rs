//! Calls, and the functions that are built in instead.
//!
//! What is built in charges what the call charges: its one instruction is counted with its block,
//! like that of any call, its cost and its share of the budget here.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I32, I64};
use cranelift_codegen::ir::{Inst, InstBuilder, Value};

use super::access::AccessPlace;
use super::entry::stop;
use super::function::{Translator, guest_flags};
use super::known::Known;
use super::plan::ArrayPlan;
use crate::builtin::MAX_TURNS;
use crate::intrinsic::Intrinsic;
use crate::op::Op;
use crate::progress::Progress;
use crate::{BASE, Errno};

impl Translator<'_, '_> {
    /// A call of import `import`.
    pub(super) fn call_host(&mut self, import: usize) {
        match self.plan.imports[import].intrinsic {
            Some(Intrinsic::Lookup) => self.lookup(import),
            Some(Intrinsic::Clock) => self.built_in(import, |t| t.shared(I64, t.plan.at.now_ns)),
            Some(Intrinsic::Cpu) => self.built_in(import, |t| t.shared(I64, t.plan.at.cpu)),
            Some(Intrinsic::RcuLock) => self.enter_section(import, self.plan.at.rcu),
            Some(Intrinsic::PreemptDisable) => self.enter_section(import, self.plan.at.preemption),
            Some(Intrinsic::RcuUnlock) => self.leave_section(import, self.plan.at.rcu),
            Some(Intrinsic::PreemptEnable) => {
                self.leave_section(import, self.plan.at.preemption);
            }
            Some(Intrinsic::IterNew | Intrinsic::IterNext | Intrinsic::IterDestroy) => {
                self.iterate(import);
            }
            None => self.call_import(import),
        }
        self.clobber();
    }

    /// A call of the helper whose number is in a register.
    pub(super) fn call_helper(&mut self, op: Op) {
        let number = self.get(op.dst);
        self.set_shared(self.plan.at.callee, number);
        self.call_rust(self.plan.callees.helper);
        self.clobber();
    }

    /// A call leaves zeros in `r1` to `r5`.
    fn clobber(&mut self) {
        for register in 1..=5 {
            self.set_number(register, 0);
        }
    }

    fn call_import(&mut self, import: usize) {
        if let Some(direct) = self.plan.imports[import].direct {
            self.charge_cost(import);
            return self.call_rust(direct);
        }
        let number = self.number(import as u64);
        self.set_shared(self.plan.at.callee, number);
        self.call_rust(self.plan.callees.import);
    }

    /// Calls `callee`, one of `native.rs`, with `r1` to `r5`; the result is in `r0`. If it has
    /// stopped the program, the next block's budget test finds that out.
    fn call_rust(&mut self, callee: usize) {
        self.save_fuel();
        let callee = self.number(callee as u64);
        let args = self.arguments();
        let call = self.b.ins().call_indirect(self.signature, callee, &args);
        let (result, fuel) = self.answer(call);
        self.b.def_var(self.fuel, fuel);
        self.set(0, result);
    }

    /// The result of a call, and the fuel that it has left.
    fn answer(&self, call: Inst) -> (Value, Value) {
        let &[result, fuel] = self.b.func.dfg.inst_results(call) else {
            unreachable!("the signature has two results")
        };
        (result, fuel)
    }

    fn arguments(&mut self) -> [Value; 6] {
        std::array::from_fn(|at| match at {
            0 => self.context,
            register => self.get(register as u8),
        })
    }

    /// A call of another function of the object, which gets the next frame.
    pub(super) fn call_local(&mut self, op: Op, at: usize) {
        let limit = self.shared(I64, self.plan.at.frame_limit);
        let beyond = self
            .b
            .ins()
            .icmp(IntCC::UnsignedGreaterThan, self.top, limit);
        self.stop_if(beyond, stop::FRAMES, at);
        self.save_fuel();
        self.set_shared(self.plan.at.frame, self.top);
        let callee = self.callees[&(op.imm as u32)];
        let args = self.arguments();
        let call = self.b.ins().call(callee, &args);
        let (result, fuel) = self.answer(call);
        let stopped = self.shared(I32, self.plan.at.stop);
        let on = self.branch_cold(stopped);
        // The callee has noted where and why.
        self.b.ins().return_(&[result, fuel]);
        self.b.switch_to_block(on);
        self.set_shared(self.plan.at.frame, self.start);
        self.b.def_var(self.fuel, fuel);
        self.set(0, result);
        self.clobber();
    }

    /// Adds what a call of `import` costs.
    fn charge_cost(&mut self, import: usize) {
        let cost = self.plan.imports[import].cost_ps;
        if cost == 0 {
            return;
        }
        let charged = self.shared(I64, self.plan.at.charged_ps);
        let charged = self.b.ins().iadd_imm_s(charged, cost.cast_signed());
        self.set_shared(self.plan.at.charged_ps, charged);
    }

    /// What [`crate::Instance::spend`] does for 8 bytes. There is something left to spend, because
    /// the block's budget test has just passed.
    fn spend_one(&mut self) {
        let end = self.shared(I64, self.plan.at.budget_end);
        let end = self.b.ins().iadd_imm_s(end, -1);
        self.set_shared(self.plan.at.budget_end, end);
        let fuel = self.b.use_var(self.fuel);
        let fuel = self.b.ins().iadd_imm_s(fuel, -1);
        self.b.def_var(self.fuel, fuel);
    }

    fn built_in(&mut self, import: usize, body: impl FnOnce(&mut Self) -> Value) {
        self.charge_cost(import);
        let result = body(self);
        self.set(0, result);
    }

    fn enter_section(&mut self, import: usize, offset: i32) {
        self.charge_cost(import);
        let depth = self.shared(I32, offset);
        let deeper = self.b.ins().iadd_imm_s(depth, 1);
        self.set_shared(offset, deeper);
        self.count_sections(Progress::SECTION.cast_signed());
        self.set_number(0, 0);
    }

    fn count_sections(&mut self, change: i64) {
        let untidy = self.shared(I64, self.plan.at.untidy);
        let untidy = self.b.ins().iadd_imm_s(untidy, change);
        self.set_shared(self.plan.at.untidy, untidy);
    }

    /// Leaves a section; one that was not entered is Rust's to complain about.
    fn leave_section(&mut self, import: usize, offset: i32) {
        let depth = self.shared(I32, offset);
        let outside = self.b.ins().icmp_imm_u(IntCC::Equal, depth, 0);
        self.unless(outside, import, |t| {
            let less = t.b.ins().iadd_imm_s(depth, -1);
            t.set_shared(offset, less);
            t.count_sections(-Progress::SECTION.cast_signed());
            t.number(0)
        });
    }

    /// Calls `import` if `slow` holds, else does what `fast` emits.
    fn unless(&mut self, slow: Value, import: usize, fast: impl FnOnce(&mut Self) -> Value) {
        let on = self.branch_cold(slow);
        let done = self.b.create_block();
        self.call_import(import);
        self.b.ins().jump(done, &[]);
        self.b.switch_to_block(on);
        self.built_in(import, fast);
        self.b.ins().jump(done, &[]);
        self.b.switch_to_block(done);
    }

    /// A look-up in an array that is known here, with a key in memory.
    fn lookup(&mut self, import: usize) {
        let array = match self.known(1) {
            Known::Number(handle) => self.plan.array(handle),
            _ => None,
        };
        let Some(array) = array else {
            return self.call_import(import);
        };
        match self.place(2, 0, I32) {
            AccessPlace::Somewhere(key) => {
                // Exact, because a key that is only partly in the region is refused.
                let base = self.number(BASE);
                let distance = self.b.ins().isub(key, base);
                let last = self.number(self.plan.memory.size() - 4);
                let wild = self
                    .b
                    .ins()
                    .icmp(IntCC::UnsignedGreaterThan, distance, last);
                self.unless(wild, import, |t| {
                    let host = t.host_address(key);
                    t.value_of(array, host, 0)
                });
            }
            AccessPlace::Direct(host, offset) => {
                self.built_in(import, |t| t.value_of(array, host, offset));
                self.found(array);
            }
            AccessPlace::Fixed(_, host) => {
                self.built_in(import, |t| t.value_of(array, host, 0));
                self.found(array);
            }
        }
    }

    /// Notes that `r0` points to an element of `array` or is null.
    fn found(&mut self, array: ArrayPlan) {
        if array.base >= self.plan.memory.writable_start() {
            self.known[0] = Known::MaybeElement(array.stride);
        }
    }

    /// The address of the value whose index lies at the host address `key` plus `offset`, on this
    /// CPU; 0 if there is none.
    fn value_of(&mut self, array: ArrayPlan, key: Value, offset: i32) -> Value {
        let index = self.b.ins().load(I32, guest_flags(), key, offset);
        let mut known =
            self.b
                .ins()
                .icmp_imm_u(IntCC::UnsignedLessThan, index, i64::from(array.count));
        let index = self.b.ins().uextend(I64, index);
        let stride = self.number(array.stride);
        let offset = self.b.ins().imul(index, stride);
        let base = self.number(array.base);
        let mut value = self.b.ins().iadd(offset, base);
        if array.copies > 1 {
            let cpu = self.shared(I64, self.plan.at.cpu);
            let copy_bytes = self.number(array.stride * u64::from(array.count));
            let offset = self.b.ins().imul(cpu, copy_bytes);
            value = self.b.ins().iadd(value, offset);
            let has_copy =
                self.b
                    .ins()
                    .icmp_imm_u(IntCC::UnsignedLessThan, cpu, array.copies.cast_signed());
            known = self.b.ins().band(known, has_copy);
        }
        let none = self.number(0);
        self.b.ins().select(known, value, none)
    }

    /// `bpf_iter_num_*` on an iterator in the frame; elsewhere it is Rust's.
    fn iterate(&mut self, import: usize) {
        let (Known::Frame(_), AccessPlace::Direct(host, offset)) =
            (self.known(1), self.place(1, 0, I64))
        else {
            return self.call_import(import);
        };
        let which = self.plan.imports[import].intrinsic;
        self.built_in(import, |t| match which {
            Some(Intrinsic::IterNew) => t.iterator_new(host, offset),
            Some(Intrinsic::IterNext) => t.iterator_next(host, offset),
            _ => {
                let zero = t.number(0);
                t.b.ins().store(guest_flags(), zero, host, offset);
                zero
            }
        });
        self.spend_one();
    }

    /// As `num_new` of `builtin/iterate.rs`.
    fn iterator_new(&mut self, host: Value, offset: i32) -> Value {
        let (start, end) = (self.get(2), self.get(3));
        let start = self.b.ins().ireduce(I32, start);
        let end = self.b.ins().ireduce(I32, end);
        let from = self.b.ins().sextend(I64, start);
        let to = self.b.ins().sextend(I64, end);
        let turns = self.b.ins().isub(to, from);
        let backward = self.b.ins().icmp_imm_s(IntCC::SignedLessThan, turns, 0);
        let many = self
            .b
            .ins()
            .icmp_imm_s(IntCC::SignedGreaterThan, turns, i64::from(MAX_TURNS));
        let refused = self.b.ins().bor(backward, many);
        let nothing = self.b.ins().iconst(I32, 0);
        let last = self.b.ins().iadd_imm_s(start, -1);
        let last = self.b.ins().select(refused, nothing, last);
        let end = self.b.ins().select(refused, nothing, end);
        self.set_iterator(host, offset, last, end);
        let errno = |errno: Errno| u64::from((-errno.0).cast_unsigned());
        let (zero, too_many) = (self.number(0), self.number(errno(Errno::E2BIG)));
        let invalid = self.number(errno(Errno::EINVAL));
        let result = self.b.ins().select(many, too_many, zero);
        self.b.ins().select(backward, invalid, result)
    }

    /// As `num_next` of `builtin/iterate.rs`.
    fn iterator_next(&mut self, host: Value, offset: i32) -> Value {
        let last = self.b.ins().load(I32, guest_flags(), host, offset);
        let end = self.b.ins().load(I32, guest_flags(), host, offset + 4);
        let next = self.b.ins().iadd_imm_s(last, 1);
        let more = self.b.ins().icmp(IntCC::SignedLessThan, next, end);
        let nothing = self.b.ins().iconst(I32, 0);
        let next = self.b.ins().select(more, next, nothing);
        let end = self.b.ins().select(more, end, nothing);
        self.set_iterator(host, offset, next, end);
        let (iterator, null) = (self.get(1), self.number(0));
        self.b.ins().select(more, iterator, null)
    }

    fn set_iterator(&mut self, host: Value, offset: i32, last: Value, end: Value) {
        self.b.ins().store(guest_flags(), last, host, offset);
        self.b.ins().store(guest_flags(), end, host, offset + 4);
    }
}

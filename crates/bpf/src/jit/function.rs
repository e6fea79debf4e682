//! One function: control flow and counting.
//!
//! A register of the program is a variable of the generator, and so is the *fuel*: the
//! instructions until the budget is spent. Each basic block of the bytecode begins with a test and
//! a subtraction; the fuel is written to the instance before a call, and what is called returns it.

use std::collections::{BTreeMap, BTreeSet};

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I32, I64, I64X2};
use cranelift_codegen::ir::{
    self, Block, BlockArg, FuncRef, InstBuilder, MemFlagsData, SigRef, Type, Value,
};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext, Variable};
use cranelift_jit::JITModule;
use cranelift_module::{FuncId, Module};

use super::entry::stop;
use super::known::Known;
use super::plan::InstancePlan;
use crate::frame::{FRAME_BYTES, MAY_GOTO_TURNS};
use crate::op::{Op, OpKind};

/// A function that is about to be translated.
pub(super) struct Start<'a> {
    pub(super) plan: &'a InstancePlan<'a>,
    pub(super) module: &'a mut JITModule,
    pub(super) ids: &'a BTreeMap<u32, FuncId>,
    /// Functions that store values of 1, 2, 4 and 8 bytes.
    pub(super) stores: [FuncId; 4],
    /// The same for loads from the arena, and for stores there.
    pub(super) arena: ([FuncId; 4], [FuncId; 4]),
    pub(super) function: u32,
}

/// A function under translation.
pub(super) struct Translator<'a, 'b> {
    pub(super) plan: &'a InstancePlan<'a>,
    pub(super) b: FunctionBuilder<'b>,
    /// The address of the instance.
    pub(super) context: Value,
    /// What to add to a guest address in the region, to get the host's.
    pub(super) delta: Value,
    /// `r10`, and the host's address of the same byte.
    pub(super) top: Value,
    pub(super) frame: Value,
    /// The guest address of the frame.
    pub(super) start: Value,
    registers: [Variable; 10],
    pub(super) known: [Known; 11],
    /// Where the context lies in this process, if it is known to lie in the region.
    pub(super) told: Option<Value>,
    /// Host addresses of [`Known::Checked`] that are those of a [`Known::Argument`].
    pub(super) objects: BTreeSet<Value>,
    pub(super) fuel: Variable,
    turns: Variable,
    /// Functions that this one calls.
    pub(super) callees: BTreeMap<u32, FuncRef>,
    /// The signature of functions of the host.
    pub(super) signature: SigRef,
    /// Functions that store, see [`super::store`].
    pub(super) stores: [FuncRef; 4],
    /// The same for loads from the arena, and for stores there.
    pub(super) arena: ([FuncRef; 4], [FuncRef; 4]),
    /// Where jumps lead to.
    blocks: BTreeMap<usize, Block>,
    /// Ends the function early; parameters are the operation and the fuel.
    leave: Block,
    /// As `leave`, because the budget is spent.
    spent: Block,
}

/// An access to a field of the instance.
pub(super) const TRUSTED: MemFlagsData = MemFlagsData::trusted();

impl Start<'_> {
    /// Translates into `function`, whose signature is set already.
    pub(super) fn translate(
        self,
        function: &mut ir::Function,
        builder_context: &mut FunctionBuilderContext,
    ) {
        let entry = self.plan.code.entries[self.function as usize];
        let range = entry.op as usize..(entry.op + entry.len) as usize;
        let called = self.plan.code.ops[range.clone()]
            .iter()
            .filter(|op| op.kind == OpKind::CallLocal)
            .map(|op| op.imm as u32);
        let uses_frame = |op: &Op| op.kind == OpKind::CallLocal || op.dst == 10 || op.src == 10;
        let needs_frame = self.plan.code.ops[range.clone()].iter().any(uses_frame);
        let mut callees = BTreeMap::new();
        for callee in called {
            let reference = self
                .module
                .declare_func_in_func(self.ids[&callee], function);
            callees.insert(callee, reference);
        }
        let signature = function.import_signature(super::signature::signature(self.module));
        let mut declare = |id| self.module.declare_func_in_func(id, function);
        let stores = self.stores.map(&mut declare);
        let arena = (self.arena.0.map(&mut declare), self.arena.1.map(declare));
        let config = self.module.target_config();
        let b = FunctionBuilder::new(function, builder_context);
        let mut translator = Translator::new(
            self.plan,
            b,
            callees,
            (signature, stores, arena),
            needs_frame,
        );
        translator.prologue(entry.clear);
        if self.plan.has_context(self.function) {
            translator.trust(1);
        }
        translator.find_leaders(range.clone());
        translator.body(range);
        translator.epilogue();
        translator.b.seal_all_blocks();
        translator.b.finalize(config);
    }
}

impl<'a, 'b> Translator<'a, 'b> {
    fn new(
        plan: &'a InstancePlan<'a>,
        mut b: FunctionBuilder<'b>,
        callees: BTreeMap<u32, FuncRef>,
        (signature, stores, arena): (SigRef, [FuncRef; 4], ([FuncRef; 4], [FuncRef; 4])),
        needs_frame: bool,
    ) -> Self {
        let block = b.create_block();
        b.append_block_params_for_function_params(block);
        b.switch_to_block(block);
        let context = b.block_params(block)[0];
        let start = if needs_frame {
            b.ins().load(I64, TRUSTED, context, plan.at.frame)
        } else {
            b.ins().iconst(I64, 0)
        };
        let top = b.ins().iadd_imm_s(start, FRAME_BYTES as i64);
        let unchanging = TRUSTED.with_readonly().with_can_move();
        let delta = b.ins().load(I64, unchanging, context, plan.at.delta);
        let frame = b.ins().iadd(top, delta);
        let registers = std::array::from_fn(|_| b.declare_var(I64));
        let (fuel, turns) = (b.declare_var(I64), b.declare_var(I32));
        let [leave, spent] = [(); 2].map(|()| {
            let end = b.create_block();
            b.set_cold_block(end);
            b.append_block_param(end, I32);
            b.append_block_param(end, I64);
            end
        });
        let mut known = [Known::Nothing; 11];
        known[10] = Known::Frame(0);
        Self {
            plan,
            b,
            context,
            delta,
            top,
            frame,
            start,
            registers,
            known,
            told: None,
            objects: BTreeSet::new(),
            fuel,
            turns,
            callees,
            signature,
            stores,
            arena,
            blocks: BTreeMap::new(),
            leave,
            spent,
        }
    }

    /// Sets the registers up and clears the frame.
    fn prologue(&mut self, clear: u32) {
        let block = self.b.current_block().expect("the entry block");
        for register in 0..10 {
            match register {
                1..=5 if register < self.b.block_params(block).len() => {
                    let value = self.b.block_params(block)[register];
                    self.set(register as u8, value);
                }
                _ => self.set_number(register as u8, 0),
            }
        }
        self.reload_fuel();
        let turns = self.b.ins().iconst(I32, i64::from(MAY_GOTO_TURNS));
        self.b.def_var(self.turns, turns);
        let mut left = clear as i32;
        if left == 0 {
            return;
        }
        let zero = self.b.ins().iconst(I64, 0);
        if left % 16 != 0 {
            self.b.ins().store(guest_flags(), zero, self.frame, -left);
            left -= 8;
        }
        while left > 0 {
            let zeros = self.b.ins().splat(I64X2, zero);
            self.b.ins().store(guest_flags(), zeros, self.frame, -left);
            left -= 16;
        }
    }

    /// Makes a block of each operation that a jump leads to.
    fn find_leaders(&mut self, range: std::ops::Range<usize>) {
        for op in &self.plan.code.ops[range] {
            if op.kind.is_jump() {
                let b = &mut self.b;
                self.blocks
                    .entry(op.off as usize)
                    .or_insert_with(|| b.create_block());
            }
        }
    }

    fn body(&mut self, range: std::ops::Range<usize>) {
        let mut open = true;
        for at in range.clone() {
            if let Some(block) = self.blocks.get(&at).copied() {
                if open {
                    self.b.ins().jump(block, &[]);
                }
                self.b.switch_to_block(block);
                self.known[..10].fill(Known::Nothing);
                open = true;
            }
            if !open {
                continue;
            }
            let begins = at == range.start || self.plan.code.ops[at - 1].kind.ends_block();
            if begins {
                self.charge(at);
            }
            open = self.operation(at);
        }
    }

    /// The budget test at the entry of a block.
    fn charge(&mut self, at: usize) {
        let len = i64::from(self.plan.code.block_len[at]);
        let fuel = self.b.use_var(self.fuel);
        let short = self.b.ins().icmp_imm_s(IntCC::SignedLessThan, fuel, len);
        let on = self.branch_cold(short);
        let before = at
            .checked_sub(1)
            .map(|before| self.plan.code.ops[before].kind);
        if let Some(OpKind::CallHost | OpKind::CallHelper) = before {
            // No fuel, or the function has stopped the program.
            let stopped = self.shared(I32, self.plan.at.stop);
            let (host, budget) = (self.b.create_block(), self.b.create_block());
            self.b.ins().brif(stopped, host, &[], budget, &[]);
            self.b.switch_to_block(host);
            let fuel = self.shared(I64, self.plan.at.fuel);
            self.leave(at - 1, fuel);
            self.b.switch_to_block(budget);
        }
        self.end_in(self.spent, at, fuel);
        self.b.switch_to_block(on);
        let left = self.b.ins().iadd_imm_s(fuel, -len);
        self.b.def_var(self.fuel, left);
    }

    /// Translates one operation. Returns whether control goes on to the next one.
    fn operation(&mut self, at: usize) -> bool {
        let op = self.plan.code.ops[at];
        if self.arithmetic(op) || self.memory(op, at) {
            return true;
        }
        match op.kind {
            OpKind::CallHost => {
                if !self.plan.imports[op.imm as usize].ends {
                    self.note_place(at);
                }
                self.call_host(op.imm as usize);
            }
            OpKind::CallHelper => {
                self.note_place(at);
                self.call_helper(op);
            }
            OpKind::CallLocal => {
                if self.plan.code.calls_header(at) {
                    self.note_place(at);
                }
                self.call_local(op, at);
            }
            OpKind::Fall => {}
            OpKind::Poison => {
                self.stop(stop::POISON, at);
                return false;
            }
            OpKind::Exit => {
                let (result, fuel) = (self.get(0), self.b.use_var(self.fuel));
                self.b.ins().return_(&[result, fuel]);
                return false;
            }
            OpKind::Jump => {
                let target = self.blocks[&(op.off as usize)];
                self.b.ins().jump(target, &[]);
                return false;
            }
            _ => return self.conditional(op, at),
        }
        true
    }

    /// Notes that the program is at operation `at`, if anybody asks.
    pub(super) fn note_place(&mut self, at: usize) {
        if self.plan.places && self.plan.code.is_own(at) {
            let at = self.b.ins().iconst(I32, at as i64);
            self.set_shared(self.plan.at.place, at);
        }
    }

    fn conditional(&mut self, op: Op, at: usize) -> bool {
        if !matches!(op.kind, OpKind::JeqNext | OpKind::JneNext) {
            self.note_place(at);
        }
        let taken = match op.kind {
            OpKind::MayGoto => self.exhausted(),
            _ => self.comparison(op),
        };
        let target = self.blocks[&(op.off as usize)];
        let next = self.blocks.get(&(at + 1)).copied();
        let fresh = next.is_none();
        let next = next.unwrap_or_else(|| self.b.create_block());
        let found = self.is_null_test(op);
        self.b.ins().brif(taken, target, &[], next, &[]);
        if fresh {
            self.b.switch_to_block(next);
            if found {
                self.is_no_null(op.dst);
            }
        }
        fresh
    }

    /// Whether `op` jumps if the result of a look-up is null.
    fn is_null_test(&self, op: Op) -> bool {
        matches!(op.kind, OpKind::Jeq64K | OpKind::JeqNext)
            && op.imm == 0
            && matches!(self.known(op.dst), Known::MaybeElement(_))
    }

    /// The result of a look-up in `register`, and in those that it was copied to, is an element.
    fn is_no_null(&mut self, register: u8) {
        let element = self.get(register);
        for copy in 0..10 {
            if let Known::MaybeElement(len) = self.known(copy)
                && self.get(copy) == element
            {
                self.known[usize::from(copy)] = Known::Element(0, len);
            }
        }
    }

    /// Whether `may_goto` jumps: after so many turns of this frame.
    fn exhausted(&mut self) -> Value {
        let turns = self.b.use_var(self.turns);
        let none = self.b.ins().icmp_imm_u(IntCC::Equal, turns, 0);
        let fewer = self.b.ins().iadd_imm_s(turns, -1);
        let left = self.b.ins().select(none, turns, fewer);
        self.b.def_var(self.turns, left);
        none
    }

    /// The blocks in which every early end of the function comes together.
    fn epilogue(&mut self) {
        self.b.switch_to_block(self.spent);
        let &[op, fuel] = self.b.block_params(self.spent) else {
            unreachable!("the block has two parameters")
        };
        self.note_stop(stop::BUDGET);
        let args = [BlockArg::from(op), BlockArg::from(fuel)];
        self.b.ins().jump(self.leave, &args);
        self.b.switch_to_block(self.leave);
        let &[op, fuel] = self.b.block_params(self.leave) else {
            unreachable!("the block has two parameters")
        };
        self.b
            .ins()
            .store(TRUSTED, op, self.context, self.plan.at.op);
        let nothing = self.number(0);
        self.b.ins().return_(&[nothing, fuel]);
    }

    pub(super) fn get(&mut self, register: u8) -> Value {
        match self.registers.get(usize::from(register)) {
            Some(variable) => self.b.use_var(*variable),
            None => self.top,
        }
    }

    pub(super) fn set(&mut self, register: u8, value: Value) {
        self.b.def_var(self.registers[usize::from(register)], value);
        self.known[usize::from(register)] = Known::Nothing;
    }

    pub(super) fn set_number(&mut self, register: u8, number: u64) {
        let value = self.number(number);
        self.set(register, value);
        self.known[usize::from(register)] = Known::Number(number);
    }

    pub(super) fn number(&mut self, number: u64) -> Value {
        self.b.ins().iconst(I64, number.cast_signed())
    }

    /// What is known of `register`.
    pub(super) fn known(&self, register: u8) -> Known {
        self.known[usize::from(register)]
    }

    /// A field of the instance.
    pub(super) fn shared(&mut self, ty: Type, offset: i32) -> Value {
        self.b.ins().load(ty, TRUSTED, self.context, offset)
    }

    pub(super) fn set_shared(&mut self, offset: i32, value: Value) {
        self.b.ins().store(TRUSTED, value, self.context, offset);
    }

    pub(super) fn save_fuel(&mut self) {
        let fuel = self.b.use_var(self.fuel);
        self.set_shared(self.plan.at.fuel, fuel);
    }

    pub(super) fn reload_fuel(&mut self) {
        let fuel = self.shared(I64, self.plan.at.fuel);
        self.b.def_var(self.fuel, fuel);
    }

    /// Goes on in a new block if `condition` does not hold, else in a cold one, where this leaves
    /// the builder. Returns the block in which to go on.
    pub(super) fn branch_cold(&mut self, condition: Value) -> Block {
        let (cold, on) = (self.b.create_block(), self.b.create_block());
        self.b.set_cold_block(cold);
        self.b.ins().brif(condition, cold, &[], on, &[]);
        self.b.switch_to_block(cold);
        on
    }

    /// Ends the function at operation `at`, for `reason`, if `condition` holds.
    pub(super) fn stop_if(&mut self, condition: Value, reason: u32, at: usize) {
        let on = self.branch_cold(condition);
        self.stop(reason, at);
        self.b.switch_to_block(on);
    }

    fn note_stop(&mut self, reason: u32) {
        let reason = self.b.ins().iconst(I32, i64::from(reason));
        self.set_shared(self.plan.at.stop, reason);
        // Not zero is enough: what is held counts no more when this is looked at.
        let untidy = self.number(1);
        self.set_shared(self.plan.at.untidy, untidy);
    }

    fn stop(&mut self, reason: u32, at: usize) {
        self.note_stop(reason);
        let fuel = self.b.use_var(self.fuel);
        self.leave(at, fuel);
    }

    /// Ends the function at operation `at`, when the reason has been noted.
    pub(super) fn leave(&mut self, at: usize, fuel: Value) {
        self.end_in(self.leave, at, fuel);
    }

    fn end_in(&mut self, end: Block, at: usize, fuel: Value) {
        let op = self.b.ins().iconst(I32, at as i64);
        let args = [BlockArg::from(op), BlockArg::from(fuel)];
        self.b.ins().jump(end, &args);
    }
}

/// An access to guest memory: checked already, at any alignment, little endian.
pub(super) fn guest_flags() -> MemFlagsData {
    MemFlagsData::new()
        .with_notrap()
        .with_endianness(ir::Endianness::Little)
}

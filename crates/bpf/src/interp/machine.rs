//! What an activation of the interpreter keeps, and what it does beside operations.

use super::cell::{Cells, Executed, Next, Pc, Reg};
use crate::decode::atomic;
use crate::frame::{FRAME_BYTES, Frame, MAX_FRAMES, MAY_GOTO_TURNS, Trap};
use crate::op::{FunctionEntry, Op, OpKind};
use crate::{Access, AccessKind, Host, Instance, Stop};

/// Executes a cell and what follows it. Gets the instructions that may be executed before the
/// chain must return, and returns where to go on.
pub(crate) type RunCell<H> =
    for<'m, 'a> unsafe fn(Pc<'a, H>, &'m mut CellActivation<'a, H>, i64) -> Next<'a, H>;

impl<H: Host> Executed for H {
    type Run = RunCell<H>;
}

impl<'a, H: Host> Pc<'a, H> {
    /// Executes from here on.
    #[inline(always)]
    pub(super) fn run(self, machine: &mut CellActivation<'a, H>, fuel: i64) -> Next<'a, H> {
        // SAFETY: It is the function of this cell.
        unsafe { (self.cell().run)(self, machine, fuel) }
    }
}

/// Instructions after which a chain of cells returns, at the end of a block: functions that call
/// each other without returning would need stack for each, if the compiler made no jumps of them.
const SLICE: i64 = 512;

/// An activation.
pub(crate) struct CellActivation<'a, H: Host> {
    regs: [u64; 16],
    /// What is left of the budget, beside what the chain has got. A block is charged when it is
    /// entered.
    pub(super) rest: i64,
    pub(super) vm: &'a mut Instance<H>,
    pub(super) host: &'a mut H,
    cells: &'a Cells<H>,
    /// Frames of the instance that belong to earlier activations.
    frames: usize,
    pub(super) may_goto: u32,
    /// The chain has returned within a block.
    pub(super) holds: bool,
    /// Why and where it ended before its time.
    trap: Option<Box<Trap>>,
}

impl<'a, H: Host> CellActivation<'a, H> {
    #[inline(always)]
    pub(super) fn new(
        vm: &'a mut Instance<H>,
        host: &'a mut H,
        cells: &'a Cells<H>,
        [a, b, c, d, e]: [u64; 5],
    ) -> Self {
        let mut regs = [0, a, b, c, d, e, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        regs[10] = vm.stack.first_frame();
        Self {
            regs,
            rest: vm.stack.progress.fuel,
            frames: vm.stack.frames.len(),
            may_goto: MAY_GOTO_TURNS,
            holds: false,
            trap: None,
            vm,
            host,
            cells,
        }
    }

    #[inline(always)]
    pub(super) const fn get(&self, register: Reg) -> u64 {
        self.regs[register as usize]
    }

    #[inline(always)]
    pub(super) const fn set(&mut self, register: Reg, value: u64) {
        self.regs[register as usize] = value;
    }

    /// `r0`.
    pub(super) const fn result(&self) -> u64 {
        self.regs[0]
    }

    pub(super) const fn set_result(&mut self, value: u64) {
        self.regs[0] = value;
    }

    /// Runs from the beginning of a function until it exits.
    #[inline(always)]
    pub(super) fn run(mut self, entry: FunctionEntry) -> Result<u64, Box<Trap>> {
        let op = entry.op as usize;
        if let Err(stop) = self.push_stack(entry.clear) {
            return Err(Box::new(Trap { stop, op }));
        }
        self.drive(self.cells.at(op));
        self.vm.stack.progress.fuel = self.rest;
        match self.trap {
            None => Ok(self.regs[0]),
            Some(trap) => {
                self.vm.stack.frames.truncate(self.frames);
                Err(trap)
            }
        }
    }

    /// Executes from `pc` on, where a block begins that is not charged yet.
    fn drive(&mut self, begin: Pc<'a, H>) {
        let mut next = Some(begin);
        while let Some(pc) = next {
            if std::mem::take(&mut self.holds) {
                let slice = self.take_slice(0);
                // SAFETY: It is the function that the operation's cell would have, but for the
                // return in front of it.
                next = unsafe { self.cells.held(pc)(pc, self, slice) };
                continue;
            }
            let len = i64::from(pc.cell().len);
            if self.rest < len {
                return self.end_by_budget(pc);
            }
            let slice = self.take_slice(len);
            next = pc.run(self, slice - len);
        }
    }

    /// Nothing of the block at `pc` is executed, for which the budget is too small.
    #[cold]
    #[inline(never)]
    fn end_by_budget(&mut self, pc: Pc<'_, H>) {
        let stop = self.vm.budget_stop();
        let op = self.cells.op(pc);
        self.trap = Some(Box::new(Trap { stop, op }));
    }

    /// What a chain may execute that must be able to execute `len` instructions.
    fn take_slice(&mut self, len: i64) -> i64 {
        let slice = self.rest.min(len.max(SLICE));
        self.rest -= slice;
        slice
    }

    /// The program cannot go on at `pc`: what it did not execute of its block is not counted.
    #[cold]
    #[inline(never)]
    pub(super) fn fail(&mut self, pc: Pc<'_, H>, fuel: i64, stop: Stop) -> Next<'a, H> {
        let op = self.cells.op(pc);
        self.rest += fuel + self.vm.code.left_in_block(op).cast_signed();
        self.trap = Some(Box::new(Trap { stop, op }));
        None
    }

    /// What executes the operation at `pc` behind its point.
    pub(super) fn behind(&self, pc: Pc<'a, H>) -> RunCell<H> {
        self.cells.behind(pc)
    }

    /// The operation at `pc` comes next: says so to the host, unless it concerns the program's own
    /// stack or arguments.
    #[inline(never)]
    pub(super) fn stop_at_point(&mut self, pc: Pc<'_, H>, fuel: i64) {
        let at = self.cells.op(pc);
        let op = self.vm.code.ops[at];
        let Some((kind, bytes)) = access_of(op) else {
            return;
        };
        let mut address = 0;
        if kind != AccessKind::Call {
            let base = if op.kind.is_load() { op.src } else { op.dst };
            let mut pointer = self.get(Reg::of(base));
            if op.arena {
                pointer = self.vm.cast_arena(pointer, 0);
            }
            address = pointer.wrapping_add_signed(i64::from(op.off));
            if self.vm.stack.has(address) {
                return;
            }
        }
        self.vm.stack.progress.fuel = fuel + self.rest;
        let access = Access {
            at: at as u32,
            kind,
            address,
            bytes,
        };
        self.host.at_point(self.vm, &access);
    }

    /// The operation at `pc`.
    pub(super) fn op(&self, pc: Pc<'_, H>) -> usize {
        self.cells.op(pc)
    }

    /// Takes a frame above the current one, clears its upper `clear` bytes and points `r10` to
    /// its end.
    #[inline(always)]
    fn push_stack(&mut self, clear: u32) -> Result<(), Stop> {
        let frame = self.regs[10];
        if frame + FRAME_BYTES > self.vm.stack.end {
            return Err(stack_overflow(self.vm.stack_bytes()));
        }
        self.regs[10] = frame + FRAME_BYTES;
        let clear = u64::from(clear);
        self.vm.memory.clear(self.regs[10] - clear, clear);
        self.vm.stack.progress.frame = frame;
        Ok(())
    }

    /// Enters `function`, to return behind the operation at `pc`. Gives where it begins.
    #[inline(never)]
    pub(super) fn call_local(&mut self, function: usize, pc: Pc<'_, H>) -> Result<Pc<'a, H>, Stop> {
        if self.vm.stack.frames.len() - self.frames >= MAX_FRAMES - 1 {
            return Err(Stop::CallDepth {
                limit: MAX_FRAMES as u32,
            });
        }
        let entry = self.vm.code.entries[function];
        let [_, _, _, _, _, _, r6, r7, r8, r9, ..] = self.regs;
        self.push_stack(entry.clear)?;
        self.regs[0] = 0;
        self.regs[6..10].fill(0);
        self.vm.stack.frames.push(Frame {
            kept: [r6, r7, r8, r9],
            back: self.cells.op(pc) + 1,
            may_goto: self.may_goto,
        });
        self.may_goto = MAY_GOTO_TURNS;
        Ok(self.cells.at(entry.op as usize))
    }

    /// Whether another function of this activation waits for this one.
    #[inline(always)]
    pub(super) const fn is_called(&self) -> bool {
        self.vm.stack.frames.len() != self.frames
    }

    /// Where the caller goes on; it has its registers again.
    pub(super) fn return_to_caller(&mut self) -> Pc<'a, H> {
        let frame = self.vm.stack.frames.pop().expect("the function was called");
        self.regs[1..6].fill(0);
        self.regs[6..10].copy_from_slice(&frame.kept);
        self.regs[10] -= FRAME_BYTES;
        self.vm.stack.progress.frame -= FRAME_BYTES;
        self.may_goto = frame.may_goto;
        self.cells.at(frame.back)
    }

    /// Calls the host, from `pc`. A nested program counts on from here. Gives what is left to the
    /// chain: less than nothing if more was spent, or if the host has stopped the program.
    #[inline(never)]
    pub(super) fn call_host(&mut self, import: usize, pc: Pc<'_, H>, fuel: i64) -> i64 {
        let [_, a, b, c, d, e, ..] = self.regs;
        self.vm.stack.progress.fuel = fuel + self.rest;
        let result = self.vm.call_import(self.host, import, [a, b, c, d, e]);
        let fuel = self.vm.stack.progress.fuel - self.rest;
        match result {
            Ok(value) => {
                self.answer(value);
                fuel
            }
            Err(stop) => {
                self.fail(pc, fuel, stop);
                -1
            }
        }
    }

    /// Whether the program was stopped.
    pub(super) const fn is_stopped(&self) -> bool {
        self.trap.is_some()
    }

    /// As `bpf_map_lookup_elem` with `r1` and `r2`, if the map is an array.
    #[inline(always)]
    pub(super) fn look_up_in_array(&self) -> Option<u64> {
        let [_, map, key, ..] = self.regs;
        let (vm, cpu) = (&*self.vm, self.host.cpu());
        vm.maps.look_up_in_array(&vm.memory, map, key, cpu)
    }

    /// A call leaves its result, and zeros in `r1` to `r5`.
    #[inline]
    pub(super) fn answer(&mut self, value: u64) {
        self.regs[0] = value;
        self.regs[1..6].fill(0);
    }
}

/// What an operation does that others can see; `None`: nothing.
fn access_of(op: Op) -> Option<(AccessKind, u8)> {
    use OpKind::*;
    let bytes = match op.kind {
        LoadU8 | LoadS8 | StoreK8 | StoreX8 => 1,
        LoadU16 | LoadS16 | StoreK16 | StoreX16 => 2,
        LoadU32 | LoadS32 | StoreK32 | StoreX32 | Atomic32 => 4,
        LoadU64 | StoreK64 | StoreX64 | Atomic64 => 8,
        CallHost | CallHelper => return Some((AccessKind::Call, 0)),
        _ => return None,
    };
    let is_atomic = matches!(op.kind, Atomic32 | Atomic64);
    let kind = match op.kind {
        _ if is_atomic && op.imm as i32 & atomic::FETCH == 0 => AccessKind::Count,
        _ if is_atomic => AccessKind::Atomic,
        kind if kind.is_load() => AccessKind::Load,
        _ => AccessKind::Store,
    };
    Some((kind, bytes))
}

#[cold]
const fn stack_overflow(limit: u32) -> Stop {
    Stop::StackOverflow { limit }
}

//! Operations that programs seldom have: atomic ones, and those on the arena.

use super::cell::{Next, Pc};
use super::machine::CellActivation;
use super::slow_store;
use super::table::next;
use crate::decode::atomic;
use crate::op::{Op, OpKind};
use crate::{Host, Stop};

/// An atomic operation, or one on the arena.
#[inline(never)]
///
/// # Safety
/// As `table.rs` says.
pub(super) unsafe fn run<'a, H: Host>(
    pc: Pc<'a, H>,
    m: &mut CellActivation<'a, H>,
    fuel: i64,
) -> Next<'a, H> {
    let at = m.op(pc);
    let op = m.vm.code.ops[at];
    let done = match op.kind {
        OpKind::Atomic32 => m.atomic::<4>(pc, at, op),
        OpKind::Atomic64 => m.atomic::<8>(pc, at, op),
        kind if kind.is_load() => {
            m.load_arena(pc, at, kind);
            Ok(())
        }
        _ => m.store_arena(pc, at, op),
    };
    match done {
        // SAFETY: This cell is that of an operation.
        Ok(()) => unsafe { next(pc, m, fuel) },
        Err(stop) => m.fail(pc, fuel, stop),
    }
}

impl<H: Host> CellActivation<'_, H> {
    fn load_arena(&mut self, pc: Pc<'_, H>, at: usize, kind: OpKind) {
        let len = match kind {
            OpKind::LoadU8 | OpKind::LoadS8 => 1,
            OpKind::LoadU16 | OpKind::LoadS16 => 2,
            OpKind::LoadU32 | OpKind::LoadS32 => 4,
            _ => 8,
        };
        let cell = pc.cell();
        let (address, there) = self.vm.arena_access(at, self.get(cell.src), (len, false));
        // Behind the region's last byte lie zeros, so that eight can always be loaded.
        let found = if there {
            self.vm.memory.load_u64(address)
        } else {
            0
        };
        let above = 64 - 8 * len;
        let low = found << above;
        let value = match kind {
            OpKind::LoadS8 | OpKind::LoadS16 | OpKind::LoadS32 => {
                (low.cast_signed() >> above).cast_unsigned()
            }
            _ => low >> above,
        };
        self.set(cell.dst, value);
    }

    fn store_arena(&mut self, pc: Pc<'_, H>, at: usize, op: Op) -> Result<(), Stop> {
        let cell = pc.cell();
        let value = if op.kind.stores_immediate() {
            op.imm.cast_unsigned()
        } else {
            self.get(cell.src)
        };
        match op.kind {
            OpKind::StoreK8 | OpKind::StoreX8 => {
                self.store_there(pc, at, (value as u8).to_le_bytes())
            }
            OpKind::StoreK16 | OpKind::StoreX16 => {
                self.store_there(pc, at, (value as u16).to_le_bytes())
            }
            OpKind::StoreK32 | OpKind::StoreX32 => {
                self.store_there(pc, at, (value as u32).to_le_bytes())
            }
            _ => self.store_there(pc, at, value.to_le_bytes()),
        }
    }

    fn store_there<const N: usize>(
        &mut self,
        pc: Pc<'_, H>,
        at: usize,
        bytes: [u8; N],
    ) -> Result<(), Stop> {
        let pointer = self.get(pc.cell().dst);
        let (address, there) = self.vm.arena_access(at, pointer, (N as u64, true));
        if there && !self.vm.memory.store(address, bytes) {
            if self.vm.code.is_own(at) {
                self.vm.stack.progress.place = at as u32;
            }
            slow_store(self.vm, self.host, address, bytes)?;
        }
        Ok(())
    }

    /// An atomic operation on `N` bytes, 4 or 8.
    fn atomic<const N: usize>(&mut self, pc: Pc<'_, H>, at: usize, op: Op) -> Result<(), Stop> {
        let cell = pc.cell();
        let pointer = self.get(cell.dst);
        // Where nothing is, what it found is 0, and it stores nothing.
        let (address, there) = if op.arena {
            self.vm.arena_access(at, pointer, (N as u64, true))
        } else {
            (pointer.wrapping_add_signed(i64::from(op.off)), true)
        };
        let low = |value: u64| value & (u64::MAX >> (64 - 8 * N));
        let mut old = 0;
        if there {
            let mut wide = [0; 8];
            wide[..N].copy_from_slice(&self.vm.memory.load::<N>(address));
            old = u64::from_le_bytes(wide);
        }
        let value = low(self.get(cell.src));
        let expected = low(self.result());
        let imm = op.imm as i32;
        let new = match imm & !atomic::FETCH {
            _ if imm == atomic::XCHG => Some(value),
            // One that fails stores nothing, so it may fail on memory that is read-only.
            _ if imm == atomic::CMPXCHG => (old == expected).then_some(value),
            atomic::ADD => Some(old.wrapping_add(value)),
            atomic::OR => Some(old | value),
            atomic::AND => Some(old & value),
            _ => Some(old ^ value),
        };
        if let Some(new) = new.filter(|_| there) {
            let bytes = new.to_le_bytes();
            let bytes = *bytes.first_chunk::<N>().expect("at most 8 bytes");
            if !self.vm.memory.store(address, bytes) {
                slow_store(self.vm, self.host, address, bytes)?;
            }
        }
        match imm {
            atomic::CMPXCHG => self.set_result(old),
            _ if imm & atomic::FETCH != 0 => self.set(cell.src, old),
            _ => {}
        }
        Ok(())
    }
}

//! From operations to cells.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::cell::{Cells, OpCell, Reg};
use super::table;
use crate::intrinsic::Intrinsic;
use crate::op::{Code, Op, OpKind};
use crate::{Host, Instance};

/// Cells that may follow each other within a block before the chain returns.
const LONG: u32 = 256;

/// The operations of an instance that has none of these cells yet; from now on it has.
#[cold]
#[inline(never)]
pub(super) fn cells<H: Host>(vm: &mut Instance<H>) -> Arc<Cells<H>> {
    let Code { ops, block_len, .. } = &*vm.code;
    let mut cells = Vec::with_capacity(ops.len() + 1);
    let mut held = BTreeMap::new();
    let mut straight = 0;
    let mut behind = Vec::new();
    for (at, op) in ops.iter().enumerate() {
        let mut cell = cell(vm, at, *op, block_len[at]);
        if vm.config.interleave {
            behind.push(cell.run);
            if is_point(vm, *op) {
                cell.run = table::point::<H>;
            }
        }
        straight = if op.kind.ends_block() {
            0
        } else {
            straight + 1
        };
        if straight == LONG {
            held.insert(at, std::mem::replace(&mut cell.run, table::hold::<H>));
            straight = 0;
        }
        cells.push(cell);
    }
    cells.push(OpCell {
        run: table::behind_the_last::<H>,
        arg: 0,
        len: 0,
        dst: Reg::R0,
        src: Reg::R0,
    });
    let cells = Arc::new(Cells::new(cells, held, behind));
    vm.keep_cells(&cells);
    cells
}

fn cell<H: Host>(vm: &Instance<H>, at: usize, op: Op, len: u32) -> OpCell<H> {
    let arg = match op.kind {
        kind if kind.is_load() => i64::from(op.off).cast_unsigned(),
        kind if kind.stores_immediate() => OpCell::<H>::both(op.imm, op.off),
        kind if kind.is_store() => i64::from(op.off).cast_unsigned(),
        kind if kind.is_jump() => OpCell::<H>::both(op.imm, distance::<H>(vm, at, op)),
        _ => op.imm.cast_unsigned(),
    };
    OpCell {
        run: table::function(vm, at, op),
        arg,
        len,
        dst: Reg::of(op.dst),
        src: Reg::of(op.src),
    }
}

/// Whether others can see what `op` does, or do what it sees. The stack is a program's own; what a
/// pointer to it in another register leads to is told from the rest when it is executed.
fn is_point<H: Host>(vm: &Instance<H>, op: Op) -> bool {
    const FRAME: u8 = 10;
    match op.kind {
        kind if kind.is_load() => op.src != FRAME,
        kind if kind.is_store() => op.dst != FRAME,
        OpKind::CallHost => matches!(
            vm.bindings[op.imm as usize].intrinsic,
            None | Some(Intrinsic::Lookup)
        ),
        kind => kind == OpKind::CallHelper,
    }
}

/// Bytes from operation `at`, a jump, to where it leads.
fn distance<H: Host>(vm: &Instance<H>, at: usize, op: Op) -> i32 {
    let target = op.off as usize;
    assert!(target < vm.code.ops.len(), "a jump leads to an operation");
    let cells = target as i64 - at as i64;
    i32::try_from(cells * size_of::<OpCell<H>>() as i64).expect("no object has so many operations")
}

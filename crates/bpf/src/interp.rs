//! The interpreter: the oracle for every other back end.
//!
//! An instance's operations become [`Cells`](cell::Cells) when it first interprets: each has the
//! function that executes it and its operands as that function wants them (`table.rs`). A function
//! ends by calling that of the next cell, which compilers make a jump of. Nothing relies on that:
//! after [`SLICE`] instructions, and within a very long block, the chain returns to
//! [`CellActivation::drive`], which goes on from there.
//!
//! It knows operations and frames only. What a call of the host means, where memory is and how
//! faults are reported stand in back-end-neutral modules.

mod arithmetic;
mod build;
#[expect(
    unsafe_code,
    reason = "a chain of cells without looking at its length each time"
)]
pub(crate) mod cell;
#[expect(unsafe_code, reason = "cells are executed by functions of their own")]
mod machine;
#[expect(unsafe_code, reason = "as in `table`")]
mod rare;
#[expect(unsafe_code, reason = "what executes a cell goes on to the next")]
mod table;

use machine::CellActivation;

use crate::frame::Trap;
use crate::memory::StoreVerdict;
use crate::{Host, Instance, Stop};

/// Runs `function` until it exits, in the first frame of the call.
#[inline(always)]
pub(crate) fn run<H: Host>(
    vm: &mut Instance<H>,
    host: &mut H,
    function: u32,
    args: [u64; 5],
) -> Result<u64, Box<Trap>> {
    let cells = vm.lend_cells().unwrap_or_else(|| build::cells(vm));
    let entry = vm.code.entries[function as usize];
    let result = CellActivation::new(vm, host, &cells, args).run(entry);
    vm.take_cells_back(cells);
    result
}

/// A store outside the plain writable memory: into the arena, into a kernel object, or nowhere.
#[inline]
pub(crate) fn slow_store<H: Host, const N: usize>(
    vm: &mut Instance<H>,
    host: &mut H,
    address: u64,
    bytes: [u8; N],
) -> Result<(), Stop> {
    if !vm.memory.is_kernel_object(address, N as u64) {
        return store_elsewhere(vm, address, &bytes);
    }
    if vm.config.places {
        host.stores_at(vm.current_place());
    }
    let mut value = [0; 8];
    value[..N].copy_from_slice(&bytes);
    host.store_protected(&mut vm.memory, address, N as u8, u64::from_le_bytes(value))
}

#[cold]
fn store_elsewhere<H: Host>(vm: &mut Instance<H>, address: u64, bytes: &[u8]) -> Result<(), Stop> {
    match vm.memory.verdict(address, bytes.len() as u64) {
        StoreVerdict::Allowed => {
            vm.memory.write(address, bytes);
            Ok(())
        }
        StoreVerdict::Dropped => Ok(()),
        StoreVerdict::Protected | StoreVerdict::Wild => Err(Stop::WildStore {
            address,
            size: bytes.len() as u8,
        }),
    }
}

//! Operations as the interpreter executes them, and how it goes from one to the next.
//!
//! # Safety
//!
//! A [`Pc`] points to a cell of [`Cells`], which an activation holds for as long as it lives.
//! Behind the last operation stands a cell that goes nowhere, so that there is a cell behind each
//! cell that goes on ([`Pc::next`]). `build.rs` makes cells so, and looks at distances of jumps.

use std::collections::BTreeMap;

/// What executes a cell and what follows it: a function, which `machine.rs` names for every host.
/// Named here it would make a circle of files, because it knows instances, and these have cells.
pub(crate) trait Executed: Sized {
    /// The function.
    type Run: Copy;
}

/// A register. Sixteen, so that none needs a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[rustfmt::skip]
pub(crate) enum Reg { R0, R1, R2, R3, R4, R5, R6, R7, R8, R9, R10, R11, R12, R13, R14, R15 }

impl Reg {
    #[rustfmt::skip]
    const ALL: [Self; 16] = {
        use Reg::*;
        [R0, R1, R2, R3, R4, R5, R6, R7, R8, R9, R10, R11, R12, R13, R14, R15]
    };

    pub(crate) fn of(number: u8) -> Self {
        Self::ALL[usize::from(number & 15)]
    }
}

/// An operation.
pub(crate) struct Cell<H: Executed> {
    pub(crate) run: H::Run,
    /// The immediate, an offset, or both; see [`Cell::both`].
    pub(crate) arg: u64,
    /// Instructions from here to the end of the block.
    pub(crate) len: u32,
    pub(crate) dst: Reg,
    pub(crate) src: Reg,
}

impl<H: Executed> Cell<H> {
    /// An immediate of 32 bits and the offset, or the distance of the jump.
    pub(crate) const fn both(imm: i64, off: i32) -> u64 {
        (off as u32 as u64) << 32 | imm as u32 as u64
    }

    /// The immediate of a jump or a store, extended by its sign.
    #[inline(always)]
    pub(crate) const fn imm(&self) -> u64 {
        (self.arg as u32).cast_signed() as i64 as u64
    }

    /// The offset beside it.
    #[inline(always)]
    pub(crate) const fn off(&self) -> i64 {
        ((self.arg >> 32) as u32).cast_signed() as i64
    }
}

/// Where an activation is.
pub(crate) struct Pc<H: Executed>(*const Cell<H>);

impl<H: Executed> Clone for Pc<H> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<H: Executed> Copy for Pc<H> {}

impl<H: Executed> Pc<H> {
    /// Nowhere: the activation is over.
    pub(crate) const END: Self = Self(std::ptr::null());

    #[inline(always)]
    pub(crate) const fn is_end(self) -> bool {
        self.0.is_null()
    }

    /// The cell; this must not be [`Pc::END`].
    #[inline(always)]
    pub(crate) fn cell<'a>(self) -> &'a Cell<H> {
        debug_assert!(!self.is_end(), "the activation is over");
        // SAFETY: As the module says. No reference to a cell outlives the function that executes
        // it, and cells never change.
        unsafe { &*self.0 }
    }

    /// The cell behind this one.
    #[inline(always)]
    pub(crate) const fn next(self) -> Self {
        // SAFETY: As the module says; the last cell goes nowhere.
        Self(unsafe { self.0.add(1) })
    }

    /// Where this jump leads.
    #[inline(always)]
    pub(crate) fn target(self) -> Self {
        // SAFETY: The distance of a jump leads to another cell, see `distance` in `build.rs`.
        Self(unsafe { self.0.byte_offset(self.cell().off() as isize) })
    }
}

/// All operations of an instance, and behind them a cell that goes nowhere.
pub(crate) struct Cells<H: Executed> {
    cells: Box<[Cell<H>]>,
    /// What executes the operations at which the chain returns within a block.
    held: BTreeMap<usize, H::Run>,
}

impl<H: Executed> std::fmt::Debug for Cells<H> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Cells({})", self.cells.len())
    }
}

impl<H: Executed> Cells<H> {
    /// What was made by `build.rs`: `cells` ends with one that goes nowhere.
    pub(crate) fn new(cells: Vec<Cell<H>>, held: BTreeMap<usize, H::Run>) -> Self {
        Self {
            cells: cells.into(),
            held,
        }
    }

    /// Where operation `op` is executed.
    ///
    /// # Panics
    /// If there is no such operation.
    #[inline]
    pub(crate) fn at(&self, op: usize) -> Pc<H> {
        Pc(&raw const self.cells[op])
    }

    /// The operation that is executed at `pc`.
    pub(crate) fn op(&self, pc: Pc<H>) -> usize {
        (pc.0.addr() - self.cells.as_ptr().addr()) / size_of::<Cell<H>>()
    }

    /// What executes the cell at `pc`, at which the chain has returned within a block.
    #[cold]
    #[inline(never)]
    pub(crate) fn held(&self, pc: Pc<H>) -> H::Run {
        self.held[&self.op(pc)]
    }
}

//! Operations as the interpreter executes them, and how it goes from one to the next.
//!
//! # Safety
//!
//! A [`Pc`] points to a cell of [`Cells`] and borrows them, so the cell is there and never changes.
//! The function of a cell is called with that cell ([`Executed`]), and relies on two things more,
//! which `build.rs` sees to: behind a cell of an operation there is another cell, because behind
//! the last operation stands one that goes nowhere; and the distance of a jump leads to a cell.

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::ptr::NonNull;

/// What executes a cell and what follows it: a function, which `machine.rs` names for every host.
/// Named here it would make a circle of files, because it knows instances, and these have cells.
pub(crate) trait Executed: Sized {
    /// The function. It is unsafe to call: with the cell whose function it is, and with no other.
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
pub(crate) struct OpCell<H: Executed> {
    pub(crate) run: H::Run,
    /// The immediate, an offset, or both; see [`OpCell::both`].
    pub(crate) arg: u64,
    /// Instructions from here to the end of the block.
    pub(crate) len: u32,
    pub(crate) dst: Reg,
    pub(crate) src: Reg,
}

impl<H: Executed> OpCell<H> {
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

/// Where an activation is: at a cell.
pub(crate) struct Pc<'a, H: Executed>(NonNull<OpCell<H>>, PhantomData<&'a Cells<H>>);

/// Where an activation goes on; `None`: it is over.
pub(crate) type Next<'a, H> = Option<Pc<'a, H>>;

impl<H: Executed> Clone for Pc<'_, H> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<H: Executed> Copy for Pc<'_, H> {}

impl<'a, H: Executed> Pc<'a, H> {
    /// The cell.
    #[inline(always)]
    pub(crate) const fn cell(self) -> &'a OpCell<H> {
        // SAFETY: It is one of the cells that are borrowed, and these never change.
        unsafe { self.0.as_ref() }
    }

    /// The cell behind this one.
    ///
    /// # Safety
    /// This is the cell of an operation, and not the one behind the last.
    #[inline(always)]
    pub(crate) const unsafe fn next(self) -> Self {
        // SAFETY: As the module says, there is a cell behind that of an operation.
        Self(unsafe { self.0.add(1) }, PhantomData)
    }

    /// Where this jump leads.
    ///
    /// # Safety
    /// This is the cell of a jump.
    #[inline(always)]
    pub(crate) const unsafe fn target(self) -> Self {
        let distance = self.cell().off() as isize;
        // SAFETY: The distance of a jump leads to another cell, see `distance` in `build.rs`.
        Self(unsafe { self.0.byte_offset(distance) }, PhantomData)
    }
}

/// All operations of an instance, and behind them a cell that goes nowhere.
pub(crate) struct Cells<H: Executed> {
    cells: Box<[OpCell<H>]>,
    /// What executes the operations at which the chain returns within a block.
    held: BTreeMap<usize, H::Run>,
    /// What executes each operation behind its point; empty if there are none.
    behind: Box<[H::Run]>,
}

impl<H: Executed> std::fmt::Debug for Cells<H> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Cells({})", self.cells.len())
    }
}

impl<H: Executed> Cells<H> {
    /// What was made by `build.rs`: `cells` ends with one that goes nowhere.
    pub(crate) fn new(
        cells: Vec<OpCell<H>>,
        held: BTreeMap<usize, H::Run>,
        behind: Vec<H::Run>,
    ) -> Self {
        Self {
            cells: cells.into(),
            held,
            behind: behind.into(),
        }
    }

    /// What executes the cell at `pc`, which has a point in front of it.
    ///
    /// # Panics
    /// If no cell has.
    pub(crate) fn behind(&self, pc: Pc<'_, H>) -> H::Run {
        self.behind[self.op(pc)]
    }

    /// Where operation `op` is executed.
    ///
    /// # Panics
    /// If there is no such operation.
    #[inline]
    pub(crate) fn at(&self, op: usize) -> Pc<'_, H> {
        assert!(op < self.cells.len(), "there is such an operation");
        let first = NonNull::from(&*self.cells).cast::<OpCell<H>>();
        // SAFETY: There are more cells than that. The pointer is made from all of them, so that
        // it may go to the others.
        Pc(unsafe { first.add(op) }, PhantomData)
    }

    /// The operation that is executed at `pc`.
    pub(crate) fn op(&self, pc: Pc<'_, H>) -> usize {
        (pc.0.addr().get() - self.cells.as_ptr().addr()) / size_of::<OpCell<H>>()
    }

    /// What executes the cell at `pc`, at which the chain has returned within a block.
    #[cold]
    #[inline(never)]
    pub(crate) fn held(&self, pc: Pc<'_, H>) -> H::Run {
        self.held[&self.op(pc)]
    }
}

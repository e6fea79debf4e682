//! A bound on the work that a crafted file can cause.

use std::cell::Cell;

/// Steps that a search through types may still take.
///
/// Types of compilers never come near the bound; without it, a few hundred bytes of types that
/// contain each other could keep a search busy for years.
#[derive(Debug)]
pub(crate) struct Steps(Cell<u32>);

impl Steps {
    pub(crate) fn new(limit: u32) -> Self {
        Self(Cell::new(limit))
    }

    /// Takes one step; `None` if there is none left.
    pub(crate) fn take(&self) -> Option<()> {
        self.0.set(self.0.get().checked_sub(1)?);
        Some(())
    }

    pub(crate) fn are_exhausted(&self) -> bool {
        self.0.get() == 0
    }
}

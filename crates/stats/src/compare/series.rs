//! Figures of reruns of one recording, block by block of the recorded input.
//!
//! A recording is one piece of time in which neighbours are alike, and no set of independent runs.
//! Each candidate reruns it once for each jitter; what a task goes through is booked in the cell of
//! the *recorded* time whose work it does, so that a cell is the same work under each candidate.
//! Stretches of cells are drawn with repetition, the same for all candidates, and so are jitters; a
//! figure is computed anew from what was drawn.

mod draws;
mod length;
#[cfg(test)]
mod tests;

pub use draws::{CellFigure, DrawnFigure, Draws, compare_figures, compare_values};
pub use length::{Correlation, correlation};

/// The fewest blocks that say how much a figure varies.
pub const BLOCKS_MIN: usize = 10;

/// The fewest independent spans beyond a percentile that is compared.
pub const BEYOND_MIN: f64 = 10.0;

/// So many spans a cell, on average: fewer make a series of its own gaps.
const SPANS_A_CELL: u64 = 5;

/// Into how many cells a rerun with so many spans is divided.
#[must_use]
pub fn cells_for(spans: u64) -> usize {
    usize::try_from(spans / SPANS_A_CELL)
        .unwrap_or(usize::MAX)
        .max(1)
}

/// A statistic of spans that can be computed from what was drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CellStatistic {
    /// The mean.
    Mean,
    /// The length that so many thousandths do not exceed, by nearest rank; 1000 is the largest.
    Permille(u16),
}

/// Percentiles that are taken in the place of one with too few spans beyond it. Below the median
/// are those who hardly waited, of whom nobody asks who asks for the longest waits.
const LOWER: [u16; 7] = [999, 995, 990, 950, 900, 750, 500];

impl CellStatistic {
    /// This one, and those that are taken in its place, best first.
    pub fn and_lower(self) -> impl Iterator<Item = Self> {
        let lower = match self {
            Self::Mean => 0,
            Self::Permille(own) => own,
        };
        let lower = LOWER.into_iter().filter(move |it| *it < lower);
        [self].into_iter().chain(lower.map(Self::Permille))
    }
}

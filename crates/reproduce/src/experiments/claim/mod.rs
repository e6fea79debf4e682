//! Whether published statements hold for measured runs.
//!
//! A statement is put as one or more [`ClaimQuestion`]s about values of runs; [`judge`] answers all
//! of a table at once, so that their number is accounted for, and gives each a [`ClaimVerdict`].
//! [`Formula`] makes values of a run's numbers. experiments/README.md describes all of it for those
//! who write experiments.
//!
//! Logarithms are those of the crate `libm`, as in [`stats::compare`].

mod contrast;
mod formula;
mod interval;
mod judge;
mod question;
mod sequence;
#[cfg(test)]
mod tests;
mod verdict;

pub use formula::Formula;
pub use interval::interval;
pub use judge::{AnswerPart, ClaimFinding, Rules, judge};
pub use question::{ClaimCell, ClaimQuestion, Side};
pub use sequence::Tolerance;
pub use verdict::{ClaimVerdict, together};

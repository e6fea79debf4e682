//! Whether published statements hold for measured runs.
//!
//! A statement is put as one or more [`Question`]s about values of runs; [`judge`] answers all of
//! a table at once, so that their number is accounted for, and gives each a [`Verdict`].
//! [`Formula`] makes values of a run's numbers. experiments/README.md describes all of it for those
//! who write experiments.
//!
//! Logarithms are those of the crate `libm`, as in [`stats::compare`].

mod contrast;
mod formula;
mod judge;
mod question;
mod sequence;
#[cfg(test)]
mod tests;
mod verdict;

pub use formula::Formula;
pub use judge::{Finding, Part, Rules, judge};
pub use question::{Cell, Question, Side};
pub use sequence::Tolerance;
pub use verdict::{Verdict, together};

//! The forms in which it is written what came of experiments.

pub mod figures;
pub mod human;
pub mod json;
pub mod page;
mod places;
mod sides;
mod words;

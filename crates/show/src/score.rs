//! How far the simulation of a recording can be trusted.

mod words;
mod write;

pub use words::{answer, write as text};
pub use write::{json, table};

//! See the crate's description.

pub mod kernel_types;

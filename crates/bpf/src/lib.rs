//! The object machine.

mod image;

pub use image::*;

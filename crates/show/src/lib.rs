//! Answers in, bytes out: what a person or a file gets.
//!
//! [`figure`] draws runs, comparisons and logs as SVG, [`page`] is the design of every page,
//! [`table`] of every table that people read, and [`export`] of those that programs read.
//! [`report`] tells what runs came to, [`comparison`] how sets of them differ, [`choice`] which
//! scheduler is best, [`score`] how far a simulation can be trusted, [`sweep`] what many
//! combinations came to, [`evaluation`] what candidates of a search came to, [`gate`] whether a new
//! version may replace an old one, [`difference`] where two policies part, [`fidelity`] how far
//! machine and kernel are apart, and [`explanation`] why a task waited, which [`timeline`] draws in
//! letters.
//!
//! Nothing here opens a file or knows whether a terminal is there; whoever asks says where bytes go
//! and how they are to look.

#![forbid(unsafe_code)]

pub mod cases;
pub mod choice;
pub mod comparison;
pub mod difference;
pub mod evaluation;
pub mod explanation;
pub mod export;
pub mod fidelity;
pub mod figure;
pub mod format;
pub mod gate;
pub mod lab;
mod origin;
pub mod page;
#[cfg(feature = "png")]
pub mod picture;
pub mod report;
pub mod score;
pub mod sweep;
pub mod table;
pub mod timeline;
mod tone;
mod value;

pub use format::Format;
pub use origin::Origin;
pub use tone::Tone;

/// The version of the program that shows it. All crates of a release have the same.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// How text for people looks.
#[derive(Clone, Copy, Debug, Default)]
pub struct Look {
    /// Columns that tables may have; `None`: all that there are.
    pub width: Option<usize>,
    /// Whether also that is told which few want to know.
    pub is_verbose: bool,
    /// Whether everything has a row, also where there are very many.
    pub is_wide: bool,
}

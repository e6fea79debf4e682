//! Answers in, bytes out: what a person or a file gets.
//!
//! [`figure`] draws runs, comparisons and logs as SVG. Nothing here opens a file or knows whether a
//! terminal is there; whoever asks says where bytes go and how they are to look.

#![forbid(unsafe_code)]

pub mod figure;

//! The tests of the program, in one program.

#[cfg(feature = "live")]
mod reproduce;
mod reproduce_all;

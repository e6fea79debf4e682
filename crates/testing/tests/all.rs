//! The tests of the crate in one program, which is linked with all of the simulator.

mod foreign;
mod limits;
